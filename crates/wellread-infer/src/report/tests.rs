use super::*;
use crate::results::Round;

fn record(framework: &str, size: usize, ms: f64) -> Record {
    let row = Row {
        framework: framework.into(),
        model: "resnet50".into(),
        batch_size: size,
        latency_p50_ms: Some(ms),
        latency_p50_low_ms: Some(ms * 0.99),
        latency_p50_high_ms: Some(ms * 1.01),
        status: Status::Ok,
        max_difference: Some(1e-6),
        ..Row::default()
    };
    let round = |round| Round {
        round,
        samples_ns: vec![(ms * 1e6) as u64; 3],
        wall_ns: (3.0 * ms * 1e6) as u64,
        ..Round::default()
    };
    Record { row, rounds: (0..6).map(round).collect(), ..Record::default() }
}

/// A configuration with a round of each of these times, in milliseconds.
fn with_rounds(framework: &str, rounds_ms: &[f64]) -> Record {
    let mut record = record(framework, 1, median(rounds_ms).unwrap());
    let round = |(round, ms): (usize, &f64)| Round {
        round,
        samples_ns: vec![(ms * 1e6) as u64; 3],
        ..Round::default()
    };
    record.rounds = rounds_ms.iter().enumerate().map(round).collect();
    record
}

fn run(records: Vec<Record>) -> Run {
    Run {
        config: crate::Config::default(),
        environment: wellread_measure::Environment::capture(&[std::path::Path::new(".")]),
        records,
        unreadable: Vec::new(),
        csv: "raw/benchmark_results_1.csv".into(),
        json: "raw/benchmark_results_1.json".into(),
    }
}

fn texts(run: &Run) -> Vec<String> {
    findings(run).into_iter().map(|finding| finding.text).collect()
}

#[test]
fn a_clear_winner_is_named_with_its_interval_and_an_unclear_one_is_not() {
    let said = texts(&run(vec![record("pytorch", 1, 20.0), record("candle", 1, 10.0)]));
    assert_eq!(
        said[0],
        "resnet50, batch 1: candle is fastest in this run, 10.0 ms a pass; pytorch follows with 20.0 ms, 2.00 (2.00–2.00) times \
         as long."
    );
    assert!(said[1].contains("compute the same") && said[1].contains("1.0e-6"), "{said:?}");
    let said = texts(&run(vec![record("pytorch", 1, 10.0), record("candle", 1, 10.0)]));
    assert!(said[0].ends_with("are not clearly different in this run."), "{said:?}");
    // Few passes have no interval, and give no verdict.
    let few = |framework: &str, ms: f64| {
        let mut record = record(framework, 1, ms);
        record.rounds.truncate(5);
        (record.row.latency_p50_low_ms, record.row.latency_p50_high_ms) = (None, None);
        record
    };
    let found = findings(&run(vec![few("pytorch", 20.0), few("candle", 10.0)]));
    assert!(found[0].text.contains("too early to say which of candle"), "{}", found[0].text);
    assert_eq!(found[0].severity, Severity::Caution);
    assert!(title(&[few("pytorch", 20.0), few("candle", 10.0)]).ends_with("fastest? Too short to say"));
    assert!(title(&[few("pytorch", 20.0), record("candle", 1, 10.0)]).ends_with("fastest?"));
    assert!(title(&[]).ends_with("fastest?"));
    let mut none = record("onnxruntime", 1, 10.0);
    none.row.status = Status::Failed;
    assert!(title(std::slice::from_ref(&none)).ends_with("fastest? Nothing was measured"));
    assert!(title(&[none, record("candle", 1, 10.0)]).ends_with("fastest?"));
}

/// The pairs of rounds decide, and not intervals that overlap or do not.
#[test]
fn fastest_is_said_of_rounds_in_turns_and_of_this_run_only() {
    // The machine slows down in the course of the run. In every round pytorch takes 2 % longer.
    let drifting: Vec<f64> = (0..8).map(|round| 10.0 + f64::from(round)).collect();
    let slower: Vec<f64> = drifting.iter().map(|ms| ms * 1.02).collect();
    let steady = |factor: f64| -> Vec<f64> { drifting.iter().map(|_| 10.0 * factor).collect() };
    let of = |a: Record, b: Record| {
        let found = rankings(&run(vec![a, b]));
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    };
    let found = of(with_rounds("pytorch", &steady(1.02)), with_rounds("candle", &steady(1.0)));
    assert_eq!((found.verdict, found.scope, found.rounds), (RankingVerdict::FastestInThisRun, "within", 8));
    assert_eq!((found.first.as_str(), found.second.as_str()), ("candle", "pytorch"));
    assert!((found.ratio.unwrap() - 1.02).abs() < 1e-6 && found.noise_floor == Some(0.0), "{found:?}");
    assert!(found.detail.ends_with(NEEDED) && found.detail.contains("by 8 rounds in turns"), "{found:?}");
    // Halves of the rounds show what the machine does: a difference below that is none.
    let jumping = |factor: f64| [11.0, 10.0, 10.0, 11.0, 11.0, 10.0, 10.0, 11.0].map(|ms| ms * factor);
    let found = of(with_rounds("pytorch", &jumping(1.02)), with_rounds("candle", &jumping(1.0)));
    assert!((found.noise_floor.unwrap() - 0.1).abs() < 1e-6 && found.low.unwrap() > 1.019, "{found:?}");
    assert_eq!(found.verdict, RankingVerdict::NotClearlyDifferent);
    // Drift falls on both sides of a pair.
    let found = of(with_rounds("pytorch", &slower), with_rounds("candle", &drifting));
    assert!(found.low.unwrap() > 1.019 && found.high.unwrap() < 1.021, "{found:?}");
    assert_eq!(found.verdict, RankingVerdict::FastestInThisRun);
    // Rounds that were measured apart are no pairs, however far apart their medians are.
    let mut alone = with_rounds("pytorch", &steady(3.0));
    alone.row.note = Some(crate::suite::ALONE.to_owned());
    let found = of(alone, with_rounds("candle", &steady(1.0)));
    assert_eq!((found.verdict, found.ratio, found.low), (RankingVerdict::NotInTurns, None, None));
    assert!(found.text.ends_with("is faster cannot be told from this run."), "{found:?}");
    // Five common rounds are too few.
    let found = of(with_rounds("pytorch", &steady(3.0)[..5]), with_rounds("candle", &steady(1.0)));
    assert_eq!((found.verdict, found.ratio, found.rounds), (RankingVerdict::TooFewRounds, None, 5));
    let written = serde_json::to_value(&found).unwrap();
    assert_eq!((&written["verdict"], &written["scope"]), (&"too_few_rounds".into(), &"within".into()));
}

