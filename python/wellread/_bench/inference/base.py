"""The interface of a session to `Inference`: a framework, a device, a model in it, and a batch."""

import contextlib
from abc import ABC, abstractmethod

DTYPES = ("float32", "float16", "bfloat16")


class Session(ABC):
    """The request of `open` has `threads`, `device` (or none), `dtype`, `model`, `weights` and `variant`."""

    label = ""
    """Name of the framework for people."""

    def __init__(self, request):
        self.threads, self.dtype = request["threads"], request["dtype"]
        self.place = "?"
        """The device, such as `cuda:0`."""
        self.notes = []
        """Facts that a reader of the figures must know."""

    @abstractmethod
    def facts(self):
        """Facts of the run: `backend`, `device`, `device_type`, `device_name`, `versions`, `layout`, `notes`."""

    @abstractmethod
    def fetch(self, images):
        """Make the input of a float32 NCHW array, in the device's memory and the model's type and layout."""

    @abstractmethod
    def prepare(self):
        """Compile for the input; milliseconds that took, or none where nothing is compiled. Runs it once."""

    def guard(self):
        """Entered around passes."""
        return contextlib.nullcontext()

    @abstractmethod
    def run(self):
        """Begin a forward pass."""

    @abstractmethod
    def wait(self):
        """Until the device is done."""

    @abstractmethod
    def logits(self):
        """Outputs of the last pass: a float32 array."""

    def device_peak(self):
        """Most bytes the framework's allocator held on the device since `forget`; none on the CPU."""
        return None

    @abstractmethod
    def forget(self):
        """Let go of the batch, and of what the allocator keeps."""
