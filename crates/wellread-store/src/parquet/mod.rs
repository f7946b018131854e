//! OME-Arrow columns in Parquet.

use crate::{Error, Format};

/// OME-Arrow columns in Parquet.
pub static FORMAT: Format = Format {
    name: "parquet",
    about: "OME-Arrow columns in Parquet.",
    extension: "",
    engine: || String::new(),
    recognise: |_| false,
    open: |path, _| Err(Error::new(path, "placeholder")),
    create: |path, _| Err(Error::new(path, "placeholder")),
};
