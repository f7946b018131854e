//! Writes one TIFF file: pages of strips or tiles first, all directories at the end.
//!
//! Directories at the end can be read in one go, and may describe images that were not known when the file
//! was begun. The file becomes a BigTIFF only when it has grown beyond 4 GiB: the header leaves room for both
//! kinds.

use super::codec::{Codec, Packing};
use super::endian::Endian;
use super::ifd::tag;
use super::{predictor, sums};
use crate::place::{self, Writer};
use crate::{Error, Result};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use wellread_image::PixelType;

/// Bytes of one strip.
const STRIP: usize = 256 << 10;
/// Room for the header of a BigTIFF.
const HEADER: u64 = 16;
/// Files that may come to exceed this are written as BigTIFF.
const CLASSIC_LIMIT: u64 = u32::MAX as u64;

/// How pages are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) packing: Packing,
    /// Height and width of tiles; strips if `None`.
    pub(super) tile: Option<[usize; 2]>,
    /// Rows of a strip, when asked for.
    pub(super) strip_rows: Option<usize>,
    pub(super) endian: Endian,
    /// Always BigTIFF, however small.
    pub(super) big: bool,
    /// Whether strips, tiles and directories get checksums.
    pub(super) checksums: bool,
    /// Threads that compress.
    pub(super) jobs: usize,
}

/// A tag and its values.
struct Tag {
    tag: u16,
    values: Values,
}

enum Values {
    Short(Vec<u16>),
    Long(Vec<u64>),
    /// Checksums, [`sums::HEAD`] values of the directory before them.
    Sums(Vec<u32>),
    /// Offsets and lengths: as wide as the file needs.
    Offsets(Vec<u64>),
    Text(String),
}

/// A TIFF file being written.
pub(super) struct Encoder {
    /// Where the file will be, for messages.
    target: PathBuf,
    out: BufWriter<Writer>,
    at: u64,
    layout: Layout,
    pages: Vec<Vec<Tag>>,
}

impl Encoder {
    /// Begins the file at `path`, which errors call `target`.
    pub(super) fn create(path: &Path, target: &Path, layout: Layout) -> Result<Self> {
        let file = place::create(path).map_err(|e| Error::io(target, "cannot create", &e))?;
        let out = BufWriter::with_capacity(64 << 10, file);
        let mut encoder = Self { target: target.to_owned(), out, at: 0, layout, pages: vec![] };
        encoder.put(&[0; HEADER as usize])?;
        Ok(encoder)
    }

