//! Which of two frameworks was faster, and how far that goes: within this run.
//!
//! Each framework is one process. Rounds of two processes that ran in turns are pairs, so the interval of their ratio holds
//! for these two processes. It says nothing of the next two, for which several processes of each are needed.

use super::noise::noise;
use crate::results::{Record, Row, Run, Status};
use crate::suite::ALONE;
use serde::Serialize;
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::samples::median;
use wellread_measure::{Interval, IntervalEstimator, Pairing};
use wellread_report::{Finding, Severity};

/// The needs of a claim about other runs.
pub const NEEDED: &str = "Each framework is one process, and the next process may differ. A claim beyond this run needs several \
    processes of each. Run the command three times or more, and take the median of each run as one value.";

/// The result of comparing the rounds of two frameworks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RankingVerdict {
    /// The whole interval of the ratio lies beyond 1 and the noise floor.
    FastestInThisRun,
    /// It does not.
    NotClearlyDifferent,
    /// There are too few common rounds for an interval.
    TooFewRounds,
    /// They did not run in turns, so that rounds are no pairs.
    NotInTurns,
}

/// The two fastest frameworks of a model and batch size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranking {
    /// The model.
    pub model: String,
    /// Images per pass.
    pub batch_size: usize,
    /// The framework of the least median.
    pub first: String,
    /// The next one.
    pub second: String,
    /// Median of the first, in milliseconds.
    pub first_ms: f64,
    /// Median of the second.
    pub second_ms: f64,
    /// Time of the second over that of the first: the median of the ratios of rounds. Null without an interval.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Rounds that both have.
    pub rounds: usize,
    /// Differences up to this share are noise. Null when it is not known.
    pub noise_floor: Option<f64>,
    /// The result of comparing them.
    pub verdict: RankingVerdict,
    /// `within`: it holds within this run only, as in `wellread compare`.
    pub scope: &'static str,
    /// The same in a sentence.
    pub text: String,
    /// How it was found, and what a claim beyond this run needs.
    pub detail: String,
}

/// The rankings of every model and batch size that two frameworks or more have measured.
pub fn rankings(run: &Run) -> Vec<Ranking> {
    let floor = noise(run).map(|(floor, _)| floor);
    let mut configurations: Vec<(&str, usize)> =
        run.rows().map(|row| (row.model.as_str(), row.batch_size)).collect();
    configurations.dedup();
    let of = |(model, size): (&str, usize)| {
        let is_one = |row: &Row| row.status == Status::Ok && row.model == model && row.batch_size == size;
        let mut records: Vec<&Record> = run.records.iter().filter(|record| is_one(&record.row)).collect();
        let p50 = |record: &Record| record.row.latency_p50_ms.unwrap_or(f64::INFINITY);
        records.sort_by(|a, b| p50(a).total_cmp(&p50(b)));
        let [first, second, ..] = records[..] else { return None };
        ranking(first, second, floor, run.config.seed)
    };
    configurations.into_iter().filter_map(of).collect()
}

/// The medians of the rounds that both have, in milliseconds.
fn common(first: &Record, second: &Record) -> (Vec<f64>, Vec<f64>) {
    let milliseconds = |samples: &[u64]| -> Option<f64> {
        median(&samples.iter().map(|&ns| ns as f64 / 1e6).collect::<Vec<_>>())
    };
    let pairs = first.rounds.iter().filter_map(|round| {
        let other = second.rounds.iter().find(|other| other.round == round.round)?;
        Some((milliseconds(&round.samples_ns)?, milliseconds(&other.samples_ns)?))
    });
    pairs.unzip()
}

fn ranking(first: &Record, second: &Record, noise_floor: Option<f64>, seed: u64) -> Option<Ranking> {
    let (first_ms, second_ms) = (first.row.latency_p50_ms?, second.row.latency_p50_ms?);
    let (of_first, of_second) = common(first, second);
    let rounds = of_first.len();
    let is_alone = |record: &Record| record.row.note.as_deref() == Some(ALONE);
    let interval: Option<Interval> = if is_alone(first) || is_alone(second) || rounds < MIN_SAMPLES {
        None
    } else {
        IntervalEstimator::seeded(seed).ratio(&of_second, &of_first, Pairing::Paired)
    };
    let verdict = match interval {
        Some(ratio) if ratio.low > 1.0 + noise_floor.unwrap_or(0.0) => RankingVerdict::FastestInThisRun,
        Some(_) => RankingVerdict::NotClearlyDifferent,
        None if is_alone(first) || is_alone(second) => RankingVerdict::NotInTurns,
        None => RankingVerdict::TooFewRounds,
    };
    let name = |record: &Record| crate::runner::name(&record.row.framework, &record.row.variant);
    let (one, other) = (name(first), name(second));
    let what = format!("{}, batch {}", first.row.model, first.row.batch_size);
    let found = interval
        .map_or(String::new(), |ratio| format!("{:.2} ({:.2}–{:.2})", ratio.estimate, ratio.low, ratio.high));
    let floor =
        noise_floor.map_or(String::new(), |floor| format!(" The noise floor is {:.1} %.", 100.0 * floor));
    let (text, detail) = match verdict {
        RankingVerdict::FastestInThisRun => (
            format!(
                "{what}: {one} is fastest in this run, {first_ms:.1} ms a pass; {other} follows with {second_ms:.1} ms, {found} \
                 times as long."
            ),
            format!(
                "In brackets is the 95 % interval of the ratio, by {rounds} rounds in turns.{floor} {NEEDED}"
            ),
        ),
        RankingVerdict::NotClearlyDifferent => (
            format!(
                "{what}: {one} ({first_ms:.1} ms) and {other} ({second_ms:.1} ms) are not clearly different in this run."
            ),
            format!(
                "The ratio is {found}, by {rounds} rounds in turns.{floor} More --iterations would tell of this run. {NEEDED}"
            ),
        ),
        RankingVerdict::TooFewRounds => (
            format!(
                "{what}: it is too early to say which of {one} ({first_ms:.1} ms) and {other} ({second_ms:.1} ms) is faster; these \
                 are too few passes."
            ),
            format!("--iterations {MIN_SAMPLES} or more give an interval for this run. {NEEDED}"),
        ),
        RankingVerdict::NotInTurns => (
            format!(
                "{what}: which of {one} ({first_ms:.1} ms) and {other} ({second_ms:.1} ms) is faster cannot be told from this run."
            ),
            format!(
                "They did not run in turns, because memory did not suffice for all frameworks at once. {NEEDED}"
            ),
        ),
    };
    Some(Ranking {
        model: first.row.model.clone(),
        batch_size: first.row.batch_size,
        first: one,
        second: other,
        first_ms,
        second_ms,
        ratio: interval.map(|ratio| ratio.estimate),
        low: interval.map(|ratio| ratio.low),
        high: interval.map(|ratio| ratio.high),
        rounds,
        noise_floor,
        verdict,
        scope: "within",
        text,
        detail,
    })
}

impl Ranking {
    /// The ranking as a finding of the report.
    pub(super) fn finding(self) -> Finding {
        let severity = match self.verdict {
            RankingVerdict::FastestInThisRun | RankingVerdict::NotClearlyDifferent => Severity::Info,
            RankingVerdict::TooFewRounds | RankingVerdict::NotInTurns => Severity::Caution,
        };
        Finding::new(severity, self.text, self.detail)
    }
}
