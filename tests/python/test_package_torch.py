"""The package under torch: its own DataLoader in every start method, tensors, pinned memory, transforms."""

import gc
import time
import warnings
import weakref

import numpy as np
import pytest
import torch
import wellread as wr
import wellread.torch
from own_process import loader_threads
from wellread import _device


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "stored"])
def test_tensors_are_the_loaders_memory(parquet, dtype):
    images = wr.Dataset(parquet)[:8]
    batch = next(iter(wr.DataLoader(parquet, 8, as_="batch", dtype=dtype)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = torch.from_dlpack(batch)
        loaded = next(iter(wr.DataLoader(parquet, 8, as_="torch", dtype=dtype)))
        assert tensor.data_ptr() == batch.address and loaded.data_ptr() % 64 == 0
        assert torch.equal(loaded.float(), tensor.float()) and loaded.is_contiguous()
        if dtype == "stored":
            assert loaded.dtype == torch.uint16
            assert np.array_equal(loaded.numpy(), images)
        else:
            assert loaded.dtype == getattr(torch, dtype)
            want = torch.from_numpy(images.astype(np.float32) * np.float32(1 / 65535))
            assert torch.allclose(loaded.float(), want, atol=4e-3)
            loaded.mul_(2).add_(1)
            assert torch.allclose(loaded.float(), want * 2 + 1, atol=2e-2)


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_alone_come_as_those_with_labels(parquet, workers):
    """Tensors alone are made by the native iteration, those with labels by the package."""
    choices = {"shuffle": True, "seed": 3, "num_workers": workers, "as_": "torch"}
    alone = wr.DataLoader(parquet, 7, **choices)
    beside = wr.DataLoader(parquet, 7, labels=range(40), **choices)
    iterators = iter(alone), iter(beside)
    for tensor, (pixels, _labels) in zip(*iterators, strict=True):
        assert torch.equal(tensor, pixels) and tensor.shape == pixels.shape
        assert alone.state_dict() == beside.state_dict()
    for iterator in iterators * 2:
        with pytest.raises(StopIteration):
            next(iterator)
    assert alone.state_dict()["epoch"] == beside.state_dict()["epoch"] == 1
    kept, wanted = list(alone), [pixels.clone() for pixels, _labels in beside]
    del alone, beside, iterators
    assert all(torch.equal(a, b) for a, b in zip(kept, wanted, strict=True))
    assert len({tensor.data_ptr() for tensor in kept}) == len(kept)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_image_raises_in_its_place_among_tensors(cells, tmp_path, workers):
    import shutil

    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    damaged.write_bytes(damaged.read_bytes()[:-500])
    iterator = iter(wr.DataLoader(folder, 4, num_workers=workers, as_="torch"))
    assert len(next(iterator)) == 4
    with pytest.raises(wr.CorruptImageError, match="row 7"):
        next(iterator)
    assert [len(batch) for batch in iterator] == [4] * 8


def test_bright_uint16_is_never_negative(tmp_path):
    import tifffile

    bright = np.array([[0, 1, 32767, 32768, 65535]], np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", bright)
    default = wellread.torch.Dataset(tmp_path)[0]
    assert default.dtype == torch.float32 and default.tolist() == [bright.tolist()]
    for dtype in ("stored", "int32", "int64", "float32"):
        assert wellread.torch.Dataset(tmp_path, dtype=dtype)[0].tolist() == [bright.tolist()]
    assert next(iter(wr.DataLoader(tmp_path, as_="torch", dtype="stored"))).tolist() == [[bright.tolist()]]
    assert next(iter(wr.DataLoader(tmp_path, as_="torch", scale=None))).tolist() == [[bright.tolist()]]
    with pytest.raises(ValueError, match="cannot hold every value of uint16"):
        wellread.torch.Dataset(tmp_path, dtype="uint8")


def test_scaling_after_the_transfer_is_scaling_before(parquet):
    before = list(wr.DataLoader(parquet, 16, as_="torch"))
    after = list(wr.DataLoader(parquet, 16, as_="torch", scale="device", device="cpu"))
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


# One format of each kind. Processes that import torch take seconds to start: those that are not forked read all.
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_torchs_own_loader_works_unchanged(cells, method):
    datasets, wanted, busy = [], [], []
    for path in cells.values():
        dataset = wellread.torch.Dataset(path, labels=list(range(40)))
        # The parent has read, in this thread and in those of a loader that is under way.
        busy.append(iter(wr.DataLoader(path, 4, num_workers=2)))
        next(busy[-1])
        assert dataset[3][0].dtype == torch.float32
        assert wellread.torch.Dataset(path, dtype="stored")[3].dtype == torch.uint16
        datasets.append(dataset)
        wanted.append(wr.Dataset(path)[:].astype(np.float32))
    if method == "fork":
        sets = list(zip(cells, datasets, wanted, strict=True))
        ways = [(0, None), (2, None), (2, wellread.torch.collate)]
    else:
        sets = [("all", torch.utils.data.ConcatDataset(datasets), np.concatenate(wanted))]
        ways = [(2, None)]
    for name, dataset, want in sets:
        for workers, collate in ways:
            loader = torch.utils.data.DataLoader(
                dataset,
                batch_size=8,
                num_workers=workers,
                multiprocessing_context=method if workers else None,
                collate_fn=collate,
                # For workers that hang: importing torch takes a busy machine a minute.
                timeout=600 if workers else 0,
            )
            batches = list(loader)
            assert np.array_equal(torch.cat([pixels for pixels, _ in batches]).numpy(), want), name
            assert torch.cat([labels for _, labels in batches]).tolist() == [*range(40)] * (len(want) // 40), name


def test_workers_drop_the_loaders_of_their_parent(cells):
    """Their threads have ended in the parent; the workers ended by a segmentation fault when they dropped them."""
    gc.collect()
    before = loader_threads()
    for name, path in cells.items():
        for cache in ["none", "preload"]:
            loaders = [wr.DataLoader(wr.Dataset(path, cache=cache), 4, num_workers=2) for _ in range(12)]
            for loader in loaders:
                assert sum(len(batch) for batch in loader) == 40
            # They end once they have waited for work in vain.
            end = time.monotonic() + 600
            while loader_threads() - before:
                assert time.monotonic() < end, "threads of loaders that nobody uses do not end"
                time.sleep(0.01)
            workers = torch.utils.data.DataLoader(
                wellread.torch.Dataset(path),
                batch_size=4,
                num_workers=3,
                multiprocessing_context="fork",
                collate_fn=wellread.torch.collate,
                worker_init_fn=lambda _worker, loaders=loaders: (loaders.clear(), gc.collect()),
                timeout=600,
            )
            assert sum(len(batch) for batch in workers) == 40, name
            assert len(loaders) == 12


def test_memory_that_torch_lends_is_decoded_into(parquet):
    """The mechanism behind pin_memory, with memory that is not page-locked."""
    made = set()

    def allocate(nbytes):
        memory = torch.full((nbytes,), 7, dtype=torch.uint8)
        made.add(memory.untyped_storage().data_ptr())
        return memory

    def check(got, want):
        assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])
        assert got[0].untyped_storage().data_ptr() in made

    for workers, dtype in ((0, "float32"), (2, "stored"), (3, "bfloat16")):
        choices = {"as_": "torch", "dtype": dtype, "labels": list(range(40)), "num_workers": workers}
        want = list(wr.DataLoader(parquet, 6, **choices))
        loader = wr.DataLoader(parquet, 6, **choices)
        loader._lender = _device.Lender(allocate)
        native = wr._native.Loader(loader.dataset._native, loader._choices | {"lent": loader._lender.native})
        loader._made = {(0, 1): native}
        for _ in range(3):
            kept = list(loader)
            for got, wanted in zip(kept, want, strict=True):
                check(got, wanted)
            # Left early: what was lent and not delivered goes back.
            for got in loader:
                check(got, want[0])
                break
            # Two at once, which share what is lent.
            for pair in zip(loader, loader, strict=True):
                check(pair[0], pair[1])
            for got, wanted in zip(kept, want, strict=True):
                check(got, wanted)
        assert not loader._lender._lent


def test_memory_that_is_lent_is_taken_for_batches_of_its_size_alone(parquet):
    """A larger batch in memory of a smaller one would be written behind its end."""
    lent = wr._native.LentMemory()
    for address, nbytes in ((64, 100), (128, 200), (192, 100)):
        lent.lend(address, nbytes)
    assert lent.withdraw(9, 300) == [] and lent.withdraw(9, 200) == [128]
    assert lent.withdraw(1, 100) == [192] and lent.withdraw(9, 100) == [64] and lent.withdraw(9, 100) == []

    lender = _device.Lender(lambda nbytes: torch.full((nbytes,), 7, dtype=torch.uint8))

    def lent_loader(size):
        loader = wr.DataLoader(parquet, size, as_="torch", num_workers=1)
        loader._lender = lender
        native = wr._native.Loader(loader.dataset._native, loader._choices | {"lent": lender.native})
        loader._made = {(0, 1): native}
        return loader

    small, large = lent_loader(2), lent_loader(8)
    assert small._built.batch_bytes < large._built.batch_bytes
    want = wr.DataLoader(parquet, 2, as_="torch"), wr.DataLoader(parquet, 8, as_="torch")
    for first, second, one, two in zip(small, large, *want, strict=False):
        assert torch.equal(first, one) and torch.equal(second, two)
    del first, second
    for loader in (small, large):
        for _ in loader:
            pass
    assert not lender._lent
    state = small.state_dict()
    with pytest.raises(ValueError, match="seed"):
        small.load_state_dict(state | {"seed": state["seed"] + 1})
    assert not lender._lent


def test_pinned_memory_says_what_is_missing(parquet):
    if torch.cuda.is_available():
        batch = next(iter(wr.DataLoader(parquet, 8, as_="torch", pin_memory=True, device="cuda")))
        assert batch.is_cuda and np.allclose(batch.cpu().numpy(), wr.Dataset(parquet)[:8] / 65535, atol=1e-6)
        return
    with pytest.raises(ValueError, match="needs a CUDA device"):
        wr.DataLoader(parquet, 8, as_="torch", pin_memory=True)


def test_devices_are_asked_for_when_a_loader_is_made(parquet):
    for device in ("nonsense", "gpu", "", -1, 2**70, True, 1.5):
        with pytest.raises(ValueError, match='device must be one of torch.* choose "cuda".* or "cpu"'):
            wr.DataLoader(parquet, 8, as_="torch", device=device)
    missing = torch.cuda.device_count()
    said = "is not there: torch finds" if missing else "needs a CUDA device.* leave device out"
    for device in (f"cuda:{missing}", missing, torch.device("cuda", missing), *(["cuda"] if not missing else [])):
        with pytest.raises(ValueError, match=f'device="cuda.*{said}'):
            wr.DataLoader(parquet, 8, as_="torch", device=device)
    # A backend that this torch may name, and no machine of tests has.
    with pytest.raises(ValueError, match='device="vulkan" cannot be used here'):
        wr.DataLoader(parquet, 8, as_="torch", device="vulkan")
    loader = wr.DataLoader(parquet, 8, as_="torch", device="meta", transform=lambda image: image[:, :9])
    assert next(iter(loader)).device.type == "meta"


@pytest.mark.parametrize("as_", ["torch", "jax"])
def test_an_iteration_to_a_device_that_is_left_ends_with_its_last_name(parquet, as_):
    """Its threads and the memory of its batches: they do not wait until Python looks for circles."""
    device = "cpu" if as_ == "torch" else pytest.importorskip("jax").devices("cpu")[0]
    loader = wr.DataLoader(parquet, 4, as_=as_, device=device, num_workers=2)
    gc.disable()
    try:
        iterator = iter(loader)
        next(iterator)
        left = weakref.ref(iterator)
        del iterator
        assert left() is None
    finally:
        gc.enable()


def test_tensors_are_labels_without_a_warning(parquet):
    labels = torch.arange(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = wr.DataLoader(parquet, 8, labels=labels)
    labels[:] = -1
    assert next(iter(loader))[1].tolist() == list(range(8))


def test_labels_and_rows_go_with_batches_to_a_device(labelled):
    choices = {
        "columns": ["class", "well"],
        "transform": lambda image: image[:1],
        "batch_transform": lambda b: (b[0] + 1, b[1]),
    }
    here = next(iter(wr.DataLoader(labelled, 8, as_="torch", **choices)))
    there = next(iter(wr.DataLoader(labelled, 8, as_="torch", device="cpu", **choices)))
    assert len(there) == 2 and torch.equal(here[0], there[0]) and there[0].shape == (8, 1, 48, 56)
    assert torch.equal(here[1]["class"], there[1]["class"]) and here[1]["well"] == there[1]["well"]


def test_a_stop_of_a_transform_does_not_end_torchs_loader(parquet):
    def stop(image):
        raise StopIteration

    dataset = wellread.torch.Dataset(parquet, transform=stop)
    with pytest.raises(RuntimeError, match="transform raised StopIteration"):
        list(torch.utils.data.DataLoader(dataset, 4))


def test_centre_crops_of_torchvision_round_to_even(tmp_path):
    """The words of docs/migration.md about odd differences."""
    import tifffile
    from torchvision.transforms import v2

    tifffile.imwrite(tmp_path / "a.tif", np.arange(64 * 64, dtype=np.uint16).reshape(64, 64))
    image = wr.Dataset(tmp_path)[0]
    for side in range(50, 64):
        top = (64 - side) // 2
        ours = next(iter(wr.DataLoader(tmp_path, crop=side, dtype="stored")))[0]
        assert np.array_equal(ours, image[:, top : top + side, top : top + side])
        theirs = next(iter(wr.DataLoader(tmp_path, as_="torch", dtype="stored", transform=v2.CenterCrop(side))))[0]
        assert np.array_equal(ours, theirs.numpy()) == ((64 - side) % 4 != 3), side


def test_transforms_of_torchvision_and_monai(parquet):
    import monai.transforms
    from torchvision.transforms import v2

    for transform in (
        v2.Compose([v2.CenterCrop(32), v2.RandomHorizontalFlip(1.0)]),
        monai.transforms.Compose([monai.transforms.CenterSpatialCrop((32, 32)), monai.transforms.Flip(1)]),
    ):
        batch = next(iter(wr.DataLoader(parquet, 4, as_="torch", transform=transform)))
        want = wr.Dataset(parquet)[:4].astype(np.float32)[:, :, 8:40, 12:44] * np.float32(1 / 65535)
        assert np.allclose(
            np.asarray(batch)[..., ::-1] if "v2" in type(transform).__module__ else np.asarray(batch),
            want if "v2" in type(transform).__module__ else want[..., ::-1],
            atol=1e-6,
        )
        dataset = wellread.torch.Dataset(parquet, transform=transform)
        assert dataset[0].shape == (2, 32, 32)


def test_a_type_that_cannot_hold_the_pixels_is_refused(tmp_path):
    import tifffile

    for i in range(2):
        tifffile.imwrite(tmp_path / f"{i}.tif", np.full((4, 4), 65535, np.uint16))
    ds = wr.Dataset(tmp_path)
    with pytest.raises(ValueError, match="float16.*cannot hold every value of uint16"):
        wr.torch.Dataset(ds, dtype="float16")
    assert wr.torch.Dataset(ds, dtype="bfloat16")[0].isfinite().all()
    assert wr.torch.Dataset(ds)[0].max() == 65535


def test_floats_that_would_become_infinite_are_refused(tmp_path):
    """The dataset looks at the values of floats: those of most images are small."""
    import tifffile

    for i, value in enumerate((0.5, 65504, 70000, np.inf)):
        tifffile.imwrite(tmp_path / f"{i}.tif", np.full((4, 4), value, np.float32))
    tifffile.imwrite(tmp_path / "4.tif", np.full((4, 4), 1e300))
    halves = wellread.torch.Dataset(tmp_path, dtype="float16")
    assert [halves[row].max().item() for row in (0, 1, 3)] == [0.5, 65504, np.inf]
    assert [image.max().item() for image in halves.__getitems__([1, 0, 3])] == [65504, 0.5, np.inf]
    for rows in ([2], [0, 1, 2, 3]):
        with pytest.raises(ValueError, match=r'dtype="float16" cannot hold 70000 \(row 2\): choose "stored"'):
            halves.__getitems__(rows)
    with pytest.raises(ValueError, match=r'dtype="float32" cannot hold 1e\+300 \(row 4\): choose "stored"'):
        wellread.torch.Dataset(tmp_path)[4]
    assert wellread.torch.Dataset(tmp_path, dtype="stored")[4].max() == 1e300
    assert (
        wellread.torch.Dataset(tmp_path)[2].max() == wellread.torch.Dataset(tmp_path, dtype="float32")[2].max() == 7e4
    )


def test_a_type_that_cannot_hold_a_later_image_is_refused_at_it(tmp_path):
    """A set may have images of several types, of which the first is looked at when the dataset is made."""
    import tifffile

    for i, dtype in enumerate(("uint8", "uint16", "float32")):
        tifffile.imwrite(tmp_path / f"{i}.tif", np.full((4, 4), 255 if i == 0 else 300, dtype))
    ds = wr.Dataset(tmp_path)
    for dtype, said in (("uint8", 'choose "float32" or "int64"'), ("float16", 'choose "float32" or "bfloat16"')):
        items = wr.torch.Dataset(ds, dtype=dtype)
        assert (items[0] == 255).all()
        with pytest.raises(ValueError, match=rf'dtype="{dtype}" cannot hold every value of uint16 \(row 1\): {said}'):
            items[1]
        with pytest.raises(ValueError, match=r"uint16 \(row 1\)"):
            items.__getitems__([0, 1])
    with pytest.raises(ValueError, match=r'dtype="int32" cannot hold float32 \(row 2\)'):
        wr.torch.Dataset(ds, dtype="int32")[2]
    assert [image.max().item() for image in wr.torch.Dataset(ds)] == [255, 300, 300]


@pytest.mark.parametrize("kind", ["Dataset", "IterableDataset"])
def test_errors_of_workers_name_file_and_row(kind, tmp_path, cells):
    import shutil

    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    damaged.write_bytes(damaged.read_bytes()[:-500])
    options = {"batch_size": 4} if kind == "IterableDataset" else {}
    dataset = getattr(wr.torch, kind)(wr.Dataset(folder), **options)
    batch = None if kind == "IterableDataset" else 4
    with pytest.raises(wr.CorruptImageError) as error:
        list(torch.utils.data.DataLoader(dataset, batch_size=batch, num_workers=1))
    assert error.value.row == 7 and error.value.path.endswith(damaged.name), (error.value.row, error.value.path)
    assert "Caught CorruptImageError in DataLoader worker process" in str(error.value)
