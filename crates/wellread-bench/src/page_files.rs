//! Files in the page cache: those of this machine, whose pages go and come back. Files behind a network have none.

use anyhow::Result;
use std::path::PathBuf;
use wellread_measure::page_cache;
use wellread_store::place;

/// Bytes that are read at once over a link.
const PIECE: usize = 8 << 20;

/// Why the page cache has nothing to do with files: one lies behind a network.
pub(crate) fn not_here(files: &[PathBuf]) -> Option<String> {
    let far = files.iter().find(|file| place::scheme(file).is_some())?;
    Some(format!(
        "{} lies behind a network, and the page cache of this machine has no such files",
        far.display()
    ))
}

/// Reads files again whose pages were dropped; gives the bytes read. Those that are gone have none.
pub(crate) fn read_back(mut files: Vec<PathBuf>) -> Result<u64> {
    files.retain(|file| file.exists());
    Ok(page_cache::warm(&files)?)
}

/// Reads files one after the other, wherever they lie; gives the bytes read.
pub(crate) fn read_anywhere(files: &[PathBuf]) -> Result<u64> {
    if not_here(files).is_none() {
        return Ok(page_cache::warm(files)?);
    }
    let (mut piece, mut bytes) = (vec![0u8; PIECE], 0);
    for path in files {
        let (file, length) = place::open(path)?;
        let mut at = 0;
        while at < length {
            let part = (length - at).min(PIECE as u64);
            file.read_exact_at(&mut piece[..part as usize], at)?;
            at += part;
        }
        bytes += length;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_behind_a_network_is_named() {
        let [here, far] = ["/plates/a.tif", "s3://plates/b.tif"].map(PathBuf::from);
        assert_eq!(not_here(std::slice::from_ref(&here)), None);
        let why = not_here(&[here, far]).unwrap();
        assert!(why.starts_with("s3://plates/b.tif lies behind a network"), "{why}");
    }
}
