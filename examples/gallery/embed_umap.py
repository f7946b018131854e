"""Features of every cell by `wellread embed`, profiles by pycytominer, a map by UMAP.

    python examples/gallery/embed_umap.py [--data FOLDER --cells TABLE] [--encoder FILE] [--out FOLDER]

FOLDER is a plate, TABLE its table of cells with Metadata_Well and Metadata_Dose. Without them a plate is generated.
FILE is an encoder of `pretrain_cells.py`; without it one is pretrained first. Where pycytominer or umap-learn is
missing, cells are standardized by NumPy and drawn by their principal components, and the script says so.
"""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import wellread
from _common import options, plate, ranges, report, wellread_program
from _picture import BLUE, GREY, ORANGE, RED, Sheet, scatter
from pretrain_cells import SIZE, agreement, pretrain, principal, standardized

# Columns that cells of a well have in common.
WELL = ["Metadata_Plate", "Metadata_Well", "Metadata_Compound", "Metadata_Dose"]


def is_here(package: str) -> bool:
    """Whether a package is installed; says so where it is not."""
    found = importlib.util.find_spec(package) is not None
    if not found:
        print(f"{package} is missing (pip install -r examples/gallery/requirements.txt): NumPy does instead")
    return found


def encoder_of(sites: wellread.Dataset, cells: wellread.Dataset, steps: int, seed: int, out: Path) -> Path:
    """The file of an encoder that is pretrained on these cells."""
    scale = ranges(sites)
    encoder, _ = pretrain(cells, scale, steps, seed)
    path = out / "encoder_umap.pt"
    torch.save({"weights": encoder.state_dict(), "low": scale[0], "high": scale[1]}, path)
    return path


def embed(images: Path, table: Path, encoder: Path, out: Path) -> pd.DataFrame:
    """A row for each cell: its Metadata_ columns, and embedding_0000 …."""
    wellread_program(
        "embed", images, "--cells", table, "--cells-size", f"{SIZE}x{SIZE}", "--scale", "none",
        "--model", "python:_models:Pretrained", "--out", out, "--overwrite",
        PYTHONPATH=with_path(Path(__file__).parent), GALLERY_ENCODER=str(encoder.resolve()),
    )  # fmt: skip
    return pd.read_parquet(out)


def with_path(folder: Path) -> str:
    """PYTHONPATH with a folder before the others."""
    return os.pathsep.join([str(folder.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])])


def profiles(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str], str]:
    """Cells relative to the controls, wells as their medians, the features that are kept, and what did it."""
    features = [name for name in table.columns if name.startswith("embedding_")]
    if is_here("pycytominer"):
        import pycytominer

        cells = pycytominer.normalize(table, features=features, samples="Metadata_Dose == 0", method="standardize")
        chosen = ["variance_threshold", "correlation_threshold", "drop_na_columns"]
        cells = pycytominer.feature_select(cells, features=features, operation=chosen)
        features = [name for name in cells.columns if name.startswith("embedding_")]
        wells = pycytominer.aggregate(cells, strata=WELL, features=features)
        return cells, wells, features, "pycytominer"
    controls = table.loc[table["Metadata_Dose"] == 0, features]
    features = [name for name in features if controls[name].std() > 1e-6]
    values = (table[features] - controls[features].mean()) / controls[features].std()
    cells = pd.concat([table.drop(columns=[n for n in table if n.startswith("embedding_")]), values], axis=1)
    return cells, cells.groupby(WELL, as_index=False)[features].median(), features, "NumPy"


def flat(values: np.ndarray, seed: int) -> tuple[np.ndarray, str]:
    """Two coordinates for each row, and what they are."""
    if is_here("umap"):
        import umap

        return umap.UMAP(n_neighbors=20, min_dist=0.2, random_state=seed).fit_transform(values), "UMAP"
    return principal(values), "principal components"


def main(arguments=None) -> dict:
    parser = options(__doc__, steps=200)
    parser.add_argument("--cells", type=Path, help="table of the cells of --data")
    parser.add_argument("--encoder", type=Path, help="encoder.pt of pretrain_cells.py; otherwise one is pretrained")
    choices = parser.parse_args(arguments)
    if (choices.data is None) != (choices.cells is None):
        parser.error("--data and --cells go together")
    made = None if choices.data else plate()
    images, table = (choices.data, choices.cells) if choices.data else (made / "images", made / "cells.parquet")
    choices.out.mkdir(parents=True, exist_ok=True)
    sites = wellread.Dataset(images, cache="lru:2GiB")
    cells = sites.cells(table, size=SIZE)
    encoder = choices.encoder or encoder_of(sites, cells, choices.steps, choices.seed, choices.out)
    embedding = embed(images, table, encoder, choices.out / "cells.parquet")
    normalized, wells, features, by = profiles(embedding)
    values = np.clip(normalized[features].to_numpy(np.float32), -20, 20)
    places, kind = flat(values, choices.seed)
    doses, of_well = normalized["Metadata_Dose"].to_numpy(), normalized["Metadata_Well"].to_numpy()
    result = {
        "cells": len(cells),
        "rows": len(embedding),
        "features": len(features),
        "wells": len(wells),
        "profiles_by": by,
        "map": kind,
        "agreement": agreement(standardized(values), doses > 0, of_well),
    }
    draw(choices.out / "embed_umap.png", places, doses, wells, features, result)
    return report(choices.out, "embed_umap", result)


def named(doses) -> np.ndarray:
    """The names of doses in the legend."""
    return np.array(["DMSO" if dose == 0 else f"{dose:g} µM" for dose in doses])


def draw(path: Path, places: np.ndarray, doses, wells: pd.DataFrame, features: list[str], result: dict) -> None:
    """Cells and wells, coloured by the dose of their well."""
    sheet = Sheet(900, 440, f"{result['rows']} cells of {result['wells']} wells by their learned features")
    tints = [BLUE, ORANGE, RED, GREY]
    colours = {name: tints[min(i, 3)] for i, name in enumerate(dict.fromkeys(named(sorted(doses))))}
    scatter(sheet, (12, 66, 442, 400), places, named(doses), colours, f"cells: {result['map']}", 2)
    of_wells = principal(wells[features].to_numpy(np.float32))
    title = f"wells: medians by {result['profiles_by']}, principal components"
    scatter(sheet, (458, 66, 888, 400), of_wells, named(wells["Metadata_Dose"]), colours, title, 6)
    sheet.words(888, 420, "features relative to the DMSO wells", 11, GREY, "ra")
    sheet.save(path)


if __name__ == "__main__":
    main()
