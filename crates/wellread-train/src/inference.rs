//! Inference: a checkpoint's network on whole images, written as TIFF.
//!
//! ```text
//! checkpoint ─▶ network        images ─▶ loader ─▶ tensors ─▶ tiles ─▶ network ─▶ predictions/*.ome.tiff
//!                              targets, where they are known ─────────────────▶ scores, overlay.png
//! ```
//!
//! The network is that of the checkpoint, whatever the configuration says; data and inference settings are the
//! configuration's.

use crate::checkpoint::Checkpoint;
use crate::config::{Config, Normalization};
use crate::data::patches::tensor;
use crate::data::{Normal, Pairs, normal};
use crate::experiment::Experiment;
use crate::metrics;
use crate::net::{Tensor, Unet};
use crate::phases::Phases;
use crate::task::{Mode, Task};
use crate::{memory, overlay, predict};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};
use wellread_image::{ImageMetadata, Shape};
use wellread_loader::{ItemContext, Loader, Transform};
use wellread_store::words::counted;
use wellread_store::{ImageView, StoreWriter, WriteOptions};

/// Folder of predictions below the output's.
pub const PREDICTIONS: &str = "predictions";

/// Predicts.
///
/// # Errors
/// A checkpoint that cannot be read, data that do not fit, predictions that cannot be written.
pub fn run(task: &Task, experiment: &Experiment, config: &Config, phases: &mut Phases) -> Result<()> {
    let path = task.checkpoint_path.as_deref().context("inference needs a checkpoint")?;
    let checkpoint = phases.phase("checkpoint_loading", |_| Checkpoint::read(path))?;
    let trained = &checkpoint.state.config;
    ensure!(
        trained.kind == config.kind,
        "{} is a checkpoint of {}, the experiment is {}",
        path.display(),
        trained.kind,
        config.kind
    );
    // As in training: the network has never seen images in another normalisation.
    let mut config = config.clone();
    config.data.normalize = trained.data.normalize;
    config.model = trained.model.clone();
    let set = checkpoint.state.set;
    ensure!(
        config.data.normalize != Normalization::Set || set.is_some(),
        "{} says nothing of its set's intensities",
        path.display()
    );
    let (pairs, normal) = phases.phase("data_setup", |_| {
        let pairs = Pairs::open(&config, experiment, task.seed, Mode::Inference)?;
        let normal = Normal::of(&pairs, experiment.masks, config.data.normalize, set)?;
        Ok((pairs, normal))
    })?;
    let groups = by_shape(&pairs)?;
    let net = phases.phase("model_initialization", |_| {
        let batch = config.training.batch_size.min(pairs.names.len());
        let reach = Unet::new(crate::net::UnetSpec { width: 1, ..checkpoint.state.network }, 0)?.reach();
        let pixels = |(shape, _): &(Shape, Vec<usize>)| {
            predict::pixels_at_once(reach, [shape.z(), shape.y(), shape.x()], config.inference.tile)
        };
        let pixels = groups.iter().map(pixels).fold(0.0, f64::max) * batch as f64;
        let mut net = memory::network(checkpoint.state.network, pixels, 0)?;
        checkpoint.load(&mut net, None).with_context(|| path.display().to_string())?;
        Ok(net)
    })?;
    let folder = task.output_dir.join(PREDICTIONS);
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let writer = wellread_store::create(&folder, "tiff", &options)?;
    let mut run = Run {
        experiment,
        config: &config,
        pairs,
        normal,
        net,
        writer,
        scores: vec![],
        drawn: None,
        images: 0,
    };
    let batches = run.batches(&groups);
    phases.begin("full_prediction");
    for (_, rows) in &groups {
        run.group(rows, phases)?;
    }
    phases.end()?;
    phases.flush()?;
    let Run { writer, scores, drawn, images, .. } = run;
    writer.finish()?;
    phases.info(&json!({
        "num_batches": batches, "num_samples": images, "batch_size": config.training.batch_size,
        "threads": rayon::current_num_threads(), "data_workers": config.data.workers,
        "backend": "wellread U-Net (CPU)", "predictions": folder,
    }))?;
    let predicted = counted(images, "image");
    if scores.is_empty() {
        crate::stdout::say(&format!("{predicted} predicted; there are no targets to compare with"));
        return Ok(());
    }
    let found: Map<String, Value> =
        metrics::mean(&scores).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    crate::stdout::say(&format!("{predicted} predicted: {}", Value::Object(found.clone())));
    if let Some(picture) = drawn {
        let path = task.output_dir.join("overlay.png");
        overlay::write(&path, &picture)?;
        phases.artifact("overlay", &path)?;
    }
    phases.final_metrics(&found)
}

