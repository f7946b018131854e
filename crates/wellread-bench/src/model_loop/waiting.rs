//! The time that a step waits for data, format by format, and whether the runs are enough to name the limit.
//!
//! ```text
//!  rows of one mode ─▶ [`Waiting`] of each format, the fastest first ─▶ [`Bottleneck`] ─▶ what the answer says
//! ```
//!
//! A share is small for two reasons: loading is fast, or the loader had read the batches before the first step was counted.
//! Rows tell them apart: `steps` that do not outnumber `batches_ahead` measured no loading. Such a share is a lower bound.

use super::thresholds::{LARGE_SHARE, SMALL_SHARE, advice, utilisation_mark};
use crate::choices::Mode;
use crate::core::judge::{Judge, Repeats};
use crate::core::series::{Series, series};
use crate::core::words::{number, percent};
use wellread_measure::intervals::Interval;
use wellread_measure::samples::median;
use wellread_report::{Finding, Severity, Table, Topic};
use wellread_store::words::first_and_more;

/// Slow formats that the sentence names.
const NAMED: usize = 3;

/// The limit of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bottleneck {
    /// The model: waiting is below 30 %.
    Model,
    /// Waiting takes 30 to 50 %.
    Both,
    /// Loading: waiting is above 50 %.
    Loading,
    /// The runs do not tell, for this reason.
    Unclear(String),
}

impl Bottleneck {
    /// The limit by a share of waiting alone.
    fn of(share: f64) -> Self {
        match share {
            share if share < SMALL_SHARE => Self::Model,
            share if share <= LARGE_SHARE => Self::Both,
            _ => Self::Loading,
        }
    }

    fn severity(&self) -> Severity {
        match self {
            Self::Model => Severity::Good,
            Self::Both | Self::Unclear(_) => Severity::Caution,
            Self::Loading => Severity::Bad,
        }
    }
}

/// The time that a step waits for data with one format.
pub(crate) struct Waiting {
    /// The share of each run.
    shares: Series,
    /// The interval of their median, where there are rounds enough for one.
    interval: Option<Interval>,
    /// Median throughput.
    images_per_sec: f64,
    /// The limit by the runs.
    pub(crate) binds: Bottleneck,
}

impl Waiting {
    /// The format.
    pub(crate) fn format(&self) -> &str {
        &self.shares.format
    }

    /// The median share.
    pub(crate) fn share(&self) -> f64 {
        self.shares.median()
    }

    /// The share in words, with its interval.
    pub(crate) fn share_with_interval(&self) -> String {
        let interval = self.interval.as_ref();
        let range =
            interval.map_or(String::new(), |i| format!(" ({} to {})", percent(i.low), percent(i.high)));
        percent(self.share()) + &range
    }
}

/// The waiting of a step with each format, the fastest format first.
pub(crate) fn by_speed(table: &Table, mode: Mode, judge: &Judge) -> Vec<Waiting> {
    let is = |row: usize| table.cell("mode", row) == mode.into();
    let of = |series: Series| {
        let rows = || (0..table.rows()).filter(|&r| is(r) && table.str("format", r) == Some(&series.format));
        let rates: Vec<f64> = rows().filter_map(|row| table.f64("images_per_sec", row)).collect();
        let ahead = rows().find_map(|row| {
            let of = |column| table.f64(column, row).map(|value| value as usize);
            read_ahead(of("steps")?, of("batches_ahead")?)
        });
        let interval = judge.median(&series.values);
        let binds = binds(&series, interval.as_ref(), ahead, judge);
        Waiting { shares: series, interval, images_per_sec: median(&rates).unwrap_or(f64::NAN), binds }
    };
    let all = series(table, &["model"], "data_wait_fraction", is);
    let mut all: Vec<Waiting> = all.into_iter().map(of).filter(|w| w.share().is_finite()).collect();
    all.sort_by(|a, b| {
        let faster = b.images_per_sec.total_cmp(&a.images_per_sec);
        faster.then(a.share().total_cmp(&b.share()))
    });
    all
}

fn binds(shares: &Series, interval: Option<&Interval>, ahead: Option<String>, judge: &Judge) -> Bottleneck {
    let Some(interval) = interval else {
        return Bottleneck::Unclear(judge.too_few(shares.values.len()));
    };
    if let Some(why) = judge.too_noisy() {
        return Bottleneck::Unclear(why);
    }
    let (low, high) = (Bottleneck::of(interval.low), Bottleneck::of(interval.high));
    match ahead {
        // Batches read ahead make a share smaller, never larger.
        Some(why) if low != Bottleneck::Loading => Bottleneck::Unclear(why),
        _ if low == high => low,
        _ => {
            let limit = if low == Bottleneck::Model { SMALL_SHARE } else { LARGE_SHARE };
            let Repeats { several, option, .. } = judge.repeats();
            Bottleneck::Unclear(format!(
                "the interval reaches beyond {:.0} % (more {several} tell: {option}, --time-budget)",
                100.0 * limit
            ))
        }
    }
}

/// The note where all batches of a run may have been ready before its first step.
pub(super) fn read_ahead(steps: usize, ahead: usize) -> Option<String> {
    (steps <= ahead).then(|| {
        format!(
            "steps do not outnumber the batches read ahead ({steps} and {ahead}), so that slow loading may not show yet: --steps {} \
             or more",
            3 * ahead
        )
    })
}

