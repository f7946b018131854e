"""Loaders of peers that read files of their own with the sites of a plate in them (`benches/front.py`).

Lance    a row for each site: one column of bytes, a Zstandard frame for each channel, one behind the other
LitData  a sample for each site: its number and its pixels; LitData compresses each sample and shuffles by itself
"""

import numpy as np
import torch
from collation import room
from peers import ahead_of_use
from plate_sets import CHANNELS, SCALE


def pylance(job, _):
    """pylance: the rows of a batch by one `take`; threads take and decode the next batches."""
    import imagecodecs
    import lance

    dataset, size = lance.dataset(job.path), job.plate.size()

    def take(rows):
        column = dataset.take(rows, columns=["pixels"])["pixels"]
        batch = np.empty((len(rows), CHANNELS, size, size), np.float32)
        stored = np.empty(batch.shape[1:], np.uint16)
        for image, frames in zip(batch, column, strict=True):
            imagecodecs.zstd_decode(memoryview(frames.as_buffer()).cast("B"), out=stored.view(np.uint8).reshape(-1))
            np.multiply(stored, SCALE, out=image)
        return torch.from_numpy(batch)

    return ahead_of_use(job, take)


class Litdata:
    """LitData: its own loader with torch's workers, which put batches together and scale them. It shuffles shards and
    the samples within a shard: less work than the random order of all others."""

    own_order = True

    def __init__(self, job, workers):
        import litdata

        dataset = litdata.StreamingDataset(job.path, shuffle=True, seed=job.seed)
        self.told = []
        self.loader = litdata.StreamingDataLoader(
            dataset, batch_size=job.batch, num_workers=workers, collate_fn=Scaled(job.plate.size()),
            multiprocessing_context="fork" if workers else None, persistent_workers=bool(workers),
        )  # fmt: skip

    def epoch(self, e):
        self.told.clear()
        for rows, batch in self.loader:
            self.told.append(rows)
            yield batch


class Scaled:
    """Samples as their rows and a batch."""

    def __init__(self, size):
        self.shape = (CHANNELS, size, size)

    def __call__(self, samples):
        batch = room((len(samples), *self.shape))
        for image, sample in zip(batch.numpy(), samples, strict=True):
            np.multiply(sample["pixels"], SCALE, out=image)
        return [sample["row"] for sample in samples], batch
