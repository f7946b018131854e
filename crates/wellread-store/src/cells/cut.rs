//! Boxes of many cells, read in one call of the inner store, each piece decoded once.
//!
//! ```text
//!  boxes ─ by place on disk, image, planes ─▶ those of one image together ─ Cover ─▶ requests that share no piece
//!                                                                                      │ one read
//!  each(box, block, part) ◀──── what lies in it of each block, for every box ◀─────────┘
//! ```
//!
//! A part is copied out of its block only where its pixels are to be changed, or where their taker cannot take
//! parts.

use crate::cover::{Cover, Rectangle};
use crate::{Block, Error, PixelSink, Request, Result, RowHints, Scratch, Store, try_alloc};
use std::ops::Range;
use std::path::Path;
use wellread_image::{Region, clip_runs};

/// A box that is wanted of a row of the inner store.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedBox {
    /// The row and its box, which lies inside.
    pub part: Request,
    /// The request that it is for.
    pub request: usize,
    /// First row and column of the cell in the image.
    pub start: [i64; 2],
}

/// Takes a part of a box: the box's index, and the part.
pub(super) type EachPart<'a> = dyn FnMut(usize, &mut Cut<'_>) -> Result<()> + 'a;

/// A part of a block that lies in a box.
pub(super) struct Cut<'a> {
    /// The block.
    pub block: &'a Block<'a>,
    /// Where the part lies in the image: inside of the block.
    pub part: Region,
    buffer: &'a mut Vec<u8>,
    /// The file that is read, and its row, for errors.
    path: &'a Path,
    row: usize,
}

impl Cut<'_> {
    /// The pixels of the part by themselves, copied.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn pixels(&mut self) -> Result<&mut [u8]> {
        let Block { region, data, dtype } = *self.block;
        let size = dtype.size();
        let bytes = self.part.pixels() * size;
        try_alloc::grow(self.buffer, bytes).map_err(|cause| Error::new(self.path, cause).row(self.row))?;
        let pixels = &mut self.buffer[..bytes];
        clip_runs(&region, &self.part, |from, to, n| {
            pixels[to * size..(to + n) * size].copy_from_slice(&data[from * size..(from + n) * size]);
        });
        Ok(pixels)
    }
}

/// Lists that are kept from read to read.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    /// Place on disk and index of each box, in the order of reading.
    order: Vec<(u64, usize)>,
    requests: Vec<Request>,
    /// For each request the boxes, by their places in `order`, that it is for.
    serves: Vec<Range<usize>>,
    cover: Cover,
    buffer: Vec<u8>,
}

/// The parts that requests must share to be joined: the row, and its times, channels and planes.
fn planes(part: &Request) -> (usize, [usize; 3], [usize; 3]) {
    let Region { start: [t, c, z, ..], size: [nt, nc, nz, ..] } = part.region;
    (part.row, [t, c, z], [nt, nc, nz])
}

/// Rows and columns of a box.
fn rectangle(part: &Request) -> Rectangle {
    let Region { start: [.., y, x], size: [.., height, width] } = part.region;
    [y..y + height, x..x + width]
}

impl Cutter {
    /// Reads boxes of rows of `store`, handing their parts to `each`: together they cover each box. One read of the store, unless
    /// the images that the boxes are in have more than `most` bytes. Then there are several, each of all boxes of some images.
    ///
    /// # Errors
    /// As [`Store::read`], and those of `each`.
    pub fn read(
        &mut self,
        store: &dyn Store,
        wanted: &[WantedBox],
        most: usize,
        scratch: &mut Scratch,
        each: &mut EachPart<'_>,
    ) -> Result<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        let Self { order, requests, serves, cover, buffer } = self;
        order.clear();
        order.extend(
            wanted.iter().enumerate().map(|(i, wanted)| {
                (store.row_hints(wanted.part.row).map_or(u64::MAX, RowHints::position), i)
            }),
        );
        order.sort_unstable_by_key(|&(position, i)| (position, planes(&wanted[i].part), i));
        requests.clear();
        serves.clear();
        let mut first = 0;
        while let Some(&(_, one)) = order.get(first) {
            let mut request = wanted[one].part;
            let alike = |(_, i): &&(u64, usize)| planes(&wanted[*i].part) == planes(&request);
            let end = first + order[first..].iter().take_while(alike).count();
            let grid = if end - first > 1 { store.row_hints(request.row)?.grid() } else { None };
            cover.find(order[first..end].iter().map(|(_, i)| rectangle(&wanted[*i].part)), grid);
            for [rows, columns] in &cover.boxes {
                request.region.start[3..].copy_from_slice(&[rows.start, columns.start]);
                request.region.size[3..].copy_from_slice(&[rows.len(), columns.len()]);
                requests.push(request);
                serves.push(first..end);
            }
            first = end;
        }
        let (order, mut requests, mut serves) = (&order[..], &requests[..], &serves[..]);
        while !requests.is_empty() {
            let n = at_once(store, requests, most)?;
            let (now, later) = requests.split_at(n);
            let (path, buffer, each) = (store.path(), &mut *buffer, &mut *each);
            let mut sink = CutSink { path, order, requests: now, serves, wanted, buffer, each };
            store.read(now, scratch, &mut sink)?;
            (requests, serves) = (later, &serves[n..]);
        }
        Ok(())
    }
}

/// How many of the requests, which are in the order of their rows, are of images that have `most` bytes together: one image's at least.
fn at_once(store: &dyn Store, requests: &[Request], most: usize) -> Result<usize> {
    if most == usize::MAX {
        return Ok(requests.len());
    }
    let (mut bytes, mut n) = (0usize, 0);
    for of_image in requests.chunk_by(|a, b| a.row == b.row) {
        let info = store.row_info(of_image[0].row)?;
        bytes = bytes.saturating_add(info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX));
        if n > 0 && bytes > most {
            break;
        }
        n += of_image.len();
    }
    Ok(n)
}

/// Cuts blocks into the parts of the boxes that they are in.
struct CutSink<'a, 'e> {
    path: &'a Path,
    order: &'a [(u64, usize)],
    requests: &'a [Request],
    serves: &'a [Range<usize>],
    wanted: &'a [WantedBox],
    buffer: &'a mut Vec<u8>,
    each: &'a mut EachPart<'e>,
}

impl PixelSink for CutSink<'_, '_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        let Request { row, region } = self.requests[request];
        if block.data.len() != block.region.pixels() * block.dtype.size() {
            let cause = format_args!("the reader delivered {} bytes of {}", block.data.len(), block.dtype);
            return Err(Error::new(self.path, cause).row(row));
        }
        // Pixels beyond come with another request, where they are wanted.
        let Some(part) = block.region.intersection(&region) else { return Ok(()) };
        for &(_, i) in &self.order[self.serves[request].clone()] {
            let Some(shared) = part.intersection(&self.wanted[i].part.region) else { continue };
            let buffer = &mut *self.buffer;
            (self.each)(i, &mut Cut { block, part: shared, buffer, path: self.path, row })?;
        }
        Ok(())
    }

    // Images are read here, whose masks the reader of cells applies afterwards.
    fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
}
