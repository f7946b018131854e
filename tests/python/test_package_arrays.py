"""Memory that libraries share: DLPack, NumPy's interface, the buffer protocol, JAX."""

import gc
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import wellread as wr


@pytest.fixture()
def batch(parquet):
    return next(iter(wr.DataLoader(parquet, 4, as_="batch", dtype="stored")))


def test_a_batch_says_what_it_is(batch, parquet):
    assert batch.shape == (4, 2, 48, 56) and batch.dtype == "uint16" and len(batch) == 4
    assert batch.nbytes == 4 * 2 * 48 * 56 * 2 and batch.address % 64 == 0 and not batch.readonly
    assert batch.rows == [0, 1, 2, 3] and (batch.epoch, batch.index) == (0, 0)
    assert "uint16" in repr(batch)


def test_numpy_sees_the_same_memory(batch, parquet):
    views = [np.asarray(batch), np.from_dlpack(batch)]
    assert all(view.ctypes.data == batch.address for view in views)
    assert np.array_equal(views[0], wr.Dataset(parquet)[:4])
    views[0][0, 0, 0, 0] = 12345
    assert views[1][0, 0, 0, 0] == 12345
    del batch
    gc.collect()
    assert views[1][0, 0, 0, 0] == 12345


def test_dlpack_is_versioned_for_those_who_know(batch):
    assert batch.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(batch.__dlpack__())
    assert '"dltensor"' in repr(batch.__dlpack__(max_version=(0, 8)))
    for version in ((1, 0), (1, 3), (2, 0)):
        assert '"dltensor_versioned"' in repr(batch.__dlpack__(max_version=version, stream=None, dl_device=(1, 0)))
    copied = np.from_dlpack(batch, copy=True)
    assert copied.ctypes.data != batch.address and np.array_equal(copied, np.asarray(batch))
    with pytest.raises(BufferError, match="does not copy them to device"):
        batch.__dlpack__(dl_device=(2, 0))


def test_read_only_memory_is_said_to_be(batch):
    fixed = batch.toreadonly()
    assert fixed.readonly and fixed.address == batch.address
    for view in (np.asarray(fixed), np.from_dlpack(fixed)):
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0
    with pytest.raises(BufferError, match="read-only"):
        fixed.__dlpack__()
    assert np.asarray(batch).flags.writeable


def test_the_buffer_protocol(batch):
    view = batch.memoryview()
    assert view.shape == batch.shape and view.format == "H" and view.c_contiguous and not view.readonly
    assert np.shares_memory(np.asarray(view), np.asarray(batch))
    assert batch.toreadonly().memoryview().readonly
    if sys.version_info >= (3, 12):
        assert memoryview(batch) == view
    address = batch.address
    del batch
    gc.collect()
    assert np.asarray(view).ctypes.data == address


def test_capsules_that_nobody_takes_free_their_memory(parquet):
    loader = wr.DataLoader(parquet, 4, as_="batch", num_workers=1, prefetch=1)
    addresses = set()
    for _ in range(10):
        for batch in loader:
            addresses.add(batch.address)
            for version in (None, (1, 0)):
                batch.__dlpack__(max_version=version)
                batch.__dlpack__(max_version=version, copy=True)
    del batch
    assert len(addresses) <= 4


def test_bfloat16_of_numpy(parquet):
    import ml_dtypes

    batch = next(iter(wr.DataLoader(parquet, 4, dtype="bfloat16")))
    assert batch.dtype == ml_dtypes.bfloat16
    assert np.allclose(batch.astype(np.float32), wr.Dataset(parquet)[:4] / 65535, atol=4e-3)
    with pytest.raises(TypeError, match="bfloat16"):
        np.asarray(next(iter(wr.DataLoader(parquet, 4, dtype="bfloat16", as_="batch"))))


