r"""Train on several machines with Lightning: ranks and nodes are its trainer's, its checkpoints have the place.

On one machine, which starts a process for each device:

    python train_lightning.py set/images.parquet --devices 2

On each of two nodes:

    torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \
        train_lightning.py set/images.parquet --nodes 2 --devices 2
"""

import argparse
import json
import logging
import warnings
from pathlib import Path

import lightning.pytorch as pl
import torch
import wellread
from torch import nn
from wellread.lightning import WellreadDataModule

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("images", help="a set of images with two channels or more, at a path that all nodes have")
parser.add_argument("--nodes", type=int, default=1)
parser.add_argument("--devices", type=int, default=2, help="ranks of each node")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--reshard-every", type=int, default=0, metavar="EPOCHS", help="after so many, other parts")
parser.add_argument("--written-rows", type=Path, metavar="FOLDER", help="where each rank writes its rows")
options = parser.parse_args()
with wellread.Dataset(options.images) as dataset:
    shape = dataset.image_shape(0)
if len(shape) != 3 or shape[0] < 2:
    # The model learns the second channel from the first.
    parser.error(f"{options.images}: images are {shape}, and must be (C, Y, X) with two channels or more")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
# Lightning advises more workers of torch's own loader, which these loaders are not.
warnings.filterwarnings("ignore", ".*does not have many workers.*")


class Stain(pl.LightningModule):
    """Learns the second channel of each image from the first."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
        self.seen = {}

    def training_step(self, batch, index):
        pixels, rows = batch
        self.seen.setdefault(self.current_epoch, []).extend(rows.tolist())
        return nn.functional.mse_loss(self.layers(pixels[:, :1]), pixels[:, 1:2])

    def validation_step(self, batch, index):
        loss = nn.functional.mse_loss(self.layers(batch[:, :1]), batch[:, 1:2])
        self.log("loss", loss, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


data = WellreadDataModule(
    options.images,
    batch_size=4,
    split=(0.8, 0.2, 0),
    num_workers=2,
    scale=(0, 4000),
    # Each node trains on a part of the images of its own. Batches have their rows, which this script writes.
    train_choices={"shard": "local", "reshard_every": options.reshard_every, "indices": True},
)
model = Stain()
trainer = pl.Trainer(
    accelerator="auto" if torch.cuda.is_available() else "cpu", strategy="ddp", num_nodes=options.nodes,
    devices=options.devices, max_epochs=options.epochs, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(model, datamodule=data)
if options.written_rows:
    found = {"seen": model.seen, "train": data.rows("train")}
    (options.written_rows / f"{trainer.global_rank}.json").write_text(json.dumps(found))
if trainer.is_global_zero:
    print(f"validation loss: {trainer.callback_metrics['loss']:.4f}")
# PyTorch asks for this. Lightning leaves the group of gloo, whose threads run until the interpreter has ended.
torch.distributed.destroy_process_group()
