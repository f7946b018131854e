//! The image sets that benchmarks read: generated or converted into every format, kept until stale.
//!
//! A prepared folder holds one set per format (`images.parquet`, `tiff/` …), `expected.json` with the checksum
//! of every image, and `set.json`, which says what was made from what. Data is made again when that record
//! differs from what is asked for or a set no longer opens, whether results exist or not.

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_image::synthetic::{self, Kind, SyntheticImage};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::checksum::{ImageChecksum, sha256_hex};
use wellread_store::staged;
use wellread_store::{Format, ImageView, StoreWriter, WriteOptions, registry};

/// What a synthetic set is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetSpec {
    /// Number of images.
    pub images: usize,
    /// Size of each along T, C, Z, Y, X.
    pub shape: Shape,
    /// Pixel type.
    pub dtype: PixelType,
    /// Cells or noise.
    pub kind: Kind,
    /// Seed of the images.
    pub seed: u64,
}

/// One format's copy of a set, or why there is none.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenSet {
    /// Format name.
    pub format: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// Why it could not be written.
    pub error: Option<String>,
}

/// Resolves `all` or a list of format names.
///
/// # Errors
/// An unknown name; the message lists the known ones.
pub fn parse_formats(names: &[String]) -> Result<Vec<&'static Format>> {
    if names.iter().any(|n| n == "all") {
        return Ok(registry::formats().to_vec());
    }
    let mut formats: Vec<&'static Format> = Vec::new();
    for name in names.iter().filter(|n| !n.is_empty()) {
        let format = registry::format_named(name)?;
        if !formats.iter().any(|f| f.name == format.name) {
            formats.push(format);
        }
    }
    if formats.is_empty() {
        bail!("no format named; pass all or a list such as parquet,tiff");
    }
    Ok(formats)
}

/// File or folder name of a format's copy inside a prepared folder.
pub fn set_name(format: &Format) -> String {
    if format.set_ending.is_empty() { format.name.to_owned() } else { format!("images{}", format.set_ending) }
}

/// An image in memory on its way to the writers.
pub struct Image {
    /// Name, channels, physical sizes.
    pub metadata: ImageMetadata,
    /// Size along T, C, Z, Y, X.
    pub shape: Shape,
    /// Pixel type.
    pub dtype: PixelType,
    /// C-order little-endian pixels.
    pub pixels: Vec<u8>,
}

/// Writes a synthetic set in all `formats` below `out`, with `expected.json` and, if asked for, label masks.
///
/// A format that cannot hold such images (a float image in PNG, say) is reported, not fatal.
///
/// # Errors
/// `out` cannot be written.
pub fn generate(
    out: &Path,
    spec: &SetSpec,
    formats: &[&'static Format],
    options: &WriteOptions,
    masks: bool,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<WrittenSet>> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut sinks = Sinks::create(out, formats, options);
    let mut mask_writer = if masks {
        let options = WriteOptions {
            overwrite: true,
            compression: wellread_store::Compression::Zstd(3),
            ..options.clone()
        };
        Some(registry::create(out.join("masks"), "tiff", &options)?)
    } else {
        None
    };
    let image_spec =
        synthetic::Spec { kind: spec.kind, shape: spec.shape, dtype: spec.dtype, seed: spec.seed };
    in_order(
        spec.images,
        options.jobs.max(1),
        |row| synthetic::image(&image_spec, row as u64),
        |_, made| {
            let SyntheticImage { pixels, metadata, mask, .. } = made?;
            if let (Some(writer), Some(mask)) = (mask_writer.as_mut(), mask) {
                let bytes: Vec<u8> = mask.iter().flat_map(|v| v.to_le_bytes()).collect();
                let planes = mask.len() / (spec.shape.y() * spec.shape.x());
                let shape = Shape([1, 1, planes, spec.shape.y(), spec.shape.x()]);
                let named = ImageMetadata::named(format!("{}_mask", metadata.name));
                writer.write(&ImageView {
                    metadata: &named,
                    shape,
                    dtype: PixelType::U16,
                    pixels: &bytes,
                })?;
            }
            sinks.write(&Image { metadata, shape: spec.shape, dtype: spec.dtype, pixels });
            done();
            Ok(())
        },
    )?;
    if let Some(writer) = mask_writer {
        writer.finish()?;
    }
    sinks.finish(out)
}

/// Makes items with `jobs` threads and consumes them in order on this thread, a few ahead at most.
fn in_order<T: Send>(
    n: usize,
    jobs: usize,
    make: impl Fn(usize) -> T + Sync,
    mut consume: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let receivers: Vec<_> = (0..jobs)
            .map(|_| {
                let (send, receive) = std::sync::mpsc::sync_channel(1);
                let (next, make) = (&next, &make);
                scope.spawn(move || {
                    loop {
                        let row = next.fetch_add(1, Ordering::Relaxed);
                        if row >= n || send.send((row, make(row))).is_err() {
                            return;
                        }
                    }
                });
                receive
            })
            .collect();
        // Each thread delivers rising rows, so the next row is always at the head of one of the queues.
        let mut heads: Vec<Option<(usize, T)>> = receivers.iter().map(|r| r.recv().ok()).collect();
        for row in 0..n {
            let at = heads.iter().position(|h| h.as_ref().is_some_and(|(r, _)| *r == row));
            let Some((at, (_, item))) = at.and_then(|at| Some((at, heads[at].take()?))) else {
                bail!("making image {row} failed");
            };
            consume(row, item)?;
            heads[at] = receivers[at].recv().ok();
        }
        Ok(())
    })
}

