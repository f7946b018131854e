"""The loaders that are compared, wellread among them. `runs.py` runs each, by the same loop and clock.

A loader is a class: made from a task of `runs.py` (its opening), it has `epoch(e)`, which gives the batches of that
epoch, `float32` tensors of torch (N, C, Y, X) in [0, 1]. Each is used as its authors advise: what can be opened once
is (arrays, connections, mapped files), batches are asked for ahead where the library has no reading ahead of its own,
and the library's own pools of threads have as many threads as all others.

Long because each peer is a few lines, in one list of all that are compared.
"""

import asyncio
import importlib.util
import resource
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from ahead import AHEAD, AheadOfUse
from collation import as_it_is, room
from torch.utils.data import DataLoader, Sampler

# Without the package around it, which needs its native module.
FOLDER = Path(__file__).resolve().parents[2] / "python" / "wellread" / "_bench"
SPEC = importlib.util.spec_from_file_location(
    "_wellread_bench", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
)
sys.modules.setdefault("_wellread_bench", importlib.util.module_from_spec(SPEC))
from _wellread_bench.frameworks.base import ReaderDataset  # noqa: E402
from _wellread_bench.images import Finish  # noqa: E402
from _wellread_bench.peers import tables  # noqa: E402

# Decoded images kept from epoch to epoch, where a row says so: more than any set here has.
KEPT_BYTES = 512 << 20
KEPT = f"memory:{KEPT_BYTES >> 20}MiB"


class Order(Sampler):
    """The rows of the epoch at hand."""

    def __init__(self, orders):
        self.orders, self.epoch = orders, 0

    def __iter__(self):
        return iter(self.orders[self.epoch])

    def __len__(self):
        return len(self.orders[0])


class InTorch:
    """torch's DataLoader with workers that stay, forked, and its own default of batches ahead."""

    def __init__(self, task, dataset, workers, collate=None):
        self.order = Order(task.orders)
        more = {"multiprocessing_context": "fork", "persistent_workers": True} if workers else {}
        self.loader = DataLoader(
            dataset, batch_size=task.batch, sampler=self.order, num_workers=workers, collate_fn=collate, **more
        )

    def epoch(self, e):
        self.order.epoch = e
        return iter(self.loader)


class Batches:
    """A dataset that makes a whole batch at once, scaling into its memory: torch then collates nothing."""

    def __init__(self, read, task):
        self.read, about = read, task.about()
        self.shape = (1, *about["shape"][-2:])
        self.count, self.scale = about["images"], task.scale()

    def __len__(self):
        return self.count

    def __getitems__(self, rows):
        batch = room((len(rows), *self.shape))
        for image, row in zip(batch.numpy(), rows, strict=True):
            np.multiply(self.read(row).reshape(self.shape), self.scale, out=image)
        return batch


def in_torch(read, task, workers):
    return InTorch(task, Batches(read, task), workers, as_it_is)


def in_threads(read, task):
    """A read for each image, whole batches from threads that are batches ahead."""
    return ahead_of_use(task, Batches(read, task).__getitems__)


def ahead_of_use(task, take):
    """For libraries that read a batch by one call: threads call it for the next batches."""
    return AheadOfUse(task.batches, take, task.threads)


def wellread(task):
    """wellread.DataLoader as users in PyTorch call it; the thread that waits for a batch reads too."""
    import wellread as package

    name, _, kept = task.name.removeprefix("wellread:").partition(",")
    dataset = package.Dataset(task.path(name), cache=KEPT if kept else None)
    loader = package.DataLoader(
        dataset,
        batch_size=task.batch,
        shuffle=True,
        seed=task.seed,
        num_workers=task.threads - 1,
        as_="torch",
        shard=False,
    )
    return Own(loader)


class Own:
    def __init__(self, loader):
        self.loader = loader

    def epoch(self, e):
        self.loader.set_epoch(e)
        return iter(self.loader)


def of_reader(reader, name):
    """A dataset of single images that torch collates."""

    def make(task, workers):
        # ome-arrow declares 8-bit images as 16-bit ones.
        finish = Finish(dtype=task.about()["dtype"])
        return InTorch(task, ReaderDataset(reader(task.path(name), finish), torch.as_tensor), workers)

    return make


def files(task, name, pattern):
    return [str(path) for path in sorted(Path(task.path(name)).glob(pattern))]


