"""Train on several machines with Ray Train: Ray starts the ranks on all nodes, and tells each its rank and node.

    RAY_ADDRESS=10.0.0.1:6379 python train_ray.py set/images.parquet --workers 4

on a machine of a running cluster. Without the variable, Ray starts itself on this machine. It needs ``ray[train]``.
"""

import argparse
import json
from pathlib import Path

import ray
import ray.train
import ray.train.torch
import torch
import wellread
from torch import nn

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("images", help="a set of images with two channels or more, at a path that all nodes have")
parser.add_argument("--workers", type=int, default=2, help="ranks, equally many on each node")
parser.add_argument("--cpus-per-worker", type=float, default=1, help="processors of the cluster that a rank takes")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--written-rows", type=Path, metavar="FOLDER", help="where each rank writes its rows")


def everywhere(path):
    """A path as ranks see it, whose working folder is another one. An address stays as it is."""
    return path if "://" in path else str(Path(path).resolve())


def train(config):
    """The work of each rank."""
    rank = ray.train.get_context().get_world_rank()
    loader = wellread.DataLoader(
        config["images"], 4, shuffle=True, seed=42, num_workers=1, as_="torch", scale=(0, 4000), shard="local",
        indices=True,
    )  # fmt: skip
    torch.manual_seed(0)
    # The model learns the second channel of each image from the first.
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
    model = ray.train.torch.prepare_model(model)
    device = ray.train.torch.get_device()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    seen = {}
    for epoch in range(config["epochs"]):
        for pixels, rows in loader:
            pixels = pixels.to(device)
            loss = nn.functional.mse_loss(model(pixels[:, :1]), pixels[:, 1:2])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.setdefault(epoch, []).extend(rows.tolist())
        ray.train.report({"loss": loss.item()})
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
    if config["log"]:
        (Path(config["log"]) / f"{rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    options = parser.parse_args()
    images = everywhere(options.images)
    with wellread.Dataset(images) as dataset:
        shape = dataset.image_shape(0)
    if len(shape) != 3 or shape[0] < 2:
        # The model learns the second channel from the first.
        parser.error(f"{options.images}: images are {shape}, and must be (C, Y, X) with two channels or more")
    use_gpu = torch.cuda.is_available()
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={
            "images": images,
            "epochs": options.epochs,
            "log": None if options.written_rows is None else str(options.written_rows.resolve()),
        },
        # Ray fills a node before the next one unless it is told to spread ranks.
        scaling_config=ray.train.ScalingConfig(
            num_workers=options.workers,
            use_gpu=use_gpu,
            resources_per_worker={"CPU": options.cpus_per_worker} | ({"GPU": 1} if use_gpu else {}),
            placement_strategy="SPREAD",
        ),
    )
    trainer.fit()
