//! Public images: a field of JUMP, fields of NF1, CellProfiler's example.

use super::{channels, layout, names, options, pattern, text};
use crate::shared::shared;
use wellread_store::{open, read_image};

#[test]
fn fields_of_public_plates_are_whole() {
    let Some(shared) = shared() else { return };
    let cases = [
        ("jump", options(), "r01c01f01", [1, 3, 1, 1080, 1080], 1),
        ("examplehuman", options(), "AS_09125_050116030001_D03f00", [1, 3, 1, 512, 512], 1),
        ("nf1/images", pattern("{well}_01_*_{site}_{channel}_001.tif"), "B7_01_3", [1, 3, 1, 904, 1224], 5),
    ];
    for (folder, options, name, shape, sites) in cases {
        let folder = shared.join(folder);
        let store = open(&folder, &options).unwrap();
        assert_eq!((store.len(), names(&*store)[0].as_str()), (sites, name));
        let (info, pixels) = read_image(&*store, 0).unwrap();
        assert_eq!(info.shape.0, shape);
        let files = open(&folder, &layout("files")).unwrap();
        let single: Vec<u8> = (0..3).flat_map(|row| read_image(&*files, row).unwrap().1).collect();
        assert!(pixels == single, "{name}");
    }
    let store = open(shared.join("nf1/images"), &pattern("{well}_01_*_{site}_{channel}_001.tif")).unwrap();
    assert_eq!(text(&*store, "Metadata_Well"), ["B7", "D6", "D7", "F7", "H12"]);
    assert_eq!(channels(&*store), ["DAPI", "GFP", "RFP"]);
    let store = open(shared.join("jump"), &options()).unwrap();
    assert_eq!(
        (channels(&*store), text(&*store, "Metadata_Well")),
        (["ch2", "ch3", "ch5"].map(str::to_owned).to_vec(), vec!["A01".to_owned()])
    );
}
