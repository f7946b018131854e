//! An ONNX graph under construction: nodes, initializers, attributes.

use super::proto::Message;
use crate::infer::Dtype;
use crate::{Error, Result};
use half::f16;

/// Numbers of `TensorProto.DataType`.
const FLOAT: i64 = 1;
const INT64: i64 = 7;
const FLOAT16: i64 = 10;

/// An attribute of a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Float(f32),
}

/// A graph of tensors of one floating-point type.
pub(super) struct Graph {
    message: Message,
    element: i64,
    nodes: usize,
}

impl Graph {
    /// A graph that computes in `dtype`.
    ///
    /// # Errors
    /// `bfloat16`, which most of ONNX Runtime's kernels do not have.
    pub fn new(name: &str, dtype: Dtype) -> Result<Self> {
        let element = match dtype {
            Dtype::Float32 => FLOAT,
            Dtype::Float16 => FLOAT16,
            Dtype::Bfloat16 => {
                return Err(Error::new("an ONNX file cannot be written in bfloat16")
                    .hint("it can be written in: float32, float16"));
            }
        };
        let mut message = Message::default();
        message.text(2, name);
        Ok(Self { message, element, nodes: 0 })
    }

    /// Adds a node with one result; returns the result's name, which is `out` or made up.
    pub fn node(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
        out: Option<&str>,
    ) -> String {
        let out = out.map_or_else(|| format!("{}_{}", op.to_lowercase(), self.nodes), str::to_owned);
        self.node_with(op, inputs, attributes, &[&out]);
        out
    }

    /// Adds a node with results of these names.
    pub fn node_with(&mut self, op: &str, inputs: &[&str], attributes: &[(&str, Attribute)], outs: &[&str]) {
        let mut node = Message::default();
        for input in inputs {
            node.text(1, input);
        }
        for out in outs {
            node.text(2, out);
        }
        node.text(3, &format!("{op}_{}", self.nodes)).text(4, op);
        for (name, value) in attributes {
            let mut attribute = Message::default();
            attribute.text(1, name);
            match *value {
                Attribute::Float(value) => attribute.float(2, value).int(20, 1),
                Attribute::Int(value) => attribute.int(3, value).int(20, 2),
                Attribute::Ints(values) => {
                    for &value in values {
                        attribute.int(8, value);
                    }
                    attribute.int(20, 7)
                }
            };
            node.message(5, &attribute);
        }
        self.message.message(1, &node);
        self.nodes += 1;
    }

    /// Adds a constant of the graph's type; returns its name.
    pub fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = if self.element == FLOAT {
            values.iter().flat_map(|v| v.to_le_bytes()).collect()
        } else {
            values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect()
        };
        self.tensor(name, shape, self.element, &bytes)
    }

    /// Adds a constant of integers; returns its name.
    pub fn integers(&mut self, shape: &[usize], values: &[i64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.tensor(&format!("constant_{}", self.message.len()), shape, INT64, &bytes)
    }

    fn tensor(&mut self, name: &str, shape: &[usize], element: i64, bytes: &[u8]) -> String {
        let mut tensor = Message::default();
        for &axis in shape {
            tensor.int(1, axis as i64);
        }
        tensor.int(2, element).text(8, name);
        // The values themselves are copied once, into the graph.
        let mut head = Message::default();
        head.head(9, bytes.len());
        self.message.head(5, tensor.len() + head.len() + bytes.len());
        self.message.append(&tensor);
        self.message.append(&head);
        self.message.append_bytes(bytes);
        name.to_owned()
    }

    /// Declares the input, field 11, or the output, field 12: `batch` images of those axes.
    fn declare(&mut self, field: u32, name: &str, axes: &[usize]) {
        let mut shape = Message::default();
        let mut batch = Message::default();
        shape.message(1, batch.text(2, "batch"));
        for &axis in axes {
            let mut dimension = Message::default();
            shape.message(1, dimension.int(1, axis as i64));
        }
        let mut tensor = Message::default();
        tensor.int(1, self.element).message(2, &shape);
        let mut value_type = Message::default();
        value_type.message(1, &tensor);
        let mut value = Message::default();
        value.text(1, name).message(2, &value_type);
        self.message.message(field, &value);
    }

    /// The graph's bytes, with its input and output declared.
    pub fn finish(mut self, (input, axes): (&str, &[usize]), (output, width): (&str, usize)) -> Vec<u8> {
        self.declare(11, input, axes);
        self.declare(12, output, &[width]);
        self.message.into_bytes()
    }
}
