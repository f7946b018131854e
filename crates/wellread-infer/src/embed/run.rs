//! All of it in order: images to features, parts, the table.

use super::extractor::Extractor;
use super::features::Features;
use super::fingerprint::{ModelRecord, fingerprint};
use super::join::{Joined, MADE_OF, Parts, look_at};
use super::model::Chosen;
use super::options::EmbedOptions;
use super::parts::{self, PartWriter};
use super::since::is_later;
use super::table::{check_columns, metadata};
use crate::colors::Colors;
use crate::source::{PREFETCH_BATCHES, Unreadable};
use anyhow::{Result, anyhow, ensure};
use parquet::file::metadata::KeyValue;
use std::path::{Path, PathBuf};
use wellread_loader::{Batch, Batches, Dataset, Loader, OnError};
use wellread_measure::clock::Stopwatch;
use wellread_store::staged::{self, Staged};
use wellread_store::{Error, Renamed, Store, place};

/// What happens meanwhile.
#[derive(Debug)]
pub enum Event<'a> {
    /// The model was opened, by what is told in words, with what a reader must know.
    Opened(&'a str, &'a [String]),
    /// What an interrupted run had left was removed, since this one does not go on with it.
    Discarded(&'a Path),
    /// So many images are there already.
    Resumed(usize),
    /// Columns have other names in the table than their own with `Metadata_` before it.
    Renamed(&'a [Renamed]),
    /// So many more images are done.
    Images(usize),
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Images in the table.
    pub images: usize,
    /// Features of each.
    pub features: usize,
    /// Images that were left out.
    pub left_out: Vec<Unreadable>,
    /// Images that were there already.
    pub resumed: usize,
    /// Whether the table was there already, so that nothing was done.
    pub complete: bool,
    /// Seconds from the first image to the table, without opening the model.
    pub seconds: f64,
    /// What ran the model, in words.
    pub backend: String,
    /// SHA-256 of the model's file, where it has one.
    pub sha256: Option<String>,
    /// The table.
    pub out: PathBuf,
}

/// The file in the folder of parts that becomes the table.
const JOINED: &str = "table.parquet";

/// Computes the features of all images of a set and writes them as a table.
///
/// # Errors
/// A model that cannot be opened or does not fit the images; an image that cannot be read or whose features are no numbers, unless
/// those are left out; a table that is there; a disk that is full. What is complete is kept, and gone on with.
pub fn run(store: Box<dyn Store>, options: &EmbedOptions, tell: &dyn Fn(&Event<'_>)) -> Result<Summary> {
    check_out(options)?;
    // Of pictures, grey ones may lie among coloured ones.
    let store: Box<dyn Store> = if store.format() == "image-folder" && options.transform.channels.is_none() {
        Box::new(Colors::new(store))
    } else {
        store
    };
    if let Some(columns) = &options.columns {
        check_columns(&*store, &store.hints().feature_names(), columns)?;
    }
    let dataset = Dataset::from_store(store);
    let mut chosen = Chosen::find(options)?;
    let batch = chosen.batch().unwrap_or_else(|| options.batch_size.min(dataset.len().max(1)));
    let loader = Loader::builder(&dataset)
        .batch_size(batch)
        .transform(options.transform.clone())
        .workers(options.workers)
        .prefetch(PREFETCH_BATCHES.max(options.workers))
        .on_error(if options.skip { OnError::Skip } else { OnError::Raise })
        .build()
        .map_err(|error| with_hint(error, options.skip))?;
    let input = planes(&dataset, &loader)?;
    chosen.fit(&dataset.store().path().display().to_string(), input)?;
    chosen.draw_weights(options)?;
    let mut extractor = Extractor::start(&chosen, input, options)?;
    let opened = extractor.opened()?;
    tell(&Event::Opened(&opened.backend, &opened.notes));
    let model = ModelRecord::new(options, chosen.file.as_deref(), opened)?;
    let images = dataset.len();
    let part = options.part_rows.div_ceil(batch).saturating_mul(batch);
    let made_of = fingerprint(options, &model, [images, batch, part], &opened.device_type);
    let summary = |found: Joined, resumed: usize, seconds: f64| Summary {
        images: found.rows,
        features: found.width,
        left_out: found.left_out,
        resumed,
        complete: resumed == images,
        seconds,
        backend: model.backend.clone(),
        sha256: model.sha256.clone(),
        out: options.out.clone(),
    };
    if let Some(found) = complete(options, &made_of, dataset.store())? {
        return Ok(summary(found, images, 0.0));
    }
    if !options.resume {
        // What an earlier run left is not wanted any more.
        let left = staged::part(&options.out);
        drop(Staged::new(&options.out, options.overwrite)?);
        if let Some(left) = left.filter(|left| !left.exists()) {
            tell(&Event::Discarded(&left));
        }
    }
    let staged = Staged::resumable(&options.out, options.overwrite, &made_of)?;
    let folder = staged.path().to_owned();
    let of_parts = images.div_ceil(part);
    let whole = parts::whole(&folder, staged.complete().min(of_parts));
    let is_of_these_images = |number: &usize| {
        let rows: Vec<usize> = (number * part..images.min((number + 1).saturating_mul(part))).collect();
        is_later(&parts::path_of(&folder, *number), dataset.store(), &rows)
    };
    let first = (0..whole).take_while(is_of_these_images).count();
    let resumed = (first * part).min(images);
    if resumed > 0 {
        tell(&Event::Resumed(resumed));
    }
    let begin = Stopwatch::start();
    let mut work = Work { options, dataset: &dataset, staged: &staged, images, part, next: resumed, tell };
    let done = work.all(&loader, batch, first, &mut extractor);
    drop(extractor);
    let joined = done.and_then(|()| {
        let all = Parts { folder: &folder, number: of_parts, images, target: &options.out };
        let found = all.look()?;
        let left_out = found.left_out.iter().map(|image| image.row).collect();
        let (columns, renamed) = metadata(dataset.store(), options.columns.as_deref(), &left_out)?;
        if !renamed.is_empty() {
            tell(&Event::Renamed(&renamed));
        }
        let words = words(options, &dataset, &model, &made_of);
        all.join(found, &folder.join(JOINED), columns, options.layout, words)
    });
    let joined = match joined {
        Ok(joined) => joined,
        Err(error) => {
            let nothing = parts::whole(&folder, 1) == 0;
            drop(staged);
            if nothing {
                // Nothing to go on with.
                drop(Staged::new(&options.out, options.overwrite));
            }
            return Err(error);
        }
    };
    staged.commit_file(JOINED)?;
    Ok(Summary { complete: false, ..summary(joined, resumed, begin.elapsed()) })
}

/// Refuses what cannot become the table, before anything is computed.
fn check_out(options: &EmbedOptions) -> Result<(), Error> {
    let out = &options.out;
    if place::is_registered(out) {
        return Err(Error::new(out, "the table is written on this machine, not to an address")
            .choice()
            .hint("write a file here, then copy it"));
    }
    if out.is_dir() {
        return Err(Error::new(out, "is a folder, and the table is a file")
            .choice()
            .hint(format_args!("name a file in it: --out {}", out.join("profiles.parquet").display())));
    }
    if !options.overwrite && !options.resume && out.symlink_metadata().is_ok() {
        return Err(Error::new(out, "already exists").hint("choose another name or pass --overwrite"));
    }
    Ok(())
}

/// What a table that is there holds, where it is what this command would write and may stay.
fn complete(options: &EmbedOptions, made_of: &str, store: &dyn Store) -> Result<Option<Joined>, Error> {
    let out = &options.out;
    if !options.resume || options.overwrite || out.symlink_metadata().is_err() {
        return Ok(None);
    }
    match look_at(out) {
        Some((found, joined)) if found == made_of => {
            let rows: Vec<usize> = (0..store.len()).collect();
            if is_later(out, store, &rows) {
                return Ok(Some(joined));
            }
            Err(Error::new(out, "is complete, but images that it is of were written since")
                .hint("--overwrite writes it anew, or choose another name"))
        }
        Some(_) => Err(Error::new(out, "is complete, but of other images, another model or other options")
            .hint("--overwrite writes it anew, or choose another name")),
        None => Err(Error::new(out, "already exists, and no `wellread embed` has written it")
            .hint("choose another name or pass --overwrite")),
    }
}

/// Channels, rows and columns of the images that the loader delivers.
fn planes(dataset: &Dataset, loader: &Loader) -> Result<[usize; 3]> {
    let shape = loader.image_shape();
    let [t, c, z, y, x] = shape.0;
    if t != 1 || z != 1 {
        let cause = format!("the images are volumes or series (TCZYX {shape}), and a model takes planes");
        let hint =
            if t == 1 { "--max-projection takes the maximum over depth" } else { "take single time points" };
        return Err(Error::new(dataset.store().path(), cause).hint(hint).into());
    }
    Ok([c, y, x])
}

/// What the file says of itself.
fn words(options: &EmbedOptions, dataset: &Dataset, model: &ModelRecord, made_of: &str) -> Vec<KeyValue> {
    let pair = |key: &str, value: &str| KeyValue::new(format!("wellread.{key}"), value.to_owned());
    let mut words = vec![
        KeyValue::new(MADE_OF.to_owned(), made_of.to_owned()),
        pair("version", env!("CARGO_PKG_VERSION")),
        pair("command", &options.frameworks.command),
        pair("set", &dataset.store().path().to_string_lossy()),
        pair("model", &model.name),
        pair("backend", &model.backend),
        pair("transform", &format!("{:?}", options.transform)),
        pair("pool", options.pool.name()),
    ];
    words.extend(model.sha256.as_deref().map(|sum| pair("model.sha256", sum)));
    words.extend(options.output.as_deref().map(|name| pair("model.output", name)));
    words
}

/// The images that are left, in the order of the set.
struct Work<'a> {
    options: &'a EmbedOptions,
    dataset: &'a Dataset,
    staged: &'a Staged,
    images: usize,
    /// Images of a part, a multiple of the batch.
    part: usize,
    /// The first image that is neither in a part nor left out.
    next: usize,
    tell: &'a dyn Fn(&Event<'_>),
}

