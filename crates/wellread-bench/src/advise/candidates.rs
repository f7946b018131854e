//! The sample written in several ways: every format of the build, codecs, chunk sizes. Each is measured once while it
//! is written, and there are never more than the disk has room for.

use super::settings::Settings;
use crate::data::set_name;
use crate::sample::Sample;
use crate::storage::InMemory;
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};
use wellread_image::Shape;
use wellread_measure::clock::Stopwatch;
use wellread_measure::environment::Storage;
use wellread_store::subset::Subset;
use wellread_store::words::counted;
use wellread_store::{Compression, Format, OpenOptions, Store, StoreWriter, WriteOptions, place, registry};

/// Codecs that are tried, where a format has them.
const CODECS: [Compression; 4] =
    [Compression::Default, Compression::None, Compression::Lz4, Compression::Zstd(3)];
/// Chunk sizes along Y and X that are tried for images larger than that.
const TILE: usize = 256;
/// Share of the time budget that writing may take.
const WRITING_SHARE: f64 = 0.3;
/// Bytes of the disk that stay free in any case.
const MIN_FREE_BYTES: u64 = 256 << 20;

/// One way of writing the sample, or the set as it is.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// Format name.
    pub format: &'static str,
    /// As given to the writer; `None` of the set as it is.
    pub compression: Option<Compression>,
    /// Chunk size along T, C, Z, Y, X; `None` for the format's own.
    pub chunk: Option<[usize; 5]>,
    /// The codec of the pixels.
    pub codec: String,
    /// The unit of decoding.
    pub pieces: String,
    /// Seconds to write the sample once.
    pub write_s: Option<f64>,
    /// Images in it.
    pub images: usize,
    /// Bytes on disk for an image.
    pub bytes_per_image: f64,
    /// Where it is.
    #[serde(skip)]
    pub path: PathBuf,
    /// Whether another candidate has the same codec and chunks: a format's own choice may be none, too. The name then says what was
    /// asked for.
    #[serde(skip)]
    pub has_namesake: bool,
}

impl Candidate {
    /// Whether this is the user's own set.
    pub fn is_own_set(&self) -> bool {
        self.compression.is_none()
    }

    /// The name in tables and sentences.
    pub fn name(&self) -> String {
        if self.is_own_set() {
            return format!("as it is ({}, {})", self.format, self.codec);
        }
        let chunk = chunk_in_words(self.chunk);
        // Beside the level that is the format's own.
        let level = match self.compression {
            Some(Compression::Zstd(level)) if self.codec.contains("zstd") => format!(", level {level}"),
            // PNG has no other codec.
            Some(Compression::None) if self.codec.contains("deflate") => ", level 0".to_owned(),
            _ => String::new(),
        };
        let asked = self.compression.filter(|_| self.has_namesake);
        let asked = asked.map_or(String::new(), |asked| format!(", --compression {asked}"));
        format!("{} ({}{level}{chunk}{asked})", self.format, self.codec)
    }

    /// Opens it: the user's set as the user's options say, copies as what they were written.
    ///
    /// # Errors
    /// A set that cannot be opened.
    pub fn open(&self, own: &crate::feed::Open<'_>) -> Result<Box<dyn Store>> {
        if self.is_own_set() {
            return own();
        }
        let options = OpenOptions { format: Some(self.format.to_owned()), ..OpenOptions::default() };
        Ok(wellread_store::open(&self.path, &options)?)
    }
}

/// The result of writing.
pub struct WriteOutcome {
    /// Those that were written.
    pub candidates: Vec<Candidate>,
    /// Names of the ways that there was no time for.
    pub untried: Vec<String>,
    /// The parts that were left out, and the reasons.
    pub notes: Vec<String>,
}

/// The images of a sample in memory.
///
/// # Errors
/// Images that cannot be read.
pub(crate) fn load(store: Box<dyn Store>, sample: &Sample) -> Result<Vec<InMemory>> {
    let subset = Subset::of(store, sample.rows.clone());
    let mut images = Vec::with_capacity(sample.rows.len());
    subset.scan(0..sample.rows.len(), &mut |row, info, pixels| {
        images.push(InMemory { metadata: subset.metadata(row)?, info, pixels: pixels.to_vec() });
        Ok(())
    })?;
    Ok(images)
}

