//! Whether what was asked for goes with the images that are there, found out before anything is measured.

use crate::config::Config;
use crate::core::Benchmark;
use crate::data::Prepared;
use crate::sample::differing_stacks;
use crate::{dataloader, model_loop};
use anyhow::{Result, bail};
use wellread_image::Shape;
use wellread_store::checksum::ImageChecksum;
use wellread_store::words::counted;

/// Why something that was asked for does not go with these images: wrong usage, and no fault of the images.
#[derive(Debug)]
pub struct WrongUsage(String);

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// Every image is as large as the crop that was asked for.
pub(crate) fn check_crop(config: &Config, prepared: &Prepared) -> Result<()> {
    let images = &prepared.expected[..];
    let asked = [("--crop", config.crop), ("--random-crop", config.random_crop)];
    for (option, (height, width)) in asked.into_iter().filter_map(|(option, size)| Some((option, size?))) {
        let is_smaller = |image: &&ImageChecksum| {
            let [.., y, x] = image.shape_tczyx;
            y < height || x < width
        };
        if let Some(small) = images.iter().find(is_smaller) {
            let [.., y, x] = small.shape_tczyx;
            return Err(WrongUsage(format!(
                "{option} {height}x{width} is larger than {}, which is {y}x{x} (hint: {option} {}x{} fits all)",
                plane(prepared, small).unwrap_or_else(|| format!("the image of row {}", small.row)),
                shortest(images, 3),
                shortest(images, 4)
            ))
            .into());
        }
    }
    Ok(())
}

/// Images of a batch are equal in shape; where they cannot be, nothing is measured.
pub(crate) fn check_shapes(config: &Config, benchmarks: &[&Benchmark], prepared: &Prepared) -> Result<()> {
    // Crops at random are the data loader's alone.
    let cut = [(dataloader::BENCHMARK.name, config.batch_crop()), (model_loop::BENCHMARK.name, config.crop)];
    let is_whole = |b: &&&Benchmark| cut.iter().any(|(name, crop)| *name == b.name && crop.is_none());
    let batches = benchmarks.iter().find(is_whole);
    let images = &prepared.expected[..];
    let (Some(batches), Some(first)) = (batches, images.first()) else { return Ok(()) };
    let others: Vec<_> = images.iter().filter(|image| image.shape_tczyx != first.shape_tczyx).collect();
    let Some(other) = others.first() else { return Ok(()) };
    let stacks = others.iter().find_map(|image| differing_stacks(first.shape_tczyx, image.shape_tczyx));
    let rows: Vec<_> = others.iter().take(5).map(|image| image.row.to_string()).collect();
    let (what, all) = match planes_of(prepared) {
        Some(of) => {
            ("planes", format!("the {} of the {}", counted(images.len(), "plane"), counted(of, "image")))
        }
        None => ("images", counted(images.len(), "row")),
    };
    let one = |image: &ImageChecksum| plane(prepared, image).unwrap_or_else(|| format!("row {}", image.row));
    bail!(
        "the {what} differ in shape, and {} joins them in batches. {} is {} (TCZYX), {} is {}; {} of {all} \
         differ from the first ({}{}) (hint: {}; storage, dataset and conversion measure single {what} as they are)",
        batches.name,
        one(first),
        Shape(first.shape_tczyx),
        one(other),
        Shape(other.shape_tczyx),
        others.len(),
        rows.join(", "),
        if others.len() > rows.len() { " …" } else { "" },
        stacks.unwrap_or_else(|| format!(
            "--crop {}x{} takes the centre of each",
            shortest(images, 3),
            shortest(images, 4)
        )),
    )
}

/// Number of images whose planes are measured as images of their own; `None` where each image is measured as it is.
fn planes_of(prepared: &Prepared) -> Option<usize> {
    prepared.of_images.filter(|&images| images != prepared.expected.len())
}

/// A plane by its number and name; `None` where each image is measured as it is.
fn plane(prepared: &Prepared, image: &ImageChecksum) -> Option<String> {
    planes_of(prepared).map(|_| format!("plane {} ({})", image.row, image.name))
}

/// Length of the shortest image along an axis (TCZYX).
fn shortest(images: &[ImageChecksum], axis: usize) -> usize {
    images.iter().map(|image| image.shape_tczyx[axis]).min().unwrap_or_default()
}
