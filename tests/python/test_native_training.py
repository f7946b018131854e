"""The U-Net of native experiments against PyTorch's layers, its checkpoints and its event files.

One step from a checkpoint to the next: the loss, every gradient, the weights after AdamW's step and the running
statistics must be PyTorch's.
"""

import csv
import json
import os
import shutil
import struct
import subprocess

import numpy as np
import pytest
import tifffile

safetensors = pytest.importorskip("safetensors.numpy")
torch = pytest.importorskip("torch")
RATE, DECAY, DEPTH, WIDTH = 0.05, 0.01, 2, 4


def train(folder, overrides, experiment="im2im/segmentation", checkpoint=None):
    """Run the process of a task; return its output folder."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    assert binary, "set WELLREAD to the binary under test"
    task = {
        "mode": "train", "branch": "main", "experiment": experiment, "trainer": "cpu", "overrides": overrides,
        "checkpoint_path": str(checkpoint) if checkpoint else None, "seed": 3, "worktree": str(folder),
        "output_dir": str(folder / "out"),
    }  # fmt: skip
    (folder / "task.json").write_text(json.dumps(task))
    environment = {
        **os.environ,
        "WELLREAD_TASK": str(folder / "task.json"),
        "WELLREAD_PHASES": str(folder / "phases.jsonl"),
    }
    done = subprocess.run([binary, "task-native"], env=environment, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr
    return folder / "out"


class Level(torch.nn.Sequential):
    """Two blocks of convolution, normalisation and ReLU, with wellread's names."""

    def __init__(self, dimensions, c_in, c_out, norm):
        conv = torch.nn.Conv2d if dimensions == 2 else torch.nn.Conv3d
        kinds = {"batch": (torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)}
        kinds["instance"] = (torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d)
        blocks = []
        for c in (c_in, c_out):
            block = torch.nn.Sequential()
            block.add_module("conv", conv(c, c_out, 3, padding=1))
            if norm != "none":
                block.add_module("norm", kinds[norm][dimensions - 2](c_out, affine=True))
            block.add_module("relu", torch.nn.ReLU())
            blocks.append(block)
        super().__init__(*blocks)


class Unet(torch.nn.Module):
    """The network of docs/tasks-native.md in PyTorch's layers."""

    def __init__(self, dimensions, norm):
        super().__init__()
        c = [WIDTH << level for level in range(DEPTH + 1)]
        self.encoder = torch.nn.ModuleList(
            Level(dimensions, 1 if level == 0 else c[level - 1], c[level], norm) for level in range(DEPTH + 1)
        )
        self.decoder = torch.nn.ModuleList(
            Level(dimensions, c[level] + c[level + 1], c[level], norm) for level in range(DEPTH)
        )
        self.head = torch.nn.Module()
        self.head.conv = (torch.nn.Conv2d if dimensions == 2 else torch.nn.Conv3d)(WIDTH, 1, 1)
        self.pool = (torch.nn.MaxPool2d if dimensions == 2 else torch.nn.MaxPool3d)(2)
        self.upsample = torch.nn.Upsample(scale_factor=2, mode="nearest")

    def forward(self, x):
        skips = []
        for level in self.encoder[:-1]:
            skips.append(level(x))
            x = self.pool(skips[-1])
        x = self.encoder[-1](x)
        for level, skip in zip(reversed(self.decoder), reversed(skips), strict=True):
            x = level(torch.cat([skip, self.upsample(x)], dim=1))
        return self.head.conv(x)


def bce_dice(logits, target):
    """Binary cross-entropy plus one minus the soft Dice coefficient of each image."""
    p = torch.sigmoid(logits)
    axes = tuple(range(1, logits.ndim))
    dice = (2 * (p * target).sum(axes) + 1) / (p.sum(axes) + target.sum(axes) + 1)
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, target) + (1 - dice).mean()