@pytest.mark.parametrize("ask", [np.asarray, wr.Batch.memoryview, np.from_dlpack])
def test_views_of_batches_keep_them_and_nothing_longer(parquet, ask):
    """Memory goes back to the loader with the last view, without a look for cycles, whatever asked for it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        addresses, kept = set(), []
        for batch in wr.DataLoader(parquet, 2, num_workers=0, as_="batch", rows=list(range(40)) * 5):
            view = ask(batch)
            addresses.add(batch.address)
            kept = [*kept[-1:], (view, np.array(view))]
            assert all(np.array_equal(seen, copied) for seen, copied in kept)
        assert len(addresses) <= 8
    finally:
        if was_on:
            gc.enable()


@pytest.mark.parametrize("dtype", ["float32", "float16", "stored"])
def test_arrays_of_numpy_can_be_written_to_and_have_their_type(parquet, dtype):
    kind = {"stored": "uint16"}.get(dtype, dtype)
    want = wr.Dataset(parquet)[:4]
    want = want if dtype == "stored" else (want.astype(np.float32) * np.float32(1 / 65535)).astype(kind)
    direct = np.asarray(next(iter(wr.DataLoader(parquet, 4, as_="batch", dtype=dtype))))
    loaded = next(iter(wr.DataLoader(parquet, 4, dtype=dtype)))
    for array in (direct, loaded):
        assert array.dtype == kind and array.shape == (4, 2, 48, 56) and array.flags.writeable
        assert np.array_equal(array, want)
        array[0, 0, 0, 0] = 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "stored"])
def test_jax_arrays_are_the_loaders_memory(parquet, dtype):
    import jax.dlpack

    batch = next(iter(wr.DataLoader(parquet, 4, as_="batch", dtype=dtype)))
    assert jax.dlpack.from_dlpack(batch).unsafe_buffer_pointer() == batch.address
    arrays = list(wr.DataLoader(parquet, 8, as_="jax", dtype=dtype))
    want = wr.Dataset(parquet)[:].astype(np.float32) / (1 if dtype == "stored" else 65535)
    got = np.concatenate([np.asarray(array.astype("float32")) for array in arrays])
    assert got.shape == (40, 2, 48, 56) and np.allclose(got, want, atol=4e-3)
    assert np.array_equal(np.asarray(arrays[0].astype("float32")), got[:8])


def test_jax_takes_a_batch_for_an_array(parquet):
    import jax.numpy as jnp

    for dtype in ("float32", "stored", "bfloat16"):
        batch = next(iter(wr.DataLoader(parquet, 4, as_="batch", dtype=dtype)))
        array = jnp.asarray(batch)
        assert array.unsafe_buffer_pointer() == batch.address and str(array.dtype) == batch.dtype
        # JAX refuses read-only memory, so it gets a copy.
        copied = jnp.asarray(batch.toreadonly())
        assert copied.unsafe_buffer_pointer() != batch.address and bool((copied == array).all())


def test_a_read_only_batch_binds_numpy_and_not_torch(batch):
    """The words of docs/python-loaders.md about the flag."""
    import jax.dlpack
    import torch

    fixed = batch.toreadonly()
    with pytest.raises(BufferError, match="read-only"):
        jax.dlpack.from_dlpack(fixed)
    torch.from_dlpack(fixed)[0, 0, 0, 0] = 4321
    assert np.asarray(fixed)[0, 0, 0, 0] == 4321


def test_jax_devices_are_asked_for_at_once(parquet):
    for device in ("cuda", "cpu", 0, True, ["cpu"]):
        with pytest.raises(ValueError, match=r"device must be a device or sharding of JAX, such as jax\.devices"):
            wr.DataLoader(parquet, 8, as_="jax", device=device)


SHARDED = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import numpy as np
import pyarrow as pa
import pytest
import tifffile
import wellread as wr
import wellread.jax
from jax.sharding import NamedSharding, PartitionSpec

path, folder = sys.argv[1:]
by_batch = NamedSharding(jax.make_mesh((4,), ("x",)), PartitionSpec("x"))
made = lambda size, device=by_batch, **choices: wellread.jax.DataLoader(path, size, device=device, **choices)

# 40 images: the last batch of 8 is full, and that of 12 has 4.
for size, choices in ((8, {}), (12, {}), (16, {"drop_last": True}), (8, {"crops_per_image": 2, "random_crop": 8})):
    plain = list(wellread.jax.DataLoader(path, size, **choices))
    sharded = list(made(size, **choices))
    assert [len(batch) for batch in sharded] == [len(batch) for batch in plain]
    for a, b in zip(sharded, plain):
        assert len(a.addressable_shards) == 4 and a.addressable_shards[0].data.shape[0] == len(b) // 4
        assert np.array_equal(a, b)
# Labels, columns and features go to where their images are.
table = pa.table({"id": np.arange(40), "well": [f"A{row:02}" for row in range(40)], "size": np.arange(40) / 4})
by_axes = NamedSharding(by_batch.mesh, PartitionSpec("x", None, None, None))
beside = dict(labels=np.arange(40) * 2, columns=["id", "well"], features=["id", "size"], indices=True)
for device, shards in ((by_batch, 4), (by_axes, 4), (jax.devices()[1], 1)):
    tables = wr.Dataset(path).with_columns(table)
    loader = wellread.jax.DataLoader(tables, 8, device=device, **beside)
    for first, (_, labels, columns, features, rows) in zip(range(0, 40, 8), loader, strict=True):
        want = np.arange(first, first + 8)
        for values, expected in (
            (labels, want * 2), (columns["id"], want), (features, np.stack([want, want / 4], 1)), (rows, want),
        ):
            assert values.devices() == (device.device_set if shards == 4 else {device})
            assert len(values.addressable_shards) == shards
            assert values.addressable_shards[0].data.shape[0] == 8 // shards
            assert np.array_equal(values, expected)
        assert columns["well"] == [f"A{row:02}" for row in want]
# Every device has all of a batch: nothing is divided.
whole = NamedSharding(by_batch.mesh, PartitionSpec())
assert [len(batch) for batch in made(6, whole)] == [6] * 6 + [4]
assert [len(batch) for batch in made(6, jax.devices()[1])] == [6] * 6 + [4]

for size, choices, message in (
    (6, {}, "4 equal parts, and batch_size=6 is no multiple of 4"),
    (6, {"drop_last": True}, "batch_size=6 is no multiple of 4"),
    (16, {"rows": range(39)}, "has 7 of 39 images with batch_size=16. Set drop_last=True"),
    (8, {"rank": 1, "world_size": 4}, "has 2 of 10 images with batch_size=8. Set drop_last=True"),
    (8, {"views": 2, "targets": path, "rows": range(9)}, "has 1 of 9 images with batch_size=8"),
    (8, {"device": NamedSharding(by_batch.mesh, PartitionSpec(None, "x"))}, "the axis C of batches into 4 .* has 2:"),
    (8, {"device": NamedSharding(by_batch.mesh, PartitionSpec(*[None] * 6, "x"))}, "batches of 4 axes"),
):
    with pytest.raises(wr.ChoiceError, match=message):
        made(size, **choices)

# Images that cannot be read are known when they are read.
for row in range(8):
    tifffile.imwrite(os.path.join(folder, f"{row}.tif"), np.full((8, 8), row, "uint16"))
with open(os.path.join(folder, "5.tif"), "r+b") as file:
    file.truncate(os.path.getsize(file.name) - 8)
iterator = iter(wellread.jax.DataLoader(folder, 4, device=by_batch, on_error="skip"))
assert len(next(iterator)) == 4
with pytest.raises(wr.ChoiceError, match='this one has 3 images after on_error="skip"'):
    next(iterator)
"""


