"""The two sets that peers are measured on, written by the reference libraries as upstream writes them."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tifffile
import zarr
from ome_arrow import OMEArrow
from ome_arrow.dataset import write_ome_arrow_dataset
from ome_zarr.format import FormatV04
from ome_zarr.writer import write_image


def noise(count):
    """Upstream's uniform noise: uint8, 100 x 100."""
    rng = np.random.default_rng(42)
    for _ in range(count):
        yield rng.integers(0, 256, size=(1, 1, 1, 100, 100), dtype=np.uint8)


def fields(count, wellread, folder, real):
    """1080 x 1080 uint16: the TIFFs in `real`, repeated, or generated cells where there are none."""
    files = sorted(Path(real).glob("*.tif*")) if real else []
    if not files:
        out = folder / "cells-source"
        subprocess.run(
            [
                wellread,
                "--quiet",
                "generate",
                "--overwrite",
                out,
                "--images",
                "3",
                "--size",
                "1080x1080",
                "--formats",
                "tiff",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        files = sorted((out / "tiff").glob("*.tif*"))
    planes = [tifffile.imread(f).reshape(1, 1, 1, 1080, 1080) for f in files]
    for i in range(count):
        # Shifted copies: same statistics, no two files alike.
        yield np.ascontiguousarray(np.roll(planes[i % len(planes)], i * 37, axis=-1))


def write(folder, images):
    """Write `images` as upstream's Parquet and dataset, a TIFF folder, an LZW TIFF folder and an OME-Zarr folder."""
    stamp = folder / "complete-2.json"
    if stamp.exists():
        return json.loads(stamp.read_text())
    for name in ("tiff", "tiff-lzw", "ome-zarr"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    structs = []
    for i, array in enumerate(images):
        name = f"image-{i:06d}"
        value = OMEArrow(data=array).data.as_py()
        value.pop("masks", None)
        value["name"] = value["id"] = name
        structs.append(value)
        tifffile.imwrite(folder / "tiff" / f"{name}.tiff", array)
        tifffile.imwrite(folder / "tiff-lzw" / f"{name}.tiff", array[0, 0, 0], compression="lzw", predictor=2)
        group = zarr.open_group(str(folder / "ome-zarr" / f"{name}.zarr"), mode="w", zarr_format=2)
        write_image(array, group, axes="tczyx", scaler=None, fmt=FormatV04())
    write_ome_arrow_dataset(structs, folder / "images.ome-arrow-dataset")
    # No schema: every integer becomes 64-bit, as upstream's files are.
    table = pa.table({"row_id": pa.array(range(len(structs)), pa.int64()), "ome_image": pa.array(structs)})
    pq.write_table(table, folder / "images.parquet", compression="zstd")
    about = {"images": len(structs), "shape": list(array.shape), "dtype": str(array.dtype)}
    stamp.write_text(json.dumps(about))
    return about
