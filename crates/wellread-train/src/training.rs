//! Training: epochs of patches, validation on whole images, checkpoints, curves.
//!
//! ```text
//! settings, pairs, network (or checkpoint) ─▶ epoch: batch ─▶ tensors ─▶ forward, loss ─▶ backward, Adam ─▶ next batch
//!                                               └▶ validation ─▶ metrics.csv, events, checkpoints/last, best ─▶ next epoch
//! ```
//!
//! Everything random is a function of seed, epoch and row. So a run that goes on from a checkpoint takes the same steps
//! as one that was not interrupted.

use crate::checkpoint::{self, Checkpoint, State};
use crate::config::{Config, Schedule};
use crate::data::patches::Raw;
use crate::data::{Normal, Pairs, Patches};
use crate::events::Events;
use crate::experiment::Experiment;
use crate::metrics::{self, Epoch, Scores};
use crate::net::{Adam, Tensor, Unet, UnetSpec};
use crate::phases::Phases;
use crate::task::{Mode, Task};
use crate::{memory, overlay, predict};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;
use wellread_loader::{Dataset, ItemContext};
use wellread_store::words::counted;

/// All that one epoch leads to the next.
struct Run<'a> {
    experiment: &'a Experiment,
    config: &'a Config,
    pairs: Pairs,
    normal: Normal,
    net: Unet,
    adam: Adam,
    /// The best score so far, or minus the loss where nothing is validated on.
    best: Option<f64>,
    epochs: Vec<Epoch>,
    context: ItemContext,
}

/// Validation loss and scores, and the pictures of the overlay: image, target, result.
type Validated = (f64, Scores, Option<[Tensor; 3]>);

/// Folder of checkpoints below the output's.
pub const CHECKPOINTS: &str = "checkpoints";
/// File of the best network in it.
const BEST: &str = "best.safetensors";

/// Trains.
///
/// # Errors
/// Data that do not fit together, a step that does not fit in memory, a loss that is not finite, files that cannot be
/// written.
pub fn run(task: &Task, experiment: &Experiment, config: &Config, phases: &mut Phases) -> Result<()> {
    let checkpoints = task.output_dir.join(CHECKPOINTS);
    std::fs::create_dir_all(&checkpoints)
        .with_context(|| format!("cannot make the folder {}", checkpoints.display()))?;
    let events = Events::create(&task.output_dir)?;
    let earlier = match &task.checkpoint_path {
        Some(path) => Some(phases.phase("checkpoint_loading", |_| Checkpoint::read(path))?),
        None => None,
    };
    let (pairs, normal, patches) =
        phases.phase("data_setup", |_| data(task, experiment, config, earlier.as_ref()))?;
    let spec = memory::spec(config);
    let (net, adam, start) = phases.phase("model_initialization", |_| {
        let pixels = patch_pixels(&pairs, config, spec)?;
        let patches = config.training.batch_size.min(patches.samples());
        let mut net = memory::network(spec, pixels * patches as f64, task.seed)?;
        let mut adam = Adam::new(&net, config.optimizer.weight_decay);
        let Some(earlier) = &earlier else { return Ok((net, adam, 0)) };
        let found = earlier.state.network;
        ensure!(
            found == spec,
            "the checkpoint is of another network ({found:?}) than the configuration's ({spec:?})"
        );
        earlier.load(&mut net, Some(&mut adam)).context("the checkpoint")?;
        Ok((net, adam, earlier.state.epoch))
    })?;
    let epochs = start..config.training.epochs as u64;
    ensure!(
        !epochs.is_empty(),
        "the checkpoint has {} already: set training.epochs (max_epochs) to more",
        counted(start as usize, "epoch")
    );
    let table = task.output_dir.join("metrics.csv");
    let earlier_rows = metrics::earlier_rows(&table, start);
    phases.info(&json!({
        "num_batches": patches.len(), "num_samples": patches.samples(), "batch_size": config.training.batch_size,
        "training_images": pairs.training.len(), "validation_images": pairs.validation.len(),
        "parameters": spec.parameters(), "epochs": epochs.end, "threads": rayon::current_num_threads(),
        "data_workers": config.data.workers, "backend": "wellread U-Net (CPU)",
    }))?;
    // Where the network that had it is elsewhere, this run has a best one of its own.
    let best = earlier.and_then(|c| c.state.best).filter(|_| checkpoints.join(BEST).is_file());
    let context = ItemContext::new();
    let mut run = Run { experiment, config, pairs, normal, net, adam, best, epochs: vec![], context };
    let mut output = Output { task, checkpoints, events, table, earlier_rows, overlay: None };
    let begin = Instant::now();
    phases.begin("full_training");
    for epoch in epochs.clone() {
        let (train_loss, validated) = run.timed_epoch(epoch, &epochs, &patches, phases)?;
        let (val_loss, scores) = match &validated {
            Some((loss, scores, _)) => (Some(*loss), scores.clone()),
            None => (None, vec![]),
        };
        let row = Epoch { epoch: epoch + 1, step: run.adam.steps, train_loss, val_loss, scores };
        report(&mut output.events, &row, run.rate(run.adam.steps, patches.len()))?;
        crate::stdout::say(&sentence(&row, epochs.end, begin));
        run.epochs.push(row);
        metrics::write_table(&output.table, &output.earlier_rows, &run.epochs)?;
        output.keep(&mut run, spec, validated.as_ref())?;
    }
    phases.end()?;
    phases.artifact("loss_curve", &output.table)?;
    if let Some(path) = output.overlay {
        phases.artifact("overlay", &path)?;
    }
    phases.final_metrics(&run.final_metrics())
}

