//! The box of a cell in its image, and what of it lies outside.

use super::options::Edge;
use std::ops::Range;
use wellread_image::Region;

/// Where a cell is cut out: its image, and the first row and column of its box, which may lie outside of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellBox {
    /// Row of the image.
    pub image: usize,
    /// First row and column.
    pub start: [i64; 2],
}

/// The outcome for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoxPosition {
    /// First row and column of its box.
    At([i64; 2]),
    /// Its centre lies outside of the image.
    Outside,
    /// Its box does, in part, and is to be left out then.
    Dropped,
    /// The image is smaller than the box, which cannot be moved inside.
    TooLarge,
}

/// The box of `size` rows and columns around the pixel that (y, x) lies in, in an image of `image` rows and columns.
pub(super) fn box_position(at: [f64; 2], size: [usize; 2], image: [usize; 2], edge: Edge) -> BoxPosition {
    let [y, x] = at.map(|at| (at + 0.5).floor());
    // NaN is in neither.
    if !(0.0..image[0] as f64).contains(&y) || !(0.0..image[1] as f64).contains(&x) {
        return BoxPosition::Outside;
    }
    let start = [y as i64 - (size[0] / 2) as i64, x as i64 - (size[1] / 2) as i64];
    let [last_y, last_x] = [image[0] as i64 - size[0] as i64, image[1] as i64 - size[1] as i64];
    let is_inside = (0..=last_y).contains(&start[0]) && (0..=last_x).contains(&start[1]);
    match edge {
        Edge::Drop if !is_inside => BoxPosition::Dropped,
        Edge::Shift if last_y < 0 || last_x < 0 => BoxPosition::TooLarge,
        Edge::Shift => BoxPosition::At([start[0].clamp(0, last_y), start[1].clamp(0, last_x)]),
        Edge::Pad | Edge::Drop => BoxPosition::At(start),
    }
}

/// The part of `length` rows (or columns) from `start` on that lies in an image of `image` of them: a range of the
/// image's. Empty where nothing does.
pub(super) fn inside(start: i64, length: usize, image: usize) -> Range<usize> {
    let end = start.saturating_add(length as i64).clamp(0, image as i64);
    let start = start.clamp(0, image as i64);
    start as usize..end as usize
}

/// The part of a request outside of the image: all but the rows and columns `seen`.
pub(super) fn bands(region: &Region, seen: Option<[Range<usize>; 2]>) -> impl Iterator<Item = Region> {
    let [rows, columns] =
        [3, 4].map(|axis: usize| region.start[axis]..region.start[axis] + region.size[axis]);
    let bands = match seen {
        None => vec![[rows, columns]],
        // Above, below, left, right.
        Some([y, x]) => vec![
            [rows.start..y.start, columns.clone()],
            [y.end..rows.end, columns.clone()],
            [y.clone(), columns.start..x.start],
            [y, x.end..columns.end],
        ],
    };
    let region = *region;
    bands.into_iter().filter(|[rows, columns]| !rows.is_empty() && !columns.is_empty()).map(
        move |[rows, columns]| {
            let mut band = region;
            band.start[3..].copy_from_slice(&[rows.start, columns.start]);
            band.size[3..].copy_from_slice(&[rows.len(), columns.len()]);
            band
        },
    )
}

/// A box in the image as one in the cell, whose first row and column are `start`.
pub(super) fn moved(part: &Region, start: [i64; 2]) -> Region {
    let mut region = *part;
    region.start[3] = (part.start[3] as i64 - start[0]) as usize;
    region.start[4] = (part.start[4] as i64 - start[1]) as usize;
    region
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_around_the_pixel_of_the_centre() {
        let box_position = |at, size, edge| box_position(at, size, [100, 200], edge);
        for edge in [Edge::Shift, Edge::Pad, Edge::Drop] {
            assert_eq!(box_position([50.0, 70.0], [10, 11], edge), BoxPosition::At([45, 65]));
            assert_eq!(box_position([50.49, 69.5], [10, 11], edge), BoxPosition::At([45, 65]));
            assert_eq!(box_position([50.5, 70.5], [10, 11], edge), BoxPosition::At([46, 66]));
            for outside in [[-0.6, 0.0], [99.5, 0.0], [f64::NAN, 0.0], [0.0, f64::INFINITY], [0.0, -1e300]] {
                assert_eq!(box_position(outside, [10, 10], edge), BoxPosition::Outside, "{outside:?}");
            }
        }
        // A crop as large as the image fits in one way.
        assert_eq!(box_position([50.0, 100.0], [100, 200], Edge::Drop), BoxPosition::At([0, 0]));
    }

    #[test]
    fn edges_are_moved_padded_or_dropped() {
        let box_position = |at, edge| box_position(at, [10, 10], [100, 200], edge);
        assert_eq!(box_position([-0.5, 199.4], Edge::Pad), BoxPosition::At([-5, 194]));
        assert_eq!(box_position([-0.5, 199.4], Edge::Shift), BoxPosition::At([0, 190]));
        assert_eq!(box_position([-0.5, 199.4], Edge::Drop), BoxPosition::Dropped);
        assert_eq!(box_position([5.0, 194.0], Edge::Drop), BoxPosition::At([0, 189]));
        assert_eq!(super::box_position([1.0, 1.0], [4, 2], [3, 3], Edge::Shift), BoxPosition::TooLarge);
        assert_eq!(super::box_position([1.0, 1.0], [4, 2], [3, 3], Edge::Pad), BoxPosition::At([-1, 0]));
    }

    #[test]
    fn what_lies_inside_is_a_range_of_the_image() {
        assert_eq!(inside(-5, 10, 100), 0..5);
        assert_eq!(inside(95, 10, 100), 95..100);
        assert_eq!(inside(20, 10, 100), 20..30);
        assert!(inside(-20, 10, 100).is_empty() && inside(100, 10, 100).is_empty());
        assert_eq!(inside(-5, usize::MAX >> 1, 100), 0..100);
    }
}
