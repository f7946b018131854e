//! Images: synthetic ones, or any set of images through the loader with the preprocessing of the model.
//!
//! The preprocessing is torchvision's for these models. It takes the shorter side to 256, the centre 224 x 224, values to [0, 1],
//! less the mean and by the deviation of ImageNet. Crop and resize are one step here: the centre square whose side is
//! 224 / 256 of the shorter one, resized with antialiasing. An image of one channel is repeated.

mod feed;
mod stored;

pub(crate) use feed::PREFETCH_BATCHES;
pub use stored::{Stored, reason};

use crate::config::Config;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use feed::{Feed, LoaderParts};
use serde::{Deserialize, Serialize};
use std::path::Path;
use wellread_loader::{Dataset, Filter, Resize, Transform};
use wellread_measure::Environment;
use wellread_measure::rng::Rng;
use wellread_store::colors::Colors;
use wellread_store::words::counted;
use wellread_store::{Error, OpenOptions, Store, masks};

/// The share of the shorter side that is left.
const CENTER_CROP_SHARE: f32 = 224.0 / 256.0;
/// Means and deviations of ImageNet, red, green and blue.
pub const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
/// See [`MEAN`].
pub const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];
/// Copies of a batch that are there at once at least: here, in shared memory, and in the framework.
const MIN_BATCH_COPIES: u64 = 3;

/// The stored images at a path: of the split, and of files put together as a run asks for.
///
/// # Errors
/// They cannot be opened so.
pub fn images(config: &Config, path: &Path) -> wellread_store::Result<Box<dyn Store>> {
    let options = OpenOptions { table: config.split.clone(), ..config.sites.open_options() };
    wellread_store::open(path, &options)
}

/// Where images come from.
pub enum Source {
    /// Numbers as normalised images have them: normal, mean 0, deviation 1.
    Synthetic,
    /// A set of images.
    Stored(Stored),
}

/// An image that was left out because it cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Its row.
    pub row: usize,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Source {
    /// Opens it.
    ///
    /// # Errors
    /// No images, or images that cannot be opened. Images and masks in one folder. Sites that lack a file.
    pub fn open(config: &Config) -> Result<Self> {
        let Some(path) = &config.data else { return Ok(Self::Synthetic) };
        let mut store = images(config, path)?;
        masks::none_in_folder(&*store)
            .map_err(|error| error.hint("images and masks are two sets: give the folder of one of them"))?;
        if !config.skip_unreadable {
            // Rows that each configuration reads: a site that lacks a file would be the error of each of them.
            let least = config.batch_sizes.iter().min().copied().unwrap_or_default();
            let rows = least.saturating_mul(1 + 2 * PREFETCH_BATCHES).min(store.len());
            store.hints().complete(0..rows)?;
        }
        // Among pictures, grey ones may lie among coloured ones.
        if store.format() == "image-folder" && config.channels.is_none() {
            store = Box::new(Colors::new(store));
        }
        Ok(Self::Stored(Stored::new(Dataset::from_store(store), config.skip_unreadable)?))
    }

    /// The images that were left out so far.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        let Self::Stored(stored) = self else { return Vec::new() };
        let name = |row| stored.dataset.name(row).unwrap_or_default();
        let skipped = stored.skipped.borrow();
        skipped
            .iter()
            .map(|(&row, reason)| Unreadable { row, name: name(row), reason: reason.clone() })
            .collect()
    }

    /// A batch of images of `[channels, height, width]`.
    ///
    /// # Errors
    /// A batch that does not fit in memory; images that cannot be read or do not fit the model.
    pub(crate) fn batch(&self, batch: usize, input: [usize; 3], config: &Config) -> Result<Vec<f32>> {
        let count = input.iter().try_fold(batch, |n, &axis| n.checked_mul(axis));
        let needed = count.and_then(|n| (n as u64).checked_mul(4 * MIN_BATCH_COPIES));
        let there = Environment::capture::<&Path>(&[]).free_memory();
        let too_large = || {
            let gib = |n: u64| format!("{:.1} GiB", n as f64 / f64::from(1 << 30));
            let needed = needed.map_or("more than can be counted".to_owned(), gib);
            let free = there.map_or(String::new(), |n| format!(", and {} are free", gib(n)));
            anyhow!("the batch of {batch} does not fit in memory: its images take {needed} at least{free}")
        };
        let count = needed.filter(|n| there.is_none_or(|free| *n < free)).and(count).ok_or_else(too_large)?;
        match self {
            Self::Synthetic => {
                let mut rng = Rng::seed(config.seed);
                let mut images = Vec::new();
                // Where the system does not say what is free, it may refuse.
                images.try_reserve_exact(count).map_err(|_| too_large())?;
                images.extend((0..count).map(|_| rng.normal() as f32));
                Ok(images)
            }
            Self::Stored(_) => {
                let mut feed = self.feed(batch, input, 1, config)?.context("a set of images feeds")?;
                Ok(feed.next()?.to_vec())
            }
        }
    }

    /// Batches through the loader, from the first image on; `None` for synthetic images.
    ///
    /// # Errors
    /// Images that do not fit the model.
    pub(crate) fn feed<'s>(
        &'s self,
        batch: usize,
        input: [usize; 3],
        batches: usize,
        config: &'s Config,
    ) -> Result<Option<Feed<'s>>> {
        let Self::Stored(stored) = self else { return Ok(None) };
        let transform = preprocessing(stored, input, config.channels.as_deref())?;
        let wanted = input.iter().product::<usize>() * batch;
        Feed::begin(LoaderParts { stored, transform, batch, batches, config }, wanted).map(Some)
    }
}

