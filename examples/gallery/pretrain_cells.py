"""Pretrain an encoder on crops of single cells without labels, in the way of DINO.

    python examples/gallery/pretrain_cells.py [--data FOLDER] [--cells TABLE] [--out FOLDER]

FOLDER is a plate (Opera Phenix, as JUMP's, ImageXpress …), TABLE its table of cells. Without a table the nuclei are
found by a threshold. Without a plate it is a field of a JUMP plate where one lies beside the clone, else a generated
plate. The encoder is written to OUT/encoder.pt, which `embed_umap.py --encoder` takes.
"""

import copy
import math
from pathlib import Path

import numpy as np
import torch
import wellread
from _common import dna_channel, options, otsu, plate, ranges, report, sample
from _models import Encoder
from _picture import BLUE, GREY, ORANGE, RED, Chart, Sheet, colours_of, scatter
from PIL import Image, ImageFilter
from torch import nn

SIZE = 64
# Two large views of each cell for both networks, four small ones for the student alone.
VIEWS = {
    "global": (2, {"random_resized_crop": 48, "scale_range": (0.5, 1.0)}),
    "local": (4, {"random_resized_crop": 24, "scale_range": (0.15, 0.5)}),
}
# How sharp both networks' answers are, and how slowly the teacher and the centre of its answers follow.
STUDENT, TEACHER, FOLLOW, CENTRE = 0.1, 0.05, 0.98, 0.9


def nuclei(sites: wellread.Dataset, folder: Path) -> Path:
    """Masks of the nuclei, one for each site, by Otsu's threshold of the blurred DNA."""
    folder.mkdir(parents=True, exist_ok=True)
    dna = dna_channel(sites)
    for row in range(len(sites)):
        plane = sites[row][dna].astype(np.float32)
        low, high = np.percentile(plane, (1, 99.8))
        small = Image.fromarray((255 * ((plane - low) / (high - low)).clip(0, 1)).astype(np.uint8))
        smooth = np.asarray(small.filter(ImageFilter.GaussianBlur(2)))
        mask = Image.fromarray(np.where(smooth > otsu(smooth), 255, 0).astype(np.uint8))
        mask.save(folder / f"{sites.name(row).rsplit('/', 1)[-1]}_mask.tif")
    return folder


def opened(folder: Path | None, table: Path | None, out: Path) -> tuple[wellread.Dataset, wellread.Dataset]:
    """The sites and their cells."""
    jump = None if folder else sample("jump")
    if not folder and not jump:
        made = plate()
        folder, table = made / "images", made / "cells.parquet"
    sites = wellread.Dataset(folder or jump, layout="harmony" if jump else None, cache="lru:2GiB")
    if table:
        return sites, sites.cells(table, size=SIZE)
    cells = sites.cells(nuclei(sites, out / "masks"), size=SIZE, label_masks=True, edge="drop")
    area = cells.column("AreaShape_Area")
    return sites, cells.select((area > 200) & (area < 6000))


class Student(nn.Module):
    """An encoder, and a head with so many prototypes."""

    def __init__(self, channels: int, prototypes: int = 64) -> None:
        super().__init__()
        self.encoder = Encoder(channels)
        self.head = nn.Sequential(nn.Linear(Encoder.features, 128), nn.GELU(), nn.Linear(128, 64))
        self.prototypes = nn.Parameter(torch.randn(prototypes, 64))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        unit = nn.functional.normalize
        return unit(self.head(self.encoder(pixels)), dim=1) @ unit(self.prototypes, dim=1).T


def of_views(model: Student, views) -> tuple[torch.Tensor, ...]:
    """The answers for several views of one size."""
    return model(torch.cat(views)).chunk(len(views))


