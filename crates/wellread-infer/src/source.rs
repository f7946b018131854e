//! Images: synthetic ones, or any set of images through the loader with the preprocessing of the model.
//!
//! The preprocessing is torchvision's for these models: the shorter side to 256, the centre 224 x 224, values to [0, 1],
//! less the mean and by the deviation of ImageNet. Crop and resize are one step here: the centre square whose side is
//! 224 / 256 of the shorter one, resized with antialiasing. An image of one channel is repeated.

use crate::config::Config;
use anyhow::{Context as _, Result, bail, ensure};
use wellread_loader::{Batches, Dataset, Filter, Loader, Resize, Transform};
use wellread_measure::Environment;
use wellread_measure::rng::Rng;

/// What is left of the shorter side.
const SHARE: f32 = 224.0 / 256.0;
/// Means and deviations of ImageNet, red, green and blue.
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
/// See [`MEAN`].
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];
/// Batches that are read ahead.
pub(crate) const AHEAD: usize = 4;
/// Copies of a batch that are there at once at least: here, in shared memory, and in the framework.
const COPIES: u64 = 3;

/// Where images come from.
pub enum Source {
    /// Numbers as normalised images have them: normal, mean 0, deviation 1.
    Synthetic,
    /// A set of images.
    Stored(Dataset),
}

impl Source {
    /// Opens it.
    ///
    /// # Errors
    /// Images that cannot be opened, or none.
    pub fn open(config: &Config) -> Result<Self> {
        let Some(path) = &config.data else { return Ok(Self::Synthetic) };
        let dataset = Dataset::open(path)?;
        ensure!(!dataset.is_empty(), "--data-source {}: there are no images", path.display());
        Ok(Self::Stored(dataset))
    }

    /// A batch of images of `[channels, height, width]`.
    ///
    /// # Errors
    /// A batch that does not fit in memory; images that cannot be read or do not fit the model.
    pub(crate) fn batch(&self, batch: usize, input: [usize; 3], config: &Config) -> Result<Vec<f32>> {
        let count = input.iter().try_fold(batch, |n, &axis| n.checked_mul(axis));
        let bytes = count.and_then(|n| n.checked_mul(4));
        let needed = bytes.and_then(|n| (n as u64).checked_mul(COPIES));
        let there = Environment::capture::<&std::path::Path>(&[]).memory.available.unwrap_or(u64::MAX);
        let Some(count) = count.filter(|_| needed.is_some_and(|needed| needed < there)) else {
            let gib = |n: u64| n as f64 / f64::from(1 << 30);
            let needed =
                needed.map_or("more than can be counted".to_owned(), |n| format!("{:.1} GiB", gib(n)));
            bail!(
                "the batch of {batch} does not fit in memory: its images take {needed} at least, and {:.1} GiB are free",
                gib(there)
            );
        };
        match self {
            Self::Synthetic => {
                let mut rng = Rng::seed(config.seed);
                Ok((0..count).map(|_| rng.normal() as f32).collect())
            }
            Self::Stored(_) => {
                let mut feed = self.feed(batch, input, 1, config)?.context("a set of images feeds")?;
                Ok(feed.next()?.pixels().to_vec())
            }
        }
    }

    /// Batches through the loader, from the first image on; `None` for synthetic images.
    ///
    /// # Errors
    /// Images that do not fit the model.
    pub(crate) fn feed(
        &self,
        batch: usize,
        input: [usize; 3],
        batches: usize,
        config: &Config,
    ) -> Result<Option<Feed>> {
        let Self::Stored(dataset) = self else { return Ok(None) };
        let transform = preprocessing(dataset, input, config.channels.as_deref())?;
        // Sets that are smaller than a run begin again.
        let rows: Vec<usize> = (0..batch * batches).map(|i| i % dataset.len()).collect();
        let loader = Loader::builder(dataset)
            .batch_size(batch)
            .rows(rows)
            .transform(transform)
            .workers(config.loader_workers)
            .prefetch(AHEAD)
            .build()?;
        Ok(Some(Feed { batches: loader.iter(), _loader: loader }))
    }
}

/// Batches that come.
pub(crate) struct Feed {
    batches: Batches,
    _loader: Loader,
}

impl Feed {
    /// The next batch.
    pub fn next(&mut self) -> Result<wellread_loader::Batch> {
        Ok(self.batches.next().context("the images are at their end")??)
    }
}

/// From stored images to what a model of this input takes.
fn preprocessing(dataset: &Dataset, input: [usize; 3], channels: Option<&[usize]>) -> Result<Transform> {
    let path = dataset.store().path().display();
    let [wanted, height, width] = input;
    let shape = dataset.row_info(0)?.shape;
    ensure!(
        shape.t() == 1 && shape.z() == 1,
        "{path}: the images are volumes or series (TCZYX {shape}), and the model takes planes"
    );
    let channels = match channels {
        Some(channels) => channels.to_vec(),
        None if shape.c() >= wanted => (0..wanted).collect(),
        None if shape.c() == 1 => vec![0; wanted],
        None => bail!(
            "{path}: the images have {} channels, and the model takes {wanted}; choose with --channels, such as --channels 0,1,1",
            shape.c()
        ),
    };
    ensure!(
        channels.len() == wanted,
        "--channels names {} channels, and the model takes {wanted}",
        channels.len()
    );
    let transform = Transform::default()
        .channels(channels)
        .crop_square(SHARE)
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
        Source::Stored(Dataset::from_store(Box::new(store)))
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
