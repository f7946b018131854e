//! Keeping a folder of sets up to date for a benchmark.
//!
//! `set.json` says what the sets in the folder were made from and which formats hold them. A set is made again
//! when that record differs from what is asked for or the set no longer opens, whether results exist or not.
//! Failures are not recorded: a format that has no copy is tried again by the next run. One that cannot hold the
//! images refuses the first of them, which costs next to nothing. A full disk or a missing permission is
//! forgotten as soon as it is mended.

use super::formats::{FormatSet, set_name};
use super::record::{EXPECTED, RECORD, SetRecord, remove_record, write_expected};
use super::source::{SetSpec, Source, SourceCells, open_checked};
use super::write::{Writers, synthesize};
use crate::sample::delivered_bytes;
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_image::PixelType;
use wellread_image::synthetic::Kind;
use wellread_store::cells::file_and_table;
use wellread_store::checksum::{ImageChecksum, read_expected};
use wellread_store::convert::pixel_types;
use wellread_store::sites::{SiteOptions, tables_beside};
use wellread_store::staged::MadeFolder;
use wellread_store::words::counted;
use wellread_store::{Error, Format, ImageView, OpenOptions, Store, WriteOptions, place};

/// The files of what tells cells: a table, the database that has it, or label images that a pattern fits.
fn table_files(table: &Path) -> Vec<PathBuf> {
    let (file, _) = file_and_table(table);
    if file.exists() {
        return vec![file.to_owned()];
    }
    let labels = wellread_store::open(table, &OpenOptions::default()).and_then(|set| set.files());
    // Those behind a network have no time that is asked for here.
    labels.into_iter().flatten().filter(|file| place::scheme(file).is_none()).collect()
}

/// A set ready to be measured in several formats.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Folder that holds it.
    pub folder: PathBuf,
    /// Per format: where, or why not.
    pub sets: Vec<FormatSet>,
    /// Checksums of the images in row order.
    pub expected: Vec<ImageChecksum>,
    /// The images, in words.
    pub about: String,
    /// Whether the rows are the planes of the images in the sets: of a set that is measured as it lies there.
    pub planes: bool,
    /// Number of images, where the checksums are of their planes.
    pub of_images: Option<usize>,
}

impl Prepared {
    /// Bytes of all pixels.
    pub fn bytes_of_pixels(&self) -> u64 {
        self.expected.iter().map(ImageChecksum::bytes).sum()
    }

    /// Number of pixels of all images.
    pub fn pixels(&self) -> u64 {
        self.expected.iter().map(ImageChecksum::pixels).sum()
    }

    /// Bytes of an image in a batch of `float32`, on average over the set: of what `crop` leaves of each.
    pub fn delivered_bytes(&self, crop: Option<(usize, usize)>) -> f64 {
        let all: f64 = self.expected.iter().map(|image| delivered_bytes(image.shape_tczyx, crop)).sum();
        all / self.expected.len().max(1) as f64
    }
}

