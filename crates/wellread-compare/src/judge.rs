//! The verdicts: the rule of the crate's text, applied to every configuration that both sides have.

use crate::Results;
use crate::alike;
use crate::provenance::{self, Weight};
use crate::results::UsageError;
use crate::series::{self, Measured, Pair, by_run};
use anyhow::{Error, Result, bail};
use std::collections::BTreeMap;
use wellread_measure::compare::{
    DEFAULT_THRESHOLD, MIN_SAMPLES, NoiseFloor, corrected, is_alike, smallest_detectable_among, verdict,
};
use wellread_measure::hypothesis::{TestResult, holm, yuen, yuen_paired};
use wellread_measure::intervals::{Interval, Method, Pairing};
use wellread_measure::nested;
use wellread_measure::{IntervalEstimator, Verdict};
use wellread_report::Table;
use wellread_report::columns::{Better, Quantity};

pub use crate::verdict::{Comparison, Row, RowVerdict, Scope, UnmatchedRow};

/// Most chance of even one false alarm in a table.
pub const LEVEL: f64 = 0.05;

/// How to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// A slower row is a regression where its interval reaches this share: 0.05 is 5 %.
    pub threshold: f64,
    /// Columns to compare, or `all`; of every table its headline when empty.
    pub quantities: Vec<String>,
    /// Tables to compare; all when empty.
    pub tables: Vec<String>,
    /// Seed of the resampling.
    pub seed: u64,
    /// Whether runs of one number were measured in turns, as those of two revisions are.
    pub pairing: Pairing,
    /// Noise floor of single rows (table, quantity, key), where it was measured for them.
    pub row_floors: BTreeMap<String, NoiseFloor>,
    /// Whether rounds of one process a side are judged as if their processes and hours were the same, and unlike nodes compared.
    pub same_conditions: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threshold: DEFAULT_THRESHOLD,
            quantities: vec![],
            tables: vec![],
            seed: 0,
            pairing: Pairing::Unpaired,
            row_floors: BTreeMap::new(),
            same_conditions: false,
        }
    }
}

/// Compares B, the candidate, with A, the baseline.
///
/// # Errors
/// Nothing in common. A [`UsageError`] of a table or quantity asked for that is not there. Unlike nodes of a cluster, unless
/// [`Options::same_conditions`].
pub fn compare(a: &Results, b: &Results, options: &Options) -> Result<Comparison> {
    let renamed = alike::under_one_name(a, b);
    let [a, b] = renamed.as_ref().map_or([a, b], |[a, b]| [a, b]);
    let kinds = provenance::node_kinds(a, b);
    if kinds.len() > 1 && !options.same_conditions {
        bail!(
            "{} and {} were measured on unlike nodes ({}), which a comparison would show. Measure both on nodes of one kind, or \
             compare them all the same with --assume-same-conditions",
            a.label,
            b.label,
            kinds.into_iter().collect::<Vec<_>>().join(" / ")
        );
    }
    let differences = provenance::differences(a, b);
    let comparable = differences.iter().all(|difference| difference.weight != Weight::Fatal);
    let mut out = Comparison {
        a: a.label.clone(),
        b: b.label.clone(),
        threshold: options.threshold,
        differences,
        rows: vec![],
        only_in_a: vec![],
        only_in_b: vec![],
        regressions: 0,
        comparable,
    };
    if !comparable {
        // Ratios of other pixels tell nothing.
        return Ok(out);
    }
    for wanted in &options.tables {
        if !a.tables.iter().chain(&b.tables).any(|table| table.name() == wanted) {
            let there = alike::names(a, b);
            bail!(UsageError(format!("no result has a table {wanted:?}; there are {there}")));
        }
    }
    let asked =
        |table: &&Table| options.tables.is_empty() || options.tables.iter().any(|t| t == table.name());
    let unmatched = |table: &Table| UnmatchedRow { table: table.name().to_owned(), name: String::new() };
    let (mut in_common, mut is_known) = (false, options.quantities.is_empty());
    for table in a.tables.iter().filter(asked) {
        let Some(other) = b.tables.iter().find(|other| other.name() == table.name()) else {
            out.only_in_a.push(unmatched(table));
            continue;
        };
        in_common = true;
        let quantities = series::quantities(table, other, &options.quantities)?;
        is_known |= !quantities.is_empty();
        compare_table(table, other, &quantities, a, b, options, &mut out);
    }
    let alone = |table: &&Table| !a.tables.iter().any(|other| other.name() == table.name());
    out.only_in_b.extend(b.tables.iter().filter(asked).filter(alone).map(unmatched));
    if !in_common {
        bail!("{}", alike::nothing_in_common(a, b));
    }
    if out.rows.is_empty() {
        let why = match options.quantities.as_slice() {
            [] => "no configuration that was measured is in both".to_owned(),
            wanted => format!(
                "no configuration that is in both has {}; there are {}",
                wanted.join(" or "),
                series::names(a.tables.iter().filter(asked))
            ),
        };
        let why = format!("nothing to compare: {why} ({} and {})", a.label, b.label);
        return Err(if is_known { Error::msg(why) } else { UsageError(why).into() });
    }
    out.regressions = out.rows.iter().filter(|row| row.regression).count();
    Ok(out)
}

