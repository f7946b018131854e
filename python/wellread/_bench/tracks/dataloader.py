"""Track 2: whole shuffled epochs in batches.

A batch's time is from asking the iterator to having the framework's array. The first batch, which waits for worker
processes to start, is given apart and is no item. Each epoch opens anew, unless the loader is kept from turn to turn.
An epoch that has used up its share of the time is cut short after two batches at least.

The epoch's clock runs from beginning an iteration to its end, and a batch of small images takes 10 us to load. Peers,
which shuffle as they are told to, are given their order before. Where a loader is kept, all else waits for the end of
the turn. It is to ask which rows an epoch had, to send pixels, to make figures of times. After 2 ms of other work
between two epochs of 0.65 ms the second took 0.85: its threads sleep, its caches hold other things.
"""

import numpy as np

from ..checks import Checker
from ..clock import net, now
from . import open_reader


def turn(worker, request):
    """Epochs for `turn_s` seconds; one where every pixel is compared.

    A loader that is kept runs one more epoch as it is opened: its first one, which is timed and not compared in full.
    """
    first = None
    if request["keep"] and request["key"] not in worker.kept:
        # Its pixels are those of the next one, which are compared: they are not sent.
        first, _ = epoch(worker, {**request, "full": False}, request["first_epoch"])
    begin, epochs, checkers = now(), [], []
    while not epochs or (
        not request["full"] and now() - begin < request["turn_s"] * 1e9 and len(epochs) < request["most_epochs"]
    ):
        measured, checker = epoch(worker, request, request["first_epoch"] + len(epochs))
        epochs.append(measured)
        if request["keep"]:
            checkers.append(checker)
        else:
            # It holds its loader, whose memory the next one is to have.
            checker.close()
    # The program compares pixels when they come: on a processor that the next epoch's threads want.
    for checker in checkers:
        checker.close()
    if request["full"] and request["keep"]:
        worker.kept[request["key"]].read_ahead()
    return {"epochs": epochs, "first": first}


class Order:
    """A sampler: the rows of an epoch, in an order that this program knows."""

    def __init__(self, count):
        self.count, self.rows = count, []

    def shuffle(self, seed, epoch):
        rows = self.rows = np.random.default_rng((seed, epoch)).permutation(self.count).tolist()
        return lambda: rows

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(self.rows)


class Batches:
    """A loader over a reader, and the rows of its batches: PyTorch's, or the reader's own."""

    def __init__(self, framework, request, drop_last=False):
        reader = open_reader(request, framework)
        self.seed, self.size, workers = request["seed"], request["batch_size"], request["workers"]
        self.order, self.count = list, len(reader)
        self.read_ahead = lambda: None
        if hasattr(reader, "loader"):
            self.loader = reader.loader(self.size, self.seed, workers, drop_last)
            self.read_ahead = lambda: reader.read_ahead(self.loader)
            self.begin = lambda epoch: reader.begin(self.loader, epoch)
        else:
            sampler = Order(len(reader))
            self.begin = lambda epoch: sampler.shuffle(self.seed, epoch)
            keep = request.get("keep", False)
            self.loader = framework.batches(reader, sampler, self.size, workers, keep=keep, drop_last=drop_last)

    def __len__(self):
        return len(self.loader)

    def shuffle(self, number):
        """Chooses the epoch that is iterated over next."""
        self.order = self.begin(number)

    def __iter__(self):
        return iter(self.loader)

    def traffic(self):
        """Bytes read of files so far, bytes of pixels that went into batches; `None` of loaders that count none."""
        counted = getattr(self.loader, "traffic", None)
        return counted and [counted["read"], counted["used"]]

    def link(self):
        """Requests, bytes received and seconds waited so far; `None` of sets on this machine and of other loaders."""
        if getattr(self.loader, "traffic", None) is None:
            return None
        stats = self.loader.stats()
        known = stats["requests"] is not None
        return [stats["requests"], stats["bytes_received"], stats["link_wait_s"]] if known else None

    def rows_later(self, k):
        """A function that gives the rows of batch `k` of this epoch."""
        order, size = self.order, self.size
        return lambda: order()[k * size : (k + 1) * size]

    def images(self, batches):
        """Images of the first batches of an epoch that drops none."""
        return min(batches * self.size, self.count)


def epoch(worker, request, number):
    """One epoch: opening, first batch, the others; and the pixels that were looked at, still to be sent."""
    framework, key = worker.framework, request["key"]
    opening = now()
    kept = worker.kept.get(key)
    batches = kept or Batches(framework, request)
    opened = now()
    if request["keep"]:
        worker.kept[key] = batches
    batches.shuffle(number)
    traffic, link = batches.traffic(), batches.link()
    checker = Checker(worker.channel, request["full"], len(batches), number)
    share, times = int(request["share_s"] * 1e9), []
    most = float("inf") if request["full_s"] is None else request["full_s"] * 1e9
    # A warm-up turn compares every pixel, for as long as peers are given for it.
    longest = most if request["full"] else share
    looks_at, arrive = checker.chosen, framework.arrival()
    start = asked = now()
    iterator, cut = iter(batches), False
    while (batch := next(iterator, None)) is not None:
        if arrive is not None:
            batch = arrive(batch)
        last = now()
        times.append(last - asked)
        if len(times) - 1 in looks_at:
            checker.add(batches.rows_later(len(times) - 1), framework.to_numpy(batch))
        if last - start > longest and len(times) > 1:
            cut = True
            break
        asked = now()
    end = last if cut else now()
    if not times:
        raise ValueError("the loader delivered no batch")
    if len(times) > len(batches):
        raise ValueError(f"the loader delivered {len(times)} batches, and said that it has {len(batches)}")
    del iterator
    measured = {
        "open_ns": None if kept else net(opened - opening),
        # Without what this worker does between the two: drawing a peer's order, looking for a device.
        "first_batch_ns": None if kept else net(opened - opening + times[0]),
        "whole_ns": net(end - start),
        "items_ns": [net(time) for time in times[1:]],
        "images": batches.images(len(times)),
        "whole": not cut,
        # Of other loaders it is their processes, or one.
        "readers": getattr(batches.loader, "readers", None),
        "traffic": traffic and [traffic, batches.traffic()],
        "link": link and [link, batches.link()],
    }
    return measured, checker
