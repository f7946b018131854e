//! One run of a task: a process group of its own, watched until it ends, and ended with all it started.
//!
//! ```text
//!  Command ─▶ process group ── log.txt ◀ stdout, stderr
//!     │           │ peak memory of the tree, time limit, interrupt
//!     ▼           ▼
//!  watchdog     ExitReason: success, exit code, signal, out of memory, time limit
//! ```
//!
//! A process that leaves its group (torchrun's workers do) is found by the variable [`phases::VARIABLE`] that it has
//! inherited. Should this program be killed, a watchdog ends the group: it waits for the end of a pipe that only this
//! program holds.

use crate::phases;
use crate::stop;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wellread_measure::memory::PeakSource;
use wellread_measure::{PeakGuard, PeakMemory, process};

/// How often is looked whether the process has ended: as exact as wall time can be.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(3);
/// How often the memory of the tree is read: that takes the kernel milliseconds for large processes.
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Lines of a log that are shown with an error.
const LOG_TAIL_LINES: usize = 12;
/// Bytes of a log that are looked at for them.
const LOG_TAIL_BYTES: u64 = 16 << 10;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// Exit code 0.
    Success,
    /// Another exit code.
    Exit(i32),
    /// A signal, its number.
    Signal(i32),
    /// The kernel killed it because memory ran out.
    OutOfMemory,
    /// It took longer than this many seconds and was ended.
    Timeout(f64),
}

impl ExitReason {
    /// The problem, in words; `None` after a success.
    pub fn problem(&self) -> Option<String> {
        Some(match self {
            Self::Success => return None,
            // A shell says so of a program that a signal has ended.
            Self::Exit(code @ 129..=192) => {
                format!("exit code {code}: a program it ran was ended by {}", signal_name(code - 128))
            }
            Self::Exit(code) => format!("exit code {code}"),
            Self::Signal(9) => {
                "ended by SIGKILL, which the kernel sends when memory runs out, or somebody else did"
                    .to_owned()
            }
            Self::Signal(number) => format!("ended by {}", signal_name(*number)),
            Self::OutOfMemory => {
                "out of memory: the kernel ended it; a smaller batch_size or fewer workers need less"
                    .to_owned()
            }
            Self::Timeout(seconds) => {
                format!(
                    "took longer than {seconds} s and was ended with all it had started (--timeout allows more)"
                )
            }
        })
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct FinishedProcess {
    /// How it ended.
    pub end: ExitReason,
    /// From its start to its end, in seconds.
    pub wall_seconds: f64,
    /// Peak memory of the process and all it started.
    pub peak: PeakMemory,
    /// Whether the kernel killed any process of this machine meanwhile because memory ran out.
    pub lack_of_memory: bool,
}

impl FinishedProcess {
    /// The problem, in words; `None` after a success. A worker or rank that the kernel has killed ends the others by
    /// an exit code or a hang, which do not tell why.
    pub fn problem(&self) -> Option<String> {
        let problem = self.end.problem()?;
        if self.lack_of_memory && self.end != ExitReason::OutOfMemory {
            return Some(format!(
                "{problem}; the kernel ended a process for lack of memory during this run: a smaller batch_size or \
                 fewer workers need less"
            ));
        }
        Some(problem)
    }
}

/// Runs a command to its end; `marked` is the value of [`phases::VARIABLE`] that it has and no other process.
///
/// # Errors
/// It cannot be started, or this program is about to end.
pub fn run(
    command: Command,
    log: &Path,
    marked: &Path,
    timeout: Option<Duration>,
) -> Result<FinishedProcess> {
    run_counting(command, log, marked, timeout, &killed_for_memory)
}

/// As [`run`]; `killed` counts the processes that the kernel has killed because memory ran out.
fn run_counting(
    mut command: Command,
    log: &Path,
    marked: &Path,
    timeout: Option<Duration>,
    killed: &dyn Fn() -> u64,
) -> Result<FinishedProcess> {
    let out = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let err = out.try_clone().with_context(|| format!("cannot write {}", log.display()))?;
    command.env(phases::VARIABLE, marked).stdin(Stdio::null()).stdout(out).stderr(err);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let killed_before = killed();
    let marked = marked.as_os_str().to_owned();
    let begin = Instant::now();
    let started = stop::start(|| {
        let child = command.spawn();
        let leader = child.as_ref().ok().map(Child::id);
        let marked = marked.clone();
        (child, Box::new(move || end_all(leader, &marked)))
    });
    let Some(child) = started else { bail!("interrupted") };
    let child = child.with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()));
    let mut running = match child {
        Ok(child) => Running { child, marked },
        Err(error) => {
            stop::ended();
            return Err(error);
        }
    };
    let _watchdog = Watchdog::over(running.child.id(), &running.marked);
    process::prefer_as_oom_victim(running.child.id());
    let peak = PeakGuard::of_tree(running.child.id(), MEMORY_POLL_INTERVAL);
    let (status, wall) = wait(&mut running.child, begin, timeout)?;
    let peak = seen(peak.stop());
    drop(running);
    let lack_of_memory = killed() > killed_before;
    let end = match status {
        None => ExitReason::Timeout(timeout.unwrap_or_default().as_secs_f64()),
        Some(status) => exit_reason(status, lack_of_memory),
    };
    Ok(FinishedProcess { end, wall_seconds: wall.as_secs_f64(), peak, lack_of_memory })
}

