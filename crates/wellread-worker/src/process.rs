//! A process that measures: started, asked, and ended when it does not answer.
//!
//! ```text
//!  ask ── JSON line ──▶ stdin  ┌────────┐ stdout ── JSON lines, some with bytes ──▶ thread ──▶ channel ──▶ ask
//!                              │ worker │ stderr ──▶ thread: the last lines, for messages
//!                              └────────┘
//! ```
//!
//! The worker leads a process group, so that the processes of its data loaders end with it. It ends by itself when
//! its stdin does: should this program be killed, nothing is left behind.

use crate::sources;
use anyhow::{Context as _, Result, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wellread_measure::process;
use wellread_store::staged::ScratchFolder;

/// Messages that wait to be looked at; behind them the worker waits.
const QUEUE_LENGTH: usize = 4;
/// Lines of stderr that are kept.
const STDERR_LINES: usize = 30;
/// Least time that importing a framework and the peers is given.
const MIN_IMPORT_TIMEOUT: Duration = Duration::from_mins(5);
/// How long the threads of a worker that has ended may take to hand over its last words.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a worker whose output is closed may take to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Pixels that a worker delivered, to be compared with what must be.
#[derive(Debug, Deserialize)]
pub struct Pixels {
    /// The rows.
    pub rows: Vec<usize>,
    /// Whether every value of each row follows, or a sample.
    pub all: bool,
    /// Float32, row after row.
    #[serde(skip)]
    pub values: Vec<f32>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Pixels(Pixels),
    Done(#[serde(skip)] Value),
    Failed { reason: String },
}

/// The program to start, and its inputs.
#[derive(Clone, Debug)]
pub struct Launch {
    program: Program,
    threads: usize,
    processors: Vec<usize>,
    limit: Duration,
}

#[derive(Clone, Debug)]
enum Program {
    /// A Python, which is given the sources that this program carries.
    Python(PathBuf),
    /// A program and its arguments.
    Native(Vec<OsString>),
}

impl Launch {
    /// A Python >= 3.10 whose libraries are told to use so many threads; an answer may take as long as `limit`.
    pub fn python(python: impl Into<PathBuf>, threads: usize, limit: Duration) -> Self {
        Self { program: Program::Python(python.into()), threads, processors: Vec::new(), limit }
    }

    /// As [`Self::python`], with a program of its own: its path, then its arguments.
    pub fn native(command: Vec<OsString>, threads: usize, limit: Duration) -> Self {
        Self { program: Program::Native(command), threads, processors: Vec::new(), limit }
    }

    /// Keeps the process to these processors, where the system can: XLA, for one, takes as many threads as there are.
    pub fn on_processors(mut self, processors: Vec<usize>) -> Self {
        self.processors = processors;
        self
    }

    /// The Python, where it is one.
    pub fn interpreter(&self) -> Option<&Path> {
        match &self.program {
            Program::Python(python) => Some(python),
            Program::Native(_) => None,
        }
    }

    fn worker(&self) -> &'static str {
        match self.program {
            Program::Python(_) => "the Python worker",
            Program::Native(_) => "the worker",
        }
    }

    /// The command, and the folder of the Python sources, which must outlive it.
    fn command(&self) -> Result<(Command, Option<ScratchFolder>)> {
        let (mut command, folder) = match &self.program {
            Program::Python(python) => {
                let folder = sources::unpack()?;
                let mut command = crate::python_command(python, sources::BOOTSTRAP);
                command.arg(folder.path());
                (command, Some(folder))
            }
            Program::Native(line) => {
                let (program, args) = line.split_first().context("no program is named")?;
                let mut command = Command::new(program);
                command.args(args);
                (command, None)
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(name, self.threads.to_string());
        }
        // Or JAX takes most of a device's memory at once, whatever it needs.
        command.env("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok((command, folder))
    }

    fn spawn(&self, command: &mut Command) -> Result<Child> {
        let spawned = if self.processors.is_empty() {
            command.spawn()
        } else {
            // The child has what the thread that starts it has.
            process::on_processors(&self.processors, || command.spawn())
        };
        spawned.map_err(|e| {
            let why = match e.kind() {
                io::ErrorKind::NotFound => "there is no such program".to_owned(),
                _ => e.to_string(),
            };
            match &self.program {
                Program::Python(python) => anyhow!(
                    "cannot start the Python {}: {why} (pass --python PATH or set WELLREAD_PYTHON to a Python >= 3.10 that has the frameworks)",
                    python.display()
                ),
                Program::Native(line) => {
                    let program = line.first().map(|program| program.to_string_lossy());
                    anyhow!("cannot start {}: {why}", program.unwrap_or_default())
                }
            }
        })
    }
}

/// The process.
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    events: Receiver<io::Result<Event>>,
    stderr_lines: Arc<Mutex<VecDeque<String>>>,
    name: &'static str,
    limit: Duration,
    /// Whether it can be asked again.
    alive: bool,
    _sources: Option<ScratchFolder>,
}

impl Worker {
    /// Starts it.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn start(launch: &Launch) -> Result<Self> {
        let (mut command, folder) = launch.command()?;
        let mut child = launch.spawn(&mut command)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            bail!("{} has no streams", launch.worker());
        };
        process::prefer_as_oom_victim(child.id());
        let (sender, events) = sync_channel(QUEUE_LENGTH);
        let stderr_lines = Arc::new(Mutex::new(VecDeque::new()));
        let last = Arc::clone(&stderr_lines);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(work).context("cannot start a thread")
        };
        spawn("worker-events", Box::new(move || read_events(BufReader::new(stdout), &sender)))?;
        spawn("worker-stderr", Box::new(move || keep_last_lines(BufReader::new(stderr), &last)))?;
        let (name, limit) = (launch.worker(), launch.limit);
        Ok(Self { child, stdin, events, stderr_lines, name, limit, alive: true, _sources: folder })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it can be asked again.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// Sends the first request, which makes Python import what it needs: it may take longer than any other.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_first(&mut self, request: &Value) -> Result<Value> {
        let limit = self.limit;
        self.limit = limit.max(MIN_IMPORT_TIMEOUT);
        let answer = self.ask(request, |_| ());
        self.limit = limit;
        answer
    }

    /// Sends a request and waits for its answer; `pixels` is called with what is delivered meanwhile.
    ///
    /// # Errors
    /// The worker's error. It ended or was silent for too long, after which it is no longer alive.
    pub fn ask(&mut self, request: &Value, mut pixels: impl FnMut(&Pixels)) -> Result<Value> {
        let mut line = request.to_string();
        line.push('\n');
        if self.stdin.write_all(line.as_bytes()).and_then(|()| self.stdin.flush()).is_err() {
            return Err(self.exit_error());
        }
        let begin = Instant::now();
        loop {
            let left = self.limit.saturating_sub(begin.elapsed());
            match self.events.recv_timeout(left) {
                Ok(Ok(Event::Pixels(delivered))) => pixels(&delivered),
                Ok(Ok(Event::Done(answer))) => return Ok(answer),
                Ok(Ok(Event::Failed { reason })) => bail!(reason),
                Ok(Err(e)) if e.kind() == io::ErrorKind::InvalidData => {
                    self.end();
                    bail!("{} said what is not understood: {e}", self.name);
                }
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(self.exit_error()),
                Err(RecvTimeoutError::Timeout) => {
                    self.end();
                    bail!(
                        "no answer within {} s, and the worker was ended (--turn-limit allows more)",
                        self.limit.as_secs_f64()
                    );
                }
            }
        }
    }

    /// That it ended, how, and its last words.
    fn exit_error(&mut self) -> anyhow::Error {
        let begin = Instant::now();
        std::thread::sleep(OUTPUT_DRAIN_TIMEOUT);
        let mut status = self.child.try_wait().ok().flatten();
        // Its output is closed before it has ended; a busy machine takes its time in between.
        while status.is_none() && begin.elapsed() < SHUTDOWN_TIMEOUT {
            std::thread::sleep(OUTPUT_DRAIN_TIMEOUT / 10);
            status = self.child.try_wait().ok().flatten();
        }
        let status = status.map(|status| format!(" ({status})"));
        self.end();
        let stderr_lines = self.stderr_lines.lock().unwrap_or_else(PoisonError::into_inner);
        let last = stderr_lines.iter().rev().find(|line| !line.trim().is_empty());
        let words = last.map(|line| format!(": {}", line.trim()));
        anyhow!("{} ended{}{}", self.name, status.unwrap_or_default(), words.unwrap_or_default())
    }

    fn end(&mut self) {
        process::end(&mut self.child);
        self.alive = false;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.alive {
            self.end();
        }
    }
}

