"""The peers: each runs whole shuffled epochs and prints one JSON line per epoch. One peer per process.

python peers.py NAME FOLDER --batch 16 --workers 2 --epochs 3
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import peak
import torch
from torch.utils.data import DataLoader

# Without the package around it, which needs its native module.
FOLDER = Path(__file__).resolve().parents[2] / "python" / "wellread" / "_bench"
SPEC = importlib.util.spec_from_file_location(
    "_wellread_bench", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
)
sys.modules["_wellread_bench"] = importlib.util.module_from_spec(SPEC)
from _wellread_bench.frameworks.base import ReaderDataset  # noqa: E402
from _wellread_bench.images import Finish  # noqa: E402
from _wellread_bench.peers import folders, tables  # noqa: E402


def images(reader, path):
    """A torch dataset over one of the readers that `wellread bench --framework` measures."""
    return ReaderDataset(reader(path, Finish()), torch.as_tensor)


def gather(folder, batch, epochs):
    """The ceiling: a NumPy gather from RAM, one thread, into a new array per batch."""
    cache = np.stack([t.numpy() for t in raw_tiffs(folder)])
    scale = np.float32(1 / np.iinfo(cache.dtype).max)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(cache))
        start = time.perf_counter()
        for at in range(0, len(order), batch):
            _ = cache[order[at : at + batch]].astype(np.float32) * scale
        yield time.perf_counter() - start, None, len(cache)


def batch_of(chunks, count, shape, scale):
    """A batch from an Arrow column of chunk lists, without Python objects: offsets and one values buffer."""
    import pyarrow as pa

    if isinstance(chunks, pa.ChunkedArray):
        chunks = chunks.combine_chunks()
    batch = np.empty((count, 1, *shape), np.float32)
    places = chunks.flatten()
    first = chunks.offsets.to_numpy() - chunks.offsets[0].as_py()
    pixels = places.field("pixels")
    starts = pixels.offsets.to_numpy() - pixels.offsets[0].as_py()
    values = pixels.flatten().to_numpy()
    field = {k: places.field(k).to_numpy() for k in ("y", "x", "shape_y", "shape_x")}
    for i in range(count):
        for c in range(first[i], first[i + 1]):
            y, x, dy, dx = (field[k][c] for k in ("y", "x", "shape_y", "shape_x"))
            batch[i, 0, y : y + dy, x : x + dx] = values[starts[c] : starts[c + 1]].reshape(dy, dx)
    batch *= scale
    return torch.from_numpy(batch)


def take_epochs(take, about, batch, epochs):
    """Shuffled batches, each by one call of the library for its rows, in ascending order."""
    count, shape = about["images"], tuple(about["shape"][-2:])
    scale = np.float32(1 / np.iinfo(about["dtype"]).max)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(count)
        start = time.perf_counter()
        first = None
        for at in range(0, count, batch):
            rows = np.sort(order[at : at + batch])
            found = take(rows)
            if isinstance(found, np.ndarray):
                torch.from_numpy(found.astype(np.float32) * scale)
            else:
                batch_of(found, len(rows), shape, scale)
            first = first or time.perf_counter() - start
        yield time.perf_counter() - start, first, count


def lance_take(folder):
    import lance

    dataset = lance.dataset(str(folder / "images.lance"))
    # Pixels and places only.
    return lambda rows: dataset.take(rows.tolist(), columns={"p": "ome_image.chunks"})["p"]


def vortex_scan(folder, whole=False):
    """Chunks only, or the whole image column, as upstream reads it."""
    import vortex
    import vortex.expr as ve

    file = vortex.open(str(folder / "images.vortex"))
    column = ve.column("ome_image")
    wanted = column if whole else column["chunks"]

    def take(rows):
        import pyarrow as pa

        found = file.scan(wanted, indices=vortex.array(pa.array(rows, pa.uint64()))).read_all().to_arrow_array()
        found = found.field("chunks") if whole else found
        return found.cast(pa.list_(found.type.value_type)) if not pa.types.is_list(found.type) else found

    return take


def duckdb_in(folder, whole=False):
    """Chunks only, or the whole image column, as upstream reads it."""
    import duckdb

    connection = duckdb.connect(str(folder / "images.duckdb"), read_only=True)
    connection.execute("SET threads = 2")

    def take(rows):
        ids = ",".join(map(str, rows))
        wanted = "ome_image" if whole else "ome_image.chunks"
        found = connection.sql(f"SELECT {wanted} FROM images WHERE row_id IN ({ids})").to_arrow_table()[0]
        return found.combine_chunks().field("chunks") if whole else found

    return take


def parquet_row_groups(folder):
    """pyarrow on a file tuned for it: typed pixels, one image per row group, not compressed, no dictionary."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(folder / "tuned.parquet", memory_map=True)
    leaves = [f"ome_image.chunks.list.element.{k}" for k in ("y", "x", "shape_y", "shape_x", "pixels.list.element")]

    def take(rows):
        found = file.read_row_groups(rows.tolist(), columns=leaves, use_threads=True)["ome_image"]
        return found.combine_chunks().field("chunks")

    return take