#[test]
fn what_failed_or_is_wrong_is_told_and_never_the_fastest() {
    let mut wrong = record("jax", 1, 1.0);
    wrong.row.status = Status::Invalid;
    wrong.row.max_difference = Some(0.5);
    let failed = Record {
        row: Row { framework: "pytorch".into(), reason: Some("no torch".into()), ..Row::default() },
        ..Record::default()
    };
    let run = run(vec![record("candle", 1, 10.0), record("onnxruntime", 1, 30.0), wrong, failed]);
    let said = texts(&run);
    assert!(said[0].starts_with("jax") && said[0].contains("must not be used"), "{said:?}");
    assert!(said[1].contains("candle is fastest in this run"), "{said:?}");
    assert!(!said.iter().any(|text| text.contains("compute the same")), "{said:?}");
    assert!(said.last().is_some_and(|text| text.starts_with("Not measured: pytorch")), "{said:?}");
    let table = table(&run);
    assert_eq!(table.rows(), 2 * 6 + 2);
    assert_eq!(table.str("reason", 13), Some("no torch"));
    assert_eq!(table.f64("throughput_ips", 0).map(f64::round), Some(100.0));
}

#[test]
fn one_half_of_the_rounds_is_the_noise_of_the_other() {
    let with = |ms: &[u64]| {
        let mut record = record("candle", 1, 10.0);
        let round = |(round, ms): (usize, &u64)| Round {
            round,
            samples_ns: vec![ms * 1_000_000; 3],
            ..Round::default()
        };
        record.rounds = ms.iter().enumerate().map(round).collect();
        input(&run(vec![record]), vec![], String::new())
    };
    // Drift cancels, and one round that was disturbed does not count.
    assert_eq!(with(&[100; 8]).noise_floor, Some(0.0));
    assert!(with(&[100, 101, 102, 103, 104, 105, 106, 107]).noise_floor.unwrap() < 1e-9);
    assert!(with(&[100, 100, 100, 900, 100, 100, 100, 100]).noise_floor.unwrap() < 1e-9);
    let noisy = with(&[110, 100, 100, 110, 110, 100, 100, 110]);
    assert!((noisy.noise_floor.unwrap() - 0.1).abs() < 1e-9);
    // The interval of the row is 2 % wide.
    assert!((noisy.detectable[TABLE] - 0.122).abs() < 1e-3, "{:?}", noisy.detectable);
    assert_eq!(noisy.too_noisy(), None);
    let said = with(&[160, 100, 100, 160, 160, 100, 100, 160]).too_noisy().unwrap();
    assert!(said.starts_with(&format!("Too noisy for conclusions: {TABLE}.")), "{said}");
    // Too few rounds for halves.
    assert_eq!(with(&[100; 5]).noise_floor, None);
}

#[test]
fn outputs_of_one_framework_alone_were_not_compared() {
    let mut records = vec![record("candle", 1, 10.0), record("pytorch", 1, 10.0)];
    let said = |records: &[Record]| input(&run(records.to_vec()), vec![], String::new()).description;
    assert!(said(&records).ends_with(" rounds. Outputs were compared."), "{}", said(&records));
    records.truncate(1);
    records[0].row.max_difference = None;
    assert!(said(&records).ends_with(" rounds. No outputs were compared."), "{}", said(&records));
}

#[test]
fn a_report_is_written_beside_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = run([1, 4]
        .into_iter()
        .flat_map(|n| ["pytorch", "candle"].map(|f| record(f, n, 10.0 * n as f64)))
        .collect());
    run.csv = folder.path().join("benchmark_results_1.csv");
    let written = write(&run, vec![], "a machine".to_owned()).unwrap();
    for name in [
        "inference.parquet",
        "inference.csv",
        "inference.svg",
        "inference.png",
        "summary.json",
        "report.html",
    ] {
        assert!(written.join(name).is_file(), "{name}");
    }
    let page = std::fs::read_to_string(written.join("report.html")).unwrap();
    for text in ["throughput against latency", "resnet50", "not clearly different"] {
        assert!(page.contains(text), "{text}");
    }
    // The answer begins with a chart, as that of `bench` does.
    let (before, _) = page.split_once("id=\"plot-decision\"").unwrap();
    assert!(!before.contains("class=\"findings\""));
    // Again from what is on disk alone.
    let again = ReportInput::from_dir(&written).unwrap();
    assert_eq!(again.tables[0].rows(), 24);
    assert_eq!(again.samples[0].seconds().len(), 24);
    assert_eq!(again.details["configuration"]["iterations"], 50);
    assert!(again.details["environment"]["cpu"].is_object());
    assert!(page.contains("distribution of the single times"));
}
