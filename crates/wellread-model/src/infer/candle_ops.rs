//! Inference in candle's own operators (cargo feature `cuda`): for GPUs, and in unit tests to hold the CPU kernels against.
//!
//! Activations are `N x C x H x W` for images and `N x T x C` for tokens, as candle wants them. Batch norm is
//! folded into the convolutions.

use super::network::{Linear, Network, Node, Op};
use super::session::{check_images, nothing_loaded};
use super::{Architecture, Dtype, Session, SessionOptions, Weights};
use crate::candle::Runtime;
use crate::{Device, ModelOptions, Result};
use candle_core::{D, DType, Tensor};

/// A network in candle's operators.
pub(super) struct CandleOpsSession {
    runtime: Runtime,
    dtype: DType,
    input: [usize; 3],
    network: Network,
    /// The parameters of each node, in the order in which [`forward`] reads them.
    parameters: Vec<Vec<Tensor>>,
    images: Option<Tensor>,
    output: Option<Tensor>,
}

impl CandleOpsSession {
    /// Opens `arch` with those weights on `options.device`.
    ///
    /// # Errors
    /// A device that is not there, another type than `float32` on the CPU.
    pub fn new(arch: &Architecture, weights: &Weights, options: &SessionOptions) -> Result<Self> {
        if options.device == Device::Cpu {
            options.dtype.check("candle on the CPU", &[Dtype::Float32])?;
        }
        let &SessionOptions { threads, device, dtype, .. } = options;
        let runtime = Runtime::new(&ModelOptions { threads, device, ..Default::default() })?;
        let dtype = match dtype {
            Dtype::Float32 => DType::F32,
            Dtype::Float16 => DType::F16,
            Dtype::Bfloat16 => DType::BF16,
        };
        let network = arch.network()?;
        let to_device = |values: &[f32], shape: &[usize]| {
            Tensor::from_slice(values, shape, &runtime.device)?.to_dtype(dtype)
        };
        let mut parameters = Vec::new();
        for node in network.nodes() {
            let channels = node.inputs.first().map_or(0, |&input| network.nodes()[input].shape.channels);
            parameters.push(match &node.op {
                Op::Conv(conv) => {
                    let (values, bias) = weights.folded(conv)?;
                    let shape = [conv.out, channels, conv.kernel, conv.kernel];
                    vec![to_device(&values, &shape)?, to_device(&bias, &[1, conv.out, 1, 1])?]
                }
                Op::Linear(Linear { weight, bias, out, .. }) => {
                    let weight = to_device(weights.get(weight)?, &[*out, channels])?;
                    vec![weight.t()?.contiguous()?, to_device(weights.get(bias)?, &[*out])?]
                }
                Op::Tokens { class_token, positions } => vec![
                    to_device(weights.get(class_token)?, &[1, 1, channels])?,
                    to_device(weights.get(positions)?, &[1, node.shape.width, channels])?,
                ],
                Op::LayerNorm { name, .. } => vec![
                    to_device(weights.get(&format!("{name}.weight"))?, &[channels])?,
                    to_device(weights.get(&format!("{name}.bias"))?, &[channels])?,
                ],
                Op::Images | Op::MaxPool { .. } | Op::GlobalMean | Op::Attention { .. } | Op::FirstToken => {
                    Vec::new()
                }
            });
        }
        Ok(Self { runtime, dtype, input: arch.input, network, parameters, images: None, output: None })
    }
}

impl Session for CandleOpsSession {
    fn backend(&self) -> String {
        self.runtime.name.clone()
    }

    fn load(&mut self, images: &[f32], batch: usize) -> Result<()> {
        check_images(images, batch, self.input)?;
        let [c, h, w] = self.input;
        self.output = None;
        let images = Tensor::from_slice(images, (batch, c, h, w), &self.runtime.device)?;
        self.images = Some(images.to_dtype(self.dtype)?);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let images = self.images.clone().ok_or_else(nothing_loaded)?;
        let Self { runtime, network, parameters, .. } = self;
        let output = runtime.pool.install(|| forward(network, parameters, images))?;
        self.runtime.device.synchronize()?;
        self.output = Some(output);
        Ok(())
    }

    fn logits(&self) -> Result<Vec<f32>> {
        let output = self.output.as_ref().ok_or_else(nothing_loaded)?;
        Ok(output.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?)
    }

    fn output_shape(&self) -> Result<Vec<usize>> {
        Ok(self.output.as_ref().ok_or_else(nothing_loaded)?.dims().to_vec())
    }

    fn forget(&mut self) {
        (self.images, self.output) = (None, None);
    }
}

fn forward(network: &Network, parameters: &[Vec<Tensor>], images: Tensor) -> candle_core::Result<Tensor> {
    let nodes = network.nodes();
    let mut results: Vec<Option<Tensor>> = vec![None; nodes.len()];
    results[0] = Some(images);
    for (number, (node, parameters)) in nodes.iter().zip(parameters).enumerate().skip(1) {
        let inputs: Vec<&Tensor> = node.inputs.iter().filter_map(|&input| results[input].as_ref()).collect();
        let result = compute(node, &inputs, parameters)?;
        results[number] = Some(result);
        // A result that no later node reads is freed.
        for &input in &node.inputs {
            if nodes[number + 1..].iter().all(|later| !later.inputs.contains(&input)) {
                results[input] = None;
            }
        }
    }
    results.pop().flatten().ok_or_else(|| candle_core::Error::Msg("the network is empty".into()))
}

