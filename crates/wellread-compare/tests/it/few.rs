//! Values that are too few for a verdict, or for an interval.

use wellread_compare::{Options, Results, Row, RowVerdict, compare, history};
use wellread_measure::intervals::Pairing;
use wellread_report::{Table, row};

fn results(table: Table) -> Results {
    Results { tables: vec![table], label: "x".into(), ..Results::default() }
}

/// Runs of these numbers, each of which takes about `level` seconds.
fn of_runs(numbers: std::ops::Range<i32>, level: f64) -> Results {
    let mut table = Table::new("dataset");
    for run in numbers {
        table.push(row![("format", "tiff"), ("run", run), ("p50_s", level + 1e-3 * f64::from(run))]);
    }
    results(table)
}

fn only_row(a: &Results, b: &Results, options: &Options) -> Row {
    compare(a, b, options).unwrap().rows.remove(0)
}

/// Six runs a side, two of which are in both: pairs are what a verdict rests on.
#[test]
fn runs_in_turns_that_one_side_lacks_count_for_nothing() {
    let options = Options { pairing: Pairing::Paired, ..Options::default() };
    let row = only_row(&of_runs(0..6, 1.0), &of_runs(4..10, 2.0), &options);
    assert_eq!(row.reason.as_deref(), Some("2 runs are too few for a verdict; 6 are needed"));
    assert_eq!((row.verdict, row.low), (RowVerdict::Unclear, None));
    let row = only_row(&of_runs(0..6, 1.0), &of_runs(0..6, 2.0), &options);
    assert_eq!((row.verdict, row.reason), (RowVerdict::Slower, None));
}

#[test]
fn a_summary_beside_two_runs_gives_no_verdict() {
    let mut table = Table::new("dataset");
    let ends = row![("p50_s_ci_low", 0.99), ("p50_s_ci_high", 1.01)];
    table.push([row![("format", "tiff"), ("p50_s", 1.0)], ends].concat());
    let summary = results(table);
    let options = Options { same_conditions: true, ..Options::default() };
    let row = only_row(&summary, &of_runs(0..2, 2.0), &options);
    assert_eq!(row.reason.as_deref(), Some("2 runs are too few for a verdict; 6 are needed"));
    assert_eq!(row.verdict, RowVerdict::Unclear);
    assert_eq!(only_row(&summary, &of_runs(0..6, 2.0), &options).verdict, RowVerdict::Slower);
}

#[test]
fn a_quantity_that_is_not_there_is_an_error_with_those_that_are() {
    let options = Options { quantities: vec!["throughpt".into()], ..Options::default() };
    let [a, b] = [1.0, 2.0].map(|level| of_runs(0..6, level));
    let found = compare(&a, &b, &options).unwrap_err().to_string();
    assert!(found.contains("in both has throughpt; there are p50_s (x and x)"), "{found}");
    let kept = history::record(&a, "x", &options).unwrap_err().to_string();
    assert_eq!(kept, "x: holds no throughpt to keep; there are p50_s");
}

/// Its chart says that whiskers are 95 % intervals.
#[test]
fn a_history_keeps_intervals_of_enough_runs_alone() {
    let ends = |runs: i32| {
        let record = history::record(&of_runs(0..runs, 1.0), "x", &Options::default()).unwrap();
        (record.rows[0].low.is_some(), record.rows[0].high.is_some(), record.rows[0].n)
    };
    assert_eq!([ends(3), ends(6)], [(false, false, 3), (true, true, 6)]);
}