/// Compares all configurations of a table, and corrects their probabilities together.
fn compare_table(
    table: &Table,
    other: &Table,
    quantities: &[Quantity],
    a: &Results,
    b: &Results,
    options: &Options,
    out: &mut Comparison,
) {
    let floor = [a, b].into_iter().filter_map(|results| results.noise_floors.get(table.name()).copied());
    let floor = floor.filter(|floor| floor.is_finite() && *floor >= 0.0).reduce(f64::max);
    let keys = series::keys(table, other);
    let floor_of = |share: f64| NoiseFloor { ln_ratio: share.ln_1p(), n: MIN_SAMPLES };
    let mut rows: Vec<Judged> = Vec::new();
    for (i, quantity) in quantities.iter().enumerate() {
        for pair in series::pairs(table, other, &keys, quantity) {
            let (Some(of_a), Some(of_b)) = (&pair.a, &pair.b) else {
                let unmatched =
                    UnmatchedRow { table: table.name().to_owned(), name: crate::verdict::name(&pair.key) };
                // Once, not for every quantity.
                match (i, pair.a.is_some()) {
                    (0, true) => out.only_in_a.push(unmatched),
                    (0, false) => out.only_in_b.push(unmatched),
                    _ => (),
                }
                continue;
            };
            let own = options.row_floors.get(&row_id(table.name(), &quantity.column, &pair.key)).copied();
            let floor = own.or(floor.map(floor_of));
            rows.push(judge_row(table, quantity, &pair, (of_a, of_b), floor, options));
        }
    }
    let p_values: Vec<f64> = rows.iter().map(|judged| judged.row.p_value.unwrap_or(f64::NAN)).collect();
    let tests = p_values.iter().filter(|p| !p.is_nan()).count();
    let mut on_neither_side = 0;
    for (judged, p) in rows.into_iter().zip(holm(&p_values)) {
        let Judged { mut row, ratio, verdict, freedom } = judged;
        row.p_corrected = Some(p).filter(|p| !p.is_nan());
        let floor = row.noise_floor.map(floor_of);
        row.smallest_detectable =
            ratio.as_ref().map(|ratio| smallest_detectable_among(ratio, floor, tests, freedom));
        let verdict = corrected(verdict, p, LEVEL);
        row.verdict = row_verdict(verdict, ratio.as_ref(), options.threshold);
        // Both sides unavailable for the same reason is nothing that a comparison tells.
        if row.a.is_nan() && row.b.is_nan() {
            on_neither_side += 1;
            continue;
        }
        if row.reason.is_some() {
            row.verdict = RowVerdict::Unclear;
        } else if row.verdict == RowVerdict::Unclear {
            row.reason = Some(reason_for_unclear(ratio.as_ref(), row.noise_floor, options.threshold));
        }
        // An estimate above the threshold would find a slow-down of just that size in half of all cases.
        row.regression =
            row.verdict == RowVerdict::Slower && row.high.is_some_and(|high| high >= 1.0 + options.threshold);
        out.rows.push(row);
    }
    if on_neither_side > 0 && out.rows.is_empty() {
        out.only_in_a.push(UnmatchedRow {
            table: table.name().to_owned(),
            name: "(measured on neither side)".to_owned(),
        });
    }
}

/// A row by what tells it apart.
pub(crate) fn row_id(table: &str, quantity: &str, key: &[(String, String)]) -> String {
    let key: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{table}/{quantity}/{}", key.join(","))
}

