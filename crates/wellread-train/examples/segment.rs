//! A segmentation loop in Rust: images with masks as targets train a U-Net, whose masks of an image it has not seen are judged.
//!
//! ```text
//! cargo run --release -p wellread-train --example segment -- [FOLDER] [STEPS]
//! ```
//!
//! FOLDER has `images` and `masks`, as NF1's Cell Painting images come or as `wellread generate plate --masks` writes them. Without
//! it, the example generates images in memory. The last image is left out of training. Programs that depend on `wellread` find the
//! loader's types there: `wellread::{Cache, Dataset, Loader, Targets}`.

mod common;

use anyhow::{Context as _, Result, ensure};
use common::{channels_last, kept, nf1_sites};
use std::path::Path;
use wellread_image::synthetic::{Kind, Spec, image};
use wellread_image::{PixelType, Shape};
use wellread_loader::{Batch, Dataset, Loader, LoaderBuilder, MemoryStore, Output, Targets};
use wellread_store::OpenOptions;
use wellread_store::words::there_are;
use wellread_train::metrics::Overlap;
use wellread_train::net::{Adam, Loss, NormKind, Tensor, Unet, UnetSpec};

/// Rows and columns of a crop, crops of an image in a batch, crops of a batch.
const SIDE: usize = 96;
const CROPS: usize = 4;
const BATCH: usize = 8;
/// Learning rate.
const RATE: f64 = 3e-3;
/// Steps between two lines of the loss.
const SHOWN: usize = 10;

/// Images and masks in `folder`. Those of NF1 have masks of cells and cytoplasm beside those of nuclei.
fn opened(folder: &Path) -> Result<[Dataset; 2]> {
    let files = OpenOptions { layout: Some("files".to_owned()), ..OpenOptions::default() };
    let masks = kept(&folder.join("masks"), &files)?;
    let mut nuclei = vec![];
    for row in 0..masks.len() {
        if masks.name(row)?.contains("_MaskNuclei") {
            nuclei.push(row);
        }
    }
    if nuclei.is_empty() {
        return Ok([kept(&folder.join("images"), &OpenOptions::default())?, masks]);
    }
    Ok([nf1_sites(folder)?, masks.select(nuclei)?])
}

/// Images of cells, and the masks of their nuclei.
fn generated(count: u64) -> Result<[Dataset; 2]> {
    let shape = Shape([1, 2, 1, 160, 160]);
    let spec = Spec { kind: Kind::Cells, shape, dtype: PixelType::U16, seed: 3 };
    let (mut images, mut masks) = (MemoryStore::new("generated images"), MemoryStore::new("generated masks"));
    for row in 0..count {
        let made = image(&spec, row)?;
        let labels = made.mask.context("images of cells have masks")?;
        let labels = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        let name = made.metadata.name;
        masks.push(format!("{name}_mask"), Shape([1, 1, 1, 160, 160]), PixelType::U16, labels)?;
        images.push(name, shape, PixelType::U16, made.pixels)?;
    }
    Ok([Dataset::from_store(Box::new(images)), Dataset::from_store(Box::new(masks))])
}

/// A loader of some rows, with their masks as targets.
fn loader([images, masks]: &[Dataset; 2], rows: Vec<usize>) -> LoaderBuilder {
    Loader::builder(images)
        .rows(rows)
        .scale_by_percentiles(1.0, 99.8)
        .targets(Targets::labels(masks).output(Output::F32))
}

/// Images and masks of a batch; a mask is 1 inside of any object.
fn pair(batch: &Batch) -> Result<[Tensor; 2]> {
    let targets = batch.targets().context("the loader has no targets")?;
    let mut inside = channels_last(&targets)?;
    for value in &mut inside.data {
        *value = if *value > 0.0 { 1.0 } else { 0.0 };
    }
    Ok([channels_last(&batch.view(0))?, inside])
}

/// The loss of each step, and the intersection over union of the last image's masks.
struct Outcome {
    losses: Vec<f64>,
    iou: f64,
}

