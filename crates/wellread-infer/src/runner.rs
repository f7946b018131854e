//! A framework with a model in a process of its own: started, asked, started again where it has ended.

use crate::backend::Backend;
use crate::config::Config;
use crate::models::Model;
use crate::protocol::{Batch, Open, Opened, Outputs, Passes, Prepared, Request, Step};
use crate::shared::Shared;
use anyhow::{Context as _, Result, anyhow};
use serde::de::DeserializeOwned;
use std::time::Duration;
use wellread_measure::memory::{PeakGuard, tree_bytes};
use wellread_trace::{Kind, labelled};
use wellread_worker::{Launch, Worker};

/// Time between two looks at the memory of a process.
const MEMORY_INTERVAL: Duration = Duration::from_millis(20);
/// A request for passes takes about so long at most: the time limit is one for hanging, not for slow models.
const MAX_REQUEST_TIME: Duration = Duration::from_secs(10);

/// The message of a worker whose batch does not fit (`python/wellread/_bench/inference/__init__.py`,
/// [`crate::source`]).
const NO_MEMORY: &str = "does not fit in memory";

/// A framework, a way to run it, and the process that does.
pub struct FrameworkRunner {
    /// The framework.
    pub backend: &'static dyn Backend,
    /// The way to run it; empty where there is one only.
    pub variant: String,
    /// The opened model, or the reason why there is none.
    pub opened: Result<Opened, String>,
    launch: Launch,
    open: Option<Open>,
    worker: Option<Worker>,
    /// How long a pass took last.
    pass: Option<Duration>,
}

/// Framework and way, where it is not the framework's only or usual one.
pub(crate) fn name(framework: &str, variant: &str) -> String {
    match variant {
        "" | "eager" | "jit" => framework.to_owned(),
        variant => format!("{framework} ({variant})"),
    }
}

impl FrameworkRunner {
    /// Starts the process and opens the model. A failure is kept, and told by [`Self::opened`].
    pub fn start(backend: &'static dyn Backend, variant: String, model: &Model, config: &Config) -> Self {
        let open = backend.open(model, &variant, config);
        Self::start_with(backend, backend.launch(config), variant, open)
    }

    /// As [`Self::start`], with what is opened there.
    pub(crate) fn start_with(
        backend: &'static dyn Backend,
        launch: Launch,
        variant: String,
        open: Result<Open>,
    ) -> Self {
        let opened = Err(String::new());
        let mut this = Self { backend, launch, opened, open: None, worker: None, pass: None, variant };
        let opened = open.and_then(|open| {
            this.open = Some(open);
            this.restart()
        });
        this.opened = opened.map_err(|e| format!("{e:#}"));
        this
    }

    /// See [`name`].
    pub fn name(&self) -> String {
        name(self.backend.name(), &self.variant)
    }

    fn restart(&mut self) -> Result<Opened> {
        self.worker = None;
        let mut worker = Worker::start(&self.launch)?;
        let open = self.open.clone().context("there is nothing to open")?;
        let answer = worker.ask_first(&request(&Request::Open(open))?).map_err(explained);
        if worker.is_alive() {
            self.worker = Some(worker);
        }
        let opened = answer.map_err(|error| match self.launch.interpreter() {
            Some(python) => anyhow!("{error:#} (Python: {})", python.display()),
            None => error,
        })?;
        Ok(serde_json::from_value(opened)?)
    }

    fn ask<T: DeserializeOwned>(&mut self, asked: &Request) -> Result<T> {
        let worker = self.worker.as_mut().context("there is no process")?;
        let answer = worker.ask(&request(asked)?, |_| ());
        if !worker.is_alive() {
            self.worker = None;
        }
        Ok(serde_json::from_value(answer.map_err(explained)?)?)
    }

    /// Has the batch in shared memory taken and compiled for. A process that ended with an earlier batch is started
    /// again. Also the most memory that its processes held meanwhile.
    pub(crate) fn prepare(&mut self, shared: &Shared, shape: [usize; 4]) -> (Result<Prepared>, Option<u64>) {
        let _build = labelled(Kind::Build, || format!("build {}", self.name()));
        let rested = self.release_batch();
        let guard = self.watch();
        let batch = Batch { images: shared.images_path(), logits: shared.logits_path(), shape };
        let prepared = rested.and_then(|()| self.ask(&Request::Batch(batch)));
        (prepared, guard.map(PeakGuard::stop).and_then(|peak| peak.bytes))
    }

