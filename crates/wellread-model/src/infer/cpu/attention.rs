//! Softmax attention over blocked activations: a head of 64 numbers is a block.
//!
//! ```text
//! queries x keys' ─▶ scores (tokens x tokens, in blocks) ─▶ softmax ─▶ x values
//! ```
//!
//! Keys are turned into panels first; values lie as a panel already. One task is one head of one image, whose
//! scores stay in the cache.

use super::layout::{BLOCK, Layout};
use super::pointwise::softmax;
use super::product::{Task, Window, runs};
use pulp::Arch;
use rayon::prelude::*;

/// Arrays of one task, reused from head to head.
#[derive(Default)]
struct Scratch {
    keys: Vec<f32>,
    values: Vec<f32>,
    scores: Vec<f32>,
}

/// Attention of `heads` heads of [`BLOCK`] numbers; `input` has queries, keys and values one after the other.
pub(super) fn attention(batch: usize, heads: usize, tokens: usize, input: &[f32], out: &mut [f32]) {
    let size = tokens * BLOCK;
    let part = |which: usize, head: usize, image: usize| {
        &input[((which * heads + head) * batch + image) * size..][..size]
    };
    out.par_chunks_exact_mut(size).enumerate().for_each_init(Scratch::default, |scratch, (number, out)| {
        let (head, image) = (number / batch, number % batch);
        one_head(scratch, tokens, [0, 1, 2].map(|which| part(which, head, image)), out);
    });
}

fn one_head(scratch: &mut Scratch, tokens: usize, [queries, keys, values]: [&[f32]; 3], out: &mut [f32]) {
    let arch = Arch::new();
    let panels = tokens.div_ceil(BLOCK);
    let layout = |channels| Layout { channels, block: BLOCK, height: 1, width: tokens, pad: 0 };
    let (numbers, scores_layout) = (layout(BLOCK), layout(tokens));
    let Scratch { keys: keys_panels, values: values_panel, scores } = scratch;

    keys_panels.resize(panels * BLOCK * BLOCK, 0.0);
    for (token, key) in keys.chunks_exact(BLOCK).enumerate() {
        let panel = &mut keys_panels[token / BLOCK * BLOCK * BLOCK..][..BLOCK * BLOCK];
        for (row, &value) in panel.chunks_exact_mut(BLOCK).zip(key) {
            row[token % BLOCK] = value;
        }
    }
    // Rows beyond the last token stay zero; their scores are zero too.
    values_panel.resize(panels * BLOCK * BLOCK, 0.0);
    values_panel[..values.len()].copy_from_slice(values);

    let product = |weights: &[f32], input: &[f32], from: &Layout, to: &Layout, out: &mut [f32]| {
        arch.dispatch(Task {
            window: Window::POINT,
            weights,
            bias: &[0.0; BLOCK],
            input,
            runs: &runs(1, from, Window::POINT),
            from,
            to,
            pixels: 0..tokens,
            start: 0,
            residual: None,
            relu: false,
            out,
        });
    };
    scores.resize(panels * tokens * BLOCK, 0.0);
    for (panel, scores) in
        keys_panels.chunks_exact(BLOCK * BLOCK).zip(scores.chunks_exact_mut(tokens * BLOCK))
    {
        product(panel, queries, &numbers, &scores_layout, scores);
    }
    softmax(arch, scores, (tokens, tokens), 1.0 / (BLOCK as f32).sqrt());
    product(values_panel, scores, &scores_layout, &numbers, out);
}
