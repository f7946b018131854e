//! One shuffled epoch of a set in any format, and the cost of each step of it in time and memory.
//!
//! ```text
//! cargo run --release -p wellread --example epoch -- PATH [workers]
//! ```
//!
//! The dataset is opened anew, so the first batch counts everything: reading the footer or index, starting threads,
//! decoding. Memory is what the kernel says of this process (Linux; elsewhere it is left out).

use std::time::Instant;
use wellread::{Dataset, Loader};

/// `(now, peak)` of the resident memory in MB.
fn memory() -> Option<(usize, usize)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<usize>().ok()
    };
    Some((of("VmRSS:")? / 1024, of("VmHWM:")? / 1024))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("give the path of a set, and the number of workers if you like")?;
    let workers = args.next().map_or(Ok(2), |n| n.parse())?;
    let clock = Instant::now();
    let told = |what: &str| {
        let memory = memory().map_or(String::new(), |(now, peak)| format!("{now:>8} MB, at most {peak} MB"));
        println!("{what:<12} {:>10.1} ms {memory}", clock.elapsed().as_secs_f64() * 1e3);
    };
    told("start");
    let dataset = Dataset::open(&path)?;
    told("open");
    let loader =
        Loader::builder(&dataset).batch_size(16).shuffle(42).workers(workers).scale_to_unit().build()?;
    told("loader");
    let mut images = 0;
    for batch in &loader {
        let first = images == 0;
        images += batch?.len();
        if first {
            told("first batch");
        }
    }
    told("epoch");
    println!("{images} images");
    Ok(())
}
