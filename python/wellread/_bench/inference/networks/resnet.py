"""ResNet-50 (He et al. 2015), as torchvision has it: the stride of a block is in its 3 x 3 convolution.

Batch normalisation of inference is a factor and a summand per channel, computed in float64 when the weights are
loaded. XLA fuses both with the ReLU that follows.
"""

import jax
import jax.numpy as jnp
import numpy as np

BLOCKS = (3, 4, 6, 3)
EPSILON = 1e-5
AXES = ("NHWC", "HWIO", "NHWC")


def parameters(arrays):
    """Weights (HWIO), factors and summands."""

    def normed(conv, norm):
        gamma, beta, mean, variance = (
            arrays[f"{norm}.{part}"].astype(np.float64) for part in ("weight", "bias", "running_mean", "running_var")
        )
        factor = gamma / np.sqrt(variance + EPSILON)
        weight = arrays[f"{conv}.weight"].transpose(2, 3, 1, 0)
        return weight, factor.astype(np.float32), (beta - mean * factor).astype(np.float32)

    found = {"stem": normed("conv1", "bn1"), "fc": (arrays["fc.weight"].T, arrays["fc.bias"])}
    for stage, blocks in enumerate(BLOCKS, 1):
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            layer = {f"conv{i}": normed(f"{name}.conv{i}", f"{name}.bn{i}") for i in (1, 2, 3)}
            if block == 0:
                layer["shortcut"] = normed(f"{name}.downsample.0", f"{name}.downsample.1")
            found[name] = layer
    return found


def conv(x, p, stride=1):
    """A convolution that keeps the size, or halves it, and the normalisation after it."""
    weight, factor, summand = p
    padding = [(weight.shape[0] // 2,) * 2, (weight.shape[1] // 2,) * 2]
    x = jax.lax.conv_general_dilated(x, weight, (stride, stride), padding, dimension_numbers=AXES)
    return x * factor + summand


def forward(p, x):
    """Logits of images."""
    x = jax.nn.relu(conv(x, p["stem"], 2))
    least = jnp.array(-jnp.inf, x.dtype)
    x = jax.lax.reduce_window(x, least, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])
    for stage, blocks in enumerate(BLOCKS, 1):
        for block in range(blocks):
            layer = p[f"layer{stage}.{block}"]
            stride = 2 if stage > 1 and block == 0 else 1
            y = jax.nn.relu(conv(x, layer["conv1"]))
            y = jax.nn.relu(conv(y, layer["conv2"], stride))
            y = conv(y, layer["conv3"])
            shortcut = conv(x, layer["shortcut"], stride) if "shortcut" in layer else x
            x = jax.nn.relu(y + shortcut)
    weight, bias = p["fc"]
    return x.mean((1, 2)) @ weight + bias
