"""An ONNX file, run by ONNX Runtime: inference only."""

import os

import numpy as np

from ..words import counted
from .errors import ModelError


class OnnxModel:
    """A session on the CPU with as many threads as the framework beside it."""

    modes = ("inference",)

    def __init__(self, path, channels, framework):
        if not os.path.isfile(path):
            raise ModelError(f"--model {path}: there is no such file")
        try:
            import onnxruntime
        except ImportError as error:
            raise ModelError(f"--model {path} needs onnxruntime ({error}); pip install onnxruntime") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = framework.threads
        try:
            self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        # Its exceptions have no common class that is public.
        except Exception as error:
            raise ModelError(f"--model {path} cannot be loaded: {error}") from error
        inputs = self.session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(one.name for one in inputs)
            raise ModelError(f"--model {path} has {len(inputs)} inputs ({names}); it must take one batch of images")
        self.path, self.input = path, inputs[0]
        self.framework = framework
        self.backend = f"onnxruntime {onnxruntime.__version__} (cpu, {counted(framework.threads, 'thread')})"
        self.channels = channels

    def why_not(self, mode):
        """Why it has no such mode."""
        return f"an ONNX file is run, not trained: there is no {mode}"

    def step(self, batch, _mode):
        """Run a batch."""
        pixels = np.ascontiguousarray(self.framework.to_numpy(batch))
        pixels = pixels.reshape(pixels.shape[0], self.channels, *pixels.shape[-2:])
        try:
            found = self.session.run(None, {self.input.name: pixels})[0]
        except Exception as error:
            raise ModelError(
                f"--model {self.path} takes no batch of {pixels.shape}; its input is {self.input.shape}: {error}"
            ) from error
        if found.ndim < 1 or found.shape[0] != pixels.shape[0]:
            raise ModelError(f"--model {self.path} returned shape {found.shape} for a batch of {pixels.shape[0]}")
