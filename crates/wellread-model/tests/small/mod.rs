//! A network that is small enough for tests.

use wellread_model::infer::{Architecture, resnet50};

/// A residual network of one bottleneck per stage, for images whose sides are no multiples of anything.
pub const RESNET: Architecture = Architecture {
    name: "small-resnet",
    about: "for tests",
    input: [3, 45, 70],
    classes: 70,
    build: |arch| resnet50::bottlenecks(arch, [1; 4]),
};