def tifffile_imread(task, workers):
    """Files opened anew for each image."""
    return in_torch(first_pages(task), task, workers)


def tifffile_threads(task, _):
    """Files opened anew for each image, whole batches from threads that are batches ahead."""
    return in_threads(first_pages(task), task)


def tifffile_kept(task, _):
    """Files that stay open, as many as a process may have open; the others are opened anew. From threads, since a
    forked worker would share their positions."""
    import tifffile

    paths = files(task, "tiff", "*.tiff")
    pages = [tifffile.TiffFile(path).pages[0] for path in paths[: may_be_open()]]
    return in_threads(lambda row: pages[row].asarray() if row < len(pages) else first_page(paths[row]), task)


def mapped_pages(task):
    """tifffile.memmap, for files that are not compressed: mapped once, when opened, as many as a process may have
    open (each takes a file descriptor). The others are opened anew for each image."""
    import tifffile

    paths = files(task, "tiff", "*.tiff")
    mapped = [tifffile.memmap(path, mode="r") for path in paths[: may_be_open()]]
    return lambda row: mapped[row] if row < len(mapped) else first_page(paths[row])


def tifffile_mapped(task, workers):
    """Mapped files, by torch's DataLoader."""
    return in_torch(mapped_pages(task), task, workers)


def tifffile_mapped_threads(task, _):
    """Mapped files, whole batches from threads that are batches ahead."""
    return in_threads(mapped_pages(task), task)


def may_be_open():
    """Files that may be held open, with some left for workers, tensors they send, and libraries."""
    return max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1024)


def first_pages(task):
    """What reads an image from its file, which is opened anew."""
    paths = files(task, "tiff", "*.tiff")
    return lambda row: first_page(paths[row])


def first_page(path):
    """`pages[0].asarray` spares what `imread` does to find series of files."""
    import tifffile

    with tifffile.TiffFile(path) as file:
        return file.pages[0].asarray()


def zarr_of(threads):
    """zarr-python with so many threads for its codecs: one in a worker process, which is one thread of work."""
    import zarr

    zarr.config.set({"threading.max_workers": threads})
    return zarr


def zarr_arrays(names, threads):
    """Arrays of these names, opened all at a time; the format is told, so that it is not looked for."""
    zarr = zarr_of(threads)

    async def opened():
        return await asyncio.gather(
            *(zarr.api.asynchronous.open_array(store=name, mode="r", zarr_format=2) for name in names)
        )

    return [zarr.Array(one) for one in zarr.core.sync.sync(opened())]


def zarr_folder(task, threads):
    """What reads an image of a folder of OME-Zarr."""
    level = task.about()["level"]
    arrays = zarr_arrays([f"{p}/{level}" for p in files(task, "ome-zarr", "*.zarr")], threads)
    return lambda row: arrays[row][0, 0, 0]


def zarr_python(task, workers):
    """zarr-python on a folder of OME-Zarr: every array opened once, before workers are forked."""
    return in_torch(zarr_folder(task, 1 if workers else task.threads), task, workers)


def zarr_threads(task, _):
    """zarr-python on a folder of OME-Zarr: every array opened once, whole batches from threads that are batches
    ahead."""
    return in_threads(zarr_folder(task, task.threads), task)


def one_array(task, threads):
    """zarr-python on one array of all images, a chunk for each: as its authors would keep images of one shape."""
    return zarr_of(threads).open_array(task.path("array.zarr"), mode="r", zarr_format=2)


def zarr_array(task, workers):
    """zarr-python on one array of all images, by torch's DataLoader."""
    return in_torch(one_array(task, 1 if workers else task.threads).__getitem__, task, workers)


def zarr_batches(task, _):
    """zarr-python on one array of all images: one selection for each batch, from threads that are batches ahead, with
    a pool for its codecs as large as all others."""
    array, scale = one_array(task, task.threads), task.scale()

    def take(rows):
        # Selections by rising rows are the fast ones.
        order = np.argsort(rows)
        pixels = array.get_orthogonal_selection((np.asarray(rows)[order],))
        batch = np.empty(pixels.shape, np.float32)
        for place, image in zip(order, pixels, strict=True):
            np.multiply(image, scale, out=batch[place])
        return torch.from_numpy(batch)

    return ahead_of_use(task, take)


def zarr_images(task, _):
    """zarr-python on one array of all images: one read for each image, from threads that are batches ahead, where
    a selection of scattered rows costs more than it spares."""
    return in_threads(one_array(task, task.threads).__getitem__, task)


