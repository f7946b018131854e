//! The verdicts on whole results.

use crate::folder;
use serde_json::json;
use wellread_compare::judge::Scope;
use wellread_compare::{Comparison, Options, Results, RowVerdict, compare, rounds, sides, text};
use wellread_measure::intervals::Pairing;
use wellread_measure::rng::Rng;
use wellread_report::{Table, row};

fn run(a: &[(&str, f64)], b: &[(&str, f64)], details: &[(&str, serde_json::Value)]) -> Comparison {
    let dir = tempfile::tempdir().unwrap();
    let (x, y) = (dir.path().join("x"), dir.path().join("y"));
    folder(&x, a, 1, &[]);
    folder(&y, b, 2, details);
    compare(&Results::open(&x).unwrap(), &Results::open(&y).unwrap(), &of_runs()).unwrap()
}

/// Rounds of one process a side, judged as they are.
fn of_runs() -> Options {
    Options { same_conditions: true, ..Options::default() }
}

fn word(c: &Comparison, name: &str) -> RowVerdict {
    c.rows.iter().find(|row| row.name().starts_with(name)).unwrap().verdict
}

#[test]
fn every_word_where_it_belongs() {
    let c = run(
        &[("tiff", 1.0), ("parquet", 1.0), ("vortex", 1.0), ("small", 1.0)],
        &[("tiff", 1.2), ("parquet", 0.8), ("vortex", 1.0), ("small", 1.03), ("duckdb", 1.0)],
        &[],
    );
    assert_eq!(word(&c, "tiff"), RowVerdict::Slower);
    assert_eq!(word(&c, "parquet"), RowVerdict::Faster);
    assert_eq!(word(&c, "vortex"), RowVerdict::Same);
    // Slower beyond doubt, and within the threshold.
    assert_eq!(word(&c, "small"), RowVerdict::Slower);
    assert_eq!(c.regressions, 1);
    let tiff = &c.rows[0];
    assert_eq!((tiff.quantity.as_str(), tiff.n_a, tiff.regression), ("samples_per_sec", 10, true));
    assert!((tiff.ratio.unwrap() - 1.2).abs() < 0.03, "{tiff:?}");
    assert!(tiff.low.unwrap() > 1.15 && tiff.high.unwrap() < 1.25 && tiff.p_corrected.unwrap() < 1e-6);
    assert!(c.only_in_b.iter().any(|lone| lone.name.starts_with("duckdb")), "{:?}", c.only_in_b);
    let said = text::plain(&c);
    assert!(said.contains("1 regression (slower; the interval reaches 5 %): of "), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 110), "{said}");
    let page = text::markdown(&c);
    assert!(page.contains("the interval reaches 5 %; the slow-down may be smaller"), "{page}");
    assert!(page.contains("| tiff, random |") && page.contains("**slower !**"), "{page}");
    let row = page.lines().find(|line| line.starts_with("| tiff, random |")).unwrap();
    assert!(page.contains("| ratio (95 %) | detects | verdict |") && row.contains("| ≥"), "{page}");
    // A slow-down that nobody asks for is nothing that is found.
    let mut coarse = c.clone();
    coarse.rows[0].smallest_detectable = Some(55_010.554);
    let page = text::markdown(&coarse);
    let row = page.lines().find(|line| line.starts_with("| tiff, random |")).unwrap();
    assert!(row.contains(" | nothing | **slower !**"), "{row}");
    assert!(
        page.contains("It detects nothing where that is above 1000 %.") && !page.contains("5501055"),
        "{page}"
    );
}

