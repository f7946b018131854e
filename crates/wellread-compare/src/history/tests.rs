//! Series of records, their changes, and the file that keeps them.

use super::*;

fn record(i: usize, value: f64, machine: &str) -> Record {
    let row = |quantity: &str, value| Figure {
        table: "dataset".into(),
        name: "tiff random".into(),
        quantity: quantity.into(),
        value,
        n: 7,
        ..Figure::default()
    };
    Record {
        wellread_history: 1,
        timestamp: format!("2026-01-{:02}T00:00:00Z", i + 1),
        label: format!("commit{i}"),
        machine: machine.into(),
        rows: vec![row("p50_s", value), row("samples_per_sec", 1.0 / value)],
        ..Record::default()
    }
}

#[test]
fn a_change_is_found_at_its_commit_on_its_machine() {
    let wobble = |i: usize| 1.0 + 0.005 * (i * 7 % 5) as f64;
    let mut records: Vec<Record> =
        (0..24).map(|i| record(i, if i < 14 { 1.0 } else { 1.2 } * wobble(i), "fast")).collect();
    records.extend((24..40).map(|i| record(i, 9.0 * wobble(i), "slow")));
    let found = series(&records, 1);
    assert_eq!(found.len(), 4);
    for s in &found[..2] {
        assert_eq!((s.changes.len(), s.changes[0].label.as_str()), (1, "commit14"), "{s:?}");
        assert!((s.changes[0].ratio - 1.2).abs() < 0.01, "{s:?}");
    }
    assert!(found[2..].iter().all(|s| s.machine == "slow" && s.changes.is_empty()), "{found:?}");
    let said = text(&records, &found);
    assert!(said.contains("slower from commit14") && said.contains("2 machines"), "{said}");
}

/// Earlier records have no words, and are of the same series.
#[test]
fn a_series_goes_on_where_records_name_its_configuration_in_words() {
    let mut records = [record(0, 1.0, "m"), record(1, 1.0, "m")];
    assert_eq!(series(&records, 1)[0].title(), "dataset: tiff random");
    records[1].rows[0].configuration = "tiff, random".into();
    let all = series(&records, 1);
    assert_eq!((all.len(), all[0].records.as_slice()), (2, [0, 1].as_slice()));
    assert_eq!(all[0].title(), "dataset: tiff, random");
    let key = [("format", "tiff"), ("workers", "2"), ("cache", "none")];
    let key = key.map(|(column, value)| (column.to_owned(), value.to_owned()));
    assert_eq!((values(&key), values(&[])), ("tiff 2 none".to_owned(), "all".to_owned()));
    assert_eq!(verdict::name(&key), "tiff, workers 2, cache none");
}

#[test]
fn series_of_other_pixels_are_told_apart() {
    let of = |pixels: &str| Record { pixel_checksum: Some(pixels.into()), ..record(0, 1.0, "m") };
    let records = [of("aaaa"), of("bbbb")];
    let all = series(&records, 1);
    let told: Vec<_> =
        all.iter().map(|s| serde_json::to_value(s).unwrap()["pixel_checksum"].clone()).collect();
    assert_eq!(told, ["aaaa", "aaaa", "bbbb", "bbbb"]);
    assert!(text(&records, &all).contains("The runs are of 2 sets of pixels, which are kept apart."));
    assert!(!text(&records[..1], &series(&records[..1], 1)).contains("pixels"));
}

#[test]
fn a_history_grows_by_whole_lines_and_names_the_bad_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/history.jsonl");
    std::thread::scope(|scope| {
        for i in 0..8 {
            let path = &path;
            scope.spawn(move || append(path, record(i, 1.0, "m")).unwrap());
        }
    });
    assert_eq!(read(&path).unwrap().len(), 8);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"wellread_history\": 1, \"timesta");
    std::fs::write(&path, &text).unwrap();
    let error = format!("{:#}", append(&path, record(9, 1.0, "m")).unwrap_err());
    assert!(error.contains("line 9") && error.contains("history.jsonl"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    std::fs::write(&path, "").unwrap();
    assert!(read(&path).unwrap().is_empty());
    let later = Record { wellread_history: 2, ..record(0, 1.0, "m") };
    std::fs::write(&path, serde_json::to_string(&later).unwrap()).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("later version"));
}

#[test]
fn one_run_is_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.jsonl");
    let of = |i: usize, value: f64, measured: Option<&str>| Record {
        measured: measured.map(str::to_owned),
        ..record(i, value, "m")
    };
    let first = of(0, 1.0 / 3.0, Some("2026-01-01T08:00:00Z"));
    assert_eq!(append(&path, first.clone()).unwrap(), (vec![first.clone()], true));
    // Within the same second, with the same label.
    assert_eq!(append(&path, first.clone()).unwrap(), (vec![first.clone()], false));
    // Added again later, beside another result, with another label.
    let again = append(&path, of(1, 1.0 / 3.0, Some("2026-01-01T08:00:00Z"))).unwrap();
    assert_eq!(again, (vec![first], false));
    // Other runs: of another time, with other figures, without a time.
    for other in [
        of(2, 1.0 / 3.0, Some("2026-01-02T08:00:00Z")),
        of(3, 0.4, Some("2026-01-01T08:00:00Z")),
        of(4, 1.0, None),
        of(5, 1.0, None),
    ] {
        let (records, is_added) = append(&path, other.clone()).unwrap();
        assert_eq!((records.last(), is_added), (Some(&other), true));
    }
    assert_eq!(read(&path).unwrap().len(), 5);
}
