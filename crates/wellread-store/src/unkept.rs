//! Facts of images in a format for which wellread's metadata have no place, so that no conversion keeps them.

use crate::{RowHints, Store};

/// Those of the first image of `source` in words such as `translations`, each once. The first image of each part is
/// looked at where the set has several.
pub fn of_first_images(source: &dyn Store) -> Vec<&'static str> {
    let parts = source.hints().set_parts();
    let mut rows: Vec<usize> = parts
        .iter()
        .filter_map(|part| part.rows.iter().find(|rows| !rows.is_empty()).map(|rows| rows.start))
        .collect();
    if parts.is_empty() && !source.is_empty() {
        rows.push(0);
    }
    let mut all = vec![];
    for row in rows {
        for fact in source.row_hints(row).map_or_else(|_| vec![], RowHints::unkept) {
            if !all.contains(&fact) {
                all.push(fact);
            }
        }
    }
    all
}
