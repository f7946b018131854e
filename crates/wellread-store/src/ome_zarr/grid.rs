//! The grid of chunks that an image is cut into.

use wellread_image::Region;

/// First and last chunk (inclusive) along each axis that `region` touches.
pub(super) fn covering(region: &Region, chunk: &[usize; 5]) -> ([usize; 5], [usize; 5]) {
    let (mut first, mut last) = ([0; 5], [0; 5]);
    for a in 0..5 {
        first[a] = region.start[a] / chunk[a];
        last[a] = (region.start[a] + region.size[a] - 1) / chunk[a];
    }
    (first, last)
}

/// The box of pixels of the chunk at `at`, which is counted in chunks.
pub(super) fn block_region(at: [usize; 5], chunk: &[usize; 5]) -> Region {
    let mut start = [0; 5];
    for a in 0..5 {
        start[a] = at[a] * chunk[a];
    }
    Region { start, size: *chunk }
}

/// The part of a region in the chunk that begins at `origin`, in the chunk's own coordinates. It is the whole chunk where
/// they share nothing.
pub(super) fn part_inside(region: &Region, origin: [usize; 5], chunk: &[usize; 5]) -> Region {
    let whole = Region { start: origin, size: *chunk };
    let mut part = region.intersection(&whole).unwrap_or(whole);
    for (start, origin) in part.start.iter_mut().zip(origin) {
        *start -= origin;
    }
    part
}

/// Calls `each` for every index from `first` to `last` (inclusive), last axis fastest.
pub(super) fn for_each_index<E>(
    first: [usize; 5],
    last: [usize; 5],
    mut each: impl FnMut([usize; 5]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut at = first;
    loop {
        each(at)?;
        let Some(axis) = (0..5).rev().find(|&a| at[a] < last[a]) else { return Ok(()) };
        at[axis] += 1;
        at[axis + 1..].copy_from_slice(&first[axis + 1..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_a_region_touches() {
        let region = Region { start: [0, 0, 0, 5, 9], size: [1, 1, 1, 5, 2] };
        let (first, last) = covering(&region, &[1, 1, 1, 5, 10]);
        let mut seen = vec![];
        for_each_index(first, last, |at| {
            seen.push((at[3], at[4]));
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!(seen, [(1, 0), (1, 1)]);
    }

    #[test]
    fn a_part_is_in_coordinates_of_its_chunk() {
        let region = Region { start: [0, 0, 2, 5, 9], size: [1, 1, 1, 5, 2] };
        let chunk = [1, 1, 4, 4, 10];
        let inside = |origin| part_inside(&region, origin, &chunk);
        assert_eq!(inside([0, 0, 0, 4, 0]), Region { start: [0, 0, 2, 1, 9], size: [1, 1, 1, 3, 1] });
        assert_eq!(inside([0, 0, 0, 8, 10]), Region { start: [0, 0, 2, 0, 0], size: [1, 1, 1, 2, 1] });
    }
}
