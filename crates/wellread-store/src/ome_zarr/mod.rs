//! OME-Zarr 0.4 and 0.5.

use crate::{Error, Format};

/// OME-Zarr 0.4 and 0.5.
pub static FORMAT: Format = Format {
    name: "ome-zarr",
    about: "OME-Zarr 0.4 and 0.5.",
    extension: "",
    engine: || String::new(),
    recognise: |_| false,
    open: |path, _| Err(Error::new(path, "placeholder")),
    create: |path, _| Err(Error::new(path, "placeholder")),
};
