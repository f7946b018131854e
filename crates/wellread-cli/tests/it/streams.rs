//! Standard streams that take nothing: a full disk behind them, or a reader that is gone.

use crate::compare::side;
use crate::support::{arg, generate, wellread, wellread_into};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A device on which there is never any space.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A pipe that nobody reads any more.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Runs `wellread` by a shell that redirects as `redirection` says; its exit code and stderr.
fn redirected(command: &[&str], redirection: &str) -> (Option<i32>, String) {
    let script = format!("exec \"$0\" \"$@\" {redirection}");
    let done = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_wellread")])
        .args(command)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

/// The error of a full disk behind stdout.
const FULL: &str =
    "error: cannot write the output: No space left on device (hint: free some space or write elsewhere)\n";

/// `compare` of three results with three others that are slower.
fn regression(folder: &Path) -> Vec<String> {
    let of = |name: &str, level: f64| side(&folder.join(name), &[("tiff", level)]);
    let words = |paths: Vec<PathBuf>| paths.iter().map(|path| arg(path).to_owned()).collect::<Vec<_>>();
    let (before, after) = (words(of("a", 1.0)), words(of("b", 1.5)));
    [vec!["--quiet".to_owned(), "compare".to_owned()], before, vec!["--".to_owned()], after].concat()
}

#[test]
fn errors_that_nobody_can_read_keep_their_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("nosuch");
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let commands: [(&[&str], i32); 4] = [
        (&["info", arg(&missing)], 1),
        (&["verify", arg(&empty)], 1),
        (&["no-such-command"], 2),
        (&["generate", "--kind", "noise", "--masks", arg(&missing)], 2),
    ];
    for (command, code) in commands {
        for stderr in [Stdio::from(full()), unread()] {
            assert_eq!(wellread_into(command, Stdio::piped(), stderr).code, code, "{command:?}");
        }
    }
    // Problems of a set, and remarks beside what is done.
    generate(dir.path(), 2, &["--formats", "tiff,parquet"]);
    let (tiff, parquet) = (dir.path().join("tiff"), dir.path().join("images.parquet"));
    let other = dir.path().join("other");
    generate(&other, 3, &["--formats", "tiff", "--seed", "5"]);
    let differs = ["verify", arg(&tiff), "--against", arg(&other.join("tiff"))].map(str::to_owned);
    assert_eq!(wellread_into(&differs, Stdio::piped(), full()).code, 1);
    let target = dir.path().join("png");
    let convert = ["convert", arg(&parquet), arg(&target), "--format", "image-folder", "--tune", "size"];
    assert_eq!(wellread_into(&convert, Stdio::piped(), full()).code, 0);
}

#[test]
fn output_that_does_not_arrive_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 2, &["--formats", "tiff"]);
    let tiff = dir.path().join("tiff");
    let of_a_set = ["info", "checksum", "stats", "verify"].map(|command| vec![command, arg(&tiff)]);
    // Quiet: leftovers of killed runs on this machine are not shown.
    let doctor = vec!["doctor", "--python", "no-such-python", "--quiet"];
    for command in of_a_set.iter().chain([&doctor]) {
        for more in [&[][..], &["--json"]] {
            let command = [command.as_slice(), more].concat();
            let done = wellread_into(&command, full(), Stdio::piped());
            assert_eq!((done.code, done.stderr.as_str()), (1, FULL), "{command:?}");
            // A reader of only the beginning gets all that it wants.
            let done = wellread_into(&command, unread(), Stdio::piped());
            assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{command:?}");
        }
    }
    for help in [&["--help"][..], &["--version"], &["info", "--help"]] {
        let done = wellread_into(help, full(), Stdio::piped());
        assert_eq!((done.code, done.stderr.as_str()), (1, FULL), "{help:?}");
        assert_eq!(wellread_into(help, unread(), Stdio::piped()).code, 0, "{help:?}");
    }
    // Both at once.
    assert_eq!(wellread_into(&["info", arg(&tiff)], full(), full()).code, 1);
}

#[test]
fn a_closed_stdout_is_an_error_of_commands_that_print() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 2, &["--formats", "tiff"]);
    let tiff = dir.path().join("tiff");
    let tiff = arg(&tiff);
    let closed = "error: cannot write the output: stdout is closed (hint: check where the output goes)\n";
    for command in [&["checksum", tiff][..], &["info", tiff], &["info", tiff, "--json"], &["--help"]] {
        assert_eq!(redirected(command, ">&-"), (Some(1), closed.to_owned()), "{command:?}");
        assert_eq!(redirected(command, ">/dev/null"), (Some(0), String::new()), "{command:?}");
    }
    // Other failures keep their code.
    assert_eq!(redirected(&["no-such-command"], ">&-").0, Some(2));
}

#[test]
fn a_regression_that_cannot_be_told_is_an_error_and_one_that_nobody_reads_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let command = regression(dir.path());
    assert_eq!(wellread(&command).code, 3);
    let done = wellread_into(&command, full(), Stdio::piped());
    assert_eq!((done.code, done.stderr.as_str()), (1, FULL));
    let done = wellread_into(&command, unread(), Stdio::piped());
    assert_eq!((done.code, done.stderr.as_str()), (3, ""));
}
