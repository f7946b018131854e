//! PNG and JPEG.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let name = if data.starts_with(b"\x89PNG") { "a.png" } else { "a.jpg" };
    wellread_fuzz::read_all(&wellread_fuzz::file(name, data), "image-folder");
});
