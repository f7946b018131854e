//! Measures the cost of recording a timeline: epochs with and without it in turns, in one process.
//!
//! ```text
//! cargo run --release -p wellread-loader --example trace_cost -- PATH [workers] [pairs] [batch size]
//! ```
//!
//! A turn is as many shuffled epochs of one open loader as make a tenth of a second. The figure is the processor time
//! of all threads, which does not count the time of other programs; pairs begin by turns with either. It prints the
//! median of the pairs' ratios with quartiles, and the ratio of a pair without any recording. Last come the cost of a
//! span while nothing is recorded, timed alone, and the share of so many of them in an image's time.

use std::path::Path;
use std::time::Duration;
use wellread_loader::{Dataset, Loader};
use wellread_store::{OpenOptions, trace};
use wellread_trace::{Kind, span};

/// Processor time of this process, in seconds.
fn cpu() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time to where it is told.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "there is no such clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_secs_f64()
}

/// Processor seconds of so many epochs, and the images they had.
fn turn(loader: &Loader, epochs: usize) -> Result<(f64, usize), wellread_store::Error> {
    let begin = cpu();
    let mut images = 0;
    for _ in 0..epochs {
        for batch in loader {
            images += std::hint::black_box(batch?).len();
        }
    }
    Ok((cpu() - begin, images))
}

/// Quartiles of `values`.
fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// Processor time of a span while nothing is recorded, in nanoseconds: the median of several passes.
fn off() -> f64 {
    const SPANS: u32 = 10_000_000;
    let mut passes: Vec<f64> = (0..9)
        .map(|_| {
            let begin = cpu();
            for i in 0..SPANS {
                // As the loader has it: made, given its numbers, dropped at the end of the work.
                let mut span = span(std::hint::black_box(Kind::ReadSet));
                span.set(u64::from(i), 0);
            }
            (cpu() - begin) * 1e9 / f64::from(SPANS)
        })
        .collect();
    quartiles(&mut passes)[1]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args.first().ok_or("give the path of a set")?;
    let number = |at: usize, default: usize| args.get(at).map_or(Ok(default), |n| n.parse());
    let (workers, pairs, batch) = (number(1, 0)?, number(2, 20)?, number(3, 16)?);
    let dataset = Dataset::from_store(wellread_store::open(Path::new(path), &OpenOptions::default())?);
    let loader =
        Loader::builder(&dataset).batch_size(batch).shuffle(42).workers(workers).scale_to_unit().build()?;
    let once = turn(&loader, 2)?.0 / 2.0;
    let epochs = ((0.1 / once) as usize).max(1);
    let file = std::env::temp_dir().join(format!("wellread-trace-cost-{}.json", std::process::id()));
    let mut spans = 0;
    let mut measured = |recorded: bool| -> Result<(f64, usize), wellread_store::Error> {
        if !recorded {
            return turn(&loader, epochs);
        }
        trace::start(&file, "trace_cost")?;
        let found = turn(&loader, epochs);
        // Writing the file comes after the work, whatever the work is.
        if let Some(written) = trace::finish()? {
            spans = written.spans;
            assert_eq!(written.dropped, 0, "too many spans for a turn");
        }
        found
    };
    let (mut on, mut same, mut each) = (vec![], vec![], (0.0, 0));
    for pair in 0..pairs {
        let first = pair % 2 == 0;
        let (a, b) = (measured(first)?, measured(!first)?);
        let (recorded, plain) = if first { (a, b) } else { (b, a) };
        on.push(recorded.0 / plain.0);
        each = (each.0 + plain.0, each.1 + plain.1);
        let (a, b) = (measured(false)?, measured(false)?);
        same.push(a.0 / b.0);
    }
    std::fs::remove_file(&file)?;
    let images = epochs * dataset.len();
    println!(
        "{path}, {workers} workers, batches of {batch}, {pairs} pairs of {epochs} epochs of {} images",
        dataset.len()
    );
    println!(
        "{:.0} ns of processor time an image, {:.2} spans an image",
        each.0 * 1e9 / each.1 as f64,
        spans as f64 / images as f64
    );
    for (what, values) in [("recorded", &mut on), ("neither", &mut same)] {
        let [low, median, high] = quartiles(values).map(|ratio| 100.0 * (ratio - 1.0));
        println!("{what:<9} {median:+.2} % (quartiles {low:+.2} to {high:+.2} %)");
    }
    let (span, each) = (off(), each.0 * 1e9 / each.1 as f64);
    let share = 100.0 * span * spans as f64 / images as f64 / each;
    println!("off       {span:.2} ns a span, {share:.3} % of an image");
    Ok(())
}
