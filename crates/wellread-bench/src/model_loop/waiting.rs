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
use crate::core::words::{capitalized, number, percent};
use wellread_measure::intervals::Interval;
use wellread_measure::samples::median;
use wellread_report::{Finding, Severity, Table, Topic};
use wellread_store::words::first_and_more;

/// Slow formats that a finding names.
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
    /// The runs do not tell.
    Unclear {
        /// The reason, which says what would tell.
        why: String,
        /// Whether the values scatter too much. Else there are too few of them.
        is_noise: bool,
    },
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
            Self::Both | Self::Unclear { .. } => Severity::Caution,
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
        return Bottleneck::Unclear { why: judge.too_few(shares.values.len()), is_noise: false };
    };
    if let Some(why) = judge.too_noisy() {
        return Bottleneck::Unclear { why, is_noise: true };
    }
    let (low, high) = (Bottleneck::of(interval.low), Bottleneck::of(interval.high));
    match ahead {
        // Batches read ahead make a share smaller, never larger.
        Some(why) if low != Bottleneck::Loading => Bottleneck::Unclear { why, is_noise: false },
        _ if low == high => low,
        _ => {
            let limit = if low == Bottleneck::Model { SMALL_SHARE } else { LARGE_SHARE };
            let Repeats { several, option, .. } = judge.repeats();
            let why = format!(
                "the interval reaches beyond {:.0} % (more {several} tell: {option}, --time-budget)",
                100.0 * limit
            );
            Bottleneck::Unclear { why, is_noise: true }
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

/// The limit that the answer tells: that of the fastest format in the first mode that was measured.
pub(crate) fn limit(table: &Table, judge: &Judge) -> Option<Bottleneck> {
    let fastest = |mode: &Mode| by_speed(table, *mode, judge).into_iter().next();
    Mode::ALL.iter().find_map(fastest).map(|waiting| waiting.binds)
}

/// The finding about the limit in one mode. Its text names the limit, and the reason where there is no verdict; its detail has the
/// shares.
pub(super) fn finding(table: &Table, mode: Mode, judge: &Judge) -> Option<Finding> {
    let all = by_speed(table, mode, judge);
    // The fastest format decides, as in the sentence on the next step: a user who reads a slow one can change
    // that.
    let (best, others) = all.split_first()?;
    let verb = if mode == Mode::Train { "training" } else { "inference" };
    let begin = match &best.binds {
        Bottleneck::Model => "The model binds here, not loading,",
        Bottleneck::Both => "Loading takes a part that matters",
        Bottleneck::Loading => "Loading binds here",
        Bottleneck::Unclear { .. } => "It is too early to say whether the model or loading binds here",
    };
    let slow = slowest(others, &best.binds);
    let mut sentences = vec![format!("{begin} in {verb} of {} with {}", best.shares.label, best.format())];
    if let Bottleneck::Unclear { why, .. } = &best.binds {
        sentences.push(capitalized(why));
    }
    sentences.extend(would_bind(&slow));
    let is = |row: usize| table.cell("mode", row) == mode.into();
    let detail = detail(table, best, others, &slow, is, judge);
    Some(Finding::new(best.binds.severity(), sentences.join(". "), detail).about(Topic::Limit))
}

/// The figures behind a finding: rate, shares of waiting and utilisation.
fn detail(
    table: &Table,
    best: &Waiting,
    others: &[Waiting],
    slow: &[&Waiting],
    is: impl Fn(usize) -> bool + Copy,
    judge: &Judge,
) -> String {
    let rate = format!("{} {}", number(best.images_per_sec), judge.per_second());
    let is_unclear = matches!(best.binds, Bottleneck::Unclear { .. });
    let begin = if is_unclear {
        format!("With {}: {rate} so far; no verdict yet", best.format())
    } else {
        let of = if others.is_empty() { "" } else { ", whose median rate is the highest" };
        format!("With {}{of}: {rate}, {}", best.format(), advice(best.share()))
    };
    let waits =
        format!("With {} a step waits {} of its time for data", best.format(), best.share_with_interval());
    let mut sentences = vec![begin, waits];
    // The slow ones that the text names. Where it names none, the slowest shows how far the formats differ.
    let beside: Vec<&Waiting> =
        if slow.is_empty() { others.last().into_iter().collect() } else { slow.to_vec() };
    let waits_too = |w: &&Waiting| format!("With {} it waits {}", w.format(), w.share_with_interval());
    sentences.extend(beside.iter().take(NAMED).map(waits_too));
    if !is_unclear {
        let computing: Vec<f64> = best.shares.values.iter().map(|wait| 1.0 - wait).collect();
        let utilisation = 1.0 - best.share();
        sentences.push(format!(
            "Accelerator utilisation is {}{} ({} of MLPerf Storage's marks)",
            percent(utilisation),
            judge.interval(&computing, percent),
            utilisation_mark(utilisation)
        ));
        sentences.extend(by_difference(table, best.format(), is, judge));
        sentences.push("This holds for this model on this machine's CPU".to_owned());
        sentences.push("A model or device that takes more images per second waits more".to_owned());
    }
    sentences.join(". ") + "."
}

/// Whether loading matters more with a format than with the best one, beyond doubt.
fn is_worse(format: &Bottleneck, best: &Bottleneck) -> bool {
    match format {
        Bottleneck::Loading => *best != Bottleneck::Loading,
        Bottleneck::Both => *best == Bottleneck::Model,
        _ => false,
    }
}

/// The formats with which loading matters most, the slowest first; none where it matters with no other more than with the best.
fn slowest<'a>(others: &'a [Waiting], best: &Bottleneck) -> Vec<&'a Waiting> {
    let mut slow: Vec<&Waiting> = others.iter().filter(|w| is_worse(&w.binds, best)).collect();
    slow.sort_by(|a, b| b.share().total_cmp(&a.share()));
    if let Some(most) = slow.first().map(|w| w.binds.clone()) {
        slow.retain(|w| w.binds == most);
    }
    slow
}

/// The sentence on these formats; `None` where there are none.
fn would_bind(slow: &[&Waiting]) -> Option<String> {
    let verb = if slow.first()?.binds == Bottleneck::Loading { "bind" } else { "take a part that matters" };
    let names: Vec<&str> = slow.iter().map(|w| w.format()).collect();
    Some(format!("Loading would {verb} with {}", first_and_more(&names, NAMED, [", ", " and"])))
}

/// Waiting by difference of a format, for the detail of its finding; `None` where the rounds are too few for an interval. The
/// noise of a difference is that of both sides.
fn by_difference(
    table: &Table,
    format: &str,
    is: impl Fn(usize) -> bool + Copy,
    judge: &Judge,
) -> Option<String> {
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
    let warm = of("wait_by_difference_fraction")?;
    let cold = of("wait_by_difference_cold_fraction")
        .map_or(String::new(), |cold| format!(", {cold} with cold files"));
    Some(format!("By difference from full batches {warm} is waiting{cold}"))
}

#[cfg(test)]
mod tests;
