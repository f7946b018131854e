//! Files of the shared data: golden sets of the reference libraries and public microscopy images.

use super::{check_regions, open};
use crate::shared::shared;
use std::collections::HashMap;
use wellread_store::checksum::sha256_hex;
use wellread_store::{OpenOptions, Store, read_image};

/// Name → (shape, dtype, sha256).
fn contents(store: &dyn Store) -> HashMap<String, (Vec<usize>, String, String)> {
    let read = |row| {
        let (info, pixels) = read_image(store, row).unwrap();
        let sum = sha256_hex(&pixels);
        (store.name(row).unwrap(), (info.shape.0.to_vec(), info.dtype.to_string(), sum))
    };
    (0..store.len()).map(read).collect()
}

#[test]
fn golden_sets_match() {
    let Some(shared) = shared() else { return };
    for set in ["examplehuman/uint8-1x1x1", "jump/uint16-1x1x1", "jump/noise-uint8", "jump/stack-5d"] {
        let set = shared.join("golden").join(set);
        let json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(set.join("expected.json")).unwrap()).unwrap();
        let expected = json["images"].as_array().unwrap().iter().map(|image| {
            let shape: Vec<usize> = serde_json::from_value(image["shape_tczyx"].clone()).unwrap();
            let text = |key: &str| image[key].as_str().unwrap().to_owned();
            (text("name"), (shape, text("dtype"), text("sha256")))
        });
        let expected: HashMap<_, _> = expected.collect();
        for kind in ["tiff", "ome-tiff"] {
            let path = set.join(kind);
            let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
            assert_eq!(store.format(), "tiff");
            assert_eq!(contents(&*store), expected, "{}", path.display());
            check_regions(&*store);
        }
    }
}

