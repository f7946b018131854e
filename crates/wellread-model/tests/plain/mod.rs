//! Both architectures from their definitions, in double precision and as plainly as possible. There are
//! readers of the files that are tested, which share no code with their writers.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Encoder layers of the transformer that is tested.
pub const VIT_LAYERS: usize = 2;
/// Side of its patches, and its heads.
const PATCH: usize = 8;
const HEADS: usize = 2;

/// Parameters by name: shape and values.
pub type State = HashMap<String, (Vec<usize>, Vec<f64>)>;

/// All tensors of a safetensors file.
pub fn read(path: &Path) -> State {
    let bytes = std::fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let values =
        |data: &[u8]| data.as_chunks::<4>().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))).collect();
    file.iter().map(|(name, t)| (name.to_owned(), (t.shape().to_vec(), values(t.data())))).collect()
}

fn get<'a>(state: &'a State, name: &str) -> &'a [f64] {
    &state[name].1
}

/// Channels, rows, columns.
#[derive(Clone)]
pub struct Image {
    c: usize,
    h: usize,
    w: usize,
    v: Vec<f64>,
}

impl Image {
    pub fn new([c, h, w]: [usize; 3], values: &[f32]) -> Self {
        Self { c, h, w, v: values.iter().map(|&v| f64::from(v)).collect() }
    }

    /// `outside` beyond the border.
    fn at(&self, c: usize, y: isize, x: isize, outside: f64) -> f64 {
        if y < 0 || x < 0 || y >= self.h as isize || x >= self.w as isize {
            return outside;
        }
        self.v[(c * self.h + y as usize) * self.w + x as usize]
    }

    /// A window of `k` at steps of `s` over all of it: `value(channel, y, x)` of its upper left corner.
    fn windows(&self, c: usize, [k, s, p]: [usize; 3], value: impl Fn(usize, isize, isize) -> f64) -> Self {
        let (h, w) = ((self.h + 2 * p - k) / s + 1, (self.w + 2 * p - k) / s + 1);
        let corner = |i: usize| (i * s) as isize - p as isize;
        let value = &value;
        let v = (0..c)
            .flat_map(|c| (0..h).flat_map(move |y| (0..w).map(move |x| value(c, corner(y), corner(x)))));
        Self { c, h, w, v: v.collect() }
    }

    fn conv(&self, state: &State, name: &str, stride: usize, pad: usize) -> Self {
        let (shape, weight) = &state[&format!("{name}.weight")];
        let k = shape[2];
        self.windows(shape[0], [k, stride, pad], |out, y, x| {
            let mut sum = 0.0;
            for c in 0..self.c {
                for ky in 0..k {
                    for kx in 0..k {
                        let weight = weight[((out * self.c + c) * k + ky) * k + kx];
                        sum += weight * self.at(c, y + ky as isize, x + kx as isize, 0.0);
                    }
                }
            }
            sum
        })
    }

    fn norm(mut self, state: &State, name: &str) -> Self {
        let part = |what: &str| get(state, &format!("{name}.{what}"));
        let (gain, shift, mean, var) =
            (part("weight"), part("bias"), part("running_mean"), part("running_var"));
        let pixels = self.h * self.w;
        for (i, v) in self.v.iter_mut().enumerate() {
            let c = i / pixels;
            *v = (*v - mean[c]) / (var[c] + 1e-5).sqrt() * gain[c] + shift[c];
        }
        self
    }

    fn relu(mut self) -> Self {
        self.v.iter_mut().for_each(|v| *v = v.max(0.0));
        self
    }
}

fn linear(x: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let row = |(w, b): (&[f64], &f64)| b + w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
    weight.chunks_exact(x.len()).zip(bias).map(row).collect()
}

/// One bottleneck per stage.
pub fn resnet(state: &State, image: &Image) -> Vec<f64> {
    let x = image.conv(state, "conv1", 2, 3).norm(state, "bn1").relu();
    let mut x = x.windows(x.c, [3, 2, 1], |c, y, x0| {
        let under = (0..9).map(|i| x.at(c, y + i / 3, x0 + i % 3, f64::NEG_INFINITY));
        under.fold(f64::NEG_INFINITY, f64::max)
    });
    for stage in 1..=4 {
        let (name, stride) = (format!("layer{stage}.0"), if stage == 1 { 1 } else { 2 });
        let layer = |x: &Image, n: usize, stride, pad| {
            x.conv(state, &format!("{name}.conv{n}"), stride, pad).norm(state, &format!("{name}.bn{n}"))
        };
        let y = layer(&layer(&x, 1, 1, 0).relu(), 2, stride, 1).relu();
        let mut y = layer(&y, 3, 1, 0);
        let shortcut = x.conv(state, &format!("{name}.downsample.0"), stride, 0);
        let shortcut = shortcut.norm(state, &format!("{name}.downsample.1"));
        y.v.iter_mut().zip(&shortcut.v).for_each(|(y, s)| *y += s);
        x = y.relu();
    }
    let pixels = x.h * x.w;
    let means: Vec<f64> = x.v.chunks_exact(pixels).map(|c| c.iter().sum::<f64>() / pixels as f64).collect();
    linear(&means, get(state, "fc.weight"), get(state, "fc.bias"))
}

fn layer_norm(x: &[f64], state: &State, name: &str) -> Vec<f64> {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    let (gain, shift) = (get(state, &format!("{name}.weight")), get(state, &format!("{name}.bias")));
    (0..x.len()).map(|i| (x[i] - mean) / (variance + 1e-6).sqrt() * gain[i] + shift[i]).collect()
}

