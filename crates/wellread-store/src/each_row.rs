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

/// Shape and pixel type of each of `count` rows, `row(i)` each, all files of which are looked into. The error of a row is that of its
/// first file that cannot be opened or is unlike the others.
pub fn looked_into<'a, S: Store + ?Sized>(
    store: &'a S,
    count: usize,
    row: impl Fn(usize) -> usize + Copy + 'a,
) -> impl Iterator<Item = Result<RowInfo>> {
    let mut ahead = RowsAhead::of_heads(store, count, move |at| Some(row(at)));
    (0..count).map(move |at| {
        ahead.before(at);
        let info = store.row_info(row(at))?;
        store.hints().look_into(row(at))?;
        Ok(info)
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
