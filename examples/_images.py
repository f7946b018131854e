"""Images for the examples: cells and plates that ``wellread generate`` draws, there until the program ends."""

import atexit
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import wellread


def folder() -> Path:
    """A new folder, there until the program ends."""
    made = tempfile.mkdtemp(prefix="wellread-example-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def generated(*options: str) -> Path:
    """A new folder that ``wellread generate`` fills."""
    filled = folder() / "set"
    command = [sys.executable, "-m", "wellread", "--quiet", "generate", filled, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return filled


def cells(images: int = 256, size: str = "64x64", channels: int = 2) -> str:
    """The path of a Parquet file of uint16 images in a temporary folder.

    Columns: "well" (A01 …), and "crowded" (int64), 1 for the half of the images with the most DNA: something that a
    model can learn.
    """
    made = generated("--images", str(images), "--size", size, "--channels", str(channels), "--formats", "parquet")
    path = made / "images.parquet"
    dna = wellread.Dataset(path)[:][:, 0].mean((1, 2))
    table = pq.read_table(path)
    table = table.append_column("well", pa.array([f"A{i % 12 + 1:02}" for i in range(images)]))
    table = table.append_column("crowded", pa.array((dna > np.median(dna)).astype(np.int64)))
    pq.write_table(table, path)
    return str(path)


def plate() -> tuple[str, str]:
    """A plate in the files of an Opera Phenix, and the table of its nuclei; half of 24 wells have a compound."""
    made = generated("--plate", "4x6", "--fields", "1", "--channels", "5", "--size", "192x192", "--cells-table")
    return str(made / "images"), str(made / "cells.parquet")


def nf1() -> str:
    """Five sites with the names of NF1's images, and how many cells each has as profiles.parquet."""
    options = ("--plate", "1x5", "--fields", "1", "--channels", "3", "--size", "256x320")
    made = generated(*options, "--layout", "imagexpress", "--cells-table")
    sites = [("B7", 3), ("D6", 2), ("D7", 1), ("F7", 2), ("H12", 1)]
    for i, (well, site) in enumerate(sites):
        for channel, stain in enumerate(("DAPI", "GFP", "RFP"), 1):
            (file,) = (made / "images").glob(f"*_A{i + 1:02}_s1_w{channel}.tif")
            file.rename(file.with_name(f"{well}_01_{channel}_{site}_{stain}_001.tif"))
    wells = pq.read_table(made / "cells.parquet")["Metadata_Well"].to_pylist()
    counts = [wells.count(f"A{i + 1:02}") for i in range(len(sites))]
    names = ("Image_Metadata_Well_x", "Metadata_number_of_singlecells")
    pq.write_table(pa.table([[well for well, _ in sites], counts], names), made / "profiles.parquet")
    return str(made)
