//! Frameworks in Python, each with the process that runs it: `--framework pytorch,jax`.
//!
//! ```text
//!  Config ─▶ Frameworks::start ─▶ a Python per framework: what it has, which readers, which conversions
//!                                     │
//!  dataset, dataloader, loop, conversion ─▶ python_sources: a variant per reader, in the same rounds as the Rust ones
//!                                     │
//!                worker: one turn ─▶ raw nanoseconds, pixels ─▶ the same statistics, columns and checks
//! ```
//!
//! Track 4 has NumPy and torch beside Rust without being asked, where there is a Python that has torch.
//!
//! The worker is a Python program that this one carries ([`wellread_worker`]); no Python package needs to be
//! installed but the frameworks and the peers themselves. A missing package becomes rows that say so.

use super::measurement::Measurement;
use crate::choices::{Framework, Mode};
use crate::config::Config;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use wellread_measure::interleave::Turn;
use wellread_measure::memory::PeakGuard;
use wellread_worker::question::why_module_is_missing;
use wellread_worker::{Launch, Pixels, Worker, python, threads};

/// Time between two looks at the memory of a worker.
const MEMORY_INTERVAL: Duration = Duration::from_millis(20);

/// A way for a library in Python to get at the images, as the worker describes it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Reader {
    /// Name in tables and of `--loaders`.
    pub name: String,
    /// Formats it reads; `None` for all.
    formats: Option<Vec<String>>,
    /// Why it cannot be used, and how to get it.
    pub unavailable: Option<String>,
    /// Benchmarks it takes part in.
    tracks: Vec<String>,
    /// Whether it gives stored pixels.
    pub native: bool,
}

impl Reader {
    /// Whether it is wellread and not one of its peers.
    pub fn is_own(&self) -> bool {
        self.name.starts_with("wellread")
    }

    fn reads(&self, format: &str) -> bool {
        self.formats.as_ref().is_none_or(|formats| formats.iter().any(|f| f == format))
    }
}

/// A way from a host array to a tensor.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Conversion {
    /// Name of the path in tables.
    pub path: String,
    /// Why it cannot be measured here.
    pub unavailable: Option<String>,
}

/// The packages of a framework's Python.
#[derive(Clone, Debug, Deserialize)]
struct Started {
    python: String,
    versions: BTreeMap<String, String>,
    backend: String,
    /// Cost of reading Python's clock, subtracted from every time that is answered.
    #[serde(default)]
    clock_overhead_ns: Option<f64>,
    /// Copies to the device, where there is one.
    #[serde(default)]
    host_to_device_bytes_per_s: Option<f64>,
    readers: Vec<Reader>,
    conversions: Vec<Conversion>,
}

/// Modes of a model, each with the reason why it has not.
#[derive(Clone, Debug, Deserialize)]
struct ModelChecked {
    modes: BTreeMap<String, Option<String>>,
}

/// A framework and the process that runs it.
pub(crate) struct InPython {
    /// The framework.
    pub framework: Framework,
    launch: Launch,
    start: Value,
    /// Its packages, or the reason why there are none.
    started: Result<Started, String>,
    model: RefCell<Option<Result<ModelChecked, String>>>,
    /// Why transforms of the user's own cannot be used, by name.
    transforms: RefCell<BTreeMap<String, String>>,
    worker: RefCell<Option<Worker>>,
    /// The benchmark that it takes part in, where it is not all of them.
    only: Option<&'static str>,
}

/// The frameworks of a run that are in Python.
#[derive(Default)]
pub struct Frameworks {
    list: Vec<InPython>,
    /// A sentence about the rows of track 4, where they are other ones than those asked for.
    about_conversion: Option<String>,
}

impl Frameworks {
    /// Starts the requested frameworks and asks for their packages. Where tensors are made (`converts`) and nothing
    /// else was asked for, it also starts PyTorch for that alone. It does so if there is a Python that has it.
    ///
    /// # Errors
    /// A Python that cannot be started. No framework at all where this program itself is not measured either. A
    /// reader's name that no framework knows.
    pub fn start(config: &Config, formats: &[&str], converts: bool) -> Result<Self> {
        let mut this = Self::default();
        let python = python(config.python.as_deref());
        for &framework in config.frameworks.iter().filter(|framework| **framework != Framework::Rust) {
            this.list.push(InPython::start(config, &python, framework, formats)?);
        }
        let mut reasons: Vec<&str> =
            this.list.iter().filter_map(|f| f.started.as_ref().err().map(String::as_str)).collect();
        if !config.rust() && !reasons.is_empty() && reasons.len() == this.list.len() {
            // A reason that all of them share is told once.
            reasons.dedup();
            bail!("{}", reasons.join("; "));
        }
        if converts && !config.in_python() {
            this.find_torch(config, &python, formats)?;
        }
        this.check_loaders(config)?;
        Ok(this)
    }