    /// Has the last batch let go of; starts the process where there is none.
    fn release_batch(&mut self) -> Result<()> {
        if self.worker.is_none() {
            self.opened = Ok(self.restart().context("the process cannot be started again")?);
        }
        self.pass = None;
        self.ask::<serde_json::Value>(&Request::Rest).map(drop)
    }

    /// Ends the process, which gives all its memory back; [`Self::prepare`] starts it again.
    pub(crate) fn stop(&mut self) {
        self.worker = None;
    }

    /// Runs so many passes, in requests of some seconds.
    ///
    /// # Errors
    /// The framework's error; that it ended or does not answer.
    pub fn passes(&mut self, count: usize) -> Result<Passes> {
        let _passes = labelled(Kind::Passes, || format!("passes {}", self.name())).with(count as u64, 0);
        let mut all = Passes { samples_ns: Vec::with_capacity(count), wall_ns: 0, device_peak_bytes: None };
        while all.samples_ns.len() < count {
            let left = count - all.samples_ns.len();
            // Nobody knows yet how long one takes: ask for one.
            let fitting =
                self.pass.map_or(1.0, |pass| MAX_REQUEST_TIME.as_secs_f64() / pass.as_secs_f64().max(1e-9));
            let part: Passes = self.ask(&Request::Run { passes: left.min((fitting as usize).max(1)) })?;
            let ran = u32::try_from(part.samples_ns.len()).ok().filter(|&ran| ran > 0);
            let ran = ran.context("the framework ran nothing")?;
            self.pass = Some(Duration::from_nanos(part.wall_ns) / ran);
            all.samples_ns.extend(part.samples_ns);
            all.wall_ns += part.wall_ns;
            all.device_peak_bytes = all.device_peak_bytes.max(part.device_peak_bytes);
        }
        Ok(all)
    }

    /// How long a pass took last.
    pub fn pass(&self) -> Option<Duration> {
        self.pass
    }

    /// Outputs of the last pass.
    ///
    /// # Errors
    /// As [`Self::passes`].
    pub(crate) fn logits(&mut self, shared: &mut Shared) -> Result<Vec<f32>> {
        Ok(self.outputs(shared)?.1)
    }

    /// As [`Self::logits`], with their axes.
    ///
    /// # Errors
    /// As [`Self::passes`].
    pub(crate) fn outputs(&mut self, shared: &mut Shared) -> Result<(Vec<usize>, Vec<f32>)> {
        let Outputs { shape } = self.ask(&Request::Logits)?;
        let values = shared.logits(&shape)?;
        Ok((shape, values))
    }

    /// One pass over what is in shared memory now.
    ///
    /// # Errors
    /// As [`Self::passes`].
    pub fn step(&mut self) -> Result<Step> {
        let _step = labelled(Kind::Step, || format!("step {}", self.name()));
        self.ask(&Request::Step)
    }

    /// Memory that its processes hold now.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.worker.as_ref().and_then(|worker| tree_bytes(worker.id()).ok())
    }

    /// Begins to watch the memory of its processes.
    pub fn watch(&self) -> Option<PeakGuard> {
        self.worker.as_ref().map(|worker| PeakGuard::of_tree(worker.id(), MEMORY_INTERVAL))
    }
}

/// The line of a request.
fn request(asked: &Request) -> Result<serde_json::Value> {
    let mut line = serde_json::to_value(asked)?;
    line["do"] = "infer".into();
    Ok(line)
}

/// Whether a framework failed for want of memory: it says so, or the kernel ended it.
pub(crate) fn lacked_memory(reason: &str) -> bool {
    [NO_MEMORY, "SIGKILL", "bad_alloc", "out of memory"].iter().any(|part| reason.contains(part))
}

/// Says what being killed usually means.
fn explained(error: anyhow::Error) -> anyhow::Error {
    let text = format!("{error:#}");
    if text.contains("SIGKILL") {
        return anyhow!("{text}; it was killed from outside: the kernel does so when memory runs out");
    }
    error
}
