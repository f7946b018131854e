//! Tables that have the images in another order. A column, or the index of a frame, names each image once and not in the set's order.
//!
//! ```text
//!  columns of texts ─┬─ called like a file or well, or a column of the images ─┐
//!                    └─ every value is the name of an image ───────────────────┼─ rows_of_images ─▶ their order, another one, or neither
//!  index of the frame ─ every value is the name of an image ───────────────────┘
//! ```

use crate::features::{FeatureColumns, key_at, stem};
use crate::profiles::{files_of_sites, rows_of_images};
use crate::{Store, each_row};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::Path;

/// Words in the names of columns of texts that may tell the image of a row.
const TELLING: [&str; 4] = ["file", "name", "image", "well"];

/// Columns that are compared with the images where none is named, and the images of the largest set that they are compared with.
const MOST_COLUMNS: usize = 8;
const MOST_IMAGES: usize = 100_000;

/// The part of a table that has the images in another order than the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtherOrder {
    /// The column of this name.
    Column(String),
    /// The index of the frame, which is none of its columns.
    Index,
}

/// The order of a column's rows, where each image has a row of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowOrder {
    OfImages,
    Another,
}

/// The column, or the index, that has a row for each image in another order. It has names of all of them, or values that the images have
/// as well. One in their order comes first: others may name other images, such as the nearest. Sets of very many images, and those on a
/// network, are not looked at.
pub(super) fn other_order(
    images: &dyn Store,
    table: &FeatureColumns,
    index: Option<&ArrayRef>,
) -> Option<OtherOrder> {
    let images = Images::of(images)?;
    let schema = table.schema();
    let columns = schema.fields().iter().zip(table.columns());
    let told = columns
        .filter(|(field, column)| images.may_be_told_by(field.name(), column))
        .take(MOST_COLUMNS)
        .map(|(field, column)| (OtherOrder::Column(field.name().clone()), field.name().as_str(), column));
    let index = index.filter(|index| images.are_named_by(index));
    let mut other = None;
    for (what, on, column) in told.chain(index.map(|index| (OtherOrder::Index, "index", index))) {
        match images.order_of(on, column) {
            Some(RowOrder::OfImages) => return None,
            Some(RowOrder::Another) => other = other.or(Some(what)),
            None => {}
        }
    }
    other
}

/// Whether these texts name each image once, in another order than the set's.
#[must_use]
pub fn are_in_other_order(images: &dyn Store, names: &ArrayRef) -> bool {
    Images::of(images)
        .filter(|images| names.len() == images.store.len() && images.are_named_by(names))
        .is_some_and(|images| images.order_of("index", names) == Some(RowOrder::Another))
}

/// A set that tables are compared with.
struct Images<'a> {
    store: &'a dyn Store,
    columns: Vec<String>,
    names: OnceCell<Option<HashSet<String>>>,
}

impl<'a> Images<'a> {
    /// `None` of sets that no table is compared with.
    fn of(store: &'a dyn Store) -> Option<Self> {
        let is_looked_at = (2..=MOST_IMAGES).contains(&store.len()) && store.remote_path().is_none();
        is_looked_at.then(|| Self { store, columns: store.hints().feature_names(), names: OnceCell::new() })
    }

    /// Names of the images and of their files, without folders and endings; `None` where some cannot be read.
    fn names(&self) -> Option<&HashSet<String>> {
        let read = || {
            let of_images = each_row::names(self.store).collect::<crate::Result<Vec<String>>>().ok()?;
            let of_files = files_of_sites(self.store).unwrap_or_default().into_iter().flatten();
            Some(of_images.into_iter().chain(of_files).map(|name| stem(&name).to_owned()).collect())
        };
        self.names.get_or_init(read).as_ref()
    }

    /// Whether every value is the name of an image; it ends at the first that is none.
    fn are_named_by(&self, column: &ArrayRef) -> bool {
        let value = |row| key_at(column, row);
        is_text(column)
            && self.names().is_some_and(|names| {
                (0..column.len()).all(|row| value(row).is_some_and(|value| names.contains(stem(&value))))
            })
    }

    /// Whether a column is worth to be compared: by its name, since the images have it as well, or by its values.
    fn may_be_told_by(&self, name: &str, column: &ArrayRef) -> bool {
        // One value over and over tells no images apart.
        if !is_text(column) || key_at(column, 0) == key_at(column, 1) {
            return false;
        }
        let lower = name.to_lowercase();
        TELLING.iter().any(|word| lower.contains(*word))
            || self.columns.iter().any(|own| own == name)
            || self.are_named_by(column)
    }

    /// The order of the rows, where each image has one of its own.
    fn order_of(&self, on: &str, column: &ArrayRef) -> Option<RowOrder> {
        // No message names the table: what cannot be compared says nothing.
        let found =
            rows_of_images(self.store, Path::new(""), &[on.to_owned()], std::slice::from_ref(column)).ok()?;
        let rows = found.rows.into_iter().collect::<Option<Vec<u64>>>()?;
        if rows.iter().copied().eq(0..self.store.len() as u64) {
            return Some(RowOrder::OfImages);
        }
        let is_each = rows.iter().collect::<HashSet<_>>().len() == self.store.len();
        is_each.then_some(RowOrder::Another)
    }
}

fn is_text(column: &ArrayRef) -> bool {
    matches!(column.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
