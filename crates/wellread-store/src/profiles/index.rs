//! The index that pandas writes beside the columns of a table.

use crate::{Error, Result};
use arrow_array::RecordBatch;
use std::path::Path;

/// Whether a column of this name is an index without a name, which pandas writes beside the columns: `__index_level_0__`.
pub(super) fn is_pandas_index(name: &str) -> bool {
    let level = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|b| b.is_ascii_digit()))
}

/// The table without such an index, which says nothing of an image; a table of nothing else stays as it is.
pub(super) fn without_pandas_index(profiles: &Path, table: RecordBatch) -> Result<RecordBatch> {
    let schema = table.schema();
    let fields = schema.fields().iter().enumerate();
    let kept: Vec<usize> =
        fields.filter(|(_, field)| !is_pandas_index(field.name())).map(|(place, _)| place).collect();
    if kept.is_empty() || kept.len() == table.num_columns() {
        return Ok(table);
    }
    table.project(&kept).map_err(|e| Error::new(profiles, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_of_pandas_is_told_by_its_name() {
        for name in ["__index_level_0__", "__index_level_12__"] {
            assert!(is_pandas_index(name), "{name}");
        }
        for name in ["__index_level___", "__index_level_a__", "index_level_0", "__index_level_0", "index"] {
            assert!(!is_pandas_index(name), "{name}");
        }
    }
}
