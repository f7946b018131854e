"""Seconds of what a run does again and again: its batches and epochs, warm-up apart."""

from __future__ import annotations

from array import array

from .phases import Report

#: What is timed of every batch, in the order in which it happens. ``batch_step`` is all that is done with a batch
#: once it is on the device: forward, and what follows.
BATCH = ("batch_loading", "batch_to_device", "batch_forward", "batch_postprocess", "batch_step")


class Steps:
    """The samples of a run. They are told at ends of epochs, so that a run that is killed keeps most."""

    def __init__(self) -> None:
        self.seconds = {name: array("d") for name in (*BATCH, "epoch")}
        self._told = dict.fromkeys(self.seconds, 0)
        self._warm_up: int | None = None

    def add(self, name: str, seconds: float) -> None:
        """One more."""
        self.seconds[name].append(seconds)

    @property
    def batches(self) -> int:
        """Batches so far."""
        return len(self.seconds["batch_step"])

    def settle(self, on_cuda: bool, epoch_follows: bool) -> None:
        """Decides, at the end of the first epoch, what of it is warm-up.

        All of it where another follows, since caches fill in a first epoch. Else it is the first batch, and on
        CUDA two more, in which cuDNN chooses its algorithms and the allocator grows.
        """
        if self._warm_up is None:
            self._warm_up = self.batches if epoch_follows else min(3 if on_cuda else 1, self.batches)

    def tell(self, report: Report) -> None:
        """Reports what has not been reported. Call :meth:`settle` before."""
        for name, seconds in self.seconds.items():
            told, warm_up = self._told[name], 1 if name == "epoch" else self._warm_up or 0
            report.samples(name, seconds[told:], max(warm_up - told, 0))
            self._told[name] = len(seconds)
