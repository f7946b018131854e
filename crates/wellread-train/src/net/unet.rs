//! The U-Net (Ronneberger et al. 2015; in three dimensions Cicek et al. 2016).
//!
//! ```text
//! image ─▶ encoder.0 ──────────── skip ───────────▶ join ─▶ decoder.0 ─▶ head (1 x 1) ─▶ logits
//!             │ pool                                 ▲ double
//!             ▼                                      │
//!          encoder.1 ───── skip ──▶ join ─▶ decoder.1
//!             │ pool                 ▲ double
//!             ▼                      │
//!          encoder.2 (bottom) ───────┘               a level is two blocks of convolution 3 x 3 (x 3), norm, ReLU
//! ```
//!
//! Level `l` has `width * 2^l` channels. Sizes must be multiples of `2^depth`; [`Unet::logits`] pads others by
//! repeating the edge and cuts the result.

use super::block::{Block, BlockSpec, Tape};
use super::resize::{double_and_join, pool, split_and_halve, unpool};
use super::{Network, NormKind, Param, Tensor};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wellread_store::words::counted;

/// The parts of a U-Net.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnetSpec {
    /// 2 or 3.
    pub dimensions: usize,
    /// Channels of the images.
    pub c_in: usize,
    /// Channels of the result.
    pub c_out: usize,
    /// Channels of the first level.
    pub width: usize,
    /// How often the size is halved.
    pub depth: usize,
    /// Normalisation after each convolution.
    pub norm: NormKind,
}

impl UnetSpec {
    const fn planes(&self) -> bool {
        self.dimensions == 3
    }

    fn channels(&self, level: usize) -> f64 {
        self.width as f64 * 2f64.powi(level as i32)
    }

    /// Number of what is learnt: in floating point, since an absurd width must be counted too.
    pub fn parameters(&self) -> f64 {
        let taps = if self.planes() { 27.0 } else { 9.0 };
        let norm = if self.norm == NormKind::None { 1.0 } else { 3.0 };
        let block = |c_in: f64, c_out: f64| c_in * c_out * taps + norm * c_out;
        let level = |c_in: f64, c: f64| block(c_in, c) + block(c, c);
        let down: f64 = (0..=self.depth)
            .map(|l| level(if l == 0 { self.c_in as f64 } else { self.channels(l - 1) }, self.channels(l)))
            .sum();
        let up: f64 = (0..self.depth).map(|l| level(3.0 * self.channels(l), self.channels(l))).sum();
        down + up + (self.channels(0) + 1.0) * self.c_out as f64
    }

    /// Bytes of memory that a training step on `pixels` pixels takes (batch size times those of a patch), from above.
    pub fn training_bytes(&self, pixels: f64) -> f64 {
        // Each block keeps its result and its normalised values, each join its result; the backward pass keeps half as
        // much again.
        let kept = if self.norm == NormKind::None { 1.0 } else { 2.0 };
        let shrink = 2f64.powi(-(self.dimensions as i32));
        let floats: f64 = (0..=self.depth)
            .map(|l| {
                let joined = if l < self.depth { 3.0 + 2.0 * kept } else { 0.0 };
                // In three dimensions three planes are stacked on the way back.
                let stacked = if self.planes() { 9.0 } else { 3.0 };
                self.channels(l) * (2.0 * kept + joined + stacked) * shrink.powi(l as i32)
            })
            .sum();
        4.0 * (floats * pixels + 5.0 * self.parameters())
    }
}

/// A U-Net with its parameters.
#[derive(Clone, Debug)]
pub struct Unet {
    spec: UnetSpec,
    /// Levels from the top, the bottom last; two blocks each.
    encoder: Vec<[Block; 2]>,
    /// Levels from the top.
    decoder: Vec<[Block; 2]>,
    head: Block,
}

/// The values of a forward pass that [`Unet::backward`] needs.
pub struct Pass {
    /// Result of the network, `N x D x H x W x c_out`, of the images' own size.
    pub logits: Tensor,
    /// Size with padding.
    padded: [usize; 3],
    encoder: Vec<[Tape; 2]>,
    /// The pixels that the pooling took, for each level but the last.
    pooled: Vec<Vec<u8>>,
    /// From the bottom up.
    decoder: Vec<[Tape; 2]>,
    head: Tape,
}

