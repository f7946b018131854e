"""PyTorch: torch.utils.data, eager training, NumPy to torch."""

import numpy as np
import torch

from .. import models
from ..words import counted
from .base import COPY_BYTES, Conversion, ReaderDataset, copy_rate, torch_loader


class PyTorch:
    """PyTorch with a fixed number of threads, on CUDA where there is a device."""

    name = "pytorch"
    array, array_name = torch.Tensor, "torch.Tensor"

    def __init__(self, threads, seed):
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        self.threads = threads
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.has_device = self.device.type == "cuda"
        # float32 means float32, as in the other frameworks: no products in TF32.
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False

    def versions(self):
        return {"torch": torch.__version__, "numpy": np.__version__}

    def backend(self):
        """Library, device and threads, in words."""
        where = torch.cuda.get_device_name() if self.has_device else "cpu"
        return f"torch {torch.__version__} ({where}, {counted(self.threads, 'thread')})"

    def host_to_device(self):
        """Bytes per second from pinned memory to the device; `None` where there is no device."""
        if not self.has_device:
            return None
        host = torch.zeros(COPY_BYTES, dtype=torch.uint8).pin_memory()
        there = torch.empty_like(host, device=self.device)

        def copy():
            there.copy_(host, non_blocking=True)
            torch.cuda.synchronize()

        return copy_rate(copy)

    def wait(self, _tensor=None):
        """Until the device has done what it was given."""
        if self.has_device:
            torch.cuda.synchronize()

    def to_numpy(self, tensor):
        return tensor.detach().cpu().numpy()

    def image(self, reader, i):
        """One image as a dataset's `__getitem__` gives it."""
        found = reader[i]
        return found if isinstance(found, torch.Tensor) else torch.from_numpy(found)

    def batches(self, reader, order, batch_size, workers, keep=False, drop_last=False):
        """A loader of the reader's images in batches."""
        dataset = ReaderDataset(reader, torch_tensor)
        fork = getattr(reader, "fork_safe", True)
        return torch_loader(dataset, order, batch_size, workers, keep=keep, fork=fork, drop_last=drop_last)

    def batch(self, delivered):
        """A delivered batch as this framework's array."""
        return delivered

    def arrival(self):
        """A function that waits until a delivered batch is there; `None` if it is there at once."""
        if not self.has_device:
            return None

        def arrive(delivered):
            torch.cuda.synchronize()
            return delivered

        return arrive

    def host(self, array):
        """A NumPy array as a batch that a loader delivered."""
        return torch.from_numpy(array)

    def model(self, name, shape, seed):
        return models.create_torch(name, shape, seed, self)

    def conversions(self):
        no_device = None
        if not self.has_device:
            no_device = f"torch {torch.__version__} finds no CUDA device; it takes one and a CUDA build of torch"
        at = torch.Tensor.data_ptr
        return [
            Conversion("copy", torch.tensor, at, note="torch.tensor(array)"),
            Conversion("zero_copy", torch.from_numpy, at, note="torch.from_numpy(array)"),
            Conversion("dlpack", torch.from_dlpack, at, note="torch.from_dlpack(array)"),
            Conversion("float_of_float32", lambda array: torch.from_numpy(array).float(), at,
                       note="torch.from_numpy(array).float() of float32: a no-op"),
            Conversion("float_of_stored", lambda array: torch.from_numpy(array).float(), at, stored=True,
                       note="torch.from_numpy(array).float() of the stored type: widens, does not scale"),
            Conversion("pinned", lambda array: torch.from_numpy(array).pin_memory(), at,
                       note="torch.from_numpy(array).pin_memory()", unavailable=no_device),
            Conversion("device", self._to_device, note=f'torch.from_numpy(array).to("{self.device}")',
                       unavailable=no_device),
        ]  # fmt: skip

    def _to_device(self, array):
        tensor = torch.from_numpy(array).to(self.device)
        torch.cuda.synchronize()
        return tensor


def torch_tensor(image):
    """The result of a dataset's `__getitem__`."""
    return image if isinstance(image, torch.Tensor) else torch.from_numpy(image)
