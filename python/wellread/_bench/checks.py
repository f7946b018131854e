"""Pixels go back to the program, which compares them with what must be delivered.

A warm-up turn sends every value. A timed turn sends `SAMPLED` values of each image it looks at, after the clocks have
stopped for an image. In an epoch, whose clock goes on, it looks at the first batch and at `BATCHES` more, drawn anew
each time. Looking takes longer than loading a batch of small images, and a turn has up to fifty epochs.
"""

import random

import numpy as np

SAMPLED = 8
BATCHES = 1


class Checker:
    """Takes what was delivered; `close` sends what is left."""

    def __init__(self, channel, full, batches=0, epoch=0):
        """`batches`: how many batches are to come, where not every one of them must be looked at."""
        self.channel, self.full = channel, full
        every = 1 if full else max(1, -(-batches // BATCHES))
        # An epoch that is cut short has at least the first.
        self.chosen = {0, *range(1 + random.Random(epoch).randrange(max(1, every - 1)), batches, every)}
        """The batches to look at."""
        self.rows, self.values, self.sampled = [], [], None

    def add(self, rows, pixels):
        """`pixels`: a float32 array, one image per row; `rows`: which they are, or what tells it, in `close`."""
        images = pixels.reshape(len(pixels) if callable(rows) else len(rows), -1)
        if images.dtype != np.float32:
            raise TypeError(f"{images.dtype} was delivered where float32 is asked for")
        if self.full:
            self._send([rows], images, True)
            return
        if self.sampled is None or self.sampled[0] != images.shape[1]:
            last = images.shape[1] - 1
            self.sampled = images.shape[1], np.array([i * last // (SAMPLED - 1) for i in range(SAMPLED)])
        self.rows.append(rows)
        self.values.append(images.take(self.sampled[1], axis=1))

    def close(self):
        """Send the samples."""
        if self.values:
            self._send(self.rows, np.concatenate(self.values), False)
        self.rows, self.values = [], []

    def _send(self, rows, images, full):
        rows = [int(row) for part in rows for row in (part() if callable(part) else part)]
        self.channel.send({"event": "pixels", "rows": rows, "all": full}, np.ascontiguousarray(images))
