"""Numbers that the models of the loop share with those in Rust: initial weights, the target of training.

Weights are uniform in ±1/sqrt(fan in), drawn from SplitMix64 (Steele, Lea and Flood 2014), a stream per parameter.
The target is the mean of each channel times a fixed matrix of uniform numbers in ±1.
"""

import numpy as np

LEARNING_RATE = 0.01
TARGET_STREAM = 1000

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


def parameters(shapes, seed):
    """Initial weights by name; `shapes`: name and shape of each weight and then of its bias, as PyTorch has them."""
    found, fan_in = {}, 1
    for stream, (name, shape) in enumerate(shapes.items()):
        # A bias has the fan-in of the weights before it.
        if stream % 2 == 0:
            fan_in = int(np.prod(shape[1:]))
        found[name] = uniform(seed, stream, int(np.prod(shape)), fan_in**-0.5).reshape(shape)
    return found


def target_matrix(channels, width, seed):
    """From channel means to the target: `channels x width`."""
    return uniform(seed, TARGET_STREAM, channels * width, 1.0).reshape(channels, width)