/// The way from volumes and series to planes that needs no option.
pub(crate) const TO_PLANES: &str = "write planes in Python, such as the maximum over depth of a time point t: \
    tifffile.imwrite(\"0.ome.tif\", ds[row][t].max(1), metadata={\"axes\": \"CYX\"})";

/// The error of images of this shape that are no planes.
pub(crate) fn no_planes(path: &Path, shape: &dyn std::fmt::Display) -> Error {
    Error::new(
        path,
        format_args!("the images are volumes or series (TCZYX {shape}), and a model takes planes"),
    )
}

/// From stored images to what a model of this input takes.
fn preprocessing(stored: &Stored, input: [usize; 3], channels: Option<&[usize]>) -> Result<Transform> {
    let path = stored.dataset.store().path().display();
    let [wanted, height, width] = input;
    let shape = stored.first.shape;
    if shape.t() != 1 || shape.z() != 1 {
        return Err(no_planes(stored.dataset.store().path(), &shape).hint(TO_PLANES).into());
    }
    let channels = match channels {
        Some(channels) => channels.to_vec(),
        None if shape.c() >= wanted => (0..wanted).collect(),
        None if shape.c() == 1 => vec![0; wanted],
        None => bail!(
            "{path}: the images have {}, and the model takes {wanted}; choose with --channels, such as --channels 0,1,1",
            counted(shape.c(), "channel")
        ),
    };
    ensure!(
        channels.len() == wanted,
        "--channels names {}, and the model takes {wanted}",
        counted(channels.len(), "channel")
    );
    let transform = Transform::default()
        .channels(channels)
        .crop_square(CENTER_CROP_SHARE)
        .resize_with(Resize { height, width, filter: Filter::Antialias })
        .scale_to_unit();
    Ok(if wanted == MEAN.len() { transform.normalize(MEAN, DEVIATION) } else { transform })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::{PixelType, Shape};
    use wellread_loader::MemoryStore;

    fn source(channels: usize, values: &[u8]) -> Source {
        let mut store = MemoryStore::new("flat");
        let shape = Shape([1, channels, 1, 300, 280]);
        for (i, &value) in values.iter().enumerate() {
            store.push(format!("{i}"), shape, PixelType::U8, vec![value; shape.pixels()]).unwrap();
        }
        Source::Stored(Stored::new(Dataset::from_store(Box::new(store)), false).unwrap())
    }

    #[test]
    fn stored_images_are_prepared_as_torchvision_does() {
        let config = Config { loader_workers: 0, ..Config::default() };
        let found = source(1, &[51, 255]).batch(3, [3, 8, 8], &config).unwrap();
        assert_eq!(found.len(), 3 * 3 * 64);
        for (i, value) in [0.2f32, 1.0, 0.2].into_iter().enumerate() {
            for c in 0..3 {
                let wanted = (value - MEAN[c]) / DEVIATION[c];
                let plane = &found[(i * 3 + c) * 64..][..64];
                assert!(plane.iter().all(|v| (v - wanted).abs() < 1e-5), "{wanted} {:?}", &plane[..4]);
            }
        }
        let text = source(2, &[1]).batch(1, [3, 8, 8], &config).unwrap_err().to_string();
        assert!(text.contains("--channels"), "{text}");
        let chosen = Config { channels: Some(vec![0, 1, 1]), ..config };
        assert_eq!(source(2, &[1]).batch(1, [3, 8, 8], &chosen).unwrap().len(), 192);
    }

    #[test]
    fn series_are_refused_with_a_way_to_planes() {
        let mut store = MemoryStore::new("series");
        let shape = Shape([2, 1, 3, 16, 16]);
        store.push("a".to_owned(), shape, PixelType::U8, vec![0; shape.pixels()]).unwrap();
        let source = Source::Stored(Stored::new(Dataset::from_store(Box::new(store)), false).unwrap());
        let error = source.batch(1, [3, 8, 8], &Config::default()).unwrap_err().to_string();
        assert!(error.contains("TCZYX 2x1x3x16x16") && error.contains("tifffile.imwrite("), "{error}");
    }

    /// Pictures of which some are no pictures: batches stay whole, and each of those is told once.
    #[test]
    fn pictures_that_cannot_be_read_are_skipped_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let shape = Shape([1, 1, 1, 16, 16]);
        let mut writer = wellread_store::create(
            dir.path().join("set"),
            "image-folder",
            &wellread_store::WriteOptions::default(),
        )
        .unwrap();
        for i in 0..5u8 {
            let metadata = wellread_image::ImageMetadata::named(format!("{i}"));
            let pixels = vec![i * 50; 256];
            let view = wellread_store::ImageView {
                metadata: &metadata,
                shape,
                dtype: PixelType::U8,
                pixels: &pixels,
            };
            writer.write(&view).unwrap();
        }
        writer.finish().unwrap();
        for name in ["0", "3"] {
            std::fs::write(dir.path().join("set").join(format!("{name}.png")), "no picture").unwrap();
        }
        let raise = Config { data: Some(dir.path().join("set")), loader_workers: 0, ..Config::default() };
        let error = Source::open(&raise).err().unwrap().to_string();
        assert!(error.contains("0.png") && error.contains("--on-error skip"), "{error}");
        let config = Config { skip_unreadable: true, ..raise };
        let source = Source::open(&config).unwrap();
        // That the first image alone cannot be read is no matter of the set.
        let single = source.batch(1, [3, 4, 4], &config).unwrap();
        assert!((single[0] * DEVIATION[0] + MEAN[0] - 50.0 / 255.0).abs() < 1e-5, "{}", single[0]);
        let mut feed = source.feed(2, [3, 4, 4], 4, &config).unwrap().unwrap();
        let mut values = Vec::new();
        for _ in 0..4 {
            let batch = feed.next().unwrap();
            assert_eq!(batch.len(), 2 * 48);
            values.extend(
                batch.chunks(48).map(|image| ((image[0] * DEVIATION[0] + MEAN[0]) * 255.0).round() as u8),
            );
        }
        drop(feed);
        assert_eq!(values, [50, 100, 200, 50, 100, 200, 50, 100]);
        let unreadable = source.unreadable();
        assert_eq!(
            unreadable.iter().map(|u| (u.row, u.name.as_str())).collect::<Vec<_>>(),
            [(0, "0"), (3, "3")]
        );
        assert!(unreadable[0].reason.contains("neither PNG nor JPEG"), "{unreadable:?}");
    }

    #[test]
    fn synthetic_images_are_the_same_for_a_seed_and_huge_batches_are_refused() {
        let config = Config::default();
        let found = Source::Synthetic.batch(2, [3, 32, 32], &config).unwrap();
        assert_eq!(found, Source::Synthetic.batch(2, [3, 32, 32], &config).unwrap());
        let mean = found.iter().sum::<f32>() / found.len() as f32;
        assert!(mean.abs() < 0.05, "{mean}");
        for batch in [1 << 30, usize::MAX] {
            let text = Source::Synthetic.batch(batch, [3, 224, 224], &config).unwrap_err().to_string();
            assert!(text.contains("does not fit in memory"), "{text}");
        }
    }
}