/// `readers` is told by a loader that ran: a configuration without it is the same.
#[test]
fn a_configuration_that_one_side_could_not_measure_is_a_row_that_says_so() {
    let side = |is_left_out: bool| {
        let mut table = Table::new("dataloader");
        for (workers, readers) in [(0, 1.0), (2, 3.0)] {
            if is_left_out && workers == 2 {
                table.push(row![
                    ("format", "tiff"),
                    ("workers", workers),
                    ("status", "unavailable"),
                    ("reason", "left out for want of time")
                ]);
                continue;
            }
            for run in 0..10 {
                table.push(row![
                    ("format", "tiff"),
                    ("workers", workers),
                    ("run", run),
                    ("status", "ok"),
                    ("readers", readers),
                    ("samples_per_sec", 100.0 + 0.1 * f64::from(run))
                ]);
            }
        }
        Results { tables: vec![table], label: "x".into(), ..Results::default() }
    };
    for (a, b, who) in [(false, true, "B"), (true, false, "A")] {
        let c = compare(&side(a), &side(b), &of_runs()).unwrap();
        let names: Vec<String> = c.rows.iter().map(wellread_compare::Row::name).collect();
        assert_eq!(names, ["tiff, workers 0", "tiff, workers 2"]);
        assert!(c.only_in_a.is_empty() && c.only_in_b.is_empty(), "{:?} {:?}", c.only_in_a, c.only_in_b);
        let reason = format!("{who}: not measured (unavailable: left out for want of time)");
        assert_eq!(c.rows[1].reason.as_deref(), Some(reason.as_str()));
        assert_eq!((c.rows[1].verdict, c.rows[0].verdict), (RowVerdict::Unclear, RowVerdict::Same));
        let said = text::plain(&c);
        assert!(said.contains(&format!("unclear (1): {reason}")), "{said}");
    }
    // The sentence is about what both have measured.
    let c = compare(&side(false), &side(true), &Options::default()).unwrap();
    let said = text::verdict(&c);
    assert!(said.starts_with("No verdict on 1 row: its ratio holds within these runs only"), "{said}");
}

/// "Within the threshold" is a factor: from 1 / 1.05 to 1.05.
#[test]
fn same_is_within_a_factor_in_both_directions() {
    let of = |low: f64, high: f64| {
        let mut table = Table::new("dataset");
        table.push(row![("format", "tiff"), ("p50_s", 1.0), ("p50_s_ci_low", low), ("p50_s_ci_high", high)]);
        Results { tables: vec![table], label: "x".into(), ..Results::default() }
    };
    let verdict =
        |low: f64, high: f64| compare(&of(1.0, 1.0), &of(low, high), &of_runs()).unwrap().rows[0].verdict;
    assert_eq!(verdict(0.953, 1.049), RowVerdict::Same);
    // 0.951 is less than 5 % below 1, and its inverse is more than 5 % above.
    assert_eq!(verdict(0.951, 1.049), RowVerdict::Unclear);
    assert_eq!(verdict(0.953, 1.051), RowVerdict::Unclear);
}

/// The note below the table holds for every table, of processes or of rounds.
#[test]
fn the_note_says_what_intervals_are_over_and_of_how_many_rows_detects_is() {
    let c = run(&[("tiff", 1.0)], &[("tiff", 1.0)], &[]);
    let page = text::markdown(&c);
    assert!(page.contains("over processes, or over rounds in turns"), "{page}");
    assert!(
        page.contains("within a factor of 1 + 5 %") && page.contains("corrected for all rows of the table."),
        "{page}"
    );
}

#[test]
fn the_same_results_twice_are_no_regression() {
    let same = [("tiff", 1.0), ("parquet", 2.0), ("vortex", 3.0)];
    let c = run(&same, &same, &[]);
    assert_eq!((c.regressions, c.count(RowVerdict::Slower), c.count(RowVerdict::Faster)), (0, 0, 0));
    assert!(c.comparable && c.differences.is_empty(), "{:?}", c.differences);
}

