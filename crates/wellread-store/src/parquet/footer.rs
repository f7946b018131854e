//! The footer: the marks at both ends of the file, the library's reading of it, and its checksum if we wrote it.

use super::file::{PositionalFile, encrypted};
use super::footer_checksum;
use crate::{Error, Result, guard};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use wellread_image::ome_arrow;

/// Checks the marks at both ends of a Parquet file.
fn check_ends(file: &PositionalFile) -> Result<()> {
    let path = file.path();
    let (mut head, mut tail) = (vec![], vec![]);
    file.fetch_ends()?;
    if file.length() >= 4 {
        file.read(0, 4, &mut head)?;
    }
    // Both marks and the length of the footer: less is no file, whatever its end looks like.
    if file.length() >= 12 {
        file.read(file.length() - 4, 4, &mut tail)?;
    }
    match (head.as_slice(), tail.as_slice()) {
        (b"PAR1", b"PAR1") => Ok(()),
        // One of the marks is enough: the other may be cut off, or not be what it should.
        (b"PARE", _) | (_, b"PARE") => Err(encrypted(path)),
        (b"PAR1", _) => Err(Error::new(path, "the Parquet file is truncated: its end is missing")
            .hint("copy or write it again")),
        (b"SQLi", _) => Err(Error::new(path, "is a SQLite database, and no Parquet file")
            .hint("SQLite is read as a table of cells alone; write other tables as Parquet or CSV")),
        _ => Err(Error::new(path, "is no Parquet file: it does not begin and end with PAR1")),
    }
}

/// Reads the footer. Arrow's own schema in it is left aside: list offsets, string views and dictionaries then have
/// one form each.
///
/// # Errors
/// No Parquet, truncated, encrypted or corrupt.
pub(super) fn footer(file: &PositionalFile) -> Result<ArrowReaderMetadata> {
    check_ends(file)?;
    let metadata = guard::guarded(file.path(), "cannot read the footer", || {
        ArrowReaderMetadata::load(file, ArrowReaderOptions::new().with_skip_arrow_metadata(true))
    })?;
    // Another program that writes a table anew may take its metadata along: the checksum is of this file only
    // where we wrote it.
    let of_file = metadata.metadata().file_metadata();
    let is_ours = of_file.created_by().is_some_and(|writer| writer.starts_with("wellread "));
    let mut pairs = of_file.key_value_metadata().into_iter().flatten();
    if is_ours && pairs.any(|pair| pair.key == footer_checksum::FOOTER_KEY) {
        if !footer_checksum::footer_matches(&file.footer_bytes()?) {
            return Err(Error::new(file.path(), "the footer does not match its checksum")
                .hint("the file is corrupt; copy or write it again"));
        }
        file.set_footer_verified();
    }
    Ok(metadata)
}

/// Whether wellread wrote the file, so that pixel types are as declared.
pub(super) fn is_own(metadata: &ArrowReaderMetadata) -> bool {
    let pairs = metadata.metadata().file_metadata().key_value_metadata();
    pairs.is_some_and(|pairs| pairs.iter().any(|pair| pair.key == ome_arrow::FILE_WRITER_KEY))
}
