//! Writing the same images in several formats at once.
//!
//! ```text
//!  spec ── in_order: threads make images ──▶ this thread, in order ──▶ Writers: one per format ──▶ sets
//!                                                                         └─ checksums ──▶ expected.json
//! ```

use super::formats::{FormatSet, set_name};
use super::record::{EXPECTED, remove_record, write_expected};
use super::source::SetSpec;
use anyhow::{Context as _, Result, bail};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_image::synthetic::{self, SyntheticImage};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::checksum::{ImageChecksum, sha256_hex};
use wellread_store::staged::{self, MadeFolder};
use wellread_store::words::first_few;
use wellread_store::{Error, Format, ImageView, StoreWriter, WriteOptions, registry};

/// Writes a synthetic set in all `formats` below `out`, with `expected.json` and, if asked for, label masks.
///
/// A format that cannot hold such images (a float image in PNG, say) is reported, not fatal.
///
/// # Errors
/// Something that would be written is there already and `options.overwrite` is false, or `out` holds other images (nothing is
/// touched then). Or `out` cannot be written, or another process writes to it.
pub fn generate(
    out: &Path,
    spec: &SetSpec,
    formats: &[&'static Format],
    options: &WriteOptions,
    masks: bool,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<FormatSet>> {
    let (expected, mask_folder) = (out.join(EXPECTED), out.join("masks"));
    let mut targets: Vec<PathBuf> = formats.iter().map(|format| out.join(set_name(format))).collect();
    targets.push(expected.clone());
    targets.extend(masks.then(|| mask_folder.clone()));
    let _made = MadeFolder::new(out).with_context(|| format!("cannot make {}", out.display()))?;
    let _held = staged::hold(out)?;
    // All at once and before the first byte: half a set beside the half of another would be neither.
    if !options.overwrite
        && let Some(there) = targets.iter().find(|target| target.symlink_metadata().is_ok())
    {
        return Err(Error::new(there, "already exists")
            .hint("choose another folder or pass --overwrite")
            .into());
    }
    if let Some(error) = left_of_other_images(out, &expected, &targets).or_else(|| other_images(out)) {
        return Err(error.into());
    }
    // Should a benchmark have prepared this folder, what it noted down is true no longer.
    remove_record(out)?;
    let mut mask_writer = if masks {
        let options = WriteOptions { compression: wellread_store::Compression::Zstd(3), ..options.clone() };
        Some(registry::create(&mask_folder, "tiff", &options)?)
    } else {
        None
    };
    let mut writers = Writers::create(out, formats, options);
    synthesize(spec, &mut writers, mask_writer.as_deref_mut(), options.jobs, done)?;
    let (written, sums) = writers.finish();
    if written.iter().any(|set| set.error.is_none()) {
        if let Some(writer) = mask_writer {
            writer.finish()?;
        }
        write_expected(&expected, &sums)?;
    }
    Ok(written)
}

/// Names of what is written into a folder of sets, but for its records.
fn own_names() -> impl Iterator<Item = String> {
    registry::formats().iter().map(|format| set_name(format)).chain(["masks".to_owned()])
}

/// Why a folder of sets cannot get others in part: sets in formats that are not written again would stay beside checksums of other
/// images. `targets` are written.
fn left_of_other_images(out: &Path, expected: &Path, targets: &[PathBuf]) -> Option<Error> {
    if !expected.is_file() {
        return None;
    }
    let left: Vec<String> =
        own_names().filter(|name| !targets.contains(&out.join(name)) && out.join(name).exists()).collect();
    (!left.is_empty()).then(|| {
        Error::new(out, format_args!("{} would stay from the earlier images", left.join(", "))).hint(
            "write all that is there again (--formats, --masks), remove the others, or choose another folder",
        )
    })
}

/// Why a folder that holds other images than sets of this kind gets none: both would be read as one set.
fn other_images(out: &Path) -> Option<Error> {
    let holds_images = |path: &Path| {
        registry::format_by_ending(path).is_some() || path.is_dir() && registry::recognise(path).is_ok()
    };
    let mut others: Vec<String> = Vec::new();
    for entry in out.read_dir().ok()?.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let is_own = name.starts_with('.') || own_names().any(|own| own == name);
        if !is_own && holds_images(&path) {
            others.push(name);
        }
    }
    // A folder is listed in no order.
    others.sort_unstable();
    (!others.is_empty()).then(|| {
        Error::new(out, format_args!("the folder holds other images already: {}", first_few(&others, 3)))
            .hint("choose another folder, or move these images elsewhere; --overwrite does not remove them")
    })
}

/// Generates the images of `spec` and writes them; ends early when no writer is left.
pub(super) fn synthesize(
    spec: &SetSpec,
    writers: &mut Writers,
    mut masks: Option<&mut (dyn StoreWriter + 'static)>,
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Result<()> {
    let image_spec = spec.image();
    in_order(
        spec.images,
        jobs.max(1),
        |row| synthetic::image(&image_spec, row as u64),
        |_, made| {
            let SyntheticImage { pixels, metadata, mask, .. } = made?;
            let image =
                ImageView { metadata: &metadata, shape: spec.shape, dtype: spec.dtype, pixels: &pixels };
            if writers.write(&image).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if let (Some(writer), Some(mask)) = (masks.as_mut(), mask) {
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
            done();
            Ok(ControlFlow::Continue(()))
        },
    )
}

/// Makes items with `jobs` threads and consumes them in order on this thread, a few ahead at most.
pub(super) fn in_order<T: Send>(
    n: usize,
    jobs: usize,
    make: impl Fn(usize) -> T + Sync,
    mut consume: impl FnMut(usize, T) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let mut receivers = vec![];
        for i in 0..jobs {
            let (send, receive) = std::sync::mpsc::sync_channel(1);
            let (next, make) = (&next, &make);
            let work = move || {
                loop {
                    let row = next.fetch_add(1, Ordering::Relaxed);
                    if row >= n || send.send((row, make(row))).is_err() {
                        return;
                    }
                }
            };
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(_) => receivers.push(receive),
                Err(error) if i == 0 => bail!("cannot start a thread that makes images: {error}"),
                Err(_) => break,
            }
        }
        // Each thread delivers rising rows, so the next row is always at the head of one of the queues.
        let mut heads: Vec<Option<(usize, T)>> = receivers.iter().map(|r| r.recv().ok()).collect();
        for row in 0..n {
            let at = heads.iter().position(|h| h.as_ref().is_some_and(|(r, _)| *r == row));
            let Some((at, (_, item))) = at.and_then(|at| Some((at, heads[at].take()?))) else {
                bail!("making image {row} failed");
            };
            if consume(row, item)?.is_break() {
                break;
            }
            heads[at] = receivers[at].recv().ok();
        }
        Ok(())
    })
}

/// One open writer per format; a format that fails is dropped with its reason while the others go on.
pub(super) struct Writers {
    writers: Vec<(FormatSet, Option<Box<dyn StoreWriter>>)>,
    sums: Vec<ImageChecksum>,
}

impl Writers {
    pub(super) fn create(out: &Path, formats: &[&'static Format], options: &WriteOptions) -> Self {
        let writers = formats
            .iter()
            .map(|format| {
                let path = out.join(set_name(format));
                let (writer, error) = match format.writer(&path, options) {
                    Ok(writer) => (Some(writer), None),
                    Err(e) => (None, Some(e.to_string())),
                };
                (FormatSet { format: format.name, path, error, codec: None }, writer)
            })
            .collect();
        Self { writers, sums: Vec::new() }
    }

    /// Writes an image in every format that has not failed; breaks when none is left.
    pub(super) fn write(&mut self, image: &ImageView<'_>) -> ControlFlow<()> {
        for (set, writer) in &mut self.writers {
            if let Some(Err(e)) = writer.as_mut().map(|w| w.write(image)) {
                set.error = Some(e.to_string());
                *writer = None;
            }
        }
        if self.writers.iter().all(|(_, writer)| writer.is_none()) {
            return ControlFlow::Break(());
        }
        self.sums.push(ImageChecksum {
            row: self.sums.len(),
            name: image.metadata.name.clone(),
            shape_tczyx: image.shape.0,
            dtype: image.dtype.name().to_owned(),
            sha256: sha256_hex(image.pixels),
        });
        ControlFlow::Continue(())
    }

    /// Completes the sets: the result of each, and the checksums of the images.
    pub(super) fn finish(self) -> (Vec<FormatSet>, Vec<ImageChecksum>) {
        let finish = |(mut set, writer): (FormatSet, Option<Box<dyn StoreWriter>>)| {
            if let Some(Err(e)) = writer.map(StoreWriter::finish) {
                set.error = Some(e.to_string());
            }
            set
        };
        (self.writers.into_iter().map(finish).collect(), self.sums)
    }
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
                    Ok(ControlFlow::Continue(()))
                },
            )
            .unwrap();
            assert_eq!(seen, (0..37).map(|i| (i, i * i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failing_consumer_ends_the_makers() {
        let r = in_order(
            1000,
            3,
            |i| i,
            |i, _| if i == 5 { bail!("full disk") } else { Ok(ControlFlow::Continue(())) },
        );
        assert_eq!(r.unwrap_err().to_string(), "full disk");
    }
}
