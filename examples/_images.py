"""What the examples read: cells that ``wellread generate`` draws, with two columns beside the images."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import wellread


def cells(images: int = 256, size: str = "64x64", channels: int = 2) -> str:
    """The path of a Parquet file of uint16 images in a temporary folder.

    Columns: "well" (A01 …), and "crowded" (int64), 1 for the half of the images with the most DNA: something that a
    model can learn.
    """
    folder = Path(tempfile.mkdtemp(prefix="wellread-example-"))
    subprocess.run(
        [sys.executable, "-m", "wellread", "--quiet", "generate", folder, "--images", str(images), "--size", size,
         "--channels", str(channels), "--formats", "parquet"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    path = folder / "images.parquet"
    dna = wellread.Dataset(path)[:][:, 0].mean((1, 2))
    table = pq.read_table(path)
    table = table.append_column("well", pa.array([f"A{i % 12 + 1:02}" for i in range(images)]))
    table = table.append_column("crowded", pa.array((dna > np.median(dna)).astype(np.int64)))
    pq.write_table(table, path)
    return str(path)
