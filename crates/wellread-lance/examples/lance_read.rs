//! Times random reads of 16 images and a scan of a Lance set: `lance_read PATH [THREADS] [SECONDS] [BATCH]`.
//!
//! Beside it, in Python: `ds.take(rows, columns=["ome_image"])`, or the pixels alone by
//! `ds.take(rows, columns={"p": "ome_image.chunks"})`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wellread_store::{Block, OpenOptions, PixelSink, Request, Result, Scratch, Store};

struct Sum(u64);

impl PixelSink for Sum {
    fn put(&mut self, _: usize, block: &Block<'_>) -> Result<()> {
        self.0 += block.data.iter().step_by(64).map(|&b| u64::from(b)).sum::<u64>();
        Ok(())
    }

    fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
}

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("a path");
    let threads: usize = args.next().map_or(1, |a| a.parse().expect("threads"));
    let seconds: f64 = args.next().map_or(2.0, |a| a.parse().expect("seconds"));
    let batch: usize = args.next().map_or(16, |a| a.parse().expect("batch"));
    let store = (wellread_lance::FORMAT.open)(Path::new(&path), &OpenOptions::default()).expect("open");
    let store: &dyn Store = store.as_ref();
    println!("{} images, {:?}", store.len(), store.layout().expect("layout"));
    let regions: Vec<_> =
        (0..store.len()).map(|row| store.row_info(row).expect("info").shape.full()).collect();
    for round in 0..3 {
        let images = AtomicUsize::new(0);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (images, regions) = (&images, &regions);
                scope.spawn(move || {
                    let mut seed = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(thread as u64 + 10 * round + 1);
                    let mut scratch = Scratch::default();
                    let mut sum = Sum(0);
                    while start.elapsed() < Duration::from_secs_f64(seconds) {
                        let requests: Vec<_> = (0..batch)
                            .map(|_| {
                                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                                let row = (seed >> 33) as usize % store.len();
                                Request { row, region: regions[row] }
                            })
                            .collect();
                        store.read(&requests, &mut scratch, &mut sum).expect("read");
                        images.fetch_add(batch, Ordering::Relaxed);
                    }
                    std::hint::black_box(sum.0);
                });
            }
        });
        let rate = images.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
        println!("random, {threads} threads, batches of {batch}: {rate:.0} images/s");
    }
    let start = Instant::now();
    let mut seen = 0;
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        store
            .scan(0..store.len(), &mut |_, _, pixels| {
                seen += usize::from(!pixels.is_empty());
                Ok(())
            })
            .expect("scan");
    }
    println!("scan: {:.0} images/s", seen as f64 / start.elapsed().as_secs_f64());
}