/// Folders of one side: each a process, of other pixels an error, of `bench --processes` as many as it says.
#[test]
fn processes_of_a_side_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for (seed, name) in ["a1", "a2", "a3", "b1", "b2", "b3"].into_iter().enumerate() {
        folder(&at(name), &[("tiff", if seed < 3 { 1.0 } else { 1.2 })], seed as u64, &[]);
    }
    let side = |names: &[&str]| {
        let paths: Vec<_> = names.iter().map(|name| at(name)).collect();
        sides::open(&paths.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    };
    let (a, b) = (side(&["a1", "a2", "a3"]).unwrap(), side(&["b1", "b2", "b3"]).unwrap());
    assert_eq!((a.processes, a.tables[0].rows()), (3, 33));
    let c = compare(&a, &b, &Options::default()).unwrap();
    let row = &c.rows[0];
    assert_eq!((row.scope, row.processes_a, row.processes_b, row.n_a), (Scope::Processes, 3, 3, 30));
    assert_eq!((row.verdict, row.regression, row.noise_floor), (RowVerdict::Slower, true, None));
    assert!((row.ratio.unwrap() - 1.2).abs() < 0.02 && (row.a - 1.0).abs() < 0.02, "{row:?}");
    let few = compare(&side(&["a1", "a2"]).unwrap(), &b, &Options::default()).unwrap();
    assert_eq!((few.rows[0].scope, few.rows[0].verdict), (Scope::Within, RowVerdict::Unclear));
    assert_eq!((few.rows[0].low, few.rows[0].p_value, few.regressions), (None, None, 0));
    let said = text::plain(&few);
    assert!(
        said.contains("No verdict on 1 row:") && said.contains("2 processes of A and 3 processes of B"),
        "{said}"
    );
    assert!(text::markdown(&few).starts_with("### ❔"));
    // Ten rows a configuration are ten processes where the folder says so.
    folder(&at("p"), &[("tiff", 1.0)], 9, &[("configuration", json!({"processes": 10}))]);
    assert_eq!(side(&["p", "a1"]).unwrap().processes, 11);
    folder(&at("other"), &[("tiff", 1.0)], 9, &[("pixel_checksum", json!("abcd"))]);
    let error = side(&["a1", "other"]).unwrap_err().to_string();
    assert!(error.contains("other") && error.contains("same images"), "{error}");
}

#[test]
fn other_pixels_make_no_regression() {
    let details = [("pixel_checksum", json!("abcd")), ("environment", json!({"cpu": {"model": "other"}}))];
    let c = run(&[("tiff", 1.0)], &[("tiff", 2.0)], &details);
    assert!(!c.comparable && c.regressions == 0);
    let said = text::plain(&c);
    assert!(said.contains("!! checksum of the pixels differs: 00ff / abcd"), "{said}");
    assert!(said.contains("cannot be compared"), "{said}");
    let page = text::markdown(&c);
    assert!(page.starts_with("### ❌"), "{page}");
    // Half a hundred ratios stood before the error.
    assert!(c.rows.is_empty() && !said.contains("against A") && !page.contains("ratio"), "{said}{page}");
}