def parquet_binary(folder, about):
    """pyarrow on the leanest file it could have: pixels as one fixed-size binary, a row group per image."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(folder / "binary.parquet", memory_map=True)
    dtype, shape = np.dtype(about["dtype"]), about["shape"][-2:]

    def take(rows):
        column = file.read_row_groups(rows.tolist(), use_threads=True)["pixels"].combine_chunks()
        return np.frombuffer(column.buffers()[1], dtype).reshape(len(rows), 1, *shape)

    return take


def tensorstore_epochs(folder, batch, epochs):
    """tensorstore on the OME-Zarr folder: arrays open, two threads, the reads of two batches under way at once."""
    import tensorstore as ts

    about = {"data_copy_concurrency": {"limit": 2}, "file_io_concurrency": {"limit": 2}}
    context = ts.Context(about)
    paths = sorted(folder.glob("*.zarr"))
    opened = time.perf_counter()
    kv = [{"driver": "zarr", "kvstore": {"driver": "file", "path": str(p / level_of(p))}} for p in paths]
    arrays = [ts.open(k, context=context, read=True, recheck_cached_data=False) for k in kv]
    arrays = [a.result() for a in arrays]
    open_s = time.perf_counter() - opened
    scale = np.float32(1 / np.iinfo(arrays[0].dtype.numpy_dtype).max)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(arrays))
        batches = [order[at : at + batch] for at in range(0, len(order), batch)]
        start = time.perf_counter()
        first, ahead = None, [arrays[i][0, 0, 0].read() for i in batches[0]]
        for k in range(len(batches)):
            reads = ahead
            ahead = [arrays[i][0, 0, 0].read() for i in batches[k + 1]] if k + 1 < len(batches) else []
            images = np.stack([r.result() for r in reads])[:, None].astype(np.float32)
            images *= scale
            torch.from_numpy(images)
            first = first or time.perf_counter() - start + (open_s if epoch == 0 else 0)
        yield time.perf_counter() - start, first, len(arrays)


def level_of(path):
    """The path of the full resolution."""
    import zarr

    return zarr.open_group(str(path), mode="r").attrs.asdict()["multiscales"][0]["datasets"][0]["path"]


def spdl_epochs(dataset, batch, epochs):
    """SPDL's pipeline: two threads decode (tifffile), batches are put together behind them."""
    from spdl.pipeline import PipelineBuilder

    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(dataset)).tolist()
        start = time.perf_counter()
        pipeline = (
            PipelineBuilder()
            .add_source(order)
            .pipe(dataset.__getitem__, concurrency=2)
            .aggregate(batch)
            .pipe(torch.stack)
            .add_sink(4)
            .build(num_threads=3)
        )
        first, n = None, 0
        with pipeline.auto_stop():
            for images in pipeline.get_iterator():
                first = first or time.perf_counter() - start
                n += len(images)
        yield time.perf_counter() - start, first, n


