//! Gradients of both models against finite differences of a plain implementation in double precision, and the state
//! that a model keeps from batch to batch.

use super::linear_probe::LinearProbe;
use super::network::Network;
use super::parameters::{channels_first, channels_last, initial, output_width};
use super::small_cnn::SmallCnn;
use super::target::{Target, mean_squared_error};
use crate::init::Uniform;
use crate::{ModelOptions, create, models};

/// Half the distance of the two points of a difference: so small that hardly any crosses the kink of a ReLU.
const STEP: f64 = 1e-7;

fn pixels(seed: u64, shape: [usize; 4]) -> Vec<f32> {
    let mut uniform = Uniform::new(seed, 9);
    (0..shape.iter().product()).map(|_| uniform.next_within(0.5) + 0.5).collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

/// A model by its definition: parameters as PyTorch has them, pixels, shape of the batch.
type Plain = fn(&[Vec<f64>], &[f64], [usize; 4]) -> Vec<f64>;

fn plain_linear(x: &[f64], weights: &[f64], bias: &[f64]) -> Vec<f64> {
    let row = |(row, bias): (&[f64], &f64)| bias + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
    weights.chunks_exact(x.len()).zip(bias).map(row).collect()
}

fn plain_probe(p: &[Vec<f64>], pixels: &[f64], [_, c, h, w]: [usize; 4]) -> Vec<f64> {
    let ends = |i: usize, length: usize| i * length / 8..((i + 1) * length).div_ceil(8);
    let mut out = Vec::new();
    for image in pixels.chunks_exact(c * h * w) {
        let mut cells = Vec::new();
        for plane in image.chunks_exact(h * w) {
            for cell in 0..64 {
                let (rows, columns) = (ends(cell / 8, h), ends(cell % 8, w));
                let count = (rows.len() * columns.len()) as f64;
                let values = rows.flat_map(|y| columns.clone().map(move |x| plane[y * w + x]));
                cells.push(values.sum::<f64>() / count);
            }
        }
        out.extend(plain_linear(&cells, &p[0], &p[1]));
    }
    out
}

/// A convolution of 3 x 3 that keeps the size, and ReLU.
fn plain_conv(x: &[f64], [c, h, w]: [usize; 3], weights: &[f64], bias: &[f64]) -> Vec<f64> {
    let mut out = Vec::with_capacity(bias.len() * h * w);
    for (bias, kernel) in bias.iter().zip(weights.chunks_exact(c * 9)) {
        for at in 0..h * w {
            let mut sum = *bias;
            for (tap, weight) in kernel.iter().enumerate() {
                let row = (at / w + tap / 3 % 3).checked_sub(1).filter(|&row| row < h);
                let column = (at % w + tap % 3).checked_sub(1).filter(|&column| column < w);
                if let (Some(row), Some(column)) = (row, column) {
                    sum += weight * x[(tap / 9 * h + row) * w + column];
                }
            }
            out.push(sum.max(0.0));
        }
    }
    out
}

fn plain_cnn(p: &[Vec<f64>], pixels: &[f64], [_, c, h, w]: [usize; 4]) -> Vec<f64> {
    let mut out = Vec::new();
    for image in pixels.chunks_exact(c * h * w) {
        let hidden = plain_conv(image, [c, h, w], &p[0], &p[1]);
        let activations = plain_conv(&hidden, [p[1].len(), h, w], &p[2], &p[3]);
        let mean = |plane: &[f64]| plane.iter().sum::<f64>() / (h * w) as f64;
        let means: Vec<f64> = activations.chunks_exact(h * w).map(mean).collect();
        out.extend(plain_linear(&means, &p[4], &p[5]));
    }
    out
}

fn gradients_agree<N: Network>(plain: Plain, shape: [usize; 4]) {
    let layout = N::layout(shape[1]);
    let values = initial(&layout, 7);
    let own: Vec<Vec<f32>> =
        values.iter().zip(&layout).map(|(values, (_, shape))| channels_last(values, shape)).collect();
    let batch = pixels(3, shape);
    let target = Target::new(7, shape[1], output_width(&layout)).of(&batch, shape);
    let mut network = N::default();
    let mut gradient = network.forward(&own, &batch, shape).unwrap();
    let loss = mean_squared_error(&mut gradient, &target);
    let gradients = network.backward(&own, &batch, shape, &gradient).unwrap();

    let (mut p, x) = (values.iter().map(|values| wide(values)).collect::<Vec<_>>(), wide(&batch));
    let plain_loss = |p: &[Vec<f64>]| {
        let out = plain(p, &x, shape);
        let squares = out.iter().zip(&target).map(|(out, &target)| (out - f64::from(target)).powi(2));
        squares.sum::<f64>() / out.len() as f64
    };
    assert!((f64::from(loss) - plain_loss(&p)).abs() < 1e-6, "{} {shape:?}: {loss}", N::NAME);
    assert_eq!(gradients.len(), layout.len());
    for (k, ((name, of), gradient)) in layout.iter().zip(&gradients).enumerate() {
        let ours = channels_first(gradient, of);
        assert_eq!(ours.len(), p[k].len());
        let largest = f64::from(ours.iter().fold(0.0f32, |most, v| most.max(v.abs())));
        assert!(largest > 0.0, "{name} has no gradient");
        for i in (0..ours.len()).step_by((ours.len() / 12) | 1) {
            let value = p[k][i];
            let mut at = |value| {
                p[k][i] = value;
                plain_loss(&p)
            };
            let slope = (at(value + STEP) - at(value - STEP)) / (2.0 * STEP);
            p[k][i] = value;
            let apart = (f64::from(ours[i]) - slope).abs();
            assert!(apart < 5e-3 * largest, "{name}[{i}] of {shape:?}: {} against {slope}", ours[i]);
        }
    }
}

#[test]
fn gradients_of_the_probe_are_those_of_finite_differences() {
    for shape in [[1, 1, 9, 20], [7, 2, 5, 3]] {
        gradients_agree::<LinearProbe>(plain_probe, shape);
    }
}

#[test]
fn gradients_of_the_cnn_are_those_of_finite_differences() {
    for shape in [[2, 2, 4, 5], [1, 1, 3, 8]] {
        gradients_agree::<SmallCnn>(plain_cnn, shape);
    }
}

#[test]
fn arrays_kept_from_other_batches_change_nothing() {
    for entry in models() {
        let options = ModelOptions { seed: 2, threads: 2, ..ModelOptions::default() };
        let mut used = create(entry.name, &options).unwrap();
        used.train_step(&pixels(1, [3, 1, 40, 30]), [3, 1, 40, 30]).unwrap();
        for shape in [[2, 1, 11, 9], [1, 1, 50, 41], [2, 1, 11, 9]] {
            let state = used.state_dict().unwrap();
            let mut fresh = create(entry.name, &ModelOptions { threads: 1, ..options.clone() }).unwrap();
            assert_ne!(fresh.state_dict().unwrap(), state);
            fresh.load_state_dict(&state).unwrap();
            assert_eq!(fresh.state_dict().unwrap(), state);
            let batch = pixels(4, shape);
            assert_eq!(used.forward(&batch, shape).unwrap(), fresh.forward(&batch, shape).unwrap());
            assert_eq!(used.train_step(&batch, shape).unwrap(), fresh.train_step(&batch, shape).unwrap());
            assert_eq!(used.state_dict().unwrap(), fresh.state_dict().unwrap(), "{} {shape:?}", entry.name);
        }
    }
}
