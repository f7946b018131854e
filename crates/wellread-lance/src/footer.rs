//! The footer of a data file, looked at before Lance believes it.
//!
//! The last 40 bytes of a [Lance file](https://lance.org/format/file/) say where its tables of columns and of global
//! buffers are, and how many entries they have. Lance asks for memory for as many, and where there is not so much, the
//! process ends.

use std::path::Path;
use wellread_store::direct::little_endian;
use wellread_store::place;

/// Bytes of a footer.
const FOOTER: usize = 40;
/// Bytes of an entry of a table: position and size.
const ENTRY: u64 = 16;

/// Whether the tables of a data file are in it. A file that is no Lance file at all is left to Lance, which
/// reports it.
pub(crate) fn is_plausible(file: &Path) -> bool {
    let Ok((file, length)) = place::open(file) else { return true };
    let mut footer = [0; FOOTER];
    let Some(start) = length.checked_sub(FOOTER as u64) else { return true };
    file.read_exact_at(&mut footer, start).is_err() || fits(&footer, start)
}

/// Whether the tables end before the footer, which starts at `end`.
fn fits(footer: &[u8; FOOTER], end: u64) -> bool {
    let number = |at: usize, size: usize| little_endian(&footer[at..at + size]);
    // Position of a table, number of its entries: of global buffers, of columns.
    let tables = [(number(16, 8), number(24, 4)), (number(8, 8), number(28, 4))];
    let inside =
        |&(start, entries): &(u64, u64)| start.checked_add(entries * ENTRY).is_some_and(|last| last <= end);
    !footer.ends_with(b"LANC") || tables.iter().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_to_be_in_the_file() {
        let footer = |columns: u64, buffers: u64, column_count: u32, buffer_count: u32| {
            let mut footer = [0; FOOTER];
            footer[8..16].copy_from_slice(&columns.to_le_bytes());
            footer[16..24].copy_from_slice(&buffers.to_le_bytes());
            footer[24..28].copy_from_slice(&buffer_count.to_le_bytes());
            footer[28..32].copy_from_slice(&column_count.to_le_bytes());
            footer[36..].copy_from_slice(b"LANC");
            footer
        };
        assert!(fits(&footer(100, 148, 3, 2), 180));
        for wrong in [
            footer(100, 148, 3, 3),
            footer(100, 148, 6, 2),
            footer(100, 148, 3, u32::MAX),
            footer(u64::MAX, 148, 3, 2),
            footer(100, 148, u32::MAX, 2),
        ] {
            assert!(!fits(&wrong, 180));
        }
        assert!(fits(&[0xff; FOOTER], 180));
    }
}
