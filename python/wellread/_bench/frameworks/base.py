"""The interface of a framework to the tracks, and the common parts of all frameworks."""

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from ..clock import net, now

# Large enough that starting a copy takes nothing of it; repeated until the median stands on some.
COPY_BYTES = 64 << 20
COPIES = 9


def copy_rate(copy, size=COPY_BYTES):
    """Bytes per second of `copy`, which returns when `size` bytes are there: the median, after one to warm up."""
    copy()
    times = []
    for _ in range(COPIES):
        begin = now()
        copy()
        times.append(max(1, net(now() - begin)))
    return size / median(times) * 1e9


@dataclass(frozen=True)
class Conversion:
    """A way from a host array to a tensor."""

    path: str
    """Name of the path in tables."""
    convert: Callable
    """Array to tensor; returns when the tensor is ready."""
    pointer: Callable | None = None
    """Address of the tensor's memory; `None` where it is not the host's."""
    stored: bool = False
    """Starts from the stored type instead of float32."""
    note: str = ""
    """The steps of the path, in the framework's own calls."""
    unavailable: str | None = None
    """Why it cannot be measured here."""

    def describe(self, framework):
        """For the program."""
        return {"path": self.path, "note": self.note, "unavailable": self.unavailable}


class ReaderDataset:
    """A map-style dataset over a reader; `wrap` makes of an array what the framework's loader collates."""

    def __init__(self, reader, wrap):
        self.reader, self.wrap = reader, wrap
        if hasattr(reader, "take"):
            # Only where it is there does a DataLoader ask for many at once.
            self.__getitems__ = self._take

    def __len__(self):
        return len(self.reader)

    def __getitem__(self, i):
        return self.wrap(self.reader[i])

    def _take(self, rows):
        return [self.wrap(image) for image in self.reader.take(rows)]

    def __getstate__(self):
        return {"reader": self.reader, "wrap": self.wrap}

    def __setstate__(self, state):
        self.__init__(**state)


def torch_loader(dataset, order, batch_size, workers, *, keep, fork, drop_last=False, collate=None):
    """A torch.utils.data.DataLoader as users make it, with an order of our own so that rows are known."""
    from torch.utils.data import DataLoader

    options = {}
    if workers:
        # PyTorch's default on Linux; what must not be forked is served by processes that start clean.
        context = multiprocessing.get_context("fork" if fork else "forkserver")
        if not fork:
            # Or each process would import torch for itself, which takes longer than any epoch here.
            context.set_forkserver_preload(["numpy", "torch.utils.data"])
        options = {"multiprocessing_context": context, "persistent_workers": keep}
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=order,
        num_workers=workers,
        drop_last=drop_last,
        collate_fn=collate,
        **options,
    )