def tensorstores(task, names, kept=0):
    """Arrays of these names, opened all at a time; their pools have as many threads as all others. So many bytes of
    decoded chunks are kept, none by default, as tensorstore's own default is."""
    import tensorstore

    pools = ("data_copy_concurrency", "file_io_concurrency")
    spec = {name: {"limit": task.threads} for name in pools}
    how = {
        "context": tensorstore.Context({**spec, "cache_pool": {"total_bytes_limit": kept}}),
        "read": True,
        "recheck_cached_data": False,
        "recheck_cached_metadata": False,
    }
    specs = [{"driver": "zarr", "kvstore": {"driver": "file", "path": name}} for name in names]
    return [opened.result() for opened in [tensorstore.open(spec, **how) for spec in specs]]


class Tensorstore:
    """The reads of the next batches are under way in tensorstore's threads: `ask` begins those of a batch, and `take`
    waits for them and scales."""

    def __init__(self, task, ask, take):
        self.task, self.ask, self.take = task, ask, take

    def epoch(self, e):
        parts = self.task.batches(e)
        waiting = deque(self.ask(part) for part in parts[:AHEAD])
        for k in range(len(parts)):
            asked_for = waiting.popleft()
            if k + AHEAD < len(parts):
                waiting.append(self.ask(parts[k + AHEAD]))
            yield self.take(asked_for)


def image_by_image(task, read):
    """A read for each image."""
    batches = Batches(None, task)

    def take(reads):
        batches.read = lambda i: reads[i].result()
        return batches.__getitems__(range(len(reads)))

    return Tensorstore(task, lambda rows: [read(row) for row in rows], take)


def tensorstore_folder(task, kept=0):
    """tensorstore on a folder of OME-Zarr: every array opened once, all at a time."""
    level = task.about()["level"]
    arrays = tensorstores(task, [f"{p}/{level}" for p in files(task, "ome-zarr", "*.zarr")], kept)
    images = [array[0, 0, 0] for array in arrays]
    return image_by_image(task, lambda row: images[row].read())


def tensorstore_array(task, kept=0):
    """tensorstore on one array of all images, a chunk for each."""
    (array,) = tensorstores(task, [task.path("array.zarr")], kept)
    return image_by_image(task, lambda row: array[row].read())


def tensorstore_batches(task, kept=0):
    """tensorstore on one array of all images: one read for each batch, which spares a call for each image."""
    (array,) = tensorstores(task, [task.path("array.zarr")], kept)
    scale = task.scale()

    def take(read):
        return torch.from_numpy(np.multiply(read.result(), scale, dtype=np.float32))

    return Tensorstore(task, lambda rows: array[list(rows)].read(), take)


class Spdl:
    """SPDL's pipeline: rows are put together before they are read, as its authors advise where those of a batch are
    known, and threads read whole batches (tifffile) into one tensor, in the order asked for."""

    def __init__(self, task):
        self.task, self.batches = task, Batches(first_pages(task), task)

    def epoch(self, e):
        from spdl.pipeline import PipelineBuilder

        pipeline = (
            PipelineBuilder()
            .add_source(self.task.orders[e])
            .aggregate(self.task.batch)
            .pipe(self.batches.__getitems__, concurrency=self.task.threads, output_order="input")
            .add_sink(AHEAD)
            .build(num_threads=self.task.threads)
        )
        with pipeline.auto_stop():
            yield from pipeline.get_iterator()


def scaled_chunks(task):
    """A batch of an Arrow column of chunk lists, without Python objects: offsets and one buffer of values."""
    import pyarrow as pa

    shape, scale = tuple(task.about()["shape"][-2:]), task.scale()

    def batch_of(chunks):
        if isinstance(chunks, pa.ChunkedArray):
            chunks = chunks.combine_chunks()
        batch = np.empty((len(chunks), 1, *shape), np.float32)
        places = chunks.flatten()
        first = chunks.offsets.to_numpy() - chunks.offsets[0].as_py()
        pixels = places.field("pixels")
        starts = pixels.offsets.to_numpy() - pixels.offsets[0].as_py()
        values = pixels.flatten().to_numpy()
        field = {k: places.field(k).to_numpy() for k in ("y", "x", "shape_y", "shape_x")}
        for i in range(len(chunks)):
            for c in range(first[i], first[i + 1]):
                y, x, dy, dx = (field[k][c] for k in ("y", "x", "shape_y", "shape_x"))
                part = values[starts[c] : starts[c + 1]].reshape(dy, dx)
                # Whatever whole numbers the file has, one pass.
                np.multiply(part, scale, out=batch[i, 0, y : y + dy, x : x + dx], casting="unsafe", dtype=np.float32)
        return torch.from_numpy(batch)

    return batch_of


