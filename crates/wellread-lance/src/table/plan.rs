//! The kept state of a dataset from read to read: data files of fragments, and the plans of some columns in
//! each.

use crate::direct::{CheckedPages, Direct, Input};
use crate::fragment::FragmentReader;
use arrow_schema::SchemaRef;
use lance_core::datatypes::Schema;
use lance_file::reader::CachedFileMetadata;
use lance_table::format;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use wellread_store::table::Columns;

/// A fragment, and its data files once they are known.
pub(super) struct Fragment {
    pub lance: format::Fragment,
    pub files: OnceLock<Vec<DataFile>>,
}

/// The plan for reading some columns.
pub(super) struct Plan {
    pub columns: Box<Columns>,
    pub projection: Schema,
    pub schema: SchemaRef,
    pub fragments: Box<[FragmentPlan]>,
}

/// Readers of a fragment, made at first use.
#[derive(Default)]
pub(super) struct FragmentPlan {
    pub direct: OnceLock<Option<Direct>>,
    pub engine: OnceLock<FragmentReader>,
}

/// A data file of a fragment: open, with its metadata.
pub(super) struct DataFile {
    /// As the manifest names it.
    pub name: String,
    pub input: Option<Arc<Input>>,
    pub metadata: Arc<CachedFileMetadata>,
    /// Columns by fields.
    pub columns: HashMap<i32, usize>,
    /// Which of its pages Lance may decode.
    pub checked_pages: CheckedPages,
}
