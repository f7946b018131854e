//! The first epoch of a set that was just opened, beside later epochs of the same loader.
//!
//! ```text
//! cargo run --release -p wellread --example first_epoch -- [--rounds N] [--workers A,B] PATH…
//! ```
//!
//! Each round takes the sets and the numbers of workers in turns. It opens the set anew, builds a loader (shuffled,
//! batches of 16, `float32` scaled to 0..1), and times the first epoch and five later ones. Printed are medians of the
//! rounds: milliseconds to open, images/s of the first epoch and of the median later one. Their ratio follows, and
//! the ratio with opening counted too.

use std::time::Instant;
use wellread::{Dataset, Loader};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Seconds of one round.
struct Round {
    images: usize,
    open: f64,
    first: f64,
    later: f64,
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    if values.is_empty() { f64::NAN } else { values[values.len() / 2] }
}

fn epoch(loader: &Loader) -> Outcome<(usize, f64)> {
    let clock = Instant::now();
    let mut images = 0;
    for batch in loader {
        images += batch?.len();
    }
    Ok((images, clock.elapsed().as_secs_f64()))
}

fn round(path: &str, workers: usize, later: usize) -> Outcome<Round> {
    let clock = Instant::now();
    let dataset = Dataset::open(path)?;
    let loader =
        Loader::builder(&dataset).batch_size(16).shuffle(42).workers(workers).scale_to_unit().build()?;
    let open = clock.elapsed().as_secs_f64();
    let (images, first) = epoch(&loader)?;
    let times: Vec<f64> = (0..later).map(|_| epoch(&loader).map(|(_, s)| s)).collect::<Outcome<_>>()?;
    Ok(Round { images, open, first, later: median(times.into_iter()) })
}

fn main() -> Outcome<()> {
    let (mut rounds, mut later, mut workers, mut paths) = (8, 5, vec![0, 2], vec![]);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => rounds = args.next().ok_or("--rounds N")?.parse()?,
            "--later" => later = args.next().ok_or("--later N")?.parse()?,
            "--workers" => {
                let list = args.next().ok_or("--workers A,B")?;
                workers = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            _ => paths.push(arg),
        }
    }
    let variants: Vec<(String, usize)> =
        paths.iter().flat_map(|path| workers.iter().map(|&n| (path.clone(), n))).collect();
    let mut measured: Vec<Vec<Round>> = variants.iter().map(|_| vec![]).collect();
    for number in 0..=rounds {
        for ((path, workers), rounds) in variants.iter().zip(&mut measured) {
            let round = round(path, *workers, later)?;
            // The first round brings the files into the page cache.
            if number > 0 {
                rounds.push(round);
            }
        }
    }
    println!("{:<34} workers  open ms  first/s  later/s  ratio  with open", "set");
    for ((path, workers), rounds) in variants.iter().zip(&measured) {
        let of = |f: &dyn Fn(&Round) -> f64| median(rounds.iter().map(f));
        println!(
            "{path:<34} {workers:>7} {:>8.2} {:>8.0} {:>8.0} {:>6.2} {:>10.2}",
            of(&|r| r.open * 1e3),
            of(&|r| r.images as f64 / r.first),
            of(&|r| r.images as f64 / r.later),
            of(&|r| r.later / r.first),
            of(&|r| r.later / (r.open + r.first)),
        );
    }
    Ok(())
}
