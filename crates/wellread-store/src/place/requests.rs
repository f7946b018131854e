//! Which requests fetch some ranges of a file that is remote: near ones are joined, long ones are cut.
//!
//! ```text
//!  wanted     ▓▓▓  ▓▓▓▓        ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!  requests   ├───────┤        ├─────────┤├────────┤    a gap of up to 64 KiB is fetched along; none is over 8 MiB
//! ```
//!
//! A file of which an epoch reads the most part, by many short ranges, comes whole ([`is_read_whole`]). A request
//! costs as much time as its bytes do, or more.

use super::ahead::HEAD;
use std::ops::Range;

/// Gaps that cost less to fetch than a request: 64 KiB take 1 ms at 0.5 Gbit/s.
pub const MAX_GAP: u64 = 64 << 10;
/// Bytes of a request at most. One connection is slower than the link, so more of them share a long range.
pub const PIECE: u64 = 8 << 20;

/// Bytes of a request at most by which a whole file comes: several of them share a link.
pub const STRIDE: u64 = 1 << 20;

/// Disjoint ranges in order that cover all those wanted. Empty ones take none.
pub fn requests(wanted: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut wanted: Vec<_> = wanted.iter().filter(|range| !range.is_empty()).cloned().collect();
    wanted.sort_unstable_by_key(|range| range.start);
    let mut runs: Vec<Range<u64>> = vec![];
    for range in wanted {
        match runs.last_mut() {
            Some(run) if range.start <= run.end.saturating_add(MAX_GAP) => run.end = run.end.max(range.end),
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

/// Whether a file of `length` bytes comes with fewer requests as a whole. `asked` are the requests of one batch,
/// `batches` the number of batches that ask about as much. The most part of the file is wanted in the end, and
/// requests are shorter than a gap that is fetched along.
pub fn is_read_whole(length: u64, asked: &[Range<u64>], batches: usize) -> bool {
    let bytes: u64 = asked.iter().map(|range| range.end - range.start).sum();
    let is_short = asked.len() > 1 && bytes / (asked.len() as u64) < MAX_GAP;
    is_short && bytes < length / 2 && bytes.saturating_mul(batches as u64) >= length / 2
}

/// The requests for a whole file.
pub fn strides(length: u64) -> impl Iterator<Item = Range<u64>> {
    (0..length.div_ceil(STRIDE)).map(move |i| i * STRIDE..((i + 1) * STRIDE).min(length))
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
        assert_eq!(requests(&[0..5, 5 + MAX_GAP..6 + MAX_GAP]), [0..6 + MAX_GAP]);
        assert_eq!(requests(&[0..5, 6 + MAX_GAP..7 + MAX_GAP]), [0..5, 6 + MAX_GAP..7 + MAX_GAP]);
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
    fn a_file_that_is_read_by_many_short_requests_comes_whole() {
        let short: Vec<_> = (0..16).map(|i| i * 300_000..i * 300_000 + 4_500).collect();
        let length = 5_000_000;
        assert!(is_read_whole(length, &short, 60));
        assert!(!is_read_whole(length, &short, 30), "an epoch reads less than half of it");
        assert!(!is_read_whole(length, &short[..1], 1000), "a file of each image");
        assert!(!is_read_whole(140_000, &short, 60), "one batch reads it");
        let long: Vec<_> = (0..16).map(|i| i * 300_000..i * 300_000 + MAX_GAP).collect();
        assert!(!is_read_whole(length, &long, 60));
        assert_eq!(
            strides(2 * STRIDE + 1).collect::<Vec<_>>(),
            [0..STRIDE, STRIDE..2 * STRIDE, 2 * STRIDE..2 * STRIDE + 1]
        );
        assert_eq!(strides(0).count(), 0);
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
