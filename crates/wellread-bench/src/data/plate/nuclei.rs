//! Nuclei of a label image: where each is, and how large.

use std::collections::BTreeMap;

/// A nucleus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Nucleus {
    /// Its label.
    pub label: u16,
    /// Its centroid, in pixels; the centre of the first pixel is at 0.
    pub x: f64,
    /// See `x`.
    pub y: f64,
    /// Pixels of it that are in the image.
    pub area: usize,
}

/// The nuclei of a label image of this width, by label.
pub(super) fn find(mask: &[u16], width: usize) -> Vec<Nucleus> {
    let mut sums: BTreeMap<u16, [usize; 3]> = BTreeMap::new();
    for (y, row) in mask.chunks(width.max(1)).enumerate() {
        for (x, &label) in row.iter().enumerate().filter(|(_, label)| **label > 0) {
            let sum = sums.entry(label).or_default();
            sum[0] += x;
            sum[1] += y;
            sum[2] += 1;
        }
    }
    let nucleus = |(label, [x, y, area]): (u16, [usize; 3])| Nucleus {
        label,
        x: x as f64 / area as f64,
        y: y as f64 / area as f64,
        area,
    };
    sums.into_iter().map(nucleus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nuclei_are_where_their_pixels_are() {
        let mask = [0, 7, 7, 0, 7, 7, 2, 0, 0];
        let found = find(&mask, 3);
        assert_eq!(found[0], Nucleus { label: 2, x: 0.0, y: 2.0, area: 1 });
        assert_eq!(found[1], Nucleus { label: 7, x: 1.5, y: 0.5, area: 4 });
        assert!(find(&[], 3).is_empty());
    }
}
