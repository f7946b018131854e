"""The models of the loop: those of the program, a user's own class, an ONNX file.

A model has `modes` (`train`, `inference`), `step(batch, mode)`, which returns the loss or nothing, `why_not(mode)`,
and `backend`, a text for the report. To add one that the program has too: one file with `shapes`, `torch_layers` and
`jax_network`, and one line in `BUILT_IN`. It begins with the same weights as in Rust.
"""

import importlib

from .errors import ModelError

__all__ = ["ModelError", "create_jax", "create_torch"]

BUILT_IN = {
    "linear-probe": "linear_probe",
    "small-cnn": "small_cnn",
}


def built_in(name):
    """The module of a model that the program has too; `None` for other names."""
    return importlib.import_module(f".{BUILT_IN[name]}", __name__) if name in BUILT_IN else None


def create_torch(name, shape, seed, framework):
    """A model for PyTorch; `shape` is that of a batch."""
    if name.endswith(".onnx"):
        from .onnx import OnnxModel

        return OnnxModel(name, channels_of(shape), framework)
    from .torch_models import TorchModel, own_module, user_module

    channels, own = channels_of(shape), built_in(name)
    module = own_module(own, channels, seed) if own else user_module(name, channels)
    return TorchModel(name, module, seed, framework)


def create_jax(name, shape, seed, framework):
    """A model for JAX; `shape` is that of a batch."""
    if name.endswith(".onnx"):
        from .onnx import OnnxModel

        return OnnxModel(name, channels_of(shape), framework)
    from .jax_models import JaxModel, own_network, user_network

    own = built_in(name)
    network = own_network(own, channels_of(shape), seed) if own else user_network(name, shape, seed)
    return JaxModel(name, network, seed, framework)


def channels_of(shape):
    """Channels of a batch: time points and planes are taken as further channels."""
    channels = 1
    for length in shape[1:-2]:
        channels *= length
    return channels