/// A transformer of [`VIT_LAYERS`] layers.
pub fn vit(state: &State, image: &Image) -> Vec<f64> {
    let patches = image.conv(state, "conv_proj", PATCH, 0);
    let (bias, pixels, width) = (get(state, "conv_proj.bias"), patches.h * patches.w, patches.c);
    let mut tokens = vec![get(state, "class_token").to_vec()];
    tokens.extend(
        (0..pixels).map(|p| (0..width).map(|c| patches.v[c * pixels + p] + bias[c]).collect::<Vec<_>>()),
    );
    for (token, position) in tokens.iter_mut().zip(get(state, "encoder.pos_embedding").chunks_exact(width)) {
        token.iter_mut().zip(position).for_each(|(t, p)| *t += p);
    }
    for layer in 0..VIT_LAYERS {
        let name = format!("encoder.layers.encoder_layer_{layer}");
        let dense = |x: &[f64], weight: &str, bias: &str| {
            linear(x, get(state, &format!("{name}.{weight}")), get(state, &format!("{name}.{bias}")))
        };
        let (weight, bias) = ("self_attention.in_proj_weight", "self_attention.in_proj_bias");
        let qkv = |x: &Vec<f64>| dense(&layer_norm(x, state, &format!("{name}.ln_1")), weight, bias);
        let qkv: Vec<Vec<f64>> = tokens.iter().map(qkv).collect();
        let size = width / HEADS;
        for (t, token) in tokens.iter_mut().enumerate() {
            let mut mixed = vec![0.0; width];
            for head in 0..HEADS {
                let part = |token: usize, which: usize| &qkv[token][which * width + head * size..][..size];
                let score = |other: usize| {
                    let product: f64 = part(t, 0).iter().zip(part(other, 1)).map(|(q, k)| q * k).sum();
                    (product / (size as f64).sqrt()).exp()
                };
                let scores: Vec<f64> = (0..qkv.len()).map(score).collect();
                let sum: f64 = scores.iter().sum();
                for (other, score) in scores.iter().enumerate() {
                    for (c, v) in part(other, 2).iter().enumerate() {
                        mixed[head * size + c] += score / sum * v;
                    }
                }
            }
            let more = dense(&mixed, "self_attention.out_proj.weight", "self_attention.out_proj.bias");
            token.iter_mut().zip(more).for_each(|(t, m)| *t += m);
        }
        for token in &mut tokens {
            let x = layer_norm(token, state, &format!("{name}.ln_2"));
            let mut hidden = dense(&x, "mlp.0.weight", "mlp.0.bias");
            for v in &mut hidden {
                *v *= 0.5 * (1.0 + libm::erf(*v / 2f64.sqrt()));
            }
            let more = dense(&hidden, "mlp.3.weight", "mlp.3.bias");
            token.iter_mut().zip(more).for_each(|(t, m)| *t += m);
        }
    }
    let class = layer_norm(&tokens[0], state, "encoder.ln");
    linear(&class, get(state, "heads.head.weight"), get(state, "heads.head.bias"))
}

/// The parts of an ONNX file that are looked at.
#[derive(Default)]
pub struct Onnx {
    pub opset: u64,
    /// Name and fixed axes.
    pub input: (String, Vec<u64>),
    pub output: (String, Vec<u64>),
    pub operators: Vec<String>,
    /// Names that each node reads and gives.
    pub nodes: Vec<(Vec<String>, Vec<String>)>,
    /// Axes and bytes by name.
    pub constants: BTreeMap<String, (Vec<u64>, Vec<u8>)>,
}

/// A field of a protobuf message: its number, and its value as an integer or as bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => fields.push((key >> 3, varint(&mut bytes), &[][..])),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                fields.push((key >> 3, 0, value));
                bytes = rest;
            }
            5 => bytes = &bytes[4..],
            other => panic!("wire type {other} is not used by ONNX"),
        }
    }
    fields
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Reads an ONNX file by the field numbers of `onnx.proto3`.
pub fn onnx(bytes: &[u8]) -> Onnx {
    let mut model = Onnx::default();
    let find = |bytes, wanted| fields(bytes).into_iter().find(|f| f.0 == wanted).unwrap().2;
    let value_info = |bytes| {
        let shape = find(find(find(bytes, 2), 1), 2);
        let axes = fields(shape).into_iter().flat_map(|axis| fields(axis.2)).filter(|f| f.0 == 1);
        (text(find(bytes, 1)), axes.map(|f| f.1).collect())
    };
    for (field, _, value) in fields(bytes) {
        match field {
            8 => model.opset = fields(value).iter().find(|f| f.0 == 2).unwrap().1,
            7 => {
                for (field, _, value) in fields(value) {
                    let all = |wanted| fields(value).into_iter().filter(move |f| f.0 == wanted);
                    match field {
                        1 => {
                            model.operators.push(text(find(value, 4)));
                            let names = |wanted| all(wanted).map(|f| text(f.2)).collect();
                            model.nodes.push((names(1), names(2)));
                        }
                        5 => {
                            let tensor = (all(1).map(|f| f.1).collect(), find(value, 9).to_vec());
                            model.constants.insert(text(find(value, 8)), tensor);
                        }
                        11 => model.input = value_info(value),
                        12 => model.output = value_info(value),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    model
}
