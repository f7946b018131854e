"""Timers of phases, with what each did to memory, and the writer of the lines that `wellread tasks` reads.

Phases.begin/end ─▶ Meter: clock (device waited for), memory of host and device ─▶ Report ─▶ WELLREAD_PHASES
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from . import memory

_MB = 1_000_000
# Samples of one line.
_MOST = 10_000

# Where each phase stands in the results: group and name, or only a name. One measurement may have two places.
_PLACES: dict[str, tuple[tuple[str, ...], ...]] = {
    "first_epoch": (("epoch_breakdown", "first_epoch"),),
    "first_batch_loading": (
        ("batch_breakdown", "first_batch_loading"),
        ("epoch_breakdown", "data_loading_first_batch"),
    ),
    "first_batch_to_device": (("batch_breakdown", "first_batch_to_device"),),
    "first_batch_forward": (
        ("batch_breakdown", "first_batch_forward"),
        ("epoch_breakdown", "model_forward_first_batch"),
    ),
    "first_batch_postprocess": (("batch_breakdown", "first_batch_postprocess"),),
}
# Phases that come in several parts, which are told once, added up, when no more can follow.
_IN_PARTS = {"configuration", "model_initialization", "data_setup", "checkpoint_loading"}


def rank_of_process() -> int:
    """This process's rank as its launcher (torchrun, Lightning's own, SLURM) says, 0 without one."""
    for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK"):
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return 0


class Report:
    """Appends JSON lines to the file that ``WELLREAD_PHASES`` names; without one, says nothing.

    Rank 0 alone is heard, but for errors. Each line is one write at the end of the file, so that lines of several
    processes do not mix. It holds no file open and can be pickled.
    """

    def __init__(self, rank: int = 0):
        self.rank = rank

    def phase(self, name: str, timer: dict[str, float | None]) -> None:
        """A phase that has finished."""
        self._write({"phase": name, **timer})

    def samples(self, name: str, seconds: Sequence[float], warm_up: int) -> None:
        """A repeated phase; so many of the first of `seconds` are warm-up.

        The first line has the warm-up of all: who joins lines takes the largest.
        """
        for at in range(0, len(seconds), _MOST):
            part = list(seconds[at : at + _MOST])
            self._write({"samples": name, "seconds": part, "warm_up": max(warm_up - at, 0)})

    def info(self, **known: Any) -> None:
        """Other facts of the run, such as its number of batches."""
        self._write({"info": known})

    def final_metrics(self, metrics: dict[str, Any]) -> None:
        """Measurements of the run's model. A value that is no finite number is null."""
        self._write({"final_metrics": {name: float(value) for name, value in metrics.items()}})

    def artifact(self, kind: str, path: str | os.PathLike[str]) -> None:
        """A file for the report."""
        self._write({"artifact": {"kind": kind, "path": os.fspath(path)}})

    def error(self, sentence: str) -> None:
        """Why the run fails: what, where, what to do. Every rank says it, after its number."""
        sentence = " ".join(sentence.split())
        told = f"rank {self.rank}: {sentence}" if self.rank else sentence
        self._write({"error": told}, always=True)

    def _write(self, line: dict[str, Any], always: bool = False) -> None:
        path = os.environ.get("WELLREAD_PHASES")
        if not path or (self.rank and not always):
            return
        text = json.dumps(finite(line), allow_nan=False) + "\n"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)


def finite(value: Any) -> Any:
    """The same with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return value


class Meter:
    """Clock, memory of the host, and memory of torch's device."""

    def __init__(self) -> None:
        self._device: Any = None

    def use(self, device: Any) -> None:
        """From now on waits for this torch device, and measures its memory if it is CUDA."""
        self._device = device if getattr(device, "type", None) in ("cuda", "mps") else None

    @property
    def on_cuda(self) -> bool:
        """Whether there is device memory to tell of."""
        return self._device is not None and self._device.type == "cuda"

    def now(self) -> float:
        """Seconds, once the device has done what was asked of it."""
        if self._device is not None:
            import torch

            if self.on_cuda:
                torch.cuda.synchronize(self._device)
            else:
                torch.mps.synchronize()
        return time.perf_counter()

    def peak_gpu_mb(self) -> float | None:
        """The most that torch has held allocated on the device so far, in MB."""
        if not self.on_cuda:
            return None
        import torch

        return float(torch.cuda.max_memory_allocated(self._device)) / _MB

    def peaks(self, proportional: float | None) -> dict[str, float | None]:
        """Peaks of the host and of the device, in MB."""
        found = {"host_rss_mb": memory.resident_mb(peak=True), "host_pss_mb": proportional}
        if self.on_cuda:
            import torch

            found["cuda_allocated_mb"] = torch.cuda.max_memory_allocated(self._device) / _MB
            found["cuda_reserved_mb"] = torch.cuda.max_memory_reserved(self._device) / _MB
        return found