#[test]
fn a_page_is_marked_good_only_where_something_was_told() {
    let alike = |runs: usize| {
        let mut table = Table::new("dataset");
        for run in 0..runs {
            let seconds = 1.0 + 0.001 * (run % 3) as f64;
            table.push(row![("format", "tiff"), ("run", run), ("p50_s", seconds), ("verified", true)]);
        }
        Results { tables: vec![table], label: "x".into(), ..Results::default() }
    };
    let page = |runs: usize| {
        let c = compare(&alike(runs), &alike(runs), &of_runs()).unwrap();
        (c.rows[0].verdict, text::markdown(&c))
    };
    let (verdict, good) = page(10);
    assert_eq!(verdict, RowVerdict::Same);
    assert!(good.starts_with("### ✅ No regression"), "{good}");
    let (verdict, untold) = page(5);
    assert_eq!(verdict, RowVerdict::Unclear);
    assert!(untold.starts_with("### ❔ Nothing can be told"), "{untold}");
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
        let c = compare(&good, other, &of_runs()).unwrap();
        assert_eq!((c.rows[0].verdict, c.regressions), (RowVerdict::Unclear, 0), "{c:?}");
        c.rows[0].reason.clone().unwrap()
    };
    assert!(reason(&table(&[2.0, f64::NAN, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], true)).contains("1 of 8 values"));
    assert!(reason(&table(&[2.0, 0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], true)).contains("no positive numbers"));
    assert!(reason(&table(&[2.0; 5], true)).contains("5 runs are too few"));
    assert!(reason(&table(&[2.0], true)).contains("single values"));
    assert!(reason(&table(&[2.0; 8], false)).contains("pixels"));
    // The reason that keeps a row from a verdict is told.
    let wide = table(&[0.8, 1.3, 1.0, 0.7, 1.2, 0.9, 1.4], true);
    assert!(reason(&wide).contains("the interval holds 1 and reaches beyond 5 %"), "{}", reason(&wide));
    let slower = table(&[1.2, 1.22, 1.21, 1.2, 1.23, 1.21, 1.22], true);
    let name = slower.tables[0].name().to_owned();
    let noisy = Results { noise_floors: [(name, 0.4)].into(), ..slower };
    assert!(reason(&noisy).contains("reaches into the noise floor, 40 %"), "{}", reason(&noisy));
    // Values that never vary are known exactly.
    let c = compare(&table(&[1.0; 7], true), &table(&[1.2; 7], true), &of_runs()).unwrap();
    assert_eq!((c.rows[0].verdict, c.regressions), (RowVerdict::Slower, 1));
}

