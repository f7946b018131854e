//! Columns of one value, told by the metadata of their pages: Lance stores such pages as that value alone.

use super::input::Input;
use super::levels::null_level;
use lance_encoding::decoder::{ColumnInfo, PageEncoding};
use lance_encoding::format::metadata::page_layout::Layout;

/// Bytes of a value that is looked at, at most.
const MAX_VALUE_BYTES: u64 = 4096;

/// The one value, as it is stored, of a column outside of lists that has it in all its `rows` rows. It is `None` where there are
/// others or nulls.
pub(crate) fn only_value(input: &Input, column: &ColumnInfo, rows: usize) -> Option<Vec<u8>> {
    let mut only: Option<Vec<u8>> = None;
    let (mut counted, mut room) = (0u64, vec![]);
    for page in column.page_infos.iter() {
        let PageEncoding::Structural(layout) = &page.encoding else { return None };
        let Some(Layout::ConstantLayout(constant)) = &layout.layout else { return None };
        // Levels in buffers of their own would tell of nulls.
        let value = match (&constant.inline_value, &*page.buffer_offsets_and_sizes) {
            (Some(value), []) => value.to_vec(),
            (None, &[(at, length)]) if length <= MAX_VALUE_BYTES => {
                input.read(at, length, &mut room).ok()?.to_vec()
            }
            _ => return None,
        };
        if null_level(&constant.layers, 0) != Some(0) || only.as_ref().is_some_and(|only| *only != value) {
            return None;
        }
        counted = counted.checked_add(page.num_rows)?;
        only = Some(value);
    }
    only.filter(|_| counted == rows as u64)
}
