"""A misspelt argument, or key of a dictionary of choices, is answered with the name that may be meant."""

import re

import pytest
import wellread as wr
import wellread.bench
import wellread.lightning
import wellread.ray
import wellread.torch

OF_RAY = "Ray shuffles, joins and batches blocks"
CALLS = {
    "Dataset": wr.Dataset,
    "wellread.torch.Dataset": wellread.torch.Dataset,
    "WellreadDataModule": wellread.lightning.WellreadDataModule,
    "create_dataloader": wellread.bench.create_dataloader,
    "run_benchmark_suite": wellread.bench.run_benchmark_suite,
    "compare_models": wellread.bench.compare_models,
    "wellread.ray.read": wellread.ray.read,
}


@pytest.mark.parametrize(
    ("call", "given", "answer"),
    [
        ("Dataset", "formt", ": is it format=?"),
        ("Dataset", "shuffle", ": wellread.DataLoader() takes it"),
        ("Dataset", "random_crop", ": wellread.DataLoader() takes it"),
        # What a loader has in place of it says nothing about a set.
        ("Dataset", "collate_fn", ""),
        ("Dataset", "qqqq", ""),
        ("Dataset", "crop_size", ": crop= of wellread.DataLoader() is the size that is cut out of the middle"),
        ("Dataset", "root", ": the path is the first argument, without a name"),
        ("Dataset", "cache_rate", ': cache= keeps the images that were read, as "memory" does'),
        (
            "wellread.torch.Dataset",
            "patch_size",
            ": crop= of wellread.DataLoader() is the size that is cut out of the middle, and random_crop= of a "
            "random part (here transform= changes images)",
        ),
        ("wellread.torch.Dataset", "format_type", ": format= is the storage format"),
        ("create_dataloader", "spatial_size", ": resize= is the size of whole images, and crop= that of a part"),
        (
            "wellread.ray.read",
            "in_memory",
            ': cache= of wellread.Dataset() keeps the images that were read, as "memory" does: give '
            "Dataset(path, cache=...) in place of a path",
        ),
        ("wellread.torch.Dataset", "transfrm", ": is it transform=?"),
        ("wellread.torch.Dataset", "label", ": is it labels=?"),
        ("wellread.torch.Dataset", "cach", ": is it cache=?"),
        ("wellread.torch.Dataset", "datset", ": is it dataset=?"),
        ("wellread.torch.Dataset", "self_", ""),
        ("WellreadDataModule", "split_sed", ": is it split_seed=?"),
        ("WellreadDataModule", "train_choises", ": is it train_choices=?"),
        ("WellreadDataModule", "num_worker", ": is it num_workers=?"),
        ("create_dataloader", "imput_shape", ": is it input_shape=?"),
        ("create_dataloader", "shufle", ": is it shuffle=?"),
        ("create_dataloader", "random_seed", ": seed= seeds the order and all random draws"),
        # It takes a path alone.
        ("create_dataloader", "layout", ""),
        ("run_benchmark_suite", "warmup_iteration", ": is it warmup_iterations=?"),
        ("run_benchmark_suite", "modells", ": is it models=?"),
        ("compare_models", "batchsize", ": is it batch_size=?"),
        ("compare_models", "timeout", ""),
        ("wellread.ray.read", "rows_per_blok", ": is it rows_per_block=?"),
        ("wellread.ray.read", "random_crp", ": is it random_crop=?"),
        ("wellread.ray.read", "shuffle", f": {OF_RAY}"),
        # No choice that is refused is proposed.
        ("wellread.ray.read", "shufle", ""),
        (
            "wellread.ray.read",
            "cache",
            ": wellread.Dataset() takes it: give Dataset(path, cache=...) in place of a path",
        ),
    ],
)
def test_the_argument_that_may_be_meant_is_named(parquet, call, given, answer):
    path = () if call in ("run_benchmark_suite", "compare_models") else (parquet,)
    with pytest.raises(TypeError) as error:
        CALLS[call](*path, **{given: 1})
    assert str(error.value) == f"{call}() got an unexpected keyword argument {given!r}{answer}"


def test_what_is_given_by_its_place_alone_is_named(parquet):
    """Python said how many arguments it takes, of which `self` is one."""
    told = "takes path alone by position, and str 'tiff' is one more: give it by its name, as in format='tiff'"
    with pytest.raises(TypeError, match=re.escape(f"Dataset() {told}")):
        wr.Dataset(parquet, "tiff")
    with pytest.raises(TypeError, match=re.escape(f"wellread.torch.Dataset() {told.replace('path', 'dataset')}")):
        wellread.torch.Dataset(parquet, "tiff")
    told = (
        "DataLoader() takes dataset, batch_size and shuffle by position, and int 3 is one more: give it by its name"
    )
    with pytest.raises(TypeError, match=f"^{re.escape(told)}$"):
        wr.DataLoader(parquet, 4, True, 3)


def test_a_block_of_rows_is_explained(parquet):
    told = "block must be (neighbouring rows of a block, blocks that are mixed), as (256, 8), or one number where by="
    for block, error in ((8, TypeError), ((8,), ValueError)):
        with pytest.raises(error, match=re.escape(told)):
            wr.DataLoader(parquet, 4, order="block", block=block)


def test_a_loader_says_that_it_has_no_index(parquet):
    loader = wr.DataLoader(parquet, 4)
    with pytest.raises(TypeError, match=r"a loader has no index: .* loader.dataset\[0\] reads the image of row 0"):
        loader[0]
    assert loader.dataset[0].shape == next(iter(loader))[0].shape


def test_the_column_of_a_table_that_may_be_meant_is_named(parquet):
    table = {"Metadata_Well": ["A01"] * 40, "dose": range(40)}
    told = 'has no column "well" of plain values (hint: is it "Metadata_Well"? it has 2 columns: Metadata_Well, dose)'
    for on in ("well", ["dose", "well"]):
        with pytest.raises(wr.ChoiceError, match=re.escape(told)):
            wr.Dataset(parquet).with_columns(table, on=on)


def test_the_choice_of_a_dictionary_that_may_be_meant_is_named(parquet):
    told = "train_choices has 'shufle', which wellread.DataLoader does not take: is it 'shuffle'?"
    with pytest.raises(TypeError, match=f"^{re.escape(told)}$"):
        wellread.lightning.WellreadDataModule(parquet, train_choices={"shufle": True})
    with pytest.raises(TypeError, match=r"train_choices has 'qqqq', which wellread.DataLoader does not take$"):
        wellread.lightning.WellreadDataModule(parquet, train_choices={"qqqq": 1})
    with pytest.raises(TypeError, match=r"views\[1\] has 'crp', and a recipe may have .*: is it 'crop'\?$"):
        wr.DataLoader(parquet, 4, views=[{}, {"crp": 8}])
    with pytest.raises(TypeError, match=r"views\[0\] has 'qqqq', and a recipe may have crop, .*, channel_dropout$"):
        wr.DataLoader(parquet, 4, views=[{"qqqq": 8}])