/// Rows of equal size, which can be predicted together.
fn by_shape(pairs: &Pairs) -> Result<Vec<(Shape, Vec<usize>)>> {
    let mut groups: Vec<(Shape, Vec<usize>)> = vec![];
    for row in 0..pairs.names.len() {
        let shape = pairs.images.row_info(row)?.shape;
        match groups.iter_mut().find(|(of, _)| *of == shape) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((shape, vec![row])),
        }
    }
    Ok(groups)
}

struct Run<'a> {
    experiment: &'a Experiment,
    config: &'a Config,
    pairs: Pairs,
    normal: Normal,
    net: Unet,
    writer: Box<dyn StoreWriter>,
    scores: Vec<metrics::Scores>,
    drawn: Option<wellread_store::preview::Preview>,
    images: usize,
}

impl Run<'_> {
    fn batches(&self, groups: &[(Shape, Vec<usize>)]) -> usize {
        groups.iter().map(|(_, rows)| rows.len().div_ceil(self.config.training.batch_size)).sum()
    }

    /// Predicts images of equal size.
    fn group(&mut self, rows: &[usize], phases: &mut Phases) -> Result<()> {
        let loader = Loader::builder(&self.pairs.images)
            .rows(rows)
            .batch_size(self.config.training.batch_size)
            .workers(self.config.data.workers)
            .transform(Transform::default().channels([self.pairs.channels[0]]))
            .build()?;
        let mut batches = loader.iter();
        loop {
            let next = || Ok(batches.next().transpose()?);
            let Some(batch) = phases.repeated("batch_loading", "first_batch_loading", next)? else {
                phases.unsample("batch_loading");
                return Ok(());
            };
            let images = phases.repeated("batch_to_device", "first_batch_to_device", || {
                tensor(&batch, |row| self.normal.image(row))
            })?;
            // A ReLU would make zeros of them.
            self.must_be_finite("the image", &images, batch.rows())?;
            let (net, tile) = (&self.net, self.config.inference.tile);
            let result = phases
                .repeated("batch_forward", "first_batch_forward", || predict::whole(net, &images, tile))?;
            self.must_be_finite("the network's result for", &result, batch.rows())?;
            phases.repeated("batch_postprocess", "first_batch_postprocess", || {
                self.finish(batch.rows(), &images, &result)
            })?;
        }
    }

    /// Refuses values that are not finite, with the name of the image that has them.
    fn must_be_finite(&self, what: &str, of: &Tensor, rows: &[usize]) -> Result<()> {
        let Some(at) = of.data.iter().position(|v| !v.is_finite()) else { return Ok(()) };
        bail!("{what} {:?} holds numbers that are not finite", self.pairs.names[rows[at / of.image_len()]])
    }

    /// Writes the predictions of a batch and compares them with their targets.
    fn finish(&mut self, rows: &[usize], images: &Tensor, results: &Tensor) -> Result<()> {
        let mut context = ItemContext::new();
        for (i, &row) in rows.iter().enumerate() {
            let one = |all: &Tensor| -> Result<Tensor> {
                let [_, d, h, w, c] = all.shape;
                let len = all.image_len();
                Tensor::new(all.data[i * len..][..len].to_vec(), [1, d, h, w, c])
            };
            let result = one(results)?;
            let (info, pixels) = (self.experiment.write)(self.config, &result);
            let metadata = ImageMetadata::named(self.pairs.names[row].clone());
            let view =
                ImageView { metadata: &metadata, shape: info.shape, dtype: info.dtype, pixels: &pixels };
            self.writer.write(&view)?;
            self.images += 1;
            let Some(targets) = &self.pairs.targets else { continue };
            let mut target = Pairs::read(targets, row, self.pairs.channels[1], &mut context)?;
            normal::apply(&mut target.data, self.normal.target(row));
            self.scores.push((self.experiment.scores)(self.config, &result, &target));
            if self.drawn.is_none() {
                self.drawn = Some((self.experiment.draw)(self.config, [&one(images)?, &target, &result]));
            }
        }
        Ok(())
    }
}