/// A row before the probabilities of its table are corrected together.
struct Judged {
    row: Row,
    ratio: Option<Interval>,
    /// The verdict of the ratio and the noise floor alone.
    verdict: Verdict,
    /// Degrees of freedom of its test; no number where there is none.
    freedom: f64,
}

impl Judged {
    /// A row without an interval, and so without a verdict.
    fn without_interval(row: Row) -> Self {
        Self { row, ratio: None, verdict: Verdict::TooFewData, freedom: f64::NAN }
    }

    /// A row with this ratio, which has an interval.
    fn by(row: Row, ratio: Interval, test: Option<Tested>, floor: Option<NoiseFloor>) -> Self {
        let (p_value, freedom) = test.map_or((None, f64::NAN), |(p, freedom)| (Some(p), freedom));
        let row =
            Row { ratio: Some(ratio.estimate), low: Some(ratio.low), high: Some(ratio.high), p_value, ..row };
        // How many are enough was decided before: of a summary an interval is all there is, of processes few are enough.
        let enough = Interval { n: ratio.n.max(MIN_SAMPLES), ..ratio };
        let verdict = verdict(Some(&enough), floor);
        Self { row, ratio: Some(ratio), verdict, freedom }
    }
}

/// The probability of a test and its degrees of freedom.
type Tested = (f64, f64);

/// Judges a row by the interval that fits how it was measured: by processes, by rounds, by samples or by summaries.
fn judge_row(
    table: &Table,
    quantity: &Quantity,
    pair: &Pair,
    (a, b): (&Measured, &Measured),
    floor: Option<NoiseFloor>,
    options: &Options,
) -> Judged {
    let mut row = Row {
        table: table.name().to_owned(),
        key: pair.key.clone(),
        quantity: quantity.column.clone(),
        a: a.value,
        b: b.value,
        n_a: a.samples.len(),
        n_b: b.samples.len(),
        processes_a: 0,
        processes_b: 0,
        scope: Scope::Runs,
        ratio: None,
        low: None,
        high: None,
        p_value: None,
        p_corrected: None,
        noise_floor: floor.map(|floor| floor.fraction()),
        smallest_detectable: None,
        verdict: RowVerdict::Unclear,
        regression: false,
        reason: None,
    };
    let problem = |side: &str, of: &Measured| of.problem.as_ref().map(|problem| format!("{side}: {problem}"));
    let problems: Vec<String> = [problem("A", a), problem("B", b)].into_iter().flatten().collect();
    if !problems.is_empty() {
        row.reason = Some(problems.join("; "));
        return Judged::without_interval(row);
    }
    if options.pairing == Pairing::Unpaired {
        let (x, y) = (b.by_process(), a.by_process());
        (row.processes_a, row.processes_b) = (y.len(), x.len());
        if let Some(found) = nested::ratio(&x, &y, &IntervalEstimator::seeded(options.seed)) {
            let of_cost = |cost| if quantity.better == Better::Higher { 1.0 / cost } else { cost };
            (row.a, row.b) = (of_cost(found.denominator), of_cost(found.numerator));
            (row.scope, row.noise_floor) = (Scope::Processes, None);
            return Judged::by(row, found.ratio, Some((found.p_value, found.freedom)), None);
        }
        if !options.same_conditions {
            row.scope = Scope::Within;
            row.noise_floor = None;
            row.ratio = cost_ratio(quantity, a, b);
            let sides = [(row.processes_a, "A"), (row.processes_b, "B")];
            row.reason = Some(nested::too_few_for_a_verdict(sides, ["process", "processes"]));
            return Judged::without_interval(row);
        }
    }
    let (ratio, test) = match (a.interval.as_ref(), b.interval.as_ref()) {
        (None, None) => from_samples(a, b, options),
        _ => from_summaries(a, b),
    };
    let few = fewest_values(a, b, options.pairing);
    if ratio.is_none() || few.is_some_and(|few| few < MIN_SAMPLES) {
        row.ratio = cost_ratio(quantity, a, b);
        row.reason = Some(match few {
            Some(few) if few > 1 => format!("{few} runs are too few for a verdict; {MIN_SAMPLES} are needed"),
            _ => "single values without an interval".to_owned(),
        });
        return Judged::without_interval(row);
    }
    match ratio {
        Some(ratio) => Judged::by(row, ratio, test, floor),
        None => Judged::without_interval(row),
    }
}

