//! The finding on what binds, of given rows.

use super::*;
use crate::core::words::words_of_longest_sentence;
use std::collections::BTreeMap;
use wellread_report::row;

/// The figures of one format: its share of waiting, images per second, rounds and batches read ahead of 12 steps.
struct Measured(&'static str, f64, f64, i32, i64);

fn table(of: &[Measured]) -> Table {
    let mut table = Table::new("loop");
    for Measured(format, share, rate, rounds, ahead) in of {
        for run in 0..*rounds {
            table.push(row![
                ("format", *format),
                ("model", "cnn"),
                ("mode", "train"),
                ("run", run),
                ("images_per_sec", *rate),
                ("steps", 12),
                ("batches_ahead", *ahead),
                ("data_wait_fraction", share + 1e-4 * f64::from(run))
            ]);
        }
    }
    table
}

/// Six rounds each, of steps that outnumber what was read ahead.
fn waits(of: &[(&'static str, f64)]) -> Table {
    table(&of.iter().map(|(format, share)| Measured(format, *share, 100.0, 6, 4)).collect::<Vec<_>>())
}

fn found(table: &Table) -> Finding {
    finding(table, Mode::Train, &Judge::new(1, None)).unwrap()
}

/// The sentence on the next step for the same rows.
fn next(table: Table) -> Finding {
    crate::next_step::finding(&[table], &BTreeMap::new(), &Judge::new(1, None)).unwrap()
}

#[test]
fn the_best_format_says_what_binds_and_slow_ones_come_second() {
    let mixed = found(&waits(&[("tiff", 0.01), ("parquet-duckdb", 0.93)]));
    assert_eq!(mixed.severity, Severity::Good);
    assert!(mixed.text.starts_with("The model binds here, not loading"), "{}", mixed.text);
    assert!(
        mixed.text.ends_with("in training of cnn with tiff. Loading would bind with parquet-duckdb"),
        "{}",
        mixed.text
    );
    // The shares are in the detail.
    let (best, slow) = mixed.detail.split_once("With parquet-duckdb it waits 93.").unwrap();
    assert!(
        best.contains("With tiff a step waits 1.0 %") && slow.contains('%') && !mixed.text.contains('%'),
        "{mixed:?}"
    );
    assert!(mixed.detail.contains("loading is no bottleneck"), "{}", mixed.detail);
    let next = next(waits(&[("tiff", 0.01), ("parquet-duckdb", 0.93)]));
    assert_eq!(next.severity, mixed.severity);
    assert!(next.text.contains("look at the model, not at loading: with tiff"), "{}", next.text);
    let slow = found(&waits(&[("tiff", 0.7), ("parquet", 0.93)]));
    assert_eq!(slow.severity, Severity::Bad);
    assert!(slow.text.starts_with("Loading binds here") && !slow.text.contains("would"), "{}", slow.text);
    let alike = found(&waits(&[("tiff", 0.01), ("parquet", 0.02)]));
    assert!(alike.text.ends_with("with tiff") && !alike.text.contains("would"), "{}", alike.text);
    assert!(alike.detail.contains("With parquet it waits 2.0 %"), "{}", alike.detail);
}

#[test]
fn the_fastest_format_is_the_best_and_its_figures_are_its_own() {
    let rows = || table(&[Measured("png", 0.005, 50.0, 6, 4), Measured("tiff", 0.04, 200.0, 6, 4)]);
    let found = found(&rows());
    assert!(
        found.detail.starts_with("With tiff, whose median rate is the highest: 200 images/s,"),
        "{}",
        found.detail
    );
    let at = |words: &str| found.detail.find(words).unwrap();
    assert!(at("With tiff a step waits 4.0 %") < at("With png it waits 0.5 %"), "{}", found.detail);
    assert!(found.text.ends_with("with tiff"), "{}", found.text);
    let next = next(rows());
    assert!(next.text.contains("with tiff a step waits 4.0 %"), "{}", next.text);
}

#[test]
fn few_rounds_give_no_verdict() {
    for rounds in 1..6 {
        let rows = || table(&[Measured("tiff", 0.01, 100.0, rounds, 4)]);
        let found = found(&rows());
        assert_eq!(found.severity, Severity::Caution, "{rounds} rounds");
        assert!(found.text.starts_with("It is too early to say"), "{}", found.text);
        assert!(found.text.contains("too few for a verdict (--repeats 7 gives one)"), "{}", found.text);
        assert!(found.detail.contains("no verdict yet"), "{}", found.detail);
        let next = next(rows());
        assert_eq!(next.severity, Severity::Caution);
        assert!(
            next.text.starts_with("Next: measure loop again") && next.text.contains("too few"),
            "{}",
            next.text
        );
    }
    let much = next(table(&[Measured("tiff", 0.9, 100.0, 2, 4)]));
    assert!(much.detail.contains("2 rounds are too few"), "{}", much.detail);
}

#[test]
fn steps_that_were_read_ahead_give_no_verdict() {
    let rows = || table(&[Measured("tiff", 0.01, 100.0, 6, 12)]);
    let ahead = found(&rows());
    assert_eq!(ahead.severity, Severity::Caution);
    assert!(
        ahead.text.starts_with("It is too early to say") && ahead.text.contains("--steps 36 or more"),
        "{}",
        ahead.text
    );
    let next = next(rows());
    assert_eq!(next.severity, Severity::Caution);
    assert!(next.text.contains("--steps 36 or more"), "{}", next.text);
    // A step that waits most of its time though its batches were read ahead waits for data.
    let slow = found(&table(&[Measured("tiff", 0.9, 100.0, 6, 12)]));
    assert!(slow.text.starts_with("Loading binds here"), "{}", slow.text);
}

#[test]
fn an_interval_that_holds_a_threshold_gives_no_verdict() {
    for (share, limit) in [(0.2998, "30 %"), (0.4998, "50 %")] {
        let found = found(&waits(&[("tiff", share)]));
        assert_eq!(found.severity, Severity::Caution);
        assert!(
            found.text.contains("too early") && found.text.contains(&format!("reaches beyond {limit}")),
            "{}",
            found.text
        );
    }
}

#[test]
fn a_noisy_benchmark_gives_no_verdict() {
    let rows = waits(&[("tiff", 0.9)]);
    let of = |noise| finding(&rows, Mode::Train, &Judge::new(1, Some(noise))).unwrap();
    assert!(of(0.2).text.starts_with("Loading binds here"));
    let noisy = of(0.3);
    assert_eq!(noisy.severity, Severity::Caution);
    assert!(
        noisy.text.starts_with("It is too early to say") && noisy.text.contains("differed by up to 30 %"),
        "{}",
        noisy.text
    );
}

#[test]
fn steps_that_were_ready_before_they_began_are_told() {
    assert!(read_ahead(4, 4).is_some_and(|said| said.contains("--steps 12")));
    assert_eq!((read_ahead(5, 4), read_ahead(1, 0)), (None, None));
}

#[test]
fn sentences_are_short_whatever_binds() {
    let names = ["tiff", "parquet-duckdb", "ome-arrow-dataset", "parquet-default", "image-folder"];
    let (mut begins, mut second) = (Vec::new(), 0);
    for rounds in [1, 6] {
        for (share, ahead) in [(0.01, 4), (0.2998, 4), (0.4, 4), (0.4998, 4), (0.7, 4), (0.01, 12)] {
            for slow in [None, Some(0.45), Some(0.93)] {
                let other = |name| Measured(name, slow.unwrap_or(share), 50.0, rounds, 4);
                let mut all = vec![Measured(names[0], share, 100.0, rounds, ahead)];
                all.extend(names[1..].iter().copied().map(other));
                let rows = table(&all);
                for noise in [None, Some(0.5)] {
                    for repeats in [Repeats::rounds(1), Repeats::processes(7)] {
                        let judge = Judge::new(1, noise).over(repeats);
                        let found = finding(&rows, Mode::Train, &judge).unwrap();
                        for said in [&found.text, &found.detail] {
                            assert!(words_of_longest_sentence(said) <= 25, "{said}");
                        }
                        let first = found.text.split_once(' ').unwrap().0.to_owned();
                        second += usize::from(found.text.contains(". Loading would "));
                        if !begins.contains(&first) {
                            begins.push(first);
                        }
                    }
                }
            }
        }
    }
    begins.sort();
    assert_eq!(begins, ["It", "Loading", "The"]);
    assert!(second > 10, "{second}");
}

#[test]
fn the_limit_is_that_of_the_finding_that_comes_first() {
    let judge = |noise| Judge::new(1, noise);
    assert_eq!(limit(&waits(&[("tiff", 0.01), ("parquet", 0.9)]), &judge(None)), Some(Bottleneck::Model));
    assert_eq!(limit(&waits(&[("tiff", 0.9)]), &judge(None)), Some(Bottleneck::Loading));
    let is_noise = |table: &Table, noise| match limit(table, &judge(noise)) {
        Some(Bottleneck::Unclear { is_noise, .. }) => Some(is_noise),
        _ => None,
    };
    assert_eq!(is_noise(&waits(&[("tiff", 0.9)]), Some(0.3)), Some(true));
    assert_eq!(is_noise(&waits(&[("tiff", 0.2998)]), None), Some(true));
    assert_eq!(is_noise(&table(&[Measured("tiff", 0.01, 100.0, 6, 12)]), None), Some(false));
    assert_eq!(is_noise(&table(&[Measured("tiff", 0.01, 100.0, 2, 4)]), None), Some(false));
    assert_eq!(limit(&Table::new("loop"), &judge(None)), None);
}
