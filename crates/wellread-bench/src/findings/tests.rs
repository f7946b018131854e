//! The findings of given tables.

use super::*;
use crate::core::series::telling_batch_size;
use wellread_measure::compare::MIN_SAMPLES;
use wellread_report::{Topic, row};

fn formats(rates: &[(&str, i64, [f64; 6])]) -> Table {
    loader_table(rates.iter().map(|(format, workers, rates)| {
        (row![("format", *format), ("batch_size", 16), ("workers", *workers)], *rates)
    }))
}

#[test]
fn a_clear_difference_is_said_and_an_unclear_one_is_not() {
    let clear = formats(&[
        ("tiff", 0, [200.0, 201.0, 199.0, 200.5, 200.2, 199.6]),
        ("parquet", 0, [100.0, 101.0, 99.0, 100.2, 100.1, 99.5]),
    ]);
    assert!(
        all(std::slice::from_ref(&clear), &BTreeMap::new(), 1, Repeats::rounds(1))[0]
            .text
            .contains("tiff is the fastest format here")
    );
    let noisy = BTreeMap::from([("dataloader".to_owned(), 2.3)]);
    let text = all(std::slice::from_ref(&clear), &noisy, 1, Repeats::rounds(1))[0].text.clone();
    assert!(text.contains("cannot be told apart") && text.contains("230 %"), "{text}");
    // A difference that is larger than much noise is told, not as advice, and nothing is called fastest.
    let much = BTreeMap::from([("dataloader".to_owned(), 0.5)]);
    for table in [&clear, &two_formats(7, &[("epoch_s", 0.01)])] {
        let found = all(std::slice::from_ref(table), &much, 1, Repeats::rounds(1));
        let first = &found[0];
        assert!(
            first.text.starts_with(
                "This run is too noisy for conclusions: one variant measured twice differed by up to 50 %. tiff was "
            ) && first.text.contains(" times as fast as parquet, more than this noise explains. "),
            "{}",
            first.text
        );
        assert!(
            !found.iter().any(|f| f.text.contains("fastest") || f.detail.contains("fastest")),
            "{found:?}"
        );
        assert_eq!(first.severity, Severity::Info);
        assert!(found.iter().any(|f| f.text.contains("nothing can be advised from its figures")));
    }
    // Twice as fast, but the interval begins at 1.994: not beyond a floor of 99.5 %.
    let close = BTreeMap::from([("dataloader".to_owned(), 0.995)]);
    let text = all(std::slice::from_ref(&clear), &close, 1, Repeats::rounds(1))[0].text.clone();
    assert!(text.contains("cannot be told apart"), "{text}");
    let unclear = formats(&[
        ("tiff", 0, [200.0, 90.0, 110.0, 100.0, 95.0, 130.0]),
        ("parquet", 0, [100.0, 190.0, 99.0, 101.0, 120.0, 97.0]),
    ]);
    assert!(
        all(&[unclear], &BTreeMap::new(), 1, Repeats::rounds(1))[0].text.contains("cannot be told apart")
    );
}

/// So many rounds of a model loop of 12 steps, which wait this share of their time for batches that were partly read ahead.
fn steps(runs: usize, share: f64, ahead: i64) -> Table {
    let what = row![("format", "tiff"), ("model", "small-cnn"), ("images_per_sec", 100.0)];
    loop_table(&what, runs, share, ahead)
}

/// The answer leads with what binds: where the model does, the fastest format makes nothing faster.
#[test]
fn what_binds_comes_before_the_fastest_format() {
    for (share, binds) in [(0.01, "The model binds here"), (0.7, "Loading binds here")] {
        let tables = [two_formats(7, &[("epoch_s", 1.0)]), steps(7, share, 4)];
        let found = all(&tables, &BTreeMap::new(), 1, Repeats::rounds(1));
        assert!(found[0].text.starts_with(binds), "{}", found[0].text);
        assert!(found[1].text.contains("tiff is the fastest format here"), "{}", found[1].text);
        assert_eq!((found[0].topic, found[1].topic), (Topic::Limit, Topic::Format));
    }
}

/// Few rounds, short epochs, steps that were read ahead and a share at a threshold ask for more. None of them is good news.
#[test]
fn no_card_that_asks_for_more_is_good() {
    const ASKS: [&str; 7] =
        ["measure more", "more rounds", "loop again", "--steps", "--repeats", "--processes", "--time-budget"];
    let mut asking = 0;
    for runs in [1, 2, 5, 6, 7] {
        for epoch_s in [0.01, 1.0] {
            for (share, ahead) in [(0.01, 4), (0.01, 12), (0.2998, 4), (0.7, 4)] {
                let loader = two_formats(runs, &[("epoch_s", epoch_s)]);
                let tables = [loader, steps(runs, share, ahead)];
                let repeats = [Repeats::rounds(runs), Repeats::processes(runs), Repeats::processes(7)];
                for card in repeats.into_iter().flat_map(|of| all(&tables, &BTreeMap::new(), 1, of)) {
                    let said = format!("{} {}", card.text, card.detail).to_lowercase();
                    if ASKS.iter().any(|words| said.contains(words)) {
                        asking += 1;
                        assert_ne!(card.severity, Severity::Good, "{said}");
                    }
                }
            }
        }
    }
    assert!(asking > 120, "{asking}");
}