/// The peak, where the process was looked at after its start: the first look is at a program that is not loaded yet.
fn seen(peak: PeakMemory) -> PeakMemory {
    if !matches!(peak.source, PeakSource::TreeSamples { samples: ..=1, .. }) {
        return peak;
    }
    let reason = "the process ended before its memory could be looked at".to_owned();
    PeakMemory { bytes: None, at_start: None, source: PeakSource::Unavailable { reason } }
}

/// Waits for the end, or until the time is over: then there is no status.
fn wait(
    child: &mut Child,
    begin: Instant,
    timeout: Option<Duration>,
) -> Result<(Option<ExitStatus>, Duration)> {
    loop {
        let status = child.try_wait().context("cannot wait for the task's process")?;
        let wall = begin.elapsed();
        if status.is_some() {
            return Ok((status, wall));
        }
        if timeout.is_some_and(|limit| wall >= limit) {
            return Ok((None, wall));
        }
        std::thread::sleep(EXIT_POLL_INTERVAL);
    }
}

fn exit_reason(status: ExitStatus, killed_for_memory: bool) -> ExitReason {
    match (status.code(), signal(status)) {
        (Some(0), _) => ExitReason::Success,
        (Some(137), _) | (None, Some(9)) if killed_for_memory => ExitReason::OutOfMemory,
        (Some(code), _) => ExitReason::Exit(code),
        (None, number) => ExitReason::Signal(number.unwrap_or(0)),
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// A process whose group ends with this value, however that comes about.
struct Running {
    child: Child,
    marked: OsString,
}

impl Drop for Running {
    fn drop(&mut self) {
        process::end(&mut self.child);
        process::end_marked(phases::VARIABLE, &self.marked);
        stop::ended();
    }
}

/// Ends a task's processes without waiting for them.
fn end_all(leader: Option<u32>, marked: &OsString) {
    leader.into_iter().for_each(process::end_group);
    process::end_marked(phases::VARIABLE, marked);
}

/// Ends the group, and processes that have left it, should this program be killed.
struct Watchdog(Option<Child>);

impl Watchdog {
    /// Its arguments are the leader of the group and the value of [`phases::VARIABLE`]. Not every shell's `kill` takes
    /// `--` before a group.
    const SCRIPT: &str = r#"
read _
kill -KILL "-$1"
for file in $(grep -lzxF "WELLREAD_PHASES=$2" /proc/[0-9]*/environ 2>/dev/null); do
  pid=${file#/proc/}
  kill -KILL "${pid%/environ}"
done
"#;

    fn over(leader: u32, marked: &OsString) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", Self::SCRIPT, "wellread-watchdog", &leader.to_string()]).arg(marked);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        // Without one the group outlives a killed program, as it would anyhow.
        Self(shell.spawn().ok())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            process::end(child);
        }
    }
}

/// How many processes the kernel has killed because memory ran out; 0 where it does not say.
fn killed_for_memory() -> u64 {
    let of = |path: &str| std::fs::read_to_string(path).map_or(0, |text| oom_kills(&text));
    // The count of the whole machine, and of this container, which may see no more than itself.
    of("/proc/vmstat") + of("/sys/fs/cgroup/memory.events")
}

/// The count in a text of the kernel's, of lines such as `oom_kill 3`.
fn oom_kills(text: &str) -> u64 {
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    count.unwrap_or(0)
}

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS (a full /dev/shm does that too)",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}

/// The last lines of a log, those that are not empty.
pub fn tail(log: &Path) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // A progress bar, which draws over its own line, has its last state.
    let shown = |line: &str| line.trim_end().rsplit('\r').next().unwrap_or_default().trim_end().to_owned();
    let lines: Vec<String> = text.lines().map(shown).filter(|line| !line.trim().is_empty()).collect();
    let plain = |line: &String| line.chars().filter(|c| !c.is_control() || *c == '\t').take(500).collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].iter().map(plain).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
