//! TIFF and OME-TIFF.

use crate::{Error, Format};

/// TIFF and OME-TIFF.
pub static FORMAT: Format = Format {
    name: "tiff",
    about: "TIFF and OME-TIFF.",
    extension: "",
    engine: || String::new(),
    recognise: |_| false,
    open: |path, _| Err(Error::new(path, "placeholder")),
    create: |path, _| Err(Error::new(path, "placeholder")),
};
