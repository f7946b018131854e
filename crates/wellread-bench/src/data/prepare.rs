//! Keeping a folder of sets up to date for a benchmark.
//!
//! `set.json` says what the sets in the folder were made from and which formats hold them. A set is made again
//! when that record differs from what is asked for or the set no longer opens, whether results exist or not.
//! Failures are not recorded: a format that has no copy is tried again by the next run. One that cannot hold the
//! images refuses the first of them, which costs next to nothing; a full disk or a missing permission is
//! forgotten as soon as it is mended.

use super::write::{EXPECTED, Writers, synthesize, write_expected, write_json};
use super::{FormatSet, SetSpec, Source, open_checked, set_name};
use crate::sample::delivered_bytes;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_image::PixelType;
use wellread_image::synthetic::Kind;
use wellread_store::checksum::{ImageChecksum, read_expected};
use wellread_store::convert::pixel_types;
use wellread_store::staged::MadeFolder;
use wellread_store::words::counted;
use wellread_store::{Error, Format, ImageView, OpenOptions, Store, WriteOptions};

/// The record in a folder of sets.
const RECORD: &str = "set.json";

/// A set ready to be measured in several formats.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Folder that holds it.
    pub folder: PathBuf,
    /// Per format: where, or why not.
    pub sets: Vec<FormatSet>,
    /// Checksums of the images in row order.
    pub expected: Vec<ImageChecksum>,
    /// What the images are, in words.
    pub about: String,
    /// Whether the rows are the planes of the images in the sets: of a set that is measured as it lies there.
    pub planes: bool,
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

#[derive(Serialize, Deserialize)]
struct SetRecord {
    made_from: String,
    wellread: String,
    /// Formats whose copy is complete.
    formats: Vec<String>,
}

impl SetRecord {
    fn of(made_from: &str, formats: Vec<String>) -> Self {
        Self { made_from: made_from.to_owned(), wellread: env!("CARGO_PKG_VERSION").to_owned(), formats }
    }

    fn write(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(RECORD), self)
    }
}

/// Makes sure that `folder` holds the set in all `formats`, up to date. Whatever `options` say, sets of an
/// earlier preparation are replaced and nothing else is.
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
    let (mut held, known) = held(folder, &made_from, formats).unwrap_or_default();
    let missing: Vec<&'static Format> =
        formats.iter().copied().filter(|f| !held.iter().any(|name| name == f.name)).collect();
    let mut written = Vec::new();
    let mut expected = known;
    if !missing.is_empty() {
        let _made = claim(folder)?;
        // Before the first set changes: should this be interrupted, the folder is known to be ours and no set
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
            // The same source gives other images now: what is held is stale after all.
            forget(folder)?;
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
    Ok(Prepared { folder: folder.to_owned(), sets, expected, about, planes: false })
}

/// Removes the record of a folder whose sets are about to become something else.
pub(super) fn forget(folder: &Path) -> Result<()> {
    let record = folder.join(RECORD);
    match std::fs::remove_file(&record) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(&record, "cannot remove", &e).into())
        }
        _ => Ok(()),
    }
}