@pytest.mark.parametrize("norm", ["batch", "instance", "none"])
@pytest.mark.parametrize("shape", [(24, 32), (4, 16, 24)], ids=["2d", "3d"])
def test_a_step_is_pytorchs(tmp_path, shape, norm):
    random = np.random.default_rng(1)
    images = random.normal(size=(2, *shape)).astype(np.float32)
    masks = (images + random.normal(size=images.shape) > 0.3).astype(np.uint8)
    for name, arrays in (("images", images), ("masks", masks)):
        (tmp_path / name).mkdir()
        for i, array in enumerate(arrays):
            tifffile.imwrite(
                tmp_path / name / f"{i}.tif",
                array,
                photometric="minisblack",
                metadata={"axes": "ZYX"[-array.ndim :]},
                ome=True,
            )
    overrides = [
        "data.images=images", "data.masks=masks", "data.validation=[]", "data.normalize=none",
        f"data.patch=[{shape[-2]}, {shape[-1]}]", "data.patches_per_image=1", "augment.flip=false",
        "augment.turns=false", f"model.dimensions={len(shape)}", f"model.width={WIDTH}", f"model.depth={DEPTH}",
        f"model.norm={norm}", f"optimizer.lr={RATE}", f"optimizer.weight_decay={DECAY}", "training.batch_size=2",
    ]  # fmt: skip
    # Both images in one batch, so their order does not matter.
    out = train(tmp_path, [*overrides, "training.epochs=1"])
    checkpoint = out / "checkpoints" / "last.safetensors"
    before = safetensors.load_file(checkpoint)
    train(tmp_path, [*overrides, "training.epochs=2"], checkpoint=checkpoint)
    after = safetensors.load_file(checkpoint)

    net = Unet(len(shape), norm).double().train()
    weights = {name: torch.from_numpy(v).double() for name, v in before.items() if not name.startswith("optimizer.")}
    missing, surplus = net.load_state_dict(weights, strict=False)
    assert not surplus and all("num_batches" in name for name in missing)
    named = dict(net.named_parameters())
    groups = [
        {"params": [p for p in named.values() if p.ndim > 1], "weight_decay": DECAY},
        {"params": [p for p in named.values() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    for name, p in named.items():
        mean, square = (torch.from_numpy(before[f"optimizer.{part}.{name}"]).double() for part in ("mean", "square"))
        optimizer.state[p] = {"step": torch.tensor(1.0), "exp_avg": mean, "exp_avg_sq": square}
    loss = bce_dice(net(torch.from_numpy(images[:, None]).double()), torch.from_numpy(masks[:, None]).double())
    loss.backward()
    optimizer.step()

    with open(out / "metrics.csv", newline="") as file:
        ours = float(list(csv.DictReader(file))[1]["train_loss"])
    assert ours == pytest.approx(loss.item(), rel=1e-5)
    largest = max(p.grad.abs().max().item() for p in named.values())
    for name, p in named.items():
        gradient = (after[f"optimizer.mean.{name}"] - 0.9 * before[f"optimizer.mean.{name}"]) / 0.1
        np.testing.assert_allclose(gradient, p.grad.numpy(), atol=2e-4 * largest, err_msg=name)
        # Adam divides by the gradient's size: what is nothing but rounding error becomes a step.
        sure = p.grad.abs().numpy() > 1e-2 * largest
        np.testing.assert_allclose(after[name][sure], p.detach().numpy()[sure], atol=0.02 * RATE, err_msg=name)
    for name, value in net.named_buffers():
        if "num_batches" not in name:
            np.testing.assert_allclose(after[name], value.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)

    file = next(out.glob("events.out.tfevents.*"))
    assert struct.unpack("<Q", file.read_bytes()[:8])[0] > 0


def test_tensorboard_reads_the_events(tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    random = np.random.default_rng(2)
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
        for i in range(3):
            tifffile.imwrite(tmp_path / name / f"{i}.tif", random.integers(0, 2, (32, 32), dtype=np.uint8))
    overrides = [
        "data.images=images", "data.masks=masks", "data.validation=[\"2\"]", "data.patch=[16, 16]", "model.width=2",
        "training.epochs=3",
    ]  # fmt: skip
    out = train(tmp_path, overrides)
    events = loader.EventAccumulator(str(out))
    events.Reload()
    with open(out / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for tag, column in (("train/loss", "train_loss"), ("val/loss", "val_loss"), ("val/dice", "val_dice")):
        scalars = events.Scalars(tag)
        assert [s.step for s in scalars] == [int(row["step"]) for row in rows]
        assert [s.value for s in scalars] == pytest.approx([float(row[column]) for row in rows], rel=1e-6)
