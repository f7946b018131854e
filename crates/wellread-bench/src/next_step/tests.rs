//! The next step of given tables.

use super::*;
use wellread_report::{Cell, row};

fn steps(wait: f64) -> Table {
    let mut table = Table::new("loop");
    for (format, more) in [("tiff", 0.0), ("parquet", 0.2)] {
        for run in 0..6 {
            let share = wait + more + 0.001 * f64::from(run);
            table.push(row![
                ("format", format),
                ("model", "cnn"),
                ("mode", "train"),
                ("run", run),
                ("data_wait_fraction", share)
            ]);
        }
    }
    table
}

const KERNEL: &str = "widening and scaling";

fn loader(bound: &str) -> Table {
    loader_at(bound, 0.75)
}

fn loader_at(bound: &str, share: f64) -> Table {
    let mut table = Table::new("dataloader");
    for (workers, rate) in [(0, 100.0), (2, 180.0)] {
        for run in 0..6 {
            table.push(row![
                ("format", "tiff"),
                ("batch_size", 16),
                ("workers", workers),
                ("run", run),
                ("num_samples", 100),
                ("samples_per_sec", rate),
                ("bound_by", bound),
                ("limit_kernel_per_s", if bound == KERNEL { rate / share } else { 1e6 }),
                ("limit_read_per_s", if bound == KERNEL { 1e6 } else { rate / share }),
                ("share_of_limit", share)
            ]);
        }
    }
    table
}

/// The first rounds of a table, so many of each configuration.
fn first_rounds(table: &Table, rounds: i64) -> Table {
    let mut out = Table::new(table.name());
    for row in (0..table.rows()).filter(|&row| table.f64("run", row) < Some(rounds as f64)) {
        out.push(table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))));
    }
    out
}

fn next(tables: &[Table]) -> Finding {
    finding(tables, &BTreeMap::new(), &Judge::new(1, None)).unwrap()
}

#[test]
fn little_waiting_sends_to_the_model_and_much_to_what_binds() {
    let little = next(&[steps(0.04), loader("reading and decoding")]);
    assert!(
        little.text.starts_with("Next: look at the model") && little.text.contains("tiff"),
        "{}",
        little.text
    );
    assert!(little.text.contains("4.2 %") && !little.text.contains("reaches beyond"), "{}", little.text);
    assert_eq!(little.severity, Severity::Good);
    let near = next(&[steps(0.297), loader("reading and decoding")]);
    assert_eq!(near.severity, Severity::Caution);
    assert!(near.text.contains("reaches beyond 30 %"), "{}", near.text);
    let much = next(&[steps(0.6), loader(KERNEL)]);
    assert!(much.text.contains("pixels as they are stored, scaled on the device"), "{}", much.text);
    assert!(
        much.detail.contains("60.") && much.detail.contains("widening and scaling: it runs at 75.0 %"),
        "{}",
        much.detail
    );
    let beyond = next(&[steps(0.6), loader_at(KERNEL, 2.0)]).detail;
    assert!(
        beyond.contains("Nothing that was measured binds tiff: it exceeds widening and scaling alone"),
        "{beyond}"
    );
    assert!(next(&[steps(0.6)]).text.contains("wellread bench dataloader"));
    let text = next(&[loader("reading and decoding")]).text;
    assert!(text.contains("cheaper codec") && text.contains("--loader-cache memory"), "{text}");
}

#[test]
fn what_is_far_from_its_limit_is_not_bound_by_it() {
    let far = next(&[loader_at("reading and decoding", 0.3)]);
    assert!(far.text.contains("no limit that was measured is near"), "{}", far.text);
    assert!(
        far.detail.contains("tiff runs at 30.0 %") && !far.detail.contains("The limit of"),
        "{}",
        far.detail
    );
}

/// As [`loader`], with these numbers of workers, the rate of each, and how much larger it is in every other round.
fn loader_of(workers: &[(i64, f64, f64)], share: f64) -> Table {
    let mut table = Table::new("dataloader");
    for &(workers, rate, swing) in workers {
        for run in 0..6 {
            table.push(row![
                ("format", "tiff"),
                ("batch_size", 2),
                ("workers", workers),
                ("run", run),
                ("num_samples", 12),
                ("samples_per_sec", rate * (1.0 + swing * f64::from(run % 2))),
                ("bound_by", "reading and decoding"),
                ("limit_kernel_per_s", 1e6),
                ("limit_read_per_s", rate / share),
                ("share_of_limit", share)
            ]);
        }
    }
    table
}

