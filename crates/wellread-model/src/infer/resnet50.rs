//! ResNet-50 as in torchvision (`torchvision.models.resnet50`): He et al. 2015,
//! <https://doi.org/10.1109/CVPR.2016.90>, with the stride in the 3x3 convolution ("v1.5").
//!
//! ```text
//! images ─▶ conv 7x7/2 ─▶ max pool 3x3/2 ─▶ 3+4+6+3 bottlenecks ─▶ mean ─▶ linear
//! bottleneck: x ─▶ 1x1 ─▶ 3x3/s ─▶ 1x1 ─▶ + ─▶ ReLU
//!             └───(1x1/s where shapes differ)──┘
//! ```

use super::architecture::Architecture;
use super::network::{Builder, Conv, Linear, Network, NodeId};
use crate::Result;

/// The entry in [`super::architectures`].
pub static RESNET50: Architecture = Architecture {
    name: "resnet50",
    about: "ResNet-50, 25.6 million parameters, convolutions (torchvision)",
    input: [3, 224, 224],
    classes: 1000,
    build: |arch| bottlenecks(arch, [3, 4, 6, 3]),
};

/// Channels of a bottleneck's result, as a multiple of its inner channels.
const EXPANSION: usize = 4;

/// A residual network of bottlenecks with `blocks` of them per stage.
///
/// # Errors
/// Images that are too small.
pub fn bottlenecks(arch: &Architecture, blocks: [usize; 4]) -> Result<Network> {
    let mut b = Builder::new(arch.input);
    let images = b.images();
    let mut x = b.conv(images, conv("conv1".into(), "bn1".into(), (64, 7, 2), true), None)?;
    x = b.max_pool(x, 3, 2, 1)?;
    for (stage, (blocks, inner)) in blocks.into_iter().zip([64, 128, 256, 512]).enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            x = bottleneck(&mut b, x, &format!("layer{}.{block}", stage + 1), inner, stride, block == 0)?;
        }
    }
    let mean = b.global_mean(x);
    let (weight, bias) = ("fc.weight".to_owned(), "fc.bias".to_owned());
    b.linear(mean, Linear { weight, bias, out: arch.classes, gelu: false }, None)?;
    Ok(b.build())
}

fn bottleneck(
    b: &mut Builder,
    x: NodeId,
    name: &str,
    inner: usize,
    stride: usize,
    reshape: bool,
) -> Result<NodeId> {
    let out = inner * EXPANSION;
    let layer = |number: usize, sizes, relu| {
        conv(format!("{name}.conv{number}"), format!("{name}.bn{number}"), sizes, relu)
    };
    let shortcut = if reshape {
        let (name, norm) = (format!("{name}.downsample.0"), format!("{name}.downsample.1"));
        b.conv(x, conv(name, norm, (out, 1, stride), false), None)?
    } else {
        x
    };
    let y = b.conv(x, layer(1, (inner, 1, 1), true), None)?;
    let y = b.conv(y, layer(2, (inner, 3, stride), true), None)?;
    b.conv(y, layer(3, (out, 1, 1), true), Some(shortcut))
}

/// A convolution without bias, padded as if to keep the size, with batch norm.
fn conv(name: String, norm: String, (out, kernel, stride): (usize, usize, usize), relu: bool) -> Conv {
    Conv { name, bias: false, norm: Some(norm), out, kernel, stride, pad: kernel / 2, relu }
}
