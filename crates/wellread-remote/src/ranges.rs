//! Which requests fetch some ranges of a file: near ones are joined, long ones are cut.
//!
//! ```text
//!  wanted   ▓▓▓  ▓▓▓▓        ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!  plan     ├───────┤        ├─────────┤├────────┤    a gap of up to 64 KiB is fetched along; no piece is over 8 MiB
//! ```

use bytes::Bytes;
use std::ops::Range;

/// Gaps that cost less to fetch than a request: 64 KiB take 1 ms at 0.5 Gbit/s.
const GAP: u64 = 64 << 10;
/// Bytes of a request at most. One connection is slower than the link, so more of them share a long range.
pub(crate) const PIECE: u64 = 8 << 20;

/// Disjoint ranges in order that cover all those wanted. Empty ones take none.
pub(crate) fn plan(wanted: &[Range<u64>]) -> Vec<Range<u64>> {
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

/// What a request fetched: where it starts, and the bytes as they came.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The first byte's offset in the file.
    pub(crate) start: u64,
    /// All its bytes.
    pub(crate) chunks: Vec<Bytes>,
}

/// Fills `buffer` with the bytes from `offset` on out of pieces of a plan, which are in order; false where they do not have them all.
pub(crate) fn copy(pieces: &[Piece], offset: u64, buffer: &mut [u8]) -> bool {
    let (mut at, mut rest) = (offset, buffer);
    let first = pieces.partition_point(|piece| piece.start <= offset).saturating_sub(1);
    for piece in &pieces[first.min(pieces.len())..] {
        let mut start = piece.start;
        for chunk in &piece.chunks {
            let end = start + chunk.len() as u64;
            if !rest.is_empty() && (start..end).contains(&at) {
                let from = (at - start) as usize;
                let n = rest.len().min(chunk.len() - from);
                let (now, later) = rest.split_at_mut(n);
                now.copy_from_slice(&chunk[from..from + n]);
                (at, rest) = (at + n as u64, later);
            }
            start = end;
        }
        if rest.is_empty() {
            return true;
        }
    }
    rest.is_empty()
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_joined_and_far_ones_are_not() {
        assert_eq!(plan(&[10..20, 0..5, 18..30]), [0..30]);
        assert_eq!(plan(&[0..5, 5 + GAP..6 + GAP]), [0..6 + GAP]);
        assert_eq!(plan(&[0..5, 6 + GAP..7 + GAP]), [0..5, 6 + GAP..7 + GAP]);
        assert_eq!(plan(&[3..3]), []);
        assert_eq!(plan(&[]), []);
    }

    #[test]
    fn long_ranges_are_cut_without_gaps() {
        let pieces = plan(&[7..7 + 3 * PIECE + 1]);
        assert_eq!(pieces.len(), 4);
        assert!(pieces.windows(2).all(|two| two[0].end == two[1].start));
        assert!(pieces.iter().all(|piece| piece.end - piece.start <= PIECE));
        assert_eq!((pieces[0].start, pieces[3].end), (7, 7 + 3 * PIECE + 1));
    }

    #[test]
    fn bytes_are_copied_over_the_borders_of_chunks_and_pieces() {
        let piece = |start: u64, chunks: &[&'static [u8]]| Piece {
            start,
            chunks: chunks.iter().map(|chunk| Bytes::from_static(chunk)).collect(),
        };
        let pieces = [piece(10, &[&[10, 11], &[], &[12]]), piece(13, &[&[13, 14]]), piece(100, &[&[100]])];
        let mut four = [0; 4];
        assert!(copy(&pieces, 11, &mut four));
        assert_eq!(four, [11, 12, 13, 14]);
        let mut one = [0];
        assert!(copy(&pieces, 100, &mut one) && one == [100]);
        assert!(!copy(&pieces, 14, &mut four) && !copy(&pieces, 5, &mut one) && !copy(&[], 5, &mut one));
        assert!(copy(&[], 5, &mut []));
    }
}
