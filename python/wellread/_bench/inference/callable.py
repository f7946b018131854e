"""A model of the user's own, `python:package.module:Class`, called with batches: `wellread embed` runs it.

    a class                        made once, without arguments (or with `in_channels`, if it takes that), then called
    a function without parameters  called once; what it returns is the model
    anything else                  is the model

A `torch.nn.Module` is put into evaluation mode, on the best device there is, and called with a tensor in inference
mode. Anything else is called with a NumPy array, which is its own to keep. Both are float32, N x C x H x W, and
return one array or tensor with a row per image. The first counts if there are several (a tuple).
"""

import inspect
import platform
import sys

import numpy as np

from ..errors import Unusable
from ..models.user import USER
from ..words import counted
from . import base


class Callable(base.Session):
    label = "the model"

    def __init__(self, request):
        super().__init__(request)
        self.name = request["model"]
        self.call = self._made(request["input"][0])
        self.torch = module_of_torch(self.call)
        if self.torch:
            self._prepare_torch(request["device"])
        else:
            if request["device"] not in (None, "cpu"):
                raise Unusable(
                    f"--model {self.name} is no torch.nn.Module: where it runs is its own affair; leave out "
                    "--device-prefer"
                )
            self.place, self.device = "cpu", None
        self.inputs = self.output = None

    def _made(self, channels):
        found = USER.load(self.name)
        self.source = source_of(found)
        if inspect.isclass(found):
            found = USER.create(self.name, found, in_channels=channels)
        elif inspect.isfunction(found) and not inspect.signature(found).parameters:
            found = USER.create(self.name, found)
        if not callable(found):
            raise Unusable(
                f"--model {self.name} makes a {type(found).__name__}, which cannot be called with a batch; define "
                "__call__"
            )
        return found

    def _prepare_torch(self, wanted):
        from .pytorch import choose

        self.torch.set_num_threads(self.threads)
        self.device = choose(wanted)
        self.place = str(self.device)
        self.call = self.call.eval().requires_grad_(False).to(self.device, self.torch.float32)

    def facts(self):
        versions = {"numpy": np.__version__, "python": platform.python_version()}
        device_type, device_name = "cpu", None
        backend = f"{self.name} in Python {platform.python_version()}"
        if self.torch:
            versions["torch"] = self.torch.__version__
            device_type = self.device.type
            threads = counted(self.threads, "thread")
            backend = f"{self.name} in torch {self.torch.__version__} ({self.place}, {threads})"
            if device_type == "cuda":
                device_name = self.torch.cuda.get_device_name(self.device)
        return {
            "backend": backend,
            "device": self.place,
            "device_type": device_type,
            "device_name": device_name,
            "versions": versions,
            "layout": "NCHW",
            "notes": self.notes,
            "source": self.source,
        }

    def fetch(self, images):
        # A copy: the program writes the next batch to the place of this one.
        host = np.array(images)
        self.inputs = self.torch.from_numpy(host).to(self.device) if self.torch else host

    def prepare(self):
        self.run()
        self.wait()

    def run(self):
        try:
            if self.torch:
                with self.torch.inference_mode():
                    found = self.call(self.inputs)
            else:
                found = self.call(self.inputs)
        # Those that say how memory ran out are told by who asked.
        except MemoryError:
            raise
        except Exception as error:
            text = " ".join(str(error).split())
            raise Unusable(
                f"--model {self.name} raised {type(error).__name__}: {text} (it was called with a batch of "
                f"{' x '.join(map(str, self.inputs.shape))})"
            ) from error
        self.output = found[0] if isinstance(found, tuple) and found else found

    def wait(self):
        if self.torch and self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)
        elif self.torch and self.device.type == "mps":
            self.torch.mps.synchronize()

    def logits(self):
        found = self.output
        if hasattr(found, "detach"):
            found = found.detach().float().cpu().numpy()
        try:
            array = np.asarray(found, np.float32)
        except (TypeError, ValueError) as error:
            raise Unusable(
                f"--model {self.name} returned a {type(self.output).__name__} that is no array of numbers; return "
                "one array or tensor with a row per image"
            ) from error
        return array

    def forget(self):
        self.inputs = self.output = None
        if self.torch and self.device.type == "cuda":
            self.torch.cuda.empty_cache()


def module_of_torch(model):
    """PyTorch, where the model is one of its modules; else none, and nothing is imported."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(model, torch.nn.Module) else None


def source_of(found):
    """The file of the model's code; none where nobody knows."""
    try:
        return inspect.getsourcefile(found)
    except TypeError:
        module = inspect.getmodule(type(found))
        return getattr(module, "__file__", None)
