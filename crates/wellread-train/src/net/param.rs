//! Parameters: the learnt values, their gradient, and their layout in PyTorch.

use anyhow::{Result, ensure};
use wellread_model::NamedArray;
use wellread_model::init::Uniform;

/// One parameter (or running statistic) of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name as in PyTorch, such as `encoder.0.0.conv.weight`.
    pub name: String,
    /// Values, in this crate's layout.
    pub values: Vec<f32>,
    /// Gradient of the loss, as the values; empty until there is one.
    pub gradient: Vec<f32>,
    /// Whether it is learnt; running statistics are not.
    pub learnt: bool,
    layout: Layout,
}

/// How values lie here and in PyTorch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Layout {
    /// One value per channel, the same in both.
    Channels,
    /// Here `out x K x K x K_d x in`, there `out x in (x K_d) x K x K`.
    Kernel { out: usize, c_in: usize, kernel: usize, kernel_depth: usize, planes: bool },
}

impl Param {
    /// One value per channel.
    pub fn channels(name: String, values: Vec<f32>, learnt: bool) -> Self {
        Self { name, values, gradient: vec![], learnt, layout: Layout::Channels }
    }

    /// The weights of a convolution `[out, in, kernel, kernel_depth]`, drawn uniformly for a ReLU that follows (He et al.
    /// 2015) from stream `stream` of the seed. `planes`: whether it is a convolution in three dimensions to PyTorch.
    pub fn kernel(
        name: String,
        [out, c_in, kernel, kernel_depth]: [usize; 4],
        planes: bool,
        seed: [u64; 2],
    ) -> Self {
        let fan_in = c_in * kernel * kernel * kernel_depth;
        let bound = (6.0 / fan_in as f64).sqrt() as f32;
        let mut uniform = Uniform::new(seed[0], seed[1]);
        let values = (0..out * fan_in).map(|_| uniform.next_within(bound)).collect();
        let layout = Layout::Kernel { out, c_in, kernel, kernel_depth, planes };
        Self { name, values, gradient: vec![], learnt: true, layout }
    }

    /// Shape in PyTorch.
    pub fn shape(&self) -> Vec<usize> {
        match self.layout {
            Layout::Channels => vec![self.values.len()],
            Layout::Kernel { out, c_in, kernel, kernel_depth, planes: true } => {
                vec![out, c_in, kernel_depth, kernel, kernel]
            }
            Layout::Kernel { out, c_in, kernel, .. } => vec![out, c_in, kernel, kernel],
        }
    }

    /// For each value in PyTorch's order, its index here.
    fn order(&self) -> Vec<usize> {
        let Layout::Kernel { out, c_in, kernel, kernel_depth, .. } = self.layout else {
            return (0..self.values.len()).collect();
        };
        let mut order = Vec::with_capacity(self.values.len());
        for o in 0..out {
            for i in 0..c_in {
                for z in 0..kernel_depth {
                    for yx in 0..kernel * kernel {
                        order.push(((o * kernel * kernel + yx) * kernel_depth + z) * c_in + i);
                    }
                }
            }
        }
        order
    }

    /// `values`, which lie as this parameter's, as PyTorch would have them, called `name`.
    pub fn export(&self, name: String, values: &[f32]) -> NamedArray {
        NamedArray {
            name,
            shape: self.shape(),
            values: self.order().into_iter().map(|i| values[i]).collect(),
        }
    }

    /// Values of an array as [`Self::export`] writes it, as they lie here.
    ///
    /// # Errors
    /// Another shape.
    pub fn import(&self, array: &NamedArray) -> Result<Vec<f32>> {
        ensure!(
            array.shape == self.shape() && array.values.len() == self.values.len(),
            "{} has the shape {:?}, the model wants {:?}",
            array.name,
            array.shape,
            self.shape()
        );
        let mut values = vec![0.0; self.values.len()];
        self.order().into_iter().zip(&array.values).for_each(|(i, &value)| values[i] = value);
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_exported_is_imported_again() {
        for planes in [false, true] {
            let kernel_depth = if planes { 3 } else { 1 };
            let param = Param::kernel("w".into(), [4, 2, 3, kernel_depth], planes, [1, 2]);
            let array = param.export("w".into(), &param.values);
            assert_eq!(array.shape.len(), if planes { 5 } else { 4 });
            assert_ne!(array.values, param.values);
            assert_eq!(param.import(&array).unwrap(), param.values);
            assert!(param.import(&NamedArray { shape: vec![4], ..array }).is_err());
        }
    }
}
