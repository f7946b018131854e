//! Says whether two series differ, and how findings are ranked.
//!
//! ```text
//!  two Series, paired by round ─▶ Judge::compare: ratio, interval, noise floor ─▶ Comparison: verdict, doubt, words
//! ```
//!
//! Two series differ only where there are rounds enough. The 95 % interval of their ratio (the median of the ratios of
//! rounds) must also lie beyond 1 and the benchmark's own noise floor.

use super::series::Series;
use super::words::number;
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::intervals::{Interval, IntervalEstimator, Method, Pairing};
/// Noise floor of a benchmark above which it gives no advice.
pub(crate) use wellread_report::TOO_NOISY;
use wellread_report::{Finding, Severity};
use wellread_store::words::plural;

/// A finding and its place among those of all benchmarks: smaller ranks are told first.
pub struct Ranked {
    /// Its place.
    pub rank: u32,
    /// The finding.
    pub finding: Finding,
}

/// Ranks a finding, if there is one.
pub(crate) fn ranked(rank: u32, finding: Option<Finding>) -> Option<Ranked> {
    finding.map(|finding| Ranked { rank, finding })
}

/// The repetitions that verdicts are over, and how many of them were asked for.
#[derive(Clone, Copy, Debug)]
pub struct Repeats {
    asked: usize,
    /// The option that asks for them.
    pub(crate) option: &'static str,
    one: &'static str,
    /// Several of them in a word.
    pub(crate) several: &'static str,
    /// A row of the set in a word.
    thing: &'static str,
}

impl Repeats {
    /// Rounds of one process.
    pub const fn rounds(asked: usize) -> Self {
        Self { asked, option: "--repeats", one: "round", several: "rounds", thing: "image" }
    }

    /// Processes, each the median of its rounds.
    pub const fn processes(asked: usize) -> Self {
        Self { asked, option: "--processes", one: "process", several: "processes", thing: "image" }
    }

    /// The same for a set whose rows are these, such as cells.
    pub const fn of(self, thing: &'static str) -> Self {
        Self { thing, ..self }
    }

    /// Why `measured` of them give no verdict.
    pub(crate) fn too_few(self, measured: usize) -> String {
        let Self { one, several, .. } = self;
        match measured {
            1 => format!("one {one} is too few for a verdict"),
            n => format!("{n} {several} are too few for a verdict"),
        }
    }

    /// The same, and how to come to enough of them.
    fn too_few_with_hint(self, measured: usize) -> String {
        let Self { asked, option, .. } = self;
        let hint = if asked < MIN_SAMPLES {
            format!("({option} 7 gives one)")
        } else {
            format!(
                "({MIN_SAMPLES} are needed; {asked} were asked for, but the time was short: --time-budget)"
            )
        };
        format!("{} {hint}", self.too_few(measured))
    }
}

/// Says whether two series differ.
pub struct Judge {
    estimator: IntervalEstimator,
    noise: Option<f64>,
    repeats: Repeats,
}

/// How two series compare.
pub(crate) struct Comparison {
    ratio: Interval,
    verdict: Verdict,
    repeats: Repeats,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// The first is larger beyond doubt.
    Clear,
    /// The interval holds 1, or is below it.
    Unclear,
    /// The interval excludes 1, but reaches into what the same variant measured twice differed by: this share.
    Noise(f64),
    /// Too few rounds to tell.
    TooFew(usize),
}

impl Judge {
    /// For a benchmark with this noise floor: the share by which the same variant differed when measured twice.
    pub fn new(seed: u64, noise: Option<f64>) -> Self {
        Self { estimator: IntervalEstimator::seeded(seed), noise, repeats: Repeats::rounds(1) }
    }

    /// The same for series of these.
    pub fn over(self, repeats: Repeats) -> Self {
        Self { repeats, ..self }
    }

    /// The unit of rates: `images/s`, `cells/s`.
    pub(crate) fn per_second(&self) -> String {
        format!("{}/s", plural(self.repeats.thing))
    }