/// Makes sure that `folder` holds the set in all `formats`, up to date. Sets of an earlier preparation are
/// replaced for any `options`, and nothing else is.
///
/// # Errors
/// The source cannot be read; `folder` cannot be written, or holds files that no benchmark made. A format that
/// cannot be written is not an error: its entry carries the reason.
pub fn prepare(
    folder: &Path,
    source: &Source,
    formats: &[&'static Format],
    options: &WriteOptions,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Prepared> {
    let opened = Opened::open(source)?;
    let (identity, about) = opened.identity()?;
    let mut made_from = format!("{identity}, compression {}", options.compression);
    if let Some(chunk) = options.chunk {
        made_from += &format!(", chunks of {}", wellread_image::Shape(chunk));
    }
    let (mut held, known) = formats_present(folder, &made_from, formats).unwrap_or_default();
    let missing: Vec<&'static Format> =
        formats.iter().copied().filter(|f| !held.iter().any(|name| name == f.name)).collect();
    let mut written = Vec::new();
    let mut expected = known;
    if !missing.is_empty() {
        // Declared before the writers, so that it looks after what they have begun is gone.
        let (_made, _record) = claim(folder)?;
        // This comes before the first set changes. Should it be interrupted, the folder is known to be ours and no set
        // that is being replaced is taken for a good one.
        SetRecord::of(&made_from, held.clone()).write(folder)?;
        let options = WriteOptions { overwrite: true, types: opened.types(), ..options.clone() };
        let mut writers = Writers::create(folder, &missing, &options);
        opened.write(&mut writers, options.jobs, progress)?;
        let (sets, sums) = writers.finish();
        if held.is_empty() {
            if sets.iter().any(|set| set.error.is_none()) {
                write_expected(&folder.join(EXPECTED), &sums)?;
            }
            expected = sums;
        } else if !expected.starts_with(&sums) {
            // The same source gives other images now: the held sets are stale after all.
            remove_record(folder)?;
            SetRecord::of(&made_from, Vec::new()).write(folder)?;
            return prepare(folder, source, formats, &options, progress);
        }
        held.extend(sets.iter().filter(|set| set.error.is_none()).map(|set| set.format.to_owned()));
        SetRecord::of(&made_from, held).write(folder)?;
        written = sets;
    }
    let set_of = |format: &&'static Format| {
        let made = written.iter().find(|set| set.format == format.name).cloned();
        made.unwrap_or_else(|| FormatSet {
            format: format.name,
            path: folder.join(set_name(format)),
            error: None,
            codec: None,
        })
    };
    let sets = formats.iter().map(set_of).collect();
    let of_images = opened.images();
    Ok(Prepared { folder: folder.to_owned(), sets, expected, about, planes: false, of_images })
}

/// [`prepare`], which reports from several threads, with a callback that is for one.
pub(crate) fn prepare_in_thread(
    folder: &Path,
    source: &Source,
    formats: &[&'static Format],
    options: &WriteOptions,
    progress: &dyn Fn(&str, usize, usize),
) -> Result<Prepared> {
    let done = std::sync::Mutex::new((0, 0));
    std::thread::scope(|scope| {
        let work = || {
            prepare(folder, source, formats, options, &|n, of| {
                *done.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = (n, of);
            })
        };
        let work = std::thread::Builder::new()
            .spawn_scoped(scope, work)
            .context("cannot start the thread that prepares images")?;
        while !work.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let (n, of) = *done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            progress("preparing images", n, of);
        }
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The record of a folder that had none before. It goes when this is dropped and nothing else came into the folder, as on a
/// full disk.
struct NewRecord(Option<PathBuf>);

impl Drop for NewRecord {
    fn drop(&mut self) {
        let Some(folder) = &self.0 else { return };
        let is_record =
            |entry: std::io::Result<std::fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == RECORD);
        if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_record)) {
            drop(remove_record(folder));
        }
    }
}

/// Makes the folder if it is missing, and sees to it that only a benchmark's own files can be replaced in it. Where no set comes
/// into a new folder, nothing stays of it: the record is dropped before the folder.
fn claim(folder: &Path) -> Result<(MadeFolder, NewRecord)> {
    let made = MadeFolder::new(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if folder.join(RECORD).exists() {
        return Ok((made, NewRecord(None)));
    }
    let mut entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "cannot list", &e))?;
    if entries.next().is_some() {
        return Err(Error::new(
            folder,
            "holds files that were not prepared by `wellread bench`; nothing was changed",
        )
        .hint("name a new or empty folder with --data-dir (or --out), or empty this one")
        .into());
    }
    Ok((made, NewRecord(Some(folder.to_owned()))))
}