impl Unet {
    /// A network whose weights are drawn from the seed.
    ///
    /// # Errors
    /// Sizes that make no sense.
    pub fn new(spec: UnetSpec, seed: u64) -> Result<Self> {
        ensure!(
            matches!(spec.dimensions, 2 | 3),
            "model.dimensions is {}: a U-Net has 2 or 3",
            spec.dimensions
        );
        ensure!(
            spec.width > 0 && spec.c_in > 0 && spec.c_out > 0,
            "model.width and the numbers of channels must be at least 1"
        );
        ensure!((1..=8).contains(&spec.depth), "model.depth is {}: choose 1 to 8", spec.depth);
        let mut stream = 0;
        let mut level = |name: String, c_in: usize, c: usize| {
            [(0, c_in), (1, c)].map(|(i, c_in)| {
                stream += 1;
                let block = BlockSpec {
                    c_in,
                    c_out: c,
                    kernel: 3,
                    planes: spec.planes(),
                    norm: spec.norm,
                    relu: true,
                };
                Block::new(&format!("{name}.{i}"), block, [seed, stream])
            })
        };
        let c = |l: usize| spec.width << l;
        let encoder: Vec<_> = (0..=spec.depth)
            .map(|l| level(format!("encoder.{l}"), if l == 0 { spec.c_in } else { c(l - 1) }, c(l)))
            .collect();
        let decoder: Vec<_> =
            (0..spec.depth).map(|l| level(format!("decoder.{l}"), c(l) + c(l + 1), c(l))).collect();
        let head = BlockSpec {
            c_in: spec.width,
            c_out: spec.c_out,
            kernel: 1,
            planes: spec.planes(),
            norm: NormKind::None,
            relu: false,
        };
        Ok(Self { spec, encoder, decoder, head: Block::new("head", head, [seed, 0]) })
    }

    /// Its parts.
    pub const fn spec(&self) -> &UnetSpec {
        &self.spec
    }

    /// Pixels by which a result depends on its surroundings along each axis that is convolved: tiles overlap by as
    /// many.
    pub const fn reach(&self) -> usize {
        // Two convolutions on the way down and two on the way up per level, each one pixel of that level.
        let mut reach = 0;
        let mut level = 0;
        while level < self.spec.depth {
            reach += 4 << level;
            level += 1;
        }
        // The bottom, and the shift by pooling and doubling.
        reach + (2 << self.spec.depth) + (1 << self.spec.depth)
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.encoder.iter().chain(&self.decoder).flatten().chain([&self.head])
    }

    /// The size that images of `size` (D, H, W) are padded to.
    pub fn padded_size(&self, [d, h, w]: [usize; 3]) -> [usize; 3] {
        let step = 1 << self.spec.depth;
        let up = |n: usize| n.next_multiple_of(step);
        [if self.spec.planes() { up(d) } else { d }, up(h), up(w)]
    }

    fn check(&self, x: &Tensor) -> Result<()> {
        ensure!(
            x.channels() == self.spec.c_in && !x.data.is_empty(),
            "the images have {}, the model takes {}",
            counted(x.channels(), "channel"),
            self.spec.c_in
        );
        Ok(())
    }

    /// Images padded to a size that can be halved.
    fn pad(&self, x: &Tensor) -> Tensor {
        let size = [x.shape[1], x.shape[2], x.shape[3]];
        let padded = self.padded_size(size);
        if padded == size { x.clone() } else { x.window([0, 0, 0], padded) }
    }

