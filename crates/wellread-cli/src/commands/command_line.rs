//! The command as a line of words: for the record of what was measured, and for repeating it.
//!
//! ```text
//!  typed words, or the run of a recipe ─▶ command_line() ─▶ kept in summary.json and in timelines
//!  a kept line ─▶ split ─▶ words ─▶ options looked up, replaced, removed ─▶ joined ─▶ a line again
//! ```

use super::synthetic::GENERATED;
use serde_json::Value;
use std::cell::RefCell;
use std::path::PathBuf;

/// The recipe that is being run, for those that record what they were asked.
#[derive(Clone)]
pub struct RunningRecipe {
    /// The command as it would be typed.
    pub command: String,
    /// The whole recipe.
    pub text: Value,
}

thread_local! {
    /// Runs of a recipe follow one another on the thread that began it.
    static CURRENT: RefCell<Option<RunningRecipe>> = const { RefCell::new(None) };
}

/// Does `work`, a run of a recipe.
pub fn with_current<T>(recipe: RunningRecipe, work: impl FnOnce() -> T) -> T {
    CURRENT.set(Some(recipe));
    let result = work();
    CURRENT.set(None);
    result
}

/// The recipe that is being run, if one is.
pub fn current() -> Option<RunningRecipe> {
    CURRENT.with_borrow(Clone::clone)
}

/// The arguments of the command that is run, without the program's name.
fn typed() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The command as typed, or as a recipe has it, with the program's name instead of its path.
pub fn command_line() -> String {
    current().map_or_else(|| joined(typed()), |current| current.command)
}

/// The folder that the command is run in, which relative paths of its line are from.
pub fn working_folder() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// Words as one line that a shell, and [`split`], take apart again.
pub fn joined(words: impl IntoIterator<Item = String>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./,:%+@~{}#".contains(c);
    // A shell takes these for a home folder, a comment, and several words.
    let means_more = |word: &str| {
        word.starts_with(['~', '#']) || word.contains('{') && (word.contains(',') || word.contains(".."))
    };
    let quoted = |word: String| {
        if !word.is_empty() && word.chars().all(plain) && !means_more(&word) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    std::iter::once("wellread".to_owned()).chain(words.into_iter().map(quoted)).collect::<Vec<_>>().join(" ")
}

/// The words of a line that [`joined`] wrote.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if !quoted => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quoted { Err("a quotation mark is not closed".to_owned()) } else { Ok(words) }
}

/// The value of an option, in whichever form it was given.
pub fn value<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    let name = format!("--{option}");
    words.iter().enumerate().find_map(|(i, word)| match word.strip_prefix(&name)? {
        "" => words.get(i + 1).map(String::as_str),
        rest => rest.strip_prefix('='),
    })
}

/// Sets an option, in whichever form it was given.
pub fn replace(words: &mut Vec<String>, option: &str, value: &str) {
    remove(words, option);
    words.push(format!("--{option}={value}"));
}

/// Takes an option that has a value away, in whichever form it was given.
pub fn remove(words: &mut Vec<String>, option: &str) {
    let name = format!("--{option}");
    let with = format!("{name}=");
    if let Some(at) = words.iter().position(|word| *word == name) {
        words.drain(at..(at + 2).min(words.len()));
    }
    words.retain(|word| !word.starts_with(&with));
}

/// Takes options of `bench` away that earlier versions took without effect, and that are refused now.
pub fn remove_idle(words: &mut Vec<String>) {
    if words.first().is_none_or(|command| command != "bench") {
        return;
    }
    if ["input", "data"].iter().any(|option| value(words, option).is_some()) {
        for option in GENERATED {
            remove(words, option);
        }
    }
    if words.iter().any(|word| word == "--in-place") {
        for option in ["formats", "data-dir"] {
            remove(words, option);
        }
    }
}

/// A line without these options that have a value, and these that have none. Words behind `--` are no options.
pub fn without(line: &str, valued: &[&str], flags: &[&str]) -> String {
    let Ok(mut words) = split(line) else { return line.to_owned() };
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let behind = words.split_off(end);
    for option in valued {
        remove(&mut words, option);
    }
    words.retain(|word| !flags.contains(&word.as_str()));
    words.extend(behind);
    joined(words.into_iter().skip(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_as_they_were_joined() {
        let words = ["bench", "a b", "it's", "", "--x=1,2", "ü$"].map(str::to_owned);
        let line = joined(words.clone());
        assert_eq!(split(&line).unwrap()[1..], words);
        assert_eq!(split("wellread bench 'a b'  c").unwrap(), ["wellread", "bench", "a b", "c"]);
        assert!(split("a 'b").is_err());
        let mut words = ["bench", "--out", "a", "x", "--out=b"].map(str::to_owned).to_vec();
        replace(&mut words, "out", "c");
        assert_eq!(words, ["bench", "x", "--out=c"]);
        assert_eq!((value(&words, "out"), value(&words, "o")), (Some("c"), None));
        assert_eq!(value(&["--out", "a b"].map(str::to_owned), "out"), Some("a b"));
        remove(&mut words, "out");
        remove(&mut words, "trace");
        assert_eq!(words, ["bench", "x"]);
    }

    #[test]
    fn a_shell_finds_no_more_in_a_word_than_it_is() {
        let words =
            ["convert", "#1.parquet", "~a", "{a,b}.tif", "{1..3}", "a[1].tif", "{well}_{site}.tif", "a#1~"];
        let line = joined(words.map(str::to_owned));
        assert_eq!(
            line,
            "wellread convert '#1.parquet' '~a' '{a,b}.tif' '{1..3}' 'a[1].tif' {well}_{site}.tif a#1~"
        );
        assert_eq!(split(&line).unwrap()[1..], words);
    }

    #[test]
    fn what_had_no_effect_is_not_done_again() {
        let rest = |line: &str| {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            remove_idle(&mut words);
            words.join(" ")
        };
        let found = rest(
            "bench loop --data=a --in-place --images 9 --time=2 --time-budget 5 --formats x --data-dir b",
        );
        assert_eq!(found, "bench loop --data=a --in-place --time-budget 5");
        for whole in [
            "bench loop --images 9 --formats x --data-dir b",
            "bench loop --input a --formats x --data-dir b",
            "generate --input a --images 9",
        ] {
            assert_eq!(rest(whole), whole);
        }
    }

    #[test]
    fn options_are_left_out_of_a_line_wherever_they_stand() {
        let line =
            "wellread --json embed --on ray:a:1 'a b' --actors=2 --out p.parquet --resume -- --on --json";
        let told = without(line, &["on", "actors"], &["--json", "--resume"]);
        assert_eq!(told, "wellread embed 'a b' --out p.parquet -- --on --json");
        assert_eq!(without("wellread 'a", &["on"], &[]), "wellread 'a");
    }
}
