//! OME-Zarr: the metadata of a small image, each file of both versions, and its one chunk.
//!
//! The first byte of the input says which file the rest replaces; the other files are good ones.
#![no_main]

use std::sync::Once;
use wellread_fuzz::{folder, read_all};

const GROUP_3: &str = r#"{"zarr_format":3,"node_type":"group","attributes":{"ome":{"version":"0.5","multiscales":
[{"axes":[{"name":"y","type":"space"},{"name":"x","type":"space"}],"datasets":[{"path":"0"}]}]}}}"#;
const ARRAY_3: &str = r#"{"zarr_format":3,"node_type":"array","shape":[8,8],"data_type":"uint16","fill_value":0,
"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[8,8]}},"chunk_key_encoding":{"name":"default"},
"codecs":["bytes",{"name":"zstd","configuration":{"level":1,"checksum":false}}]}"#;
const GROUP_2: &str = r#"{"zarr_format":2}"#;
const ATTRIBUTES_2: &str = r#"{"multiscales":[{"version":"0.4","axes":[{"name":"y","type":"space"},
{"name":"x","type":"space"}],"datasets":[{"path":"0"}]}]}"#;
const ARRAY_2: &str = r#"{"zarr_format":2,"shape":[8,8],"chunks":[8,8],"dtype":"<u2","fill_value":0,"order":"C",
"filters":null,"compressor":{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1}}"#;

const FILES: [(&str, &str, &str); 7] = [
    ("3.zarr", "zarr.json", GROUP_3),
    ("3.zarr", "0/zarr.json", ARRAY_3),
    ("3.zarr", "0/c/0/0", ""),
    ("2.zarr", ".zgroup", GROUP_2),
    ("2.zarr", ".zattrs", ATTRIBUTES_2),
    ("2.zarr", "0/.zarray", ARRAY_2),
    ("2.zarr", "0/0.0", ""),
];

fn write(image: &str, name: &str, bytes: &[u8]) {
    let path = folder().join(image).join(name);
    std::fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a temporary folder");
    std::fs::write(path, bytes).expect("the temporary folder can be written to");
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static GOOD: Once = Once::new();
    GOOD.call_once(|| FILES.iter().for_each(|(image, name, text)| write(image, name, text.as_bytes())));
    let Some((&which, bytes)) = data.split_first() else { return };
    let (image, name, good) = FILES[usize::from(which) % FILES.len()];
    write(image, name, bytes);
    read_all(&folder().join(image), "ome-zarr");
    write(image, name, good.as_bytes());
});