    /// Starts PyTorch for track 4 where there is one, and says what that track's rows are.
    fn find_torch(&mut self, config: &Config, python: &Path, formats: &[&str]) -> Result<()> {
        let none = |why: &str| {
            format!("conversion: every row is this program's own, in Rust (framework candle): {why}")
        };
        if !config.find_torch {
            self.about_conversion = Some(none(
                "--framework rust; without it NumPy and torch are measured too, where there are any",
            ));
            return Ok(());
        }
        let found = if let Some(why) = why_module_is_missing(python, "torch") {
            Err(why)
        } else {
            let torch = InPython::start(config, python, Framework::Pytorch, formats)?;
            torch.started.clone().map(|started| (torch, started))
        };
        self.about_conversion = Some(match found {
            Ok((torch, started)) => {
                let versions: Vec<_> =
                    started.versions.iter().map(|(name, v)| format!("{name} {v}")).collect();
                self.list.push(InPython { only: Some("conversion"), ..torch });
                format!(
                    "conversion: rows of framework pytorch are NumPy's and torch's ({}; {}), those of framework candle this \
                     program's own, in Rust",
                    versions.join(", "),
                    python.display()
                )
            }
            // A user who names a Python wants it.
            Err(why) if config.python.is_some() => {
                bail!(
                    "conversion: NumPy and torch cannot be measured: {why} (--framework rust leaves them out)"
                )
            }
            Err(why) => none(&format!(
                "{why}; to measure NumPy and torch too, name a Python that has torch with --python"
            )),
        });
        Ok(())
    }

    fn check_loaders(&self, config: &Config) -> Result<()> {
        let known: Vec<&str> = self.readers().map(|reader| reader.name.as_str()).collect();
        let unknown = config.loaders.iter().find(|name| *name != "all" && !known.contains(&name.as_str()));
        if let Some(unknown) = unknown.filter(|_| !known.is_empty()) {
            let mut names = known;
            names.sort_unstable();
            names.dedup();
            bail!(
                "--loaders: there is no {unknown:?} for these formats; there are all, {}",
                names.join(", ")
            );
        }
        Ok(())
    }

    fn readers(&self) -> impl Iterator<Item = &Reader> {
        self.list.iter().flat_map(|f| f.started.iter().flat_map(|started| &started.readers))
    }

    /// The frameworks that take part in a benchmark.
    pub(crate) fn of<'s>(&'s self, benchmark: &'s str) -> impl Iterator<Item = &'s InPython> {
        self.list.iter().filter(move |f| f.only.is_none_or(|only| only == benchmark))
    }

    /// A sentence about the rows of track 4, where they are other ones than those asked for.
    pub(crate) fn about_conversion(&self) -> Option<&str> {
        self.about_conversion.as_deref()
    }

    /// Bytes per second from this machine's memory to its device, by the framework that copies fastest; `None` where none
    /// has a device.
    pub(crate) fn host_to_device(&self) -> Option<f64> {
        let rates = self.list.iter().filter_map(|f| f.started.as_ref().ok()?.host_to_device_bytes_per_s);
        rates.filter(|rate| *rate > 0.0).reduce(f64::max)
    }

    /// Makes the model in each framework and runs it once on a batch of zeros of this shape.
    ///
    /// # Errors
    /// A model that no framework can run, unless this program can.
    pub(crate) fn check_model(&self, config: &Config, shape: &[usize]) -> Result<()> {
        let request = json!({ "do": "check_model", "model": config.model, "modes": config.modes,
                              "shape": shape, "seed": config.seed });
        let mut reasons = Vec::new();
        for framework in self.of("loop").filter(|f| f.started.is_ok()) {
            let checked = framework.ask(&request, |_| ());
            let checked = checked.and_then(|answer| Ok(ModelChecked::deserialize(answer)?));
            let checked = checked.map_err(|e| format!("{e:#}"));
            reasons.extend(checked.as_ref().err().map(|why| format!("{}: {why}", framework.framework)));
            *framework.model.borrow_mut() = Some(checked);
        }
        let ours = config.rust() && wellread_model::models().iter().any(|m| m.name == config.model);
        let usable = self.list.iter().any(|f| matches!(*f.model.borrow(), Some(Ok(_))));
        if !ours && !usable && !reasons.is_empty() {
            bail!("{}", reasons.join("; "));
        }
        Ok(())
    }

    /// Makes the user's own transforms in each framework and applies them once to an image of zeros of this shape.
    ///
    /// # Errors
    /// A transform that no framework can run.
    pub(crate) fn check_transforms(&self, config: &Config, shape: &[usize]) -> Result<()> {
        for name in &config.user_transforms {
            let request = json!({ "do": "check_transform", "transform": name, "shape": shape });
            let mut reasons = Vec::new();
            let mut asked = 0;
            for framework in self.of("dataset").filter(|f| f.started.is_ok()) {
                asked += 1;
                if let Err(error) = framework.ask(&request, |_| ()) {
                    reasons.push(format!("{}: {error:#}", framework.framework));
                    framework.transforms.borrow_mut().insert(name.clone(), format!("{error:#}"));
                }
            }
            if asked > 0 && reasons.len() == asked {
                bail!("{}", reasons.join("; "));
            }
        }
        Ok(())
    }

