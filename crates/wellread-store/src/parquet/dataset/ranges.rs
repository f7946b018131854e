//! Where the bytes of chunks lie, by the footer alone: for those who ask for them before they are read.

use super::store::DatasetStore;
use crate::place::WantedRanges;
use crate::{Request, Result};

/// Row groups of several chunks are asked for whole up to so many bytes. It is not known of larger ones before which of them are
/// wanted.
const SMALL_GROUP: u64 = 1 << 20;

impl DatasetStore {
    /// Adds the columns that the chunks of some requests are read from: ome-arrow writes a row group for each chunk.
    pub(super) fn chunk_ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        for request in requests {
            for chunk in &self.tables.chunks[self.image(request.row)?.chunks.clone()] {
                if !chunk.region().intersects(&request.region) {
                    continue;
                }
                let group = self.metadata.metadata().row_group(chunk.group as usize);
                let is_alone = group.num_rows() == 1;
                // The number of a chunk that is alone is in the footer.
                for &leaf in if is_alone { &self.leaves[1..] } else { &self.leaves[..] } {
                    let column = group.column(leaf);
                    let first = column.dictionary_page_offset().filter(|&at| at > 0);
                    let first = first.unwrap_or_else(|| column.data_page_offset());
                    if let (Ok(offset), Ok(length)) =
                        (u64::try_from(first), u64::try_from(column.compressed_size()))
                        && (is_alone || length <= SMALL_GROUP)
                    {
                        wanted.push(self.file.path(), offset, length);
                    }
                }
            }
        }
        Ok(())
    }
}