#[test]
fn two_rounds_give_no_interval_and_no_verdict() {
    let found = all(&[two_formats(2, &[])], &BTreeMap::new(), 1, Repeats::rounds(1));
    assert!(
        found[0].text.contains("2 rounds are too few") && !found[0].text.contains('–'),
        "{}",
        found[0].text
    );
    assert!(found.iter().all(|f| !f.text.contains("worker threads")), "one number of workers says nothing");
}

#[test]
fn a_number_of_workers_is_best_only_where_it_is_told_apart_from_the_others() {
    let text = |two: [f64; 6]| {
        let table = formats(&[
            ("tiff", 0, [100.0, 101.0, 99.0, 100.2, 100.1, 99.5]),
            ("tiff", 2, two),
            ("tiff", 4, [200.0, 202.0, 198.0, 200.5, 200.2, 199.6]),
        ]);
        let found = all(&[table], &BTreeMap::new(), 1, Repeats::rounds(1));
        found.into_iter().find(|f| f.text.contains("tiff: 2.0")).unwrap().text
    };
    let alike = text([199.0, 203.0, 197.0, 201.0, 199.8, 199.9]);
    assert!(alike.starts_with("Worker threads help tiff: 2.0"), "{alike}");
    assert!(alike.ends_with("with 4 workers, which 2 workers cannot be told apart from"), "{alike}");
    let slower = text([150.0, 151.0, 149.0, 150.2, 150.1, 149.5]);
    assert!(slower.starts_with("4 workers are best for tiff: 2.0"), "{slower}");
}

/// A sentence of "no difference" with a factor in it contradicts itself.
#[test]
fn a_gain_of_workers_that_is_in_doubt_is_a_ratio_with_its_interval() {
    let steady = [100.0, 101.0, 99.0, 100.2, 100.1, 99.5];
    let wild = [50.0, 300.0, 290.0, 60.0, 310.0, 280.0];
    let text = |without: [f64; 6], with: [f64; 6]| {
        let table = formats(&[("tiff", 0, without), ("tiff", 4, with)]);
        let found = all(&[table], &BTreeMap::new(), 1, Repeats::rounds(1));
        found.into_iter().find(|f| f.text.starts_with("Whether worker threads")).unwrap().text
    };
    let more = text(steady, wild);
    let begin = "Whether worker threads help tiff cannot be told here: ";
    assert!(
        more.starts_with(&format!("{begin}with 4 workers its throughput at batches of 16 is 2.8")),
        "{more}"
    );
    assert!(more.ends_with(" times that without any; the interval holds 1"), "{more}");
    let none = text(wild, steady);
    assert!(
        none.starts_with(&format!("{begin}without any its throughput at batches of 16 is 2.8")),
        "{none}"
    );
    assert!(none.ends_with(" times that with 4 workers; the interval holds 1"), "{none}");
}

/// Processes are too few, each of which had rounds enough.
#[test]
fn too_few_processes_are_not_called_rounds() {
    let tables = [two_formats(3, &[("epoch_s", 1.0)]), steps(3, 0.01, 4)];
    let found = all(&tables, &BTreeMap::new(), 1, Repeats::processes(3));
    let said: Vec<String> = found.iter().map(|card| format!("{} {}", card.text, card.detail)).collect();
    let few = "3 processes are too few for a verdict (--processes 7 gives one)";
    assert!(said.iter().filter(|card| card.contains(few)).count() >= 2, "{said:?}");
    let of_rounds =
        |card: &&String| card.to_lowercase().contains("rounds are") || card.contains("ore rounds");
    assert_eq!(said.iter().find(of_rounds), None);
    // An interval across a threshold asks for more of what it is over.
    let wide = steps(7, 0.2998, 4);
    let found = all(&[wide], &BTreeMap::new(), 1, Repeats::processes(7));
    assert!(found[0].text.contains("(more processes tell: --processes, --time-budget)"), "{}", found[0].text);
}