def pretrain(cells, scale, steps: int, seed: int = 0) -> tuple[Encoder, list[float]]:
    """The teacher's encoder, and the mean loss of each epoch."""
    torch.manual_seed(seed)
    student = Student(cells.image_shape(0)[0])
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3, weight_decay=0.01)
    center, losses = 0.0, []
    loader = wellread.DataLoader(
        cells, min(64, len(cells) // 2), order="block", block=16, drop_last=True, seed=seed, num_workers=2,
        as_="torch", scale=scale, views=VIEWS, flip=True, turns="quarter", brightness=0.3, gaussian_noise=0.02,
    )  # fmt: skip
    for _ in range(math.ceil(steps / len(loader))):
        of_epoch = []
        for views in loader:  # {"global": two of (N, C, 48, 48), "local": four of (N, C, 24, 24)}
            answers = of_views(teacher, views["global"])
            targets = [((answer - center) / TEACHER).softmax(1) for answer in answers]
            guesses = [guess for kind in ("global", "local") for guess in of_views(student, views[kind])]
            logs = [(guess / STUDENT).log_softmax(1) for guess in guesses]
            # Each view has to answer as the teacher does of the other views.
            terms = [-(t * log).sum(1).mean() for i, t in enumerate(targets) for j, log in enumerate(logs) if i != j]
            loss = torch.stack(terms).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            center = CENTRE * center + (1 - CENTRE) * torch.cat(answers).mean(0)
            with torch.no_grad():
                for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                    slow.lerp_(fast, 1 - FOLLOW)
            of_epoch.append(loss.item())
        losses.append(float(np.mean(of_epoch)))
    return teacher.encoder.eval(), losses


def embedded(encoder: Encoder, cells: wellread.Dataset, scale) -> np.ndarray:
    """The features of each cell, float32 (N, 128)."""
    loader = wellread.DataLoader(cells, 64, scale=scale, as_="torch", num_workers=2)
    with torch.no_grad():
        return np.concatenate([encoder(pixels).numpy() for pixels in loader])


def standardized(features: np.ndarray) -> np.ndarray:
    """Each column less its mean, by its deviation."""
    return (features - features.mean(0)) / (features.std(0) + 1e-6)


def principal(features: np.ndarray) -> np.ndarray:
    """The first two principal components (N, 2)."""
    centred = features - features.mean(0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T


def nearest(features: np.ndarray, count: int, apart=None) -> np.ndarray:
    """The rows most like each row by cosine, (N, count); with `apart`, of those with another value there."""
    unit = features / (np.linalg.norm(features, axis=1, keepdims=True) + 1e-9)
    alike = unit @ unit.T
    alike[(apart[:, None] == apart[None]) if apart is not None else np.eye(len(unit), dtype=bool)] = -np.inf
    return np.argsort(-alike, axis=1)[:, :count]


def agreement(features: np.ndarray, groups: np.ndarray, wells: np.ndarray) -> float:
    """The share of the ten cells of other wells most like each cell that are of its group."""
    return float((groups[nearest(features, 10, wells)] == groups[:, None]).mean())


def main(arguments=None) -> dict:
    parser = options(__doc__, steps=240)
    parser.add_argument("--cells", type=Path, help="table of the cells; otherwise nuclei are found by a threshold")
    choices = parser.parse_args(arguments)
    sites, cells = opened(choices.data, choices.cells, choices.out)
    scale = ranges(sites)
    print(f"{len(sites)} sites of {sites.image_shape(0)}, {len(cells)} cells")
    encoder, losses = pretrain(cells, scale, choices.steps, choices.seed)
    features = standardized(embedded(encoder, cells, scale))
    choices.out.mkdir(parents=True, exist_ok=True)
    saved = {"weights": encoder.state_dict(), "low": scale[0], "high": scale[1]}
    torch.save(saved, choices.out / "encoder.pt")
    result = {"sites": len(sites), "cells": len(cells), "first_loss": losses[0], "last_loss": losses[-1]}
    groups = None
    if "Metadata_Treated" in cells.columns:
        groups, wells = cells.column("Metadata_Treated"), cells.column("Metadata_Well")
        torch.manual_seed(choices.seed)
        untrained = standardized(embedded(Encoder(cells.image_shape(0)[0]).eval(), cells, scale))
        result["agreement"] = agreement(features, groups, wells)
        result["agreement_untrained"] = agreement(untrained, groups, wells)
    result["losses"] = losses
    draw(choices.out / "pretrain_cells.png", cells, scale, features, groups, dna_channel(sites), losses)
    return report(choices.out, "pretrain_cells", result)


def spread(features: np.ndarray, count: int) -> list[int]:
    """Rows that differ from each other: each is the one farthest from those before it."""
    rows = [int(np.linalg.norm(features, axis=1).argmin())]
    while len(rows) < count:
        apart = np.linalg.norm(features[:, None] - features[rows][None], axis=2).min(1)
        # A cell that is like no other is often dirt.
        typical = apart <= np.quantile(apart, 0.98)
        rows.append(int(np.where(typical, apart, -1).argmax()))
    return rows


def draw(path: Path, cells, scale, features, groups, dna: int, losses: list[float]) -> None:
    """The loss, the cells in two dimensions, some cells with those most like them."""
    sheet = Sheet(900, 400, f"{len(cells)} cells, pretrained without labels")
    low, high = min(losses), max(losses)
    margin = 0.05 * (high - low) + 1e-6
    ends = (low - margin, high + margin)
    chart = Chart(sheet, (48, 62, 250, 190), (0, max(1, len(losses) - 1)), ends, "loss", "epoch")
    chart.line(range(len(losses)), losses, BLUE)
    if groups is None:
        groups, colours = np.full(len(cells), "cell"), {"cell": BLUE}
    else:
        groups, colours = np.where(groups > 0, "compound", "DMSO"), {"DMSO": BLUE, "compound": ORANGE}
    scatter(sheet, (48, 250, 250, 372), principal(features), groups, colours, "principal components", 2)
    sheet.words(290, 42, "a cell (red), and the seven most like it", 13)
    low, high = (np.array(end, np.float32)[:, None, None] for end in scale)
    alike = nearest(features, 7)
    for line, row in enumerate(spread(features, 4)):
        for column, cell in enumerate([row, *alike[row]]):
            left, top = 290 + 75 * column, 62 + 80 * line
            planes = (cells[int(cell)].astype(np.float32) - low) / (high - low)
            sheet.image((left, top, left + 72, top + 72), colours_of(planes, dna), RED if column == 0 else None)
    sheet.words(290, 384, "Neighbours by the cosine of standardized features.", 11, GREY)
    sheet.save(path)


if __name__ == "__main__":
    main()