/// Trains on all images but the last, which judges the result.
fn segment(sets: &[Dataset; 2], steps: usize) -> Result<Outcome> {
    let count = sets[0].len();
    ensure!(count > 1, "{}: one trains, and one judges", there_are(count, "image"));
    let training = loader(sets, (0..count - 1).collect())
        .shuffle(42)
        .random_crop(SIDE, SIDE)
        .flip(0.5, 0.5)
        .crops_per_image(CROPS)
        .batch_size(BATCH)
        .workers(2)
        .build()?;
    let spec = UnetSpec {
        dimensions: 2,
        c_in: training.image_shape().c(),
        c_out: 1,
        width: 8,
        depth: 2,
        norm: NormKind::Instance,
    };
    let mut net = Unet::new(spec, 1)?;
    let mut adam = Adam::new(&net, 0.0);
    let mut losses = vec![];
    'training: for epoch in 0.. {
        for batch in training.iter_at(epoch, 0) {
            if losses.len() == steps {
                break 'training;
            }
            let [images, inside] = pair(&batch?)?;
            let pass = net.forward(&images)?;
            let (loss, gradient) = Loss::BceDice.of(&pass.logits, &inside)?;
            net.backward(pass, &gradient)?;
            adam.step(&mut net, RATE);
            losses.push(loss);
            if losses.len().is_multiple_of(SHOWN) {
                println!("step {}: loss {loss:.3}", losses.len());
            }
        }
    }
    let test = loader(sets, vec![count - 1]).batch_size(1).build()?;
    let batch = test.iter().next().context("the loader delivered no image")??;
    let [images, inside] = pair(&batch)?;
    let logits = net.logits(&images)?;
    let found = Overlap::of(
        logits.data.iter().map(|&logit| logit > 0.0),
        inside.data.iter().map(|&value| value > 0.0),
    );
    let either = found.ours + found.theirs - found.both;
    Ok(Outcome { losses, iou: found.both as f64 / either.max(1) as f64 })
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let sets = match args.next() {
        Some(folder) => opened(Path::new(&folder))?,
        None => generated(8)?,
    };
    let steps = args.next().map_or(Ok(60), |steps| steps.parse())?;
    let shape = sets[0].row_info(0)?.shape;
    println!("{} images of {shape} (TCZYX)", sets[0].len());
    let Outcome { losses, iou } = segment(&sets, steps)?;
    if let (Some(first), Some(last)) = (losses.first(), losses.last()) {
        println!("loss {first:.3} of the first step, {last:.3} of the last");
    }
    println!("an image that was not trained on: IoU {iou:.2}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means of the first and the last steps.
    fn ends(losses: &[f64]) -> [f64; 2] {
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        [mean(&losses[..4]), mean(&losses[losses.len() - 4..])]
    }

    #[test]
    fn the_loss_falls_and_nuclei_are_found() {
        let Outcome { losses, iou } = segment(&generated(5).unwrap(), 40).unwrap();
        let [first, last] = ends(&losses);
        assert_eq!(losses.len(), 40);
        assert!(last < 0.8 * first, "{first} to {last}");
        assert!(iou > 0.3, "{iou}");
    }

    #[test]
    fn one_image_cannot_both_train_and_judge() {
        let error = segment(&generated(1).unwrap(), 1).err().unwrap().to_string();
        assert!(error.ends_with("1 image: one trains, and one judges"), "{error}");
    }

    /// Five sites of three channels, and the masks of nuclei among others.
    #[test]
    fn sites_of_nf1_have_their_masks() {
        let Some(folder) = common::nf1_folder() else { return };
        let sets = opened(&folder).unwrap();
        assert_eq!(sets.each_ref().map(Dataset::len), [5, 5]);
        assert_eq!(sets[0].row_info(0).unwrap().shape.c(), 3);
        let batch = loader(&sets, vec![0]).batch_size(1).build().unwrap().iter().next().unwrap().unwrap();
        let [images, inside] = pair(&batch).unwrap();
        assert_eq!((images.shape[4], inside.shape), (3, [1, 1, 904, 1224, 1]));
        let share = inside.data.iter().sum::<f32>() / inside.data.len() as f32;
        assert!(share > 0.01 && share < 0.5, "{share}");
    }
}