class Phases:
    """Phases by name. One that is run several times is added up. Without a report, they are only kept."""

    def __init__(self, meter: Meter, report: Report | None = None):
        self.meter, self._report = meter, report
        self._open: dict[str, tuple[float, float | None]] = {}
        self._untold: list[str] = []
        self._failed: tuple[BaseException, str | None] | None = None
        #: Names that are told instead of some: which total it is follows from what the trainer does.
        self.names: dict[str, str] = {}
        self.done: dict[str, dict[str, float | None]] = {}

    @property
    def doing(self) -> str | None:
        """The phase that was begun last and has not ended, as it is told."""
        name = next(reversed(self._open), None)
        return None if name is None else self.names.get(name, name)

    def is_open(self, name: str) -> bool:
        """Whether a phase is under way."""
        return name in self._open

    def begin(self, name: str) -> None:
        """Begins a phase, unless it is under way."""
        if name not in self._open:
            before = memory.resident_mb()
            self._open[name] = self.meter.now(), before

    def end(self, name: str) -> None:
        """Ends a phase, if it is under way."""
        if name not in self._open:
            return
        began, before = self._open.pop(name)
        elapsed, after = self.meter.now() - began, memory.resident_mb()
        delta = None if before is None or after is None else after - before
        timer = {
            "elapsed_seconds": elapsed,
            "memory_delta_mb": delta,
            "peak_memory_mb": memory.resident_mb(peak=True),
        }
        if self.meter.on_cuda:
            timer["peak_gpu_memory_mb"] = self.meter.peak_gpu_mb()
        self.add(name, timer)

    @contextlib.contextmanager
    def during(self, name: str) -> Iterator[None]:
        """A phase that is what is done within."""
        self.begin(name)
        try:
            yield
        except BaseException as error:
            self.fails(error)
            raise
        finally:
            self.end(name)

    @contextlib.contextmanager
    def apart(self, name: str) -> Iterator[None]:
        """As :meth:`during`, of what is no part of the total: that is shorter by it."""
        began = self.meter.now()
        try:
            with self.during(name):
                yield
        finally:
            if "total" in self._open:
                start, before = self._open["total"]
                self._open["total"] = start + self.meter.now() - began, before

    def fails(self, error: BaseException) -> None:
        """Keeps in which phase an error came up."""
        if self._failed is None or self._failed[0] is not error:
            self._failed = error, self.doing

    def failed_in(self, error: BaseException) -> str | None:
        """The phase in which an error came up, or the one that it follows from; None if in no phase."""
        follows: BaseException | None = error
        while follows is not None:
            if self._failed is not None and self._failed[0] is follows:
                return self._failed[1]
            follows = follows.__cause__ or follows.__context__
        return self.doing

    def add(self, name: str, timer: dict[str, float | None]) -> None:
        """Adds a measurement, and reports it once it is whole."""
        known = self.done.get(name)
        if known is None:
            self.done[name] = dict(timer)
        else:
            for key in ("elapsed_seconds", "memory_delta_mb"):
                so_far, more = known[key], timer[key]
                known[key] = None if so_far is None or more is None else so_far + more
            known.update((key, value) for key, value in timer.items() if key.startswith("peak"))
        if name in _IN_PARTS:
            if name not in self._untold:
                self._untold.append(name)
        elif self._report is not None:
            self._report.phase(self.names.get(name, name), timer)

    def tell(self) -> None:
        """Reports the phases that come in parts: from here on there are no more."""
        for name in self._untold:
            if self._report is not None:
                self._report.phase(name, self.done[name])
        self._untold.clear()

    def grouped(self) -> dict[str, Any]:
        """The timers as the results of ``wellread tasks`` have them."""
        found: dict[str, Any] = {}
        for name, timer in self.done.items():
            for place in _PLACES.get(name, ((name,),)):
                group = found
                for part in place[:-1]:
                    group = group.setdefault(part, {})
                group[self.names.get(place[-1], place[-1])] = _shown(timer)
        return found


def _shown(timer: dict[str, float | None]) -> dict[str, float | None]:
    """A timer as results have it: the peak is the GPU's where there is one, and the host's stands beside it."""
    host, gpu = timer.get("peak_memory_mb"), timer.get("peak_gpu_memory_mb")
    return {**timer, "peak_memory_mb": host if gpu is None else gpu, "peak_host_memory_mb": host}
