//! Parquet: footer, page headers, levels, values, by the fast path and by the general reader.
#![no_main]

use wellread_fuzz::{file, read_all};
use wellread_store::parquet::ParquetStore;
use wellread_store::{OpenOptions, Store, read_image};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let path = file("a.parquet", data);
    read_all(&path, "parquet");
    if let Ok(store) = ParquetStore::open(&path, &OpenOptions::default()) {
        let store = store.without_fast_path();
        if store.row_info(0).is_ok_and(|info| info.shape.pixels() < 1 << 20) {
            let _ = read_image(&store, 0);
        }
    }
});