/// One open writer per format; a format that fails is dropped with its reason while the others go on.
struct Sinks {
    sinks: Vec<(WrittenSet, Option<Box<dyn StoreWriter>>)>,
    sums: Vec<ImageChecksum>,
}

impl Sinks {
    fn create(out: &Path, formats: &[&'static Format], options: &WriteOptions) -> Self {
        let options = WriteOptions { overwrite: true, ..options.clone() };
        let sinks = formats
            .iter()
            .map(|format| {
                let path = out.join(set_name(format));
                let (writer, error) = match (format.create)(&path, &options) {
                    Ok(writer) => (Some(writer), None),
                    Err(e) => (None, Some(e.to_string())),
                };
                (WrittenSet { format: format.name, path, error }, writer)
            })
            .collect();
        Self { sinks, sums: Vec::new() }
    }

    fn write(&mut self, image: &Image) {
        self.sums.push(ImageChecksum {
            row: self.sums.len(),
            name: image.metadata.name.clone(),
            shape_tczyx: image.shape.0,
            dtype: image.dtype.name().to_owned(),
            sha256: sha256_hex(&image.pixels),
        });
        let view = ImageView {
            metadata: &image.metadata,
            shape: image.shape,
            dtype: image.dtype,
            pixels: &image.pixels,
        };
        for (set, writer) in &mut self.sinks {
            if let Some(Err(e)) = writer.as_mut().map(|w| w.write(&view)) {
                set.error = Some(e.to_string());
                *writer = None;
            }
        }
    }

    fn finish(self, out: &Path) -> Result<Vec<WrittenSet>> {
        let mut written = Vec::new();
        for (mut set, writer) in self.sinks {
            if let Some(Err(e)) = writer.map(StoreWriter::finish) {
                set.error = Some(e.to_string());
            }
            written.push(set);
        }
        write_json(&out.join("expected.json"), &serde_json::json!({ "images": self.sums }))?;
        Ok(written)
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    Ok(staged::write(path, serde_json::to_vec_pretty(value)?)?)
}

/// Where a benchmark's images come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Generated.
    Synthetic(SetSpec),
    /// An existing set in any format; `planes` makes every plane a row.
    Path {
        /// File or folder.
        path: PathBuf,
        /// Whether to take every plane as an image of its own; `None` does so when shapes differ.
        planes: Option<bool>,
    },
}

/// A set ready to be measured in several formats.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Folder that holds it.
    pub folder: PathBuf,
    /// Per format: where, or why not.
    pub sets: Vec<WrittenSet>,
    /// Checksums of the images in row order.
    pub expected: Vec<ImageChecksum>,
    /// What the images are, in words.
    pub about: String,
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
}

#[derive(Serialize, Deserialize, PartialEq)]
struct SetRecord {
    made_from: String,
    wellread: String,
    formats: Vec<(String, Option<String>)>,
}

