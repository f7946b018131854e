"""Are these the pixels? The same check for every loader, outside of the clock.

A batch of `float32` in [0, 1] is taken back to the stored whole numbers. Values that lie between two of them are
wrong, and so is a checksum that is not that of an image asked for. Where in a batch an image stands is left open, as
for training.
"""

import zlib
from collections import Counter

import numpy as np

# Of one step of the stored type: float32 of 16 bits is within 0.005 of it.
TOLERANCE = 0.02


def checksum(stored):
    """The checksum of stored pixels."""
    return zlib.crc32(np.ascontiguousarray(stored).tobytes())


def of_batch(batch, dtype):
    """The checksum of each image of a scaled batch; raises ValueError where it does not hold scaled pixels."""
    if batch.dtype != np.float32:
        raise ValueError(f"a batch of {batch.dtype}, not float32")
    values = batch * np.float32(np.iinfo(dtype).max)
    whole = np.rint(values)
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(values - whole) <= TOLERANCE)
    if far.any() or whole.min() < 0 or whole.max() > np.iinfo(dtype).max:
        raise ValueError("pixels that are no stored value divided by the largest one of its type")
    return [checksum(image) for image in whole.astype(dtype)]


def wrong(found, rows, expected):
    """The fault of these checksums, which must be those of `rows`; None where there is none."""
    wanted = Counter(expected[row] for row in rows)
    other = Counter(found) - wanted
    if other or len(found) != len(rows):
        return f"{len(found)} images for {len(rows)} rows, {other.total()} of them with other pixels"
    return None