/// The images with their targets, how they are normalised, and the patches that are cut out of them.
fn data(
    task: &Task,
    experiment: &Experiment,
    config: &Config,
    earlier: Option<&Checkpoint>,
) -> Result<(Pairs, Normal, Patches)> {
    let pairs = Pairs::open(config, experiment, task.seed, Mode::Train)?;
    let set = earlier.and_then(|c| c.state.set);
    let normal = Normal::of(&pairs, experiment.masks, config.data.normalize, set)?;
    let patches = Patches::new(&pairs, config, task.seed, experiment.masks)?;
    Ok((pairs, normal, patches))
}

/// Pixels of a patch, as the network pads it.
fn patch_pixels(pairs: &Pairs, config: &Config, spec: UnetSpec) -> Result<f64> {
    let depth = pairs.images.row_info(pairs.training[0])?.shape.z();
    let [height, width] = config.data.patch;
    let step = 1usize << spec.depth;
    let pixels: f64 = [depth, height, width].iter().map(|n| n.next_multiple_of(step) as f64).product();
    Ok(if spec.dimensions == 2 { pixels / step as f64 } else { pixels })
}

/// The files that training writes.
struct Output<'a> {
    task: &'a Task,
    /// Folder of checkpoints.
    checkpoints: PathBuf,
    events: Events,
    /// Losses and scores of each epoch.
    table: PathBuf,
    /// Its rows of the run that a checkpoint is of.
    earlier_rows: Vec<String>,
    /// The picture of the best epoch, once there is one.
    overlay: Option<PathBuf>,
}

impl Output<'_> {
    /// Keeps the network of the last epoch; where that is the best so far, also as the best one, with a picture.
    fn keep(&mut self, run: &mut Run<'_>, spec: UnetSpec, validated: Option<&Validated>) -> Result<()> {
        let better = run.is_better();
        let Some(last) = run.epochs.last() else { return Ok(()) };
        let state = State {
            config: run.config.clone(),
            network: spec,
            seed: self.task.seed,
            epoch: last.epoch,
            step: run.adam.steps,
            best: run.best,
            set: run.normal.set,
        };
        checkpoint::write(&self.checkpoints.join("last.safetensors"), &run.net, &run.adam, &state)?;
        if !better {
            return Ok(());
        }
        checkpoint::write(&self.checkpoints.join(BEST), &run.net, &run.adam, &state)?;
        if let Some((.., Some([image, target, result]))) = validated {
            let path = self.task.output_dir.join("overlay.png");
            overlay::write(&path, &(run.experiment.draw)(run.config, [image, target, result]))?;
            self.overlay = Some(path);
        }
        Ok(())
    }
}