/// Folder, name, shape, pixel type and sha256, as tifffile 2026.3 reads them, transposed to TCZYX.
const REAL: &str = "\
ome-5d 4D-series 7x1x5x167x439 int8 70d3b0e5d7b9bd833cec67dbc6078724e7ad40c2e69f11e8ffa5072699ca9fdf
ome-5d multi-channel-time-series 7x3x1x167x439 int8 fada9941d504ad70d0d7522a880458ef76ea5c81a715e925cbbeabb24964da4d
ome-5d multi-channel-z-series 1x3x5x167x439 int8 7ffeead48b4453fa7af858d16967be6af8dad55fc2069592378d277e275aa12e
ome-5d multi-channel 1x3x1x167x439 int8 423f58071830e571fcbc842d283db6646c3a53d298d1c86b5b97e9559338d24d
ome-5d single-channel 1x1x1x167x439 int8 88ed1d65fc2f1bc76416b97cb7f75d5faceef017962cd3582315b64e26c98795
ome-5d time-series 7x1x1x167x439 int8 2d73a986d5302275e84970fbaa73e4c4959ef2c430d578fdd5ec190e38cf7ca7
ome-5d z-series 1x1x5x167x439 int8 3a705b983ecb1e49b9bafc39899db01bff6140581b84e4d5bd070a485ae1a1e4
examplehuman AS_09125_050116030001_D03f00d0 1x1x1x512x512 uint8 868c3327e26eb8e1d20fbf07c85713e9e868eba962419877bdb454bfc3418403
examplehuman AS_09125_050116030001_D03f00d1 1x1x1x512x512 uint8 409497aab5a3b665201c8d718f39a87725f34c9a1ba3be196a72ab10327c8f2a
examplehuman AS_09125_050116030001_D03f00d2 1x1x1x512x512 uint8 6de466e00e6eed875ab21c3dcf6844c3f781eb362b5a1be6d5afe78e5b9470d7
jump r01c01f01p01-ch2sk1fk1fl1 1x1x1x1080x1080 uint16 355fdc44966d34fb560160babf7cb653417c32a52dece1f33528104cdb6aa81c
jump r01c01f01p01-ch3sk1fk1fl1 1x1x1x1080x1080 uint16 1509b48ffacfcfc75ff23b11059f08bbf97a5ba53adf077785f2b0256d1e8789
jump r01c01f01p01-ch5sk1fk1fl1 1x1x1x1080x1080 uint16 9fc238667e442cb3d5be4cc55a2525d23ee94bd090ba90db9923e61695697f96
nf1/images B7_01_1_3_DAPI_001 1x1x1x904x1224 uint16 65bf56b8016daf24e9e7b51e50fdc6bb1627992c17088286a00e3532bec77c63
nf1/images B7_01_2_3_GFP_001 1x1x1x904x1224 uint16 132e4b407a6c5f49627c50f73c934600a555e20e120ebfa847e4d8667633ae0e
nf1/images B7_01_3_3_RFP_001 1x1x1x904x1224 uint16 d00667320214960cc1d9506c6eeccbbc42977cfdfa9dfeda1b7b5893b831647d
nf1/images D6_01_1_2_DAPI_001 1x1x1x904x1224 uint16 e896d37b0af5b9a0b66c9a09e704fc8b90d62f6bbafffae8d1a11c0ceab3e47c
nf1/images D6_01_2_2_GFP_001 1x1x1x904x1224 uint16 bb5f204b96e9f398e19cb92d7c651ab62fea5bd45a0abe1658efa5413e6285c5
nf1/images D6_01_3_2_RFP_001 1x1x1x904x1224 uint16 f548e761647dbb082f518927fdae234018ae3a7062d9ba1ea9475d638f224907
nf1/images D7_01_1_1_DAPI_001 1x1x1x904x1224 uint16 b4db37ce4436385cb45e77ea6343b4574d0c5aaad5d43088d7b868b029568bfa
nf1/images D7_01_2_1_GFP_001 1x1x1x904x1224 uint16 e973558a95a97209f687cc90ba73078e2bdfbfa9b357ad3f3f2c5bcf06a102c0
nf1/images D7_01_3_1_RFP_001 1x1x1x904x1224 uint16 00669509db7f3f7b871b1ab5225c57c3355fe08f608f5a04b0df296adac33ce9
nf1/images F7_01_1_2_DAPI_001 1x1x1x904x1224 uint16 ac4266e84f7537664bb0a0cf493c8359b2659f33f95a38b3c3e530ab6a9829c0
nf1/images F7_01_2_2_GFP_001 1x1x1x904x1224 uint16 af44aa7ded0e7b62d246f5d00e2c5f5155dda123a05cc4bfd1121b41d6f8c7d3
nf1/images F7_01_3_2_RFP_001 1x1x1x904x1224 uint16 c6b441f5b5d9f34a99d42c1b7ff6239453acee3698096208d3945f3f37062105
nf1/images H12_01_1_1_DAPI_001 1x1x1x904x1224 uint16 77f1f6b5f0365777eae4a5276f4b5663206c289959b64523f80384d2d44ad6ec
nf1/images H12_01_2_1_GFP_001 1x1x1x904x1224 uint16 572288ee14dcc835da8ed768174d7a6532eb730d3d3a76f7b52389146ea6c06f
nf1/images H12_01_3_1_RFP_001 1x1x1x904x1224 uint16 d4040dae0ea5a88c7778cc8476d06c6ee096faf5dc9b9f4dae7fe0501fc9b4bb
nf1/masks B7_01_1_3_DAPI_001_MaskNuclei 1x1x1x904x1224 uint8 8ee11f44ed9c27aa2e4d34210e0fb6d022041c1ee66dcd489b53cbee5aeb6643
nf1/masks B7_01_3_3_RFP_001_MaskCells 1x1x1x904x1224 uint8 5b3e2a412fc7548e06ff8e93ee1f73d4e076ff59860e3a111cf9b61b804e4857
nf1/masks B7_01_3_3_RFP_001_MaskCytoplasm 1x1x1x904x1224 uint8 316ef10c7bbdb0e2749e4ba0f580082fd036dba0855d3a2e815193b8b85dda0f
nf1/masks D6_01_1_2_DAPI_001_MaskNuclei 1x1x1x904x1224 uint8 a925c1a0cc580a36eb2f040b373c6c853ad2ad8b097b1154002ed89490a9b398
nf1/masks D6_01_3_2_RFP_001_MaskCells 1x1x1x904x1224 uint8 19b07d01b1c85169489db9bbc0ff4b012f5ff2c5f5d61bd9fc4991227a3caab7
nf1/masks D6_01_3_2_RFP_001_MaskCytoplasm 1x1x1x904x1224 uint8 6ff645694ecb71ed013dfebbe29f14e325e3a2604ee8bd68ae04512838656f84
nf1/masks D7_01_1_1_DAPI_001_MaskNuclei 1x1x1x904x1224 uint8 6d5eb7b7000045e4aa878e621902f0a8dabd79fb9fb9b0e863d4435035e2c651
nf1/masks D7_01_3_1_RFP_001_MaskCells 1x1x1x904x1224 uint8 e93f3dc2b540fa7857659f80b02ac5d78eac609aac69273056571c134538e3cc
nf1/masks D7_01_3_1_RFP_001_MaskCytoplasm 1x1x1x904x1224 uint8 b2ad16a06465a7d20609d2929a37f83db1deef3ddc8854538a843a1885968b3e
nf1/masks F7_01_1_2_DAPI_001_MaskNuclei 1x1x1x904x1224 uint8 8e34f72ee36e065ff059b8d514ebf7a470a779b948fed631518a756bdc70c3ec
nf1/masks F7_01_3_2_RFP_001_MaskCells 1x1x1x904x1224 uint8 0a5c10123ffd0e289a54146e3f12643574b199aacb75ea0d427b7cdc62947c9d
nf1/masks F7_01_3_2_RFP_001_MaskCytoplasm 1x1x1x904x1224 uint8 0940ec401f1033a84a8e0a2f6482c93ef1b80b8698bdceb96d4150dd421365d2
nf1/masks H12_01_1_1_DAPI_001_MaskNuclei 1x1x1x904x1224 uint8 038281ab26ae3da028b4f72aa6fb7e305862a43b2e8b59c82880288012a6f0ca
nf1/masks H12_01_3_1_RFP_001_MaskCells 1x1x1x904x1224 uint8 ee3d5a61e1fbaf49a8448b289617790a546a78c2fe8b8027704357c857759e45
nf1/masks H12_01_3_1_RFP_001_MaskCytoplasm 1x1x1x904x1224 uint8 ad736969aaa925ea6c6bf0ac94a8854c0a6b2222aeb1c653cd38f2f9c492944d
";

#[test]
fn public_images_match_tifffile() {
    let Some(shared) = shared() else { return };
    let mut known = HashMap::new();
    let mut count = 0;
    for line in REAL.lines() {
        let [folder, name, shape, dtype, sum] =
            line.split(' ').collect::<Vec<_>>().try_into().expect("five fields");
        let images = known.entry(folder).or_insert_with(|| {
            let store = open(shared.join(folder)).unwrap();
            check_regions(&*store);
            contents(&*store)
        });
        let shape = shape.split('x').map(|n| n.parse().unwrap()).collect();
        assert_eq!(images[name], (shape, dtype.to_owned(), sum.to_owned()), "{name}");
        count += 1;
    }
    assert_eq!(known.values().map(HashMap::len).sum::<usize>(), count);
}
