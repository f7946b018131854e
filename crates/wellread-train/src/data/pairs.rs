//! Which target belongs to which image, and which pairs are trained on.

use super::binary::BinaryStore;
use crate::config::{Config, Data, Matching, Validation, matches};
use crate::experiment::Experiment;
use crate::net::Tensor;
use crate::task::Mode;
use anyhow::{Context as _, Result, bail, ensure};
use std::path::Path;
use wellread_image::Shape;
use wellread_loader::{Cache, Dataset, ItemContext, Transform};
use wellread_model::init::Uniform;
use wellread_store::Store;
use wellread_store::subset::Subset;
use wellread_store::words::{counted, there_are};

/// Images and their targets: row `i` of one belongs to row `i` of the other.
#[derive(Debug)]
pub struct Pairs {
    /// Images.
    pub images: Dataset,
    /// Targets; `None` where there are none (inference).
    pub targets: Option<Dataset>,
    /// Channels of image and target.
    pub channels: [usize; 2],
    /// Names of the images.
    pub names: Vec<String>,
    /// Rows that are trained on.
    pub training: Vec<usize>,
    /// Rows that are validated on.
    pub validation: Vec<usize>,
}

/// A set's rows whose names match, with their names.
fn chosen(store: &dyn Store, pattern: &str, key: &str) -> Result<Vec<(usize, String)>> {
    let mut rows = vec![];
    for row in 0..store.len() {
        let name = store.name(row)?;
        if matches(pattern, &name) {
            rows.push((row, name));
        }
    }
    let all = store.len();
    let there = if all == 0 { String::new() } else { format!(", such as {:?}", store.name(0)?) };
    ensure!(
        !rows.is_empty(),
        "{}: none of its {} is called {pattern:?}{there}: change {key}",
        store.path().display(),
        counted(all, "image")
    );
    Ok(rows)
}

fn open(path: &Path, key: &str) -> Result<Box<dyn Store>> {
    wellread_store::open(path, &wellread_store::OpenOptions::default())
        .with_context(|| format!("cannot open {key}"))
}

/// For each image the row of its target, if it has one.
fn matched(
    images: &[(usize, String)],
    targets: &[(usize, String)],
    how: Matching,
) -> Result<Vec<Option<usize>>> {
    if how == Matching::Row {
        ensure!(
            images.len() == targets.len(),
            "data.match is \"row\", but {} and {}",
            there_are(images.len(), "image"),
            counted(targets.len(), "target")
        );
        return Ok(targets.iter().map(|(row, _)| Some(*row)).collect());
    }
    let of = |name: &str| -> Result<Option<usize>> {
        if let Some((row, _)) = targets.iter().find(|(_, target)| target == name) {
            return Ok(Some(*row));
        }
        let longer = |target: &str| target.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
        let mut several = targets.iter().filter(|(_, target)| longer(target));
        match (several.next(), several.next()) {
            (Some((_, a)), Some((_, b))) => {
                bail!("the image {name:?} has several targets, {a:?} and {b:?}: choose by data.target_names")
            }
            (found, _) => Ok(found.map(|(row, _)| *row)),
        }
    };
    images.iter().map(|(_, name)| of(name)).collect()
}

impl Pairs {
    /// Opens and matches the sets of the configuration. For inference, images may have no
    /// target; then all are without.
    ///
    /// # Errors
    /// Sets that cannot be opened or are empty, images without a target, targets of another size. So are channels that
    /// do not exist, and nothing left to train on.
    pub fn open(config: &Config, experiment: &Experiment, seed: u64, mode: Mode) -> Result<Self> {
        let data = &config.data;
        let store = open(&data.images, "data.images")?;
        let rows = chosen(&*store, &data.image_names, "data.image_names")?;
        let own = data.targets.as_os_str().is_empty();
        if own && experiment.masks && mode == Mode::Train {
            bail!("data.targets names no masks: set it to the file or folder that holds them");
        }
        let targets = if own && experiment.masks {
            None
        } else {
            let path = if own { &data.images } else { &data.targets };
            let store = open(path, "data.targets")?;
            let found = match chosen(&*store, &data.target_names, "data.target_names") {
                Ok(targets) => matched(&rows, &targets, data.matching)?,
                Err(_) if mode == Mode::Inference => vec![None],
                Err(error) => return Err(error),
            };
            match found.iter().position(Option::is_none) {
                None => Some((store, found.into_iter().flatten().collect::<Vec<_>>())),
                Some(_) if mode == Mode::Inference => None,
                Some(missing) => bail!(
                    "the image {:?} has no target in {}: its name would be that, or begin with {:?} (hint: set data.match = \"row\" \
                     where the sets are in the same order)",
                    rows[missing].1,
                    path.display(),
                    format!("{}_", rows[missing].1)
                ),
            }
        };
        let (rows, names): (Vec<usize>, Vec<String>) = rows.into_iter().unzip();
        let cache: Cache = data.cache.parse().map_err(|why| anyhow::anyhow!("data.cache: {why}"))?;
        let dataset = |store: Box<dyn Store>| Dataset::from_store(store).with_cache(&cache);
        let images = dataset(Box::new(Subset::of(store, rows)))?;
        let targets = targets
            .map(|(store, rows)| {
                let subset: Box<dyn Store> = Box::new(Subset::of(store, rows));
                dataset(if experiment.masks { Box::new(BinaryStore(subset)) } else { subset })
            })
            .transpose()?;
        let channels = [data.image_channel, data.target_channel];
        let (training, validation) = divide(data, &names, seed, mode)?;
        let pairs = Self { images, targets, channels, names, training, validation };
        for row in 0..pairs.names.len() {
            pairs.check(row, config)?;
        }
        Ok(pairs)
    }