#[test]
fn workers_that_the_run_rules_out_are_not_advised() {
    let text = |workers: &[(i64, f64, f64)], share: f64| next(&[loader_of(workers, share)]).text;
    let far = " batches: no limit that was measured is near";
    let add = "Next: add worker threads while their number helps, ";
    let ruled_out: [&[(i64, f64, f64)]; 4] = [
        // The fastest without workers, or with fewer than were measured.
        &[(0, 162.0, 0.0), (2, 100.0, 0.0)],
        &[(0, 50.0, 0.0), (2, 162.0, 0.0), (4, 100.0, 0.0)],
        // Workers change nothing, or are faster in one round and slower in the next.
        &[(0, 100.0, 0.0), (2, 100.0, 0.0)],
        &[(0, 100.0, 0.0), (2, 90.0, 0.3)],
    ];
    for workers in ruled_out {
        assert_eq!(text(workers, 0.3), format!("Next: take larger{far}"), "{workers:?}");
        assert_eq!(
            text(workers, 0.75),
            "Next: keep decoded images in memory where they fit (`--loader-cache memory`), or store them with a cheaper codec. \
             `wellread advise` tries what helps",
            "{workers:?}"
        );
    }
    let open: [&[(i64, f64, f64)]; 4] = [
        // Workers help as far as was measured.
        &[(0, 100.0, 0.0), (2, 180.0, 0.0)],
        &[(1, 100.0, 0.0), (2, 180.0, 0.0)],
        // No other number was measured.
        &[(0, 100.0, 0.0)],
        &[(2, 100.0, 0.0)],
    ];
    for workers in open {
        assert_eq!(text(workers, 0.3), format!("{add}or larger{far}"), "{workers:?}");
        assert!(text(workers, 0.75).starts_with(&format!("{add}keep decoded images")), "{workers:?}");
    }
}

#[test]
fn what_is_not_compressed_is_advised_no_cheaper_codec() {
    let of = |codec: &str| {
        let from = loader("reading and decoding");
        let mut table = Table::new("dataloader");
        for row in 0..from.rows() {
            let mut cells: Vec<(String, Cell)> =
                from.columns().iter().map(|c| (c.name().to_owned(), from.cell(c.name(), row))).collect();
            cells.push(("codec".to_owned(), codec.into()));
            table.push(cells);
        }
        next(&[table]).text
    };
    assert!(of("zstd").contains("cheaper codec"));
    let plain = of("none");
    assert!(!plain.contains("codec") && plain.contains("another format"), "{plain}");
    assert_eq!(of("crc32c"), plain, "a checksum is no codec");
}

#[test]
fn few_rounds_say_nothing_of_what_binds() {
    for rounds in [1, 5] {
        let few = next(&[first_rounds(&loader(KERNEL), rounds)]);
        assert!(
            few.text.starts_with("Next: measure dataloader again") && few.text.contains("too few"),
            "{}",
            few.text
        );
        assert!(!few.detail.contains(KERNEL), "{}", few.detail);
    }
}

#[test]
fn conversion_is_that_of_the_dearest_path_in_whatever_language() {
    let mut table = Table::new("conversion");
    for (framework, path, share) in [("rust", "copy", 6.0), ("pytorch", "torch.tensor", 44.0)] {
        for run in 0..6 {
            table.push(row![
                ("format", "tiff"),
                ("framework", framework),
                ("loader", "wellread"),
                ("path", path),
                ("run", run),
                ("conversion_overhead_pct", share)
            ]);
        }
    }
    let found = crate::findings::all(&[table], &BTreeMap::new(), 1, crate::findings::Repeats::rounds(1));
    let next = found.iter().find(|finding| finding.text.starts_with("Next: ")).unwrap();
    assert!(next.text.contains("without a copy"), "{}", next.text);
    assert!(
        next.detail.contains("44.0 %") && next.detail.contains("by torch.tensor in pytorch"),
        "{}",
        next.detail
    );
}

#[test]
fn noise_and_conversion() {
    let noisy = BTreeMap::from([("loop".to_owned(), 0.8)]);
    assert!(finding(&[steps(0.1)], &noisy, &Judge::new(1, None)).unwrap().text.contains("idle machine"));
    let conversion = |share: f64| {
        let mut table = Table::new("conversion");
        for run in 0..6 {
            table.push(row![
                ("format", "tiff"),
                ("path", "copy"),
                ("run", run),
                ("conversion_overhead_pct", share)
            ]);
        }
        next(&[table]).text
    };
    assert!(conversion(4.0).contains("not the bottleneck"));
    assert!(conversion(40.0).contains("without a copy"));
    assert!(finding(&[], &BTreeMap::new(), &Judge::new(1, None)).is_none());
}
