//! Where the pixels of two images first differ.

use crate::{Result, Store, read_image};
use serde::Serialize;
use std::fmt;

/// The first pixel in C order that differs between two images of one shape and type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PixelDifference {
    /// Its position along T, C, Z, Y, X.
    pub tczyx: [usize; 5],
    /// Its value in the set under test.
    pub found: String,
    /// Its expected value.
    pub expected: String,
    /// How many pixels of the image differ.
    pub pixels_that_differ: u64,
}

impl fmt::Display for PixelDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tczyx: [t, c, z, y, x], found, expected, pixels_that_differ } = self;
        write!(
            f,
            "{pixels_that_differ} of them, the first at T={t} C={c} Z={z} Y={y} X={x}: {found}, expected {expected}"
        )
    }
}

/// The first pixel in which row `row` of `store` differs from row `expected` of `other`; `None` if there is none.
///
/// # Errors
/// A row that cannot be read.
pub(super) fn first_difference(
    store: &dyn Store,
    row: usize,
    other: &dyn Store,
    expected: usize,
) -> Result<Option<PixelDifference>> {
    let (info, found) = read_image(store, row)?;
    let (_, wanted) = read_image(other, expected)?;
    let size = info.dtype.size();
    let mut differing =
        found.chunks_exact(size).zip(wanted.chunks_exact(size)).enumerate().filter(|(_, (f, e))| f != e);
    let Some((index, (f, e))) = differing.next() else { return Ok(None) };
    let mut rest = index;
    let mut tczyx = [0; 5];
    for (position, &length) in tczyx.iter_mut().zip(&info.shape.0).rev() {
        *position = rest % length;
        rest /= length;
    }
    let value = |bytes| info.dtype.value_at(bytes, 0).to_string();
    let pixels_that_differ = 1 + differing.count() as u64;
    Ok(Some(PixelDifference { tczyx, found: value(f), expected: value(e), pixels_that_differ }))
}
