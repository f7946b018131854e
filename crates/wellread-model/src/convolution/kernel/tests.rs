//! Kernels against plain loops.

use super::*;
use crate::init::Uniform;

/// Both kernels on one block of 5 x 19 pixels, with the instruction set `simd`.
fn run(simd: impl Simd, c_in: usize, c_out: usize) -> (Vec<f32>, Vec<f32>) {
    let (rows, width) = (5, 19);
    let g = Geometry { height: rows, width, c_in, c_out, kernel: 3 };
    let numbers = |seed, count| {
        let mut uniform = Uniform::new(seed, 0);
        (0..count).map(|_| uniform.next_within(1.0)).collect::<Vec<f32>>()
    };
    let (pixels, gradients) = (numbers(1, rows * width * c_in), numbers(2, rows * width * c_out));
    let (mut input, mut gradient) = (Block::default(), Block::default());
    input.load(&g, (0, rows), |y, to| to.copy_from_slice(&pixels[y * width * c_in..][..width * c_in]));
    let step = g.reversed().c_in;
    gradient.load(&g.reversed(), (0, rows), |y, to| {
        for (to, from) in to.chunks_exact_mut(step).zip(gradients[y * width * c_out..].chunks_exact(c_out)) {
            to[..c_out].copy_from_slice(from);
        }
    });
    let weights = Packed::forward(&g, &numbers(3, g.weights()));
    let start = vec![0.5; weights.columns];
    let mut out = vec![0.0; rows * width * c_out];
    let (block, weights, start) = (&input, &weights, &start[..]);
    simd.vectorize(Convolve { g: &g, block, weights, start, relu: true, out: &mut out });
    let mut sums = vec![0.0; gradient_len(&g)];
    let (input, gradient) = (&input, &gradient);
    simd.vectorize(WeightGradient { g: &g, input, gradient, rows, sums: &mut sums });
    (out, sums)
}

fn assert_same(ours: &(Vec<f32>, Vec<f32>), theirs: &(Vec<f32>, Vec<f32>)) {
    for (a, b) in ours.0.iter().zip(&theirs.0).chain(ours.1.iter().zip(&theirs.1)) {
        assert!((a - b).abs() < 1e-4, "{a} against {b}");
    }
}

#[test]
fn every_instruction_set_of_this_machine_agrees_with_portable_code() {
    for (c_in, c_out) in [(1, 32), (32, 64), (3, 5), (7, 17), (2, 100)] {
        let portable = run(pulp::Scalar, c_in, c_out);
        assert!(portable.0.iter().any(|&v| v > 0.0) && portable.1.iter().any(|&v| v != 0.0));
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = pulp::x86::V3::try_new() {
                assert_same(&run(simd, c_in, c_out), &portable);
            }
            if let Some(simd) = pulp::x86::V4::try_new() {
                assert_same(&run(simd, c_in, c_out), &portable);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(simd) = pulp::aarch64::Neon::try_new() {
            assert_same(&run(simd, c_in, c_out), &portable);
        }
    }
}
