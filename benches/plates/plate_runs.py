"""How a loader of `benches/plates.py` is run: one loop, clock and check for all, in a process of its own.

Inside of the clock: opening (in the first epoch), the table of cells, reading, decoding, scaling, putting batches
together, delivery to the process that iterates, and, in the first epoch, starting workers. Outside: importing
libraries, the order of the rows, the comparison of pixels.
"""

import importlib
import os
import random
import resource
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import checks
import numpy as np
import torch
from plate_loaders import LOADERS, Wellread
from plate_sets import Plate
from runs import find_memory, memory


@dataclass(frozen=True)
class Job:
    """What a process is to do."""

    loader: str
    """A key of `LOADERS`."""
    path: str
    """What wellread opens."""
    batch: int
    threads: int
    seconds: float
    """Later epochs are run until so much time is over; one at least."""
    plate: Plate | None = None
    """What peers know of it."""
    table: str | None = None
    few: bool = False
    """The table is that of the few sites whose cells are stored."""
    cache: str | None = None
    block: int | None = None
    views: int | None = None
    recipe: tuple = ()
    """Further choices of wellread's loader."""
    expected: str | None = None
    """File of the checksums of all rows; None where pixels are changed at random."""
    rows: list | None = None
    """Those of an epoch; all unless given."""
    orders: tuple = ()
    """The rows of each epoch, in order: wellread's, which must be these."""
    seed: int = 0
    checked: bool = False
    """Compare every batch of the first epoch and of one more, whatever it costs: such a run tells no times."""

    def batches(self, e):
        """The rows of each batch of an epoch."""
        rows = self.orders[e]
        return [rows[at : at + self.batch] for at in range(0, len(rows), self.batch)]


def prepare(job):
    """As many open files as the system allows and as many threads, for all alike; libraries are imported."""
    torch.set_num_threads(job.threads)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    import pyarrow
    import pyarrow.parquet  # noqa: F401  (peers read the table of cells with it)

    pyarrow.set_cpu_count(job.threads)
    pyarrow.set_io_thread_count(job.threads)
    for module in LOADERS[job.loader][2]:
        importlib.import_module(module)


def orders_of(job, epochs):
    """The orders in which wellread delivers these rows: those that peers are given. And, of a plate, whether its
    sites are those that peers know, in their order."""
    prepare(job)
    loader = Wellread(job).loader
    if job.plate:
        import wellread

        images = wellread.Dataset(job.path)
        wells, fields = images.column("Metadata_Well"), images.column("Metadata_Site")
        if [(str(well), int(field)) for well, field in zip(wells, fields, strict=True)] != job.plate.places():
            raise ValueError("wellread has the sites of the plate in another order than their names")
    return tuple([int(row) for row in loader.rows(e)] for e in range(epochs))


def measure(job):
    """Runs the epochs of a job in this process: their seconds; raises ValueError where pixels are wrong."""
    prepare(job)
    make, workers, _ = LOADERS[job.loader]
    expected = np.load(job.expected).tolist() if job.expected else None
    drawn = random.Random(f"{job.loader} {job.path} {job.seed}")
    find_memory()
    before = memory()
    begin = time.perf_counter()
    source = make(job, job.threads if workers else workers)
    open_s = time.perf_counter() - begin
    own_order = getattr(source, "own_order", False)
    epochs, compared, first_batch_s = [], 0, None
    for e in range(len(job.orders)):
        # Those that shuffle by themselves tell the rows of a batch when it is there.
        parts = job.batches(e)
        told = source.told if own_order else parts
        # One batch of each timed epoch, drawn at random, is kept and compared when the clock stands.
        pick, kept, count = drawn.randrange(len(parts)), [], 0
        begin = time.perf_counter()
        for k, batch in enumerate(source.epoch(e)):
            if first_batch_s is None:
                first_batch_s = open_s + time.perf_counter() - begin
            count += len(batch[0]) if job.views else len(batch)
            if k == pick:
                kept = [(k, batch)]
            elif job.checked and expected:
                compared += compare(k, batch, told, expected)
        seconds = time.perf_counter() - begin
        del batch
        epochs.append(seconds + (open_s if e == 0 else 0))
        if count != len(job.orders[e]):
            raise ValueError(f"epoch {e + 1}: {count} images of {len(job.orders[e])}")
        if own_order and sorted(row for rows in told for row in rows) != sorted(job.orders[e]):
            raise ValueError(f"epoch {e + 1}: rows twice, and others not at all")
        if isinstance(source, Wellread) and [int(row) for row in source.loader.rows(e)] != list(job.orders[e]):
            raise ValueError(f"epoch {e + 1}: wellread's order is another one than its peers were given")
        for k, batch in kept:
            compared += compare(k, batch, told, expected) if expected else looked_at(batch, job.views)
        kept = []
        if e and sum(epochs[1:]) >= job.seconds:
            break
    found = {
        "open_s": open_s, "first_batch_s": first_batch_s, "epochs_s": epochs, "rows": len(job.orders[0]),
        "compared": compared,
        "memory_mb": max(after - at_first for after, at_first in zip(memory(peak=True), before, strict=True)),
    }  # fmt: skip
    if isinstance(source, Wellread):
        found["bytes_read_per_used"] = source.loader.traffic["amplification"]
    return found


def compare(k, batch, parts, expected):
    """How many images were compared; raises ValueError where pixels are not those that were asked for."""
    wrong = checks.wrong(checks.of_batch(batch.numpy(), "uint16"), parts[k], expected)
    if wrong:
        raise ValueError(f"batch {k + 1}: {wrong}")
    return len(parts[k])


def looked_at(batch, views):
    """Of images changed at random: numbers all, and two views that are not the same."""
    arrays = batch if views else (batch,)
    for array in arrays:
        if not bool(torch.isfinite(array).all()):
            raise ValueError("numbers that are none")
    if views and bool((arrays[0] == arrays[1]).all()):
        raise ValueError("two views are one")
    return 0


def copy(threads):
    """GB/s of one thread of NumPy that copies memory to memory, 128 MiB: the median of five."""
    torch.set_num_threads(threads)
    source = np.ones(1 << 25, np.float32)
    target = np.empty_like(source)
    np.copyto(target, source)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - begin)
    return {"gb_per_s": source.nbytes / statistics.median(seconds) / 1e9}


def opened(path, cache, sites):
    """Seconds of opening a plate, until its number of sites and the shape of the first is known; then once more in
    the same process; and of listing its folders alone. wellread's own files go into the folder `cache`."""
    os.environ["XDG_CACHE_HOME"] = cache
    import wellread

    found = {}
    for name in ("open_s", "again_s"):
        begin = time.perf_counter()
        images = wellread.Dataset(path)
        number, shape = len(images), images.image_shape(0)
        found[name] = time.perf_counter() - begin
        if number != sites or shape[0] != 5:
            raise ValueError(f"{number} sites of {shape}, not {sites} of 5 channels")
        images.close()
    begin = time.perf_counter()
    found["files"] = sum(len(files) for _, _, files in os.walk(path))
    found["listing_s"] = time.perf_counter() - begin
    found["index"] = any(path.is_file() for path in Path(cache).rglob("*"))
    return found
