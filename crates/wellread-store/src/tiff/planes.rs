//! The planes of a region of an image, in the order T, C, Z: reads and requests ahead walk them alike.
//!
//! ```text
//!  region ─▶ Planes ─▶ Plane … Plane     `read` passes over those that it read together with one before
//! ```

use wellread_image::{Region, Shape};

/// A plane of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plane {
    /// Its T, C and Z in the image.
    pub(super) at: [usize; 3],
    /// Its place among all planes of the image.
    pub(super) index: usize,
    /// Planes of its T and C in the region, from itself on: they follow it.
    pub(super) left: usize,
}

/// The planes of a region that are still to come.
#[derive(Debug)]
pub(super) struct Planes<'a> {
    region: &'a Region,
    shape: Shape,
    next: usize,
}

impl<'a> Planes<'a> {
    /// All planes of a region of an image of this shape, in which it lies.
    pub(super) fn of(region: &'a Region, shape: Shape) -> Self {
        Self { region, shape, next: 0 }
    }

    /// Leaves out the next `planes`.
    pub(super) fn pass_over(&mut self, planes: usize) {
        self.next += planes;
    }
}

impl Iterator for Planes<'_> {
    type Item = Plane;

    fn next(&mut self) -> Option<Plane> {
        let Region { start: [t0, c0, z0, ..], size: [nt, nc, nz, ..] } = *self.region;
        if self.next >= nt * nc * nz {
            return None;
        }
        let (t, c, z) = (self.next / (nc * nz), self.next / nz % nc, self.next % nz);
        self.next += 1;
        let at = [t0 + t, c0 + c, z0 + z];
        let index = (at[0] * self.shape.c() + at[1]) * self.shape.z() + at[2];
        Some(Plane { at, index, left: nz - z })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_come_by_time_channel_and_depth() {
        let region = Region { start: [1, 0, 2, 0, 0], size: [1, 2, 3, 4, 4] };
        let shape = Shape([2, 2, 5, 4, 4]);
        let found: Vec<_> =
            Planes::of(&region, shape).map(|Plane { at, index, left }| (at, index, left)).collect();
        let expected = [
            ([1, 0, 2], 12, 3),
            ([1, 0, 3], 13, 2),
            ([1, 0, 4], 14, 1),
            ([1, 1, 2], 17, 3),
            ([1, 1, 3], 18, 2),
            ([1, 1, 4], 19, 1),
        ];
        assert_eq!(found, expected);
        let mut planes = Planes::of(&region, shape);
        planes.next();
        planes.pass_over(2);
        assert_eq!(planes.next().map(|plane| plane.at), Some([1, 1, 2]));
        let nothing = Region { size: [1, 2, 0, 4, 4], ..region };
        assert_eq!(Planes::of(&nothing, shape).count(), 0);
    }
}
