//! Bytes as requests fetched them, and the parts that were asked for. Which requests are made:
//! [`wellread_store::place::requests`].
//!
//! ```text
//!  pieces     ├──▓▓▓──▓▓──┤        ├▓▓▓▓▓▓▓▓▓┤├▓▓▓▓▓▓▓▓┤    each as it came, in chunks
//!  copy          ▓▓▓  ▓▓            ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//! ```

use bytes::Bytes;

/// The bytes that a request fetched, as they came, and their start.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The first byte's offset in the file.
    pub(crate) start: u64,
    /// All its bytes.
    pub(crate) chunks: Vec<Bytes>,
}

/// Fills `buffer` with the bytes from `offset` on out of pieces of a plan, which are in order. It is false where they do not have them all.
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
mod tests {
    use super::*;

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
