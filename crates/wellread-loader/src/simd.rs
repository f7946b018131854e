//! One kernel, compiled once per vector width, chosen at run time.
//!
//! A `Kernel` is plain safe Rust written so that LLVM vectorises it. `dispatch` runs it inside a function
//! compiled for the widest instruction set this CPU has. No level enables fused multiply-add, so every level
//! computes the same bits.

// A kernel only takes on the caller's instruction set when it is inlined into it.
#![allow(clippy::inline_always)]

use std::sync::OnceLock;

/// An instruction set kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The instructions that every CPU of the target has: SSE2 on x86-64, NEON on aarch64.
    Baseline,
    /// AVX2 and F16C, 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL, 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The widest level of this CPU; looked up once.
    pub fn detect() -> Self {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| *Self::available().last().unwrap_or(&Self::Baseline))
    }

    /// All levels of this CPU, narrowest first.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut levels = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
                levels.push(Self::Avx2);
            }
            if levels.len() == 2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                levels.push(Self::Avx512);
            }
        }
        levels
    }
}

/// A loop to be compiled for each level. Implementations mark `run`, and all it calls, `#[inline(always)]`.
pub(crate) trait Kernel {
    /// Does the work.
    fn run(self);
}

/// Runs a kernel at `level`, one of [`Level::available`].
#[inline]
pub(crate) fn dispatch<K: Kernel>(level: Level, kernel: K) {
    assert!(level <= Level::detect(), "this CPU does not have {level:?}");
    match level {
        Level::Baseline => kernel.run(),
        // SAFETY: the assertion above says that the CPU has the instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(kernel) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn avx2<K: Kernel>(kernel: K) {
    kernel.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<K: Kernel>(kernel: K) {
    kernel.run();
}