/// Makes the folder if it is missing, and sees to it that only a benchmark's own files can be replaced in it.
fn claim(folder: &Path) -> Result<MadeFolder> {
    let made = MadeFolder::new(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if folder.join(RECORD).exists() {
        return Ok(made);
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
    Ok(made)
}

/// The formats that hold the set already, and its checksums; `None` when there is no record or it is of
/// something else. Formats that nobody asks for keep their place in the record unseen.
fn held(
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
        store: Box<dyn Store>,
        /// Number of images, where the rows are their planes.
        images: Option<usize>,
    },
}

impl<'s> Opened<'s> {
    fn open(source: &'s Source) -> Result<Self> {
        Ok(match source {
            Source::Synthetic(spec) => Self::Synthetic(spec),
            Source::Path { path, planes } => {
                let (store, images) = open_checked(path, *planes)?;
                Self::Stored { path, planes: *planes, store, images }
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
            Self::Stored { path, planes, store, images } => {
                let first = store.row_info(0)?;
                let (mut bytes, mut newest) = (0, std::time::SystemTime::UNIX_EPOCH);
                for file in store.files()? {
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
                    None => counted(store.len(), "image"),
                };
                let about =
                    format!("{what} in {}, first {} (TCZYX) {}", path.display(), first.shape, first.dtype);
                let full = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
                // Sets of earlier versions had the row in front of every name.
                let identity = format!(
                    "{} {about} {bytes} bytes {stamp} ms planes {planes:?}, names as they are",
                    full.display()
                );
                Ok((identity, about))
            }
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
mod tests {
    use super::*;
    use wellread_image::{PixelType, Shape};
    use wellread_store::registry::format_named;

    #[test]
    fn a_crop_leaves_of_each_image_what_it_has() {
        let image = |row, y, x| ImageChecksum {
            row,
            name: String::new(),
            shape_tczyx: [1, 2, 1, y, x],
            dtype: "uint16".to_owned(),
            sha256: String::new(),
        };
        let prepared = Prepared {
            folder: PathBuf::new(),
            sets: vec![],
            expected: vec![image(0, 10, 20), image(1, 4, 30)],
            about: String::new(),
            planes: false,
        };
        assert_eq!(prepared.delivered_bytes(None), 4.0 * (400.0 + 240.0) / 2.0);
        assert_eq!(prepared.delivered_bytes(Some((2, 5))), 4.0 * 20.0);
        assert_eq!(prepared.delivered_bytes(Some((8, 25))), 4.0 * (320.0 + 200.0) / 2.0, "clipped to each");
    }

    fn source() -> Source {
        Source::Synthetic(SetSpec { images: 4, shape: Shape::plane(16, 16), ..SetSpec::default() })
    }

    fn prepare_in(folder: &Path, source: &Source, formats: &[&'static Format]) -> Result<Prepared> {
        prepare(folder, source, formats, &WriteOptions::default(), &|_, _| ())
    }

    /// A format of this name whose writer fails as on a full disk.
    fn on_a_full_disk(name: &str) -> &'static Format {
        let whole = format_named(name).unwrap();
        Box::leak(Box::new(Format {
            create: |path, _| {
                let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
                Err(Error::io(path, "cannot write", &full))
            },
            ..*whole
        }))
    }

    #[test]
    fn a_failure_that_has_passed_is_forgotten_and_the_other_sets_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data");
        let tiff = format_named("tiff").unwrap();
        let first = prepare_in(&folder, &source(), &[tiff, on_a_full_disk("parquet")]).unwrap();
        assert!(first.sets[0].error.is_none());
        assert!(first.sets[1].error.as_deref().is_some_and(|e| e.contains("space")), "{:?}", first.sets);
        let modified = |set: &FormatSet| std::fs::metadata(&set.path).unwrap().modified().unwrap();
        let before = modified(&first.sets[0]);
        let second = prepare_in(&folder, &source(), &[tiff, format_named("parquet").unwrap()]).unwrap();
        assert!(second.sets.iter().all(|set| set.error.is_none()), "{:?}", second.sets);
        assert_eq!(second.expected, first.expected);
        assert_eq!(modified(&second.sets[0]), before, "a good set was written again");
    }

    #[test]
    fn images_that_a_format_cannot_hold_stay_unavailable_and_cost_one_image() {
        let dir = tempfile::tempdir().unwrap();
        let spec = SetSpec { images: 5, dtype: PixelType::F32, ..SetSpec::default() };
        let formats = [format_named("tiff").unwrap(), format_named("image-folder").unwrap()];
        for _ in 0..2 {
            let prepared = prepare_in(dir.path(), &Source::Synthetic(spec), &formats).unwrap();
            assert!(prepared.sets[0].error.is_none() && prepared.sets[1].error.is_some());
            assert_eq!(prepared.expected.len(), 5);
        }
        let done = std::sync::Mutex::new(0);
        prepare(dir.path(), &Source::Synthetic(spec), &formats, &WriteOptions::default(), &|n, _| {
            *done.lock().unwrap() = n;
        })
        .unwrap();
        assert_eq!(*done.lock().unwrap(), 0, "the images were written once more for nobody");
    }

    #[test]
    fn files_of_others_are_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("images.parquet");
        std::fs::write(&precious, b"precious").unwrap();
        let error = prepare_in(dir.path(), &source(), &[format_named("parquet").unwrap()]).unwrap_err();
        assert!(error.to_string().contains("--data-dir"), "{error}");
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn names_and_their_order_are_those_of_the_source_in_every_format() {
        let dir = tempfile::tempdir().unwrap();
        let source_path = dir.path().join("plate.parquet");
        let parquet = format_named("parquet").unwrap();
        let mut writer = (parquet.create)(&source_path, &WriteOptions::default()).unwrap();
        let names = ["r02c01f01", "r01c01f01", "r01c01f01", "b/a"];
        for (i, name) in names.iter().enumerate() {
            let metadata = wellread_image::ImageMetadata::named((*name).to_owned());
            let pixels = vec![i as u8; 64];
            let image = ImageView {
                metadata: &metadata,
                shape: Shape::plane(8, 8),
                dtype: PixelType::U8,
                pixels: &pixels,
            };
            writer.write(&image).unwrap();
        }
        writer.finish().unwrap();
        let source = Source::Path { path: source_path, planes: None };
        let formats: Vec<_> =
            ["tiff", "parquet", "image-folder", "ome-zarr"].map(|name| format_named(name).unwrap()).to_vec();
        let prepared = prepare_in(&dir.path().join("data"), &source, &formats).unwrap();
        let expected: Vec<&str> = prepared.expected.iter().map(|image| image.name.as_str()).collect();
        assert_eq!(expected, names);
        for set in &prepared.sets {
            assert_eq!(set.error, None, "{}", set.format);
            let options = OpenOptions { format: Some(set.format.to_owned()), ..OpenOptions::default() };
            let store = wellread_store::open(&set.path, &options).unwrap();
            for (row, name) in names.iter().enumerate() {
                assert_eq!(store.metadata(row).unwrap().name, *name, "{}", set.format);
            }
        }
    }

    #[test]
    fn another_source_makes_the_folder_stale() {
        let dir = tempfile::tempdir().unwrap();
        let formats = [format_named("parquet").unwrap()];
        let first = prepare_in(dir.path(), &source(), &formats).unwrap();
        let other = SetSpec { images: 3, shape: Shape::plane(16, 16), seed: 7, ..SetSpec::default() };
        let second = prepare_in(dir.path(), &Source::Synthetic(other), &formats).unwrap();
        assert_eq!((first.expected.len(), second.expected.len()), (4, 3));
        let store = (formats[0].open)(&second.sets[0].path, &OpenOptions::default()).unwrap();
        assert_eq!(store.len(), 3);
    }
}