def pylance(task, _):
    """pylance: `take`, chunks of pixels only."""
    import lance

    dataset, batch_of = lance.dataset(task.path("images.lance")), scaled_chunks(task)
    return ahead_of_use(task, lambda rows: batch_of(dataset.take(rows, columns={"p": "ome_image.chunks"})["p"]))


def vortex_data(task, _):
    """vortex-data: a scan by indices, which must rise, chunks of pixels only."""
    import pyarrow as pa
    import vortex
    import vortex.expr as expr

    file, batch_of = vortex.open(task.path("images.vortex")), scaled_chunks(task)
    wanted = expr.column("ome_image")["chunks"]

    def take(rows):
        indices = vortex.array(pa.array(sorted(rows), pa.uint64()))
        found = file.scan(wanted, indices=indices).read_all().to_arrow_array()
        return batch_of(found if pa.types.is_list(found.type) else found.cast(pa.list_(found.type.value_type)))

    return ahead_of_use(task, take)


def pylance_bare(task, _):
    """pylance: `take` of one column of bytes."""
    import lance

    dataset = lance.dataset(task.path("bare.lance"))
    return of_bare(task, lambda rows: dataset.take(rows, columns=["pixels"])["pixels"].combine_chunks())


def vortex_bare(task, _):
    """vortex-data: a scan by indices of one column of bytes."""
    import pyarrow as pa
    import vortex
    import vortex.expr as expr

    file, wanted = vortex.open(task.path("bare.vortex")), expr.column("pixels")

    def column(rows):
        indices = vortex.array(pa.array(sorted(rows), pa.uint64()))
        found = file.scan(wanted, indices=indices).read_all().to_arrow_array()
        # Views become bytes one behind the other.
        return (found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found).cast(pa.large_binary())

    return of_bare(task, column)


def of_each_thread(make):
    """Parts that threads may not share: made in each of them when it is first needed."""
    local = threading.local()

    def get():
        if not hasattr(local, "value"):
            local.value = make()
        return local.value

    return get


def connections(task):
    """One connection that stays open; a cursor of it for each thread."""
    import duckdb

    connection = duckdb.connect(task.path("keyed.duckdb"), read_only=True)
    connection.execute(f"SET threads = {task.threads}")
    return of_each_thread(connection.cursor)


def asked(cursor, wanted, table, rows):
    return cursor.sql(f"SELECT {wanted} FROM {table} WHERE row_id IN ({','.join(map(str, rows))})").to_arrow_table()


def duckdb_keyed(task, _):
    """duckdb: a table with a primary key, the rows of a batch by one question, chunks of pixels only."""
    cursor, batch_of = connections(task), scaled_chunks(task)
    return ahead_of_use(task, lambda rows: batch_of(asked(cursor(), "ome_image.chunks", "images", rows)[0]))


def duckdb_bare(task, _):
    """duckdb: bare pixels as BLOBs that are not compressed, beside a primary key."""
    cursor = connections(task)
    return of_bare(task, lambda rows: asked(cursor(), "pixels", "bare", rows)[0].combine_chunks())


def of_bare(task, column):
    """Batches of a column of binary values, whose bytes lie one behind the other."""
    about = task.about()
    dtype, shape = np.dtype(about["dtype"]), about["shape"][-2:]
    scale, size = task.scale(), int(np.prod(shape))

    def take(rows):
        found = column(rows)
        pixels = np.frombuffer(found.buffers()[-1], dtype)[: len(found) * size].reshape(len(found), 1, *shape)
        return torch.from_numpy(np.multiply(pixels, scale, dtype=np.float32))

    return ahead_of_use(task, take)


def row_groups(task, name):
    """A reader for each thread, all with the metadata that was read once."""
    import pyarrow.parquet as pq

    path = task.path(name)
    metadata = pq.ParquetFile(path, memory_map=True).metadata
    return of_each_thread(lambda: pq.ParquetFile(path, memory_map=True, metadata=metadata))


