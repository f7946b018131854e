//! Inference on the CPU with kernels of our own (why: docs/decisions/0018-native-inference.md).
//!
//! ```text
//! Network + Weights ──plan──▶ steps (batch norm folded, weights packed)
//! load: NCHW ─▶ channels last, with border     run: step after step over blocked activations     logits: N x classes
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `layout` | activations in blocks of 64 channels |
//! | `product` | convolutions and linear layers, with bias, residual, ReLU and GELU |
//! | `attention`, `pointwise` | everything else |
//! | `plan` | from a network to steps over reused arrays |
//!
//! Results depend neither on the number of threads nor on the other images of a batch.

mod attention;
mod layout;
mod plan;
mod pointwise;
mod product;

use super::session::{check_images, nothing_loaded};
use super::{Architecture, Dtype, Session, SessionOptions, Weights};
use crate::threads::{own_kernels, thread_pool};
use crate::{Error, Result};
use layout::{BLOCK, Layout};
use plan::{Kernel, Plan, Step};
use rayon::prelude::*;

/// A network ready to run on the CPU.
pub(super) struct CpuSession {
    input: [usize; 3],
    classes: usize,
    plan: Plan,
    pool: rayon::ThreadPool,
    /// One per layout of the plan; empty before `load`.
    arrays: Vec<Vec<f32>>,
    batch: usize,
    was_run: bool,
}

impl CpuSession {
    /// Opens `arch` with those weights; `options.device` must be the CPU.
    ///
    /// # Errors
    /// Another type than `float32`, threads that cannot be started, a network these kernels cannot run.
    pub fn new(arch: &Architecture, weights: &Weights, options: &SessionOptions) -> Result<Self> {
        options.dtype.check("candle on the CPU", &[Dtype::Float32])?;
        let pool = thread_pool(options.threads)?;
        let plan = pool.install(|| Plan::new(&arch.network()?, weights))?;
        let (input, classes) = (arch.input, arch.classes);
        Ok(Self { input, classes, plan, pool, arrays: Vec::new(), batch: 0, was_run: false })
    }
}

impl Session for CpuSession {
    fn backend(&self) -> String {
        own_kernels(&self.pool)
    }

    fn load(&mut self, images: &[f32], batch: usize) -> Result<()> {
        check_images(images, batch, self.input)?;
        self.was_run = false;
        if batch != self.batch || self.arrays.is_empty() {
            // The old arrays first, or both would be there at once.
            (self.arrays, self.batch) = (Vec::new(), 0);
            self.arrays = allocate(&self.plan, batch)?;
            self.batch = batch;
        }
        let layout = self.plan.arrays[0];
        let [channels, height, width] = self.input;
        let to = &mut self.arrays[0];
        self.pool.install(|| {
            let from = images.par_chunks_exact(channels * height * width);
            to.par_chunks_exact_mut(layout.image()).zip(from).for_each(|(to, image)| {
                for (y, line) in image.chunks_exact(width).enumerate().take(channels * height) {
                    let (channel, y) = (y / height, y % height);
                    let start = layout.offset(y * width) + channel;
                    to[start..].iter_mut().step_by(channels).zip(line).for_each(|(to, &v)| *to = v);
                }
            });
        });
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        if self.batch == 0 {
            return Err(nothing_loaded());
        }
        let Self { plan, arrays, batch, pool, .. } = self;
        pool.install(|| {
            for step in &plan.steps {
                // A step writes an array that it does not read, so it can be taken out meanwhile.
                let mut out = std::mem::take(&mut arrays[step.out]);
                run_step(step, *batch, &plan.arrays, arrays, &mut out);
                arrays[step.out] = out;
            }
        });
        self.was_run = true;
        Ok(())
    }

    fn logits(&self) -> Result<Vec<f32>> {
        let (Some(step), true) = (self.plan.steps.last(), self.was_run) else { return Err(nothing_loaded()) };
        let blocked = &self.arrays[step.out];
        let mut logits = Vec::with_capacity(self.batch * self.classes);
        for image in 0..self.batch {
            logits.extend(
                (0..self.classes).map(|c| blocked[(c / BLOCK * self.batch + image) * BLOCK + c % BLOCK]),
            );
        }
        Ok(logits)
    }

    fn output_shape(&self) -> Result<Vec<usize>> {
        if self.was_run { Ok(vec![self.batch, self.classes]) } else { Err(nothing_loaded()) }
    }

    fn forget(&mut self) {
        (self.arrays, self.batch, self.was_run) = (Vec::new(), 0, false);
    }
}

fn run_step(step: &Step, batch: usize, layouts: &[Layout], arrays: &[Vec<f32>], out: &mut [f32]) {
    let first = step.inputs[0];
    let (input, from, to) = (arrays[first].as_slice(), &layouts[first], &layouts[step.out]);
    match &step.kernel {
        Kernel::Product(product) => {
            let residual = step.inputs.get(1).map(|&array| arrays[array].as_slice());
            product.apply(batch, (input, from), residual, (out, to));
        }
        Kernel::MaxPool { window } => pointwise::max_pool(batch, (input, from), *window, (out, to)),
        Kernel::GlobalMean => pointwise::global_mean((input, from), out),
        Kernel::Tokens { class_token, positions } => {
            pointwise::tokens(batch, (input, from), (class_token, positions), (out, to));
        }
        Kernel::LayerNorm { gain, shift, epsilon } => {
            pointwise::layer_norm(batch, from, input, (gain, shift, *epsilon), out);
        }
        &Kernel::Attention { heads } => attention::attention(batch, heads, from.pixels(), input, out),
        Kernel::FirstToken => pointwise::first_token((input, from), out),
    }
}

/// Arrays of zeros for `batch` images.
///
/// # Errors
/// More than fits in memory.
fn allocate(plan: &Plan, batch: usize) -> Result<Vec<Vec<f32>>> {
    let bytes = plan.bytes(batch);
    let too_large = || {
        let gibibytes = bytes.map_or(f64::INFINITY, |b| b as f64 / (1u64 << 30) as f64);
        Error::new(format_args!(
            "a batch of {batch} images does not fit in memory: it takes {gibibytes:.1} GiB"
        ))
        .hint("give a smaller batch")
    };
    match (bytes, available_memory()) {
        (None, _) => return Err(too_large()),
        (Some(bytes), Some(available)) if bytes as u64 > available => return Err(too_large()),
        _ => {}
    }
    let allocate = |layout: &Layout| {
        let floats = layout.floats(batch);
        let mut array = Vec::new();
        array.try_reserve_exact(floats).map_err(|_| too_large())?;
        array.resize(floats, 0.0);
        Ok(array)
    };
    plan.arrays.iter().map(allocate).collect()
}

/// Bytes that Linux says can be had without swapping; other systems refuse at the allocation.
fn available_memory() -> Option<u64> {
    if cfg!(any(not(target_os = "linux"), feature = "portable")) {
        return None;
    }
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
