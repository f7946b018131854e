//! The function of the block reader's fuzz target: pixels are read from blocks that were changed, and never by
//! DuckDB.
//!
//! DuckDB's own code believes a block whose checksum is right. A target that makes checksums right, to reach the code
//! behind them, must not let DuckDB read the file. So the read is planned while the file is good, and the file is
//! changed beneath the plan.

use crate::DuckTable;
use crate::direct::{HEADERS, checksum};
use std::path::Path;
use wellread_store::table::{ImageTable, Rows};
use wellread_store::{Error, FormatContext, OpenOptions, Result};

/// Bytes of a block of the files that this crate writes.
const BLOCK: usize = 256 << 10;

/// Reads a list of the image column (`ome_image/chunks`, say) of all rows of the database at `path`, which holds `good`.
/// `damage` has changed its blocks before; their checksums are put right. Returns whether it was read to the end: an
/// irregularity that was noticed is what most damage should give. The file is good again afterwards.
///
/// # Errors
/// A file that is not good to begin with, or that has pixels which are not read here.
pub fn read_damaged(path: &Path, good: &[u8], list: &[&str], damage: impl FnOnce(&mut [u8])) -> Result<bool> {
    let write = |bytes: &[u8]| std::fs::write(path, bytes).map_err(|e| Error::io(path, "cannot write", &e));
    let table = DuckTable::open(path, &OpenOptions::default())?;
    let columns = [list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    let Some(direct) = table.direct(&columns) else {
        return Err(Error::new(path, "its pixels are read by DuckDB"));
    };
    // Planned while the file is good.
    let pieces = table.pieces();
    for columns in &pieces {
        drop(table.direct(columns));
    }
    let mut bytes = good.to_vec();
    let blocks = bytes.get_mut(HEADERS as usize..).unwrap_or_default();
    damage(&mut *blocks);
    for block in blocks.chunks_exact_mut(BLOCK) {
        let (sum, data) = block.split_at_mut(8);
        sum.copy_from_slice(&checksum(data.as_chunks::<8>().0).to_le_bytes());
    }
    write(&bytes)?;
    let result = direct.read(&Rows::Range(0..table.len()), &mut FormatContext::default(), &mut |_| Ok(()));
    let rows: Vec<usize> = (0..table.len()).collect();
    for columns in pieces {
        let Some(direct) = table.direct(&columns) else { continue };
        direct.read_pieces(&rows, &mut FormatContext::default(), &mut |_, row| {
            for piece in 0..row.len() {
                for column in 0..columns.len() - 1 {
                    std::hint::black_box(row.number(column, piece));
                }
                std::hint::black_box(row.pixels(piece).bytes.iter().fold(0, |n, &byte| n ^ byte));
            }
            Ok(())
        })?;
    }
    write(good)?;
    Ok(result.is_ok())
}
