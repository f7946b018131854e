"""The loaders of `benches/plates.py`: wellread as its pages show it, and each peer as its authors advise.

Each is made from a job of `plate_runs.py` (its opening) and has `epoch(e)`, which gives the batches of that epoch:
`float32` tensors of torch (N, C, Y, X) in [0, 1], with views a tuple of them. Peers are told which sites or cells
come in which order; where these lie they find out themselves, as wellread does.
"""

from collections import deque

import numpy as np
import torch
from collation import as_it_is, room
from own_files import Litdata, pylance
from peers import AHEAD, InTorch, ahead_of_use, first_page, zarr_arrays
from plate_sets import CHANNELS, CROP, POSITION, SCALE, plane


class Wellread:
    """wellread.DataLoader as users of PyTorch call it; the thread that waits for a batch reads too."""

    def __init__(self, job, rows=None):
        import wellread

        images = wellread.Dataset(job.path, cache=job.cache)
        if job.table:
            x, y = POSITION
            images = images.cells(job.table, x=x, y=y, size=(CROP, CROP))
        order = {"order": "block", "block": job.block} if job.block else {"shuffle": True}
        self.loader = wellread.DataLoader(
            images, job.batch, rows=job.rows if rows is None else rows, seed=job.seed, num_workers=job.threads - 1,
            as_="torch", shard=False, views=job.views, **order, **dict(job.recipe),
        )  # fmt: skip

    def epoch(self, e):
        self.loader.set_epoch(e)
        return iter(self.loader)


class OfPlate(torch.utils.data.Dataset):
    """Sites or crops of a plate, whole batches made in the worker, so that torch collates nothing."""

    def __init__(self, job, read):
        self.read, self.files = read, job.plate.sites()
        self.boxes = job.plate.cells(job.few) if job.table else None

    def __len__(self):
        return len(self.files if self.boxes is None else self.boxes[0])

    def place(self, row):
        """Files and the part of their pixels that are wanted."""
        if self.boxes is None:
            return self.files[row], (slice(None), slice(None))
        site, y, x = (int(column[row]) for column in self.boxes)
        return self.files[site], (slice(y, y + CROP), slice(x, x + CROP))

    def __getitems__(self, rows):
        batch = None
        for i, row in enumerate(rows):
            files, part = self.place(row)
            for c in range(CHANNELS):
                pixels = self.read(files, c, part)
                if batch is None:
                    batch = room((len(rows), CHANNELS, *pixels.shape))
                np.multiply(pixels, SCALE, out=batch.numpy()[i, c])
        return batch


class OneByOne(OfPlate):
    """A sample at a time, as tutorials have it; torch puts batches together."""

    # torch asks for single samples then.
    __getitems__ = None

    def __getitem__(self, row):
        files, part = self.place(row)
        site = np.stack([plane(path) for path in files])
        return torch.from_numpy(site[(slice(None), *part)].astype(np.float32) * SCALE)


def delivered(job, data, workers):
    """Batches by torch's DataLoader, or, where workers are None, from threads that are batches ahead."""
    if workers is None:
        return ahead_of_use(job, data.__getitems__)
    return InTorch(job, data, workers, as_it_is)


def tifffile_pages(job, workers):
    """tifffile: the whole image of each channel is read, then sliced."""
    return delivered(job, OfPlate(job, lambda files, c, part: first_page(files[c])[part]), workers)


def tifffile_imread(job, workers):
    """tifffile.imread of each channel, stacked, sliced, made float32."""
    return InTorch(job, OneByOne(job, None), workers)


def tifffile_mapped(job, workers):
    """tifffile.memmap, for files that are not compressed: each file mapped when it is first needed, and kept."""
    import tifffile

    kept = {}

    def read(files, c, part):
        path = files[c]
        if path not in kept:
            mapped = tifffile.memmap(path, mode="r")
            kept[path] = mapped.reshape(mapped.shape[-2:])
        return kept[path][part]

    return delivered(job, OfPlate(job, read), workers)


class OfZarr(OfPlate):
    """Sites or crops of arrays that are open, all channels by one read."""

    def __init__(self, job, arrays):
        super().__init__(job, None)
        self.files = arrays
        self.size = CROP if job.table else job.plate.size()

    def empty(self, rows):
        """Memory for a batch."""
        return room((len(rows), CHANNELS, self.size, self.size))

    def __getitems__(self, rows):
        batch = self.empty(rows)
        for out, row in zip(batch.numpy(), rows, strict=True):
            array, part = self.place(row)
            np.multiply(array[(0, slice(None), 0, *part)], SCALE, out=out)
        return batch


def zarr_python(job, workers):
    """zarr-python: every array opened once, all at a time, before workers are forked. Without workers it decodes the
    chunks of a read in as many threads as all others have."""
    arrays = zarr_arrays([str(path) for path in job.plate.sites()], 1 if workers else job.threads)
    return delivered(job, OfZarr(job, arrays), workers)


class Tensorstore:
    """tensorstore: every array opened once, all at a time; the reads of the next batches are under way in its
    threads."""

    def __init__(self, job, _):
        from peers import tensorstores

        self.job = job
        self.data = OfZarr(job, tensorstores(job, job.plate.sites()))

    def asked(self, rows):
        found = []
        for row in rows:
            array, part = self.data.place(row)
            found.append(array[(0, slice(None), 0, *part)].read())
        return found

    def epoch(self, e):
        parts = self.job.batches(e)
        waiting = deque(self.asked(rows) for rows in parts[:AHEAD])
        for k in range(len(parts)):
            reads = waiting.popleft()
            if k + AHEAD < len(parts):
                waiting.append(self.asked(parts[k + AHEAD]))
            batch = self.data.empty(reads)
            for out, read in zip(batch.numpy(), reads, strict=True):
                np.multiply(read.result(), SCALE, out=out)
            yield batch


# What makes each, the number of torch's workers (None: threads in place of torch's DataLoader), what is imported
# before the clock starts.
LOADERS = {
    "wellread": (lambda job, _: Wellread(job), 0, ("wellread",)),
    "tifffile": (tifffile_pages, 2, ("tifffile",)),
    "tifffile-imread": (tifffile_imread, 2, ("tifffile",)),
    "tifffile-mapped": (tifffile_mapped, 2, ("tifffile",)),
    "zarr-python": (zarr_python, 2, ("zarr",)),
    # In the process that iterates: no batch goes from one process to another.
    "tifffile-0": (tifffile_pages, 0, ("tifffile",)),
    "tifffile-mapped-0": (tifffile_mapped, 0, ("tifffile",)),
    "zarr-python-0": (zarr_python, 0, ("zarr",)),
    # Whole batches from threads that are batches ahead.
    "tifffile-threads": (tifffile_pages, None, ("tifffile",)),
    "tifffile-mapped-threads": (tifffile_mapped, None, ("tifffile",)),
    "zarr-python-threads": (zarr_python, None, ("zarr",)),
    "tensorstore": (Tensorstore, 0, ("tensorstore",)),
    "pylance": (pylance, 0, ("lance", "imagecodecs")),
    "litdata": (Litdata, 2, ("litdata",)),
    "litdata-0": (Litdata, 0, ("litdata",)),
}
