"""The small CNN, the same as Rust's `small-cnn`.

N x C x H x W ─▶ Conv 3x3 C→32 ─▶ ReLU ─▶ Conv 3x3 32→64 ─▶ ReLU ─▶ mean over the image ─▶ Linear 64→128
"""

FEATURES = (32, 64)
KERNEL = 3
EMBEDDING = 128


def shapes(channels):
    """Shapes of the parameters by PyTorch's names."""
    first, second = FEATURES
    return {
        "conv1.weight": (first, channels, KERNEL, KERNEL),
        "conv1.bias": (first,),
        "conv2.weight": (second, first, KERNEL, KERNEL),
        "conv2.bias": (second,),
        "fc.weight": (EMBEDDING, second),
        "fc.bias": (EMBEDDING,),
    }


def torch_layers(channels):
    """Its layers by name."""
    from torch import nn

    first, second = FEATURES
    return {
        "conv1": nn.Conv2d(channels, first, KERNEL, padding=1),
        "relu1": nn.ReLU(),
        "conv2": nn.Conv2d(first, second, KERNEL, padding=1),
        "relu2": nn.ReLU(),
        "pool": nn.AdaptiveAvgPool2d(1),
        "flat": nn.Flatten(),
        "fc": nn.Linear(second, EMBEDDING),
    }


def jax_network(p, x):
    """Its output, of parameters and an N x C x H x W batch."""
    import jax

    def conv(x, layer):
        axes = ("NCHW", "OIHW", "NCHW")
        x = jax.lax.conv_general_dilated(x, p[f"{layer}.weight"], (1, 1), "SAME", dimension_numbers=axes)
        return jax.nn.relu(x + p[f"{layer}.bias"][:, None, None])

    x = conv(conv(x, "conv1"), "conv2").mean((2, 3))
    return x @ p["fc.weight"].T + p["fc.bias"]
