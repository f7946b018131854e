//! Shapes and boxes in TCZYX order.
//!
//! A [`Shape`] is an image's size along its five axes. A [`Region`] is a half-open box inside an image.
//! [`clip_runs`] intersects a decoded block (a chunk, strip, tile or page) with a requested region, and
//! yields the runs of contiguous pixels that both share. Every reader and every transform of wellread moves
//! pixels by these runs.

use crate::PixelType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Index of the T, C, Z, Y and X axis in every five-element array of wellread.
pub const AXES: [char; 5] = ['T', 'C', 'Z', 'Y', 'X'];

/// Size of an image along T, C, Z, Y and X. Serialises as a list of five numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shape(pub [usize; 5]);

/// A shape that cannot be an image: a zero axis, or more pixels than memory can address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// One axis has length zero.
    #[error("the image has shape {0} (TCZYX): axis {1} is empty")]
    Empty(Shape, char),
    /// The number of bytes exceeds [`Shape::MAX_BYTES`].
    #[error(
        "the image declares shape {0} (TCZYX) of {1}, more than wellread accepts for one image (1 TiB); the header is probably corrupt"
    )]
    TooLarge(Shape, PixelType),
}

impl Shape {
    /// Largest image in bytes that any reader accepts: 1 TiB. Larger declared sizes are taken as corruption.
    pub const MAX_BYTES: u64 = 1 << 40;

    /// A single plane of `y` rows and `x` columns.
    pub const fn plane(y: usize, x: usize) -> Self {
        Self([1, 1, 1, y, x])
    }

    /// Length of the T axis.
    pub const fn t(self) -> usize {
        self.0[0]
    }
    /// Length of the C axis.
    pub const fn c(self) -> usize {
        self.0[1]
    }
    /// Length of the Z axis.
    pub const fn z(self) -> usize {
        self.0[2]
    }
    /// Length of the Y axis (rows).
    pub const fn y(self) -> usize {
        self.0[3]
    }
    /// Length of the X axis (columns).
    pub const fn x(self) -> usize {
        self.0[4]
    }

    /// Number of pixels. Only for shapes that passed [`Self::checked_bytes`].
    pub const fn pixels(self) -> usize {
        self.0[0] * self.0[1] * self.0[2] * self.0[3] * self.0[4]
    }

    /// Number of planes: T x C x Z.
    pub const fn planes(self) -> usize {
        self.0[0] * self.0[1] * self.0[2]
    }

    /// Bytes of the image, after checking that no axis is empty and that the total is believable.
    ///
    /// Readers call this on every declared shape before they allocate anything.
    ///
    /// # Errors
    /// [`ShapeError`] for an empty axis or more than [`Self::MAX_BYTES`].
    pub fn checked_bytes(self, dtype: PixelType) -> Result<usize, ShapeError> {
        if let Some(axis) = self.0.iter().position(|&n| n == 0) {
            return Err(ShapeError::Empty(self, AXES[axis]));
        }
        let bytes = self
            .0
            .iter()
            .try_fold(dtype.size() as u64, |total, &n| total.checked_mul(n as u64))
            .filter(|&bytes| bytes <= Self::MAX_BYTES)
            .ok_or(ShapeError::TooLarge(self, dtype))?;
        usize::try_from(bytes).map_err(|_| ShapeError::TooLarge(self, dtype))
    }

    /// The region that covers the whole image.
    pub const fn full(self) -> Region {
        Region { start: [0; 5], size: self.0 }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [t, c, z, y, x] = self.0;
        write!(f, "{t}x{c}x{z}x{y}x{x}")
    }
}

/// A half-open box inside an image, in pixels along T, C, Z, Y, X.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Region {
    /// First index along each axis.
    pub start: [usize; 5],
    /// Length along each axis.
    pub size: [usize; 5],
}

impl Region {
    /// Number of pixels inside.
    pub const fn pixels(&self) -> usize {
        self.size[0] * self.size[1] * self.size[2] * self.size[3] * self.size[4]
    }

    /// The size as a shape.
    pub const fn shape(&self) -> Shape {
        Shape(self.size)
    }

    /// Whether the region is non-empty and lies inside an image of `shape`.
    pub fn fits(&self, shape: Shape) -> bool {
        (0..5).all(|a| {
            self.size[a] > 0 && self.start[a].checked_add(self.size[a]).is_some_and(|end| end <= shape.0[a])
        })
    }