/// The fewest values behind a side that has no interval of its own. Runs in turns count where both sides have them.
fn fewest_values(a: &Measured, b: &Measured, pairing: Pairing) -> Option<usize> {
    let is_raw = |of: &&Measured| of.interval.is_none();
    match pairing {
        Pairing::Paired if is_raw(&a) && is_raw(&b) => Some(by_run(a, b).0.len()),
        _ => [a, b].into_iter().filter(is_raw).map(|of| of.samples.len()).min(),
    }
}

fn cost_ratio(quantity: &Quantity, a: &Measured, b: &Measured) -> Option<f64> {
    let ratio = b.value / a.value;
    let ratio = if quantity.better == Better::Higher { ratio.recip() } else { ratio };
    Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

/// By raw values: by rounds where these were measured in turns, else by bootstrap; and Yuen's test.
fn from_samples(a: &Measured, b: &Measured, options: &Options) -> (Option<Interval>, Option<Tested>) {
    let tested = |test: TestResult| (test.p_value, test.freedom);
    let estimator = IntervalEstimator::seeded(options.seed);
    if options.pairing == Pairing::Paired {
        let (x, y) = by_run(b, a);
        let ratio = estimator.ratio(&x, &y, Pairing::Paired);
        return (ratio, yuen_paired(&x, &y).map(tested));
    }
    let ratio = estimator.ratio(&b.samples, &a.samples, Pairing::Unpaired);
    (ratio, yuen(&b.samples, &a.samples).map(tested))
}

/// By two intervals, or an interval and samples. It computes the interval of the ratio by the recovered variances of
/// both on the logarithmic scale (Donner and Zou 2012, <https://doi.org/10.1177/0962280210383082>). It also
/// computes the normal test with them.
fn from_summaries(a: &Measured, b: &Measured) -> (Option<Interval>, Option<Tested>) {
    let interval = |of: &Measured| of.interval.or_else(|| IntervalEstimator::default().median(&of.samples));
    let (Some(a), Some(b)) = (interval(a), interval(b)) else { return (None, None) };
    if [a.low, a.estimate, b.low, b.estimate].iter().any(|value| !(*value > 0.0 && value.is_finite())) {
        return (None, None);
    }
    let below = |i: &Interval| (i.estimate / i.low).ln().max(0.0);
    let above = |i: &Interval| (i.high / i.estimate).ln().max(0.0);
    let estimate = b.estimate / a.estimate;
    let (down, up) = (below(&b).hypot(above(&a)), above(&b).hypot(below(&a)));
    let (low, high) = (estimate * (-down).exp(), estimate * up.exp());
    let ratio = Interval { estimate, low, high, method: Method::Given, ..b };
    // Towards 1, which is where the question lies.
    let reach = if estimate > 1.0 { down } else { up };
    let p_value = if reach > 0.0 {
        wellread_measure::hypothesis::two_sided_normal(estimate.ln() / (reach / 1.959_964))
    } else {
        f64::from(u8::from(estimate == 1.0))
    };
    (Some(ratio), Some((p_value, f64::INFINITY)))
}

/// A share in percent: `5 %`.
pub fn percent(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// Why a ratio with an interval gives no verdict.
fn reason_for_unclear(ratio: Option<&Interval>, floor: Option<f64>, threshold: f64) -> String {
    let Some(ratio) = ratio else { return "no ratio can be formed of these values".to_owned() };
    let beyond = ratio.low > 1.0 || ratio.high < 1.0;
    let floor = floor.unwrap_or(0.0);
    if !beyond {
        let limit = percent(threshold);
        format!("the interval holds 1 and reaches beyond {limit}: more processes or rounds make it narrower")
    } else if ratio.low.ln() <= floor.ln_1p() && ratio.high.ln() >= -floor.ln_1p() {
        format!("the interval reaches into the noise floor, {}", percent(floor))
    } else {
        "beyond 1, but chance explains one such row among as many as this table has".to_owned()
    }
}

/// From the verdict and the interval to the word.
fn row_verdict(verdict: Verdict, ratio: Option<&Interval>, threshold: f64) -> RowVerdict {
    match (verdict, ratio) {
        (Verdict::Faster, _) => RowVerdict::Faster,
        (Verdict::Slower, _) => RowVerdict::Slower,
        (Verdict::NoDifference, Some(ratio)) if is_alike(ratio.low, ratio.high, threshold) => {
            RowVerdict::Same
        }
        _ => RowVerdict::Unclear,
    }
}
