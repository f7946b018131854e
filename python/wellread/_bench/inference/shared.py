"""Images and logits in shared memory: files that the program makes, usually in the memory of `/dev/shm`."""

import numpy as np


class Images:
    """A batch, N x C x H x W float32, seen where it lies. The program may write the next one to the same place."""

    def __init__(self, path, shape):
        self.shape = tuple(shape)
        # Copy on write: torch warns of arrays that cannot be written, and nothing of ours writes.
        self.array = np.memmap(path, np.float32, "c", shape=self.shape)


def write(path, array):
    """Put float32 values at the beginning of a file that is there and large enough."""
    with open(path, "r+b", buffering=0) as file:
        file.write(memoryview(np.ascontiguousarray(array, np.float32)).cast("B"))
