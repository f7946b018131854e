//! The format's name, and the test for Parquet files with images.

use crate::place;
use crate::probe::Probe;
use std::io::ErrorKind;
use std::path::Path;

/// The name of the format.
pub(super) const NAME: &str = "parquet";

/// Whether a file starts like Parquet. One that lacks its tail is truncated, and said to be so when opened.
pub(super) fn recognise(probe: &Probe) -> bool {
    !probe.is_dir && (probe.head.starts_with(b"PAR1") || probe.head.starts_with(b"PARE"))
}

/// Whether a Parquet file has an OME-Arrow column, one with a field `pixels_meta`, named in the footer; tables of
/// other things may lie beside images. A folder of that ending is taken at its word.
pub(super) fn holds_images(path: &Path) -> bool {
    const LONGEST: u64 = 16 << 20;
    if place::is_folder(path) {
        return true;
    }
    let footer = || -> std::io::Result<Vec<u8>> {
        let (file, length) = place::open(path)?;
        let end = length.checked_sub(8).ok_or(ErrorKind::UnexpectedEof)?;
        let (mut tail, mut footer) = ([0u8; 8], vec![]);
        file.peek_exact_at(&mut tail, end)?;
        let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let size = size.min(end).min(LONGEST);
        file.peek_after(end - size, size, &mut footer)?;
        Ok(footer)
    };
    let wanted = b"pixels_meta";
    footer().is_ok_and(|footer| footer.windows(wanted.len()).any(|w| w == wanted))
}
