//! Finds whether a set that declares `uint16` was 8-bit: pixels show it where statistics do not.

use crate::{Error, RowInfo, Store};
use wellread_image::PixelType;

/// The note of `wellread info` about such a set.
pub(crate) const NOTE: &str = "8-bit declared uint16";
/// Rows that are looked at, at most.
const ROWS: usize = 1 << 16;
/// Bytes of pixels that are looked at, at most.
const BYTES: u64 = 1 << 30;

/// Whether every image of `store` is declared `uint16` and no pixel exceeds 255. Reads up to the first pixel that
/// does; sets of more than 65,536 images or 1 GiB of pixels are not looked at. Rows that cannot be read say nothing:
/// they are errors when they are asked for.
///
/// For sets of other writers only: wellread declares types as they are
/// ([`wellread_image::ome_arrow::declared_type_is_clamped`]).
pub(crate) fn is_proven(store: &dyn Store) -> bool {
    if store.len() > ROWS {
        return false;
    }
    let mut bytes = 0u64;
    let mut readable = vec![];
    for row in 0..store.len() {
        match store.row_info(row) {
            Ok(info) if info.dtype == PixelType::U16 => {
                bytes += (info.shape.pixels() * 2) as u64;
                readable.push(row);
            }
            Ok(_) => return false,
            Err(_) => {}
        }
        if bytes > BYTES {
            return false;
        }
    }
    let dark = readable.chunk_by(|a, b| a + 1 == *b).all(|run| {
        let scanned = store.scan(run[0]..run[0] + run.len(), &mut |_, _, pixels| {
            let dark = pixels.as_chunks::<2>().0.iter().all(|p| p[1] == 0);
            // Ends the scan at the first image that settles it.
            if dark { Ok(()) } else { Err(Error::new(store.path(), "settled")) }
        });
        scanned.is_ok()
    });
    dark && !readable.is_empty()
}

/// The info of a row, with its type as it was.
pub(crate) fn narrowed(info: RowInfo) -> RowInfo {
    let dtype = if info.dtype == PixelType::U16 { PixelType::U8 } else { info.dtype };
    RowInfo { dtype, ..info }
}

/// Pixels of 16 bits as 8, or the first that is larger.
pub(crate) fn narrow(pixels: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let pairs = pixels.as_chunks::<2>().0;
    out.clear();
    out.extend(pairs.iter().map(|p| p[0]));
    if pairs.iter().fold(0, |all, p| all | p[1]) == 0 {
        return Ok(());
    }
    let value = pairs.iter().map(|&p| u16::from_le_bytes(p)).find(|&v| v > 255).unwrap_or_default();
    Err(format!("the pixel value {value} does not fit uint8"))
}
