"""Batches in the memory of a GPU: their pixels, what is copied while the model computes, and what is given back."""

import gc

import numpy as np
import pytest
import torch
import wellread as wr

FORMATS = ("parquet", "tiff", "ome-zarr", "image-folder")
SCALES = {"unit": "unit", "stored": None, "fixed": (100, 4000)}


def busy(matrix, times):
    """Work that keeps the device's default stream busy for milliseconds."""
    for _ in range(times):
        matrix = torch.tanh(matrix @ matrix)
    return matrix


@pytest.mark.parametrize("pin", [False, True], ids=["paged", "pinned"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", FORMATS)
def test_batches_on_the_device_are_those_of_the_host(cells, kind, scale, pin):
    if kind not in cells:
        pytest.skip(f"{kind} does not hold these images")
    choices = {"shuffle": True, "seed": 5, "num_workers": 2, "as_": "torch", "scale": SCALES[scale], "indices": True}
    host = wr.DataLoader(cells[kind], 7, **choices)
    device = wr.DataLoader(cells[kind], 7, **choices, device="cuda", pin_memory=pin)
    for _ in range(3):
        seen = []
        for (want, rows), (got, others) in zip(host, device, strict=True):
            assert got.device.type == "cuda" and want.device.type == "cpu"
            assert got.dtype == want.dtype and torch.equal(got.cpu(), want)
            assert rows.tolist() == others.tolist()
            seen += rows.tolist()
        assert sorted(seen) == list(range(40))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "stored"])
def test_half_types_and_stored_pixels_arrive_as_they_are(parquet, dtype):
    want = list(wr.DataLoader(parquet, 8, as_="torch", dtype=dtype))
    got = list(wr.DataLoader(parquet, 8, as_="torch", dtype=dtype, device="cuda", pin_memory=True))
    for on_host, on_device in zip(want, got, strict=True):
        assert on_device.is_cuda and on_device.dtype == on_host.dtype
        # Of uint16 there is no comparison on the device.
        assert torch.equal(on_device.cpu(), on_host)


def test_pixels_that_are_scaled_on_the_device_are_those_that_the_host_scales(parquet):
    want = list(wr.DataLoader(parquet, 8, as_="torch"))
    for pin in (False, True):
        got = list(wr.DataLoader(parquet, 8, as_="torch", scale="device", device="cuda", pin_memory=pin))
        for on_host, on_device in zip(want, got, strict=True):
            assert on_device.is_cuda and on_device.dtype == torch.float32
            assert torch.allclose(on_device.cpu(), on_host, rtol=2e-7, atol=0)


@pytest.mark.parametrize("pin", [False, True], ids=["paged", "pinned"])
def test_batches_that_are_kept_stay_as_they_came_while_the_device_computes(parquet, pin):
    """The next batch is copied on a stream of its own; its memory is nobody else's for as long as it is kept."""
    choices = {"shuffle": True, "seed": 1, "num_workers": 3, "as_": "torch"}
    loader = wr.DataLoader(parquet, 3, **choices, device="cuda", pin_memory=pin)
    host = wr.DataLoader(parquet, 3, **choices)
    matrix = torch.randn(2048, 2048, device="cuda") / 64
    for _ in range(4):
        kept, sums = [], []
        for batch in loader:
            matrix = busy(matrix, 4)
            # Read behind that work, on the stream of the caller.
            sums.append((batch + 0 * matrix[0, 0]).double().sum())
            kept.append(batch)
        want = list(host)
        assert len({batch.data_ptr() for batch in kept}) == len(kept) == len(want)
        for batch, total, pixels in zip(kept, sums, want, strict=True):
            assert torch.equal(batch.cpu(), pixels)
            assert total.item() == pytest.approx(pixels.double().sum().item(), rel=1e-6)


def test_batches_that_are_let_go_are_not_overwritten_before_they_are_read(parquet):
    """Each batch is read by queued work after the loop has let it go: its memory must not be the next batch's yet."""
    choices = {"as_": "torch", "num_workers": 2}
    want = [batch.double().sum().item() for batch in wr.DataLoader(parquet, 2, **choices)]
    matrix = torch.randn(2048, 2048, device="cuda") / 64
    loader = wr.DataLoader(parquet, 2, **choices, device="cuda", pin_memory=True)
    for _ in range(3):
        sums = []
        for batch in loader:
            matrix = busy(matrix, 8)
            sums.append((batch + 0 * matrix[0, 0]).double().sum())
            del batch
        assert [total.item() for total in sums] == pytest.approx(want, rel=1e-6)


def test_labels_are_moved_with_their_pixels(labelled):
    for labels, dtype in (("class", torch.int64), (np.arange(80, dtype=np.float32).reshape(40, 2), torch.float32)):
        choices = {"as_": "torch", "shuffle": True, "seed": 2, "labels": labels, "indices": True}
        host = list(wr.DataLoader(labelled, 8, **choices))
        for pin in (False, True):
            device = list(wr.DataLoader(labelled, 8, **choices, device="cuda", pin_memory=pin))
            for want, got in zip(host, device, strict=True):
                assert len(want) == len(got) == 3
                assert got[1].is_cuda and got[1].dtype == dtype
                assert all(torch.equal(there.cpu(), here) for there, here in zip(got, want, strict=True))


