//! TIFF: directories, descriptions, strips and tiles of every compression.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wellread_fuzz::read_all(&wellread_fuzz::file("a.tif", data), "tiff");
});
