"""A loader with a device of JAX, pickled: its device by its number."""

from __future__ import annotations

from typing import Any

from . import _check
from .errors import ChoiceError


class Carried:
    """A device or sharding of JAX, for a loader that is pickled: JAX pickles neither."""

    def __init__(self, device: Any):
        self.device = device

    def __reduce__(self) -> tuple[Any, ...]:
        import jax

        if isinstance(self.device, jax.Device):
            return _found, (self.device.platform, self.device.id)
        raise TypeError(
            "a loader whose device= is a sharding of JAX cannot be pickled: make it in the iterating process, or "
            "leave device out and use jax.device_put"
        )


def _found(platform: str, number: int) -> Carried:
    """The device of this process that is called as one of another was."""
    import jax

    there = [device for device in jax.devices(platform) if device.id == number]
    if not there:
        raise ChoiceError(
            f"the pickled loader has device {platform}:{number}, and JAX has {_check.some(jax.devices(platform))} "
            "here: make a new loader"
        )
    return Carried(there[0])