impl Run<'_> {
    /// Learning rate of a step, counted from 0, where an epoch has `batches`.
    fn rate(&self, step: u64, batches: usize) -> f64 {
        let optimizer = &self.config.optimizer;
        match optimizer.schedule {
            Schedule::Constant => optimizer.lr,
            Schedule::Cosine => {
                let part = step as f64 / (self.config.training.epochs * batches).max(1) as f64;
                let half = 0.5 * (1.0 + (std::f64::consts::PI * part.min(1.0)).cos());
                optimizer.lr * (0.01 + 0.99 * half)
            }
        }
    }

    /// Trains for one of this run's epochs and validates, and notes the times of both; gives the mean loss of its patches.
    fn timed_epoch(
        &mut self,
        epoch: u64,
        epochs: &Range<u64>,
        patches: &Patches,
        phases: &mut Phases,
    ) -> Result<(f64, Option<Validated>)> {
        let first = epoch == epochs.start;
        if first {
            phases.begin("first_epoch");
        }
        let clock = Instant::now();
        let train_loss = self.epoch(epoch, patches, phases)?;
        phases.sample("epoch", clock.elapsed().as_secs_f64(), 0);
        if first {
            phases.end()?;
        }
        let clock = Instant::now();
        let validated = self.validate()?;
        if !self.pairs.validation.is_empty() {
            phases.sample("validation", clock.elapsed().as_secs_f64(), 0);
        }
        // Caches fill in a first epoch. Where no other follows, its first batch has to do.
        if first && epochs.end - epochs.start > 1 {
            phases.warm_up_so_far();
        }
        phases.flush()?;
        Ok((train_loss, validated))
    }

    /// One epoch; gives the mean loss of its patches.
    fn epoch(&mut self, epoch: u64, patches: &Patches, phases: &mut Phases) -> Result<f64> {
        let mut batches = patches.epoch(epoch);
        let (mut sum, mut count) = (0.0, 0.0);
        loop {
            let Some(raw) =
                phases.repeated("batch_loading", "first_batch_loading", || batches.next().transpose())?
            else {
                // The end is no batch: the time to learn of it does not count.
                phases.unsample("batch_loading");
                break;
            };
            let (loss, images) = self.step(&raw, patches, phases)?;
            sum += loss * images as f64;
            count += images as f64;
        }
        Ok(sum / count)
    }

    /// One step; gives the loss before it, and the number of patches.
    fn step(&mut self, raw: &Raw, patches: &Patches, phases: &mut Phases) -> Result<(f64, usize)> {
        let (images, targets) = phases
            .repeated("batch_to_device", "first_batch_to_device", || patches.tensors(raw, &self.normal))?;
        let rate = self.rate(self.adam.steps, patches.len());
        let begin = Instant::now();
        let (net, loss) = (&mut self.net, self.config.model.loss);
        let (pass, loss, gradient) = phases.repeated("batch_forward", "first_batch_forward", || {
            let pass = net.forward(&images)?;
            let (loss, gradient) = loss.of(&pass.logits, &targets)?;
            Ok((pass, loss, gradient))
        })?;
        if !loss.is_finite() {
            bail!(
                "the loss became {loss} in step {}: lower optimizer.lr (now {}), or look for pixels that are not finite",
                self.adam.steps + 1,
                self.config.optimizer.lr
            );
        }
        self.net.backward(pass, &gradient)?;
        self.adam.step(&mut self.net, rate);
        // The first of this process, whatever steps a checkpoint had.
        phases.sample("batch_step", begin.elapsed().as_secs_f64(), 1);
        Ok((loss, images.shape[0]))
    }

    /// Loss and scores over all validation images; nothing where there are none.
    fn validate(&mut self) -> Result<Option<Validated>> {
        let (mut losses, mut scores, mut shown) = (vec![], vec![], None);
        let Some(targets) = self.pairs.targets.clone() else { return Ok(None) };
        for row in self.pairs.validation.clone() {
            let (image, target) = self.whole(row, &targets)?;
            let result = predict::whole(&self.net, &image, self.config.inference.tile)?;
            losses.push(self.config.model.loss.of(&result, &target)?.0);
            scores.push((self.experiment.scores)(self.config, &result, &target));
            shown.get_or_insert([image, target, result]);
        }
        if losses.is_empty() {
            return Ok(None);
        }
        let loss = losses.iter().sum::<f64>() / losses.len() as f64;
        Ok(Some((loss, metrics::mean(&scores), shown)))
    }

    /// A whole image and its target, normalised.
    fn whole(&mut self, row: usize, targets: &Dataset) -> Result<(Tensor, Tensor)> {
        let [of_image, of_target] = self.pairs.channels;
        let mut image = Pairs::read(&self.pairs.images, row, of_image, &mut self.context)?;
        let mut target = Pairs::read(targets, row, of_target, &mut self.context)?;
        crate::data::normal::apply(&mut image.data, self.normal.image(row));
        crate::data::normal::apply(&mut target.data, self.normal.target(row));
        Ok((image, target))
    }

    /// Whether the last epoch is the best so far.
    fn is_better(&mut self) -> bool {
        let Some(last) = self.epochs.last() else { return false };
        let score = last.scores.first().map_or(-last.train_loss, |(_, value)| *value);
        let better = score.is_finite() && self.best.is_none_or(|best| score > best);
        if better {
            self.best = Some(score);
        }
        better
    }

    /// Losses and scores of the last epoch, and the best of the first score.
    fn final_metrics(&self) -> Map<String, Value> {
        let mut all = Map::new();
        let Some(last) = self.epochs.last() else { return all };
        all.insert("train_loss".into(), last.train_loss.into());
        if let Some(loss) = last.val_loss {
            all.insert("val_loss".into(), loss.into());
        }
        for (name, value) in &last.scores {
            all.insert(format!("val_{name}"), (*value).into());
        }
        if let (Some((name, _)), Some(best)) = (last.scores.first(), self.best) {
            all.insert(format!("best_val_{name}"), best.into());
        }
        all
    }
}

/// Adds an epoch to the event file.
fn report(events: &mut Events, epoch: &Epoch, rate: f64) -> Result<()> {
    let mut values = vec![("train/loss".to_owned(), epoch.train_loss), ("learning_rate".to_owned(), rate)];
    values.extend(epoch.val_loss.map(|loss| ("val/loss".to_owned(), loss)));
    values.extend(epoch.scores.iter().map(|(name, value)| (format!("val/{name}"), *value)));
    let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    events.scalars(epoch.step, &values)
}

/// An epoch in words, for the log.
fn sentence(epoch: &Epoch, total: u64, begin: Instant) -> String {
    let mut text = format!("epoch {}/{total}: train loss {:.4}", epoch.epoch, epoch.train_loss);
    if let Some(loss) = epoch.val_loss {
        text += &format!(", validation loss {loss:.4}");
    }
    for (name, value) in &epoch.scores {
        text += &format!(", {name} {value:.4}");
    }
    text + &format!(" ({:.1} s since the first step)", begin.elapsed().as_secs_f64())
}
