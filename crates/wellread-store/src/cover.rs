//! Which boxes to ask a store for when several crops of one image are wanted, so that no piece is decoded twice.
//!
//! Crops are widened to whole pieces (chunks, tiles, strips), which then are in one or several crops, or in none.
//! Pieces that are in any are cut into bands of equal columns, as few as possible:
//!
//! ```text
//!   ┌───────┐                 ┌───────┐
//!   │  ┌────┼──┐              │       │      band 1
//!   │  │    │  │      ─▶      ├───────┴──┐
//!   └──┼────┘  │              │          │   band 2
//!      │       │              └──┬───────┤
//!      └───────┘                 │       │   band 3
//!                                └───────┘
//! ```

use std::ops::Range;

/// Rows and columns of a crop.
pub type Rectangle = [Range<usize>; 2];

/// Lists that are reused from image to image.
#[derive(Debug, Default)]
pub struct Cover {
    widened: Vec<Rectangle>,
    edges: Vec<usize>,
    columns: Vec<Range<usize>>,
    /// The boxes to request.
    pub boxes: Vec<Rectangle>,
}

impl Cover {
    /// Finds the boxes for `crops`, none of them empty. Without a grid it is one, which holds them all.
    pub fn find(&mut self, crops: impl Iterator<Item = Rectangle>, grid: Option<[usize; 2]>) {
        let Self { widened, edges, columns, boxes } = self;
        widened.clear();
        widened.extend(crops);
        boxes.clear();
        let Some(first) = widened.first() else { return };
        let mut bounds = first.clone();
        for crop in widened.iter() {
            for (bound, range) in bounds.iter_mut().zip(crop) {
                *bound = bound.start.min(range.start)..bound.end.max(range.end);
            }
        }
        let Some(grid) = grid.filter(|grid| widened.len() > 1 && !grid.contains(&0)) else {
            boxes.push(bounds);
            return;
        };
        edges.clear();
        for crop in widened.iter_mut() {
            for ((range, piece), bound) in crop.iter_mut().zip(grid).zip(&bounds) {
                let start = range.start / piece * piece;
                let end = range.end.div_ceil(piece).saturating_mul(piece);
                // It goes no further than any crop does: a request may be less than whole pieces.
                *range = start.max(bound.start)..end.min(bound.end);
            }
            edges.extend([crop[0].start, crop[0].end]);
        }
        edges.sort_unstable();
        edges.dedup();
        // Boxes of the band above.
        let mut above = 0..0;
        for band in edges.windows(2) {
            let rows = band[0]..band[1];
            let first = boxes.len();
            columns.clear();
            let inside = |crop: &&Rectangle| crop[0].start <= rows.start && rows.end <= crop[0].end;
            columns.extend(widened.iter().filter(inside).map(|crop| crop[1].clone()));
            columns.sort_unstable_by_key(|range| range.start);
            let mut joined: Option<Range<usize>> = None;
            for range in columns.drain(..) {
                match &mut joined {
                    Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                    _ => boxes.extend(joined.replace(range).map(|range| [rows.clone(), range])),
                }
            }
            boxes.extend(joined.map(|range| [rows.clone(), range]));
            let (before, own) = (&boxes[above.clone()], &boxes[first..]);
            let goes_on = |(a, b): (&Rectangle, &Rectangle)| a[0].end == rows.start && a[1] == b[1];
            if !own.is_empty() && before.len() == own.len() && before.iter().zip(own).all(goes_on) {
                boxes.truncate(first);
                for [of_both, _] in &mut boxes[above.clone()] {
                    of_both.end = rows.end;
                }
            } else {
                above = first..boxes.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_between_crops_are_not_asked_for_and_bands_alike_are_one() {
        let boxes = |crops: &[Rectangle], grid| {
            let mut cover = Cover::default();
            cover.find(crops.iter().cloned(), Some(grid));
            cover.boxes
        };
        // Pieces of one row each: columns go as far as any crop does.
        let rows = [1, 100];
        let [a, b, c] = [[2..12, 5..15], [50..60, 60..70], [8..20, 30..40]];
        assert_eq!(boxes(&[a.clone(), b.clone()], rows), [[2..12, 5..70], [50..60, 5..70]]);
        assert_eq!(boxes(&[b.clone(), c.clone(), a.clone()], rows), [[2..20, 5..70], [50..60, 5..70]]);
        // In one piece they are one box.
        assert_eq!(boxes(&[a.clone(), b], [100, 100]), [[2..60, 5..70]]);
        // Single pixels: bands differ in columns.
        assert_eq!(
            boxes(&[a, c], [1, 1]),
            [[2..8, 5..15], [8..12, 5..15], [8..12, 30..40], [12..20, 30..40]]
        );
    }

    proptest! {
        /// Every pixel of every crop is asked for once, and no piece twice.
        #[test]
        fn boxes_cover_all_and_share_no_piece(
            crops in prop::collection::vec((0usize..40, 0usize..40, 1usize..20, 1usize..20), 1..7),
            grid in prop::option::of((1usize..12, 1usize..12)),
        ) {
            let crops: Vec<Rectangle> = crops.into_iter().map(|(y, x, h, w)| [y..y + h, x..x + w]).collect();
            let mut cover = Cover::default();
            cover.find(crops.iter().cloned(), grid.map(|(y, x)| [y, x]));
            let mut asked = [[0u8; 60]; 60];
            for [rows, columns] in &cover.boxes {
                prop_assert!(!rows.is_empty() && !columns.is_empty());
                for y in rows.clone() {
                    asked[y][columns.clone()].iter_mut().for_each(|n| *n += 1);
                }
            }
            prop_assert!(asked.as_flattened().iter().all(|n| *n <= 1));
            for [rows, columns] in &crops {
                for y in rows.clone() {
                    prop_assert!(asked[y][columns.clone()].iter().all(|n| *n == 1));
                }
            }
            if let Some((y, x)) = grid {
                let mut pieces = std::collections::HashSet::new();
                for [rows, columns] in &cover.boxes {
                    let across = columns.start / x..=(columns.end - 1) / x;
                    for piece in (rows.start / y..=(rows.end - 1) / y).flat_map(|y| across.clone().map(move |x| (y, x))) {
                        prop_assert!(pieces.insert(piece) || crops.len() == 1, "{piece:?} twice");
                    }
                }
            }
        }
    }
}
