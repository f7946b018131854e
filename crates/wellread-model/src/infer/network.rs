//! A network as data: one definition, from which parameters, sessions and the ONNX file are all made.
//!
//! A [`Network`] is a list of [`Node`]s in the order of computation. Each node reads earlier ones by index and
//! has a [`Shape`] per image, so that no reader has to infer anything. The operations are those that inference
//! backends fuse anyway (a convolution with its batch norm, residual and ReLU is one node). A reader without such
//! fusion takes them apart.
//!
//! ```text
//! resnet50.rs, vit_b_16.rs ──Builder──▶ Network ─┬─▶ parameters()  ─▶ safetensors
//!                                                ├─▶ cpu / candle_ops ─▶ sessions
//!                                                └─▶ onnx          ─▶ FILE.onnx
//! ```

use crate::{Error, Result};

/// Index of a node in its [`Network`].
pub type NodeId = usize;

/// The output of one node per image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Channels, or numbers per token.
    pub channels: usize,
    /// Rows; 1 for tokens and vectors.
    pub height: usize,
    /// Columns, or tokens; 1 for a vector.
    pub width: usize,
}

impl Shape {
    /// Rows times columns.
    pub fn pixels(&self) -> usize {
        self.height * self.width
    }
}

/// One step of a network.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Nodes that it reads; a second one of [`Op::Conv`] and [`Op::Linear`] is added to the result.
    pub inputs: Vec<NodeId>,
    /// The output, per image.
    pub shape: Shape,
}

/// The operations.
#[derive(Clone, Debug)]
pub enum Op {
    /// The images, `N x C x H x W`.
    Images,
    /// Convolution, with what follows it.
    Conv(Conv),
    /// Largest value under a square window; zero padding, so only after a ReLU.
    MaxPool {
        /// Side of the window.
        kernel: usize,
        /// Step of the window.
        stride: usize,
        /// Border around the image.
        pad: usize,
    },
    /// Mean over rows and columns: `N x C`.
    GlobalMean,
    /// `x W' + b` for each token or vector, with what follows it.
    Linear(Linear),
    /// Pixels in row order become tokens after a learned first one; learned positions are added.
    Tokens {
        /// Parameter of the first token, `1 x 1 x C`.
        class_token: String,
        /// Parameter of the positions, `1 x T x C`.
        positions: String,
    },
    /// Layer norm over the channels, parameters `NAME.weight` and `NAME.bias`.
    LayerNorm {
        /// Prefix of the parameters.
        name: String,
        /// Added to the variance.
        epsilon: f32,
    },
    /// Softmax attention of `heads` heads; the input has queries, keys and values one after the other.
    Attention {
        /// Number of heads.
        heads: usize,
    },
    /// The first token: `N x C`.
    FirstToken,
}

/// Convolution with zero padding, then batch norm, residual and ReLU where there are any.
#[derive(Clone, Debug)]
pub struct Conv {
    /// Prefix of the parameters: `NAME.weight` (`out x in x kernel x kernel`) and, if `bias`, `NAME.bias`.
    pub name: String,
    /// Whether there is a bias.
    pub bias: bool,
    /// Prefix of the batch norm's parameters, `.weight`, `.bias`, `.running_mean` and `.running_var`.
    pub norm: Option<String>,
    /// Channels of the result.
    pub out: usize,
    /// Side of the kernel.
    pub kernel: usize,
    /// Step of the kernel.
    pub stride: usize,
    /// Border around the image.
    pub pad: usize,
    /// Whether negative results become zero, after the residual.
    pub relu: bool,
}

/// Added to the variance by every batch norm: PyTorch's default.
pub const BATCH_NORM_EPSILON: f32 = 1e-5;

/// A linear layer, then residual and activation where there are any.
#[derive(Clone, Debug)]
pub struct Linear {
    /// Parameter of the weights, `out x in`.
    pub weight: String,
    /// Parameter of the bias, `out`.
    pub bias: String,
    /// Width of the result.
    pub out: usize,
    /// Whether `x * Phi(x)` follows, after the residual, with the exact normal distribution function.
    pub gelu: bool,
}

/// A parameter of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name, as in torchvision.
    pub name: String,
    /// Shape, as in torchvision; empty for a scalar.
    pub shape: Vec<usize>,
    /// Its first values.
    pub init: Init,
}

/// How seeded values are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Uniform between two bounds.
    Uniform(f32, f32),
    /// The 64-bit integer 0: batch norm's count of batches, which inference does not read.
    Count,
}

