//! The worker's side of the protocol for backends in Rust: `wellread infer-worker`, started by [`crate::runner`].
//!
//! ```text
//! stdin ── a request per line ──▶ Server ── an answer per line ──▶ stdout      images, logits: files
//! ```

use crate::backend;
use crate::protocol::{Batch, Opened, Outputs, Passes, Prepared, Request, Step};
use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, Read as _, Seek as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::channel;
use wellread_measure::clock::{Clock, Stopwatch};
use wellread_measure::memory::release_free_heap;
use wellread_measure::to_stderr;
use wellread_model::infer::Session;
use wellread_store::words::counted;

/// Answers requests until there are none. When the program that asks is gone, so is this, whatever it is doing.
pub fn main() {
    let (sender, requests) = channel();
    let reading = std::thread::Builder::new().spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    if let Err(error) = reading {
        to_stderr(format!("the worker cannot start a thread: {error}"));
        return;
    }
    let mut answers = match answers() {
        Ok(answers) => answers,
        Err(error) => {
            to_stderr(format!("the worker cannot keep its output to itself: {error}"));
            return;
        }
    };
    let mut server = Server::default();
    for line in requests {
        let answer = catch_unwind(AssertUnwindSafe(|| server.answer(&line)));
        let answer =
            answer.unwrap_or_else(|_| Err(anyhow!("the backend panicked; it is a bug: please report it")));
        let message = match answer {
            Ok(mut answer) => {
                answer["event"] = "done".into();
                answer
            }
            Err(error) => json!({ "event": "failed", "reason": format!("{error:#}") }),
        };
        if writeln!(answers, "{message}").and_then(|()| answers.flush()).is_err() {
            return;
        }
    }
}

/// The stream for answers. Libraries print: from here on, what goes to stdout arrives at stderr, whose last lines are kept
/// for messages.
#[cfg(unix)]
fn answers() -> std::io::Result<File> {
    use std::os::fd::AsFd as _;
    let own = std::io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok(own.into())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
fn answers() -> std::io::Result<std::io::Stdout> {
    Ok(std::io::stdout())
}

/// The state that stays from request to request.
#[derive(Default)]
struct Server {
    session: Option<Box<dyn Session>>,
    batch: Option<Batch>,
    /// Whether the first pass of a batch compiles: TensorRT builds an engine for its shape.
    compiles: bool,
    /// The images last fetched; their memory is used again.
    images: Vec<f32>,
}

impl Server {
    fn answer(&mut self, line: &str) -> Result<Value> {
        let request = Request::deserialize(&serde_json::from_str::<Value>(line)?)?;
        Ok(match request {
            Request::Open(open) => {
                let begin = Stopwatch::start();
                let backend = backend::named(&open.framework).context("there is no such framework")?;
                let (session, opened) = backend.session(&open)?;
                self.session = Some(session);
                self.compiles = open.provider.as_deref() == Some("tensorrt");
                let load_ms = begin.elapsed() * 1e3;
                let clock_overhead_ns = Some(Clock::calibrated().overhead_seconds * 1e9);
                serde_json::to_value(Opened { load_ms, clock_overhead_ns, ..opened })?
            }
            Request::Batch(batch) => {
                self.batch = Some(batch);
                self.fetch()?;
                serde_json::to_value(Prepared { compilation_time_ms: self.compile()? })?
            }
            Request::Run { passes } => serde_json::to_value(self.run(passes)?)?,
            Request::Logits => {
                let session = self.session()?;
                let (logits, shape) = (session.logits()?, session.output_shape()?);
                let batch = self.batch.as_ref().context("there is no batch")?;
                let n = batch.shape[0];
                ensure!(
                    logits.len().is_multiple_of(n),
                    "the model gave outputs of shape {shape:?} for {}",
                    counted(n, "image")
                );
                let mut file = File::options().write(true).open(&batch.logits)?;
                file.write_all(bytemuck::cast_slice(&logits))?;
                serde_json::to_value(Outputs { shape })?
            }
            Request::Step => {
                let begin = Stopwatch::start();
                self.fetch()?;
                let fetch_ns = begin.elapsed_ns();
                let fetched = Stopwatch::start();
                self.session()?.run()?;
                serde_json::to_value(Step { fetch_ns, forward_ns: fetched.elapsed_ns() })?
            }
            Request::Rest => {
                self.images = Vec::new();
                if let Some(session) = &mut self.session {
                    session.forget();
                }
                release_free_heap();
                json!({})
            }
            Request::Inspect(asked) => serde_json::to_value(backend::onnxruntime::inspect(&asked)?)?,
            Request::Axes(asked) => serde_json::to_value(backend::onnxruntime::axes(&asked)?)?,
        })
    }

    fn session(&mut self) -> Result<&mut Box<dyn Session>> {
        self.session.as_mut().context("nothing was opened")
    }

    /// Runs the first pass; the milliseconds that it took longer than a second, where it compiles.
    fn compile(&mut self) -> Result<Option<f64>> {
        let compiles = self.compiles;
        let session = self.session()?;
        let mut pass = || -> Result<f64> {
            let begin = Stopwatch::start();
            session.run()?;
            Ok(begin.elapsed() * 1e3)
        };
        let first = pass()?;
        if compiles { Ok(Some((first - pass()?).max(0.0))) } else { Ok(None) }
    }

    fn run(&mut self, passes: usize) -> Result<Passes> {
        let session = self.session()?;
        let mut samples_ns = Vec::with_capacity(passes);
        let begin = Stopwatch::start();
        for _ in 0..passes {
            let start = Stopwatch::start();
            session.run()?;
            samples_ns.push(start.elapsed_ns());
        }
        Ok(Passes { samples_ns, wall_ns: begin.elapsed_ns(), device_peak_bytes: None })
    }

    fn fetch(&mut self) -> Result<()> {
        let batch = self.batch.as_ref().context("there is no batch")?;
        let count = batch.shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis));
        read(&batch.images, count.context("the batch is too large")?, &mut self.images)?;
        let session = self.session.as_mut().context("nothing was opened")?;
        Ok(session.load(&self.images, batch.shape[0])?)
    }
}

/// Reads floats; the file must have as many.
fn read(path: &Path, count: usize, into: &mut Vec<f32>) -> Result<()> {
    let mut file = File::open(path)?;
    file.rewind()?;
    let bytes = file.metadata()?.len();
    ensure!(bytes / 4 >= count as u64, "{} has {bytes} bytes, not {count} floats", path.display());
    into.clear();
    into.try_reserve_exact(count).context("the batch does not fit in memory")?;
    into.resize(count, 0.0);
    Ok(file.read_exact(bytemuck::cast_slice_mut(into))?)
}
