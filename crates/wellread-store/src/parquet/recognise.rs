//! What the format is called, and which files are Parquet with images.

use crate::probe::Probe;
use crate::regular;
use std::io::{Read, Seek, SeekFrom};
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
    if path.is_dir() {
        return true;
    }
    let footer = || -> std::io::Result<Vec<u8>> {
        let (mut file, len) = regular::open(path)?;
        let mut tail = [0u8; 8];
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut tail)?;
        let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let size = size.min(len - 8).min(LONGEST);
        file.seek(SeekFrom::Start(len - 8 - size))?;
        let mut footer = vec![0; size as usize];
        file.read_exact(&mut footer)?;
        Ok(footer)
    };
    let wanted = b"pixels_meta";
    footer().is_ok_and(|footer| footer.windows(wanted.len()).any(|w| w == wanted))
}