/// A network; see the [module](self).
#[derive(Clone, Debug)]
pub struct Network {
    nodes: Vec<Node>,
}

impl Network {
    /// All nodes, each after those that it reads; the first is [`Op::Images`], the last has the logits.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The first input of `node`.
    pub fn input_of(&self, node: &Node) -> &Node {
        &self.nodes[node.inputs[0]]
    }

    /// All parameters in the order of the nodes, with torchvision's names and shapes.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut all = Vec::new();
        for node in &self.nodes {
            let channels = node.inputs.first().map_or(0, |&input| self.nodes[input].shape.channels);
            parameters_of(node, channels, &mut all);
        }
        all
    }
}

/// Adds the parameters of `node`, whose input has `channels` channels.
///
/// Bounds keep activations in `float16`'s range to the end (He and Xavier). Nothing is trivial: batch norm and
/// layer norm move and scale every channel differently, so that a backend that folds them wrongly shows. A
/// branch that ends in a residual is kept small, or the sum would grow with every block.
fn parameters_of(node: &Node, channels: usize, all: &mut Vec<Parameter>) {
    let mut add = |name: String, shape: Vec<usize>, low: f64, high: f64| {
        all.push(Parameter { name, shape, init: Init::Uniform(low as f32, high as f32) });
    };
    match &node.op {
        Op::Conv(conv) => {
            let fan_in = conv.kernel * conv.kernel * channels;
            let gain = if conv.norm.is_some() { 6.0 } else { 3.0 };
            let bound = (gain / fan_in as f64).sqrt();
            add(
                format!("{}.weight", conv.name),
                vec![conv.out, channels, conv.kernel, conv.kernel],
                -bound,
                bound,
            );
            if conv.bias {
                add(format!("{}.bias", conv.name), vec![conv.out], -0.1, 0.1);
            }
            if let Some(norm) = &conv.norm {
                let (low, high) = if node.inputs.len() > 1 { (0.1, 0.4) } else { (0.5, 1.5) };
                let shape = vec![conv.out];
                add(format!("{norm}.weight"), shape.clone(), low, high);
                add(format!("{norm}.bias"), shape.clone(), -0.2, 0.2);
                add(format!("{norm}.running_mean"), shape.clone(), -0.2, 0.2);
                add(format!("{norm}.running_var"), shape, 0.5, 1.5);
                let name = format!("{norm}.num_batches_tracked");
                all.push(Parameter { name, shape: Vec::new(), init: Init::Count });
            }
        }
        Op::Linear(linear) => {
            let bound = (6.0 / (channels + linear.out) as f64).sqrt();
            add(linear.weight.clone(), vec![linear.out, channels], -bound, bound);
            add(linear.bias.clone(), vec![linear.out], -0.1, 0.1);
        }
        Op::Tokens { class_token, positions } => {
            add(class_token.clone(), vec![1, 1, channels], -0.5, 0.5);
            add(positions.clone(), vec![1, node.shape.width, channels], -0.5, 0.5);
        }
        Op::LayerNorm { name, .. } => {
            add(format!("{name}.weight"), vec![channels], 0.8, 1.2);
            add(format!("{name}.bias"), vec![channels], -0.1, 0.1);
        }
        Op::Images | Op::MaxPool { .. } | Op::GlobalMean | Op::Attention { .. } | Op::FirstToken => {}
    }
}

/// Builds a [`Network`] node by node and checks that shapes fit.
#[derive(Debug)]
pub struct Builder {
    nodes: Vec<Node>,
}

impl Builder {
    /// A network that reads images of `[channels, height, width]`.
    pub fn new([channels, height, width]: [usize; 3]) -> Self {
        let shape = Shape { channels, height, width };
        Self { nodes: vec![Node { op: Op::Images, inputs: Vec::new(), shape }] }
    }

    /// The node of the images.
    pub fn images(&self) -> NodeId {
        0
    }

    fn push(&mut self, op: Op, inputs: Vec<NodeId>, shape: Shape) -> NodeId {
        self.nodes.push(Node { op, inputs, shape });
        self.nodes.len() - 1
    }

    fn shape(&self, node: NodeId) -> Shape {
        self.nodes[node].shape
    }

