"""Inference in a framework: what `wellread infer` and `wellread embed` ask of a worker, one file per framework.

    open    import the framework, choose a device, load the weights      ─▶ what it is, in words
    batch   take the images of a batch from shared memory, compile       ─▶ compilation_time_ms
    run     so many forward passes                                       ─▶ raw nanoseconds, device memory
    logits  the last outputs to shared memory                            ─▶ their shape
    rest    let go of the last batch
    step    fetch images from shared memory, one forward pass            ─▶ nanoseconds of both

The program writes images and reads logits; nothing of them passes through the pipe. A session (see `base`) is a
framework with a model; to add one, write its file and its line in `SESSIONS`.
"""

import importlib
import os

from .. import memory
from ..clock import OVERHEAD_NS, net, now
from ..errors import Unusable
from ..frameworks import FRAMEWORKS
from . import shared
from .timing import passes

SESSIONS = {"pytorch": "pytorch:PyTorch", "jax": "jax:Jax", "python": "callable:Callable"}


class Inference:
    """A session, once `open` has made it."""

    def __init__(self):
        self.session = self.images = self.outputs = None

    def open(self, request):
        """Make the session; says what it runs on and how."""
        name = request["framework"]
        module, class_name = SESSIONS[name].split(":")
        # Before any library is imported: XLA has no other way to be told.
        os.environ["NPROC"] = str(request["threads"])
        begin = now()
        try:
            kind = getattr(importlib.import_module(f".{module}", __name__), class_name)
        except ImportError as error:
            if name not in FRAMEWORKS:
                raise
            entry = FRAMEWORKS[name]
            raise Unusable(f"{entry.package} cannot be imported ({error}); {entry.hint}") from error
        imported = now()
        self.session = kind(request)
        done = now()
        return {
            **self.session.facts(),
            "import_ms": net(imported - begin) / 1e6,
            "load_ms": net(done - imported) / 1e6,
            "clock_overhead_ns": OVERHEAD_NS,
        }

    def batch(self, request):
        """Fetch a batch and prepare for its shape."""
        self.images = shared.Images(request["images"], request["shape"])
        self.outputs = request["logits"]
        with explained(self.session, request["shape"]):
            self.session.fetch(self.images.array)
            return {"compilation_time_ms": self.session.prepare()}

    def run(self, request):
        """Forward passes, timed one by one."""
        with explained(self.session, self.images.shape):
            samples, wall = passes(self.session, request["passes"])
        return {"samples_ns": samples, "wall_ns": wall, "device_peak_bytes": self.session.device_peak()}

    def logits(self, _request):
        """The outputs of the last pass, for the program."""
        found = self.session.logits()
        shared.write(self.outputs, found)
        return {"shape": list(found.shape)}

    def rest(self, _request):
        """Let go of the last batch."""
        self.session.forget()
        self.images = None
        memory.give_back()
        return {}

    def step(self, _request):
        """The work of a program that is fed: images to the device, one pass, done."""
        with explained(self.session, self.images.shape), self.session.guard():
            begin = now()
            self.session.fetch(self.images.array)
            fetched = now()
            self.session.run()
            self.session.wait()
            done = now()
            return {"fetch_ns": net(fetched - begin), "forward_ns": net(done - fetched)}


class explained:
    """Says in words what a framework raises when memory runs out or it lacks a type."""

    MEMORY = ("out of memory", "RESOURCE_EXHAUSTED", "can't allocate memory", "not enough memory", "bad_alloc")
    MISSING = ("not implemented for", "UNIMPLEMENTED", "unsupported dtype", "Unsupported type")

    def __init__(self, session, shape):
        self.session, self.shape = session, shape

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        if error is None or isinstance(error, Unusable):
            return
        # What compiles wraps errors in long ones: the words may stand anywhere.
        whole = " ".join(str(error).split())
        text = whole[:400]
        if isinstance(error, MemoryError) or any(part in whole for part in self.MEMORY):
            self.session.forget()
            raise Unusable(f"the batch of {self.shape[0]} does not fit in memory: {text}") from error
        if any(part in whole for part in self.MISSING):
            raise Unusable(
                f"{self.session.label} on {self.session.place} does not compute this model in {self.session.dtype}: "
                f"{text} (float32 always works)"
            ) from error