def parquet_row_groups(task, _):
    """pyarrow on a file tuned for it: typed pixels, one image per row group, not compressed, no dictionary."""
    opened = row_groups(task, "tuned.parquet")
    batch_of = scaled_chunks(task)
    leaves = [f"ome_image.chunks.list.element.{k}" for k in ("y", "x", "shape_y", "shape_x", "pixels.list.element")]

    def take(rows):
        found = opened().read_row_groups(rows, columns=leaves, use_threads=False)["ome_image"]
        return batch_of(found.combine_chunks().field("chunks"))

    return ahead_of_use(task, take)


def parquet_binary(task, _):
    """pyarrow on the leanest file it could have: pixels as one fixed-size binary, a row group per image."""
    opened = row_groups(task, "binary.parquet")
    return of_bare(task, lambda rows: opened().read_row_groups(rows, use_threads=False)["pixels"].combine_chunks())


class Gather:
    """No peer: NumPy takes a batch out of one array in memory, which opening fills; one thread."""

    def __init__(self, task):
        import tifffile

        paths = files(task, "tiff", "*.tiff")
        shape = (1, *task.about()["shape"][-2:])
        self.images = np.stack([tifffile.imread(path).reshape(shape) for path in paths])
        self.task, self.scale = task, task.scale()

    def epoch(self, e):
        for rows in self.task.batches(e):
            yield torch.from_numpy(np.multiply(self.images[rows], self.scale, dtype=np.float32))


