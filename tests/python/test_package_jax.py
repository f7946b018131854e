"""JAX: where transforms and devices leave batches, labels beyond 32 bits, what is no device."""

import copy
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pyarrow as pa
import pytest
import wellread as wr
import wellread._carried

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


def test_labels_beyond_32_bits_are_refused_and_never_others(parquet):
    import jax

    if jax.config.jax_enable_x64:
        pytest.skip("JAX has 64 bits here")
    for labels in (np.arange(40), np.arange(40) - 2**31, np.arange(40, dtype="uint64") + 2**32 - 40):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = [values for _, values in wr.DataLoader(parquet, 8, as_="jax", labels=labels)]
        assert np.concatenate([np.asarray(values) for values in found]).tolist() == labels.tolist()
    for labels, beyond in ((np.arange(40) + 2**40, 2**40 + 39), (np.arange(40) - 2**40, -(2**40))):
        with pytest.raises(ValueError, match=rf"labels: {beyond} is beyond int32, .*jax_enable_x64.*True"):
            wr.DataLoader(parquet, 8, as_="jax", labels=labels)
    # Rows that are used count, and classes of any labels.
    large = np.where(np.arange(40) == 39, 2**40, 5)
    assert next(iter(wr.DataLoader(parquet, 8, as_="jax", labels=large, rows=range(39))))[1].tolist() == [5] * 8
    loader = wr.DataLoader(parquet, 40, as_="jax", labels=large, classes=True)
    assert next(iter(loader))[1].tolist() == [0] * 39 + [1]
    tables = wr.Dataset(parquet).with_columns(pa.table({"id": np.arange(40) + 2**40, "small": np.arange(40)}))
    with pytest.raises(ValueError, match=f"column id: {2**40 + 39} is beyond int32"):
        wr.DataLoader(tables, 8, as_="jax", columns=["small", "id"])


def test_labels_beyond_32_bits_are_themselves_with_64(parquet):
    code = (
        "import sys, jax, numpy as np, wellread as wr; jax.config.update('jax_enable_x64', True); "
        "loader = wr.DataLoader(sys.argv[1], 40, as_='jax', labels=np.arange(40) + 2**40); "
        "assert next(iter(loader))[1].tolist() == list(range(2**40, 2**40 + 40))"
    )
    done = subprocess.run([sys.executable, "-c", code, parquet], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_mesh_or_a_specification_is_no_sharding(parquet):
    import jax

    mesh = jax.make_mesh((1,), ("x",))
    by_batch = jax.sharding.PartitionSpec("x")
    for wrong in (mesh, by_batch):
        with pytest.raises(ValueError, match=rf"not {type(wrong).__name__}: give jax.sharding.NamedSharding\(mesh"):
            wr.DataLoader(parquet, as_="jax", device=wrong)
    with pytest.raises(ValueError, match="device must be a device or sharding of JAX"):
        wr.DataLoader(parquet, as_="jax", device=jax.numpy.ones(3))
    assert (
        len(next(iter(wr.DataLoader(parquet, 8, as_="jax", device=jax.sharding.NamedSharding(mesh, by_batch))))) == 8
    )


def test_loaders_with_a_device_of_jax_are_pickled(parquet):
    import jax

    (device, *_) = jax.devices()
    loader = wr.DataLoader(parquet, 8, True, as_="jax", device=device, seed=4)
    made = pickle.loads(pickle.dumps(loader))
    assert made._device is device
    for found, wanted in zip(made, loader, strict=True):
        assert found.devices() == {device} and np.array_equal(found, wanted)
    sharding = jax.sharding.SingleDeviceSharding(device)
    loader = wr.DataLoader(parquet, 8, as_="jax", device=sharding)
    with pytest.raises(TypeError, match="device= is a sharding of JAX cannot be pickled: make it in the iterating"):
        pickle.dumps(loader)
    # A copy in the same process has the same sharding.
    assert len(next(iter(copy.copy(loader)))) == 8
    with pytest.raises(wr.ChoiceError, match=rf"has device {device.platform}:99, and JAX has .* here: make a new"):
        wellread._carried._found(device.platform, 99)
