//! Converting any format to any other, streaming.
//!
//! One thread reads in storage order, the caller's thread writes; between them, and in threads of the writer, wait at most
//! [`ConvertOptions::memory`] bytes of pixels. The target appears only when complete (see [`crate::staged`]); before that,
//! what was written can be compared with what a reader finds there ([`Converted::check`]).

use crate::byte_budget::ByteBudget;
use crate::each_row;
use crate::features::FeatureColumns;
use crate::finished::Finished;
use crate::format::format_named;
use crate::read_back::{self, Digests};
use crate::row_location::UnlikeRows;
use crate::surface::option;
use crate::{Error, ImageView, OpenOptions, Result, Store, StoreWriter, open, threads, try_alloc};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_trace::{Kind, labelled, span};

/// How to convert.
#[derive(Clone, Copy, Debug)]
pub struct ConvertOptions {
    /// Bytes of pixels that may wait between reader and writer, and in the writer's threads ([`Self::of_writer`]); at least one
    /// image always may in each.
    pub memory: u64,
}

impl ConvertOptions {
    /// The bytes of the writer's threads: [`WriteOptions::memory`](crate::WriteOptions::memory).
    pub const fn of_writer(self) -> u64 {
        self.memory / 2
    }

    /// The bytes that wait for the writer.
    const fn of_reader(self) -> u64 {
        self.memory - self.of_writer()
    }
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self { memory: 1 << 30 }
    }
}

/// A conversion that has written everything, and not yet moved it to its place.
#[derive(Debug)]
#[must_use = "it is not at its place before `commit`"]
pub struct Converted {
    /// Digests of what was handed to the writer.
    pub digests: Digests,
    /// The output.
    pub output: Finished,
    /// Whether files of the output have checksums of their own, once it was opened by [`Self::check`] or [`Self::left_out`].
    pub has_checksums: OnceLock<bool>,
}

impl Converted {
    /// Reads all output back, in the format of that name, and compares it with `source`. `columns` are those that the
    /// writer was given to put beside the images. It returns the facts that the target has no place for
    /// ([`read_back::check`]).
    ///
    /// # Errors
    /// It cannot be opened; as [`read_back::check`] and [`read_back::check_columns`].
    pub fn check(
        &self,
        source: &dyn Store,
        format: &str,
        columns: Option<&FeatureColumns>,
        rows: usize,
        jobs: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<&'static str>> {
        let target = self.written(format)?;
        if let Some(columns) = columns {
            let format = format_named(format)?;
            if format.keeps_columns() {
                read_back::check_columns(columns, format, &*target, rows)?;
            }
        }
        read_back::check(source, &self.digests, &*target, rows, jobs, done)
    }

    /// The facts that the target has no place for, as [`Self::check`] returns them, without reading pixels back.
    ///
    /// # Errors
    /// It cannot be opened; metadata that cannot be read.
    pub fn left_out(&self, source: &dyn Store, format: &str) -> Result<Vec<&'static str>> {
        read_back::left_out(source, &self.digests, &*self.written(format)?)
    }

    /// Opens what was written.
    fn written(&self, format: &str) -> Result<Box<dyn Store>> {
        let options = OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() };
        let written = open(self.output.path(), &options)?;
        self.has_checksums.get_or_init(|| written.has_checksums());
        Ok(written)
    }

    /// Moves what was written to its place.
    ///
    /// # Errors
    /// As [`Finished::commit`].
    pub fn commit(self) -> Result<()> {
        self.output.commit()
    }
}

struct Image {
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    pixels: Vec<u8>,
}

/// Frees a budget when the writer has ended, be it by a panic: a reader that waits for room would wait for ever.
struct FreedAtEnd<'a>(&'a ByteBudget);

impl Drop for FreedAtEnd<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// The types of the images in `source`, each once: [`crate::WriteOptions::types`]. Rows that are no images are left
/// out; reading them gives their errors.
pub fn pixel_types(source: &dyn Store) -> Vec<PixelType> {
    let found: BTreeSet<_> =
        each_row::infos(source, source.len()).filter_map(|info| Some(info.ok()?.dtype)).collect();
    found.into_iter().collect()
}

