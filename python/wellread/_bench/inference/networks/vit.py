"""ViT-B/16 (Dosovitskiy et al. 2020), as torchvision has it: the norm before each part, the class token first.

Normalisation and softmax are computed in float32, whatever the type of the rest.
"""

import jax
import jax.numpy as jnp

LAYERS = 12
HEADS = 12
PATCH = 16
EPSILON = 1e-6


def parameters(arrays):
    """Torchvision's arrays, matrices as `inputs x outputs`."""

    def pair(weight, bias, turn=True):
        return (arrays[weight].T if turn else arrays[weight]), arrays[bias]

    def linear(name):
        return pair(f"{name}.weight", f"{name}.bias")

    def norm(name):
        return pair(f"{name}.weight", f"{name}.bias", turn=False)

    found = {
        # A convolution whose stride is its size is a product of patches (H x W x C) and a matrix.
        "patches": (
            arrays["conv_proj.weight"].transpose(2, 3, 1, 0).reshape(-1, len(arrays["conv_proj.bias"])),
            arrays["conv_proj.bias"],
        ),
        "class": arrays["class_token"],
        "position": arrays["encoder.pos_embedding"],
        "norm": norm("encoder.ln"),
        "head": linear("heads.head"),
    }
    for i in range(LAYERS):
        name = f"encoder.layers.encoder_layer_{i}"
        attention = f"{name}.self_attention"
        found[f"layer{i}"] = {
            "norm1": norm(f"{name}.ln_1"),
            "qkv": pair(f"{attention}.in_proj_weight", f"{attention}.in_proj_bias"),
            "out": linear(f"{attention}.out_proj"),
            "norm2": norm(f"{name}.ln_2"),
            "up": linear(f"{name}.mlp.0"),
            "down": linear(f"{name}.mlp.3"),
        }
    return found


def normalized(x, p):
    """Layer normalisation."""
    weight, bias = p
    wide = x.astype(jnp.float32)
    wide = wide - wide.mean(-1, keepdims=True)
    wide = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + EPSILON)
    return wide.astype(x.dtype) * weight + bias


def linear(x, p):
    """A matrix product and a summand."""
    return x @ p[0] + p[1]


def attention(x, layer):
    """Attention of every token to every token."""
    n, tokens, width = x.shape
    qkv = linear(x, layer["qkv"]).reshape(n, tokens, 3, HEADS, width // HEADS)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) * (width // HEADS) ** -0.5
    shares = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(x.dtype)
    return linear(jnp.einsum("nhqk,nkhd->nqhd", shares, v).reshape(n, tokens, width), layer["out"])


def forward(p, x):
    """Logits of images."""
    n, height, width, channels = x.shape
    rows, columns = height // PATCH, width // PATCH
    x = x.reshape(n, rows, PATCH, columns, PATCH, channels).transpose(0, 1, 3, 2, 4, 5)
    x = linear(x.reshape(n, rows * columns, PATCH * PATCH * channels), p["patches"])
    first = jnp.broadcast_to(p["class"], (n, 1, x.shape[-1]))
    x = jnp.concatenate([first, x], axis=1) + p["position"]
    for i in range(LAYERS):
        layer = p[f"layer{i}"]
        x = x + attention(normalized(x, layer["norm1"]), layer)
        hidden = jax.nn.gelu(linear(normalized(x, layer["norm2"]), layer["up"]), approximate=False)
        x = x + linear(hidden, layer["down"])
    return linear(normalized(x[:, 0], p["norm"]), p["head"])