/// The formats that hold the set already, and its checksums; `None` when there is no record or it is of
/// something else. Formats that nobody asks for keep their place in the record unseen.
fn formats_present(
    folder: &Path,
    made_from: &str,
    formats: &[&'static Format],
) -> Option<(Vec<String>, Vec<ImageChecksum>)> {
    let record: SetRecord = serde_json::from_slice(&std::fs::read(folder.join(RECORD)).ok()?).ok()?;
    if record.made_from != made_from || record.wellread != env!("CARGO_PKG_VERSION") {
        return None;
    }
    let expected = read_expected(&folder.join(EXPECTED)).ok()?;
    let mut held = record.formats;
    held.retain(|name| {
        let Some(format) = formats.iter().find(|f| f.name == name) else { return true };
        let store = (format.open)(&folder.join(set_name(format)), &OpenOptions::default());
        store.is_ok_and(|store| store.len() == expected.len())
    });
    Some((held, expected))
}

/// A source, opened once for all that is asked of it.
enum Opened<'s> {
    Synthetic(&'s SetSpec),
    Stored {
        path: &'s Path,
        planes: Option<bool>,
        cells: Option<&'s SourceCells>,
        sites: &'s SiteOptions,
        store: Box<dyn Store>,
        /// Number of images, where the rows are their planes.
        images: Option<usize>,
    },
}

impl<'s> Opened<'s> {
    fn open(source: &'s Source) -> Result<Self> {
        Ok(match source {
            Source::Synthetic(spec) => Self::Synthetic(spec),
            Source::Path { path, planes, cells, sites } => {
                let cells = cells.as_ref();
                let (store, images) = open_checked(path, *planes, cells, sites)?;
                Self::Stored { path, planes: *planes, cells, sites, store, images }
            }
        })
    }

    /// An identity that changes when the data would, and a description for people.
    fn identity(&self) -> Result<(String, String)> {
        match self {
            Self::Synthetic(s) => {
                let kind = match s.kind {
                    Kind::Cells => "cell",
                    Kind::Noise => "noise",
                };
                let about = format!(
                    "{}, {} (TCZYX), {}, seed {}",
                    counted(s.images, &format!("generated {kind} image")),
                    s.shape,
                    s.dtype,
                    s.seed
                );
                Ok((about.clone(), about))
            }
            Self::Stored { path, planes, cells, sites, store, images } => {
                let first = store.row_info(0)?;
                let (mut bytes, mut newest) = (0, std::time::SystemTime::UNIX_EPOCH);
                let tables = cells.map_or_else(Vec::new, |cells| table_files(&cells.table));
                // The set of cells has the files of masks. Here their folder counts as well.
                let masks =
                    cells.and_then(|cells| cells.options.masks.clone()).filter(|masks| masks.exists());
                let stored = store.files()?;
                // Tables and indexes say which images there are, and what their channels are called.
                let beside = tables_beside(path, &stored);
                let all: BTreeSet<PathBuf> =
                    stored.into_iter().chain(beside).chain(tables).chain(masks).collect();
                for file in all {
                    let meta = std::fs::metadata(&file)
                        .with_context(|| format!("cannot read {}", file.display()))?;
                    bytes += meta.len();
                    newest = newest.max(meta.modified().unwrap_or(newest));
                }
                let stamp =
                    newest.duration_since(std::time::SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis());
                let what = match images {
                    Some(images) => {
                        format!("{} of the {}", counted(store.len(), "plane"), counted(*images, "image"))
                    }
                    None => counted(store.len(), store.hints().thing()),
                };
                let about =
                    format!("{what} in {}, first {} (TCZYX) {}", path.display(), first.shape, first.dtype);
                let full = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
                // Sets of earlier versions had the row in front of every name.
                let mut identity = format!(
                    "{} {about} {bytes} bytes {stamp} ms planes {planes:?}, names as they are",
                    full.display()
                );
                if let Some(cells) = cells {
                    identity += &format!(", {cells:?}");
                }
                if !sites.is_default() {
                    identity += &format!(", {sites:?}");
                }
                Ok((identity, about))
            }
        }
    }

    /// Number of images, where the rows are their planes.
    fn images(&self) -> Option<usize> {
        match self {
            Self::Synthetic(_) => None,
            Self::Stored { images, .. } => *images,
        }
    }

    /// Types of the images, each once.
    fn types(&self) -> Vec<PixelType> {
        match self {
            Self::Synthetic(spec) => vec![spec.dtype],
            Self::Stored { store, .. } => pixel_types(&**store),
        }
    }

    /// Writes the images in row order; ends early when no writer is left.
    fn write(
        &self,
        writers: &mut Writers,
        jobs: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<()> {
        match self {
            Self::Synthetic(spec) => {
                let done = AtomicUsize::new(0);
                synthesize(spec, writers, None, jobs, &|| {
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, spec.images);
                })
            }
            Self::Stored { path, store, .. } => {
                let total = store.len();
                let mut ended_early = false;
                let scanned = store.scan(0..total, &mut |row, info, pixels| {
                    let metadata = store.metadata(row)?;
                    let image =
                        ImageView { metadata: &metadata, shape: info.shape, dtype: info.dtype, pixels };
                    if writers.write(&image).is_break() {
                        ended_early = true;
                        return Err(Error::new(path, "no format is left to be written"));
                    }
                    progress(row + 1, total);
                    Ok(())
                });
                match scanned {
                    Err(e) if !ended_early => Err(e.into()),
                    _ => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
