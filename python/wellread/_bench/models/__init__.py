"""The models of the loop: the small CNN, a user's own class, an ONNX file.

A model has `modes` (`train`, `inference`), `step(batch, mode)`, which returns the loss or nothing, `why_not(mode)`,
and `backend`, a text for the report. `SMALL_CNN` is written once per framework and begins with the same weights.
"""

from .errors import ModelError

__all__ = ["ModelError", "create_jax", "create_torch"]

SMALL_CNN = "small-cnn"


def create_torch(name, shape, seed, framework):
    """A model for PyTorch; `shape` is that of a batch."""
    if name.endswith(".onnx"):
        from .onnx import OnnxModel

        return OnnxModel(name, shape, framework)
    from .torch_models import TorchModel, small_cnn, user_module

    channels = channels_of(shape)
    module = small_cnn(channels, seed) if name == SMALL_CNN else user_module(name, channels)
    return TorchModel(module, shape, seed, framework)


def create_jax(name, shape, seed, framework):
    """A model for JAX; `shape` is that of a batch."""
    if name.endswith(".onnx"):
        from .onnx import OnnxModel

        return OnnxModel(name, shape, framework)
    from .jax_models import JaxModel, small_cnn, user_module

    channels = channels_of(shape)
    network = small_cnn(channels, seed) if name == SMALL_CNN else user_module(name, shape, seed)
    return JaxModel(network, shape, seed, framework)


def channels_of(shape):
    """Channels of a batch: time points and planes are taken as further channels."""
    channels = 1
    for length in shape[1:-2]:
        channels *= length
    return channels