def test_a_sharding_divides_every_batch(parquet, tmp_path):
    """In a process of its own: JAX counts its devices once."""
    command = [sys.executable, "-c", SHARDED, parquet, tmp_path]
    done = subprocess.run(command, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_jax_tells_of_float64_that_becomes_float32(tmp_path):
    import jax
    import tifffile

    if jax.config.jax_enable_x64:
        pytest.skip("JAX has 64 bits here")
    for i in range(3):
        tifffile.imwrite(tmp_path / f"{i}.tif", np.full((6, 7), i + 1 / 3))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        # What is scaled on the device, or asked for as float32, loses nothing that was asked for.
        list(wr.DataLoader(tmp_path, 1, as_="jax"))
        list(wr.DataLoader(tmp_path, 1, as_="jax", scale="device"))
        assert not [one for one in told if "pixels of dtype" in str(one.message)]
        arrays = list(wr.DataLoader(tmp_path, 1, as_="jax", dtype="stored"))
    assert {str(array.dtype) for array in arrays} == {"float32"}
    (one,) = [one for one in told if "pixels of dtype" in str(one.message)]
    assert "pixels of dtype float64" in str(one.message) and "jax_enable_x64" in str(one.message)


@pytest.mark.parametrize("as_", ["numpy", "torch", "jax"])
def test_labels_of_the_other_byte_order_are_labels(parquet, as_):
    for kind in (">i4", ">f4", "<i4"):
        labels = np.arange(40).astype(kind)
        got = [values for _, values in wr.DataLoader(parquet, 16, as_=as_, labels=labels)]
        assert np.concatenate([np.asarray(values) for values in got]).tolist() == list(range(40))


def test_jax_scales_on_its_device(parquet):
    import jax
    import wellread.jax

    before = np.concatenate([np.asarray(a) for a in wr.DataLoader(parquet, 8)])
    loader = wellread.jax.DataLoader(parquet, 8, scale="device", device=jax.devices()[0], labels=list(range(40)))
    pixels, labels = zip(*loader, strict=True)
    assert np.allclose(np.concatenate([np.asarray(a) for a in pixels]), before, atol=1e-7)
    assert np.concatenate([np.asarray(a) for a in labels]).tolist() == list(range(40))
    assert isinstance(labels[0], jax.Array)


def test_importing_it_imports_no_framework():
    code = (
        "import sys, wellread; wellread.formats(); "
        "print([m for m in ('torch', 'jax', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
