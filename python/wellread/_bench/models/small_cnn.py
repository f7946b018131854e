"""The small CNN's numbers, the same as in Rust's `small-cnn`: shapes, initial weights, the target of training.

    N x C x H x W ─▶ Conv 3x3 C→32 ─▶ ReLU ─▶ Conv 3x3 32→64 ─▶ ReLU ─▶ mean over the image ─▶ Linear 64→128

Weights are uniform in ±1/sqrt(fan in), drawn from SplitMix64 (Steele, Lea and Flood 2014), a stream per parameter.
The target is the mean of each channel times a fixed matrix of uniform numbers in ±1.
"""

import numpy as np

FEATURES = (32, 64)
KERNEL = 3
EMBEDDING = 128
LEARNING_RATE = 0.01
TARGET_STREAM = 1000
NAMES = ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc.weight", "fc.bias")

GAMMA = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def _mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(seed, stream, count, bound):
    """`count` floats in ±`bound`: stream number `stream` of `seed`."""
    first = int(_mix(np.array([(seed + GAMMA) & MASK], np.uint64))[0])
    state = first ^ ((stream * 0xD1342543DE82EF95) & MASK)
    states = np.uint64(state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GAMMA)
    unit = (_mix(states) >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)
    return (np.float32(2) * unit - np.float32(1)) * np.float32(bound)


def parameters(channels, seed):
    """Initial weights by PyTorch's names and layouts."""
    first, second = FEATURES
    shapes = (
        (first, channels, KERNEL, KERNEL),
        (first,),
        (second, first, KERNEL, KERNEL),
        (second,),
        (EMBEDDING, second),
        (EMBEDDING,),
    )
    found = {}
    for i, (name, shape) in enumerate(zip(NAMES, shapes, strict=True)):
        # A bias has the fan-in of the weights before it.
        fan_in = int(np.prod(shapes[i - i % 2][1:]))
        found[name] = uniform(seed, i, int(np.prod(shape)), fan_in**-0.5).reshape(shape)
    return found


def target_matrix(channels, width, seed):
    """From channel means to the target: `channels x width`."""
    return uniform(seed, TARGET_STREAM, channels * width, 1.0).reshape(channels, width)
