//! Connected components: pixels of one label, or of a mask that are set, that touch, also at a corner.
//!
//! ```text
//!  rows of pixels ─▶ runs ─▶ joined with those of the rows beside (union-find) ─▶ component of each run
//!                                                                     numbers in the order of their first pixels
//! ```
//!
//! Numbers are those of scikit-image, `skimage.measure.label(mask > 0)`: 8 neighbours in a plane, 26 in a stack.
//! Negative values and NaN are not set. Time points are apart, and go on counting.

use crate::try_alloc;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use wellread_image::{PixelType, Shape};

/// Pixels of a row that have one label, from `start` to before `end`.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: usize,
    end: usize,
    label: i64,
    /// Another run of its component, or itself.
    component: usize,
}

/// The large components of a label in a plane: how many they are, and the rows and columns that they lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub pieces: usize,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
}

/// The components of a plane, or of a stack of planes.
#[derive(Debug)]
pub(super) struct Components {
    runs: Vec<Run>,
    /// Where the runs of each row begin, and the end.
    rows: Vec<usize>,
}

impl Components {
    /// Those of `depth` planes of `height` rows, `width` pixels each, whose labels `label` tells by their index: 0 is background.
    pub fn find([depth, height, width]: [usize; 3], label: impl Fn(usize) -> i64) -> Self {
        let mut runs: Vec<Run> = vec![];
        let mut rows = Vec::with_capacity(depth * height + 1);
        for row in 0..depth * height {
            let own = runs.len();
            rows.push(own);
            let mut x = 0;
            while x < width {
                let (start, own) = (x, label(row * width + x));
                x += 1;
                if own == 0 {
                    continue;
                }
                while x < width && label(row * width + x) == own {
                    x += 1;
                }
                let component = runs.len();
                runs.push(Run { start, end: x, label: own, component });
            }
            let own = own..runs.len();
            let (z, y) = (row / height, row % height);
            if y > 0 {
                join_rows(&mut runs, rows[row - 1]..rows[row], own.clone());
            }
            if z > 0 {
                let below = (z - 1) * height;
                for row in below + y.saturating_sub(1)..=below + (y + 1).min(height - 1) {
                    join_rows(&mut runs, rows[row]..rows[row + 1], own.clone());
                }
            }
        }
        rows.push(runs.len());
        // From here on each run names the first of its component.
        for run in 0..runs.len() {
            runs[run].component = first_of(&mut runs, run);
        }
        Self { runs, rows }
    }

    /// How many components there are, and how many labels they have.
    pub fn count(&self) -> (usize, usize) {
        let first = self.runs.iter().enumerate().filter(|(run, Run { component, .. })| run == component);
        let labels: HashSet<i64> = self.runs.iter().map(|run| run.label).collect();
        (first.count(), labels.len())
    }

    /// How many pixels all of them have.
    pub fn area(&self) -> usize {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    /// Whether most runs end where one of another label begins, with no background between them.
    pub fn lie_side_by_side(&self) -> bool {
        let touching = |row: &[usize]| {
            let pairs = self.runs[row[0]..row[1]].windows(2);
            pairs.filter(|pair| pair[0].end == pair[1].start).count()
        };
        2 * self.rows.windows(2).map(touching).sum::<usize>() > self.runs.len()
    }

    /// How many pixels each component has, in the order of their first pixels.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes = vec![0; self.runs.len()];
        for run in &self.runs {
            sizes[run.component] += (run.end - run.start) as u64;
        }
        sizes.retain(|&size| size > 0);
        sizes
    }

    /// How the large components of each label lie, in the order of labels. A component is large where it has the
    /// `least_share`-th part of the pixels of the label's largest one at least.
    pub fn extents(&self, least_share: usize) -> Vec<Extent> {
        let mut sizes = vec![0; self.runs.len()];
        for run in &self.runs {
            sizes[run.component] += run.end - run.start;
        }
        let mut largest: BTreeMap<i64, usize> = BTreeMap::new();
        for run in &self.runs {
            let most = largest.entry(run.label).or_default();
            *most = sizes[run.component].max(*most);
        }
        let mut extents: BTreeMap<i64, Extent> = BTreeMap::new();
        for (y, row) in self.rows.windows(2).enumerate() {
            for run in row[0]..row[1] {
                let Run { start, end, label, component } = self.runs[run];
                if sizes[component] * least_share < largest[&label] {
                    continue;
                }
                let none = || Extent { pieces: 0, rows: y..y, columns: start..end };
                let extent = extents.entry(label).or_insert_with(none);
                extent.pieces += usize::from(component == run);
                extent.rows.end = y + 1;
                extent.columns = start.min(extent.columns.start)..end.max(extent.columns.end);
            }
        }
        extents.into_values().collect()
    }

