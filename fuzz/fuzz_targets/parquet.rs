//! Parquet: footer, page headers, levels, values, by the fast path and by the general reader, which must agree.
#![no_main]

use wellread_fuzz::{LARGEST, ROWS, file, read_all};
use wellread_store::parquet::ParquetStore;
use wellread_store::{OpenOptions, Store, read_image};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let path = file("a.parquet", data);
    read_all(&path, "parquet");
    let open = || ParquetStore::open(&path, &OpenOptions::default());
    let (Ok(fast), Ok(general)) = (open(), open()) else { return };
    let general = general.without_fast_path();
    let is_small =
        |store: &ParquetStore, row| store.row_info(row).is_ok_and(|info| info.shape.pixels() <= LARGEST);
    for row in (0..fast.len().min(ROWS)).filter(|&row| is_small(&fast, row) && is_small(&general, row)) {
        if let (Ok(fast), Ok(general)) = (read_image(&fast, row), read_image(&general, row)) {
            assert!(fast == general, "row {row}: the two paths differ");
        }
    }
});
