//! The file of statistics that `wellread stats --out` writes and loaders normalise by.
#![no_main]

use wellread_fuzz::file;
use wellread_loader::Stats;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let path = file("stats.json", data);
    if let Ok(stats) = Stats::open(&path) {
        let _ = (stats.normalize(&path), stats.range(&path, 1.0, 99.0));
    }
});