    /// Writes numbers, the one behind `last` and on, over the pixels of the components; gives the last of them.
    ///
    /// # Errors
    /// More than 32 bits can count.
    fn number(&self, width: usize, mut last: u32, labels: &mut [[u8; 4]]) -> Result<u32, String> {
        let mut numbers = vec![0u32; self.runs.len()];
        for (row, labels) in self.rows.windows(2).zip(labels.chunks_exact_mut(width)) {
            for run in row[0]..row[1] {
                let Run { start, end, component, .. } = self.runs[run];
                if component == run {
                    last = last.checked_add(1).ok_or("more components than 32 bits can number")?;
                    numbers[run] = last;
                }
                labels[start..end].fill(numbers[component].to_le_bytes());
            }
        }
        Ok(last)
    }
}

/// Joins runs of a row with those that they touch of a row before it. Both are in the order of their pixels.
fn join_rows(runs: &mut [Run], mut others: Range<usize>, own: Range<usize>) {
    for run in own {
        let Run { start, end, label, .. } = runs[run];
        // A run that ends before this one begins touches no later one.
        while others.start < others.end && runs[others.start].end < start {
            others.start += 1;
        }
        for other in others.clone() {
            if runs[other].start > end {
                break;
            }
            if runs[other].label == label {
                join(runs, other, run);
            }
        }
    }
}

/// The first run of a run's component.
fn first_of(runs: &mut [Run], mut run: usize) -> usize {
    while runs[run].component != run {
        runs[run].component = runs[runs[run].component].component;
        run = runs[run].component;
    }
    run
}

fn join(runs: &mut [Run], one: usize, other: usize) {
    let (one, other) = (first_of(runs, one), first_of(runs, other));
    runs[one.max(other)].component = one.min(other);
}

