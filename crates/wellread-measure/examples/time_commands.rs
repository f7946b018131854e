//! Which of two commands is faster? Each run is a fresh process, started without a shell; runs take turns in random
//! order, after warm-up, with an A/A twin.
//!
//! `cargo run --release -p wellread-measure --example time_commands -- ROUNDS COMMAND COMMAND [TIMES.json]`
//!
//! Commands are split at white space. With a file, the time of every run is written to it. `benches/hyperfine.py`
//! compares the figures with those of hyperfine (docs/results/hyperfine.md).

use std::process::{Command, Stdio};

use wellread_measure::clock::Stopwatch;
use wellread_measure::{Interval, IntervalEstimator, Plan};

type Error = Box<dyn std::error::Error>;

/// Seconds from starting the command to its end.
fn once(command: &str) -> Result<f64, Error> {
    let mut words = command.split_whitespace();
    let mut process = Command::new(words.next().ok_or("an empty command")?);
    process.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let watch = Stopwatch::start();
    let status = process.status()?;
    let seconds = watch.elapsed();
    if status.success() { Ok(seconds) } else { Err(format!("{command}: {status}").into()) }
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (rounds, a, b, file) = match arguments.as_slice() {
        [rounds, a, b] => (rounds.parse()?, a, b, None),
        [rounds, a, b, file] => (rounds.parse()?, a, b, Some(file)),
        _ => return Err("usage: time_commands ROUNDS COMMAND COMMAND [TIMES.json]".into()),
    };
    let outcome = Plan::new(1)
        .rounds(rounds)
        .warmup(2)
        .add(a, || once(a))
        .add(b, || once(b))
        .twin(a)
        .run(|_progress| ())?;
    let estimator = IntervalEstimator::seeded(1);
    let shown = |Interval { estimate, low, high, .. }: Interval, unit: f64| {
        format!("{:.4} [{:.4}, {:.4}]", estimate * unit, low * unit, high * unit)
    };
    for variant in outcome.visible() {
        if let Some(failure) = &variant.failure {
            return Err(failure.message.clone().into());
        }
        if let Some(median) = estimator.median(&variant.values(|seconds| *seconds)) {
            println!("{}: median {} ms, n {}", variant.name, shown(median, 1e3), variant.runs.len());
        }
    }
    if let Some(floor) = outcome.noise_floor(|seconds| *seconds, &estimator) {
        println!("noise floor (A/A): {:.1} %", 100.0 * floor.fraction());
    }
    if let Some(comparison) = outcome.compare(b, a, |seconds| *seconds, &estimator)
        && let Some(ratio) = comparison.ratio
    {
        println!("the second against the first: {} ({})", comparison.verdict, shown(ratio, 1.0));
    }
    if let Some(file) = file {
        let times = outcome.visible().map(|v| v.values(|seconds| *seconds)).collect::<Vec<_>>();
        std::fs::write(file, serde_json::to_vec(&times)?)?;
    }
    Ok(())
}