/// Seven rounds were asked for and there was no time for them: that seven would give a verdict is no advice then.
#[test]
fn rounds_that_were_asked_for_and_had_no_time_are_told() {
    let text_of = |runs, asked: usize| {
        all(&[two_formats(runs, &[])], &BTreeMap::new(), 1, Repeats::rounds(asked))[0].text.clone()
    };
    let text = |asked| text_of(2, asked);
    let had = "(6 are needed; 7 were asked for, but the time was short: --time-budget)";
    let short = text(7);
    assert!(short.contains(&format!("2 rounds are too few for a verdict {had}")), "{short}");
    assert!(!short.contains("gives one"), "{short}");
    // Where two were asked for, more are the advice.
    let few = text(2);
    assert!(few.contains("2 rounds are too few for a verdict (--repeats 7 gives one)"), "{few}");
    assert!(!few.contains("the time was short"), "{few}");
    // As many as are needed are enough to have asked for.
    assert!(text(MIN_SAMPLES - 1).contains("--repeats 7 gives one"));
    assert!(text(MIN_SAMPLES).contains("6 were asked for, but the time was short"));
    // The same of one round.
    let one = text_of(1, 7);
    assert!(
        one.contains("too early to say")
            && one.contains(&format!("One round is too few for a verdict {had}")),
        "{one}"
    );
}

#[test]
fn a_verdict_rests_on_batches_of_which_there_are_several() {
    let table = |images: i64| {
        let mut table = Table::new("dataloader");
        for batch in [1, 4, 16] {
            table.push(row![("format", "tiff"), ("batch_size", batch), ("num_samples", images)]);
        }
        table
    };
    assert_eq!(telling_batch_size(&table(100)), Some(16.0));
    assert_eq!(telling_batch_size(&table(17)), Some(4.0));
    assert_eq!(telling_batch_size(&table(3)), Some(1.0));
}

#[test]
fn a_format_that_there_was_no_time_for_is_named_also_in_the_title() {
    let late = |formats: &[&str]| {
        let mut table = Table::new("dataloader");
        for workers in [0, 2] {
            for format in ["tiff", "parquet", "lance"] {
                let mut what = row![("format", format), ("batch_size", 4), ("workers", workers)];
                if formats.contains(&format) {
                    let reason = format!("{LEFT_OUT}: dataloader had 1 s");
                    what.extend(row![("status", "unavailable"), ("reason", reason)]);
                } else {
                    what.extend(row![
                        ("status", "ok"),
                        ("run", 0),
                        ("num_samples", 100),
                        ("samples_per_sec", 9.0)
                    ]);
                }
                table.push(what);
            }
        }
        let told = left_out(std::slice::from_ref(&table)).unwrap().text;
        let rounds = Repeats::rounds(7);
        (told, crate::outcome::title(&[table], &[("dataloader", 7)], &BTreeMap::new(), 1, rounds))
    };
    let (told, title) = late(&["parquet", "lance"]);
    assert!(told.starts_with("No time for 4 of "), "{told}");
    assert!(told.ends_with(" of dataloader; nothing was measured of parquet, lance"), "{told}");
    let alone =
        "Which format feeds the model fastest? There was time for tiff alone, not for parquet, lance.";
    assert_eq!(title, alone);
    let (told, title) = late(&["parquet"]);
    assert!(told.ends_with("; nothing was measured of parquet"), "{told}");
    assert_eq!(title, "Which format feeds the model fastest?");
}

#[test]
fn unverified_runs_are_no_evidence() {
    let mut table = formats(&[("tiff", 0, [1.0; 6])]);
    table.push(row![
        ("format", "wrong"),
        ("batch_size", 16),
        ("workers", 0),
        ("run", 0),
        ("num_samples", 100),
        ("verified", false),
        ("samples_per_sec", 1e9)
    ]);
    assert!(all(&[table], &BTreeMap::new(), 1, Repeats::rounds(1)).iter().all(|f| !f.text.contains("wrong")));
}

#[test]
fn a_batch_size_that_is_impossible_is_not_a_format_that_is_missing() {
    let mut table = formats(&[("tiff", 0, [1.0; 6])]);
    for batch_size in [32, 64, 32] {
        table.push(row![
            ("format", "tiff"),
            ("batch_size", batch_size),
            ("status", "unavailable"),
            ("reason", "the set has only 20 images")
        ]);
    }
    table.push(row![
        ("format", "lance"),
        ("batch_size", 32),
        ("status", "unavailable"),
        ("reason", "left out of this build")
    ]);
    let last = all(&[table], &BTreeMap::new(), 1, Repeats::rounds(1)).pop().unwrap();
    assert_eq!(last.text, "Not measured: batches of 32, batches of 64, lance");
    assert!(last.detail.contains("batches of 64: the set has only 20 images"), "{}", last.detail);
    assert!(last.detail.contains("lance: left out of this build"), "{}", last.detail);
}