/// An image of one channel with the number of its component, of type uint32, in place of each pixel above 0.
///
/// # Errors
/// There is no memory for it, or more components than 32 bits can number; in words.
pub(super) fn labelled(shape: Shape, dtype: PixelType, pixels: &[u8]) -> Result<Vec<u8>, String> {
    let mut labels = vec![];
    try_alloc::resize(&mut labels, shape.pixels() * 4)?;
    let (width, stack) = (shape.x(), shape.z() * shape.y() * shape.x());
    let mut last = 0;
    for (number, labels) in labels.as_chunks_mut::<4>().0.chunks_exact_mut(stack.max(1)).enumerate() {
        let first = number * stack;
        let size = [shape.z(), shape.y(), width];
        let components = Components::find(size, |i| i64::from(dtype.value_at(pixels, first + i) > 0.0));
        last = components.number(width, last, labels)?;
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(labels: &[u8]) -> Vec<u32> {
        labels.as_chunks::<4>().0.iter().map(|label| u32::from_le_bytes(*label)).collect()
    }

    fn labels(shape: [usize; 5], rows: &[&str]) -> Vec<u32> {
        let pixels: Vec<u8> = rows.concat().bytes().map(|byte| if byte == b'.' { 0 } else { byte }).collect();
        numbers(&labelled(Shape(shape), PixelType::U8, &pixels).unwrap())
    }

    #[test]
    fn components_are_numbered_as_scikit_image_does() {
        // skimage.measure.label(mask > 0): the piece on the right is met first, the U is one, and so is what touches at a corner.
        let mask = ["....a", "b.b..", "b.b.c", "bbb.c", "...d."];
        let expected = [0, 0, 0, 0, 1, 2, 0, 2, 0, 0, 2, 0, 2, 0, 2, 2, 2, 2, 0, 2, 0, 0, 0, 2, 0];
        assert_eq!(labels([1, 1, 1, 5, 5], &mask), expected);
        assert_eq!(
            labels([1, 1, 1, 3, 5], &["#.#.#", "#.#.#", "....."]),
            [1, 0, 2, 0, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0, 0]
        );
        assert_eq!(labels([1, 1, 1, 1, 3], &["..."]), [0, 0, 0]);
        assert_eq!(labels([1, 1, 1, 2, 2], &["##", "##"]), [1, 1, 1, 1]);
        // Pieces that meet in their last row alone: numbers have no gap.
        assert_eq!(labels([1, 1, 1, 2, 6], &["#.#..#", "###..#"]), [1, 0, 1, 0, 0, 2, 1, 1, 1, 0, 0, 2]);
    }

    #[test]
    fn labels_that_touch_stay_apart() {
        let rows = [1, 1, 2, 0, 2, 1, 2, 2, 0, 2, 0, 0, 0, 1, 0];
        let found = Components::find([1, 3, 5], |i| rows[i]);
        // Label 1 has a piece on the left and one below, label 2 one in the middle and one on the right.
        assert_eq!(found.count(), (4, 2));
        assert_eq!(found.sizes(), [3, 3, 2, 1]);
        assert_eq!(Components::find([1, 1, 2], |_| 0).count(), (0, 0));
        // Two of seven runs end where another begins, then three of four.
        assert!(!found.lie_side_by_side());
        let row = [1, 2, 3, 4];
        assert!(Components::find([1, 1, 4], |i| row[i]).lie_side_by_side());
    }

    #[test]
    fn stacks_are_connected_through_their_planes_and_time_points_are_not() {
        // Two planes: a corner of the one above touches one below.
        assert_eq!(
            labels([1, 1, 2, 2, 3], &["#..", "...", "...", ".#."]),
            [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]
        );
        assert_eq!(labels([1, 1, 3, 1, 2], &["#.", "..", "#."]), [1, 0, 0, 0, 2, 0]);
        assert_eq!(labels([2, 1, 1, 1, 3], &["#.#", "#.."]), [1, 0, 2, 3, 0, 0]);
    }

    #[test]
    fn the_extent_of_a_label_is_that_of_its_large_pieces() {
        // Label 1 in two pieces of four pixels and a crumb of one; label 2 in one piece.
        let plane = ["11..11", "11..11", "......", "..2..1"].concat();
        let label = |i: usize| i64::from(plane.as_bytes()[i].saturating_sub(b'0'));
        let found = Components::find([1, 4, 6], label);
        let of_two = Extent { pieces: 1, rows: 3..4, columns: 2..3 };
        let crumb_left_out = Extent { pieces: 2, rows: 0..2, columns: 0..6 };
        assert_eq!(found.extents(3), [crumb_left_out, of_two.clone()]);
        assert_eq!(found.extents(4), [Extent { pieces: 3, rows: 0..4, columns: 0..6 }, of_two]);
    }

    #[test]
    fn what_is_not_above_0_is_no_component() {
        // As mask > 0 has it, where 0 may not be the only background.
        let pixels: Vec<u8> =
            [1.0f32, f32::NAN, -1.0, 0.5, 0.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let found = labelled(Shape::plane(1, 5), PixelType::F32, &pixels).unwrap();
        assert_eq!(numbers(&found), [1, 0, 0, 2, 0]);
        let found = labelled(Shape::plane(1, 4), PixelType::I8, &[255, 1, 0, 127]).unwrap();
        assert_eq!(numbers(&found), [0, 1, 0, 2]);
    }

    #[test]
    fn any_mask_is_labelled_as_by_flooding() {
        let (height, width) = (13, 17);
        for seed in 0..60u32 {
            let noise = |i: usize| {
                (i as u32 + 1)
                    .wrapping_mul(2_654_435_761)
                    .wrapping_add(seed.wrapping_mul(97))
                    .rotate_left(11)
                    .wrapping_mul(40_503)
                    >> 28
            };
            let pixels: Vec<u8> = (0..height * width).map(|i| u8::from(noise(i) <= seed % 12)).collect();
            let mut expected = vec![0u32; pixels.len()];
            let mut next = 0;
            for first in 0..pixels.len() {
                if pixels[first] == 0 || expected[first] > 0 {
                    continue;
                }
                next += 1;
                let mut todo = vec![first];
                while let Some(at) = todo.pop() {
                    if expected[at] > 0 {
                        continue;
                    }
                    expected[at] = next;
                    let (y, x) = (at / width, at % width);
                    for y in y.saturating_sub(1)..(y + 2).min(height) {
                        for x in x.saturating_sub(1)..(x + 2).min(width) {
                            if pixels[y * width + x] > 0 {
                                todo.push(y * width + x);
                            }
                        }
                    }
                }
            }
            let shape = Shape::plane(height, width);
            assert_eq!(numbers(&labelled(shape, PixelType::U8, &pixels).unwrap()), expected, "seed {seed}");
        }
    }
}
