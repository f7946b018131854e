"""The sets that peers are measured on, written by the reference libraries: as upstream writes them, and as the peers'
authors would."""

import hashlib
import json
import math
import shutil
import subprocess
from pathlib import Path

import checks
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
from ome_zarr.format import FormatV04, FormatV05
from ome_zarr.writer import write_image

# Images that are generated where there are no real ones.
GENERATED = 3


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
                str(GENERATED),
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


def real_files(real):
    """Name and SHA-256 of each file in the folder `real`; none without a folder."""
    found = sorted(Path(real).glob("*.tif*")) if real else []
    return [{"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in found]


def about_fields(real, count):
    """What a title says of the images made from the files in the folder `real`, or from generated ones."""
    files = len(real_files(real))
    each = math.ceil(count / (files or GENERATED))
    return f" ({f'{files} files of JUMP' if files else f'{GENERATED} generated'}, each shifted {each} times)"


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
    """OME-Zarr 0.4 with the library's own codec, for the sets that are read."""
    for name, array in images:
        group = zarr.open_group(str(folder / f"{name}.zarr"), mode="w", zarr_format=2)
        # No smaller levels: without this it makes four.
        write_image(array, group, axes="tczyx", scale_factors=(), fmt=FormatV04())


def write_zarr_alike(folder, images):
    """OME-Zarr as wellread writes it: 0.5, one level, one chunk, Zstandard level 1 with a checksum."""
    codec = {"compressors": [zarr.codecs.ZstdCodec(level=1, checksum=True)]}
    for name, array in images:
        group = zarr.open_group(str(folder / f"{name}.zarr"), mode="w", zarr_format=3)
        write_image(array, group, axes="tczyx", scale_factors=(), fmt=FormatV05(), storage_options=codec)


def write_duckdb(path, rows):
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", rows)
        connection.execute("CREATE TABLE images AS FROM rows")


# How the Python libraries write each format: from named arrays, as upstream does.
WRITERS = {
    "parquet": (
        "images.parquet",
        lambda path, rows: pq.write_table(rows, path, compression="zstd", compression_level=1),
    ),
    "lance": ("images.lance", lambda path, rows: lance.write_dataset(rows, str(path))),
    "vortex": ("images.vortex", lambda path, rows: vortex.io.write(rows, str(path))),
    "duckdb": ("images.duckdb", write_duckdb),
}


def write_with_library(fmt, folder, images):
    """Write named arrays as `fmt` into `folder`, as upstream does: all of it is what a user waits for."""
    if fmt in ("tiff", "ome-zarr"):
        (folder / fmt).mkdir(parents=True)
        return (write_tiff if fmt == "tiff" else write_zarr_alike)(folder / fmt, images)
    structs = [struct(array, name) for name, array in images]
    if fmt == "ome-arrow-dataset":
        return write_ome_arrow_dataset(structs, folder / "images.ome-arrow-dataset")
    name, write = WRITERS[fmt]
    return write(folder / name, table(structs))


# Written anew where this differs from what a folder was written by.
VERSION = 6


def begin(folder, images):
    """Stored pixels as TIFF files, and the checksum of each: what all else is made from."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("tiff", "ome-zarr"):
        (folder / name).mkdir(parents=True)
    sums = []
    for i, array in enumerate(images):
        name = f"image-{i:06d}"
        write_tiff(folder / "tiff", [(name, array)])
        sums.append(checks.checksum(array))
        yield name, array
    np.save(folder / "checksums.npy", np.array(sums))


def written(folder, files=()):
    """The note of a set that is there already, made from these files; None where it is not."""
    stamp = folder / "about.json"
    about = json.loads(stamp.read_text()) if stamp.exists() else {}
    return about if about.get("version") == VERSION and about.get("files", []) == list(files) else None


def finish(folder, wellread, array, count, **more):
    """The forms in which peers' authors would keep the images, and the note of what the set is."""
    write_tuned(folder, wellread)
    about = {"version": VERSION, "images": count, "shape": list(array.shape), "dtype": str(array.dtype), **more}
    (folder / "about.json").write_text(json.dumps(about))
    return about


def write(folder, images, wellread, files=()):
    """Write `images` as upstream's tables and dataset, as TIFF and as OME-Zarr, and as peers' authors would. `files`
    are those that the images were made from, if any."""
    about = written(folder, files)
    if about:
        return about
    structs = []
    for name, array in begin(folder, images):
        structs.append(struct(array, name))
        write_zarr(folder / "ome-zarr", [(name, array)])
    write_ome_arrow_dataset(structs, folder / "images.ome-arrow-dataset")
    rows = table(structs)
    for name, write_rows in WRITERS.values():
        # As upstream's is, its table has no key: `keyed` has.
        if name != "images.duckdb":
            write_rows(folder / name, rows)
    write_keyed(folder, rows)
    more = {"level": level_of(folder), "whole": "images.parquet", "files": list(files)}
    return finish(folder, wellread, array, len(structs), **more)


def write_large(folder, images, wellread):
    """Write many images as what is read of large sets: OME-Zarr without smaller levels, tables of typed pixels."""
    about = written(folder)
    if about:
        return about
    count = 0
    for name, array in begin(folder, images):
        group = zarr.open_group(str(folder / "ome-zarr" / f"{name}.zarr"), mode="w", zarr_format=2)
        stored = group.create_array("0", shape=array.shape, chunks=array.shape, dtype=array.dtype,
                                    chunk_key_encoding={"name": "v2", "separator": "/"})  # fmt: skip
        stored[:] = array
        axes = [{"name": name, "type": kind} for name, kind in zip("tczyx", AXES, strict=True)]
        scale = [{"type": "scale", "scale": [1.0] * 5}]
        levels = [{"path": "0", "coordinateTransformations": scale}]
        group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": levels}]
        count += 1
    rows = typed_table(folder, wellread)
    lance.write_dataset(rows, str(folder / "images.lance"), mode="overwrite")
    write_keyed(folder, rows)
    return finish(folder, wellread, array, count, level="0", whole="tuned.parquet")


AXES = ("time", "channel", "space", "space", "space")


def level_of(folder):
    """The path of the full resolution."""
    path = min((folder / "ome-zarr").glob("*.zarr"))
    return zarr.open_group(str(path), mode="r").attrs.asdict()["multiscales"][0]["datasets"][0]["path"]


def stored_pixels(folder):
    """All images, (N, Y, X)."""
    arrays = [tifffile.imread(path) for path in sorted((folder / "tiff").glob("*.tiff"))]
    return np.stack([array.reshape(array.shape[-2:]) for array in arrays])


def typed_table(folder, wellread):
    """The images as a table of the published type, pixels in the type that they have."""
    typed = folder / "typed.parquet"
    command = [wellread, "--quiet", "convert", folder / "tiff", typed, "--compression", "none", "--overwrite"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return pq.read_table(typed)


def write_keyed(folder, rows):
    """DuckDB with a primary key: the same rows, and bare pixels. DuckDB would compress these by Zstandard, and then
    decompress a column from its beginning up to each row that is asked for."""
    path = folder / "keyed.duckdb"
    path.unlink(missing_ok=True)
    pixels = stored_pixels(folder)
    if "row_id" not in rows.column_names:
        rows = rows.add_column(0, "row_id", pa.array(range(len(rows)), pa.int64()))
    bare = {"row_id": rows["row_id"], "pixels": pa.array([image.tobytes() for image in pixels], pa.binary())}
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", rows.select(["row_id", "ome_image"]))
        connection.register("blobs", pa.table(bare))
        kind = connection.sql("SELECT typeof(ome_image) FROM rows LIMIT 1").fetchall()[0][0]
        connection.execute(f"CREATE TABLE images (row_id BIGINT PRIMARY KEY, ome_image {kind})")
        connection.execute("INSERT INTO images FROM rows")
        connection.execute("CHECKPOINT")
        connection.execute("SET force_compression = 'uncompressed'")
        connection.execute("CREATE TABLE bare (row_id BIGINT PRIMARY KEY, pixels BLOB)")
        connection.execute("INSERT INTO bare FROM blobs")
        connection.execute("CHECKPOINT")


def write_tuned(folder, wellread):
    """The set as a reader of its own would have it: typed Parquet with an image per row group, bare pixels in
    Parquet, Lance and Vortex, one zarr array of all images with a chunk for each, and a sharded one for annbatch."""
    pq.write_table(typed_table(folder, wellread), folder / "tuned.parquet", row_group_size=1, compression="none",
                   use_dictionary=False, write_page_index=True)  # fmt: skip
    images = stored_pixels(folder)
    count, size = len(images), images[0].size
    rows = pa.table({"pixels": pa.array([image.tobytes() for image in images], pa.binary(images[0].nbytes))})
    pq.write_table(rows, folder / "binary.parquet", row_group_size=1, compression="none", use_dictionary=False)
    rows = pa.table({"pixels": pa.array([image.tobytes() for image in images], pa.large_binary())})
    lance.write_dataset(rows, str(folder / "bare.lance"), mode="overwrite")
    vortex.io.write(rows.cast(pa.schema([("pixels", pa.binary())])), str(folder / "bare.vortex"))
    # The codec that zarr-python and ome-zarr-py take by themselves.
    zarr.create_array(str(folder / "array.zarr"), data=images[:, None], chunks=(1, 1, *images.shape[1:]),
                      zarr_format=2, chunk_key_encoding={"name": "v2", "separator": "/"}, overwrite=True)  # fmt: skip
    out = zarr.create_array(str(folder / "annbatch.zarr"), shape=(count, size), dtype=images.dtype, chunks=(1, size),
                            shards=(min(count, 256), size), compressors=None, overwrite=True)  # fmt: skip
    out[:] = images.reshape(count, size)
    out.attrs["shape"] = list(images.shape[1:])


def warm(folder):
    """Read all files of a set, so that they are in the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()
