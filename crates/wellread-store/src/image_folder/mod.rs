//! PNG and JPEG folders.

use crate::{Error, Format};

/// PNG and JPEG folders.
pub static FORMAT: Format = Format {
    name: "image-folder",
    about: "PNG and JPEG folders.",
    extension: "",
    engine: || String::new(),
    recognise: |_| false,
    open: |path, _| Err(Error::new(path, "placeholder")),
    create: |path, _| Err(Error::new(path, "placeholder")),
};
