//! Cells that label images tell.

use crate::support::{arg, generate, json};

/// A mask as a channel, and label images that a pattern fits.
#[test]
fn benchmarks_measure_cells_of_label_images() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff", "--masks", "--channels", "2"]);
    let (tiff, masks) = (set.join("tiff"), set.join("masks"));
    let pattern = masks.join("*.tiff");
    for (number, (cells, more)) in [
        (&masks, &["--cells-mask", "channel", "--in-place"][..]),
        (&pattern, &["--in-place"]),
        (&pattern, &["--cells-mask", "channel", "--formats", "parquet"]),
    ]
    .into_iter()
    .enumerate()
    {
        let out = dir.path().join(format!("out{number}"));
        let bench = ["bench", "dataloader", "--input", arg(&tiff), "--cells", arg(cells), "--out", arg(&out)];
        let small = ["--cells-size", "16x16", "--repeats", "2", "--batch-sizes", "4", "--workers", "0"];
        let summary = json(&[&bench[..], &small, more, &["--framework", "rust"]].concat());
        assert_eq!(summary["verified"], true, "{more:?}: {summary}");
    }
}
