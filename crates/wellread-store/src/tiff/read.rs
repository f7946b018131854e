//! From a region of one image to its planes: which file and page each is in, and which planes are read together.
//!
//! ```text
//!  region ─▶ planes ─▶ pieces: rows of uncompressed strips, whole strips, tiles ─▶ groups that lie together
//!     here               `pieces`                                                     │ one pread each
//!  sink ◀── Block ◀── unpack, de-interleave ◀── predictor ◀── byte order ◀── codec ◀──┘ `decode`
//! ```

use super::codec::Decompressors;
use super::decode::PageDecoder;
use super::image::Page;
use super::index::FileIndex;
use super::pieces::{GROUP, Piece, plan};
use super::planes::{Plane, Planes};
use super::restarts::{FileKey, Restarts};
use super::series::{CONVERT, PlaneRef, Series};
use crate::mapping::Mapping;
use crate::open_files::{OpenFile, OpenFiles};
use crate::place::{self, File};
use crate::refusal::Refusal;
use crate::{Block, Error, PixelSink, Result, RowInfo, Scratch};
use std::path::Path;
use std::sync::Arc;
use wellread_image::Region;

/// Rows this many times as wide as what is wanted of them, and of so many bytes together, are worth a map.
const MAPPED_WIDTH: usize = 4;
const MAPPED_ROWS: u64 = 32 << 10;

/// The state that a thread keeps between reads.
#[derive(Default)]
pub(super) struct Context {
    tools: Decompressors,
    handle: Handle,
    pub(super) pieces: Vec<Piece>,
    /// Checksums of the pieces.
    pub(super) sums: Vec<u32>,
    spare: Vec<u8>,
    /// Pixels that are stored in another type.
    converted: Vec<u8>,
}

/// The file read last, kept open: the next read is often from the same one.
#[derive(Default)]
struct Handle {
    open: Option<(FileKey, Arc<OpenFile>)>,
}

impl Handle {
    fn get(&mut self, files: &OpenFiles<FileKey>, key: FileKey, path: &Path) -> Result<&OpenFile> {
        if self.open.as_ref().is_none_or(|(k, _)| *k != key) {
            // Close first: many threads with two files each may be too many.
            self.open = None;
            let file =
                files.get(key, || place::open(path)).map_err(|e| Error::io(path, "cannot open", &e))?;
            self.open = Some((key, file));
        }
        Ok(&self.open.as_ref().expect("just opened").1)
    }
}

impl Context {
    /// Opens a file and keeps it for the read that follows; also its length.
    pub(super) fn file(&mut self, files: &OpenFiles<FileKey>, id: u64, path: &Path) -> Result<(&File, u64)> {
        self.handle.get(files, (id, 0), path).map(|opened| (&opened.file, opened.length))
    }
}

/// One request.
pub(super) struct Job<'a> {
    pub(super) request: usize,
    pub(super) info: RowInfo,
    pub(super) region: &'a Region,
    pub(super) index: &'a FileIndex,
    pub(super) series: &'a Series,
    pub(super) path: &'a Path,
    /// Identifies the file among all files of all stores of this process.
    pub(super) id: u64,
    /// Files of the store that stay open.
    pub(super) files: &'a OpenFiles<FileKey>,
    /// Where strips of the store can be entered.
    pub(super) restarts: &'a Restarts,
}

