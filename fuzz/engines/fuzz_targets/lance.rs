//! Lance: the data file of a small table, in parts written over.
#![no_main]

// Links the engine.
use wellread as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| wellread_fuzz_engines::lance(data));
