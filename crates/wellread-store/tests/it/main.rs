//! Integration tests of the storage formats, one module per format.

mod tiff;