def test_page_locked_memory_goes_back_and_does_not_grow(parquet):
    loader = wr.DataLoader(parquet, 4, as_="torch", pin_memory=True, device="cuda", num_workers=2)
    for _ in range(3):
        list(loader)
    torch.cuda.synchronize()
    gc.collect()
    # Torch keeps pages that it has locked, to hand them out again.
    before, on_device = torch.cuda.host_memory_stats()["allocated_bytes.current"], torch.cuda.memory_allocated()
    for epoch in range(40):
        for taken, _ in enumerate(loader):
            if epoch % 2 and taken == 3:
                break
    assert not loader._lender._lent
    torch.cuda.synchronize()
    gc.collect()
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] <= before
    assert torch.cuda.memory_allocated() <= on_device


def test_page_locked_batches_stay_on_the_host_where_no_device_is_named(parquet):
    for batch, want in zip(
        wr.DataLoader(parquet, 8, as_="torch", pin_memory=True), wr.DataLoader(parquet, 8, as_="torch"), strict=True
    ):
        assert batch.is_pinned() and not want.is_pinned()
        assert torch.equal(batch, want)
        assert torch.equal(batch.to("cuda", non_blocking=True).cpu(), want)


def test_a_damaged_image_raises_in_its_place_on_the_device(cells, tmp_path):
    """The next batch is read while one is used: its error waits for its turn, and those behind it come."""
    import shutil

    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    damaged.write_bytes(damaged.read_bytes()[:-500])
    iterator = iter(wr.DataLoader(folder, 4, num_workers=2, as_="torch", device="cuda", pin_memory=True))
    assert len(next(iterator)) == 4
    with pytest.raises(wr.CorruptImageError, match="row 7"):
        next(iterator)
    assert [len(batch) for batch in iterator] == [4] * 8


def test_an_iteration_that_is_left_goes_on_from_its_place(parquet):
    choices = {"shuffle": True, "seed": 9, "as_": "torch", "device": "cuda", "pin_memory": True}
    whole = list(wr.DataLoader(parquet, 6, **choices))
    stopped = wr.DataLoader(parquet, 6, **choices)
    iterator = iter(stopped)
    first = [next(iterator) for _ in range(3)]
    state = stopped.state_dict()
    # The batch that is on its way to the device is not delivered yet.
    assert state["position"] == 18
    resumed = wr.DataLoader(parquet, 6, **choices)
    resumed.load_state_dict(state)
    assert all(torch.equal(a, b) for a, b in zip(whole, first + list(resumed), strict=True))


def test_an_error_of_a_transform_on_the_device_loses_no_batch(parquet):
    calls = []

    def fails_at_3(batch):
        calls.append(batch)
        if len(calls) == 3:
            raise RuntimeError("of the transform")
        return batch

    choices = {"shuffle": True, "seed": 9, "as_": "torch", "device": "cuda", "pin_memory": True}
    whole = list(wr.DataLoader(parquet, 6, **choices))
    stopped = wr.DataLoader(parquet, 6, **choices, batch_transform=fails_at_3)
    iterator = iter(stopped)
    first = [next(iterator) for _ in range(2)]
    with pytest.raises(RuntimeError, match="of the transform"):
        next(iterator)
    state = stopped.state_dict()
    assert state["position"] == 12
    resumed = wr.DataLoader(parquet, 6, **choices)
    resumed.load_state_dict(state)
    assert all(torch.equal(a, b) for a, b in zip(whole, first + list(resumed), strict=True))


def test_jax_takes_batches_to_its_gpu(parquet, jax_gpu):
    if not jax_gpu:
        pytest.skip("no jax here that has a GPU")
    choices = {"shuffle": True, "seed": 4, "num_workers": 2}
    want = list(wr.DataLoader(parquet, 8, **choices))
    for scale in ("unit", "device"):
        kept = list(wr.DataLoader(parquet, 8, **choices, as_="jax", device=jax_gpu, scale=scale))
        for on_host, on_device in zip(want, kept, strict=True):
            assert on_device.devices() == {jax_gpu}
            assert np.allclose(np.asarray(on_device), on_host, rtol=2e-7, atol=0)


def test_torchs_own_loader_pins_and_moves_batches_of_ours(parquet):
    """`wellread.torch` behind torch's DataLoader, with its threads that lock pages."""
    from wellread.torch import Dataset

    loader = torch.utils.data.DataLoader(Dataset(parquet), batch_size=8, num_workers=2, pin_memory=True)
    want = list(torch.utils.data.DataLoader(Dataset(parquet), batch_size=8))
    for batch, expected in zip(loader, want, strict=True):
        assert batch.is_pinned() and torch.equal(batch.cuda(non_blocking=True).cpu(), expected)