/// Hands messages on until there are no more.
fn read_events(mut stdout: impl BufRead, to: &SyncSender<io::Result<Event>>) {
    loop {
        let event = read_event(&mut stdout);
        let last = event.is_err();
        if to.send(event).is_err() || last {
            return;
        }
    }
}

/// A line of JSON, and as many bytes as it says.
fn read_event(stdout: &mut impl BufRead) -> io::Result<Event> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut line = String::new();
    if stdout.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let value: Value = serde_json::from_str(&line).map_err(|e| invalid(e.to_string()))?;
    let bytes = value.get("bytes").and_then(Value::as_u64).unwrap_or(0);
    let event = Event::deserialize(&value).map_err(|e| invalid(e.to_string()))?;
    Ok(match event {
        Event::Pixels(pixels) => {
            let mut payload = Vec::new();
            stdout.take(bytes).read_to_end(&mut payload)?;
            if payload.len() as u64 != bytes || !payload.len().is_multiple_of(4) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let floats = payload.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four));
            Event::Pixels(Pixels { values: floats.collect(), ..pixels })
        }
        Event::Done(_) => Event::Done(value),
        failed @ Event::Failed { .. } => failed,
    })
}

fn keep_last_lines(stderr: impl BufRead, lines: &Mutex<VecDeque<String>>) {
    for line in stderr.split(b'\n').map_while(Result::ok) {
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8]) -> Vec<io::Result<Event>> {
        let (sender, receiver) = sync_channel(100);
        read_events(bytes, &sender);
        drop(sender);
        receiver.iter().collect()
    }

    #[test]
    fn messages_and_their_bytes_are_read() {
        let mut stream = b"{\"event\":\"pixels\",\"rows\":[7],\"all\":true,\"bytes\":8}\n".to_vec();
        stream.extend([1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()));
        stream
            .extend(b"{\"event\":\"done\",\"samples_ns\":[1,2]}\n{\"event\":\"failed\",\"reason\":\"no\"}\n");
        let found = events(&stream);
        assert_eq!(found.len(), 4);
        let Ok(Event::Pixels(pixels)) = &found[0] else { panic!("{:?}", found[0]) };
        assert_eq!((&pixels.rows[..], pixels.all, &pixels.values[..]), (&[7][..], true, &[1.5, -2.0][..]));
        assert!(matches!(&found[1], Ok(Event::Done(answer)) if answer["samples_ns"][1] == 2));
        assert!(matches!(&found[2], Ok(Event::Failed { reason }) if reason == "no"));
        assert_eq!(found[3].as_ref().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_stream_that_breaks_off_or_is_none_of_ours_is_an_error() {
        let cut = events(b"{\"event\":\"pixels\",\"rows\":[7],\"all\":true,\"bytes\":8}\n1234");
        assert_eq!(cut[0].as_ref().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for noise in [&b"hello\n"[..], b"{\"event\":\"what\"}\n"] {
            assert_eq!(events(noise)[0].as_ref().unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
