//! A program that is run once, for what it prints: a Python that is asked what it has, without importing it.

use crate::python_command;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a Python may take to say what it has: on a busy machine it starts slowly.
const PYTHON_START_TIMEOUT: Duration = Duration::from_mins(1);
/// How long what a program printed is waited for at least, once it has ended.
const MIN_READ_TIME: Duration = Duration::from_secs(1);
/// Time between two looks whether the program has ended.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs a program for `limit` at most. Returns its output, or in words the reason why there is none.
///
/// # Errors
/// A program that cannot be started, fails, or does not end in time.
pub fn ask(program: impl AsRef<OsStr>, args: &[&str], limit: Duration) -> Result<String, String> {
    answer(Command::new(program).args(args), limit)
}

/// As [`ask`], with code that a Python runs: see [`python_command`].
///
/// # Errors
/// As [`ask`].
pub fn ask_python(
    python: impl AsRef<OsStr>,
    code: &str,
    args: &[&str],
    limit: Duration,
) -> Result<String, String> {
    answer(python_command(python, code).args(args), limit)
}

fn answer(command: &mut Command, limit: Duration) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(|e| {
            if e.kind() == std::io::ErrorKind::NotFound { "not found".to_owned() } else { e.to_string() }
        })?;
    let start = Instant::now();
    let no_answer = || format!("no answer within {} seconds", limit.as_secs());
    // Read while it runs: a pipe that is full would stop it.
    let stdout = child.stdout.take();
    let (sent, received) = mpsc::channel();
    std::thread::spawn(move || {
        let mut out = String::new();
        let read = stdout.map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut out));
        // Where the time is over, nobody waits for it.
        let _ = sent.send(read.map(|_| out));
    });
    loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) if status.success() => break,
            Some(status) => return Err(format!("{name} failed: {status}")),
            None if start.elapsed() > limit => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(no_answer());
            }
            None => std::thread::sleep(EXIT_POLL_INTERVAL),
        }
    }
    // A program that it started may run on and keep the pipe open.
    match received.recv_timeout(limit.saturating_sub(start.elapsed()).max(MIN_READ_TIME)) {
        Ok(read) => read.map_err(|e| e.to_string()),
        Err(_) => Err(no_answer()),
    }
}

/// Why a Python has no module of this name, in words; `None` where it has one, which may still fail to be imported.
pub fn why_module_is_missing(python: &Path, module: &str) -> Option<String> {
    const CODE: &str =
        "import importlib.util; print('no' if importlib.util.find_spec(sys.argv[1]) is None else 'yes')";
    match ask_python(python, CODE, &[module], PYTHON_START_TIMEOUT) {
        Ok(said) if said.trim() == "yes" => None,
        Ok(_) => Some(format!("{} has no {module}", python.display())),
        Err(why) => Some(format!("{}: {why}", python.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_the_answer_and_what_fails_says_why() {
        assert_eq!(ask("echo", &["a", "b"], PYTHON_START_TIMEOUT).unwrap(), "a b\n");
        assert_eq!(ask("no-such-program", &[], PYTHON_START_TIMEOUT).unwrap_err(), "not found");
        assert!(
            ask("false", &[], PYTHON_START_TIMEOUT).unwrap_err().starts_with("false failed: exit status: 1")
        );
        let none = ask("sleep", &["600"], Duration::ZERO).unwrap_err();
        assert_eq!(none, "no answer within 0 seconds");
    }

    #[test]
    #[cfg(unix)]
    fn a_long_answer_arrives_and_what_a_program_leaves_running_is_not_waited_for() {
        let shell = |script: &str, limit| ask("sh", &["-c", script], limit);
        // More than a pipe holds.
        let long = shell("head -c 300000 /dev/zero | tr '\\0' a", PYTHON_START_TIMEOUT).unwrap();
        assert_eq!((long.len(), long.trim_matches('a')), (300_000, ""));
        let limit = Duration::from_secs(2);
        let error = shell("sleep 30 & echo a", limit).unwrap_err();
        assert_eq!(error, "no answer within 2 seconds");
    }

    #[test]
    fn a_python_without_the_module_and_none_at_all_are_told_apart() {
        assert_eq!(
            why_module_is_missing(Path::new("no-such-python"), "torch").unwrap(),
            "no-such-python: not found"
        );
        let python = Path::new("python3");
        if ask(python, &["--version"], PYTHON_START_TIMEOUT).is_ok() {
            assert_eq!(why_module_is_missing(python, "json"), None);
            assert_eq!(
                why_module_is_missing(python, "no_such_module").unwrap(),
                "python3 has no no_such_module"
            );
        }
    }
}
