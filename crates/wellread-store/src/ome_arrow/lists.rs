//! Lists of whatever kind an engine delivers: 32- and 64-bit offsets, list views, lists of a fixed length.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::ops::Range;

/// A list array, its elements found by row.
#[derive(Clone)]
pub(crate) struct Lists {
    lists: ArrayRef,
    values: ArrayRef,
}

impl Lists {
    /// The array as lists; `None` for other types.
    pub fn new(array: &ArrayRef) -> Option<Self> {
        let values = match array.data_type() {
            DataType::List(_) => array.as_list::<i32>().values(),
            DataType::LargeList(_) => array.as_list::<i64>().values(),
            DataType::ListView(_) => array.as_list_view::<i32>().values(),
            DataType::LargeListView(_) => array.as_list_view::<i64>().values(),
            DataType::FixedSizeList(..) => array.as_fixed_size_list().values(),
            _ => return None,
        };
        Some(Self { lists: ArrayRef::clone(array), values: ArrayRef::clone(values) })
    }

    /// The elements of all lists.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Where the elements of list `i` are; `None` where it is null.
    pub fn range(&self, i: usize) -> Option<Range<usize>> {
        if self.lists.is_null(i) {
            return None;
        }
        let (start, end) = match self.lists.data_type() {
            DataType::List(_) => {
                let offsets = self.lists.as_list::<i32>().value_offsets();
                (offsets[i] as usize, offsets[i + 1] as usize)
            }
            DataType::LargeList(_) => {
                let offsets = self.lists.as_list::<i64>().value_offsets();
                (offsets[i] as usize, offsets[i + 1] as usize)
            }
            DataType::ListView(_) => {
                let view = self.lists.as_list_view::<i32>();
                let start = view.value_offset(i) as usize;
                (start, start + view.value_size(i) as usize)
            }
            DataType::LargeListView(_) => {
                let view = self.lists.as_list_view::<i64>();
                let start = view.value_offset(i) as usize;
                (start, start + view.value_size(i) as usize)
            }
            _ => {
                let length = self.lists.as_fixed_size_list().value_length() as usize;
                let start = self.lists.as_fixed_size_list().value_offset_at(i);
                (start, start + length)
            }
        };
        Some(start..end)
    }
}