    /// Number of pages written so far.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|e| Error::io(&self.target, "cannot write", &e))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Appends a page of `height` x `width` little-endian pixels.
    pub(super) fn page(
        &mut self,
        pixels: &[u8],
        [height, width]: [usize; 2],
        dtype: PixelType,
    ) -> Result<()> {
        let size = dtype.size();
        let [h, w] = if let Some(tile) = self.layout.tile {
            tile
        } else {
            let rows = self.layout.strip_rows.unwrap_or((STRIP / (width * size)).max(1));
            [rows.min(height), width]
        };
        let (across, down) = (width.div_ceil(w), height.div_ceil(h));
        let tiled = self.layout.tile.is_some();
        let predict = !dtype.is_float()
            && matches!(self.layout.packing.codec, Codec::Lzw | Codec::Deflate | Codec::Zstd);
        let layout = self.layout;
        let encode = |i: usize| -> Result<Vec<u8>, String> {
            let (y, x) = (i / across * h, i % across * w);
            let rows = if tiled { h } else { h.min(height - y) };
            let mut piece = vec![0; rows * w * size];
            let columns = w.min(width - x);
            for row in 0..rows.min(height - y) {
                let from = ((y + row) * width + x) * size;
                piece[row * w * size..][..columns * size].copy_from_slice(&pixels[from..][..columns * size]);
            }
            if predict {
                predictor::do_horizontal(&mut piece, w * size, 1, size);
            }
            predictor::to_little_endian(&mut piece, size, layout.endian);
            layout.packing.encode(&piece, w * size)
        };
        let n = across * down;
        let mut offsets = Vec::with_capacity(n);
        let mut lengths = Vec::with_capacity(n);
        let mut checksums = Vec::with_capacity(n);
        let batch = if layout.packing.codec == Codec::None { 1 } else { layout.jobs.max(1) * 4 };
        // Strips that are stored as they are follow each other as the rows do: one write, no copy.
        let as_is = !tiled
            && self.layout.packing.codec == Codec::None
            && (size == 1 || self.layout.endian == Endian::Little);
        if as_is {
            let strip = h * width * size;
            offsets.extend((0..n).map(|i| self.at + (i * strip) as u64));
            lengths.extend((0..n).map(|i| strip.min(pixels.len() - i * strip) as u64));
            if self.layout.checksums {
                checksums.extend(pixels.chunks(strip).map(libdeflater::crc32));
            }
            self.put(pixels)?;
        }
        for from in (0..if as_is { 0 } else { n }).step_by(batch) {
            for packed in in_parallel(from..n.min(from + batch), layout.jobs, &encode) {
                let packed =
                    packed.map_err(|e| Error::new(&self.target, format_args!("cannot compress: {e}")))?;
                offsets.push(self.at);
                lengths.push(packed.len() as u64);
                if self.layout.checksums {
                    checksums.push(libdeflater::crc32(&packed));
                }
                self.put(&packed)?;
            }
        }
        let format = if dtype.is_float() {
            3
        } else if dtype.range().0 < 0.0 {
            2
        } else {
            1
        };
        let mut tags = vec![
            Tag::long(tag::IMAGE_WIDTH, width),
            Tag::long(tag::IMAGE_LENGTH, height),
            Tag::short(tag::BITS_PER_SAMPLE, size as u16 * 8),
            Tag::short(tag::COMPRESSION, layout.packing.codec.tag()),
            Tag::short(tag::PHOTOMETRIC, 1),
            Tag::short(tag::SAMPLES_PER_PIXEL, 1),
            Tag::short(tag::PLANAR_CONFIGURATION, 1),
            Tag::short(tag::SAMPLE_FORMAT, format),
            Tag {
                tag: tag::SOFTWARE,
                values: Values::Text(concat!("wellread ", env!("CARGO_PKG_VERSION")).into()),
            },
        ];
        if predict {
            tags.push(Tag::short(tag::PREDICTOR, predictor::HORIZONTAL));
        }
        if tiled {
            tags.push(Tag::long(tag::TILE_WIDTH, w));
            tags.push(Tag::long(tag::TILE_LENGTH, h));
            tags.push(Tag { tag: tag::TILE_OFFSETS, values: Values::Offsets(offsets) });
            tags.push(Tag { tag: tag::TILE_BYTE_COUNTS, values: Values::Offsets(lengths) });
        } else {
            tags.push(Tag::long(tag::ROWS_PER_STRIP, h));
            tags.push(Tag { tag: tag::STRIP_OFFSETS, values: Values::Offsets(offsets) });
            tags.push(Tag { tag: tag::STRIP_BYTE_COUNTS, values: Values::Offsets(lengths) });
        }
        if self.layout.checksums {
            tags.push(Tag { tag: tag::CHECKSUMS, values: Values::Sums(sums::values(&checksums)) });
        }
        self.pages.push(tags);
        Ok(())
    }

    /// Gives a page its image description.
    pub(super) fn describe(&mut self, page: usize, text: String) {
        self.pages[page].push(Tag { tag: tag::IMAGE_DESCRIPTION, values: Values::Text(text) });
    }

    /// Writes the directories and the header.
    pub(super) fn finish(mut self) -> Result<()> {
        let values: u64 = self.pages.iter().flatten().map(|t| t.values.bytes(true) + 24).sum();
        let big = self.layout.big || self.at + values + self.pages.len() as u64 * 24 > CLASSIC_LIMIT;
        let endian = self.layout.endian;
        let mut pages = std::mem::take(&mut self.pages);
        if self.at % 2 == 1 {
            self.put(&[0])?;
        }
        let first = self.at;
        let count = pages.len();
        for (i, tags) in pages.iter_mut().enumerate() {
            tags.sort_by_key(|t| t.tag);
            let bytes = directory(tags, self.at, big, endian, i + 1 == count);
            self.put(&bytes)?;
        }
        let mut header = Vec::new();
        header.extend(if endian == Endian::Little { b"II" } else { b"MM" });
        let mut put = |value: u64, n: usize| push(&mut header, value, n, endian);
        if big {
            put(43, 2);
            put(8, 2);
            put(0, 2);
            put(first, 8);
        } else {
            put(42, 2);
            put(first, 4);
        }
        let target = &self.target;
        let fault = |e: &std::io::Error| Error::io(target, "cannot write", e);
        self.out.seek(SeekFrom::Start(0)).map_err(|e| fault(&e))?;
        self.out.write_all(&header).map_err(|e| fault(&e))?;
        self.out.flush().map_err(|e| fault(&e))
    }
}

