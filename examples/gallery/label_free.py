"""Predict a stain from other channels: label-free prediction, with a U-Net and a linear baseline.

    python examples/gallery/label_free.py [--data FOLDER] [--inputs GFP,RFP] [--target DAPI] [--out FOLDER]

FOLDER is a plate, or NF1's images. The sample images have no transmitted light: the DNA stain is predicted from the
other stains. With brightfield planes it is `--inputs Brightfield --target DNA`.
"""

import math
from pathlib import Path

import numpy as np
import torch
import wellread
from _common import channel_names, dna_channel, held_out, options, plate, ranges, report, sample
from _models import UNet
from _picture import BLUE, GREY, Chart, Sheet, colours_of, grey
from segment_nuclei import NF1
from torch import nn


def opened(folder: Path | None) -> wellread.Dataset:
    """The sites; decoded images stay in memory."""
    folder = folder or (sample("nf1") or plate("2x4", fields=3)) / "images"
    pattern = NF1 if any(folder.glob("*_01_*_001.tif")) else None
    return wellread.Dataset(folder, pattern=pattern, cache="lru:2GiB")


def chosen(images: wellread.Dataset, inputs: str | None, target: str | None) -> tuple[list[int], int]:
    """The channels of a choice by names; by default the DNA stain from all others."""
    names = channel_names(images)
    for name in [*(inputs.split(",") if inputs else []), *([target] if target else [])]:
        if name not in names:
            raise SystemExit(f"there is no channel {name}: the channels are {', '.join(names)}")
    to = names.index(target) if target else dna_channel(images)
    given = [names.index(name) for name in inputs.split(",")] if inputs else range(len(names))
    return [channel for channel in given if channel != to], to


def train(images, rows, inputs, target, scales, steps: int, size: int = 192, seed: int = 0):
    """A network, and the loss of each step."""
    torch.manual_seed(seed)
    scale, target_scale = scales
    model, losses = UNet(len(inputs)), []
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = wellread.DataLoader(
        images, 16, rows=rows, channels=inputs, scale=scale, crops_per_image=4, random_crop=size, flip=True,
        targets=images, target_channels=[target], target_kind="image", target_scale=target_scale,
        turns="quarter", shuffle=True, seed=seed, num_workers=2, as_="torch",
    )  # fmt: skip
    for _ in range(math.ceil(steps / len(loader))):
        for pixels, stain in loader:  # float32 (16, C, Y, X) and (16, 1, Y, X), cut and turned alike
            loss = nn.functional.mse_loss(model(pixels), stain)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return model.eval(), losses


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's r of the pixels of two images."""
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


def linear(pairs) -> np.ndarray:
    """The weights, pixel by pixel, that predict the stain best from the channels and a constant."""
    given = np.concatenate([pixels.reshape(len(pixels), -1)[:, ::7] for pixels, _ in pairs], 1)
    wanted = np.concatenate([stain.ravel()[::7] for _, stain in pairs])
    return np.linalg.lstsq(np.vstack([given, np.ones(given.shape[1])]).T, wanted, rcond=None)[0]


def main(arguments=None) -> dict:
    parser = options(__doc__, steps=80, size=192)
    parser.add_argument("--inputs", help="channels that are given, such as GFP,RFP (default: all others)")
    parser.add_argument("--target", help="channel that is predicted (default: the DNA stain)")
    choices = parser.parse_args(arguments)
    images = opened(choices.data)
    inputs, target = chosen(images, choices.inputs, choices.target)
    names = channel_names(images)
    rows, test = held_out(len(images))
    print(f"{len(images)} sites: {names[target]} from {', '.join(names[c] for c in inputs)}")
    scales = ranges(images, rows, inputs), ranges(images, rows, [target])
    model, losses = train(images, rows, inputs, target, scales, choices.steps, choices.size, choices.seed)

    def pairs(of):
        """Whole sites as (channels, stain)."""
        same = {"target_channels": [target], "target_kind": "image", "target_scale": scales[1]}
        loader = wellread.DataLoader(images, 1, rows=of, channels=inputs, scale=scales[0], targets=images, **same)
        return [(pixels[0], stain[0, 0]) for pixels, stain in loader]

    weights = linear(pairs(rows))
    shown, of_model, of_linear = None, [], []
    for pixels, stain in pairs(test):
        with torch.no_grad():
            predicted = model(torch.from_numpy(pixels)[None])[0, 0].numpy()
        of_model.append(correlation(predicted, stain))
        of_linear.append(correlation(np.einsum("cyx,c->yx", pixels, weights[:-1]), stain))
        shown = shown or (pixels, predicted, stain)
    result = {
        "sites": len(images),
        "r_model": float(np.mean(of_model)),
        "r_linear": float(np.mean(of_linear)),
        "first_loss": losses[0],
        "last_loss": float(np.mean(losses[-3:])),
        "losses": losses,
    }
    draw(choices.out / "label_free.png", *shown, [names[c] for c in inputs], names[target], result)
    return report(choices.out, "label_free", result)


def draw(path: Path, pixels, predicted, stain, inputs: list[str], target: str, result: dict) -> None:
    """The given channels, the predicted stain, the measured one, the loss."""
    title = f"{target} from {', '.join(inputs)} on a held-out site: r = {result['r_model']:.2f}"
    sheet = Sheet(900, 300, f"{title} (linear, pixel by pixel: {result['r_linear']:.2f})")
    # No channel is the DNA: it is not given.
    parts = (
        (f"given: {', '.join(inputs)}", colours_of(np.concatenate([pixels, 0 * pixels[:1]]), len(pixels))),
        (f"{target}, predicted", grey(predicted)),
        (f"{target}, measured", grey(stain)),
    )
    for i, (name, picture) in enumerate(parts):
        left = 12 + 222 * i
        sheet.words(left, 40, name, 13)
        sheet.image((left, 60, left + 214, 250), picture)
    losses = result["losses"]
    chart = Chart(sheet, (720, 60, 885, 250), (0, len(losses)), (0, 1.05 * max(losses)), "loss", "step")
    chart.line(range(len(losses)), losses, BLUE)
    sheet.words(12, 262, f"All three are of the same site. Both {target} panels are on one scale.", 11, GREY)
    sheet.save(path)


if __name__ == "__main__":
    main()