    /// Refuses a pair that does not fit together or the configuration.
    fn check(&self, row: usize, config: &Config) -> Result<()> {
        let name = &self.names[row];
        let shape = self.images.row_info(row)?.shape;
        let channel = |set: &Dataset, shape: Shape, channel: usize, key: &str| {
            ensure!(
                channel < shape.c(),
                "{}: {name:?} has {}, but {key} is {channel} (counted from 0)",
                set.store().path().display(),
                counted(shape.c(), "channel")
            );
            ensure!(
                shape.t() == 1,
                "{}: {name:?} has {} time points",
                set.store().path().display(),
                shape.t()
            );
            Ok(())
        };
        channel(&self.images, shape, self.channels[0], "data.image_channel")?;
        ensure!(
            config.model.dimensions == 3 || shape.z() == 1,
            "the image {name:?} has {} planes: set model.dimensions = 3",
            shape.z()
        );
        if let Some(targets) = &self.targets {
            let target = targets.row_info(row)?.shape;
            channel(targets, target, self.channels[1], "data.target_channel")?;
            ensure!(
                target.0[2..] == shape.0[2..],
                "the target of {name:?} has {:?} pixels (Z, Y, X), the image {:?}",
                &target.0[2..],
                &shape.0[2..]
            );
        }
        let [height, width] = config.data.patch;
        ensure!(
            !self.training.contains(&row) || (shape.y() >= height && shape.x() >= width),
            "the image {name:?} has {} x {} pixels, less than data.patch = [{height}, {width}]",
            shape.y(),
            shape.x()
        );
        Ok(())
    }

    /// Reads a whole image (or its target), one channel, as `1 x Z x Y x X x 1` numbers as they are stored.
    ///
    /// # Errors
    /// Pixels that cannot be read.
    pub fn read(set: &Dataset, row: usize, channel: usize, context: &mut ItemContext) -> Result<Tensor> {
        let mut values = vec![];
        let transform = Transform::default().channels([channel]);
        let shape = set.sample_into(row, &transform, &mut values, context)?;
        Tensor::new(values, [1, shape.z(), shape.y(), shape.x(), 1])
    }
}

/// Rows to train on and to validate on.
fn divide(data: &Data, names: &[String], seed: u64, mode: Mode) -> Result<(Vec<usize>, Vec<usize>)> {
    if mode == Mode::Inference {
        return Ok((vec![], (0..names.len()).collect()));
    }
    let chosen: Vec<bool> = match &data.validation {
        Validation::Names(patterns) => {
            for pattern in patterns {
                ensure!(
                    names.iter().any(|name| matches(pattern, name)),
                    "data.validation: no image is called {pattern:?}; {}, the first is {:?}",
                    there_are(names.len(), "image"),
                    names[0]
                );
            }
            names.iter().map(|name| patterns.iter().any(|pattern| matches(pattern, name))).collect()
        }
        Validation::Share(share) => {
            let wanted = (names.len() as f64 * share).round() as usize;
            let count = if *share > 0.0 { wanted.max(1) } else { 0 };
            ensure!(
                count < names.len(),
                "there is one image only: it cannot be both trained and validated on (set data.validation = [] to validate \
                 on none)"
            );
            // The first of a random order, which is the same for a seed.
            let mut uniform = Uniform::new(seed, 0x5eed);
            let mut order: Vec<(u64, usize)> =
                (0..names.len()).map(|row| (uniform.next_u64(), row)).collect();
            order.sort_unstable();
            let mut chosen = vec![false; names.len()];
            order.into_iter().take(count).for_each(|(_, row)| chosen[row] = true);
            chosen
        }
    };
    let (validation, training): (Vec<usize>, Vec<usize>) = (0..names.len()).partition(|&row| chosen[row]);
    ensure!(
        !training.is_empty(),
        "data.validation takes {}, which is all: nothing is left to train on",
        counted(names.len(), "image")
    );
    Ok((training, validation))
}