/// The error of a row whose pixel type is not that of the first of the rows that must have one: masks beside images, mostly. Each
/// row with its type.
pub fn other_type(
    store: &dyn Store,
    (row, found): (usize, PixelType),
    (first, its): (usize, PixelType),
) -> Error {
    let UnlikeRows { path, image, other } = UnlikeRows::of(store, row, first);
    Error::new(path, format_args!("{image} is {found}, but {other} is {its}")).row(row)
}

/// Whether all images of `source` have one pixel type, as those of one kind have.
///
/// # Errors
/// The first row of another type than the first image; rows that are no images are left out, as in [`pixel_types`].
pub fn one_pixel_type(source: &dyn Store) -> Result<()> {
    let mut first = None;
    for (row, info) in each_row::infos(source, source.len()).enumerate() {
        let Ok(info) = info else { continue };
        let first = *first.get_or_insert((row, info.dtype));
        if info.dtype != first.1 {
            return Err(other_type(source, (row, info.dtype), first));
        }
    }
    Ok(())
}

/// Writes every image of `source` to `writer` and completes it; `done(pixels_bytes)` is called per image. The output is
/// at its place after [`Converted::commit`].
///
/// # Errors
/// The first row that cannot be read or written; the target is then left untouched.
pub fn convert(
    source: &dyn Store,
    mut writer: Box<dyn StoreWriter>,
    options: ConvertOptions,
    done: &mut dyn FnMut(u64),
) -> Result<Converted> {
    if source.is_empty() {
        return Err(Error::new(source.path(), "there is no image to convert"));
    }
    // Images that an interrupted run completed are not read again.
    let first = writer.complete().min(source.len());
    let mut digests = Digests::new(source.len());
    for row in 0..first {
        let metadata = source.metadata(row)?;
        writer.skip(&metadata)?;
        digests.describe(row, &metadata);
        done(0);
    }
    let budget = ByteBudget::new(options.of_reader());
    let outcome: Result<()> = std::thread::scope(|scope| {
        let budget = &budget;
        // Dropped after the receiver: a reader that goes on then finds that nobody takes its images.
        let _freed = FreedAtEnd(budget);
        let (send, receive) = crossbeam_channel::unbounded::<Result<Image>>();
        let reader = move || {
            let result = source.scan(first..source.len(), &mut |row, info, pixels| {
                budget.take(pixels.len() as u64);
                let metadata = source.metadata(row)?;
                let pixels = try_alloc::copied(pixels).map_err(|cause| {
                    let memory = option("memory");
                    let hint = format_args!("let fewer pixels wait between reading and writing ({memory})");
                    Error::new(source.path(), cause).row(row).hint(hint)
                })?;
                let image = Image { metadata, shape: info.shape, dtype: info.dtype, pixels };
                send.send(Ok(image)).map_err(|_| Error::new(source.path(), "the writer stopped"))
            });
            if let Err(e) = result {
                let _ = send.send(Err(e));
            }
        };
        threads::spawn_scoped(source.path(), scope, reader)?;
        let mut written = first;
        let mut result = Ok(());
        for (row, image) in (first..).zip(receive.iter()) {
            let image = match image {
                Ok(image) => image,
                Err(e) => {
                    result = Err(e);
                    break;
                }
            };
            let view = ImageView {
                metadata: &image.metadata,
                shape: image.shape,
                dtype: image.dtype,
                pixels: &image.pixels,
            };
            let writing = span(Kind::WriteImage).with(row as u64, 0);
            let outcome = writer.write(&view);
            drop(writing);
            if let Err(e) = outcome {
                result = Err(e.row(row));
                break;
            }
            digests.note(row, &image.pixels);
            digests.describe(row, &image.metadata);
            budget.give(image.pixels.len() as u64);
            done(image.pixels.len() as u64);
            written += 1;
        }
        if result.is_ok() && written != source.len() {
            result = Err(Error::new(
                source.path(),
                format_args!("{written} of {} were delivered", crate::words::counted(source.len(), "image")),
            ));
        }
        result
    });
    outcome?;
    let _finish = labelled(Kind::WriteSet, || "finish".to_owned()).with(source.len() as u64, 0);
    Ok(Converted { digests, output: writer.complete_output()?, has_checksums: OnceLock::new() })
}
