//! From a network and its weights to steps over a few reused arrays.
//!
//! Batch norm is folded into the convolutions and all weights are packed here, once. Each node's result gets a
//! layout whose border is as wide as its widest reader needs. Its array may be shared with nodes of the same
//! layout which nobody reads any more. Borders stay zero, since results are written inside only.

use super::layout::{BLOCK, Layout};
use super::product::{Activation, Product, Window};
use crate::infer::Weights;
use crate::infer::network::{Conv, Network, Node, Op};
use crate::{Error, Result};

/// The kernel of one step.
#[derive(Debug)]
pub(super) enum Kernel {
    Product(Product),
    MaxPool { window: (usize, usize, usize) },
    GlobalMean,
    Tokens { class_token: Vec<f32>, positions: Vec<f32> },
    LayerNorm { gain: Vec<f32>, shift: Vec<f32>, epsilon: f32 },
    Attention { heads: usize },
    FirstToken,
}

/// One step: its work, the arrays it reads, the one it writes.
#[derive(Debug)]
pub(super) struct Step {
    pub kernel: Kernel,
    pub inputs: Vec<usize>,
    pub out: usize,
}

/// All steps and the layouts of the arrays between them; the images are in array 0, the logits in the last
/// step's.
#[derive(Debug)]
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub arrays: Vec<Layout>,
}

impl Plan {
    /// Packs `weights` for `network`.
    ///
    /// # Errors
    /// An attention head of another width than [`BLOCK`].
    pub fn new(network: &Network, weights: &Weights) -> Result<Self> {
        let nodes = network.nodes();
        let (mut border, mut last_reader) = (vec![0; nodes.len()], vec![0; nodes.len()]);
        for (number, node) in nodes.iter().enumerate() {
            for &input in &node.inputs {
                last_reader[input] = number;
            }
            if let Op::Conv(Conv { pad, .. }) | Op::MaxPool { pad, .. } = node.op {
                border[node.inputs[0]] = border[node.inputs[0]].max(pad);
            }
        }
        let mut plan = Self { steps: Vec::new(), arrays: Vec::new() };
        // The array of each node, and for each array the node after which it is free.
        let (mut array_of, mut free_after) = (Vec::with_capacity(nodes.len()), Vec::<usize>::new());
        for (number, node) in nodes.iter().enumerate() {
            let layout = match node.op {
                Op::Images => Layout::of_images(node.shape, border[number]),
                _ => Layout::of(node.shape, border[number]),
            };
            let reusable =
                (1..plan.arrays.len()).find(|&a| plan.arrays[a] == layout && free_after[a] < number);
            let out = reusable.unwrap_or_else(|| {
                plan.arrays.push(layout);
                free_after.push(0);
                plan.arrays.len() - 1
            });
            free_after[out] = last_reader[number];
            array_of.push(out);
            if number > 0 {
                let inputs: Vec<usize> = node.inputs.iter().map(|&i| array_of[i]).collect();
                let kernel = kernel(network, node, &plan.arrays[inputs[0]], weights)?;
                plan.steps.push(Step { kernel, inputs, out });
            }
        }
        Ok(plan)
    }

    /// Bytes of all arrays for `batch` images, or `None` if that is more than can be counted.
    pub fn bytes(&self, batch: usize) -> Option<usize> {
        self.arrays.iter().try_fold(0usize, |sum, layout| {
            sum.checked_add(layout.floats(1).checked_mul(batch)?.checked_mul(size_of::<f32>())?)
        })
    }
}

fn kernel(network: &Network, node: &Node, input: &Layout, weights: &Weights) -> Result<Kernel> {
    Ok(match &node.op {
        Op::Images => return Err(Error::new("a network reads its images in its first node only")),
        Op::Conv(conv) => {
            let (values, bias) = weights.folded(conv)?;
            let window = Window { kernel: conv.kernel, stride: conv.stride, pad: conv.pad };
            let activation = if conv.relu { Activation::Relu } else { Activation::None };
            Kernel::Product(Product::pack((&values, &bias), input, window, activation))
        }
        Op::Linear(linear) => {
            let parameters = (weights.get(&linear.weight)?, weights.get(&linear.bias)?);
            let activation = if linear.gelu { Activation::Gelu } else { Activation::None };
            Kernel::Product(Product::pack(parameters, input, Window::POINT, activation))
        }
        &Op::MaxPool { kernel, stride, pad } => Kernel::MaxPool { window: (kernel, stride, pad) },
        Op::GlobalMean => Kernel::GlobalMean,
        Op::Tokens { class_token, positions } => {
            let channels = node.shape.channels;
            let tokens = weights.get(positions)?;
            let mut blocked = vec![0.0; channels.div_ceil(BLOCK) * node.shape.width * BLOCK];
            for (token, values) in tokens.chunks_exact(channels).enumerate() {
                for (c, &value) in values.iter().enumerate() {
                    blocked[(c / BLOCK * node.shape.width + token) * BLOCK + c % BLOCK] = value;
                }
            }
            Kernel::Tokens { class_token: padded(weights.get(class_token)?), positions: blocked }
        }
        Op::LayerNorm { name, epsilon } => Kernel::LayerNorm {
            gain: padded(weights.get(&format!("{name}.weight"))?),
            shift: padded(weights.get(&format!("{name}.bias"))?),
            epsilon: *epsilon,
        },
        &Op::Attention { heads } => {
            let width = network.input_of(node).shape.channels / (3 * heads);
            if width != BLOCK {
                return Err(Error::new(format_args!(
                    "attention on the CPU is made for heads of {BLOCK} numbers, not {width}"
                )));
            }
            Kernel::Attention { heads }
        }
        Op::FirstToken => Kernel::FirstToken,
    })
}

/// With zeros up to whole blocks.
fn padded(values: &[f32]) -> Vec<f32> {
    let mut values = values.to_vec();
    values.resize(values.len().next_multiple_of(BLOCK), 0.0);
    values
}
