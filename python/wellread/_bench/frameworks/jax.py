"""JAX: batches from torch's DataLoader with NumPy collation, as JAX's documentation has it; jitted training."""

import jax
import jax.numpy as jnp
import numpy as np

from .. import models
from ..words import counted
from .base import COPY_BYTES, Conversion, ReaderDataset, copy_rate, torch_loader


class Jax:
    """JAX on its default device. XLA takes as many threads as there are cores for this process."""

    name = "jax"
    array, array_name = jax.Array, "jax.Array"

    def __init__(self, threads, seed):
        self.threads, self.seed = threads, seed
        self.device = jax.devices()[0]
        # float32 means float32, as in the other frameworks: accelerators would multiply in TF32 or bfloat16.
        jax.config.update("jax_default_matmul_precision", "highest")

    def versions(self):
        return {"jax": jax.__version__, "numpy": np.__version__}

    def backend(self):
        """Library, device and threads, in words."""
        return f"jax {jax.__version__} ({self.device.device_kind}, {counted(self.threads, 'thread')})"

    def host_to_device(self):
        """Bytes per second from the host's memory to the device; `None` where there is no device."""
        if self.device.platform == "cpu":
            return None
        host = np.zeros(COPY_BYTES, dtype=np.uint8)
        return copy_rate(lambda: jax.device_put(host, self.device).block_until_ready())

    def wait(self, array=None):
        """Until an array is there: JAX returns before."""
        if array is not None:
            jax.block_until_ready(array)

    def to_numpy(self, array):
        return np.asarray(array)

    def image(self, reader, i):
        """One image as a JAX array that is ready."""
        return jnp.asarray(reader[i]).block_until_ready()

    def batches(self, reader, order, batch_size, workers, keep=False, drop_last=False):
        """NumPy batches. Processes with JAX's threads must not be forked: workers start clean."""
        dataset = ReaderDataset(reader, np.asarray)
        return torch_loader(
            dataset, order, batch_size, workers, keep=keep, fork=False, drop_last=drop_last, collate=np.stack
        )

    def batch(self, delivered):
        """A delivered batch as a JAX array that is ready."""
        return jnp.asarray(delivered).block_until_ready()

    def arrival(self):
        """A function that makes a delivered batch a JAX array and waits until it is there."""
        return self.batch

    def host(self, array):
        """A NumPy array as a batch that a loader delivered."""
        return self.batch(array)

    def model(self, name, shape, seed):
        return models.create_jax(name, shape, seed, self)

    def conversions(self):
        no_device = None
        if self.device.platform == "cpu":
            no_device = f"jax {jax.__version__} finds no accelerator; it takes one and jax built for it"
        ready = jax.block_until_ready

        def at(array):
            return array.unsafe_buffer_pointer()

        return [
            Conversion("copy", lambda array: ready(jnp.array(array)), at, note="jnp.array(array)"),
            Conversion("asarray", lambda array: ready(jnp.asarray(array)), at, note="jnp.asarray(array)"),
            Conversion("dlpack", lambda array: ready(jnp.from_dlpack(array)), at,
                       note="jnp.from_dlpack(array): copies what does not begin at a multiple of 64 bytes"),
            Conversion("float_of_float32", lambda array: ready(jnp.asarray(array).astype(jnp.float32)), at,
                       note="jnp.asarray(array).astype(float32) of float32: the cast is a no-op"),
            Conversion("float_of_stored", lambda array: ready(jnp.asarray(array).astype(jnp.float32)), at,
                       stored=True,
                       note="jnp.asarray(array).astype(float32) of the stored type: widens, does not scale"),
            Conversion("pinned", lambda array: ready(jax.device_put(array, self._pinned())),
                       note='jax.device_put(array) to memory of kind "pinned_host"', unavailable=no_device),
            Conversion("device", lambda array: ready(jax.device_put(array, self.device)),
                       note="jax.device_put(array)", unavailable=no_device),
        ]  # fmt: skip

    def _pinned(self):
        return jax.sharding.SingleDeviceSharding(self.device, memory_kind="pinned_host")
