//! ViT-B/16 as in torchvision (`torchvision.models.vit_b_16`): Dosovitskiy et al. 2020,
//! <https://arxiv.org/abs/2010.11929>.
//!
//! ```text
//! images ─▶ conv 16x16/16 ─▶ class token, positions ─▶ 12 encoder layers ─▶ norm ─▶ class token ─▶ linear
//! layer: x ─▶ norm ─▶ attention ─▶ + ─▶ norm ─▶ linear ─▶ GELU ─▶ linear ─▶ +
//! ```

use super::architecture::Architecture;
use super::network::{Builder, Conv, Linear, Network};
use crate::{Error, Result};

/// The entry in [`super::architectures`].
pub static VIT_B_16: Architecture = Architecture {
    name: "vit_b_16",
    about: "ViT-B/16, 86.6 million parameters, attention (torchvision)",
    input: [3, 224, 224],
    classes: 1000,
    build: |arch| {
        // The learned positions are those of 14 x 14 patches.
        if arch.input[1..] != [224, 224] {
            let [_, height, width] = arch.input;
            return Err(Error::new(format_args!(
                "vit_b_16 reads images of 224 x 224 pixels, not {height} x {width}"
            ))
            .hint("leave --input-shape out for vit_b_16"));
        }
        transformer(arch, Sizes { patch: 16, width: 768, heads: 12, mlp: 3072, layers: 12 })
    },
};

/// Added to the variance by every layer norm: torchvision's value for ViT.
const EPSILON: f32 = 1e-6;

/// Sizes of a vision transformer.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Numbers per token.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of the hidden layer of each perceptron.
    pub mlp: usize,
    /// Encoder layers.
    pub layers: usize,
}

/// A vision transformer of those sizes.
///
/// # Errors
/// Images smaller than a patch, a width that is no multiple of the heads.
pub fn transformer(arch: &Architecture, sizes: Sizes) -> Result<Network> {
    let mut b = Builder::new(arch.input);
    let projection = Conv {
        name: "conv_proj".into(),
        bias: true,
        norm: None,
        out: sizes.width,
        kernel: sizes.patch,
        stride: sizes.patch,
        pad: 0,
        relu: false,
    };
    let images = b.images();
    let patches = b.conv(images, projection, None)?;
    let mut x = b.tokens(patches, "class_token", "encoder.pos_embedding");
    for layer in 0..sizes.layers {
        let name = format!("encoder.layers.encoder_layer_{layer}");
        let in_proj = format!("{name}.self_attention.in_proj");
        let linear = |name: &str, out, gelu| Linear {
            weight: format!("{name}.weight"),
            bias: format!("{name}.bias"),
            out,
            gelu,
        };
        let y = b.layer_norm(x, format!("{name}.ln_1"), EPSILON);
        let qkv = Linear {
            weight: format!("{in_proj}_weight"),
            bias: format!("{in_proj}_bias"),
            out: 3 * sizes.width,
            gelu: false,
        };
        let y = b.linear(y, qkv, None)?;
        let y = b.attention(y, sizes.heads)?;
        x = b.linear(y, linear(&format!("{name}.self_attention.out_proj"), sizes.width, false), Some(x))?;
        let y = b.layer_norm(x, format!("{name}.ln_2"), EPSILON);
        let y = b.linear(y, linear(&format!("{name}.mlp.0"), sizes.mlp, true), None)?;
        x = b.linear(y, linear(&format!("{name}.mlp.3"), sizes.width, false), Some(x))?;
    }
    let x = b.layer_norm(x, "encoder.ln".into(), EPSILON);
    let token = b.first_token(x);
    let (weight, bias) = ("heads.head.weight".to_owned(), "heads.head.bias".to_owned());
    b.linear(token, Linear { weight, bias, out: arch.classes, gelu: false }, None)?;
    Ok(b.build())
}
