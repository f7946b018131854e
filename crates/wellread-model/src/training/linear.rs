//! A linear layer, by the kernels of [`crate::convolution`].

use crate::convolution::Convolution;

/// A linear layer on a batch of rows: a convolution of 1 x 1 on one line of `batch` pixels, each a row. Its weights are
/// `outputs x inputs`, as in PyTorch.
pub(super) const fn linear(batch: usize, inputs: usize, outputs: usize) -> Convolution {
    Convolution {
        depth: 1,
        height: 1,
        width: batch,
        c_in: inputs,
        c_out: outputs,
        kernel: 1,
        kernel_depth: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_product_with_the_weights_and_its_gradients() {
        let layer = linear(2, 3, 2);
        let (x, weights, bias) =
            ([1.0, 2.0, 3.0, -1.0, 0.0, 1.0], [1.0, 0.0, 2.0, 0.5, -1.0, 0.0], [10.0, 20.0]);
        let mut out = [0.0; 4];
        layer.forward(&x, &weights, &bias, false, &mut out).unwrap();
        assert_eq!(out, [17.0, 18.5, 11.0, 19.5]);
        let mut dx = [0.0; 6];
        let (dw, db) = layer.backward(&x, &weights, &[1.0, 2.0, 0.0, -1.0], Some(&mut dx)).unwrap();
        assert_eq!(dx, [2.0, -2.0, 2.0, -0.5, 1.0, 0.0]);
        assert_eq!(dw, [1.0, 2.0, 3.0, 3.0, 4.0, 5.0]);
        assert_eq!(db, [1.0, 1.0]);
    }
}
