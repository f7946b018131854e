//! ONNX files, written from the same network and weights as every other session's.
//!
//! Opset 17 (ONNX 1.12, August 2022): old enough for every runtime in use, new enough for layer norm as one
//! operator. Batch norm and GELU are written as their definitions; runtimes fuse them. The batch axis is
//! dynamic. The input is called `images` (`N x C x H x W`), the output `logits` (`N x classes`).
//!
//! | module | what it holds |
//! |---|---|
//! | `proto` | messages of protobuf |
//! | `graph` | nodes, constants and attributes of an ONNX graph |
//! | `external` | files beside any ONNX file that hold its tensors |

mod external;
mod graph;
mod proto;

pub use external::external_files;

use super::network::{BATCH_NORM_EPSILON, Conv, Linear, Node, Op};
use super::{Architecture, Dtype, Weights};
use crate::{Error, Result};
use graph::{Attribute, Graph};
use proto::Message;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Name of the input.
pub const INPUT: &str = "images";
/// Name of the output.
pub const OUTPUT: &str = "logits";

/// More bytes than there are before the graph.
const HEAD: u64 = 256;
const OPSET: i64 = 17;
/// Version of the file format that belongs to [`OPSET`].
const IR_VERSION: i64 = 8;

/// Path of `arch` with the weights of a safetensors file as a `float32` ONNX file. It is `FOLDER/WEIGHTS.onnx`, or
/// `FOLDER/WEIGHTS-CxHxW.onnx` for images of another size than the architecture's own.
///
/// The file is made when it is not there, cut short or older than the weights; it is written beside and renamed.
///
/// # Errors
/// Weights that cannot be read, a folder that cannot be written to.
pub fn onnx_file(arch: &Architecture, weights: &Path, folder: &Path) -> Result<PathBuf> {
    onnx_file_in(arch, weights, folder, Dtype::Float32)
}

/// The same with weights and arithmetic in `dtype`, which is part of the file's name unless it is `float32`.
///
/// # Errors
/// As [`onnx_file`], and `bfloat16`.
pub fn onnx_file_in(arch: &Architecture, weights: &Path, folder: &Path, dtype: Dtype) -> Result<PathBuf> {
    let mut name = weights.file_stem().unwrap_or(arch.name.as_ref()).to_string_lossy().into_owned();
    if super::registry::architecture(arch.name).is_ok_and(|own| own.input != arch.input) {
        name += &format!("-{}", arch.input.map(|axis| axis.to_string()).join("x"));
    }
    if dtype != Dtype::Float32 {
        name += &format!("-{dtype}");
    }
    let path = folder.join(name + ".onnx");
    let modified = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified());
    if let (Ok(model), Ok(weights)) = (modified(&path), modified(weights))
        && model >= weights
        && is_whole(&path)
    {
        return Ok(path);
    }
    let graph = graph_of(arch, &Weights::read(arch, weights)?, dtype)?;
    let (mut head, mut opset) = (Message::default(), Message::default());
    head.int(1, IR_VERSION).text(2, "wellread").text(3, env!("CARGO_PKG_VERSION"));
    head.message(8, opset.text(1, "").int(2, OPSET)).head(7, graph.len());
    let head = head.into_bytes();
    if head.len() + graph.len() > i32::MAX as usize {
        return Err(Error::new(format_args!(
            "{} does not fit one ONNX file: {} bytes, and protobuf ends at 2 GiB",
            arch.name,
            graph.len()
        )));
    }
    super::weights::write_beside(&path, |out| out.write_all(&head).and_then(|()| out.write_all(&graph)))?;
    Ok(path)
}

/// Whether the fields of a file end where it ends: a file that was cut short is made again.
fn is_whole(path: &Path) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let Ok(length) = file.metadata().map(|about| about.len()) else { return false };
    // The graph is the last field; those before it are a few bytes.
    let mut head = Vec::new();
    if Read::by_ref(&mut file).take(HEAD).read_to_end(&mut head).is_err() {
        return false;
    }
    proto::end_of_fields(&head, length) == Some(length)
}

/// The bytes of the whole graph.
fn graph_of(arch: &Architecture, weights: &Weights, dtype: Dtype) -> Result<Vec<u8>> {
    let network = arch.network()?;
    let mut writer = Writer { graph: Graph::new(arch.name, dtype)?, weights, names: Vec::new() };
    let last = network.nodes().len() - 1;
    for (number, node) in network.nodes().iter().enumerate() {
        let input = node.inputs.first().map(|&input| &network.nodes()[input]);
        let name = match (&node.op, input) {
            (Op::Images, _) | (_, None) => INPUT.to_owned(),
            (_, Some(input)) => writer.node(node, input, (number == last).then_some(OUTPUT))?,
        };
        writer.names.push(name);
    }
    Ok(writer.graph.finish((INPUT, &arch.input), (OUTPUT, arch.classes)))
}

