//! Golden sets of ome-zarr-py and zarr-python.

use super::open_at;
use crate::shared::shared;
use serde_json::{Value, json};
use wellread_store::checksum::sha256_hex;
use wellread_store::{OpenOptions, open, read_image};

#[test]
fn golden_sets_read_back_to_their_checksums() {
    let Some(data) = shared() else { return };
    let mut checked = 0;
    for set in ["jump/uint16-1x1x1", "jump/stack-5d", "jump/noise-uint8", "examplehuman/uint8-1x1x1"] {
        let set = data.join("golden").join(set);
        let expected: Value =
            serde_json::from_slice(&std::fs::read(set.join("expected.json")).unwrap()).unwrap();
        let expected = expected["images"].as_array().unwrap();
        for version in ["0.4", "0.5"] {
            let store = open_at(&set.join(format!("ome-zarr-{version}")));
            assert_eq!((store.format(), store.len()), ("ome-zarr", expected.len()));
            assert!(store.layout().unwrap().variant.starts_with(version));
            for row in 0..store.len() {
                let name = store.name(row).unwrap();
                let image = expected.iter().find(|i| i["name"] == name.as_str()).unwrap();
                let (info, pixels) = read_image(&*store, row).unwrap();
                assert_eq!(json!(info.shape), image["shape_tczyx"], "{name}");
                assert_eq!(json!(info.dtype), image["dtype"], "{name}");
                assert_eq!(sha256_hex(&pixels), image["sha256"], "{name} of {}", set.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 50);
}

#[test]
fn levels_of_a_golden_image() {
    let Some(data) = shared() else { return };
    let set = data.join("golden/jump/uint16-1x1x1/ome-zarr-0.5");
    let open_at = |level| open(&set, &OpenOptions { level, ..OpenOptions::default() });
    let at = |level| open_at(level).unwrap();
    let full = at(0).row_info(0).unwrap().shape;
    let half = at(1).row_info(0).unwrap().shape;
    assert_eq!((half.y(), half.x()), (full.y() / 2, full.x() / 2));
    read_image(&*at(1), 0).unwrap();
    let error = open_at(5).err().expect("there are five");
    assert!(error.is_choice());
    let error = error.to_string();
    assert!(error.contains("there are 5 levels") && error.contains("from 0"), "{error}");
}
