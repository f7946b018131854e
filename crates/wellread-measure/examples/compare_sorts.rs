//! Which sort is faster here? A whole measurement in one screen: the machine, its limits, interleaved runs with an
//! A/A twin, peak memory, intervals and verdicts.
//!
//! `cargo run --release -p wellread-measure --example compare_sorts`

use std::time::Duration;

use wellread_measure::clock::time;
use wellread_measure::limits::measure_copy;
use wellread_measure::rng::Rng;
use wellread_measure::{
    Environment, Interval, IntervalEstimator, LimitSettings, PeakGuard, Plan, RowChecksum, Samples, Scope,
};

/// The measurement of one turn.
struct Turn {
    seconds: f64,
    peak_bytes: Option<u64>,
}

#[expect(clippy::stable_sort_primitive, reason = "what stability costs is the question")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let environment = Environment::capture(&["."]);
    println!("{} ({} cores)", environment.cpu.model.as_deref().unwrap_or("?"), environment.usable_cores());
    environment.noise_warnings().iter().for_each(|warning| println!("note: {warning}"));

    let mut rng = Rng::seed(1);
    let numbers: Vec<u64> = (0..300_000).map(|_| rng.next_u64() % 1_000_000).collect();
    let mut expected = RowChecksum::new();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    expected.add(0, &sorted);

    // No timing counts unless the result is right.
    let measure = |sort: fn(&mut Vec<u64>)| {
        let (numbers, expected) = (&numbers, &expected);
        move || {
            let mut data = numbers.clone();
            let guard = PeakGuard::start(Scope::Process);
            let ((), seconds) = time(|| sort(&mut data));
            let peak_bytes = guard.stop().growth();
            let mut checksum = RowChecksum::new();
            checksum.add(0, &data);
            if checksum == *expected {
                Ok(Turn { seconds, peak_bytes })
            } else {
                Err("the result is not sorted")
            }
        }
    };
    let outcome = Plan::new(7)
        .rounds(30)
        .warmup(2)
        .min_rounds(10)
        .time_budget(Duration::from_secs(5))
        .add("stable", measure(|data| data.sort()))
        .add("unstable", measure(|data| data.sort_unstable()))
        // Wrong on purpose: its failure becomes a row, and the others go on.
        .add("descending", measure(|data| data.sort_by_key(|number| u64::MAX - number)))
        .twin("stable")
        .run(|_progress| ())?;

    let estimator = IntervalEstimator::seeded(7);
    let copy = measure_copy(&LimitSettings { bytes: 64 << 20, ..LimitSettings::default() }).one_thread;
    let bytes = (numbers.len() * size_of::<u64>()) as f64;
    for variant in outcome.visible() {
        if let Some(failure) = &variant.failure {
            println!("{:10} failed: {}", variant.name, failure.message);
            continue;
        }
        let seconds: Samples = variant.values(|turn| turn.seconds).into();
        let (Some(summary), Some(interval)) = (seconds.summary(), estimator.median(seconds.values())) else {
            continue;
        };
        let peak = variant.runs.iter().filter_map(|run| run.value.peak_bytes).max().unwrap_or(0);
        let rate = bytes / interval.estimate;
        println!(
            "{:10} {:6.2} ms [{:.2}, {:.2}], n {}, {:4.1} % of memory copy, peak {} KiB",
            variant.name,
            interval.estimate * 1e3,
            interval.low * 1e3,
            interval.high * 1e3,
            summary.n,
            100.0 * rate / copy.bytes_per_second,
            peak / 1024,
        );
    }
    if let Some(floor) = outcome.noise_floor(|turn| turn.seconds, &estimator) {
        println!("noise floor (A/A): {:.1} %", 100.0 * floor.fraction());
    }
    if let Some(comparison) = outcome.compare("unstable", "stable", |turn| turn.seconds, &estimator)
        && let Some(ratio) = comparison.ratio
    {
        let Interval { estimate, low, high, .. } = ratio;
        println!(
            "unstable against stable: {} (time ratio {estimate:.2} [{low:.2}, {high:.2}])",
            comparison.verdict
        );
    }
    Ok(())
}
