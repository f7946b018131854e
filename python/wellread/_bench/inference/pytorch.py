"""PyTorch: torchvision's models, eager or by one or more of the ways to make them faster.

    compile        torch.compile; compile=reduce-overhead and compile=max-autotune are its modes
    channels-last  weights and images in channels-last memory format
    autocast       float32 weights, operations in the half type that was asked for
    cuda-graphs    the pass captured as a CUDA graph and replayed
    tensorrt       torch_tensorrt
    tf32           float32 products in TF32 where the device has it (PyTorch's own default for convolutions)

None of them is "eager". Passes run in inference mode.
"""

import contextlib
import os
import platform

# What compiling takes is measured; that an earlier run has done it would not be a measurement.
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")

import numpy as np
import torch

from ..clock import net, now
from ..errors import Unusable
from ..words import counted
from . import base, weights

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class PyTorch(base.Session):
    label = "PyTorch"

    def __init__(self, request):
        super().__init__(request)
        torch.set_num_threads(self.threads)
        self.options = set(request["variant"])
        self.device = choose(request["device"])
        self.place = str(self.device)
        self.type = getattr(torch, self.dtype)
        self.mode = next((o.split("=")[1] for o in self.options if o.startswith("compile=")), "default")
        self.compiles = any(o == "compile" or o.startswith("compile=") for o in self.options)
        self._check()
        tf32 = "tf32" in self.options
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
        # The shapes of a run do not change, so cuDNN may look for its fastest algorithm in the warm-up.
        torch.backends.cudnn.benchmark = True
        if self.device.type == "cuda" and self.dtype == "float32":
            self.notes.append("TF32 on" if tf32 else "TF32 off, cudnn.benchmark on")
        self.module = self._model(request)
        self.inputs = self.output = self.graph = None
        self.call, self.most = self.module, 0

    def _check(self):
        if self.mode not in MODES:
            raise Unusable(f"compile={self.mode} is no mode of torch.compile; there are {', '.join(MODES)}")
        for option in ("cuda-graphs", "tensorrt"):
            if option in self.options and self.device.type != "cuda":
                raise Unusable(f"{option} needs a CUDA device, and PyTorch runs on {self.place} here")
        if {"cuda-graphs", "tensorrt"} <= self.options or (self.compiles and "tensorrt" in self.options):
            raise Unusable("tensorrt stands alone: it goes neither with compile nor with cuda-graphs")
        if "autocast" in self.options and self.dtype == "float32":
            raise Unusable("autocast computes in a half type; add --dtype float16 or bfloat16")

    def _model(self, request):
        if request["model"].endswith(".onnx"):
            module = converted(request["model"])
        else:
            module = torchvision_model(request["model"], request["weights"])
        module = module.eval().to(self.device)
        # Autocast keeps what it has cast of parameters that could be trained, and of no others.
        if "autocast" not in self.options:
            module = module.requires_grad_(False).to(self.type)
        return module.to(memory_format=self._layout())

    def _layout(self):
        return torch.channels_last if "channels-last" in self.options else torch.contiguous_format

    def facts(self):
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self._device_name()
        return {
            "backend": f"torch {torch.__version__} ({self.place}, {counted(torch.get_num_threads(), 'thread')})",
            "device": self.place,
            "device_type": self.device.type,
            "device_name": name,
            "versions": {"torch": torch.__version__, "python": platform.python_version()},
            "layout": "NHWC" if "channels-last" in self.options else "NCHW",
            "notes": self.notes,
        }

    def _device_name(self):
        return "Apple Silicon GPU (Metal)" if self.device.type == "mps" else None

    def fetch(self, images):
        host = torch.from_numpy(np.asarray(images))
        kind = torch.float32 if "autocast" in self.options else self.type
        if self.inputs is None or self.inputs.shape != host.shape:
            self.inputs = torch.empty(host.shape, dtype=kind, device=self.device, memory_format=self._layout())
        # One copy, to where a graph reads it; the program writes the next batch to the place of this one.
        self.inputs.copy_(host)
        self.wait()

    def prepare(self):
        with self.guard():
            if self.compiles:
                torch._dynamo.reset()
                self.call = torch.compile(self.module, mode=self.mode, dynamic=False)
            begin = now()
            if "tensorrt" in self.options:
                self.call = self._tensorrt()
            self.output = self.call(self.inputs)
            if "cuda-graphs" in self.options:
                self._capture()
            self.wait()
            took = net(now() - begin)
            if not (self.compiles or {"cuda-graphs", "tensorrt"} & self.options):
                return None
            # The first call compiled and ran; a second one runs only.
            begin = now()
            self.run()
            self.wait()
            return max(took - net(now() - begin), 0) / 1e6

    def _tensorrt(self):
        try:
            import torch_tensorrt
        except ImportError as error:
            raise Unusable(
                f"torch_tensorrt cannot be imported ({error}); pip install torch-tensorrt beside a torch with CUDA"
            ) from error
        return torch_tensorrt.compile(
            self.module, ir="dynamo", inputs=[self.inputs], enabled_precisions={torch.float32, self.type}
        )

    def _capture(self):
        """Warm up on a stream of its own, then capture, as PyTorch's documentation has it."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.call(self.inputs)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = self.call(self.inputs)

    @contextlib.contextmanager
    def guard(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            if "autocast" in self.options:
                stack.enter_context(torch.autocast(self.device.type, self.type))
            yield

    def run(self):
        if self.graph is not None:
            self.graph.replay()
        else:
            self.output = self.call(self.inputs)

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()

    def logits(self):
        # Of several outputs of a user's ONNX file, the first counts, as in ONNX Runtime.
        several = isinstance(self.output, (tuple, list))
        return (self.output[0] if several else self.output).float().cpu().numpy()

    def device_peak(self):
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        if self.device.type == "mps":
            # Metal keeps no peak: the most that was there whenever somebody asked.
            self.most = max(self.most, torch.mps.driver_allocated_memory())
            return self.most
        return None

    def forget(self):
        self.inputs = self.output = self.graph = None
        self.call, self.most = self.module, 0
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        elif self.device.type == "mps":
            torch.mps.empty_cache()


def choose(wanted):
    """The device that was asked for; else the best there is."""
    there = ["cpu"]
    if torch.backends.mps.is_available():
        there.insert(0, "mps")
    if torch.cuda.is_available():
        there.insert(0, "cuda")
    if wanted in (None, *there):
        kind = wanted or there[0]
        return torch.device("cuda", torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)
    raise Unusable(f"torch {torch.__version__} finds no {wanted} device here; it has {', '.join(there)}")


def torchvision_model(name, path):
    """An architecture of torchvision with the weights of a file."""
    try:
        import torchvision
    except ImportError as error:
        raise Unusable(f"torchvision cannot be imported ({error}); pip install torchvision") from error
    arrays = weights.load(path)
    with torch.device("meta"):
        module = torchvision.models.get_model(name, weights=None)
    # Arrays are views of a file that cannot be written.
    state = {key: torch.from_numpy(np.array(value)) for key, value in arrays.items()}
    missing, surplus = module.load_state_dict(state, strict=False, assign=True)
    # A counter of training steps, which inference does not use.
    missing = [key for key in missing if not key.endswith("num_batches_tracked")]
    if missing or surplus:
        raise Unusable(f"{path} is not the weights of {name}: {', '.join([*missing, *surplus][:3])} differ")
    for key, buffer in list(module.named_buffers()):
        if buffer.is_meta:
            owner, leaf = key.rsplit(".", 1)
            module.get_submodule(owner).register_buffer(leaf, torch.zeros_like(buffer, device="cpu"))
    return module


def converted(path):
    """A user's ONNX file as a module."""
    try:
        import onnx2torch
    except ImportError as error:
        raise Unusable(
            f"PyTorch itself reads no ONNX files, and onnx2torch cannot be imported ({error}); pip install "
            "onnx2torch, or run the file with --framework onnxruntime"
        ) from error
    return onnx2torch.convert(path)