    /// Whether two boxes share at least one pixel.
    pub fn intersects(&self, other: &Self) -> bool {
        (0..5).all(|a| {
            self.start[a] < other.start[a] + other.size[a] && other.start[a] < self.start[a] + self.size[a]
        })
    }
}

/// Calls `run(block_offset, region_offset, length)` for every run of pixels that `block` and `region` share.
///
/// Both boxes are in image coordinates and both hold their pixels in C order. Offsets and lengths are in
/// pixels from the start of each box's own memory. Runs are as long as contiguity in both boxes allows:
/// equal boxes give one run. Disjoint boxes give none.
pub fn clip_runs(block: &Region, region: &Region, mut run: impl FnMut(usize, usize, usize)) {
    let mut lo = [0usize; 5];
    let mut n = [0usize; 5];
    for a in 0..5 {
        lo[a] = block.start[a].max(region.start[a]);
        let hi = (block.start[a] + block.size[a]).min(region.start[a] + region.size[a]);
        if hi <= lo[a] {
            return;
        }
        n[a] = hi - lo[a];
    }
    let strides = |size: &[usize; 5]| {
        let mut s = [1usize; 5];
        for a in (0..4).rev() {
            s[a] = s[a + 1] * size[a + 1];
        }
        s
    };
    let (bs, rs) = (strides(&block.size), strides(&region.size));
    // Merge trailing axes that are whole in both boxes into one run.
    let mut inner = 4;
    let mut length = n[4];
    while inner > 0 && n[inner] == block.size[inner] && n[inner] == region.size[inner] {
        inner -= 1;
        length *= n[inner];
    }
    let b0: usize = (0..5).map(|a| (lo[a] - block.start[a]) * bs[a]).sum();
    let r0: usize = (0..5).map(|a| (lo[a] - region.start[a]) * rs[a]).sum();
    let mut index = [0usize; 5];
    loop {
        let (mut b, mut r) = (b0, r0);
        for a in 0..inner {
            b += index[a] * bs[a];
            r += index[a] * rs[a];
        }
        run(b, r, length);
        let mut a = inner;
        loop {
            if a == 0 {
                return;
            }
            a -= 1;
            index[a] += 1;
            if index[a] < n[a] {
                break;
            }
            index[a] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn absurd_shapes_are_refused() {
        let huge = Shape([usize::MAX, 2, 3, 4, 5]);
        assert!(matches!(huge.checked_bytes(PixelType::U8), Err(ShapeError::TooLarge(..))));
        let empty = Shape([1, 1, 0, 4, 5]);
        assert_eq!(empty.checked_bytes(PixelType::U8), Err(ShapeError::Empty(empty, 'Z')));
        assert_eq!(Shape::plane(3, 4).checked_bytes(PixelType::U16), Ok(24));
    }

    #[test]
    fn equal_boxes_are_one_run() {
        let full = Shape([2, 3, 4, 5, 6]).full();
        let mut runs = vec![];
        clip_runs(&full, &full, |b, r, n| runs.push((b, r, n)));
        assert_eq!(runs, [(0, 0, 720)]);
    }

    fn a_box() -> impl Strategy<Value = Region> {
        (prop::array::uniform5(0usize..4), prop::array::uniform5(1usize..5))
            .prop_map(|(start, size)| Region { start, size })
    }

    proptest! {
        /// Runs cover exactly the shared pixels, each once, at the right place in both boxes.
        #[test]
        fn runs_are_the_intersection(block in a_box(), region in a_box()) {
            let at = |r: &Region, p: [usize; 5]| -> Option<usize> {
                let mut offset = 0;
                for (a, p) in p.iter().enumerate() {
                    let i = p.checked_sub(r.start[a]).filter(|&i| i < r.size[a])?;
                    offset = offset * r.size[a] + i;
                }
                Some(offset)
            };
            let mut expected = vec![];
            for t in 0..9 { for c in 0..9 { for z in 0..9 { for y in 0..9 { for x in 0..9 {
                let p = [t, c, z, y, x];
                if let (Some(b), Some(r)) = (at(&block, p), at(&region, p)) { expected.push((b, r)); }
            }}}}}
            let mut got = vec![];
            clip_runs(&block, &region, |b, r, n| got.extend((0..n).map(|i| (b + i, r + i))));
            prop_assert_eq!(&got, &expected);
            prop_assert_eq!(block.intersects(&region), !expected.is_empty());
        }
    }
}
