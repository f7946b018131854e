//! Where the rows of a table come from, and by which numbers queries name them.

use crate::place::Place;
use crate::sql;
use std::path::Path;
use wellread_image::ome_arrow::ROW_ID;

/// DuckDB's number of a row of a Parquet file.
pub(super) const PARQUET_KEY: &str = "file_row_number";

/// Where rows come from and how they are numbered.
pub(super) enum Source {
    /// A native table whose `row_id` is its primary key and counts from 0.
    Keyed(Place),
    /// A native table by DuckDB's own row numbers; where rows were deleted, the numbers that are left.
    Native(Place, Option<Vec<i64>>),
    /// A Parquet file.
    Parquet,
}

impl Source {
    /// What is selected from.
    pub fn from(&self, path: &Path) -> String {
        match self {
            Self::Keyed(place) | Self::Native(place, _) => place.sql(),
            Self::Parquet => {
                let name = sql::literal(&path.to_string_lossy());
                format!("read_parquet({name}, file_row_number = true)")
            }
        }
    }

    /// The expression that numbers rows.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Keyed(_) => ROW_ID,
            Self::Native(..) => "rowid",
            Self::Parquet => PARQUET_KEY,
        }
    }

    /// The key of a row.
    pub fn key_of(&self, row: usize) -> i64 {
        match self {
            Self::Native(_, Some(numbers)) => numbers[row],
            _ => row as i64,
        }
    }
}