impl Tag {
    fn short(tag: u16, value: u16) -> Self {
        Self { tag, values: Values::Short(vec![value]) }
    }

    fn long(tag: u16, value: usize) -> Self {
        Self { tag, values: Values::Long(vec![value as u64]) }
    }
}

impl Values {
    /// Type number, and bytes of one value.
    fn kind(&self, big: bool) -> (u64, usize) {
        match self {
            Self::Short(_) => (3, 2),
            Self::Offsets(_) if big => (16, 8),
            Self::Long(_) | Self::Offsets(_) | Self::Sums(_) => (4, 4),
            Self::Text(_) => (2, 1),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Short(v) => v.len(),
            Self::Sums(v) => v.len(),
            Self::Long(v) | Self::Offsets(v) => v.len(),
            Self::Text(text) => text.len() + 1,
        }
    }

    fn bytes(&self, big: bool) -> u64 {
        (self.count() * self.kind(big).1) as u64
    }

    fn write(&self, out: &mut Vec<u8>, big: bool, endian: Endian) {
        let n = self.kind(big).1;
        match self {
            Self::Short(v) => v.iter().for_each(|&x| push(out, u64::from(x), n, endian)),
            Self::Sums(v) => v.iter().for_each(|&x| push(out, u64::from(x), n, endian)),
            Self::Long(v) | Self::Offsets(v) => v.iter().for_each(|&x| push(out, x, n, endian)),
            Self::Text(text) => {
                out.extend_from_slice(text.as_bytes());
                out.push(0);
            }
        }
    }
}

/// Appends the low `n` bytes of a number.
fn push(out: &mut Vec<u8>, value: u64, n: usize, endian: Endian) {
    match endian {
        Endian::Little => out.extend_from_slice(&value.to_le_bytes()[..n]),
        Endian::Big => out.extend_from_slice(&value.to_be_bytes()[8 - n..]),
    }
}

/// A directory at offset `at` with its values behind it, of even length; the next one follows unless `last`.
fn directory(tags: &[Tag], at: u64, big: bool, endian: Endian, last: bool) -> Vec<u8> {
    let (head, each, word) = if big { (8, 20, 8) } else { (2, 12, 4) };
    let mut table = Vec::new();
    let mut values = Vec::new();
    let mut checksums_at = None;
    let values_at = at + (head + tags.len() * each + word) as u64;
    push(&mut table, tags.len() as u64, head, endian);
    for Tag { tag, values: v } in tags {
        push(&mut table, u64::from(*tag), 2, endian);
        push(&mut table, v.kind(big).0, 2, endian);
        push(&mut table, v.count() as u64, word, endian);
        if v.bytes(big) <= word as u64 {
            let start = table.len();
            v.write(&mut table, big, endian);
            table.resize(start + word, 0);
        } else {
            push(&mut table, values_at + values.len() as u64, word, endian);
            if matches!(v, Values::Sums(_)) {
                checksums_at = Some(values.len());
            }
            v.write(&mut values, big, endian);
            values.resize(values.len().next_multiple_of(2), 0);
        }
    }
    let end = values_at + values.len() as u64;
    push(&mut table, if last { 0 } else { end }, word, endian);
    let head = table.len();
    table.extend(values);
    if let Some(at) = checksums_at {
        sums::put_directory_sum(&mut table, head + at, endian);
    }
    table
}

/// Calls `f` for each index on up to `jobs` threads; results in order.
fn in_parallel<R: Send>(
    range: std::ops::Range<usize>,
    jobs: usize,
    f: &(dyn Fn(usize) -> R + Sync),
) -> Vec<R> {
    if jobs < 2 || range.len() < 2 {
        return range.map(f).collect();
    }
    let next = AtomicUsize::new(range.start);
    let all = Mutex::new(Vec::with_capacity(range.len()));
    crate::threads::share(jobs.min(range.len()), || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= range.end {
                return;
            }
            let result = f(i);
            all.lock().unwrap_or_else(PoisonError::into_inner).push((i, result));
        }
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_unstable_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, r)| r).collect()
}