/// A loader in Python that was measured in batches of 1 is not missing because the set is too small for batches of 4.
#[test]
fn a_batch_size_that_is_impossible_is_not_a_loader_that_is_missing() {
    let what = |framework: &str, loader: &str, batch_size: i64| {
        row![
            ("format", "tiff"),
            ("framework", framework),
            ("loader", loader),
            ("batch_size", batch_size),
            ("workers", 0)
        ]
    };
    let loaders = [("rust", "wellread"), ("pytorch", "wellread"), ("pytorch", "tifffile")];
    let mut table = loader_table(loaders.map(|(framework, loader)| (what(framework, loader, 1), [1.0; 6])));
    let missing = |framework, loader, batch_size, reason: &str| {
        let mut row = what(framework, loader, batch_size);
        row.extend(row![("status", "unavailable"), ("reason", reason)]);
        row
    };
    for (framework, loader) in loaders {
        table.push(missing(framework, loader, 4, "the set has only 1 image"));
    }
    let last = all(std::slice::from_ref(&table), &BTreeMap::new(), 1, Repeats::rounds(1)).pop().unwrap();
    assert_eq!(last.text, "Not measured: batches of 4");
    assert_eq!(last.detail, "batches of 4: the set has only 1 image");
    // One that failed in batches which others were measured in is named with them.
    let mut measured = what("pytorch", "wellread", 2);
    measured.extend(row![("run", 0), ("verified", true), ("num_samples", 100), ("samples_per_sec", 1.0)]);
    table.push(measured);
    table.push(missing("pytorch", "tifffile", 2, "no memory"));
    let last = all(&[table], &BTreeMap::new(), 1, Repeats::rounds(1)).pop().unwrap();
    assert_eq!(last.text, "Not measured: batches of 4, pytorch tifffile in batches of 2");
}

/// A light build lacks formats, and its Python lacks a framework: each is named once, and a framework that was measured is not named.
#[test]
fn what_a_build_and_a_python_lack_is_named_once() {
    let mut table = Table::new("dataset");
    for (framework, loader) in [("rust", "wellread"), ("pytorch", "tifffile")] {
        table.push(row![("format", "tiff"), ("framework", framework), ("loader", loader), ("status", "ok")]);
    }
    let left_out = "left out of this build";
    for format in ["tiff", "lance", "vortex"] {
        if format != "tiff" {
            table.push(row![
                ("format", format),
                ("framework", "rust"),
                ("loader", "wellread"),
                ("status", "unavailable"),
                ("reason", left_out)
            ]);
        }
        for (framework, lacking) in [("pytorch", left_out), ("jax", "pip install jax")] {
            if (format, framework) != ("tiff", "pytorch") {
                table.push(row![
                    ("format", format),
                    ("framework", framework),
                    ("status", "unavailable"),
                    ("reason", lacking)
                ]);
            }
        }
    }
    let last = all(&[table], &BTreeMap::new(), 1, Repeats::rounds(1)).pop().unwrap();
    assert_eq!(last.text, "Not measured: jax, lance, vortex");
    assert_eq!(last.detail, "jax: pip install jax; lance, vortex: left out of this build");
}

#[test]
fn a_page_cache_that_stays_full_is_not_a_format_that_is_missing() {
    let mut table = Table::new("storage");
    for operation in ["open", "read_all"] {
        table.push(row![("format", "tiff"), ("operation", operation), ("cache", "warm"), ("seconds", 1.0)]);
        table.push(row![
            ("format", "tiff"),
            ("operation", operation),
            ("cache", "cold"),
            ("status", "unavailable"),
            ("reason", "pages stayed")
        ]);
    }
    let last = all(&[table], &BTreeMap::new(), 1, Repeats::rounds(1)).pop().unwrap();
    assert_eq!(last.text, "Not measured: tiff from a cold page cache");
}

#[test]
fn no_table_gives_no_sentence() {
    assert!(all(&[], &BTreeMap::new(), 1, Repeats::rounds(1)).is_empty());
    assert!(all(&[Table::new("dataloader")], &BTreeMap::new(), 1, Repeats::rounds(1)).is_empty());
}

#[test]
fn rates_of_cells_are_of_cells() {
    let table = two_formats(7, &[("epoch_s", 1.0)]);
    let first = |repeats| all(std::slice::from_ref(&table), &BTreeMap::new(), 1, repeats)[0].clone();
    let (cells, images) = (first(Repeats::rounds(1).of("cell")), first(Repeats::rounds(1)));
    assert!(cells.text.contains(" cells/s in batches"), "{}", cells.text);
    assert!(!format!("{} {}", cells.text, cells.detail).contains("images/s"), "{}", cells.detail);
    assert!(images.text.contains(" images/s in batches"), "{}", images.text);
}
