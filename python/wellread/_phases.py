"""Timers of phases, with what each did to memory; the device is waited for before the clock is read."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from . import _memory

_MIB = 1024 * 1024

# Where each phase stands in the results: group and name, or only a name. One measurement may have two places.
_PLACES = {
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


class Meter:
    """Clock and memory of a device: torch's, if CUDA, else the host's."""

    def __init__(self) -> None:
        self._device: Any = None

    def use(self, device: Any) -> None:
        """From now on measures this torch device."""
        self._device = device if getattr(device, "type", None) == "cuda" else None

    @property
    def memory_of(self) -> str:
        """Whose memory phases are told of: "host", or a device such as "cuda:0"."""
        return "host" if self._device is None else str(self._device)

    def now(self) -> float:
        """Seconds, once the device has done what was asked of it."""
        if self._device is not None:
            import torch

            torch.cuda.synchronize(self._device)
        return time.perf_counter()

    def memory_mb(self) -> float | None:
        """Memory in use, in MiB: allocated on the device, or resident on the host."""
        if self._device is None:
            return _memory.resident_mb()
        import torch

        return torch.cuda.memory_allocated(self._device) / _MIB

    def peak_mb(self) -> float | None:
        """The most so far. It is never reset, so phases within phases do not hide it from each other."""
        if self._device is None:
            return _memory.resident_mb(peak=True)
        import torch

        return torch.cuda.max_memory_allocated(self._device) / _MIB

    def peaks(self, proportional: float | None) -> dict[str, float | None]:
        """Peaks of the host and of the device, in MiB."""
        found = {"host_rss_mb": _memory.resident_mb(peak=True), "host_pss_mb": proportional}
        if self._device is not None:
            import torch

            found["cuda_allocated_mb"] = torch.cuda.max_memory_allocated(self._device) / _MIB
            found["cuda_reserved_mb"] = torch.cuda.max_memory_reserved(self._device) / _MIB
        return found


class Phases:
    """Phases by name. One that is run several times is added up."""

    def __init__(self, meter: Meter):
        self._meter = meter
        self._open: dict[str, tuple[float, str, float | None]] = {}
        self.done: dict[str, dict[str, float | None]] = {}
        self.rank = 0

    def begin(self, name: str) -> None:
        """Begins a phase, unless it is under way."""
        if name not in self._open:
            self._open[name] = self._meter.now(), self._meter.memory_of, self._meter.memory_mb()

    def end(self, name: str) -> None:
        """Ends a phase, if it is under way."""
        if name not in self._open:
            return
        began, of, before = self._open.pop(name)
        elapsed, after = self._meter.now() - began, self._meter.memory_mb()
        # The host's memory at the beginning tells nothing about a device's at the end.
        comparable = of == self._meter.memory_of and before is not None and after is not None
        delta = after - before if comparable else None
        self.add(
            name, {"elapsed_seconds": elapsed, "memory_delta_mb": delta, "peak_memory_mb": self._meter.peak_mb()}
        )

    def add(self, name: str, timer: dict[str, float | None]) -> None:
        """Adds a measurement, and tells it to the file of ``WELLREAD_PHASES_FILE``."""
        known = self.done.get(name)
        if known is None:
            self.done[name] = dict(timer)
        else:
            for key in ("elapsed_seconds", "memory_delta_mb"):
                known[key] = None if known[key] is None or timer[key] is None else known[key] + timer[key]
            known["peak_memory_mb"] = timer["peak_memory_mb"]
        path = os.environ.get("WELLREAD_PHASES_FILE")
        if path:
            line = json.dumps({"phase": name, **timer, "ended_at": time.time(), "rank": self.rank})
            # One write of a short line: those of several ranks do not mix.
            with open(path, "a") as file:
                file.write(line + "\n")

    def grouped(self) -> dict[str, Any]:
        """The timers as the results of ``wellread tasks`` have them."""
        found: dict[str, Any] = {}
        for name, timer in self.done.items():
            for place in _PLACES.get(name, ((name,),)):
                group = found
                for part in place[:-1]:
                    group = group.setdefault(part, {})
                group[place[-1]] = timer
        return found