impl Work<'_> {
    /// Does all from part `first` on.
    fn all(&mut self, loader: &Loader, batch: usize, first: usize, extractor: &mut Extractor) -> Result<()> {
        let mut part = PartWriter::new(self.staged.path(), &self.options.out, first);
        if self.next < self.images {
            let mut batches = loader.iter_at(0, self.next / batch);
            while let Some(found) = batches.next() {
                let found = found.map_err(|error| with_hint(error, self.options.skip))?;
                part = self.take(&found, batch, part, &batches, extractor)?;
            }
            part = self.leave_out_until(self.images, &[], part, &batches)?;
        }
        self.advance(self.images.div_ceil(self.part), part).map(drop)
    }

    /// The features of a batch. Batches are whole in the order of the set, but for images that were left out.
    fn take(
        &mut self,
        found: &Batch,
        batch: usize,
        part: PartWriter,
        batches: &Batches,
        extractor: &mut Extractor,
    ) -> Result<PartWriter> {
        let rows = found.rows();
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return Ok(part) };
        ensure!(first >= self.next && last < self.images, "rows {first} to {last} come out of order");
        let features = extractor.features(found.pixels(), rows.len())?;
        self.options.layout.check(features.width)?;
        let end = ((first / batch + 1) * batch).min(self.images);
        let part = self.leave_out_until(first, &[], part, batches)?;
        let part = self.advance(first / self.part, part)?;
        let part = self.put(rows, &features, part)?;
        let part = self.leave_out_until(end, rows, part, batches)?;
        self.advance(end / self.part, part)
    }

    /// Writes features of images, of which those must be numbers.
    fn put(&self, rows: &[usize], features: &Features, mut part: PartWriter) -> Result<PartWriter> {
        let bad: Vec<(usize, usize, f32)> =
            if self.options.allow_nan { Vec::new() } else { features.not_finite().collect() };
        if bad.is_empty() {
            part.put(rows, features)?;
            return Ok(part);
        }
        for &(image, feature, value) in &bad {
            let row = rows[image];
            let name = self.dataset.name(row).unwrap_or_default();
            let reason = format!("feature {feature} that the model gave for it is {value}");
            if !self.options.skip {
                return Err(Error::new(
                    self.dataset.store().path(),
                    format_args!("image {name:?}: {reason}"),
                )
                .row(row)
                .hint("--allow-nan keeps such features, --on-error skip leaves the image out")
                .into());
            }
            part.leave_out(Unreadable { row, name, reason });
        }
        let kept: Vec<usize> = (0..rows.len()).filter(|image| bad.iter().all(|(b, ..)| b != image)).collect();
        if !kept.is_empty() {
            let rows: Vec<usize> = kept.iter().map(|&image| rows[image]).collect();
            part.put(&rows, &features.only(&kept))?;
        }
        Ok(part)
    }

    /// Notes that the images before `end` could not be read that are not among `rows`.
    fn leave_out_until(
        &mut self,
        end: usize,
        rows: &[usize],
        mut part: PartWriter,
        batches: &Batches,
    ) -> Result<PartWriter> {
        let from = self.next;
        for row in (from..end).filter(|row| !rows.contains(row)) {
            part = self.advance(row / self.part, part)?;
            let listed = batches.skipped().rows().iter().find(|(skipped, _)| *skipped == row);
            let reason = listed.map_or_else(
                || "it cannot be read, as many before it".to_owned(),
                |(_, error)| error.to_string(),
            );
            let name = self.dataset.name(row).unwrap_or_default();
            part.leave_out(Unreadable { row, name, reason });
        }
        self.next = self.next.max(end);
        (self.tell)(&Event::Images(end.saturating_sub(from)));
        Ok(part)
    }

    /// Finishes parts until `number` is the one that is written.
    fn advance(&self, number: usize, mut part: PartWriter) -> Result<PartWriter> {
        while part.number < number {
            let done = part.number;
            part.finish()?;
            self.staged.completed(done)?;
            part = PartWriter::new(self.staged.path(), &self.options.out, done + 1);
        }
        Ok(part)
    }
}

/// The error of an image that cannot be read, with what else can be done.
fn with_hint(error: Error, skip: bool) -> anyhow::Error {
    if skip || error.row_index().is_none() {
        return error.into();
    }
    anyhow!("{error}; --on-error skip leaves out images that cannot be read")
}