def raw_tiffs(folder):
    """Native pixels of a TIFF folder."""
    import tifffile

    for path in sorted(Path(folder).glob("*.tiff")):
        yield torch.from_numpy(tifffile.imread(path))


def loader_epochs(dataset, batch, workers, epochs):
    """Whole epochs of a torch DataLoader; workers persist, so that their start-up is in the first only."""
    loader = DataLoader(dataset, batch_size=batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    for _ in range(epochs):
        start = time.perf_counter()
        first, n = None, 0
        for images in loader:
            first = first or time.perf_counter() - start
            n += len(images)
        yield time.perf_counter() - start, first, n


def write_epochs(fmt, folder, epochs):
    """Writes the set from named arrays in memory, as upstream does, into folders that whoever called removes."""
    import sets
    import tifffile

    images = [(p.stem, tifffile.imread(p)) for p in sorted((folder / "tiff").glob("*.tiff"))]
    images = [(name, array.reshape(1, 1, 1, *array.shape[-2:])) for name, array in images]
    if fmt == "ome-zarr":
        images = images[:100]  # ome-zarr-py takes 0.1 s for one.
    into = os.environ.get("WRITTEN", folder)
    sets.write_with_library(fmt, Path(tempfile.mkdtemp(dir=into)), images[:1])  # What a library does once.
    for _ in range(epochs):
        out = Path(tempfile.mkdtemp(dir=into))
        start = time.perf_counter()
        sets.write_with_library(fmt, out, images)
        yield time.perf_counter() - start, None, len(images)


TAKES = {
    "pylance": lance_take,
    "pyarrow-row-groups": parquet_row_groups,
    "pyarrow-binary": parquet_binary,
    "vortex-data": vortex_scan,
    "vortex-data-column": lambda folder: vortex_scan(folder, whole=True),
    "duckdb": duckdb_in,
    "duckdb-column": lambda folder: duckdb_in(folder, whole=True),
}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("name")
    ap.add_argument("folder", type=Path)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    torch.set_num_threads(2)
    opened = time.perf_counter()
    if a.name == "gather":
        epochs = gather(a.folder / "tiff", a.batch, a.epochs)
    elif a.name in TAKES:
        about = json.loads((a.folder / "complete-3.json").read_text())
        take = TAKES[a.name](a.folder) if a.name != "pyarrow-binary" else parquet_binary(a.folder, about)
        epochs = take_epochs(take, about, a.batch, a.epochs)
    elif a.name == "tensorstore":
        epochs = tensorstore_epochs(a.folder / "ome-zarr", a.batch, a.epochs)
    elif a.name == "spdl":
        epochs = spdl_epochs(images(folders.Tifffile, a.folder / "tiff"), a.batch, a.epochs)
    elif a.name.startswith("write-"):
        epochs = write_epochs(a.name.removeprefix("write-"), a.folder, a.epochs)
    else:
        dataset = {
            "ram-cache": lambda: images(tables.UpstreamCache, a.folder / "images.parquet"),
            "float-cache": lambda: images(tables.FloatCache, a.folder / "images.parquet"),
            "tifffile": lambda: images(folders.Tifffile, a.folder / "tiff"),
            "tifffile-lzw": lambda: images(folders.Tifffile, a.folder / "tiff-lzw"),
            "ome-arrow": lambda: images(tables.OmeArrowFolder, a.folder / "images.ome-arrow-dataset"),
            "zarr-python": lambda: images(folders.ZarrPython, a.folder / "ome-zarr"),
        }[a.name]()
        epochs = loader_epochs(dataset, a.batch, a.workers, a.epochs)
    open_s = time.perf_counter() - opened
    for epoch, (seconds, first, n) in enumerate(epochs):
        first_batch = None if first is None else first + (open_s if epoch == 0 else 0)
        print(json.dumps({"epoch": epoch, "epoch_s": seconds, "first_batch_s": first_batch,
                          "samples_per_sec": n / seconds, "peak_rss_mb": peak.mb()}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