/// Makes sure that `folder` holds the set in all `formats`, up to date.
///
/// # Errors
/// The source cannot be read or `folder` cannot be written. A format that cannot hold the images is not an
/// error: its entry carries the reason.
pub fn prepare(
    folder: &Path,
    source: &Source,
    formats: &[&'static Format],
    options: &WriteOptions,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Prepared> {
    let (made_from, about) = describe(source)?;
    let record_path = folder.join("set.json");
    if let Some(mut prepared) = up_to_date(folder, &record_path, &made_from, formats) {
        prepared.about = about;
        return Ok(prepared);
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let _ = std::fs::remove_file(&record_path);
    let done = AtomicUsize::new(0);
    let sets = match source {
        Source::Synthetic(spec) => generate(folder, spec, formats, options, false, &|| {
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, spec.images);
        })?,
        Source::Path { path, planes } => {
            let store = open_source(path, *planes)?;
            let mut sinks = Sinks::create(folder, formats, options);
            let total = store.len();
            store.scan(0..total, &mut |row, info, pixels| {
                // Folders list files by name: the row in front keeps the same order in every format.
                let mut metadata = store.metadata(row)?;
                metadata.name = format!("{row:06}-{}", metadata.name);
                let image = Image { metadata, shape: info.shape, dtype: info.dtype, pixels: pixels.to_vec() };
                sinks.write(&image);
                progress(row + 1, total);
                Ok(())
            })?;
            sinks.finish(folder)?
        }
    };
    let record = SetRecord {
        made_from,
        wellread: env!("CARGO_PKG_VERSION").to_owned(),
        formats: sets.iter().map(|s| (s.format.to_owned(), s.error.clone())).collect(),
    };
    write_json(&record_path, &record)?;
    Ok(Prepared {
        folder: folder.to_owned(),
        sets,
        expected: wellread_store::checksum::read_expected(&folder.join("expected.json"))?,
        about,
    })
}

/// Opens the source set, as planes when asked for or when shapes differ.
pub fn open_source(path: &Path, planes: Option<bool>) -> Result<Box<dyn wellread_store::Store>> {
    let store = wellread_store::open(path, &wellread_store::OpenOptions::default())?;
    if store.is_empty() {
        bail!("{}: there is no image in it", path.display());
    }
    let mixed = || -> Result<bool> {
        let first = store.row_info(0)?;
        for row in 1..store.len() {
            if store.row_info(row)?.shape != first.shape {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let as_planes = match planes {
        Some(planes) => planes,
        None => mixed()?,
    };
    if as_planes {
        return Ok(Box::new(wellread_store::planes::PlaneStore::new(store)?));
    }
    Ok(store)
}

/// An identity that changes when the data would, and a description for people.
fn describe(source: &Source) -> Result<(String, String)> {
    match source {
        Source::Synthetic(s) => {
            let kind = match s.kind {
                Kind::Cells => "cell",
                Kind::Noise => "noise",
            };
            let about = format!(
                "{} generated {kind} images, {} (TCZYX), {}, seed {}",
                s.images, s.shape, s.dtype, s.seed
            );
            Ok((about.clone(), about))
        }
        Source::Path { path, planes } => {
            let store = open_source(path, *planes)?;
            let first = store.row_info(0)?;
            let (mut bytes, mut newest) = (0, std::time::SystemTime::UNIX_EPOCH);
            for file in store.files()? {
                let meta =
                    std::fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?;
                bytes += meta.len();
                newest = newest.max(meta.modified().unwrap_or(newest));
            }
            let stamp = newest.duration_since(std::time::SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis());
            let name = path
                .file_name()
                .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
            let about =
                format!("{} images of {name}, first {} (TCZYX) {}", store.len(), first.shape, first.dtype);
            let full = path.canonicalize().unwrap_or_else(|_| path.clone());
            Ok((format!("{} {about} {bytes} bytes {stamp} ms planes {planes:?}", full.display()), about))
        }
    }
}

fn up_to_date(
    folder: &Path,
    record_path: &Path,
    made_from: &str,
    formats: &[&'static Format],
) -> Option<Prepared> {
    let record: SetRecord = serde_json::from_slice(&std::fs::read(record_path).ok()?).ok()?;
    if record.made_from != made_from || record.wellread != env!("CARGO_PKG_VERSION") {
        return None;
    }
    let expected = wellread_store::checksum::read_expected(&folder.join("expected.json")).ok()?;
    let mut sets = Vec::new();
    for format in formats {
        let (_, error) = record.formats.iter().find(|(name, _)| name == format.name)?;
        let path = folder.join(set_name(format));
        if error.is_none() {
            let store = (format.open)(&path, &wellread_store::OpenOptions::default()).ok()?;
            if store.len() != expected.len() {
                return None;
            }
        }
        sets.push(WrittenSet { format: format.name, path, error: error.clone() });
    }
    let (folder, about) = (folder.to_owned(), String::new());
    Some(Prepared { folder, sets, expected, about })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_arrive_in_order_whatever_the_threads() {
        for jobs in [1, 2, 5] {
            let mut seen = vec![];
            in_order(
                37,
                jobs,
                |i| i * i,
                |i, v| {
                    seen.push((i, v));
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(seen, (0..37).map(|i| (i, i * i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failing_consumer_ends_the_makers() {
        let r = in_order(1000, 3, |i| i, |i, _| if i == 5 { bail!("full disk") } else { Ok(()) });
        assert_eq!(r.unwrap_err().to_string(), "full disk");
    }
}
