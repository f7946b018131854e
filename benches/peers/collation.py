"""Batches that are made whole, for torch's DataLoader: their memory, and a collation that leaves them as they are."""

import math

import numpy as np
import torch
from torch.utils.data import get_worker_info


def as_it_is(batch):
    """Collation of what is a batch already."""
    return batch


def room(shape):
    """Memory of a batch. In a worker it is shared, as that of torch's own collation (`default_collate`): sending it
    copies nothing. Else it is NumPy's, which asks the kernel for large pages: torch's own memory takes about four
    times as long to be filled for the first time."""
    if get_worker_info() is None:
        return torch.from_numpy(np.empty(shape, np.float32))
    return torch.empty(0).set_(torch.UntypedStorage._new_shared(4 * math.prod(shape)), 0, shape)