class Annbatch:
    """annbatch (Python >= 3.12, with the codecs in Rust that it advises), which shuffles by itself: rows, or its own
    way, blocks of several."""

    own_order = True

    def __init__(self, task, block):
        import warnings

        import zarr
        from annbatch import Loader

        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "threading.max_workers": task.threads})
        array = zarr.open_array(task.path("annbatch.zarr"), mode="r")
        self.shape, step = tuple(array.attrs["shape"]), task.batch * block
        self.scale = np.float32(1 / np.iinfo(array.dtype).max)
        # Whole batches in what is fetched, at most a quarter of the set, or it would be a preload of all of it; else
        # as many rows as annbatch's default has (512 x 32).
        rows = max(step, min(16_384, array.shape[0] // 4) // step * step)
        self.loader = Loader(chunk_size=block, preload_nchunks=rows // block, batch_size=task.batch, shuffle=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.loader.add_dataset(array)

    def epoch(self, e):
        for batch in self.loader:
            yield torch.from_numpy(np.multiply(batch["X"], self.scale, dtype=np.float32)).view(-1, 1, *self.shape)


@dataclass(frozen=True)
class Loader:
    """A loader's registration."""

    about: str
    """As tables call it."""
    make: object
    """Opens: of a task, and the number of worker processes."""
    workers: bool = False
    """Whether it has worker processes of torch."""
    imports: tuple = ()
    """The modules that are imported before the clock starts."""


CACHE = ("pyarrow.parquet",)
LOADERS = {
    "ram-cache-0": Loader("upstream's RAM cache, torch DataLoader, 0 workers",
                          of_reader(tables.UpstreamCache, "images.parquet"), False, CACHE),
    "ram-cache-2": Loader("upstream's RAM cache, torch DataLoader, 2 workers",
                          of_reader(tables.UpstreamCache, "images.parquet"), True, CACHE),
    "float-cache-0": Loader("upstream's cache, its images made `float32` when opened, 0 workers",
                            of_reader(tables.FloatCache, "images.parquet"), False, CACHE),
    "tifffile": Loader("tifffile, torch DataLoader, 2 workers", tifffile_imread, True, ("tifffile",)),
    "tifffile-0": Loader("tifffile, torch DataLoader, 0 workers", tifffile_imread, False, ("tifffile",)),
    "tifffile-threads": Loader("tifffile, whole batches, threads", tifffile_threads, False, ("tifffile",)),
    "tifffile-kept": Loader("tifffile, files kept open, whole batches, threads", tifffile_kept, False, ("tifffile",)),
    "tifffile-mapped-threads": Loader("tifffile.memmap, kept mapped, whole batches, threads", tifffile_mapped_threads,
                                      False, ("tifffile",)),
    "tifffile-mapped": Loader("tifffile.memmap, kept mapped, torch DataLoader, 2 workers", tifffile_mapped, True,
                              ("tifffile",)),
    "tifffile-mapped-0": Loader("tifffile.memmap, kept mapped, torch DataLoader, 0 workers", tifffile_mapped, False,
                                ("tifffile",)),
    "zarr-python": Loader("zarr-python, arrays opened once, torch DataLoader, 2 workers", zarr_python, True,
                          ("zarr",)),
    "zarr-array": Loader("zarr-python, all images in one array, torch DataLoader, 2 workers", zarr_array, True,
                         ("zarr",)),
    "zarr-python-0": Loader("zarr-python, arrays opened once, torch DataLoader, 0 workers", zarr_python, False,
                            ("zarr",)),
    "zarr-threads": Loader("zarr-python, arrays opened once, whole batches, threads", zarr_threads, False,
                           ("zarr",)),
    "zarr-array-0": Loader("zarr-python, all images in one array, torch DataLoader, 0 workers", zarr_array, False,
                           ("zarr",)),
    "zarr-batches": Loader("zarr-python, all images in one array, a selection for each batch, threads", zarr_batches,
                           False, ("zarr",)),
    "zarr-images": Loader("zarr-python, all images in one array, a read for each image, threads", zarr_images,
                          False, ("zarr",)),
    "tensorstore": Loader("tensorstore, arrays opened once", lambda task, _: tensorstore_folder(task), False,
                          ("tensorstore",)),
    "tensorstore-array": Loader("tensorstore, all images in one array", lambda task, _: tensorstore_array(task),
                                False, ("tensorstore",)),
    "tensorstore-kept": Loader("tensorstore, arrays opened once, `cache_pool` of 512 MiB",
                               lambda task, _: tensorstore_folder(task, KEPT_BYTES), False, ("tensorstore",)),
    "tensorstore-array-kept": Loader("tensorstore, all images in one array, `cache_pool` of 512 MiB",
                                     lambda task, _: tensorstore_array(task, KEPT_BYTES), False, ("tensorstore",)),
    "tensorstore-batches": Loader("tensorstore, all images in one array, a read for each batch",
                                  lambda task, _: tensorstore_batches(task), False, ("tensorstore",)),
    "tensorstore-batches-kept": Loader("tensorstore, all images in one array, a read for each batch, `cache_pool` of "
                                       "512 MiB", lambda task, _: tensorstore_batches(task, KEPT_BYTES), False,
                                       ("tensorstore",)),
    "ome-arrow": Loader("OMEArrowDataset.read_image, torch DataLoader, 2 workers",
                        of_reader(tables.OmeArrowFolder, "images.ome-arrow-dataset"), True, ("ome_arrow.dataset",)),
    "spdl": Loader("SPDL, threads, tifffile, whole batches", lambda task, _: Spdl(task), False,
                   ("tifffile", "spdl.pipeline")),
    "pylance": Loader("pylance `take`, chunks only", pylance, False, ("lance",)),
    "vortex-data": Loader("vortex-data, scan by indices, chunks only", vortex_data, False,
                          ("vortex", "vortex.expr")),
    "pylance-bare": Loader("pylance `take`, bare pixels as one binary", pylance_bare, False, ("lance",)),
    "vortex-bare": Loader("vortex-data, scan by indices, bare pixels as one binary", vortex_bare, False,
                          ("vortex", "vortex.expr")),
    "duckdb": Loader("duckdb, `WHERE row_id IN (…)` by primary key, chunks only", duckdb_keyed, False,
                     ("duckdb", "pyarrow")),
    "duckdb-bare": Loader("duckdb, `WHERE row_id IN (…)`, bare pixels as BLOBs, not compressed", duckdb_bare, False,
                          ("duckdb", "pyarrow")),
    "pyarrow-row-groups": Loader("pyarrow, row groups of that file", parquet_row_groups, False, CACHE),
    "pyarrow-binary": Loader("pyarrow, bare pixels as one binary", parquet_binary, False, CACHE),
    "annbatch-1": Loader("annbatch, rows", lambda task, _: Annbatch(task, 1), False, ("annbatch",)),
    "annbatch-16": Loader("annbatch, blocks of 16", lambda task, _: Annbatch(task, 16), False, ("annbatch",)),
    "gather": Loader("NumPy gather from RAM, one thread", lambda task, _: Gather(task), False,
                     ("tifffile",)),
}  # fmt: skip
WELLREAD = Loader("wellread", lambda task, _: wellread(task), False, ("wellread",))