/// The finding about the limit in one mode.
pub(super) fn finding(table: &Table, mode: Mode, judge: &Judge) -> Option<Finding> {
    let all = by_speed(table, mode, judge);
    // The fastest format decides, as in the sentence on the next step: a user who reads a slow one can change
    // that.
    let (best, others) = all.split_first()?;
    let verb = if mode == Mode::Train { "training" } else { "inference" };
    let begin = match &best.binds {
        Bottleneck::Model => "The model binds here, not loading",
        Bottleneck::Both => "Loading takes a part that matters",
        Bottleneck::Loading => "Loading binds here",
        Bottleneck::Unclear(_) => "It is too early to say whether the model or loading binds here",
    };
    let why = match &best.binds {
        Bottleneck::Unclear(why) => format!("; {why}"),
        _ => String::new(),
    };
    let slow: Vec<&Waiting> = others.iter().filter(|w| is_worse(&w.binds, &best.binds)).collect();
    let with = |w: &Waiting| format!("{} with {}", w.share_with_interval(), w.format());
    let shares = match others.last() {
        Some(slowest) if slow.is_empty() => format!("{}, {}", with(best), with(slowest)),
        _ => with(best),
    };
    let text = format!(
        "{begin}: in {verb} of {} a step waits for data for this share of its time: {shares}{why}{}",
        best.shares.label,
        would_bind(slow)
    );
    let is = |row: usize| table.cell("mode", row) == mode.into();
    let rate = format!("{} {}", number(best.images_per_sec), judge.per_second());
    let detail = if let Bottleneck::Unclear(_) = best.binds {
        format!("With {}: {rate} so far; no verdict yet.", best.format())
    } else {
        let of = if others.is_empty() { "" } else { ", whose median rate is the highest" };
        let computing: Vec<f64> = best.shares.values.iter().map(|wait| 1.0 - wait).collect();
        format!(
            "With {}{of}: {rate}, {}; accelerator utilisation is {}{} ({} of MLPerf Storage's marks){}. This holds for this model on this machine's CPU: a model or device that takes more images per second waits more.",
            best.format(),
            advice(best.share()),
            percent(1.0 - best.share()),
            judge.interval(&computing, percent),
            utilisation_mark(1.0 - best.share()),
            by_difference(table, best.format(), is, judge),
        )
    };
    Some(Finding::new(best.binds.severity(), text, detail).about(Topic::Limit))
}

/// Whether loading matters more with a format than with the best one, beyond doubt.
fn is_worse(format: &Bottleneck, best: &Bottleneck) -> bool {
    match format {
        Bottleneck::Loading => *best != Bottleneck::Loading,
        Bottleneck::Both => *best == Bottleneck::Model,
        _ => false,
    }
}

/// The formats that would make loading matter, the slowest first; empty where there is none.
fn would_bind(mut slow: Vec<&Waiting>) -> String {
    slow.sort_by(|a, b| b.share().total_cmp(&a.share()));
    let Some(slowest) = slow.first() else { return String::new() };
    let most = slowest.binds.clone();
    let verb = if most == Bottleneck::Loading { "bind" } else { "take a part that matters" };
    slow.retain(|w| w.binds == most);
    let named: Vec<String> =
        slow.iter().map(|w| format!("with {} {}", w.format(), w.share_with_interval())).collect();
    format!("; loading would {verb} {}", first_and_more(&named, NAMED, [", ", "; and"]))
}

/// Waiting by difference of a format, for the detail of its finding; empty where the rounds are too few for an interval. The
/// noise of a difference is that of both sides.
fn by_difference(table: &Table, format: &str, is: impl Fn(usize) -> bool + Copy, judge: &Judge) -> String {
    let of = |column: &str| {
        let found = series(table, &["model"], column, |r| is(r) && table.str("format", r) == Some(format));
        let interval = judge.median(&found.first()?.values)?;
        Some(format!(
            "{} ({} to {})",
            percent(interval.estimate),
            percent(interval.low),
            percent(interval.high)
        ))
    };
    let Some(warm) = of("wait_by_difference_fraction") else { return String::new() };
    let cold = of("wait_by_difference_cold_fraction")
        .map_or(String::new(), |cold| format!(", {cold} with cold files"));
    format!("; by difference from full batches {warm} is waiting{cold}")
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let (best, slow) = mixed.text.split_once("; loading would bind with parquet-duckdb 93.").unwrap();
        assert!(
            best.contains("1.0 %") && best.ends_with("with tiff") && slow.contains('%'),
            "{}",
            mixed.text
        );
        assert!(mixed.detail.contains("loading is no bottleneck"), "{}", mixed.detail);
        let next = next(waits(&[("tiff", 0.01), ("parquet-duckdb", 0.93)]));
        assert_eq!(next.severity, mixed.severity);
        assert!(next.text.contains("look at the model, not at loading: with tiff"), "{}", next.text);
        let slow = found(&waits(&[("tiff", 0.7), ("parquet", 0.93)]));
        assert_eq!(slow.severity, Severity::Bad);
        assert!(slow.text.starts_with("Loading binds here") && !slow.text.contains("would"), "{}", slow.text);
        let alike = found(&waits(&[("tiff", 0.01), ("parquet", 0.02)]));
        assert!(alike.text.contains("with tiff, ") && !alike.text.contains("would"), "{}", alike.text);
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
        let (tiff, png) = (found.text.find("with tiff").unwrap(), found.text.find("with png").unwrap());
        assert!(tiff < png && found.text.contains("4.0 %"), "{}", found.text);
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
}