    /// Named texts for the report, and the same for `summary.json`.
    pub(crate) fn facts(&self) -> (Vec<(String, String)>, Value) {
        let mut facts = Vec::new();
        let mut details = serde_json::Map::new();
        for framework in &self.list {
            let name = framework.framework.name().to_owned();
            let (text, detail) = match &framework.started {
                Ok(s) => {
                    let versions: Vec<_> = s.versions.iter().map(|(n, v)| format!("{n} {v}")).collect();
                    let detail = json!({ "python": s.python, "versions": s.versions, "backend": s.backend,
                                         "clock_overhead_ns": s.clock_overhead_ns,
                                         "host_to_device_bytes_per_s": s.host_to_device_bytes_per_s });
                    (format!("{}; Python {}, {}", s.backend, s.python, versions.join(", ")), detail)
                }
                Err(reason) => (format!("unavailable: {reason}"), json!({ "unavailable": reason })),
            };
            details.insert(name.clone(), detail);
            facts.push((name, text));
        }
        (facts, details.into())
    }
}

impl InPython {
    fn start(config: &Config, python: &Path, framework: Framework, formats: &[&str]) -> Result<Self> {
        let start = json!({ "do": "start", "framework": framework.name(), "threads": threads(),
                            "seed": config.seed, "formats": formats });
        let launch = Launch::python(python, threads(), config.turn_limit);
        let mut worker = Worker::start(&launch)?;
        let started = worker.ask_first(&start).and_then(|answer| Ok(Started::deserialize(answer)?));
        let started = started.map_err(|e| format!("{e:#} (Python: {})", python.display()));
        let worker = RefCell::new(worker.is_alive().then_some(worker));
        let (model, transforms) = (RefCell::default(), RefCell::default());
        Ok(Self { framework, launch, start, started, model, transforms, worker, only: None })
    }

    /// Why the framework cannot be used.
    pub fn unavailable(&self) -> Option<&str> {
        self.started.as_ref().err().map(String::as_str)
    }

    /// The readers of a format that take part in a benchmark and were asked for.
    pub fn readers<'s>(
        &'s self,
        config: &'s Config,
        format: &'s str,
        track: &'s str,
    ) -> impl Iterator<Item = &'s Reader> {
        let wanted =
            |reader: &&Reader| config.loaders.iter().any(|name| name == "all" || *name == reader.name);
        self.started
            .iter()
            .flat_map(|started| &started.readers)
            .filter(wanted)
            .filter(move |reader| reader.reads(format) && reader.tracks.iter().any(|t| t == track))
    }

    /// The conversions of arrays to tensors.
    pub fn conversions(&self) -> &[Conversion] {
        self.started.as_ref().map_or(&[], |started| &started.conversions)
    }

    /// Why the model has no such mode here.
    pub fn model_unavailable(&self, mode: Mode) -> Option<String> {
        match &*self.model.borrow() {
            Some(Ok(checked)) => checked.modes.get(mode.name()).cloned().flatten(),
            Some(Err(reason)) => Some(reason.clone()),
            None => None,
        }
    }

    /// Why a transform of the user's own cannot be used here.
    pub fn transform_unavailable(&self, name: &str) -> Option<String> {
        self.transforms.borrow().get(name).cloned()
    }

    /// Asks the worker, which is started anew where it has ended.
    fn ask(&self, request: &Value, pixels: impl FnMut(&Pixels)) -> Result<Value> {
        let mut slot = self.worker.borrow_mut();
        let worker = self.ready(&mut slot)?;
        let answer = worker.ask(request, pixels);
        if !worker.is_alive() {
            *slot = None;
        }
        answer
    }

    fn ready<'w>(&self, slot: &'w mut Option<Worker>) -> Result<&'w mut Worker> {
        if slot.is_none() {
            let mut worker = Worker::start(&self.launch)?;
            worker.ask_first(&self.start).context("the Python worker cannot be started again")?;
            *slot = Some(worker);
        }
        slot.as_mut().context("there is no worker")
    }

    /// One turn: asks, and watches the memory of the worker's processes when the turn is warm-up. `measure` makes a
    /// measurement of the answer.
    pub(super) fn turn(
        &self,
        turn: Turn,
        request: &Value,
        pixels: impl FnMut(&Pixels),
        measure: impl FnOnce(&Value) -> Result<Measurement>,
    ) -> Result<Measurement> {
        if !turn.warmup {
            return measure(&self.ask(request, pixels)?);
        }
        self.ask(&json!({ "do": "rest" }), |_| ())?;
        let id = self.worker.borrow().as_ref().map(Worker::id);
        let guard = id.map(|id| PeakGuard::of_tree(id, MEMORY_INTERVAL));
        let answer = self.ask(request, pixels);
        let peak = guard.map(PeakGuard::stop);
        Ok(Measurement { peak, ..measure(&answer?)? })
    }
}
