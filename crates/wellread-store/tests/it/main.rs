//! Integration tests of the storage formats.

mod parquet;
