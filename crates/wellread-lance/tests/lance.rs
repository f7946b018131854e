//! Lance: golden sets, round trips, LanceDB folders, and files that are not as they should be.

use arrow_array::{ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray, UInt8Array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::synthetic;
use wellread_store::{
    Compression, ImageView, OpenOptions, Request, Scratch, Store, StoreWriter, Tune, WriteOptions, read_image,
};

#[test]
fn linked() {}
