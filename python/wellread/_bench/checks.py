"""Pixels go back to the program, which compares them with what must be delivered.

A warm-up turn sends every value. A timed turn sends `SAMPLED` values of each image it looks at, after the clocks
have stopped for an image. Of the batches of an epoch, whose clock goes on, it looks at `BATCHES`, in each epoch at
others: looking takes as long as decoding a few small images.
"""

import numpy as np

SAMPLED = 8
BATCHES = 16


class Checker:
    """Takes what was delivered; `close` sends what is left."""

    def __init__(self, channel, full, batches=0, epoch=0):
        """`batches`: how many batches are to come, where not every one of them must be looked at."""
        self.channel, self.full = channel, full
        self.every = 1 if full else max(1, -(-batches // BATCHES))
        self.seen, self.rows, self.values = epoch % self.every, [], []

    def wants(self):
        """Whether to look at the batch that has come: asking counts it."""
        self.seen += 1
        return self.seen % self.every == 0

    def add(self, rows, pixels):
        """`pixels`: a float32 array, one image per row."""
        images = pixels.reshape(len(rows), -1)
        if images.dtype != np.float32:
            raise TypeError(f"{images.dtype} was delivered where float32 is asked for")
        if self.full:
            self._send(rows, images, True)
            return
        last = images.shape[1] - 1
        self.rows.extend(rows)
        self.values.append(images[:, [i * last // (SAMPLED - 1) for i in range(SAMPLED)]])

    def close(self):
        """Send the samples."""
        if self.values:
            self._send(self.rows, np.concatenate(self.values), False)
        self.rows, self.values = [], []

    def _send(self, rows, images, full):
        rows = [int(row) for row in rows]
        self.channel.send({"event": "pixels", "rows": rows, "all": full}, np.ascontiguousarray(images))