#[test]
fn what_cannot_be_compared_says_why() {
    let of = |name: &str, column: &str| {
        let mut table = Table::new(name);
        table.push(row![("format", "tiff"), (column, 1.0)]);
        Results { tables: vec![table], label: name.into(), ..Results::default() }
    };
    let error = |a: &Results, b: &Results, options: &Options| compare(a, b, options).unwrap_err().to_string();
    let plain = of_runs();
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

/// How times are distributed about a level.
type Noise = fn(&mut Rng) -> f64;

fn quiet(rng: &mut Rng) -> f64 {
    (0.02 * rng.normal()).exp()
}

/// Student's t with 3 degrees of freedom on a logarithmic scale.
fn heavy(rng: &mut Rng) -> f64 {
    let spread = (0..3).map(|_| rng.normal().powi(2)).sum::<f64>() / 3.0;
    (0.02 * rng.normal() / spread.sqrt()).exp()
}

/// Every tenth value a pause of five times the time.
fn pauses(rng: &mut Rng) -> f64 {
    quiet(rng) * if rng.below(10) == 0 { 5.0 } else { 1.0 }
}

const NOISES: [(&str, Noise); 3] = [("quiet", quiet), ("heavy tails", heavy), ("pauses", pauses)];

/// Results of `rows` configurations, `runs` runs each, whose levels in a run are `level`.
fn results(rng: &mut Rng, noise: Noise, rows: usize, runs: usize, level: impl Fn(usize) -> f64) -> Results {
    let mut table = Table::new("dataset");
    for run in 0..runs {
        for name in 0..rows {
            let seconds = level(run) * noise(rng);
            table.push(row![("format", format!("f{name}")), ("run", run), ("p50_s", seconds)]);
        }
    }
    Results { tables: vec![table], label: "x".into(), ..Results::default() }
}

fn alarms(c: &Comparison) -> usize {
    c.count(RowVerdict::Slower) + c.count(RowVerdict::Faster)
}

/// The most of `trials` with an alarm in 5 % that have one, in 99 of 100 cases.
fn five_percent(trials: usize) -> usize {
    let trials = trials as f64;
    (0.05 * trials + 2.33 * (0.05 * 0.95 * trials).sqrt()) as usize
}

#[test]
fn false_alarms_on_the_same_thing_measured_twice() {
    // Without a floor, so that interval and correction alone are tested.
    for (name, noise) in NOISES {
        for (rows, runs, trials) in [(1, 7, 400), (1, 20, 400), (20, 7, 200)] {
            let mut rng = Rng::seed(31);
            let wrong = (0..trials)
                .filter(|_| {
                    let mut side = || results(&mut rng, noise, rows, runs, |_| 1.0);
                    alarms(&compare(&side(), &side(), &of_runs()).unwrap()) > 0
                })
                .count();
            println!("{name}, {rows} rows of {runs} runs: {wrong} of {trials}");
            assert!(wrong <= five_percent(trials), "{name}, {rows} rows of {runs}: {wrong} of {trials}");
        }
    }
}

#[test]
fn false_alarms_of_revisions_measured_in_turns() {
    // As `compare REV REV` does it: a machine that slows down by half meanwhile, pairs by round, floors by row.
    for (name, noise) in NOISES {
        for floors in [false, true] {
            let mut rng = Rng::seed(32);
            let trials = 400;
            let wrong = (0..trials)
                .filter(|_| {
                    let mut side = || results(&mut rng, noise, 4, 10, |run| 1.0 + 0.5 * run as f64 / 10.0);
                    let (a, b, twin) = (side(), side(), side());
                    let mut options = Options { pairing: Pairing::Paired, ..Options::default() };
                    if floors {
                        options.row_floors = rounds::row_floors(&a, &twin, &options).unwrap();
                    }
                    alarms(&compare(&a, &b, &options).unwrap()) > 0
                })
                .count();
            println!("{name}, floors {floors}: {wrong} of {trials}");
            assert!(wrong <= five_percent(trials), "{name}, floors {floors}: {wrong} of {trials}");
        }
    }
}

/// The correction asks more of the test of a single slow row, the more rows there are.
#[test]
fn the_smallest_detectable_slow_down_grows_with_the_rows_of_the_table() {
    let rows = |rows: usize| {
        let side = || results(&mut Rng::seed(1), |_| 1.0, rows, 20, |run| 1.0 + 0.01 * run as f64);
        compare(&side(), &side(), &of_runs()).unwrap().rows
    };
    let alone = rows(1).remove(0);
    let half = (alone.high.unwrap() / alone.low.unwrap()).ln() / 2.0;
    assert!((alone.smallest_detectable.unwrap() - (2.0 * half).exp_m1()).abs() < 1e-12, "{alone:?}");
    let all = rows(20);
    assert_eq!(all.len(), 20);
    for row in all {
        // Student's quantile at 5 % / 20 is 1.64 times that at 5 %, of 22 degrees of freedom.
        let longer = row.smallest_detectable.unwrap().ln_1p() / half - 1.0;
        assert!((longer - 1.64).abs() < 0.03, "{longer}: {row:?}");
    }
}

#[test]
fn slow_downs_of_five_percent_are_found_where_they_are_called_detectable() {
    for (name, noise) in NOISES {
        let mut rng = Rng::seed(33);
        let (mut detectable, mut found) = (0_usize, 0_usize);
        for _ in 0..300 {
            let a = results(&mut rng, noise, 1, 60, |_| 1.0);
            let b = results(&mut rng, noise, 1, 60, |_| 1.05);
            let row = compare(&a, &b, &of_runs()).unwrap().rows.remove(0);
            if row.smallest_detectable.unwrap() <= 0.05 {
                detectable += 1;
                found += usize::from(row.verdict == RowVerdict::Slower);
            }
        }
        println!("{name}: {found} of {detectable}");
        // Nine of ten, less what chance leaves in 99 of 100 cases; of enough tries to have shown something.
        let tries = detectable as f64;
        assert!(detectable > 100, "{name}: {detectable}");
        assert!(
            found as f64 >= 0.9 * tries - 2.33 * (0.09 * tries).sqrt(),
            "{name}: {found} of {detectable}"
        );
    }
}
