//! Times random reads of a Parquet file: `parquet_read FILE [BATCH] [EPOCHS]`.
//!
//! Reads whole epochs in shuffled order, with one thread and the file's pages in the page cache. It prints
//! the time from opening to the first batch, images per second of each epoch, and peak memory.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use std::time::Instant;
use wellread_store::{CopySink, Request, Scratch, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: parquet_read FILE [BATCH] [EPOCHS]")?;
    let batch: usize = args.next().map_or(Ok(16), |n| n.parse())?;
    let epochs: usize = args.next().map_or(Ok(9), |n| n.parse())?;
    let start = Instant::now();
    let store = wellread_store::open(&path, &wellread_store::OpenOptions::default())?;
    let opened = start.elapsed();
    let mut order: Vec<usize> = (0..store.len()).collect();
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    let (mut scratch, mut out) = (Scratch::default(), vec![]);
    let mut rates = vec![];
    let mut first = None;
    for epoch in 0..epochs {
        order.shuffle(&mut rng);
        let started = Instant::now();
        for rows in order.chunks(batch) {
            read(&*store, rows, &mut scratch, &mut out)?;
            first.get_or_insert_with(|| start.elapsed());
        }
        let rate = store.len() as f64 / started.elapsed().as_secs_f64();
        println!("epoch {epoch}: {rate:.0} images/s");
        rates.push(rate);
    }
    rates.sort_by(f64::total_cmp);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("").trim_start_matches("VmHWM:").trim();
    println!(
        "open {:.2} ms, first batch {:.2} ms, median {:.0} images/s, peak memory {peak}; {:?}",
        opened.as_secs_f64() * 1e3,
        first.unwrap_or_default().as_secs_f64() * 1e3,
        rates[rates.len() / 2],
        store.layout()?
    );
    Ok(())
}

fn read(
    store: &dyn Store,
    rows: &[usize],
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> wellread_store::Result<()> {
    let infos = rows.iter().map(|&row| store.row_info(row)).collect::<wellread_store::Result<Vec<_>>>()?;
    let total = infos.iter().map(|i| i.shape.pixels() * i.dtype.size()).sum();
    out.resize(total, 0);
    let mut rest = out.as_mut_slice();
    let (mut requests, mut targets) = (vec![], vec![]);
    for (&row, info) in rows.iter().zip(&infos) {
        let (own, later) = rest.split_at_mut(info.shape.pixels() * info.dtype.size());
        rest = later;
        requests.push(Request { row, region: info.shape.full() });
        targets.push((info.shape.full(), info.dtype, own));
    }
    store.read(&requests, scratch, &mut CopySink::new(targets))
}