/// Takes the nodes of a network apart into ONNX operators.
struct Writer<'a> {
    graph: Graph,
    weights: &'a Weights,
    /// Name of the result of each node so far.
    names: Vec<String>,
}

impl Writer<'_> {
    /// Writes one node; its result gets the name `out` where one is given.
    fn node(&mut self, node: &Node, input: &Node, out: Option<&str>) -> Result<String> {
        let x = self.names[node.inputs[0]].clone();
        let residual = node.inputs.get(1).map(|&more| self.names[more].clone());
        let channels = input.shape.channels;
        Ok(match &node.op {
            Op::Images => x,
            Op::Conv(conv) => {
                let y = self.conv(&x, conv, channels)?;
                self.finish(y, residual, conv.relu, out)
            }
            Op::Linear(linear) => {
                let y = self.linear(&x, linear, input)?;
                let y = self.finish(y, residual, false, if linear.gelu { None } else { out });
                if linear.gelu { self.gelu(&y, out) } else { y }
            }
            &Op::MaxPool { kernel, stride, pad } => {
                let [kernel, stride, pad] = [kernel, stride, pad].map(|n| [n as i64; 4]);
                let window = [
                    ("kernel_shape", Attribute::Ints(&kernel[..2])),
                    ("strides", Attribute::Ints(&stride[..2])),
                    ("pads", Attribute::Ints(&pad)),
                ];
                self.graph.node("MaxPool", &[&x], &window, out)
            }
            Op::GlobalMean => {
                let mean = self.graph.node("GlobalAveragePool", &[&x], &[], None);
                self.graph.node("Flatten", &[&mean], &[("axis", Attribute::Int(1))], out)
            }
            Op::Tokens { class_token, positions } => {
                self.tokens(&x, (class_token, positions), channels, node.shape.width, out)?
            }
            Op::LayerNorm { name, epsilon } => {
                let gain = self.parameter(&format!("{name}.weight"), &[channels])?;
                let shift = self.parameter(&format!("{name}.bias"), &[channels])?;
                let attributes = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(*epsilon))];
                self.graph.node("LayerNormalization", &[&x, &gain, &shift], &attributes, out)
            }
            &Op::Attention { heads } => self.attention(&x, heads, node.shape.channels, out),
            Op::FirstToken => {
                let zero = self.graph.integers(&[], &[0]);
                self.graph.node("Gather", &[&x, &zero], &[("axis", Attribute::Int(1))], out)
            }
        })
    }

    fn parameter(&mut self, name: &str, shape: &[usize]) -> Result<String> {
        Ok(self.graph.floats(name, shape, self.weights.get(name)?))
    }

    /// Residual and ReLU; the last of them, or nothing at all, has the name `out`.
    fn finish(&mut self, y: String, residual: Option<String>, relu: bool, out: Option<&str>) -> String {
        let y = match residual {
            Some(more) => self.graph.node("Add", &[&y, &more], &[], if relu { None } else { out }),
            None if !relu && out.is_some() => self.graph.node("Identity", &[&y], &[], out),
            None => y,
        };
        if relu { self.graph.node("Relu", &[&y], &[], out) } else { y }
    }

    fn conv(&mut self, x: &str, conv: &Conv, channels: usize) -> Result<String> {
        let shape = [conv.out, channels, conv.kernel, conv.kernel];
        let mut inputs = vec![x.to_owned(), self.parameter(&format!("{}.weight", conv.name), &shape)?];
        if conv.bias {
            inputs.push(self.parameter(&format!("{}.bias", conv.name), &[conv.out])?);
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let [kernel, stride, pad] = [conv.kernel, conv.stride, conv.pad].map(|n| [n as i64; 4]);
        let window = [
            ("kernel_shape", Attribute::Ints(&kernel[..2])),
            ("strides", Attribute::Ints(&stride[..2])),
            ("pads", Attribute::Ints(&pad)),
        ];
        let y = self.graph.node("Conv", &inputs, &window, None);
        let Some(norm) = &conv.norm else { return Ok(y) };
        let mut inputs = vec![y];
        for what in ["weight", "bias", "running_mean", "running_var"] {
            inputs.push(self.parameter(&format!("{norm}.{what}"), &[conv.out])?);
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let epsilon = [("epsilon", Attribute::Float(BATCH_NORM_EPSILON))];
        Ok(self.graph.node("BatchNormalization", &inputs, &epsilon, None))
    }

    fn linear(&mut self, x: &str, linear: &Linear, input: &Node) -> Result<String> {
        let (channels, out) = (input.shape.channels, linear.out);
        let bias = self.parameter(&linear.bias, &[out])?;
        if input.shape.pixels() == 1 {
            let weight = self.parameter(&linear.weight, &[out, channels])?;
            return Ok(self.graph.node("Gemm", &[x, &weight, &bias], &[("transB", Attribute::Int(1))], None));
        }
        // A product of tokens takes its matrix as `in x out`.
        let weight = self.weights.get(&linear.weight)?;
        let turned: Vec<f32> =
            (0..channels).flat_map(|c| (0..out).map(move |o| weight[o * channels + c])).collect();
        let weight = self.graph.floats(&linear.weight, &[channels, out], &turned);
        let y = self.graph.node("MatMul", &[x, &weight], &[], None);
        Ok(self.graph.node("Add", &[&y, &bias], &[], None))
    }

    /// `x / 2 * (1 + erf(x / sqrt(2)))`.
    fn gelu(&mut self, x: &str, out: Option<&str>) -> String {
        let mut constant = |value: f32| {
            let name = format!("gelu_{x}_{value}");
            self.graph.floats(&name, &[], &[value])
        };
        let (root, one, half) = (constant(std::f32::consts::SQRT_2), constant(1.0), constant(0.5));
        let scaled = self.graph.node("Div", &[x, &root], &[], None);
        let erf = self.graph.node("Erf", &[&scaled], &[], None);
        let sum = self.graph.node("Add", &[&erf, &one], &[], None);
        let product = self.graph.node("Mul", &[x, &sum], &[], None);
        self.graph.node("Mul", &[&product, &half], &[], out)
    }

    fn tokens(
        &mut self,
        x: &str,
        (class_token, positions): (&str, &str),
        channels: usize,
        tokens: usize,
        out: Option<&str>,
    ) -> Result<String> {
        let shape = self.graph.integers(&[3], &[0, channels as i64, -1]);
        let flat = self.graph.node("Reshape", &[x, &shape], &[], None);
        let patches = self.transposed(&flat, &[0, 2, 1], None);
        let range = [("start", Attribute::Int(0)), ("end", Attribute::Int(1))];
        let batch = self.graph.node("Shape", &[x], &range, None);
        let rest = self.graph.integers(&[2], &[1, channels as i64]);
        let shape = self.graph.node("Concat", &[&batch, &rest], &[("axis", Attribute::Int(0))], None);
        let class = self.parameter(class_token, &[1, 1, channels])?;
        let class = self.graph.node("Expand", &[&class, &shape], &[], None);
        let all = self.graph.node("Concat", &[&class, &patches], &[("axis", Attribute::Int(1))], None);
        let positions = self.parameter(positions, &[1, tokens, channels])?;
        Ok(self.graph.node("Add", &[&all, &positions], &[], out))
    }

    fn attention(&mut self, x: &str, heads: usize, channels: usize, out: Option<&str>) -> String {
        let parts = ["queries", "keys", "values"].map(|part| format!("{part}_{x}"));
        let axis = [("axis", Attribute::Int(2))];
        self.graph.node_with("Split", &[x], &axis, &parts.each_ref().map(String::as_str));
        let width = channels / heads;
        let shape = self.graph.integers(&[4], &[0, 0, heads as i64, width as i64]);
        let [q, k, v] = parts.map(|part| self.graph.node("Reshape", &[&part, &shape], &[], None));
        let q = self.transposed(&q, &[0, 2, 1, 3], None);
        let k = self.transposed(&k, &[0, 2, 3, 1], None);
        let v = self.transposed(&v, &[0, 2, 1, 3], None);
        let scale = self.graph.floats(&format!("scale_{x}"), &[], &[1.0 / (width as f32).sqrt()]);
        let q = self.graph.node("Mul", &[&q, &scale], &[], None);
        let scores = self.graph.node("MatMul", &[&q, &k], &[], None);
        let shares = self.graph.node("Softmax", &[&scores], &[("axis", Attribute::Int(-1))], None);
        let y = self.graph.node("MatMul", &[&shares, &v], &[], None);
        let y = self.transposed(&y, &[0, 2, 1, 3], None);
        let shape = self.graph.integers(&[3], &[0, 0, channels as i64]);
        self.graph.node("Reshape", &[&y, &shape], &[], out)
    }

    fn transposed(&mut self, x: &str, axes: &[i64], out: Option<&str>) -> String {
        self.graph.node("Transpose", &[x], &[("perm", Attribute::Ints(axes))], out)
    }
}
