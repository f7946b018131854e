//! Binary masks among label images: one value stands for every cell of them, so that all cells of an image would be one.
//!
//! ```text
//!  labels of an image ─ OneValue::see ─▶ one value in all images? ─ yes, and pieces apart ─▶ refusal
//! ```

use wellread_image::{PixelType, Shape};

/// A piece counts where it has a quarter of the pixels of the largest one at least: crumbs of a cell are no cells.
const LEAST_SHARE: u64 = 4;

/// Whether all label images that were seen hold one value alone, and the first of them in which it is in several pieces.
#[derive(Debug, Default)]
pub(super) struct OneValue {
    value: Option<i64>,
    has_others: bool,
    apart: Option<Apart>,
}

/// A label image whose only value is in several pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    /// Its row.
    pub row: usize,
    /// The value.
    pub value: i64,
    /// How many pieces a plane of it has.
    pub pieces: usize,
}

impl OneValue {
    /// Takes the labels of the label image in `row` into account; `pieces` counts its pieces, and is asked as seldom as can be.
    pub fn see(&mut self, row: usize, mut labels: impl Iterator<Item = i64>, pieces: impl FnOnce() -> usize) {
        let Some(value) = labels.next() else { return };
        self.has_others |= labels.next().is_some() || self.value.is_some_and(|other| other != value);
        self.value = Some(value);
        if !self.has_others && self.apart.is_none() {
            let pieces = pieces();
            self.apart = (pieces > 1).then_some(Apart { row, value, pieces });
        }
    }

    /// The first image that shows that these are binary masks; `None` where they are label images as far as can be told.
    pub fn binary(&self) -> Option<Apart> {
        self.apart.filter(|_| !self.has_others)
    }
}

/// Pixels of a row that are not 0, from `start` to before `end`, and another run of their piece, or the run itself.
struct Run {
    start: usize,
    end: usize,
    piece: usize,
}

/// How many pieces of about one size the pixels that are not 0 make, in the plane that has most. Pixels that touch at a corner are of
/// one piece.
pub(super) fn pieces(shape: Shape, dtype: PixelType, pixels: &[u8]) -> usize {
    let (height, width) = (shape.y(), shape.x());
    let of_plane = |plane: usize| {
        let mut runs: Vec<Run> = vec![];
        // Where the runs of the row before begin.
        let mut above = 0..0;
        for y in 0..height {
            let own = runs.len();
            let row = (plane * height + y) * width;
            let mut x = 0;
            while x < width {
                let start = x;
                while x < width && dtype.value_at(pixels, row + x) != 0.0 {
                    x += 1;
                }
                if x == start {
                    x += 1;
                    continue;
                }
                let run = runs.len();
                runs.push(Run { start, end: x, piece: run });
                for other in above.clone() {
                    if runs[other].start > x {
                        break;
                    }
                    if runs[other].end >= start {
                        join(&mut runs, other, run);
                    }
                }
                // What ends before this run ends touches no later one.
                while above.start < above.end && runs[above.start].end < x {
                    above.start += 1;
                }
            }
            above = own..runs.len();
        }
        let mut sizes = vec![0u64; runs.len()];
        for run in 0..runs.len() {
            let piece = piece_of(&mut runs, run);
            sizes[piece] += (runs[run].end - runs[run].start) as u64;
        }
        let largest = sizes.iter().copied().max().unwrap_or(0);
        sizes.iter().filter(|&&size| size > 0 && size >= largest / LEAST_SHARE).count()
    };
    (0..shape.planes()).map(of_plane).max().unwrap_or(0)
}

/// The run that stands for the piece of a run.
fn piece_of(runs: &mut [Run], mut run: usize) -> usize {
    while runs[run].piece != run {
        runs[run].piece = runs[runs[run].piece].piece;
        run = runs[run].piece;
    }
    run
}

fn join(runs: &mut [Run], one: usize, other: usize) {
    let (one, other) = (piece_of(runs, one), piece_of(runs, other));
    runs[one.max(other)].piece = one.min(other);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(height: usize, rows: &[&str]) -> usize {
        let width = rows[0].len();
        let pixels: Vec<u8> = rows.concat().bytes().map(|byte| if byte == b'.' { 0 } else { 255 }).collect();
        pieces(Shape([rows.len() / height, 1, 1, height, width]), PixelType::U8, &pixels)
    }

    #[test]
    fn pieces_are_what_touches() {
        assert_eq!(count(3, &["##..##", "##..##", "......"]), 2);
        assert_eq!(count(3, &["##..##", "##..##", ".####."]), 1, "joined below");
        assert_eq!(count(2, &["##..", "..##"]), 1, "a corner");
        assert_eq!(count(3, &["#.#.#", "#.#.#", "#.#.#"]), 3);
        assert_eq!(count(3, &["#.#.#", "#####", "#.#.#"]), 1);
        assert_eq!(count(2, &["....", "...."]), 0);
        // A crumb beside a cell of nine pixels.
        assert_eq!(count(3, &["###..", "###..", "###.#"]), 1);
        // One cell in each of two time points.
        assert_eq!(count(2, &["##....", "##....", "....##", "....##"]), 1);
    }

    #[test]
    fn one_value_in_pieces_is_a_mask() {
        let seen = |images: &[(&[i64], usize)]| {
            let mut values = OneValue::default();
            for (row, (labels, pieces)) in images.iter().enumerate() {
                values.see(row, labels.iter().copied(), || *pieces);
            }
            values.binary()
        };
        assert_eq!(
            seen(&[(&[255], 1), (&[], 0), (&[255], 24)]),
            Some(Apart { row: 2, value: 255, pieces: 24 })
        );
        assert_eq!(seen(&[(&[1], 1), (&[1], 1)]), None, "a cell each");
        assert_eq!(seen(&[(&[1], 3), (&[1, 2], 2)]), None);
        assert_eq!(seen(&[(&[1], 3), (&[2], 1)]), None);
    }
}
