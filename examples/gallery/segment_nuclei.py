"""Train a U-Net to segment nuclei, and compare it with a threshold on a site that it has not seen.

    python examples/gallery/segment_nuclei.py [--data FOLDER] [--out FOLDER]

FOLDER has images/ and masks/ as NF1's Cell Painting images come (cytomining/CytoDataFrame), or as `wellread generate
--plate --masks` writes them. Without it, NF1's images where they lie beside the clone, else a generated plate.
"""

import math
from pathlib import Path

import numpy as np
import torch
import wellread
from _common import dna_channel, held_out, options, otsu, plate, ranges, report, sample
from _models import UNet
from _picture import BLUE, Chart, Sheet, colours_of, grey, outline
from torch import nn

# B7_01_1_3_DAPI_001.tif: well B7, site 3, channel DAPI.
NF1 = "{well}_01_*_{site}_{channel}_001.tif"


def opened(folder: Path) -> tuple[wellread.Dataset, wellread.Dataset]:
    """The sites, and the masks of their nuclei; decoded images stay in memory."""
    of_nf1 = any((folder / "images").glob("*_01_*_001.tif"))
    images = wellread.Dataset(folder / "images", pattern=NF1 if of_nf1 else None, cache="lru:2GiB")
    masks = wellread.Dataset(folder / "masks", layout="files", cache="lru:2GiB")
    if of_nf1:  # masks of cells and cytoplasm lie beside those of nuclei
        masks = masks.select([row for row in range(len(masks)) if "MaskNuclei" in masks.name(row)])
    return images, masks


def train(images, masks, rows, scale, steps: int, size: int = 192, seed: int = 0) -> tuple[UNet, list[float]]:
    """A network, and the loss of each step."""
    torch.manual_seed(seed)
    model, losses = UNet(images.image_shape(0)[0]), []
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = wellread.DataLoader(
        images, 16, rows=rows, targets=masks, target_dtype="float32", crops_per_image=4, random_crop=size, flip=True,
        turns="quarter", brightness=0.2, scale=scale, shuffle=True, seed=seed, num_workers=2, as_="torch",
    )  # fmt: skip
    for _ in range(math.ceil(steps / len(loader))):
        for pixels, labels in loader:  # float32 (16, C, Y, X) and (16, 1, Y, X), cut alike
            inside = (labels > 0).float()
            loss = nn.functional.binary_cross_entropy_with_logits(model(pixels), inside)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return model.eval(), losses


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union of two masks."""
    return float((one & other).sum() / max(1, (one | other).sum()))


def main(arguments=None) -> dict:
    choices = options(__doc__, steps=60, size=192).parse_args(arguments)
    folder = choices.data or sample("nf1") or plate("2x4", fields=3, channels=3)
    images, masks = opened(folder)
    rows, test = held_out(len(images))
    scale, dna = ranges(images, rows), dna_channel(images)
    print(f"{len(images)} sites of {images.image_shape(0)}: {len(rows)} to train, {len(test)} to test")
    model, losses = train(images, masks, rows, scale, choices.steps, choices.size, choices.seed)

    shown, of_model, of_threshold = None, [], []
    same = {"targets": masks, "target_dtype": "float32", "scale": scale, "as_": "torch"}
    threshold = otsu(np.concatenate([images[int(row)][dna].ravel() for row in rows]))
    for row, (pixels, labels) in zip(test, wellread.DataLoader(images, 1, rows=test, **same), strict=True):
        with torch.no_grad():
            found = (model(pixels)[0, 0] > 0).numpy()
        truth = (labels[0, 0] > 0).numpy()
        of_model.append(overlap(found, truth))
        of_threshold.append(overlap(images[int(row)][dna] > threshold, truth))
        shown = shown or (pixels[0].numpy(), found, truth)
    result = {
        "sites": len(images),
        "iou_model": float(np.mean(of_model)),
        "iou_threshold": float(np.mean(of_threshold)),
        "first_loss": losses[0],
        "last_loss": float(np.mean(losses[-3:])),
        "losses": losses,
    }
    draw(choices.out / "segment_nuclei.png", *shown, dna, result)
    return report(choices.out, "segment_nuclei", result)


def draw(path: Path, pixels, found, truth, dna: int, result: dict) -> None:
    """The stains, the nuclei with both outlines, the loss."""
    title = (
        f"Nuclei of a held-out site: IoU {result['iou_model']:.2f} (Otsu's threshold {result['iou_threshold']:.2f})"
    )
    sheet = Sheet(900, 330, title)
    sheet.image((12, 60, 302, 280), colours_of(pixels, dna))
    sheet.words(12, 40, "stains", 13)
    nuclei = np.repeat(grey(pixels[dna])[..., None], 3, 2)
    nuclei[outline(truth, 3)] = (70, 200, 90)
    nuclei[outline(found, 3)] = (240, 90, 70)
    sheet.image((312, 60, 602, 280), nuclei)
    sheet.words(312, 40, "DNA: found (red), CellProfiler or truth (green)", 13)
    losses = result["losses"]
    chart = Chart(sheet, (660, 60, 885, 280), (0, len(losses)), (0, 1.05 * max(losses)), "loss", "step")
    chart.line(range(len(losses)), losses, BLUE)
    sheet.words(12, 292, "Red covers green where both outlines agree.", 11, "#777777")
    sheet.save(path)


if __name__ == "__main__":
    main()
