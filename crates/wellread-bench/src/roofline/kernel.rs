//! The limit of writing batches: the loader's own kernel, which widens and scales, without a loader around it.
//!
//! ```text
//!  pixels of a batch as stored ─▶ kernel (widen and scale) ─▶ one of a thread's batch buffers, used again and again
//!        each thread by itself; the fastest of several passes ─▶ images per second
//! ```
//!
//! No loader that writes such batches into memory is faster than this. The pixels lie in the nearest cache that a batch
//! of them fits into. Buffers are as few as a loader has, and nothing is read, ordered, passed on or checked. The
//! fastest pass counts, as in STREAM (McCalpin, <https://www.cs.virginia.edu/stream/ref.html>): a disturbance makes a
//! limit smaller.

use super::passes::{BUDGET, PASSES};
use std::hint::black_box;
use std::sync::{Barrier, OnceLock};
use std::time::Instant;
use wellread_image::PixelType;
use wellread_loader::kernels::{Affine, convert};
use wellread_measure::clock::Stopwatch;

/// Passes last so long at least, each thread's by itself: a fraction of a batch is below the clock.
const MIN_PASS_SECONDS: f64 = 2e-3;
/// This limit has so small a part of a limit's time: each size of batch and number of threads has one of its own.
const PARTS: u32 = 6;
/// Bytes of all buffers at most, where a batch is small enough.
const MAX_BUFFER_BYTES: usize = 1 << 30;
/// The factor and the summand; any will do.
const AFFINE: Affine = Affine { scale: 1.0 / 255.0, ..Affine::IDENTITY };

/// The content of a batch, and the number of threads that make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batches {
    /// Type of the stored pixels.
    pub(super) dtype: PixelType,
    /// Pixels of an image in a batch.
    pub(super) pixels: usize,
    /// Images of a batch.
    pub(super) images: usize,
    /// Batches that a loader has buffers for.
    pub(super) buffers: usize,
    /// Threads that fill them.
    pub(super) threads: usize,
}

impl Batches {
    /// Images per second that so many threads can write; NaN of a batch without pixels.
    pub(super) fn rate(self) -> f64 {
        let Self { dtype, pixels, images, buffers, threads } = self;
        let (pixels, threads) = (pixels * images, threads.max(1));
        if pixels == 0 {
            return f64::NAN;
        }
        let room = MAX_BUFFER_BYTES / (pixels * size_of::<f32>() * threads);
        let buffers = buffers.div_ceil(threads).min(room).max(1);
        // How many threads begin together is known when all that there are have been started.
        let start = OnceLock::<Barrier>::new();
        let thread = || -> f64 {
            let source = vec![1_u8; pixels * dtype.size()];
            let mut targets = vec![vec![0_f32; pixels]; buffers];
            let mut next = 0;
            let mut batches = |count: usize| {
                let clock = Stopwatch::start();
                for _ in 0..count {
                    let target = &mut targets[next];
                    convert(dtype, black_box(&source), AFFINE, target);
                    black_box(target);
                    next = (next + 1) % buffers;
                }
                clock.elapsed().max(1e-9)
            };
            // Buffers come into being.
            batches(buffers);
            let count = (MIN_PASS_SECONDS / batches(1)).ceil() as usize;
            start.wait().wait();
            let ends = Instant::now() + BUDGET / PARTS;
            let (mut fastest, mut passes) = (0.0_f64, 0);
            while passes < PASSES.0 || Instant::now() < ends {
                fastest = fastest.max((count * images) as f64 / batches(count));
                passes += 1;
            }
            fastest
        };
        std::thread::scope(|scope| {
            // Where the system has fewer threads, fewer write.
            let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, thread).ok();
            let others: Vec<_> = (1..threads).filter_map(spawn).collect();
            start.get_or_init(|| Barrier::new(others.len() + 1));
            let own = thread();
            others.into_iter().filter_map(|other| other.join().ok()).sum::<f64>() + own
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_all_threads() {
        let batches = Batches { dtype: PixelType::U8, pixels: 100 * 100, images: 4, buffers: 3, threads: 2 };
        let rate = batches.rate();
        // 40 kB an image: between 40 MB and 40 TB a second.
        assert!((1e3..1e9).contains(&rate), "{rate}");
        assert!(Batches { pixels: 0, ..batches }.rate().is_nan());
    }
}
