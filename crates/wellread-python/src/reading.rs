//! Reading rows of a set for Python, which may stop it.

use crate::pixels::{AlignedVec, Pixels};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wellread::store::{Block, CopySink, PixelSink, Request, RowInfo, Scratch, each_row};
use wellread::{DType, Error, Output, Region, Result};

/// Images of more bytes are read in a thread of their own, so that Ctrl-C is answered meanwhile. A thread costs more than
/// an image of a tenth of that.
const DETACHED_READ_BYTES: usize = 4 << 20;

/// The type of pixels as stored.
pub(crate) fn stored_dtype(info: RowInfo) -> DType {
    Output::Stored.dtype(info.dtype)
}

/// The shape of one image: (C, Y, X), or (T, C, Z, Y, X) where it has several time points or depths.
fn array_shape(size: [usize; 5]) -> Vec<usize> {
    let [t, c, z, y, x] = size;
    if t == 1 && z == 1 { vec![c, y, x] } else { size.to_vec() }
}

/// Takes blocks until it is told to stop.
struct StoppableSink<'a, S> {
    sink: S,
    path: &'a Path,
    stop: &'a AtomicBool,
}

impl<S: PixelSink> PixelSink for StoppableSink<'_, S> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        go_on(self.stop, self.path)?;
        self.sink.put(request, block)
    }

    fn mark_unmasked(&mut self, request: usize, unmasked: &Block<'_>) {
        self.sink.mark_unmasked(request, unmasked);
    }
}

/// An error, which nobody is told, when it is to stop.
fn go_on(stop: &AtomicBool, path: &Path) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Error::new(path, "reading was cancelled")) } else { Ok(()) }
}

/// Whether all these rows have the shape and type of the first. With `each_file`, all files of each row are looked into, as
/// `wellread info` does. Heads of many are asked for at a time where they are far away.
pub(crate) fn are_alike(
    dataset: &wellread::Dataset,
    rows: &[usize],
    each_file: bool,
    stop: &AtomicBool,
) -> Result<bool> {
    let store = dataset.store();
    let infos: Box<dyn Iterator<Item = Result<RowInfo>>> = if each_file {
        Box::new(each_row::looked_into(store, rows.len(), |number| rows[number]))
    } else {
        Box::new(rows.iter().map(|&row| dataset.row_info(row)))
    };
    let mut first = None;
    for info in infos {
        go_on(stop, store.path())?;
        let info = info?;
        if *first.get_or_insert(info) != info {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a row is no larger than [`DETACHED_READ_BYTES`], whatever part of it is read: pieces may be as large as the image.
pub(crate) fn is_small(dataset: &wellread::Dataset, row: usize) -> Result<bool> {
    let info = dataset.row_info(row)?;
    Ok(info.shape.checked_bytes(info.dtype).is_ok_and(|bytes| bytes <= DETACHED_READ_BYTES))
}

/// A box of each of some images of the same shape and type.
pub(crate) fn read(
    dataset: &wellread::Dataset,
    rows: &[usize],
    region: Option<Region>,
    stop: &AtomicBool,
) -> Result<Pixels> {
    let store = dataset.store();
    let Some(&first) = rows.first() else { return Err(Error::new(store.path(), "no rows were asked for")) };
    let info = dataset.row_info(first)?;
    let region = region.unwrap_or_else(|| info.shape.full());
    for &row in rows {
        go_on(stop, store.path())?;
        let other = dataset.row_info(row)?;
        if other != info {
            return Err(Error::new(
                store.path(),
                format_args!(
                    "row {row} is {} {}, row {first} {} {} (TCZYX): images in one array must be equal",
                    other.shape, other.dtype, info.shape, info.dtype
                ),
            ));
        }
    }
    // Before there is memory for them: a damaged shape costs none.
    let requests: Vec<_> = rows.iter().map(|&row| Request { row, region }).collect();
    for request in &requests {
        store.check(request)?;
    }
    let each = region.pixels() * info.dtype.size();
    let bytes = each.checked_mul(rows.len());
    let mut pixels = bytes.and_then(AlignedVec::zeroed).ok_or_else(|| {
        Error::new(store.path(), format_args!("no memory for {} images of {each} bytes", rows.len()))
    })?;
    let parts = pixels.as_mut_slice().chunks_exact_mut(each.max(1));
    let copied = CopySink::new(parts.map(|part| (region, info.dtype, part)).collect());
    store.read(
        &requests,
        &mut Scratch::default(),
        &mut StoppableSink { sink: copied, path: store.path(), stop },
    )?;
    let mut shape = vec![rows.len()];
    shape.extend(array_shape(region.size));
    Ok(Pixels::own(pixels, &shape, stored_dtype(info), rows.to_vec()))
}
