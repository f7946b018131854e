//! Metadata as programs other than wellread write them.

use super::{open_at, write_group};
use serde_json::json;
use wellread_store::read_image;

/// Python writes NaN as it is, and some writers `null` for what an image does not have.
#[test]
fn attributes_of_other_writers_harm_no_image() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zarr");
    write_group(&path, 2, "yx", "0");
    std::fs::create_dir_all(path.join("0")).unwrap();
    let array = json!({"zarr_format": 2, "shape": [4, 6], "chunks": [4, 6], "dtype": "|u1", "fill_value": 0,
        "order": "C", "filters": null, "compressor": null});
    std::fs::write(path.join("0/.zarray"), array.to_string()).unwrap();
    let pixels: Vec<u8> = (0..24).collect();
    std::fs::write(path.join("0/0.0"), &pixels).unwrap();
    let file = path.join(".zattrs");
    let good = std::fs::read_to_string(&file).unwrap();
    for (from, to) in [
        (r#"{"multiscales""#, r#"{"mean": NaN, "range": [-Infinity, Infinity], "multiscales""#),
        (r#"{"axes""#, r#"{"coordinateTransformations": null, "axes""#),
        (r#"{"path""#, r#"{"coordinateTransformations": null, "path""#),
        (r#"{"path""#, r#"{"coordinateTransformations": [{"type": "scale", "scale": [NaN, 2]}], "path""#),
    ] {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        std::fs::write(&file, changed).unwrap();
        let store = open_at(&path);
        let read = read_image(&*store, 0).unwrap_or_else(|e| panic!("{to}: {e}"));
        assert_eq!(read.1, pixels, "{to}");
        assert_eq!(store.metadata(0).unwrap().name, "a");
    }
}