    /// Compares the larger with the smaller, paired by round.
    pub(crate) fn compare(&self, a: &Series, b: &Series) -> Option<Comparison> {
        let (x, y) = a.paired(b);
        let ratio = self.estimator.ratio(&x, &y, Pairing::Paired).or_else(|| ratio_of_one(&x, &y))?;
        let noise = self.noise.unwrap_or(0.0);
        let verdict = if ratio.n < MIN_SAMPLES {
            Verdict::TooFew(ratio.n)
        } else if ratio.low <= 1.0 {
            Verdict::Unclear
        } else if ratio.low <= 1.0 + noise {
            Verdict::Noise(noise)
        } else {
            Verdict::Clear
        };
        Some(Comparison { ratio, verdict, repeats: self.repeats })
    }

    /// Why nothing is advised from figures of this noise; `None` where it is small enough.
    pub(crate) fn too_noisy(&self) -> Option<String> {
        let noise = self.noise.filter(|noise| *noise > TOO_NOISY)?;
        Some(format!("{}: measure again on an idle machine", noise_in_words(noise)))
    }

    /// The sentence before one that would else be read as advice, where nothing can be advised from the figures; empty where
    /// they are good enough.
    pub(crate) fn too_noisy_first(&self) -> String {
        let noise = self.noise.filter(|noise| *noise > TOO_NOISY);
        noise.map_or(String::new(), |noise| {
            format!("This run is too noisy for conclusions: {}. ", noise_in_words(noise))
        })
    }

    /// The finding, which is no good news where nothing can be advised from the figures, and says so.
    pub(crate) fn not_good(&self, finding: Finding) -> Finding {
        match self.too_noisy() {
            Some(_) if finding.severity == Severity::Good => Finding {
                severity: Severity::Info,
                text: format!("{}{}", self.too_noisy_first(), finding.text),
                ..finding
            },
            _ => finding,
        }
    }

    /// The interval of a median, where there are rounds enough for one.
    pub(crate) fn median(&self, values: &[f64]) -> Option<Interval> {
        self.estimator.median(values).filter(|_| values.len() >= MIN_SAMPLES)
    }

    /// Why so many values give no verdict, and how there are more.
    pub(crate) fn too_few(&self, values: usize) -> String {
        self.repeats.too_few_with_hint(values)
    }

    /// The repeats that its series are over.
    pub(crate) const fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// The interval of a median as it stands behind its number, ` (63,000–66,000)`; nothing where there are too few rounds
    /// for one.
    pub(crate) fn interval(&self, values: &[f64], show: impl Fn(f64) -> String) -> String {
        self.median(values).map_or(String::new(), |i| format!(" ({}–{})", show(i.low), show(i.high)))
    }
}

/// A noise floor in words.
fn noise_in_words(noise: f64) -> String {
    format!("one variant measured twice differed by up to {:.0} %", 100.0 * noise)
}

/// The ratio of one round, which has no interval.
fn ratio_of_one(x: &[f64], y: &[f64]) -> Option<Interval> {
    let ([x], [y]) = (x, y) else { return None };
    let estimate = Some(x / y).filter(|ratio| ratio.is_finite())?;
    Some(Interval {
        estimate,
        low: estimate,
        high: estimate,
        confidence: 0.0,
        n: 1,
        method: Method::SingleValue,
    })
}

/// The difference between a ratio of medians and the median of the rounds' ratios that needs no remark: rounding
/// hides it.
const MAX_OFF: f64 = 0.02;

impl Comparison {
    /// Whether the first is larger beyond doubt.
    pub(crate) fn is_clear(&self) -> bool {
        self.verdict == Verdict::Clear
    }

    /// `2.1 (2.0–2.3) times`; without the interval where the rounds are too few for one.
    pub(crate) fn times(&self) -> String {
        let i = &self.ratio;
        match self.verdict {
            Verdict::TooFew(_) => format!("{} times", number(i.estimate)),
            _ => format!("{} ({}–{}) times", number(i.estimate), number(i.low), number(i.high)),
        }
    }

