//! Checksums of the pages of whole columns, for what the library reads: it does not look at them itself.

use super::file::PositionalFile;
use super::{pages, pages_ahead};
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
    let leaves: Vec<usize> = leaves.collect();
    let row_group = metadata.metadata().row_group(group);
    let _held = pages_ahead::columns(file, leaves.iter().map(|&leaf| row_group.column(leaf)));
    for leaf in leaves {
        let found = match pages::scan(file, row_group.column(leaf)) {
            Err(error) if file.is_footer_verified() => return Err(error),
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

/// Whether the first page of each of these columns, in each row group, has a checksum: writers give them to all pages or to
/// none. A walk over all headers would be a request each, of a file in a bucket.
pub(super) fn have_sums(file: &PositionalFile, metadata: &ArrowReaderMetadata, leaves: &[usize]) -> bool {
    let groups = metadata.metadata().row_groups().iter().filter(|group| group.num_rows() > 0);
    let columns: Vec<_> = groups.flat_map(|group| leaves.iter().map(|&leaf| group.column(leaf))).collect();
    let _held = pages_ahead::first_headers(file, columns.iter().copied());
    columns.iter().all(|column| pages::first(file, column).is_ok_and(|header| header.crc.is_some()))
}
