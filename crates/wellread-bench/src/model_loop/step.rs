//! The parts of a step: the loader's batches without end, the model, and a run of the one on the other.
//!
//! ```text
//!  set ─▶ loader ─▶ EndlessBatches::next: a batch ─▶ model_shape ─▶ run_model: inference, or a step of training and its loss
//! ```

use crate::choices::{Mode, Preset};
use crate::config::Config;
use crate::core::Session;
use crate::core::bounds::bounded;
use crate::data::FormatSet;
use anyhow::{Context as _, Result, bail};
use wellread_loader::{Batch, Batches, Dataset, Loader};
use wellread_model::{Model, ModelOptions};
use wellread_store::words::counted;

/// The loader that feeds the model.
pub(super) fn loader(session: &Session<'_>, set: &FormatSet, batch_size: usize) -> Result<Loader> {
    let config = session.config;
    let dataset = Dataset::from_store(session.open(set)?);
    let builder = Loader::builder(&dataset)
        .batch_size(batch_size.min(dataset.len()))
        .drop_last(true)
        .shuffle(config.seed)
        .workers(config.loop_workers)
        .transform(session.transform(Preset::None)?);
    Ok(bounded(builder, config.memory, config.prefetch).build()?)
}

/// Batches without end: epoch after epoch. Before each the set forgets the pixels that it keeps decoded, as if it were opened
/// anew. A set of another format decodes them in every epoch.
pub(super) struct EndlessBatches<'l> {
    loader: &'l Loader,
    epoch: u64,
    batches: Batches,
}

impl<'l> EndlessBatches<'l> {
    pub(super) fn new(loader: &'l Loader, epoch: u64) -> Self {
        loader.set_epoch(epoch);
        Self { loader, epoch, batches: loader.iter() }
    }

    /// Whether the batch that was delivered last is the last of its epoch.
    pub(super) fn at_end(&self) -> bool {
        self.batches.remaining() == 0
    }

    /// Work that is no part of a step: at an epoch's end the set forgets its pixels.
    pub(super) fn between_steps(&self) {
        if self.at_end() {
            self.loader.dataset().store().hints().forget_pages();
        }
    }

    pub(super) fn next(&mut self) -> Result<Batch> {
        if let Some(batch) = self.batches.next() {
            return Ok(batch?);
        }
        self.epoch += 1;
        self.loader.set_epoch(self.epoch);
        self.batches = self.loader.iter();
        let batch = self.batches.next();
        Ok(batch.context("the loader delivers no batch: --batch-size is larger than the set")??)
    }
}

/// A model, once it was needed.
pub(super) type Slot = Option<Box<dyn Model>>;

/// The model in `slot`, built for that many channels if there is none yet.
pub(super) fn built<'m>(
    config: &Config,
    slot: &'m mut Slot,
    channels: usize,
) -> Result<&'m mut Box<dyn Model>> {
    if slot.is_none() {
        let options = ModelOptions { seed: config.seed, in_channels: channels, ..ModelOptions::default() };
        *slot = Some(wellread_model::create(&config.model, &options).context("the model")?);
    }
    slot.as_mut().context("the model was just built")
}

/// A step, on a batch of these rows (none of a batch of no set).
pub(super) fn run_model(
    model: &mut dyn Model,
    mode: Mode,
    pixels: &[f32],
    shape: [usize; 4],
    rows: &[usize],
) -> Result<Option<f32>> {
    if mode == Mode::Train {
        return trained(model, pixels, shape, rows).map(Some);
    }
    let output = model.forward(pixels, shape)?;
    std::hint::black_box(output.as_slice());
    Ok(None)
}

/// A step of training; its loss.
///
/// # Errors
/// One that fails, or whose loss is no number: the error names the pixels where these are none.
pub(crate) fn trained(
    model: &mut dyn Model,
    pixels: &[f32],
    shape: [usize; 4],
    rows: &[usize],
) -> Result<f32> {
    let why = match model.train_step(pixels, shape) {
        Ok(loss) if loss.is_finite() => return Ok(loss),
        Ok(loss) => anyhow::anyhow!("the loss is {loss}: training diverged"),
        Err(error) => error.into(),
    };
    Err(not_finite(pixels, rows).map_or(why, anyhow::Error::msg))
}

/// The error of a batch that has pixels that are no finite numbers.
fn not_finite(pixels: &[f32], rows: &[usize]) -> Option<String> {
    let first = pixels.iter().position(|pixel| !pixel.is_finite())?;
    let count = pixels.iter().filter(|pixel| !pixel.is_finite()).count();
    let row = rows.get(first / (pixels.len() / rows.len().max(1)).max(1));
    let of = row.map_or(String::new(), |row| format!(", the first of them in row {row}"));
    Some(format!(
        "a batch has {} that are NaN or infinite{of}, so that the loss is no number (hint: `wellread stats` counts them; leave these \
         images out, or replace such pixels)",
        counted(count, "pixel")
    ))
}

/// N, C, H, W of a batch; T and Z are taken as further channels.
pub(crate) fn model_shape(shape: &[usize]) -> Result<[usize; 4]> {
    match *shape {
        [n, c, h, w] => Ok([n, c, h, w]),
        [n, t, c, z, h, w] => Ok([n, t * c * z, h, w]),
        _ => bail!("a batch of shape {shape:?} cannot be fed to a 2D model"),
    }
}

/// Why the loop's model cannot run in this program, if it cannot.
pub(super) fn not_for_rust(model: &str) -> Option<String> {
    let known = wellread_model::models().iter().any(|m| m.name == model);
    (!known).then(|| format!("{model} runs in Python only; the models of this program are: {}", names()))
}

fn names() -> String {
    wellread_model::models().iter().map(|m| m.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_that_are_no_numbers_are_told_and_not_blamed_on_their_scale() {
        let mut pixels = vec![0.5; 12];
        assert_eq!(not_finite(&pixels, &[7, 3, 9]), None);
        (pixels[5], pixels[11]) = (f32::NAN, f32::INFINITY);
        let said = not_finite(&pixels, &[7, 3, 9]).unwrap();
        assert!(
            said.starts_with("a batch has 2 pixels that are NaN or infinite, the first of them in row 3,"),
            "{said}"
        );
        assert!(said.contains("wellread stats") && !said.contains("scale"), "{said}");
    }

    #[test]
    fn stacks_become_channels() {
        assert_eq!(model_shape(&[4, 2, 3, 5, 8, 9]).unwrap(), [4, 30, 8, 9]);
        assert!(model_shape(&[4]).is_err());
    }
}
