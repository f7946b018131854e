//! Checksums of the pages of whole columns, for what the library reads: it does not look at them itself.

use super::file::PositionalFile;
use super::pages;
use crate::Result;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

/// Compares the pages of columns with their checksums, where they have some, before the library reads them: it does not
/// look at checksums.
///
/// # Errors
/// A page that does not match. Columns of others' files whose pages cannot be found are the library's to complain about.
pub(super) fn check_sums(
    file: &PositionalFile,
    metadata: &ArrowReaderMetadata,
    group: usize,
    leaves: impl Iterator<Item = usize>,
) -> Result<()> {
    let mut raw = vec![];
    for leaf in leaves {
        let found = match pages::scan(file, metadata.metadata().row_group(group).column(leaf)) {
            Err(error) if file.is_sealed() => return Err(error),
            Err(_) => continue,
            Ok(found) => found,
        };
        for page in found.dictionary.iter().chain(&found.data) {
            if page.header.crc.is_some() {
                file.read(page.offset, page.header.compressed, &mut raw)?;
                pages::check_sum(file, page.offset, &page.header, &raw)?;
            }
        }
    }
    Ok(())
}

/// Whether each page of these columns has a checksum. Columns whose pages cannot be found have none that was compared.
pub(super) fn have_sums(file: &PositionalFile, metadata: &ArrowReaderMetadata, leaves: &[usize]) -> bool {
    metadata.metadata().row_groups().iter().all(|group| {
        leaves.iter().all(|&leaf| {
            pages::scan(file, group.column(leaf)).is_ok_and(|found| {
                found.dictionary.iter().chain(&found.data).all(|page| page.header.crc.is_some())
            })
        })
    })
}
