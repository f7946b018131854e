//! Which requests fetch some ranges of a file that lies far away: near ones are joined, long ones are cut.
//!
//! ```text
//!  wanted     ▓▓▓  ▓▓▓▓        ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!  requests   ├───────┤        ├─────────┤├────────┤    a gap of up to 64 KiB is fetched along; none is over 8 MiB
//! ```

use super::ahead::HEAD;
use std::ops::Range;

/// Gaps that cost less to fetch than a request: 64 KiB take 1 ms at 0.5 Gbit/s.
pub const GAP: u64 = 64 << 10;
/// Bytes of a request at most. One connection is slower than the link, so more of them share a long range.
pub const PIECE: u64 = 8 << 20;

/// Disjoint ranges in order that cover all those wanted. Empty ones take none.
pub fn requests(wanted: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut wanted: Vec<_> = wanted.iter().filter(|range| !range.is_empty()).cloned().collect();
    wanted.sort_unstable_by_key(|range| range.start);
    let mut runs: Vec<Range<u64>> = vec![];
    for range in wanted {
        match runs.last_mut() {
            Some(run) if range.start <= run.end.saturating_add(GAP) => run.end = run.end.max(range.end),
            _ => runs.push(range),
        }
    }
    runs.into_iter().flat_map(cut).collect()
}

/// A run in pieces of about the same length.
fn cut(run: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let length = run.end - run.start;
    let pieces = length.div_ceil(PIECE);
    (0..pieces).map(move |i| {
        let at = |i: u64| run.start + (u128::from(length) * u128::from(i) / u128::from(pieces)) as u64;
        at(i)..at(i + 1)
    })
}

/// Which end of a file of `length` bytes holds `offset..end` wholly: its first [`HEAD`] bytes or its last ones, which are fetched
/// together and kept. They are headers, footers, and small files whole.
pub fn window(length: u64, offset: u64, end: u64) -> Option<Range<u64>> {
    if end <= HEAD {
        return Some(0..HEAD.min(length));
    }
    let start = length.saturating_sub(HEAD);
    (offset >= start).then_some(start..length)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_joined_and_far_ones_are_not() {
        assert_eq!(requests(&[10..20, 0..5, 18..30]), [0..30]);
        assert_eq!(requests(&[0..5, 5 + GAP..6 + GAP]), [0..6 + GAP]);
        assert_eq!(requests(&[0..5, 6 + GAP..7 + GAP]), [0..5, 6 + GAP..7 + GAP]);
        assert_eq!(requests(&[3..3]), []);
        assert_eq!(requests(&[]), []);
    }

    #[test]
    fn long_ranges_are_cut_without_gaps() {
        let pieces = requests(&[7..7 + 3 * PIECE + 1]);
        assert_eq!(pieces.len(), 4);
        assert!(pieces.windows(2).all(|two| two[0].end == two[1].start));
        assert!(pieces.iter().all(|piece| piece.end - piece.start <= PIECE));
        assert_eq!((pieces[0].start, pieces[3].end), (7, 7 + 3 * PIECE + 1));
    }

    #[test]
    fn ends_of_files_are_windows() {
        assert_eq!(window(10, 2, 5), Some(0..10));
        let length = 3 * HEAD;
        assert_eq!(window(length, 0, HEAD), Some(0..HEAD));
        assert_eq!(window(length, 1, HEAD + 1), None);
        assert_eq!(window(length, 2 * HEAD, length), Some(2 * HEAD..length));
        assert_eq!(window(length, 2 * HEAD - 1, length), None);
    }
}
