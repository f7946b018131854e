//! Which pieces of a page hold the rows and columns that are wanted: runs of rows, strips, tiles.
//!
//! A group of pieces is at most [`GROUP`] bytes, unless one piece is larger. Bytes are then still in the second-level
//! cache when they are decoded, and pixels when the sink takes them.

use super::codec::Codec;
use super::image::{Page, Segment};
use super::restarts::MIN_STRIP;

/// Bytes read and delivered at a time.
pub(super) const GROUP: u64 = 256 << 10;

/// A run of rows, a strip or a tile that is read and decoded at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) segment: Segment,
    /// Place in the image, in pixels: of a tile, whole, even where it juts out of the image.
    pub(super) y: usize,
    pub(super) x: usize,
    pub(super) rows: usize,
    pub(super) width: usize,
    /// Planes along Z that follow each other.
    pub(super) depth: usize,
    /// Rows that the stored strip or tile has, and those that a last strip may be filled up to.
    pub(super) stored_rows: usize,
    pub(super) padded_rows: usize,
    /// For an LZW strip of which only a part is wanted: the number of rows at its top that are not. It may be entered
    /// below its start.
    pub(super) enter: Option<usize>,
    /// Which of the checksums are of its stored bytes: none, one, or one for each plane.
    pub(super) sums: (usize, usize),
}

impl Piece {
    /// The piece without rows at its top that are not wanted.
    pub(super) fn without_top(&self) -> Self {
        let skip = self.enter.unwrap_or(0);
        Self { y: self.y + skip, rows: self.rows - skip, ..*self }
    }
}

/// Lists the pieces of a page that intersect rows and columns `start..start + size`, and the checksums of the first of the
/// planes that they hold.
pub(super) fn plan(
    page: &Page,
    sample: usize,
    start: [usize; 2],
    size: [usize; 2],
    depth: usize,
    pieces: &mut Vec<Piece>,
    sums: &mut Vec<u32>,
) {
    let format = &*page.format;
    let [w, h] = format.segment;
    let [across, down] = format.grid();
    let first = if format.planar { sample * across * down } else { 0 };
    let (y0, y1) = (start[0], start[0] + size[0]);
    let row_bytes = format.row_bytes() as u64;
    for sy in y0 / h..y1.div_ceil(h) {
        let top = sy * h;
        let mut sum_of = |segment: usize| {
            let sum = page.sums.as_ref().map(|of| of[segment]);
            sums.extend(sum);
            (sums.len() - usize::from(sum.is_some()), if sum.is_some() { depth } else { 0 })
        };
        if page.has_rows_alone() {
            let segment = page.segments[first + sy];
            let (from, to) = (y0.max(top), y1.min(top + format.rows(sy)));
            // Very wide rows are read row by row, only the columns.
            let narrow = format.is_plain() && row_bytes >= 16 << 10 && size[1] * 4 <= format.width;
            let step = if narrow { 1 } else { (GROUP / row_bytes.max(1)).max(1) as usize };
            let pixel = u64::from(format.bits) / 8;
            let mut y = from;
            while y < to {
                let rows = step.min(to - y);
                let at = (y - top) as u64 * row_bytes;
                let (x, width, skip, len) = if narrow {
                    (start[1], size[1], start[1] as u64 * pixel, size[1] as u64 * pixel)
                } else {
                    (0, format.width, 0, (rows * depth) as u64 * row_bytes)
                };
                let segment = if segment.is_empty() {
                    segment
                } else {
                    Segment { offset: segment.offset.saturating_add(at + skip), len }
                };
                let (stored_rows, padded_rows) = (rows, rows);
                let (enter, sums) = (None, (0, 0));
                pieces.push(Piece {
                    segment,
                    y,
                    x,
                    rows,
                    width,
                    depth,
                    stored_rows,
                    padded_rows,
                    enter,
                    sums,
                });
                y += rows;
            }
            continue;
        }
        for sx in start[1] / w..(start[1] + size[1]).div_ceil(w) {
            let mut segment = page.segments[first + sy * across + sx];
            segment.len = segment.len.saturating_mul(depth as u64);
            let sums = sum_of(first + sy * across + sx);
            let stored_rows = format.rows(sy);
            let rows = if segment.is_empty() { stored_rows.min(format.height - top) } else { stored_rows };
            // Uncompressed pieces are checked whole, and so all can be had.
            let rows = if format.is_plain() { rows } else { rows.min(y1 - top) };
            let width = if segment.is_empty() { w.min(format.width - sx * w) } else { w };
            let is_last_strip = !format.tiled && sy + 1 == down;
            let padded_rows = if is_last_strip { stored_rows.max(format.padded_rows) } else { stored_rows };
            let (x, y) = (sx * w, top);
            let skip = y0.saturating_sub(top);
            let is_long = format.codec == Codec::Lzw && segment.len >= MIN_STRIP;
            let may_enter = is_long && !format.tiled && !format.reversed && (skip > 0 || rows < stored_rows);
            let enter = may_enter.then_some(skip);
            pieces.push(Piece { segment, y, x, rows, width, depth, stored_rows, padded_rows, enter, sums });
        }
    }
}