    /// A remark on the second where its median, beside that of the first, would give another ratio than the rounds.
    /// Each round has its own. It is empty where both are about the same.
    pub(crate) fn by_rounds(&self, first: f64, second: f64, unit: &str) -> String {
        let off = (first / second / self.ratio.estimate - 1.0).abs();
        if off <= MAX_OFF {
            return String::new();
        }
        format!(" round by round (in the median {} {unit})", number(second))
    }

    /// How a sentence begins that gives no verdict on two formats.
    pub(crate) fn no_verdict(&self, first: &str, second: &str) -> String {
        match self.verdict {
            Verdict::TooFew(_) => format!("It is too early to say which of {first} and {second} is faster"),
            _ => format!("{first} and {second} cannot be told apart here"),
        }
    }

    /// Why there is no verdict; empty where there is one.
    pub(crate) fn no_verdict_reason(&self) -> String {
        match self.verdict {
            Verdict::Clear => String::new(),
            // The other one may be the larger, beyond doubt.
            Verdict::Unclear if self.ratio.high < 1.0 => "; the interval is below 1".to_owned(),
            Verdict::Unclear => "; the interval holds 1".to_owned(),
            Verdict::Noise(noise) => format!("; but {}", noise_in_words(noise)),
            Verdict::TooFew(n) => format!("; {}", self.repeats.too_few_with_hint(n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::series::series;
    use wellread_report::{Table, row};

    #[test]
    fn a_ratio_of_rounds_that_medians_do_not_show_says_what_it_is() {
        let table = |second: [f64; 7]| {
            let mut table = Table::new("dataloader");
            for (format, rates) in
                [("tiff", [100.0, 110.0, 120.0, 141.0, 150.0, 160.0, 170.0]), ("own", second)]
            {
                for (run, rate) in rates.into_iter().enumerate() {
                    table.push(row![("format", format), ("run", run), ("samples_per_sec", rate)]);
                }
            }
            let of = series(&table, &[], "samples_per_sec", |_| true);
            let compared = Judge::new(1, None).compare(&of[0], &of[1]).unwrap();
            compared.by_rounds(of[0].median(), of[1].median(), "images/s")
        };
        // In most rounds the first is a quarter faster, and the medians are those of different rounds.
        let crossed = table([80.0, 88.0, 96.0, 150.0, 140.0, 180.0, 136.0]);
        assert_eq!(crossed, " round by round (in the median 136 images/s)");
        assert_eq!(table([50.0, 55.0, 60.0, 70.5, 75.0, 80.0, 85.0]), "");
    }

    #[test]
    fn an_interval_below_1_is_not_said_to_hold_it() {
        let mut table = Table::new("conversion");
        for (path, seconds) in [("copy", 0.9), ("zero_copy", 1.0)] {
            for run in 0..7 {
                let noise = 1.0 + 0.001 * f64::from(run);
                table.push(row![("path", path), ("run", i64::from(run)), ("torch_p50_s", seconds * noise)]);
            }
        }
        let of = series(&table, &["path"], "torch_p50_s", |_| true);
        let doubt =
            |a: usize, b: usize| Judge::new(1, None).compare(&of[a], &of[b]).unwrap().no_verdict_reason();
        assert_eq!((doubt(0, 1).as_str(), doubt(1, 0).as_str()), ("; the interval is below 1", ""));
        assert_eq!(doubt(0, 0), "; the interval holds 1");
    }

    #[test]
    fn rounds_that_one_lacks_are_left_out_of_both() {
        // The machine is ten times slower in every other round, and the second format lacks the first one.
        let rate = |run: i64| if run % 2 == 0 { 10.0 } else { 100.0 };
        let mut table = Table::new("dataloader");
        for (format, factor, first) in [("tiff", 2.0, 0), ("parquet", 1.0, 1)] {
            for run in first..9 {
                table.push(row![("format", format), ("run", run), ("samples_per_sec", factor * rate(run))]);
            }
        }
        let of = series(&table, &[], "samples_per_sec", |_| true);
        let compared = Judge::new(1, None).compare(&of[0], &of[1]).unwrap();
        assert_eq!((compared.ratio.n, compared.ratio.low, compared.ratio.high), (8, 2.0, 2.0));
        assert!(compared.is_clear());
    }
}
