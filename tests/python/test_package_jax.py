"""JAX: where transforms and devices leave batches, labels beyond 32 bits, what is no device."""

import os
import subprocess
import sys

import numpy as np
import pytest
import wellread as wr

TRANSFORMED = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
import wellread as wr
import wellread.jax
from jax.sharding import NamedSharding, PartitionSpec

path = sys.argv[1]
plain = np.concatenate([np.asarray(batch) for batch in wellread.jax.DataLoader(path, 8)])
last = jax.devices()[3]
seen = []

def on_device(image):
    seen.append(image.devices())
    return image[:, 8:40] * 2

def on_host(image):
    return np.asarray(image)[:, 8:40] * 2

def elsewhere(image):
    return jax.device_put(image[:, 8:40] * 2, jax.devices()[1])

by_batch = NamedSharding(jax.make_mesh((4,), ("x",)), PartitionSpec("x"))
for transform in (on_device, on_host, elsewhere):
    for device, parts in ((last, 1), (by_batch, 4)):
        seen.clear()
        for choices in ({}, {"scale": "device"}):
            loader = wellread.jax.DataLoader(
                path, 8, device=device, transform=transform, labels=np.arange(40), **choices
            )
            batches = list(loader)
            for pixels, labels in batches:
                want = device.device_set if parts == 4 else {device}
                assert pixels.devices() == labels.devices() == want, (transform, device, pixels.devices())
                assert len(pixels.addressable_shards) == parts
                assert pixels.addressable_shards[0].data.shape == (8 // parts, 2, 32, 56)
            made = np.concatenate([np.asarray(pixels) for pixels, _ in batches])
            assert np.allclose(made, plain[:, :, 8:40] * 2, atol=1e-6)
            assert np.concatenate([np.asarray(labels) for _, labels in batches]).tolist() == list(range(40))
        assert transform is not on_device or device is by_batch or all(where == {last} for where in seen)

# Views and targets are put together before, and each of their arrays is moved.
def both(sample):
    (one, two), (of_one, of_two) = sample
    return (np.asarray(one), two), (np.asarray(of_one), of_two)

for device in (last, by_batch):
    loader = wellread.jax.DataLoader(path, 8, device=device, transform=both, views=2, targets=path)
    (one, two), (of_one, of_two) = next(iter(loader))
    for array in (one, two, of_one, of_two):
        assert array.devices() == (device.device_set if device is by_batch else {last}) and len(array) == 8
    assert np.array_equal(one, plain[:8]) and np.array_equal(two, plain[:8])
    assert np.array_equal(of_one, wr.Dataset(path)[:8])
"""


def test_what_a_transform_makes_is_moved_to_the_device(parquet):
    """In a process of its own: JAX counts its devices once."""
    command = [sys.executable, "-c", TRANSFORMED, parquet]
    done = subprocess.run(command, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_a_transform_makes_is_moved_to_torchs_device(parquet):
    torch = pytest.importorskip("torch")
    loader = wr.torch.DataLoader(parquet, 8, device="meta", transform=lambda image: torch.zeros(2, 3))
    pixels = next(iter(loader))
    assert pixels.device.type == "meta" and pixels.shape == (8, 2, 3)
