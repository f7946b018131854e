//! DuckDB: the file of a small database, in parts written over.
#![no_main]

// Links the engine.
use wellread as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| wellread_fuzz_engines::duckdb(data));