impl Job<'_> {
    /// Reads the region and hands it to `sink`.
    pub(super) fn run(&self, scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let Scratch { raw, decoded, pixels, context, .. } = scratch;
        let context = context.get::<Context>();
        let Region { start: [_, c0, _, y0, x0], size: [.., ny, nx] } = *self.region;
        let shape = self.info.shape;
        let mut planes = Planes::of(self.region, shape);
        while let Some(Plane { at: [t, c, z], index: at, left }) = planes.next() {
            let plane = self.series.planes[at];
            let source = self.source(plane, [t, c, z], context, raw)?;
            let page = self.page(&source, plane)?;
            let format = &*page.format;
            let samples = format.interleaved();
            if samples > 1 && plane.sample > 0 && c > c0 {
                // Delivered with the first sample of its page.
                continue;
            }
            if let Some(refusal) = format.refusal.clone().or_else(|| format.codec.refusal()) {
                return Err(refusal.error(source.path, "", CONVERT));
            }
            let stored = format
                .stored()
                .map_err(|cause| Refusal::unsupported(cause).error(source.path, "", CONVERT))?;
            let run = if ny == shape.y() && nx == shape.x() {
                self.run_of_planes(&self.series.planes[at..at + left], source.pages)
            } else {
                1
            };
            let Context { pieces, sums, .. } = &mut *context;
            pieces.clear();
            sums.clear();
            plan(page, plane.sample as usize, [y0, x0], [ny, nx], run, pieces, sums);
            for plane in &self.series.planes[at + 1..at + run] {
                let of_plane = source.pages[plane.page as usize].sums.as_deref().unwrap_or_default();
                sums.extend(of_plane.get(plane.sample as usize));
            }
            let key = self.key(plane);
            let opened = context.handle.get(self.files, key, source.path)?;
            let mut work = PageDecoder {
                format,
                path: source.path,
                len: source.len,
                file: &opened.file,
                map: self.map(opened, page),
                key,
                restarts: self.restarts,
                tools: &mut context.tools,
                raw,
                decoded,
                pixels,
                spare: &mut context.spare,
            };
            let converted = &mut context.converted;
            let c = c - if samples > 1 { plane.sample as usize } else { 0 };
            work.pieces(&context.pieces, &context.sums, &mut |piece, data| {
                let region = Region {
                    start: [t, c, z, piece.y, piece.x],
                    size: [1, samples, piece.depth, piece.rows, piece.width],
                };
                let pixels = stored.pixels(data, &region, self.region, converted);
                let data = pixels.map_err(|unfit| unfit.error(source.path))?;
                sink.put(self.request, &Block { region, data, dtype: self.info.dtype })
            })?;
            planes.pass_over(run - 1);
        }
        Ok(())
    }

    /// Identifies the file that holds a plane. Images of one file count their other files each from 1 on, so that `source` does not.
    fn key(&self, plane: PlaneRef) -> FileKey {
        let other = (plane.source as usize).checked_sub(1).and_then(|i| self.series.others.get(i));
        (self.id, other.map_or(0, |other| other.number))
    }

    /// The file that holds a plane, with its pages.
    pub(super) fn source(
        &self,
        plane: PlaneRef,
        [t, c, z]: [usize; 3],
        context: &mut Context,
        raw: &mut Vec<u8>,
    ) -> Result<SourceFile<'_>> {
        if plane.source == 0 {
            return Ok(SourceFile { path: self.path, len: self.index.len, pages: &self.index.pages });
        }
        let Some(other) = (plane.source as usize).checked_sub(1).and_then(|i| self.series.others.get(i))
        else {
            return Err(Error::new(
                self.path,
                format_args!("plane t={t}, c={c}, z={z} is declared, but lies in no page of the file"),
            )
            .hint("the acquisition was probably stopped early; read a region without it"));
        };
        let file = &context.handle.get(self.files, self.key(plane), &other.path)?.file;
        let (len, pages) = other.pages(file, raw)?;
        Ok(SourceFile { path: &other.path, len: *len, pages })
    }

    /// The mapped file, where a part of an image is read that is stored as it is.
    fn map<'o>(&self, opened: &'o OpenFile, page: &Page) -> Option<&'o Mapping> {
        let [.., ny, nx] = self.region.size;
        let format = &*page.format;
        if !format.is_plain() || page.sums.is_some() || (ny, nx) == (format.height, format.width) {
            return None;
        }
        let bytes = (ny * format.row_bytes()) as u64;
        let is_narrow = nx * MAPPED_WIDTH <= format.width && bytes >= MAPPED_ROWS;
        if is_narrow { opened.map_for_part(bytes) } else { opened.map() }
    }

    pub(super) fn page<'p>(&self, source: &SourceFile<'p>, plane: PlaneRef) -> Result<&'p Page> {
        let Some(page) = source.pages.get(plane.page as usize) else {
            return Err(Error::new(
                source.path,
                format_args!("page {} is asked for, but there are {}", plane.page, source.pages.len()),
            ));
        };
        let format = &*page.format;
        let shape = self.info.shape;
        let fits = (format.width, format.height) == (shape.x(), shape.y())
            && format.dtype() == Ok(self.info.dtype)
            && format.samples == self.series.samples
            && (plane.sample as usize) < format.samples;
        if !fits {
            return Err(Error::new(
                source.path,
                format_args!(
                    "page {} is of {} x {} pixels with {} samples, unlike the image's first page",
                    plane.page, format.width, format.height, format.samples
                ),
            ));
        }
        Ok(page)
    }

    /// How many of the planes follow each other in the file, stored as they are, up to [`GROUP`] bytes.
    fn run_of_planes(&self, planes: &[PlaneRef], pages: &[Page]) -> usize {
        let start = |plane: &PlaneRef| {
            let page = pages.get(plane.page as usize)?;
            let one = page.format.is_plain() && page.format.grid()[1] == 1;
            let stored = page.format.stored().ok().filter(|stored| stored.dtype() == self.info.dtype)?;
            let same = (page.format.width, page.format.height) == (self.info.shape.x(), self.info.shape.y());
            let segment = page.segments.get(plane.sample as usize).filter(|s| !s.is_empty())?;
            (one && same).then_some((segment.offset, page.sums.is_some(), stored))
        };
        let Some((first, has_sums, stored)) = start(&planes[0]) else { return 1 };
        let bytes = (self.info.shape.y() * self.info.shape.x() * stored.size()) as u64;
        let most = (GROUP / bytes).clamp(1, planes.len() as u64) as usize;
        let follows = |i: &usize| {
            planes[*i].source == planes[0].source
                && start(&planes[*i]) == Some((first + *i as u64 * bytes, has_sums, stored))
        };
        1 + (1..most).take_while(follows).count()
    }
}

/// One of the files that hold an image.
pub(super) struct SourceFile<'a> {
    pub(super) path: &'a Path,
    len: u64,
    pages: &'a [Page],
}
