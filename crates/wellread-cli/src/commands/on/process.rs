//! The Python of a command on a cluster, which ends before the command does.
//!
//! ```text
//!  Ctrl-C ─▶ interrupt ──SIGINT──▶ Python: tasks are given up, what they wrote goes, it ends ─▶ the command ends
//!                 └── too late, or again Ctrl-C ─▶ it is killed ───────────────────────────────────┘
//!  a command that is killed ──end of stdin──▶ Python: the same
//! ```
//!
//! The Python leads a process group, so that a terminal interrupts this program alone: the Python is asked once.

use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wellread_measure::process::end;

/// The process that runs, if one does.
static RUNNING: Mutex<Option<Child>> = Mutex::new(None);
/// Whether this program is about to end: then nothing is started.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// So long a process that was asked to end may take: longer than the Python waits for tasks that it gives up.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(40);
/// Between two looks whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

fn running() -> MutexGuard<'static, Option<Child>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_alive(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

/// Whether a process runs that is to end before this program does.
pub fn is_running() -> bool {
    running().as_mut().is_some_and(is_alive)
}

/// Asks the process to end, and waits until it has. One that takes too long is killed.
pub fn interrupt() {
    IS_ENDING.store(true, Ordering::SeqCst);
    let asked = Instant::now();
    ask_to_end();
    while is_running() {
        if asked.elapsed() > SHUTDOWN_TIMEOUT {
            return kill();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Sends what a terminal sends. The number is its own until it was waited for, which takes the lock.
fn ask_to_end() {
    let mut running = running();
    let Some(child) = running.as_mut() else { return };
    // Elsewhere the console has told it.
    #[cfg(unix)]
    if is_alive(child)
        && let Ok(pid @ 2..) = i32::try_from(child.id())
    {
        // SAFETY: kill has no preconditions; the process was not waited for yet, so the number is its own.
        unsafe { libc::kill(pid, libc::SIGINT) };
    }
    #[cfg(not(unix))]
    let _ = child;
}

/// Ends the process and whatever it started.
pub fn kill() {
    if let Some(child) = running().as_mut()
        && is_alive(child)
    {
        end(child);
    }
}

/// Waits for the process, and leaves the lock to others between two looks.
fn wait() -> io::Result<ExitStatus> {
    loop {
        if let Some(child) = running().as_mut()
            && let Some(status) = child.try_wait()?
        {
            return Ok(status);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The process, which ends when this is dropped.
pub(super) struct Process(());

impl Process {
    /// Starts it; its stdin and stdout.
    ///
    /// # Errors
    /// It cannot be started; this program is about to end.
    pub(super) fn start(
        command: &mut Command,
    ) -> io::Result<(Self, Option<ChildStdin>, Option<ChildStdout>)> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        // In one step with its start, or one that is begun just now would not be ended.
        let mut running = running();
        if IS_ENDING.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        *running = Some(child);
        Ok((Self(()), stdin, stdout))
    }

    /// Waits until it has ended by itself, as it does once its stdout is closed.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn wait(self) -> io::Result<ExitStatus> {
        let status = wait();
        drop(self);
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        kill();
        *running() = None;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _};

    /// A program that is started in the background ignores Ctrl-C, and so would what it starts.
    fn heed_interrupts() {
        // SAFETY: the default handler is no code of this program.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    }

    fn shell(script: &str) -> (Process, Option<ChildStdin>, BufReader<ChildStdout>) {
        let (process, stdin, stdout) = Process::start(Command::new("sh").args(["-c", script])).unwrap();
        let (mut stdout, mut line) = (BufReader::new(stdout.unwrap()), String::new());
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        (process, stdin, stdout)
    }

    /// One test, since a program has one such process.
    #[test]
    fn a_process_is_asked_to_end_and_one_that_is_dropped_is_killed_with_what_it_started() {
        heed_interrupts();
        let script = "trap 'echo removed; kill $!; exit 7' INT; sleep 600 >/dev/null & echo ready; wait";
        let (process, _stdin, mut stdout) = shell(script);
        assert!(is_running());
        ask_to_end();
        let mut said = String::new();
        stdout.read_to_string(&mut said).unwrap();
        assert_eq!((said.as_str(), process.wait().unwrap().code()), ("removed\n", Some(7)));
        assert!(!is_running());
        let (process, _stdin, mut stdout) = shell("trap '' INT; sleep 600 & echo ready; wait");
        ask_to_end();
        drop(process);
        // At its end once nobody holds it any more, `sleep` included.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).unwrap(), 0);
        assert!(!is_running());
    }
}
