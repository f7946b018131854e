r"""Train on several machines with torchrun: each node reads a part of the set, and a job goes on with other nodes.

On each node, with the same HOST, which is one of them:

    torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \
        train_torchrun.py set/images.parquet --checkpoint run.pt

The model learns the second channel of each image from the first.
"""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed
import wellread
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("images", help="a set of images with two channels or more, at a path that all nodes have")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=8, help="images of each rank")
parser.add_argument("--shard", default="local", choices=("local", "auto"))
parser.add_argument("--reshard-every", type=int, default=0, metavar="EPOCHS", help="after so many, other parts")
parser.add_argument("--checkpoint", type=Path, help="file to go on from, if it is there, and to leave")
parser.add_argument("--stop-after", type=int, metavar="BATCHES", help="end amid an epoch, as a job that is preempted")
parser.add_argument("--written-rows", type=Path, metavar="FOLDER", help="where each rank writes its rows")
options = parser.parse_args()

with wellread.Dataset(options.images) as dataset:
    shape = dataset.image_shape(0)
if len(shape) != 3 or shape[0] < 2:
    # The model learns the second channel from the first.
    parser.error(f"{options.images}: images are {shape}, and must be (C, Y, X) with two channels or more")

is_gpu = torch.cuda.is_available()
torch.distributed.init_process_group("nccl" if is_gpu else "gloo")
rank = torch.distributed.get_rank()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if is_gpu else torch.device("cpu")

# Ranks and nodes are those that torchrun has started.
local = {"reshard_every": options.reshard_every} if options.shard == "local" else {}
loader = wellread.DataLoader(
    options.images, options.batch_size, shuffle=True, seed=42, num_workers=2, as_="torch", scale=(0, 4000),
    shard=options.shard, indices=True, **local,
)  # fmt: skip

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)).to(device)
model = DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
first = 0
if options.checkpoint and options.checkpoint.exists():
    saved = torch.load(options.checkpoint, map_location=device, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    # The state that rank 0 has saved is that of all. There may be other ranks and nodes now.
    loader.load_state_dict(saved["loader"])
    first = saved["loader"]["epoch"]


def save():
    if options.checkpoint and rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
        torch.save(state, options.checkpoint)


seen, left = {}, options.stop_after
for epoch in range(first, options.epochs):
    # All ranks have equally many batches of equally many images, so none waits for another for ever.
    for pixels, rows in loader:
        pixels = pixels.to(device)
        loss = nn.functional.mse_loss(model(pixels[:, :1]), pixels[:, 1:2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.setdefault(epoch, []).extend(rows.tolist())
        if left is not None:
            left -= 1
            if left == 0:
                break
    save()
    if rank == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
    if left == 0:
        break

if options.written_rows:
    (options.written_rows / f"{rank}.json").write_text(json.dumps(seen))
# No rank ends while another is still at its last step.
torch.distributed.barrier()
torch.distributed.destroy_process_group()
