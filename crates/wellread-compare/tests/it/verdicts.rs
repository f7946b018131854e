//! The verdicts on whole results.

use crate::folder;
use serde_json::json;
use wellread_compare::{Comparison, Options, Results, Word, compare, text};
use wellread_report::{Table, row};

fn run(a: &[(&str, f64)], b: &[(&str, f64)], details: &[(&str, serde_json::Value)]) -> Comparison {
    let dir = tempfile::tempdir().unwrap();
    let (x, y) = (dir.path().join("x"), dir.path().join("y"));
    folder(&x, a, 1, &[]);
    folder(&y, b, 2, details);
    compare(&Results::open(&x).unwrap(), &Results::open(&y).unwrap(), &Options::default()).unwrap()
}

fn word(c: &Comparison, name: &str) -> Word {
    c.rows.iter().find(|row| row.name().starts_with(name)).unwrap().verdict
}

#[test]
fn every_word_where_it_belongs() {
    let c = run(
        &[("tiff", 1.0), ("parquet", 1.0), ("vortex", 1.0), ("small", 1.0)],
        &[("tiff", 1.2), ("parquet", 0.8), ("vortex", 1.0), ("small", 1.035), ("duckdb", 1.0)],
        &[],
    );
    assert_eq!(word(&c, "tiff"), Word::Slower);
    assert_eq!(word(&c, "parquet"), Word::Faster);
    assert_eq!(word(&c, "vortex"), Word::Same);
    // Slower beyond doubt, and within the threshold.
    assert_eq!(word(&c, "small"), Word::Slower);
    assert_eq!(c.regressions, 1);
    let tiff = &c.rows[0];
    assert_eq!((tiff.quantity.as_str(), tiff.n_a, tiff.regression), ("samples_per_sec", 10, true));
    assert!((tiff.ratio.unwrap() - 1.2).abs() < 0.03, "{tiff:?}");
    assert!(tiff.low.unwrap() > 1.15 && tiff.high.unwrap() < 1.25 && tiff.p_corrected.unwrap() < 1e-6);
    assert!(c.only_in_b.iter().any(|lone| lone.name.starts_with("duckdb")), "{:?}", c.only_in_b);
    let said = text::plain(&c);
    assert!(said.contains("1 regression beyond 5 %"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 110), "{said}");
    let page = text::markdown(&c);
    assert!(page.contains("| tiff random |") && page.contains("**slower !**"), "{page}");
}

#[test]
fn the_same_results_twice_are_no_regression() {
    let same = [("tiff", 1.0), ("parquet", 2.0), ("vortex", 3.0)];
    let c = run(&same, &same, &[]);
    assert_eq!((c.regressions, c.count(Word::Slower), c.count(Word::Faster)), (0, 0, 0));
    assert!(c.comparable && c.differences.is_empty(), "{:?}", c.differences);
}

#[test]
fn other_pixels_make_no_regression() {
    let details = [("pixel_checksum", json!("abcd")), ("environment", json!({"cpu": {"model": "other"}}))];
    let c = run(&[("tiff", 1.0)], &[("tiff", 2.0)], &details);
    assert!(!c.comparable && c.regressions == 0);
    assert_eq!(word(&c, "tiff"), Word::Unclear);
    let said = text::plain(&c);
    assert!(said.contains("!! checksum of the pixels differs: 00ff / abcd"), "{said}");
    assert!(said.contains("cannot be compared"), "{said}");
}

#[test]
fn nothing_is_concluded_of_broken_few_or_unverified_values() {
    let table = |values: &[f64], verified: bool| {
        let mut table = Table::new("dataset");
        for (run, value) in values.iter().enumerate() {
            table.push(row![("format", "tiff"), ("run", run), ("p50_s", *value), ("verified", verified)]);
        }
        Results { tables: vec![table], label: "x".into(), ..Results::default() }
    };
    let good = table(&[1.0, 1.01, 1.02, 0.99, 1.0, 1.03, 1.0], true);
    let reason = |other: &Results| {
        let c = compare(&good, other, &Options::default()).unwrap();
        assert_eq!((c.rows[0].verdict, c.regressions), (Word::Unclear, 0), "{c:?}");
        c.rows[0].reason.clone().unwrap()
    };
    assert!(reason(&table(&[2.0, f64::NAN, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], true)).contains("1 of 8 values"));
    assert!(reason(&table(&[2.0, 0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], true)).contains("no positive numbers"));
    assert!(reason(&table(&[2.0; 5], true)).contains("5 runs are too few"));
    assert!(reason(&table(&[2.0], true)).contains("single values"));
    assert!(reason(&table(&[2.0; 8], false)).contains("pixels"));
    // Values that never vary are known exactly.
    let c = compare(&table(&[1.0; 7], true), &table(&[1.2; 7], true), &Options::default()).unwrap();
    assert_eq!((c.rows[0].verdict, c.regressions), (Word::Slower, 1));
}

#[test]
fn what_cannot_be_compared_says_why() {
    let of = |name: &str, column: &str| {
        let mut table = Table::new(name);
        table.push(row![("format", "tiff"), (column, 1.0)]);
        Results { tables: vec![table], label: name.into(), ..Results::default() }
    };
    let error = |a: &Results, b: &Results, options: &Options| compare(a, b, options).unwrap_err().to_string();
    let plain = Options::default();
    let text = error(&of("dataset", "p50_s"), &of("storage", "seconds"), &plain);
    assert!(text.contains("no table in common") && text.contains("dataset in A and storage in B"), "{text}");
    let text = error(&of("dataset", "p50_s"), &of("dataset", "open_s"), &plain);
    assert!(text.contains("no configuration"), "{text}");
    let wanted = Options { quantities: vec!["open_s".into()], ..Options::default() };
    let text = error(&of("dataset", "p50_s"), &of("dataset", "p50_s"), &wanted);
    assert!(text.contains("open_s"), "{text}");
    let wanted = Options { tables: vec!["loop".into()], ..Options::default() };
    let text = error(&of("dataset", "p50_s"), &of("dataset", "p50_s"), &wanted);
    assert!(text.contains("\"loop\"") && text.contains("dataset"), "{text}");
}

#[test]
fn a_table_of_a_hundred_rows_keeps_its_word_on_false_alarms() {
    let names: Vec<String> = (0..100).map(|i| format!("f{i:02}")).collect();
    let mut alarms = 0;
    for trial in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let formats: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 1.0)).collect();
        let (x, y) = (dir.path().join("x"), dir.path().join("y"));
        folder(&x, &formats, 100 + trial, &[]);
        folder(&y, &formats, 200 + trial, &[]);
        // Without the floor, so that the correction alone is tested.
        let open = |path| Results { noise_floors: [].into(), ..Results::open(path).unwrap() };
        let c = compare(&open(&x), &open(&y), &Options::default()).unwrap();
        alarms += usize::from(c.count(Word::Slower) + c.count(Word::Faster) > 0);
    }
    // At most 5 % of tables: of 20, three or fewer in 98 of 100 cases.
    assert!(alarms <= 3, "{alarms} of 20 tables");
}
