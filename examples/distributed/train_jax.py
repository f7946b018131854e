"""Train on several machines with JAX: a process on each, and batches that are arrays over the devices of all.

On each of two nodes, of which HOST is the first:

    python train_jax.py set/images.parquet --coordinator HOST:29400 --processes 2 --process 0

and ``--process 1`` on the second.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
import wellread

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("images", help="a set of images with two channels or more, at a path that all nodes have")
parser.add_argument("--coordinator", required=True, metavar="HOST:PORT", help="of the first process")
parser.add_argument("--processes", type=int, required=True, help="one on each node")
parser.add_argument("--process", type=int, required=True, help="this one, from 0 on")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--written-rows", type=Path, metavar="FOLDER", help="where each process writes its rows")
options = parser.parse_args()
with wellread.Dataset(options.images) as dataset:
    shape = dataset.image_shape(0)
if len(shape) != 3 or shape[0] < 2:
    # The model learns the second channel from the first.
    parser.error(f"{options.images}: images are {shape}, and must be (C, Y, X) with two channels or more")

jax.distributed.initialize(options.coordinator, options.processes, options.process)
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("images",))
loader = wellread.DataLoader(
    options.images, 4, shuffle=True, seed=42, num_workers=2, as_="jax", scale=(0, 4000),
    # JAX tells the ranks; that each is on a node of its own, it does not.
    shard="local", nodes=options.processes,
    device=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("images")),
    drop_last=True,  # one shape for all batches, so jit compiles once
)  # fmt: skip


@jax.jit
def step(weights, pixels):
    """The second channel of each image from the first, by a factor and a summand."""

    def cost(weights):
        return ((weights["factor"] * pixels[:, 0] + weights["summand"] - pixels[:, 1]) ** 2).mean()

    loss, gradients = jax.value_and_grad(cost)(weights)
    return jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, gradients), loss


weights = {"factor": np.float32(0), "summand": np.float32(0)}
for epoch in range(options.epochs):
    for pixels in loader:  # (4 * processes, C, Y, X), of which this process has read 4
        weights, loss = step(weights, pixels)
    if options.process == 0:
        print(f"epoch {epoch}: loss {float(loss):.4f}", flush=True)
if options.written_rows:
    seen = {epoch: loader.rows(epoch) for epoch in range(options.epochs)}
    (options.written_rows / f"{options.process}.json").write_text(json.dumps(seen))
jax.distributed.shutdown()
