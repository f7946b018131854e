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
