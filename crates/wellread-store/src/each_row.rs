//! Rows one after the other, of which only shapes or names are wanted. Far away, heads of many rows are asked for at a time.

use crate::store::RowsAhead;
use crate::{Result, RowInfo, Store};

/// Shape and pixel type of each of the first `count` rows.
pub fn infos<S: Store + ?Sized>(store: &S, count: usize) -> impl Iterator<Item = Result<RowInfo>> {
    let mut ahead = RowsAhead::of_first_heads(store, count);
    (0..count).map(move |row| {
        ahead.before(row);
        store.row_info(row)
    })
}

/// The name of each row.
pub fn names<S: Store + ?Sized>(store: &S) -> impl Iterator<Item = Result<String>> {
    let mut ahead = RowsAhead::of_first_heads(store, store.len());
    (0..store.len()).map(move |row| {
        ahead.before(row);
        store.name(row)
    })
}
