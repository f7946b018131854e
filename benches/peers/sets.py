"""The two sets that peers are measured on, written by the reference libraries as upstream writes them."""

import json
import subprocess
from pathlib import Path

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tifffile
import vortex
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


def struct(array, name):
    """An image as upstream's OME-Arrow value: Python objects."""
    value = OMEArrow(data=array).data.as_py()
    value.pop("masks", None)
    value["name"] = value["id"] = name
    return value


def table(structs):
    """Upstream's table. No schema: every integer becomes 64-bit, as upstream's files are."""
    return pa.table({"row_id": pa.array(range(len(structs)), pa.int64()), "ome_image": pa.array(structs)})


def write_tiff(folder, images):
    for name, array in images:
        tifffile.imwrite(folder / f"{name}.tiff", array)


def write_zarr(folder, images):
    for name, array in images:
        group = zarr.open_group(str(folder / f"{name}.zarr"), mode="w", zarr_format=2)
        write_image(array, group, axes="tczyx", scaler=None, fmt=FormatV04())


def write_duckdb(path, rows):
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", rows)
        connection.execute("CREATE TABLE images AS FROM rows")


# How the Python libraries write each format: from named arrays, as upstream does.
WRITERS = {
    "parquet": ("images.parquet", lambda path, rows: pq.write_table(rows, path, compression="zstd")),
    "lance": ("images.lance", lambda path, rows: lance.write_dataset(rows, str(path))),
    "vortex": ("images.vortex", lambda path, rows: vortex.io.write(rows, str(path))),
    "duckdb": ("images.duckdb", write_duckdb),
}


def write_with_library(fmt, folder, images):
    """Write named arrays as `fmt` into `folder`, as upstream does: all of it is what a user waits for."""
    if fmt in ("tiff", "ome-zarr"):
        (folder / fmt).mkdir(parents=True)
        return (write_tiff if fmt == "tiff" else write_zarr)(folder / fmt, images)
    structs = [struct(array, name) for name, array in images]
    if fmt == "ome-arrow-dataset":
        return write_ome_arrow_dataset(structs, folder / "images.ome-arrow-dataset")
    name, write = WRITERS[fmt]
    return write(folder / name, table(structs))


def write(folder, images):
    """Write `images` as upstream's tables and dataset, TIFF folders and an OME-Zarr folder."""
    stamp = folder / "complete-3.json"
    if stamp.exists():
        return json.loads(stamp.read_text())
    for name in ("tiff", "tiff-lzw", "ome-zarr"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    structs = []
    for i, array in enumerate(images):
        name = f"image-{i:06d}"
        structs.append(struct(array, name))
        write_tiff(folder / "tiff", [(name, array)])
        tifffile.imwrite(folder / "tiff-lzw" / f"{name}.tiff", array[0, 0, 0], compression="lzw", predictor=2)
        write_zarr(folder / "ome-zarr", [(name, array)])
    write_ome_arrow_dataset(structs, folder / "images.ome-arrow-dataset")
    rows = table(structs)
    for name, write_rows in WRITERS.values():
        write_rows(folder / name, rows)
    about = {"images": len(structs), "shape": list(array.shape), "dtype": str(array.dtype)}
    stamp.write_text(json.dumps(about))
    return about


def write_tuned(folder, wellread):
    """The set as a reader of its own would have it: typed Parquet with an image per row group,
    bare pixels in Parquet, zarr for annbatch."""
    tuned, array = folder / "tuned.parquet", folder / "annbatch.zarr"
    if not tuned.exists():
        typed = folder / "typed.parquet"
        subprocess.run(
            [wellread, "convert", folder / "tiff", typed, "--compression", "none", "--overwrite"], check=True
        )
        pq.write_table(pq.read_table(typed), tuned, row_group_size=1, compression="none", use_dictionary=False,
                       write_page_index=True)  # fmt: skip
    if not (folder / "binary.parquet").exists():
        pixels = [tifffile.imread(p).tobytes() for p in sorted((folder / "tiff").glob("*.tiff"))]
        rows = pa.table({"pixels": pa.array(pixels, pa.binary(len(pixels[0])))})
        pq.write_table(rows, folder / "binary.parquet", row_group_size=1, compression="none", use_dictionary=False)
    if not array.exists():
        images = np.stack([tifffile.imread(p) for p in sorted((folder / "tiff").glob("*.tiff"))])
        images = images.reshape(len(images), *images.shape[-2:])
        pixels = images[0].size
        out = zarr.create_array(
            str(array), shape=(len(images), pixels), dtype=images.dtype, chunks=(1, pixels),
            shards=(min(len(images), 256), pixels), compressors=None,
        )  # fmt: skip
        out[:] = images.reshape(len(images), -1)
        out.attrs["shape"] = list(images.shape[1:])
