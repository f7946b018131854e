"""Warnings of the package under torch: of draws that happen once, and transforms that change nothing."""

import gc
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import tifffile
import torch
import wellread as wr
import wellread.torch


def test_samplers_that_draw_in_each_epoch_are_told_of(parquet):
    """A loader asks a sampler once: with one that draws anew, every epoch would have the same rows without a word."""
    of_torch = torch.utils.data
    rows = range(40)
    for sampler in (
        of_torch.WeightedRandomSampler(torch.ones(40), 40),
        of_torch.RandomSampler(rows),
        of_torch.SubsetRandomSampler([1, 2, 4]),
        of_torch.DistributedSampler(rows, 2, 0),
    ):
        of_torchs = wellread.torch.DataLoader
        for name, made in (("sampler", of_torchs), ("sampler", wr.DataLoader), ("rows", wr.DataLoader)):
            with pytest.warns(UserWarning, match=f"{name} is a {type(sampler).__name__}") as told:
                loader = made(parquet, 4, **{name: sampler})
            assert len(told) == 1 and told[0].filename == __file__, made
            assert loader.rows(0) == loader.rows(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A copy has the rows, not the sampler.
        assert pickle.loads(pickle.dumps(loader)).rows(0) == loader.rows(0)
        for same in (of_torch.SequentialSampler(rows), of_torch.DistributedSampler(rows, 2, 0, shuffle=False)):
            wr.DataLoader(parquet, 4, sampler=same)
        wr.DataLoader(parquet, 4, sampler=list(of_torch.RandomSampler(rows)))
        wr.DataLoader(parquet, 4, shuffle=True, rows=[1, 2, 4])
        # Every draw has all of their rows, and the loader's own order differs in each epoch.
        subset = of_torch.SubsetRandomSampler(range(30))
        for order in ({"shuffle": True}, {"order": "block"}, {"weights": [1.0] * 40}):
            mixed = wr.DataLoader(parquet, 4, rows=subset, **order)
            assert mixed.rows(0) != mixed.rows(1)
        wr.DataLoader(parquet, 4, rows=of_torch.RandomSampler(rows), shuffle=True)
    for order in ({"shuffle": True}, {"order": "shuffle"}):
        with pytest.raises(ValueError, match="sampler says the order.* or give rows= in place of sampler="):
            wr.DataLoader(parquet, 4, sampler=[1, 2, 4], **order)
    for part in (of_torch.RandomSampler(rows, num_samples=9), of_torch.RandomSampler(rows, replacement=True)):
        with pytest.warns(UserWarning, match="every epoch has those"):
            wr.DataLoader(parquet, 4, rows=part, shuffle=True)


def test_caches_that_are_too_small_for_an_image_are_told_of(tmp_path):
    """They kept nothing, without a word."""
    for name in ("a", "b"):
        tifffile.imwrite(tmp_path / f"{name}.tif", np.ones((32, 32), np.uint16))
    of_pixels = ("memory:1KiB", "lru:1KiB", "file:1KiB", "preload:1KiB", "chunked:2:1KiB")
    for cache in (*of_pixels, "compressed:1KiB", "compressed-lru:2047"):
        when = " before it is compressed" if cache.startswith("compressed") else ""
        said = f"first image takes 2048 bytes{when}, and cache='{cache}' cannot keep it: give a size of 2048 bytes"
        with pytest.warns(UserWarning, match=said) as told:
            ds = wr.Dataset(tmp_path, cache=cache)
        assert len(told) == 1 and told[0].filename == __file__
        assert ds[1].sum() == ds[1].sum() == 1024
        assert ds.cache_report["images"] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cache in ("none", "memory", "memory:2KiB", "lru:2KiB", "compressed:2KiB", "compressed-lru:2048"):
            ds = wr.Dataset(tmp_path, cache=cache)
            assert ds[1].sum() == 1024
            assert ds.cache_report["images"] == (cache != "none")


def test_a_column_that_sets_do_not_have_is_told_of_these_sets(tmp_path, monkeypatch):
    """The error began with the folder that they have in common, which is a point."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        tifffile.imwrite(tmp_path / name / "x.tif", np.ones((4, 5), np.uint16))
    both = wr.Dataset(["a", "b"])
    with pytest.raises(wr.ChoiceError) as told:
        wr.DataLoader(both, illumination="illum/{chanel}.npy")
    said = str(told.value)
    assert said.startswith('these sets have no column "chanel" (hint: they have no columns beside the images'), said
    assert said.endswith("; or write {channel} where the channel's name is meant)"), said
    with pytest.raises(wr.ChoiceError, match='x.tif: has no column "chanel" .hint: it has no columns'):
        wr.DataLoader("a/x.tif", illumination="illum/{chanel}.npy")


def test_sets_together_are_called_by_the_first_in_errors_of_rows(tmp_path, monkeypatch):
    """Errors of rows began with the folder that the sets have in common, which is a point: `.: row 1`."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        tifffile.imwrite(tmp_path / name / f"{name}1.tif", np.ones((4, 5), np.uint16))
    both = wr.Dataset("a") + wr.Dataset("b")
    with pytest.raises(wr.ChoiceError) as told:
        both.with_columns({"file": ["a1.tif"], "dose": [1]}, on="file")
    assert str(told.value).startswith("a and 1 more: row 1: the table has no row for 1 of 2 images"), told.value
    with pytest.raises(ValueError, match="1 share given for 2 parts .hint: give one for each set"):
        both.part_weights([1])
    with pytest.raises(ValueError, match=r"1 share given for 0 parts .hint: use it on a set made of several"):
        wr.Dataset("a").part_weights([1])


def test_a_column_that_listed_files_do_not_have_is_told_of_the_first(tmp_path, monkeypatch):
    """The error began with the folder that they have in common, which is a point."""
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        tifffile.imwrite(tmp_path / f"{name}.tif", np.ones((4, 5), np.uint16))
    for names, called in (("ab", "a.tif and 1 more"), ("cab", "c.tif and 2 more")):
        files = wr.Dataset([f"{name}.tif" for name in names])
        with pytest.raises(wr.ChoiceError) as told:
            wr.DataLoader(files, illumination="illum/{chanel}.npy")
        assert str(told.value).startswith(f'{called}: has no column "chanel" (hint: it has no columns'), told.value
    # A folder is called as it was given.
    with pytest.raises(wr.ChoiceError) as told:
        wr.DataLoader(".", illumination="illum/{chanel}.npy")
    assert str(told.value).startswith('.: has no column "chanel" (hint: it has no columns'), told.value


def test_errors_of_listed_files_name_a_file(tmp_path, monkeypatch):
    """They began with the folder that the files have in common, which is a point: `.: row 0`."""
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        tifffile.imwrite(tmp_path / f"{name}.tif", np.ones((4, 5), np.uint16))
    files = wr.Dataset(["a.tif", "b.tif"])
    for wrong, begin in (
        ({"crop": 99}, "a.tif: row 0: "),
        ({"views": 65}, "a.tif and 1 more: 65 views of each image were asked for"),
    ):
        with pytest.raises(ValueError) as told:
            wr.DataLoader(files, **wrong)
        assert str(told.value).startswith(begin), told.value


class InOrder(torch.utils.data.Sampler):
    """Some rows in their order, which torch has no sampler for."""

    def __iter__(self):
        return iter([5, 1, 2])


class Drawing(torch.utils.data.Sampler):
    """Draws anew each time that it is asked."""

    asked = 0

    def __iter__(self):
        self.asked += 1
        return iter([self.asked, 5, 1])


class ByEpoch(InOrder):
    """Would draw by the epoch that it is told, and a loader tells none."""

    def set_epoch(self, epoch):
        pass


def test_samplers_of_ones_own_are_told_of_where_they_draw(parquet):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in ({"sampler": InOrder()}, {"rows": InOrder(), "shuffle": True}):
            assert sorted(wr.DataLoader(parquet, 2, **given).rows(0)) == [1, 2, 5]
    for sampler in (Drawing(), ByEpoch()):
        with pytest.warns(UserWarning, match=f"sampler is a {type(sampler).__name__}"):
            wr.DataLoader(parquet, 2, sampler=sampler)


@pytest.mark.parametrize("as_", ["numpy", "jax"])
def test_transforms_of_torchvision_that_leave_arrays_are_told_of(parquet, as_):
    """Those of its second version return what is no tensor as it was."""
    pytest.importorskip("torchvision")
    from torchvision.transforms import v2

    if as_ == "jax":
        pytest.importorskip("jax")
    for choices in ({}, {"targets": parquet}, {"views": 2}, {"views": {"a": {}, "b": {}}}):
        loader = wr.DataLoader(parquet, 8, as_=as_, transform=v2.CenterCrop(8), **choices)
        said = 'CenterCrop of torchvision, which left the image of row 0.*as_="torch"'
        with pytest.warns(UserWarning, match=said) as told:
            assert len(list(loader)) == 5
        assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert next(iter(wr.DataLoader(parquet, 8, as_="torch", transform=v2.CenterCrop(8)))).shape == (8, 2, 8, 8)
        # What is the user's own takes arrays, and may leave an image as it is.
        own = (lambda image: image * 2, lambda image: image)
        parts = (v2.Compose([v2.Compose([call])]) for call in own)
        for transform in (own[1], *map(v2.Lambda, own), *parts, v2.RandomApply([own[0]], p=0)):
            list(wr.DataLoader(parquet, 8, as_=as_, transform=transform))
    with pytest.warns(UserWarning, match="Compose of torchvision, which left the image of row 0"):
        list(wr.DataLoader(parquet, 8, as_=as_, transform=v2.Compose([v2.CenterCrop(8), v2.Pad(1)])))


def test_a_dataset_that_is_dropped_leaves_no_file_open(parquet):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dataset = wellread.torch.IterableDataset(parquet, batch_size=8)
        assert len(list(dataset)) == 5
        copy = pickle.loads(pickle.dumps(dataset))
        del dataset, copy
        gc.collect()
    assert not [warning for warning in told if warning.category is ResourceWarning]


def test_a_dataset_that_is_left_at_the_end_of_the_process_says_nothing(parquet):
    """Modules are gone before the last objects."""
    program = (
        "import sys, wellread.torch\n"
        "sys._kept = wellread.torch.IterableDataset(sys.argv[1], batch_size=8)\n"
        "print(len(list(sys._kept)))\n"
    )
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", program, parquet]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
    assert "_epochs" not in done.stderr and "unclosed file" not in done.stderr, done.stderr


def test_arguments_of_the_loader_are_told_from_those_of_a_set(parquet):
    """The error said that a path would take them. None does."""
    told = r"wellread.torch.Dataset\(\) got an unexpected keyword argument "
    for dataset in (parquet, wr.Dataset(parquet)):
        for name, value in {"crop": 32, "normalize": "image", "num_workers": 2, "targets": parquet}.items():
            with pytest.raises(
                TypeError, match=rf"{told}'{name}': wellread.DataLoader\(\) takes it \(here transform="
            ):
                wellread.torch.Dataset(dataset, **{name: value})
    with pytest.raises(TypeError, match="cache: only where a path is given"):
        wellread.torch.Dataset(wr.Dataset(parquet), cache="none")


def test_a_part_of_a_set_of_torch_says_how_its_rows_are_given(parquet):
    """The error of a Subset said its type alone."""
    part = torch.utils.data.Subset
    own = wr.Dataset(parquet)
    items = wellread.torch.Dataset(own)
    of_rows = "give it dataset.dataset.images, with rows=dataset.indices$"
    with pytest.raises(TypeError, match=f"not torch.utils.data.dataset.Subset: {of_rows}"):
        wr.DataLoader(part(items, [3, 1]), 2)
    with pytest.raises(TypeError, match=of_rows):
        wellread.torch.DataLoader(part(items, [3, 1]), 2)
    for call in (wellread.torch.Dataset, wellread.torch.IterableDataset):
        with pytest.raises(TypeError, match=r"give it dataset.dataset.images.select\(dataset.indices\)$"):
            call(part(items, [3, 1]))
    with pytest.raises(TypeError, match=r"give it targets.dataset.select\(targets.indices\)$"):
        wr.DataLoader(own, 2, targets=part(own, [3, 1]))
    # What the error says of a part of a part.
    dataset = part(part(items, [5, 3, 1]), [2, 0])
    told = "give it dataset.dataset.dataset.images, with rows=[dataset.dataset.indices[i] for i in dataset.indices]"
    with pytest.raises(TypeError, match=f"{re.escape(told)}$"):
        wr.DataLoader(dataset, 2)
    loader = wr.DataLoader(dataset.dataset.dataset.images, rows=[dataset.dataset.indices[i] for i in dataset.indices])
    assert loader.rows(0) == [1, 5]
    with pytest.raises(TypeError, match="not torch.utils.data.dataset.Subset$"):
        wr.DataLoader(part([7], [0]))


def test_images_of_unlike_sizes_are_named_by_their_rows(tmp_path):
    """Torch said which item of a batch it could not stack."""
    for name, width in {"a": 24, "b": 24, "c": 30}.items():
        tifffile.imwrite(tmp_path / f"{name}.tif", np.zeros((20, width), np.uint8))
    told = r"of one size: row 2 is \(1, 20, 30\), and row 1 is \(1, 20, 24\)\. .*transform= .* or resize="
    for labels in (None, [4, 5, 6]):
        items = wellread.torch.Dataset(tmp_path, labels=labels)
        loader = torch.utils.data.DataLoader(items, 2, sampler=[1, 2], collate_fn=wellread.torch.collate)
        with pytest.raises(wr.ChoiceError, match=told):
            next(iter(loader))
        with pytest.raises(wr.ChoiceError, match=r"item 1 is \(1, 20, 30\), and item 0 is"):
            wellread.torch.collate([items[0], items[2]])
    cut = wellread.torch.Dataset(tmp_path, transform=lambda image: image[:, :16, :16])
    loader = torch.utils.data.DataLoader(cut, 3, collate_fn=wellread.torch.collate)
    assert next(iter(loader)).shape == (3, 1, 16, 16)
    pairs = wellread.torch.Dataset(tmp_path, transform=lambda image: (image[:, :16, :16], None))
    # Of pairs that a transform makes, what torch makes no tensor of is a list, as before.
    images, others = wellread.torch.collate(pairs.__getitems__([0, 2]))
    assert images.shape == (2, 1, 16, 16) and others == [None, None]


def test_types_of_libraries_are_told_by_their_names(parquet):
    for given in (torch.float16, np.float16):
        with pytest.raises(TypeError, match="dtype must be one of .*: write 'float16'$"):
            wr.DataLoader(parquet, dtype=given)
    with pytest.raises(TypeError, match="dtype must be one of .*, not type$"):
        wr.DataLoader(parquet, dtype=np.int32)


def test_a_warning_names_the_line_of_the_caller(tmp_path):
    """It named one of the package where another class opens the path, and Python shows such a line once."""
    pytest.importorskip("jax")
    pytest.importorskip("lightning")
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
        for name in ("a.tif", "b.tif"):
            tifffile.imwrite(tmp_path / folder / name, np.ones((8, 8), np.uint16))
    path = str(tmp_path)
    with pytest.warns(UserWarning, match="is a mask of"):
        same = wr.Dataset(path)
    for call in (
        lambda: wr.Dataset(path),
        lambda: wr.DataLoader(path),
        lambda: wr.DataLoader(same, targets=path),
        lambda: wellread.torch.DataLoader(path),
        lambda: wellread.torch.Dataset(path),
        lambda: wellread.torch.IterableDataset(path),
        lambda: wr.jax.DataLoader(path),
        lambda: wr.lightning.WellreadDataModule(path, 1, train=[0]).setup("fit"),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call()
        ours = [warning for warning in told if "is a mask of" in str(warning.message)]
        assert [(one.filename, one.lineno) for one in ours] == [(__file__, call.__code__.co_firstlineno)]
