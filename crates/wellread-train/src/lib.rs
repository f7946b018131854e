//! Experiments of our own, without Python: `wellread tasks` trains and runs them when nothing else is installed.
//!
//! ```text
//! WELLREAD_TASK (JSON) ─▶ Task ─┐
//! configs/experiment/*.toml ────┴▶ Config ─▶ data (wellread-loader) ─▶ net (U-Net) ─▶ loss, Adam ─▶ checkpoints
//!                                    │             │                                        │
//!                                    └─ phases of all that as JSON lines (WELLREAD_PHASES) ─┴▶ metrics, events, overlay
//! ```
//!
//! The process is `wellread task-native`; [`main`] is all of it. A new experiment is one [`Experiment`] in a file of its
//! own and a line in [`experiment::EXPERIMENTS`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`task`] | what the process is asked to do |
//! | [`config`] | all settings of an experiment |
//! | `settings` | those of a task: defaults, the branch's file, overrides |
//! | [`experiment`] | [`Experiment`]: what segmentation and label-free prediction differ in |
//! | [`data`] | pairs of image and target, batches of patches, whole images |
//! | [`net`] | the U-Net, a small convolutional network, and their gradients |
//! | [`training`], [`inference`] | the two modes |
//! | [`memory`] | how much memory a run will take |
//! | [`predict`] | whole images through the network, in tiles |
//! | [`metrics`] | Dice, IoU, correlation; the table of the loss curve |
//! | [`checkpoint`] | weights, optimiser and settings as safetensors |
//! | [`events`] | event files that TensorBoard reads |
//! | [`overlay`] | pictures of predictions |
//! | [`phases`] | how long each phase took and how much memory, as JSON lines |
//! | `stdout` | lines for people who follow a task |

pub mod checkpoint;
pub mod config;
pub mod data;
pub mod events;
pub mod experiment;
pub mod inference;
pub mod memory;
pub mod metrics;
pub mod net;
pub mod overlay;
pub mod phases;
pub mod predict;
mod settings;
mod stdout;
pub mod task;
pub mod training;

pub use config::Config;
pub use experiment::Experiment;
pub use task::{Mode, Task};

use anyhow::{Context as _, Result};
use phases::Phases;
use wellread_measure::to_stderr;

/// Runs the task that the environment names, and returns the exit code of the process. It is 0 when done, 1 when it
/// failed (with a message on stderr and in the file of phases). It is 2 where no task is named. With `check`, the task
/// and its settings are looked at and nothing is run.
pub fn main(check: bool) -> u8 {
    let (Some(task), phases) = (std::env::var_os(task::TASK), std::env::var_os(task::PHASES)) else {
        to_stderr(format!(
            "error: {} names no task; this command is started by `wellread tasks`",
            task::TASK
        ));
        return 2;
    };
    if check {
        let looked = Task::read(task.as_ref()).and_then(|task| {
            task.check()?;
            Config::of_task(&task)
        });
        return match looked {
            Ok(_) => 0,
            Err(error) => {
                to_stderr(format!("error: {error:#}"));
                1
            }
        };
    }
    let mut phases = match Phases::open(phases.as_deref().map(std::path::Path::new)) {
        Ok(phases) => phases,
        Err(error) => {
            to_stderr(format!("error: {error:#}"));
            return 1;
        }
    };
    match Task::read(task.as_ref()).and_then(|task| run(&task, &mut phases)) {
        Ok(()) => 0,
        Err(error) => {
            let text = format!("{error:#}");
            to_stderr(format!("error: {text}"));
            // Where the file cannot be written either, the exit code is the only report.
            let _ = phases.error(&text);
            1
        }
    }
}

/// Runs a task.
///
/// # Errors
/// Anything that keeps it from its end, with what to do about it.
pub fn run(task: &Task, phases: &mut Phases) -> Result<()> {
    task.check()?;
    phases.begin(match task.mode {
        Mode::Train => "total_training",
        Mode::Inference => "total_inference",
    });
    let (experiment, config) = phases.phase("configuration", |_| Config::of_task(task))?;
    task.must_be_there("data.images", &config.data.images)?;
    task.must_be_there("data.targets", &config.data.targets)?;
    std::fs::create_dir_all(&task.output_dir)
        .with_context(|| format!("cannot make the folder {}", task.output_dir.display()))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(config.training.threads)
        .thread_name(|i| format!("wellread-train-{i}"))
        .build()
        .with_context(|| format!("cannot start training.threads = {} threads", config.training.threads))?;
    pool.install(|| match task.mode {
        Mode::Train => training::run(task, experiment, &config, phases),
        Mode::Inference => inference::run(task, experiment, &config, phases),
    })?;
    phases.end()
}
