//! Sets whose files have no checksums of their own: what `verify` says of them, and who writes one.

use crate::support::{arg, formats, generate, json, wellread};
use std::fs;
use std::path::Path;

#[test]
fn verify_says_where_there_are_no_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let written = generate(dir.path(), 2, &[]);
    let expected = dir.path().join("expected.json");
    let verified = |set: &Path, more: &[&str]| {
        let done = wellread(&[&["verify", arg(set)], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout
    };
    for set in written["written"].as_array().unwrap() {
        let format = set["format"].as_str().unwrap();
        let Some(path) = set["path"].as_str().filter(|_| set["error"].is_null()) else { continue };
        let said = verified(Path::new(path), &[]);
        let unseen = said.contains("has no checksums of its own") && said.contains("--against");
        let without = ["lance", "vortex", "parquet-duckdb"].contains(&format);
        assert_eq!(unseen, without, "{format}: {said}");
        assert_eq!(set["has_checksums"], !without, "{format}");
        assert!(!verified(Path::new(path), &["--against", arg(&expected)]).contains("of its own"));
    }
    // Those whose files have a place for them, which was left empty, or which the codec fills.
    let source = dir.path().join("images.parquet");
    for (i, (format, compression, more, unseen)) in [
        ("parquet", "none", &["--no-checksums"][..], true),
        ("parquet", "zstd:3", &["--no-checksums"], true),
        ("parquet", "zstd:3", &[], false),
        ("ome-arrow-dataset", "zstd:3", &["--no-checksums"], true),
        ("tiff", "none", &["--no-checksums"], true),
        ("tiff", "deflate", &["--no-checksums"], false),
        ("ome-zarr", "none", &["--no-checksums", "--variant", "0.5"], true),
        ("ome-zarr", "none", &["--variant", "0.5"], false),
        ("ome-zarr", "none", &["--variant", "0.4"], true),
        ("ome-zarr", "zstd:3", &["--no-checksums", "--variant", "0.5"], true),
        ("ome-zarr", "zstd:3", &["--no-checksums", "--variant", "0.5", "--shard", "1,1,1,40,56"], true),
        ("ome-zarr", "zstd:3", &["--variant", "0.5"], false),
    ]
    .into_iter()
    .enumerate()
    {
        let target = dir.path().join(format!("again-{i}"));
        let convert =
            ["convert", arg(&source), arg(&target), "--format", format, "--compression", compression];
        let done = wellread(&[&convert[..], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        // No line is for those who left them out themselves.
        let is_told = done.stderr.contains("no checksums of its own");
        assert_eq!(
            is_told,
            unseen && !more.contains(&"--no-checksums"),
            "{format} {more:?}: {}",
            done.stderr
        );
        let said = verified(&target, &[]);
        assert_eq!(
            said.contains("no checksums of its own"),
            unseen,
            "{format} {compression} {more:?}: {said}"
        );
    }
    // PNG has checksums, JPEG has none, whatever the files are called; one JPEG is enough.
    let pictures = dir.path().join("pictures");
    fs::create_dir(&pictures).unwrap();
    let at = |name: &str| pictures.join(name);
    let is_unseen = || verified(&pictures, &[]).contains("no checksums of its own");
    let picture = image::RgbImage::from_fn(16, 16, |x, y| image::Rgb([x as u8, y as u8, 7]));
    picture.save(at("a.png")).unwrap();
    assert!(!is_unseen());
    picture.save(at("b.jpg")).unwrap();
    assert!(is_unseen());
    fs::rename(at("b.jpg"), at("b.png")).unwrap();
    assert!(is_unseen());
    fs::remove_file(at("b.png")).unwrap();
    fs::rename(at("a.png"), at("a.jpg")).unwrap();
    assert!(!is_unseen());
}

/// A line names such a set when it is written, and not only when `verify` is asked.
#[test]
fn writers_say_where_files_have_no_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("set/images.parquet");
    let generated = wellread(&[
        "generate",
        arg(&dir.path().join("set")),
        "--images",
        "2",
        "--size",
        "40x56",
        "--formats",
        "all",
    ]);
    assert_eq!(generated.code, 0, "{}", generated.stderr);
    let has_none = |name: &String| ["lance", "vortex", "parquet-duckdb"].contains(&name.as_str());
    let without: Vec<String> = formats().into_iter().filter(has_none).collect();
    let unseen = "has no checksums of its own, so damage that can be decoded is not seen: ";
    for name in &without {
        assert!(generated.stderr.contains(name), "{name}: {}", generated.stderr);
    }
    let told = generated.stderr.matches(unseen).count();
    assert_eq!(told, usize::from(!without.is_empty()), "{}", generated.stderr);
    let as_it_is: &[&str] = &[];
    let targets = without.iter().map(|name| (name.as_str(), as_it_is));
    let zarr: [(&str, &[&str]); 2] = [
        ("ome-zarr", &["--variant", "0.4", "--compression", "none"]),
        ("ome-zarr", &["--variant", "0.4", "--compression", "lz4"]),
    ];
    for (i, (format, more)) in targets.chain(zarr).enumerate() {
        let target = dir.path().join(format!("target-{i}"));
        let convert = |more_still: &[&str]| {
            let args = ["convert", arg(&source), arg(&target), "--format", format, "--overwrite"];
            let done = wellread(&[&args[..], more, more_still].concat());
            assert_eq!(done.code, 0, "{format}: {}", done.stderr);
            done
        };
        let line = format!(
            "note: {path} {unseen}keep `wellread checksum {path} --json > expected.json` beside it, and compare by `wellread verify \
             {path} --against expected.json`\n",
            path = target.display()
        );
        assert_eq!(convert(&[]).stderr.matches(&line).count(), 1, "{format} {more:?}");
        let quiet = convert(&["--quiet"]);
        assert!(!quiet.stderr.contains(unseen), "{format}: {}", quiet.stderr);
        let document: serde_json::Value = serde_json::from_str(&convert(&["--json"]).stdout).unwrap();
        assert_eq!(document["has_checksums"], false, "{format} {more:?}");
        // Whichever way the written set was looked at, and where it was complete before.
        let unchecked: serde_json::Value =
            serde_json::from_str(&convert(&["--no-verify", "--json"]).stdout).unwrap();
        assert_eq!(unchecked["has_checksums"], false, "{format} {more:?}");
        if format == "ome-zarr" {
            let args = ["convert", arg(&source), arg(&target), "--format", format, "--resume"];
            let resumed = json(&[&args[..], more].concat());
            assert_eq!((&resumed["verified"], &resumed["has_checksums"]), (&true.into(), &false.into()));
        }
        // The advice of the line works.
        let sums = wellread(&["checksum", arg(&target), "--json"]);
        let expected = dir.path().join(format!("expected-{i}.json"));
        fs::write(&expected, sums.stdout).unwrap();
        assert_eq!(wellread(&["verify", arg(&target), "--against", arg(&expected)]).code, 0, "{format}");
    }
    for format in ["parquet", "tiff", "ome-zarr", "image-folder"] {
        let target = dir.path().join(format!("with-{format}"));
        let done = wellread(&["convert", arg(&source), arg(&target), "--format", format, "--json"]);
        assert!(!done.stderr.contains(unseen), "{format}: {}", done.stderr);
        let document: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(document["has_checksums"], true, "{format}");
    }
}