    /// Pixels after a window of `kernel` at steps of `stride` has passed over the image.
    ///
    /// # Errors
    /// An image smaller than the window.
    fn window(&self, x: NodeId, (kernel, stride, pad): (usize, usize, usize)) -> Result<Shape> {
        let shape = self.shape(x);
        let steps = |side: usize| (side + 2 * pad).checked_sub(kernel).map(|rest| rest / stride + 1);
        let (Some(height), Some(width)) = (steps(shape.height), steps(shape.width)) else {
            return Err(Error::new(format_args!(
                "the images are too small: a window of {kernel} x {kernel} does not fit {} x {} pixels",
                shape.height, shape.width
            ))
            .hint("give an --input-shape with more rows and columns"));
        };
        Ok(Shape { height, width, ..shape })
    }

    /// Adds [`Op::Conv`]; `residual` is added to its result.
    ///
    /// # Errors
    /// An image smaller than the kernel, or a residual of another shape.
    pub fn conv(&mut self, x: NodeId, conv: Conv, residual: Option<NodeId>) -> Result<NodeId> {
        let shape = Shape { channels: conv.out, ..self.window(x, (conv.kernel, conv.stride, conv.pad))? };
        let inputs = self.with_residual(x, residual, shape)?;
        Ok(self.push(Op::Conv(conv), inputs, shape))
    }

    /// Adds [`Op::MaxPool`].
    ///
    /// # Errors
    /// An image smaller than the window.
    pub fn max_pool(&mut self, x: NodeId, kernel: usize, stride: usize, pad: usize) -> Result<NodeId> {
        let shape = self.window(x, (kernel, stride, pad))?;
        Ok(self.push(Op::MaxPool { kernel, stride, pad }, vec![x], shape))
    }

    /// Adds [`Op::GlobalMean`].
    pub fn global_mean(&mut self, x: NodeId) -> NodeId {
        let shape = Shape { height: 1, width: 1, ..self.shape(x) };
        self.push(Op::GlobalMean, vec![x], shape)
    }

    /// Adds [`Op::Linear`]; `residual` is added to its result.
    ///
    /// # Errors
    /// A residual of another shape.
    pub fn linear(&mut self, x: NodeId, linear: Linear, residual: Option<NodeId>) -> Result<NodeId> {
        let shape = Shape { channels: linear.out, ..self.shape(x) };
        let inputs = self.with_residual(x, residual, shape)?;
        Ok(self.push(Op::Linear(linear), inputs, shape))
    }

    /// Adds [`Op::Tokens`].
    pub fn tokens(&mut self, x: NodeId, class_token: &str, positions: &str) -> NodeId {
        let shape = self.shape(x);
        let shape = Shape { height: 1, width: shape.pixels() + 1, ..shape };
        let (class_token, positions) = (class_token.to_owned(), positions.to_owned());
        self.push(Op::Tokens { class_token, positions }, vec![x], shape)
    }

    /// Adds [`Op::LayerNorm`].
    pub fn layer_norm(&mut self, x: NodeId, name: String, epsilon: f32) -> NodeId {
        self.push(Op::LayerNorm { name, epsilon }, vec![x], self.shape(x))
    }

    /// Adds [`Op::Attention`].
    ///
    /// # Errors
    /// An input that is not queries, keys and values of that many heads.
    pub fn attention(&mut self, qkv: NodeId, heads: usize) -> Result<NodeId> {
        let shape = self.shape(qkv);
        if heads == 0 || !shape.channels.is_multiple_of(3 * heads) {
            return Err(Error::new(format_args!(
                "{} channels are not queries, keys and values of {heads} heads",
                shape.channels
            )));
        }
        let shape = Shape { channels: shape.channels / 3, ..shape };
        Ok(self.push(Op::Attention { heads }, vec![qkv], shape))
    }

    /// Adds [`Op::FirstToken`].
    pub fn first_token(&mut self, x: NodeId) -> NodeId {
        let shape = Shape { height: 1, width: 1, ..self.shape(x) };
        self.push(Op::FirstToken, vec![x], shape)
    }

    fn with_residual(&self, x: NodeId, residual: Option<NodeId>, shape: Shape) -> Result<Vec<NodeId>> {
        let Some(residual) = residual else { return Ok(vec![x]) };
        if self.shape(residual) != shape {
            return Err(Error::new(format_args!(
                "a residual of shape {:?} cannot be added to {shape:?}",
                self.shape(residual)
            )));
        }
        Ok(vec![x, residual])
    }

    /// The network, whose last node has the logits.
    pub fn build(self) -> Network {
        Network { nodes: self.nodes }
    }
}
