"""A linear probe on pooled pixels, the same as Rust's `linear-probe`: light, so that waiting for data shows.

    N x C x H x W ─▶ mean over each cell of an 8 x 8 grid ─▶ Linear 64·C→128

Cells are those of `torch.nn.AdaptiveAvgPool2d(8)`: cell `i` of `L` pixels begins at `i·L/8`, rounded down, and ends
at `(i+1)·L/8`, rounded up.
"""

import numpy as np

GRID = 8
EMBEDDING = 128


def shapes(channels):
    """Shapes of the parameters by PyTorch's names."""
    return {"fc.weight": (EMBEDDING, channels * GRID * GRID), "fc.bias": (EMBEDDING,)}


def torch_layers(channels):
    """Its layers by name."""
    from torch import nn

    return {
        "pool": nn.AdaptiveAvgPool2d(GRID),
        "flat": nn.Flatten(),
        "fc": nn.Linear(channels * GRID * GRID, EMBEDDING),
    }


def means(length):
    """The matrix that makes means of cells of an axis: `GRID x length`."""
    matrix = np.zeros((GRID, length), np.float32)
    for i, row in enumerate(matrix):
        cell = slice(i * length // GRID, -(-(i + 1) * length // GRID))
        row[cell] = 1 / (cell.stop - cell.start)
    return matrix


def jax_network(p, x):
    """Its output, of parameters and an N x C x H x W batch."""
    import jax.numpy as jnp

    height, width = x.shape[-2:]
    # Rows first, which leaves an eighth of the work for the columns; constants of the compiled function.
    cells = jnp.einsum("iy,ncyx->ncix", means(height), x) @ means(width).T
    return cells.reshape(x.shape[0], -1) @ p["fc.weight"].T + p["fc.bias"]
