//! Reads in parts that are small enough to stay near. It says how many rows make one, and the memory that is used again from part to
//! part.

use super::fault::{Fault, Stop};
use crate::Result;
use arrow_buffer::{Buffer, MutableBuffer};
use std::ops::Range;

/// Bytes of values that make a batch: few enough to stay in a core's own cache until they are used.
const BATCH_BYTES: usize = 512 << 10;
/// Rows that make a batch, at most.
const BATCH_ROWS: usize = 1 << 16;
/// Bytes of a buffer that a reader keeps for its next read, at most.
const KEPT_BYTES: usize = 8 << 20;

/// Rows that make a batch, of a column of `rows` rows, which are some, and `bytes`.
pub fn rows_of_a_batch(bytes: usize, rows: usize) -> usize {
    (BATCH_BYTES / (bytes / rows).max(1)).clamp(1, BATCH_ROWS)
}

/// Reads `rows` rows, no more than `most` at a time: `make` reads a part of them, `give` hands on what it made. Both use
/// `state`.
///
/// # Errors
/// The error that keeps `make` from reading, after so many rows; the error of `give`.
#[inline]
pub fn each_part<S, M>(
    rows: usize,
    most: usize,
    state: &mut S,
    mut make: impl FnMut(&mut S, Range<usize>) -> Result<M, Fault>,
    mut give: impl FnMut(&mut S, M) -> Result<()>,
) -> Result<(), Stop> {
    let mut done = 0;
    while done < rows {
        let end = rows.min(done.saturating_add(most.max(1)));
        let made = make(state, done..end).map_err(|fault| fault.stop(done))?;
        done = end;
        give(state, made).map_err(Stop::Refused)?;
    }
    Ok(())
}

/// Takes back the memory of values that were handed on. The consumer may have kept them: then there is none.
pub fn take_back(room: &mut MutableBuffer, lent: Buffer) {
    *room = lent.into_mutable().unwrap_or_default();
}

/// Gives memory back of which there are more bytes than are worth keeping.
pub fn trim<B: Default>(bytes: usize, buffer: &mut B) {
    if bytes > KEPT_BYTES {
        *buffer = B::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_batch_has_a_row_at_least() {
        assert_eq!(rows_of_a_batch(10 << 20, 20), 1);
        assert_eq!(rows_of_a_batch(20 << 20, 80), 2);
        assert_eq!(rows_of_a_batch(0, 3), BATCH_ROWS);
        assert_eq!(rows_of_a_batch(usize::MAX, 1), 1);
    }

    #[test]
    fn parts_follow_one_another_until_one_stops() {
        let read = |bad: usize, refused: usize| {
            let mut parts: Vec<Range<usize>> = vec![];
            let result = each_part(
                7,
                3,
                &mut parts,
                |_, part| if part.contains(&bad) { Err(Fault::Irregular("bad")) } else { Ok(part) },
                |parts, part| {
                    let is_refused = part.contains(&refused);
                    parts.push(part);
                    if is_refused { Err(Error::new("", "no")) } else { Ok(()) }
                },
            );
            (parts, result)
        };
        let (parts, result) = read(9, 9);
        assert!(parts == [0..3, 3..6, 6..7] && result.is_ok());
        let (parts, result) = read(4, 9);
        assert!(parts.len() == 1 && parts[0] == (0..3) && matches!(result, Err(Stop::Irregular(3, "bad"))));
        let (parts, result) = read(9, 4);
        assert!(parts == [0..3, 3..6] && matches!(result, Err(Stop::Refused(_))));
    }

    #[test]
    fn memory_comes_back_unless_it_is_held_or_much() {
        let mut room = MutableBuffer::from_len_zeroed(64);
        let lent = Buffer::from(std::mem::take(&mut room));
        let (held, at) = (lent.clone(), lent.as_ptr());
        take_back(&mut room, lent);
        assert!(room.is_empty());
        take_back(&mut room, held);
        assert_eq!((room.as_ptr(), room.len()), (at, 64));
        trim(KEPT_BYTES, &mut room);
        assert_eq!(room.len(), 64);
        trim(KEPT_BYTES + 1, &mut room);
        assert_eq!(room.len(), 0);
    }
}
