"""When the epochs of a loader begin: with the first batch of an iteration, or where a trainer says."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from . import _check

if TYPE_CHECKING:
    from ._loader_base import LoaderBase

# Held while an iteration takes its epoch. A fork waits for it, so that the child can begin iterations.
BEGINNING = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=BEGINNING.acquire, after_in_parent=BEGINNING.release, after_in_child=BEGINNING.release)


class EpochSampler:
    """Stands where torch's loaders have a sampler, for trainers. Lightning loads no state of a loader that was saved
    between two epochs: it says which epoch it begins, and nothing else."""

    def __init__(self, loader: LoaderBase[Any]) -> None:
        self._loader = loader
        self.batch_size = loader.batch_size

    @property
    def sampler(self) -> EpochSampler:
        return self

    def set_epoch(self, epoch: int) -> None:
        if _check.whole("epoch", epoch, 0, 2**64 - 2) > self._loader.epoch:
            self._loader.set_epoch(epoch)