    /// Forward pass for training.
    ///
    /// # Errors
    /// Other channels than the model's.
    pub fn forward(&mut self, x: &Tensor) -> Result<Pass> {
        self.check(x)?;
        let planes = self.spec.planes();
        let size = [x.shape[1], x.shape[2], x.shape[3]];
        let padded = self.padded_size(size);
        let mut at = Arc::new(self.pad(x));
        let (mut encoder, mut pooled, mut decoder) = (vec![], vec![], vec![]);
        let run = |blocks: &mut [Block; 2], x: Arc<Tensor>| -> Result<[Tape; 2]> {
            let first = blocks[0].train(x)?;
            let second = blocks[1].train(first.output())?;
            Ok([first, second])
        };
        for (l, blocks) in self.encoder.iter_mut().enumerate() {
            let tapes = run(blocks, at)?;
            at = tapes[1].output();
            encoder.push(tapes);
            if l < self.spec.depth {
                let (smaller, which) = pool(&at, planes);
                at = Arc::new(smaller);
                pooled.push(which);
            }
        }
        for (l, blocks) in self.decoder.iter_mut().enumerate().rev() {
            let joined = double_and_join(&at, &encoder[l][1].output(), planes);
            let tapes = run(blocks, Arc::new(joined))?;
            at = tapes[1].output();
            decoder.push(tapes);
        }
        let head = self.head.train(at)?;
        let full = head.output();
        let logits = if padded == size { (*full).clone() } else { full.window([0, 0, 0], size) };
        Ok(Pass { logits, padded, encoder, pooled, decoder, head })
    }

    /// Adds to the gradients of all parameters, given that of the logits.
    ///
    /// # Errors
    /// A gradient of another shape than the logits.
    pub fn backward(&mut self, pass: Pass, gradient: &Tensor) -> Result<()> {
        ensure!(gradient.shape == pass.logits.shape, "the gradient does not have the shape of the logits");
        let planes = self.spec.planes();
        let back = |blocks: &mut [Block; 2], tapes: [Tape; 2], gradient, wanted| -> Result<Option<Tensor>> {
            let [first, second] = tapes;
            let between = blocks[1].backward(&second, gradient, true)?.unwrap_or_default();
            // Freed as soon as it is not needed: activations are most of the memory.
            drop(second);
            blocks[0].backward(&first, between, wanted)
        };
        let Pass { padded, encoder, mut pooled, decoder, head, .. } = pass;
        let mut gradient = self.head.backward(&head, gradient.padded(padded), true)?.unwrap_or_default();
        drop(head);
        let mut skips = vec![];
        for (l, tapes) in decoder.into_iter().rev().enumerate() {
            let c_skip = self.encoder[l][1].c_out();
            let joined = back(&mut self.decoder[l], tapes, gradient, true)?.unwrap_or_default();
            let (below, skip) = split_and_halve(&joined, c_skip, planes);
            gradient = below;
            skips.push(skip);
        }
        for (l, tapes) in encoder.into_iter().enumerate().rev() {
            if let Some(which) = if l < self.spec.depth { pooled.pop() } else { None } {
                gradient = unpool(&gradient, &which, tapes[1].output().shape, planes);
                if let Some(skip) = skips.pop() {
                    gradient.data.iter_mut().zip(skip.data).for_each(|(sum, g)| *sum += g);
                }
            }
            gradient = back(&mut self.encoder[l], tapes, gradient, l > 0)?.unwrap_or_default();
        }
        Ok(())
    }

    /// Result for inference, of the images' own size.
    ///
    /// # Errors
    /// Other channels than the model's.
    pub fn logits(&self, x: &Tensor) -> Result<Tensor> {
        self.check(x)?;
        let planes = self.spec.planes();
        let size = [x.shape[1], x.shape[2], x.shape[3]];
        let run = |blocks: &[Block; 2], x: &Tensor| blocks[1].infer(&blocks[0].infer(x)?);
        let mut skips = vec![];
        let mut at = self.pad(x);
        for (l, blocks) in self.encoder.iter().enumerate() {
            at = run(blocks, &at)?;
            if l < self.spec.depth {
                let (smaller, _) = pool(&at, planes);
                skips.push(std::mem::replace(&mut at, smaller));
            }
        }
        for (blocks, skip) in self.decoder.iter().rev().zip(skips.into_iter().rev()) {
            at = run(blocks, &double_and_join(&at, &skip, planes))?;
        }
        let full = self.head.infer(&at)?;
        Ok(if self.padded_size(size) == size { full } else { full.window([0, 0, 0], size) })
    }
}

impl Network for Unet {
    fn params(&self) -> impl Iterator<Item = &Param> {
        self.blocks().flat_map(Block::params)
    }

    fn params_mut(&mut self) -> impl Iterator<Item = &mut Param> {
        let levels = self.encoder.iter_mut().chain(&mut self.decoder).flatten();
        levels.chain([&mut self.head]).flat_map(|block| block.params_mut().iter_mut())
    }
}
