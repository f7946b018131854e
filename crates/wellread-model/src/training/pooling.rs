//! Sums and means of pixels: of a plane, and of the cells of a grid over it.
//!
//! Cells are those of PyTorch's `AdaptiveAvgPool2d(8)`. Cell `i` of `L` pixels begins at `i·L/8`, rounded down, and ends at
//! `(i+1)·L/8`, rounded up. So an image may have any size.

use rayon::prelude::*;
use std::ops::Range;

/// Cells of an image along each axis.
pub(crate) const GRID: usize = 8;
/// Sums that are taken side by side, so that the compiler makes vectors of them.
const LANES: usize = 16;

/// The sum of some numbers, in [`LANES`] parts.
fn sum(values: &[f32]) -> f32 {
    let (groups, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for group in groups {
        lanes.iter_mut().zip(group).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// The mean of a plane with rows of `w` pixels: sums of rows in single precision, of the image in double. This is fast
/// and exact enough.
pub(super) fn plane_mean(plane: &[f32], w: usize) -> f32 {
    let sum: f64 = plane.chunks_exact(w).map(|row| f64::from(sum(row))).sum();
    (sum / plane.len() as f64) as f32
}

/// Pixels of cell `i` along an axis of `length` pixels.
fn cell(i: usize, length: usize) -> Range<usize> {
    i * length / GRID..((i + 1) * length).div_ceil(GRID)
}

/// Means of the cells of every plane, `N x C x GRID x GRID`, into `cells`, whose length is set.
pub(crate) fn cell_means(pixels: &[f32], [n, c, h, w]: [usize; 4], cells: &mut Vec<f32>) {
    cells.resize(n * c * GRID * GRID, 0.0);
    let planes = cells.par_chunks_exact_mut(GRID * GRID).zip(pixels.par_chunks_exact(h * w));
    planes.with_min_len(c).for_each_init(
        || vec![0.0f32; w],
        |columns, (cells, plane)| {
            for (i, cells) in cells.chunks_exact_mut(GRID).enumerate() {
                let rows = cell(i, h);
                let count = rows.len();
                columns.fill(0.0);
                for row in plane[rows.start * w..rows.end * w].chunks_exact(w) {
                    columns.iter_mut().zip(row).for_each(|(sum, pixel)| *sum += pixel);
                }
                for (j, mean) in cells.iter_mut().enumerate() {
                    let columns = &columns[cell(j, w)];
                    *mean = sum(columns) / (count * columns.len()) as f32;
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cover_an_axis_and_have_a_pixel_each() {
        for length in [1, 3, 8, 9, 20, 24, 101] {
            let cells: Vec<_> = (0..GRID).map(|i| cell(i, length)).collect();
            assert!(cells.iter().all(|cell| !cell.is_empty() && cell.end <= length), "{length}: {cells:?}");
            assert_eq!((cells[0].start, cells[GRID - 1].end), (0, length));
            assert!(cells.windows(2).all(|pair| pair[1].start <= pair[0].end), "{length}: {cells:?}");
        }
        assert_eq!([cell(0, 20), cell(1, 20), cell(7, 20)], [0..3, 2..5, 17..20]);
    }
}
