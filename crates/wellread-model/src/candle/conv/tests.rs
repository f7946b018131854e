//! The operators and their gradients against plain convolution.

use super::*;
use crate::init::Uniform;
use candle_core::{DType, Device, Var};
use proptest::prelude::*;

fn uniform(seed: u64, shape: &[usize]) -> Tensor {
    let mut uniform = Uniform::new(seed, 0);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| uniform.next_within(1.0)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// An operator under test: input, weights, bias to result.
type Operator = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;

/// Result and the gradients of input, weights and bias, all made from the same random numbers.
fn run(operator: Operator, dtype: DType, [n, h, w, c_in, c_out, k]: [usize; 6], nchw: bool) -> [Vec<f64>; 4] {
    let variable =
        |seed, shape: &[usize]| Var::from_tensor(&uniform(seed, shape).to_dtype(dtype).unwrap()).unwrap();
    let x = variable(1, &if nchw { [n, c_in, h, w] } else { [n, h, w, c_in] });
    let (weights, bias) = (variable(2, &[c_out, k, k, c_in]), variable(3, &[c_out]));
    let images = if nchw { x.permute((0, 2, 3, 1)).unwrap() } else { x.as_tensor().clone() };
    let y = operator(&images, &weights, &bias).unwrap();
    // Weighted with random numbers, so that every element has a gradient of its own.
    let weighted = (&y * uniform(4, y.dims()).to_dtype(dtype).unwrap()).unwrap();
    let gradients = weighted.sum_all().unwrap().backward().unwrap();
    let [dx, dw, db] = [&x, &weights, &bias].map(|v| values(gradients.get(v).unwrap()));
    [values(&y), dx, dw, db]
}

/// Ours in single precision against candle's own in double precision.
fn compare(ours: Operator, theirs: Operator, sizes: [usize; 6], nchw: bool) {
    let (ours, theirs) = (run(ours, DType::F32, sizes, nchw), run(theirs, DType::F64, sizes, nchw));
    let names = ["result", "gradient of the input", "gradient of the weights", "gradient of the bias"];
    for ((name, ours), theirs) in names.iter().zip(ours).zip(theirs) {
        assert_eq!(ours.len(), theirs.len(), "{name}");
        let scale = theirs.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            assert!((a - b).abs() <= 1e-5 * scale, "{name}[{i}]: {a} against candle's {b} for {sizes:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn agrees_with_candles_own(
        n in 1usize..3, h in 1usize..24, w in 1usize..24, c_in in 1usize..20, c_out in 1usize..40,
        k in prop::sample::select(vec![1usize, 3, 5]), nchw in any::<bool>(),
    ) {
        let sizes = [n, h, w, c_in, c_out, k];
        compare(|x, w, b| conv(x, w, b, true), |x, w, b| library(x, w, b, true), sizes, nchw);
        compare(|x, w, b| conv(x, w, b, false), |x, w, b| library(x, w, b, false), sizes, nchw);
        compare(conv_relu_mean, |x, w, b| library(x, w, b, true)?.mean((1, 2)), sizes, nchw);
    }
}

#[test]
fn agrees_with_candles_own_on_many_blocks_and_spans() {
    // Wider than a span, higher than a band, channels beyond four vectors.
    compare(|x, w, b| conv(x, w, b, true), |x, w, b| library(x, w, b, true), [1, 70, 150, 5, 80, 3], false);
    compare(conv_relu_mean, |x, w, b| library(x, w, b, true)?.mean((1, 2)), [2, 70, 150, 8, 64, 3], false);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (x, weights, bias) = (uniform(1, &[3, 40, 33, 4]), uniform(2, &[24, 3, 3, 4]), uniform(3, &[24]));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let weights = Var::from_tensor(&weights).unwrap();
            let y = conv_relu_mean(&x, &weights, &bias).unwrap();
            let gradients = y.sqr().unwrap().sum_all().unwrap().backward().unwrap();
            (values(&y), values(gradients.get(&weights).unwrap()))
        })
    };
    assert_eq!(run(1), run(5));
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let x = uniform(1, &[1, 4, 4, 3]);
    let bias = uniform(3, &[8]);
    for weights in [&[8, 3, 3, 4][..], &[8, 2, 2, 3], &[8, 3, 5, 3], &[9, 3, 3, 3]] {
        let error = conv(&x, &uniform(2, weights), &bias, true).unwrap_err();
        assert!(error.to_string().contains("do not fit together"), "{error}");
    }
    assert!(conv(&uniform(1, &[0, 4, 4, 3]), &uniform(2, &[8, 3, 3, 3]), &bias, true).is_err());
}