fn compute(node: &Node, inputs: &[&Tensor], parameters: &[Tensor]) -> candle_core::Result<Tensor> {
    let x = inputs[0];
    let finish = |y: Tensor, relu: bool| {
        let y = inputs.get(1).map_or(Ok(y.clone()), |more| y + *more)?;
        if relu { y.relu() } else { Ok(y) }
    };
    match &node.op {
        Op::Images => Ok(x.clone()),
        Op::Conv(conv) => {
            let y = x.conv2d(&parameters[0], conv.pad, conv.stride, 1, 1)?;
            finish(y.broadcast_add(&parameters[1])?, conv.relu)
        }
        Op::Linear(linear) => {
            let y = finish(x.broadcast_matmul(&parameters[0])?.broadcast_add(&parameters[1])?, false)?;
            if linear.gelu { y.gelu_erf() } else { Ok(y) }
        }
        &Op::MaxPool { kernel, stride, pad } => {
            let x = x.pad_with_zeros(2, pad, pad)?.pad_with_zeros(3, pad, pad)?;
            x.max_pool2d_with_stride(kernel, stride)
        }
        Op::GlobalMean => x.mean((2, 3)),
        Op::Tokens { .. } => {
            let patches = x.flatten_from(2)?.transpose(1, 2)?;
            let (batch, _, channels) = patches.dims3()?;
            let class = parameters[0].broadcast_as((batch, 1, channels))?;
            Tensor::cat(&[&class, &patches], 1)?.broadcast_add(&parameters[1])
        }
        Op::LayerNorm { epsilon, .. } => {
            let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
            let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
            let scaled = centred.broadcast_div(&(variance + f64::from(*epsilon))?.sqrt()?)?;
            scaled.broadcast_mul(&parameters[0])?.broadcast_add(&parameters[1])
        }
        &Op::Attention { heads } => {
            let (batch, tokens, width) = x.dims3()?;
            let width = width / 3;
            let part = |which: usize| {
                let part = x.narrow(2, which * width, width)?;
                part.reshape((batch, tokens, heads, width / heads))?.transpose(1, 2)?.contiguous()
            };
            let scale = 1.0 / ((width / heads) as f64).sqrt();
            let scores = (part(0)? * scale)?.matmul(&part(1)?.t()?)?;
            let powers = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
            let shares = powers.broadcast_div(&powers.sum_keepdim(D::Minus1)?)?;
            shares.matmul(&part(2)?)?.transpose(1, 2)?.reshape((batch, tokens, width))
        }
        Op::FirstToken => x.narrow(1, 0, 1)?.squeeze(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::cpu::CpuSession;
    use crate::infer::{resnet50, vit_b_16, weights_file};
    use crate::init::Uniform;

    /// Logits of both sessions for the same images.
    fn both(arch: &Architecture, batch: usize) -> [Vec<f32>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let weights = weights_file(arch, 3, folder.path()).unwrap();
        let weights = Weights::read(arch, &weights).unwrap();
        let mut uniform = Uniform::new(5, 0);
        let images: Vec<f32> = (0..batch * arch.pixels()).map(|_| uniform.next_within(2.0)).collect();
        let options = SessionOptions { threads: 2, ..Default::default() };
        let ours: Box<dyn Session> = Box::new(CpuSession::new(arch, &weights, &options).unwrap());
        let theirs: Box<dyn Session> = Box::new(CandleOpsSession::new(arch, &weights, &options).unwrap());
        [ours, theirs].map(|mut session| {
            session.load(&images, batch).unwrap();
            session.run().unwrap();
            session.logits().unwrap()
        })
    }

    #[test]
    fn our_kernels_agree_with_candles_operators() {
        let resnet = Architecture {
            name: "small-resnet",
            input: [3, 53, 70],
            classes: 70,
            build: |arch| resnet50::bottlenecks(arch, [2, 1, 1, 1]),
            ..resnet50::RESNET50
        };
        let vit = Architecture {
            name: "small-vit",
            input: [3, 72, 80],
            classes: 33,
            build: |arch| {
                let sizes = vit_b_16::Sizes { patch: 8, width: 192, heads: 3, mlp: 200, layers: 2 };
                vit_b_16::transformer(arch, sizes)
            },
            ..vit_b_16::VIT_B_16
        };
        for arch in [resnet, vit] {
            let [ours, theirs] = both(&arch, 3);
            assert_eq!(ours.len(), 3 * arch.classes);
            let scale = theirs.iter().fold(0.0f32, |m, v| m.max(v.abs()));
            for (a, b) in ours.iter().zip(&theirs) {
                assert!((a - b).abs() < 1e-5 * scale, "{}: {a} against candle's {b}", arch.name);
            }
        }
    }
}