/// A way of writing: the format, the codec, and the chunk where it is not the format's own.
type WriteVariant = (&'static Format, Compression, Option<[usize; 5]>);

/// The ways of writing to be tried, formats in the order of the registry: each codec, and tiles where images are large.
fn write_variants(formats: &[&'static Format], shape: Shape) -> Vec<WriteVariant> {
    let mut variants = Vec::new();
    for &format in formats {
        variants.extend(CODECS.map(|codec| (format, codec, None)));
        let [_, _, z, y, x] = shape.0;
        if y > TILE || x > TILE {
            variants.push((format, Compression::Default, Some([1, 1, 1, y.min(TILE), x.min(TILE)])));
        }
        if z > 1 {
            // A volume at once.
            variants.push((format, Compression::Default, Some([1, 1, z, y, x])));
        }
    }
    variants
}

/// The options of writing these images in a way.
fn write_options((_, compression, chunk): &WriteVariant, images: &[InMemory]) -> WriteOptions {
    WriteOptions {
        compression: *compression,
        chunk: *chunk,
        jobs: wellread_worker::threads(),
        types: images.iter().map(|image| image.info.dtype).collect(),
        ..WriteOptions::default()
    }
}

/// Whether a way is the format's own choice.
fn is_default((_, compression, chunk): &WriteVariant) -> bool {
    *compression == Compression::Default && chunk.is_none()
}

/// Those of the ways that their formats have. Writers begin in `folder`, and leave nothing there. A format's own choice stays
/// although it is refused.
///
/// # Errors
/// A folder that cannot be written.
fn possible(variants: &[WriteVariant], folder: &Path, images: &[InMemory]) -> Result<Vec<WriteVariant>> {
    let mut possible = Vec::with_capacity(variants.len());
    for (number, way) in variants.iter().enumerate() {
        let is_refused = || -> Result<bool> {
            let own = folder.join(format!("begun-{number}"));
            place::create_folder(&own).with_context(|| format!("cannot make {}", own.display()))?;
            let path = own.join(set_name(way.0));
            let begun = registry::create(path, way.0.name, &write_options(way, images));
            let is_refused = begun.is_err_and(|error| error.is_choice());
            // The rest of it is removed with the folder.
            let _ = std::fs::remove_dir_all(&own);
            Ok(is_refused)
        };
        if is_default(way) || !is_refused()? {
            possible.push(*way);
        }
    }
    Ok(possible)
}

/// Formats that a set can be converted to; second readers and writers of another's files are none.
///
/// # Errors
/// A name that is unknown.
pub fn formats(names: &[String]) -> Result<Vec<&'static Format>> {
    let named = crate::data::parse_formats(names)?;
    let all = names.iter().any(|name| name == "all");
    Ok(named.into_iter().filter(|format| !all || !format.endings.is_empty()).collect())
}

/// Writes the sample in every way into `folder`, until `settings` say that it took long enough. Ways that come out as
/// another did are removed again.
///
/// # Errors
/// A folder that cannot be written. A way that a format cannot do is left out with a note.
pub(crate) fn write(
    images: &[InMemory],
    settings: &Settings,
    folder: &Path,
    shape: Shape,
    progress: &dyn Fn(usize, usize),
) -> Result<WriteOutcome> {
    let pixels: u64 = images.iter().map(|image| image.pixels.len() as u64).sum();
    let clock = Stopwatch::start();
    let write_variants = write_variants(&formats(&settings.formats)?, shape);
    let (mut candidates, mut untried, mut notes) = (Vec::<Candidate>::new(), vec![], Vec::<String>::new());
    let budget = settings.time_budget.as_secs_f64() * WRITING_SHARE;
    let mut slowest: f64 = 0.0;
    for (number, way) in write_variants.iter().enumerate() {
        progress(number, write_variants.len());
        // Nobody misses a way that its format does not have.
        let rest = || possible(&write_variants[number..], folder, images);
        if clock.elapsed() + slowest > budget && !candidates.is_empty() {
            untried = rest()?.iter().map(write_variant_name).collect();
            break;
        }
        let free = Storage::of(folder).and_then(|storage| storage.free_bytes);
        if let Some(free) = free.filter(|free| *free < 2 * pixels + MIN_FREE_BYTES) {
            notes.extend(note_on_room(rest()?.len(), free, folder));
            break;
        }
        let place = folder.join(number.to_string());
        let begun = clock.elapsed();
        let written = write_one(images, way, &place);
        slowest = slowest.max(clock.elapsed() - begun);
        let same = |a: &Candidate, b: &Candidate| {
            a.format == b.format
                && (&a.codec, &a.pieces) == (&b.codec, &b.pieces)
                // A smaller difference is that of their headers.
                && (a.bytes_per_image - b.bytes_per_image).abs() < 1e-3 * b.bytes_per_image
        };
        let is_new = match written {
            Ok(candidate) => {
                let is_new = !candidates.iter().any(|known| same(known, &candidate));
                candidates.extend(is_new.then_some(candidate));
                is_new
            }
            Err(error) => {
                // The error of the format's own choice counts for all ways of it.
                if is_default(way) {
                    notes.push(format!("{}: {error:#}", way.0.name));
                }
                false
            }
        };
        if !is_new {
            // The rest of it is removed with the folder.
            let _ = std::fs::remove_dir_all(&place);
        }
    }
    progress(write_variants.len(), write_variants.len());
    tell_apart(&mut candidates);
    Ok(WriteOutcome { candidates, untried, notes })
}

/// Gives candidates of one name names that differ.
fn tell_apart(candidates: &mut [Candidate]) {
    let names: Vec<String> = candidates.iter().map(Candidate::name).collect();
    for (candidate, name) in candidates.iter_mut().zip(&names) {
        candidate.has_namesake = names.iter().filter(|other| *other == name).count() > 1;
    }
}

/// The note on so many ways that there was no room to write; `None` where no format has any of the rest.
fn note_on_room(left: usize, free: u64, folder: &Path) -> Option<String> {
    let were = if left == 1 { "was" } else { "were" };
    (left > 0).then(|| {
        format!(
            "{} of writing {were} not tried: {:.1} MB are free on the disk of {} (hint: --scratch FOLDER on another \
             disk)",
            counted(left, "way"),
            free as f64 / 1e6,
            folder.display()
        )
    })
}

/// A way of writing in words, as [`Candidate::name`] has what it became; ways that differ differ in it.
fn write_variant_name((format, compression, chunk): &WriteVariant) -> String {
    let codec = match compression {
        Compression::Zstd(level) => format!("zstd, level {level}"),
        other => other.to_string(),
    };
    format!("{} ({codec}{})", format.name, chunk_in_words(*chunk))
}

/// A chunk in a name, behind the codec; nothing of the format's own.
fn chunk_in_words(chunk: Option<[usize; 5]>) -> String {
    chunk.map_or(String::new(), |[_, _, z, y, x]| format!(", chunks {z}x{y}x{x}"))
}

fn write_one(images: &[InMemory], way: &WriteVariant, folder: &Path) -> Result<Candidate> {
    let (format, options) = (way.0, write_options(way, images));
    place::create_folder(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(set_name(format));
    let clock = Stopwatch::start();
    let mut writer = registry::create(&path, format.name, &options)?;
    for image in images {
        writer.write(&image.view())?;
    }
    StoreWriter::finish(writer)?;
    let write_s = clock.elapsed();
    let store = wellread_store::open(
        &path,
        &OpenOptions { format: Some(format.name.to_owned()), ..OpenOptions::default() },
    )?;
    let layout = store.layout()?;
    Ok(Candidate {
        format: format.name,
        compression: Some(options.compression),
        chunk: options.chunk,
        codec: layout.codec,
        pieces: layout.pieces,
        write_s: Some(write_s),
        images: images.len(),
        bytes_per_image: store.bytes_on_disk()? as f64 / images.len() as f64,
        path,
        has_namesake: false,
    })
}

/// The user's set as it is.
///
/// # Errors
/// A set that cannot be looked at.
pub fn as_it_is(store: &dyn Store) -> Result<Candidate> {
    let layout = store.layout()?;
    Ok(Candidate {
        format: store.format(),
        compression: None,
        chunk: None,
        codec: layout.codec,
        pieces: layout.pieces,
        write_s: None,
        images: store.len(),
        bytes_per_image: store.bytes_on_disk()? as f64 / store.len().max(1) as f64,
        path: store.path().to_owned(),
        has_namesake: false,
    })
}

#[cfg(test)]
impl Candidate {
    /// One of a few images, for tests.
    pub(super) fn sample(format: &'static str, compression: Option<Compression>) -> Self {
        Self {
            format,
            compression,
            chunk: None,
            codec: "lz4".to_owned(),
            pieces: String::new(),
            write_s: None,
            images: 100,
            bytes_per_image: 100.0,
            path: "x".into(),
            has_namesake: false,
        }
    }
}

#[cfg(test)]
mod tests;
