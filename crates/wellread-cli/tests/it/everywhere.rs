//! The options that every command takes, wherever they stand among the arguments.

use crate::support::{arg, generate, wellread};

/// Names of the commands and of their own commands, as the help texts list them.
fn commands() -> Vec<Vec<String>> {
    fn below(path: &[String], found: &mut Vec<Vec<String>>) {
        let done = wellread(&[path, &["--help".to_owned()]].concat());
        assert_eq!(done.code, 0, "{path:?}: {}", done.stderr);
        let Some((_, list)) = done.stdout.split_once("Commands:\n") else { return };
        for line in list.lines().take_while(|line| !line.is_empty()) {
            // Names are indented by two; wrapped lines are indented further.
            let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
            let Some(name) = name.and_then(|rest| rest.split(' ').next()).filter(|name| *name != "help")
            else {
                continue;
            };
            let path = [path, &[name.to_owned()]].concat();
            below(&path, found);
            found.push(path);
        }
    }
    let mut found = vec![];
    below(&[], &mut found);
    assert!(found.len() >= 15, "{found:?}");
    found
}

#[test]
fn global_options_stand_anywhere() {
    for command in commands() {
        for option in ["--quiet", "-q", "--json"] {
            for at in 0..=command.len() {
                let mut words = command.clone();
                words.insert(at, option.to_owned());
                // Once more at the end, as a script adds it that knows nothing of what comes before.
                for again in [false, true] {
                    let mut words = words.clone();
                    words.extend(again.then(|| option.to_owned()));
                    // Refused by name, as every command does what it does not know.
                    words.push("--no-such-option".to_owned());
                    let done = wellread(&words);
                    assert_eq!(done.code, 2, "{words:?}: {}", done.stderr);
                    assert!(done.stderr.contains("--no-such-option"), "{words:?}: {}", done.stderr);
                }
            }
        }
    }
}

#[test]
fn global_options_do_the_same_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet"]);
    let path = set.join("images.parquet");
    let path = arg(&path);
    let said = |words: &[&str]| {
        let done = wellread(words);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{words:?}");
        done.stdout
    };
    let expected = said(&["info", path]);
    for words in [["--quiet", "info", path], ["info", "--quiet", path], ["info", path, "-q"]] {
        assert_eq!(said(&words), expected, "{words:?}");
    }
    let document: serde_json::Value = serde_json::from_str(&said(&["--json", "info", path])).unwrap();
    for words in [
        &["info", "--json", path][..],
        &["info", path, "--json"],
        &["--json", "--quiet", "info", path, "--json", "--quiet"],
        &["info", path, "-q", "--json", "-q"],
    ] {
        assert_eq!(serde_json::from_str::<serde_json::Value>(&said(words)).unwrap(), document, "{words:?}");
    }
}

/// Results are what a command is for: `--quiet` keeps those of every command that reads a set.
#[test]
fn quiet_commands_print_their_results() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet"]);
    let path = set.join("images.parquet");
    for command in ["info", "stats", "checksum", "verify"] {
        let told = wellread(&[command, arg(&path)]);
        let quiet = wellread(&[command, arg(&path), "--quiet"]);
        assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "{command}");
        assert_eq!(quiet.stdout, told.stdout, "{command}");
        assert_ne!(quiet.stdout, "", "{command}");
    }
}

#[test]
fn an_error_is_on_stderr_and_leaves_stdout_without_a_document() {
    for (words, code) in [(["info", "no-such-set"], 1), (["info", "--no-such-option"], 2)] {
        let done = wellread(&["--json", words[0], words[1]]);
        assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{words:?}");
        assert!(done.stderr.starts_with("error: "), "{words:?}: {}", done.stderr);
    }
}
