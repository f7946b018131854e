//! Messages of commands about a set of cells count cells.

use crate::cells::cells_of;
use crate::support::{arg, wellread};

#[test]
fn commands_about_cells_count_cells() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let [results, measured, scratch, features] =
        ["results", "measured", "scratch", "features.parquet"].map(|name| dir.path().join(name));
    let said = |args: &[&str], code: i32, parts: &[&str]| {
        let done = wellread(&[args, &["--cells", arg(&table), "--cells-size", "8x8"]].concat());
        let text = done.stdout + &done.stderr;
        assert_eq!(done.code, code, "{text}");
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    };
    let bench = ["bench", "dataloader", "--input", arg(&tiff), "--formats", "tiff", "--workers", "0"];
    let too_few = "nothing was measured: the set has only 12 cells";
    said(&[&bench[..], &["--batch-sizes", "64", "--out", arg(&results)]].concat(), 1, &[too_few]);
    let few = ["--batch-sizes", "4", "--repeats", "1", "--out", arg(&measured)];
    said(&[&bench[..], &few].concat(), 0, &[" cells/s in batches of 4 with no workers"]);
    let advise = ["advise", arg(&tiff), "--formats", "tiff", "--batch-size", "4", "--time-budget", "1e-6"];
    let of_cells = [" of 12 cells (", "the sample is of 1 cell at most", ": one cell takes ", " cells/s"];
    said(&[&advise[..], &["--scratch", arg(&scratch)]].concat(), 0, &of_cells);
    let embed = ["embed", arg(&tiff), "--out", arg(&features), "--model-dir", arg(dir.path())];
    let model = ["--model", "resnet50", "--resize", "32x32", "--threads", "1", "--channels", "0,0,0"];
    said(&[&embed[..], &model].concat(), 0, &[" features of 12 cells in ", " cells/s)"]);
}
