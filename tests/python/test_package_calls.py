"""Every public call with random arguments: the table of calls is compared with what the package has."""

import os
import random
import types

import pytest
import wellread as wr
import wellread.bench
import wellread.jax
import wellread.lightning
import wellread.torch
from test_package_random import LOADER, attempt, values

MODULES = (wr, wellread.torch, wellread.jax, wellread.lightning, wellread.bench)
# Methods of these names are calls that users make by operators and by other libraries.
OPERATORS = {
    "__getitem__", "__getitems__", "__iter__", "__len__", "__arrow_c_stream__", "__dlpack__", "__dlpack_device__",
    "__jax_array__", "__enter__", "__exit__",
}  # fmt: skip
ROUNDS = 30 * int(os.environ.get("WELLREAD_RANDOM_SEEDS", "4"))


def public():
    """Names of all functions and classes that modules show, and of the methods that classes have of their own."""
    found = set()
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing) or isinstance(thing, type) and issubclass(thing, BaseException):
                continue
            found.add(f"{module.__name__}.{name}")
            # What a class shows may be written in a base of its own, in a file beside it.
            bases = thing.__bases__ if isinstance(thing, type) else ()
            own = [thing, *(base for base in bases if base.__module__.startswith("wellread._"))]
            for member in {name for base in own for name in vars(base)} if isinstance(thing, type) else ():
                is_hook = thing is wellread.lightning.PhaseTimer and hasattr(wellread.lightning.pl.Callback, member)
                is_shown = not member.startswith("_") or member in OPERATORS
                if is_shown and not is_hook and callable(getattr(thing, member)):
                    found.add(f"{module.__name__}.{name}.{member}")
    return found


def loader_choices(draw):
    """One or two choices of a loader, and no threads."""
    return {name: values(draw) for name in draw.sample(LOADER, draw.randrange(1, 3))} | {"num_workers": 0}


class Calls:
    """One call of each, by name; `v()` is a random argument."""

    def __init__(self, path, folder, draw):
        self.draw, self.folder = draw, folder
        v = self.v = lambda: values(draw)
        ds = wr.Dataset(path)
        loader = wr.DataLoader(ds, 4, num_workers=0)
        batch = next(iter(wr.DataLoader(ds, 4, as_="batch", num_workers=0)))
        items = wellread.torch.Dataset(ds, labels="class")
        stream = wellread.torch.IterableDataset(ds, batch_size=4, num_workers=0)
        self.module = module = wellread.lightning.WellreadDataModule(ds, 4, num_workers=0)
        logger = wellread.bench.BenchmarkLogger(folder, "log.csv")
        choices = lambda: loader_choices(draw)  # noqa: E731
        of_torch = {"transform": v, "labels": v, "classes": v, "dtype": v}
        self.table = {
            "wellread.Dataset": lambda: wr.Dataset(v(), level=v()),
            "wellread.Dataset.__getitem__": lambda: ds[v()],
            "wellread.Dataset.__iter__": lambda: next(iter(ds)),
            "wellread.Dataset.__len__": lambda: len(ds),
            "wellread.Dataset.__arrow_c_stream__": lambda: ds.__arrow_c_stream__(v()),
            "wellread.Dataset.read": lambda: ds.read(v(), v()),
            "wellread.Dataset.image_shape": lambda: ds.image_shape(v()),
            "wellread.Dataset.cells": lambda: ds.cells(v(), size=v(), by=v()),
            "wellread.Dataset.with_columns": lambda: ds.with_columns(v(), on=v(), unmatched=v()),
            "wellread.Dataset.close": lambda: wr.Dataset(path).close(),
            "wellread.Dataset.__enter__": self.opened,
            "wellread.Dataset.__exit__": self.opened,
            "wellread.Dataset.name": lambda: ds.name(v()),
            "wellread.Dataset.metadata": lambda: ds.metadata(v()),
            "wellread.Dataset.column": lambda: ds.column(v()),
            "wellread.Dataset.concat": lambda: wellread.Dataset.concat(v()),
            "wellread.Dataset.filter": lambda: ds.filter(v(), a=v()),
            "wellread.Dataset.from_load_data": lambda: wellread.Dataset.from_load_data(v(), path_map=v()),
            "wellread.Dataset.part_weights": lambda: ds.part_weights(v()),
            "wellread.Dataset.select": lambda: ds.select(v()),
            "wellread.Dataset.split": lambda: ds.split(v(), by=v(), seed=v()),
            "wellread.Dataset.from_arrow": lambda: wr.Dataset.from_arrow(v(), column=v()),
            "wellread.DataLoader": lambda: wr.DataLoader(ds, v(), **choices()),
            "wellread.DataLoader.__getitem__": lambda: loader[v()],
            "wellread.DataLoader.__iter__": lambda: next(iter(loader)),
            "wellread.DataLoader.__len__": lambda: len(loader),
            "wellread.DataLoader.set_epoch": lambda: loader.set_epoch(v()),
            "wellread.DataLoader.rows": lambda: loader.rows(v()),
            "wellread.DataLoader.state_dict": loader.state_dict,
            "wellread.DataLoader.stats": loader.stats,
            "wellread.DataLoader.load_state_dict": lambda: loader.load_state_dict(v()),
            "wellread.DataLoader.close": lambda: wr.DataLoader(ds, 4, num_workers=0).close(),
            "wellread.DataLoader.__enter__": self.loading,
            "wellread.DataLoader.__exit__": self.loading,
            "wellread.Batch": lambda: wr.Batch(v()),
            "wellread.Batch.__len__": lambda: len(batch),
            "wellread.Batch.__dlpack__": lambda: batch.__dlpack__(max_version=v(), copy=v()),
            "wellread.Batch.__dlpack_device__": batch.__dlpack_device__,
            "wellread.Batch.__jax_array__": batch.__jax_array__,
            "wellread.Batch.toreadonly": batch.toreadonly,
            "wellread.Batch.bits": batch.bits,
            "wellread.Batch.memoryview": batch.memoryview,
            "wellread.formats": wr.formats,
            "wellread.link": self.link,
            "wellread.trace": lambda: wr.trace(v()),
            "wellread.trace.__enter__": self.trace,
            "wellread.trace.__exit__": self.trace,
            "wellread.step": lambda: wr.step(v()),
            "wellread.step.__enter__": self.step,
            "wellread.step.__exit__": self.step,
            "wellread.torch.Dataset": lambda: wellread.torch.Dataset(ds, **{n: of() for n, of in of_torch.items()}),
            "wellread.torch.Dataset.__getitem__": lambda: items[v()],
            "wellread.torch.Dataset.__getitems__": lambda: items.__getitems__(v()),
            "wellread.torch.Dataset.__len__": lambda: len(items),
            "wellread.torch.DataLoader": lambda: wellread.torch.DataLoader(ds, v(), **choices()),
            "wellread.torch.collate": lambda: wellread.torch.collate([v(), v()]),
            "wellread.torch.IterableDataset": self.iterable,
            "wellread.torch.IterableDataset.__iter__": lambda: next(iter(stream)),
            "wellread.torch.IterableDataset.__len__": lambda: len(stream),
            "wellread.torch.IterableDataset.set_epoch": lambda: stream.set_epoch(v()),
            "wellread.torch.IterableDataset.state_dict": stream.state_dict,
            "wellread.torch.IterableDataset.load_state_dict": lambda: stream.load_state_dict(v()),
            "wellread.jax.DataLoader": lambda: wellread.jax.DataLoader(ds, v(), as_=v(), num_workers=0),
            "wellread.lightning.PhaseTimer": lambda: wellread.lightning.PhaseTimer(v()),
            "wellread.lightning.PhaseTimer.phase": self.phase,
            "wellread.lightning.WellreadDataModule": self.data_module,
            "wellread.lightning.WellreadDataModule.setup": lambda: module.setup(v()),
            "wellread.lightning.WellreadDataModule.rows": lambda: module.rows(v()),
            "wellread.lightning.WellreadDataModule.state_dict": module.state_dict,
            "wellread.lightning.WellreadDataModule.load_state_dict": self.load_into_module,
            "wellread.bench.BenchmarkConfig": lambda: wellread.bench.BenchmarkConfig(framework=v()),
            "wellread.bench.BenchmarkLogger": lambda: wellread.bench.BenchmarkLogger(folder / "raw", v()),
            "wellread.bench.BenchmarkLogger.log": lambda: logger.log(v()),
            "wellread.bench.BenchmarkLogger.rows": logger.rows,
            "wellread.bench.BenchmarkLogger.read_results": logger.read_results,
            "wellread.bench.create_dataloader": self.batches,
            "wellread.bench.reset_memory_stats": wellread.bench.reset_memory_stats,
            "wellread.bench.run_inference_benchmark": lambda: wellread.bench.run_inference_benchmark(self.config()),
            "wellread.bench.run_benchmark_suite": lambda: wellread.bench.run_benchmark_suite([v()], ["none"], [v()]),
            "wellread.bench.compare_models": lambda: wellread.bench.compare_models([v()], ["none"], v()),
        }
        for part in ("train", "val", "test", "predict"):
            name = f"{part}_dataloader"
            self.table[f"wellread.lightning.WellreadDataModule.{name}"] = getattr(module, name)

    def opened(self):
        with wr.Dataset(self.module.dataset.path) as ds:
            ds.read(self.v())

    def loading(self):
        with wr.DataLoader(self.module.dataset, 4, **loader_choices(self.draw)) as loader:
            next(iter(loader), None)

    def trace(self):
        with wr.trace(self.v()):
            pass

    def link(self):
        # Not for the tests that come after.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("wellread._link.os", types.SimpleNamespace(environ={}))
            wr.link(**{name: self.v() for name in self.draw.sample(["in_flight", "link_bytes", "anonymous"], 2)})

    def step(self):
        with wr.step(self.v()):
            pass

    def iterable(self):
        made = wellread.torch.IterableDataset(self.module.dataset, batch_size=self.v(), **loader_choices(self.draw))
        next(iter(made), None)

    def data_module(self):
        name = self.draw.choice(["split", "split_by", "split_seed", "train", "val", "labels", "train_choices"])
        made = wellread.lightning.WellreadDataModule(self.module.dataset, self.v(), num_workers=0, **{name: self.v()})
        made.train_dataloader()

    def load_into_module(self):
        self.module.load_state_dict({"train": self.v()})
        try:
            self.module.train_dataloader()
        finally:
            self.module.load_state_dict({})

    def batches(self):
        return wellread.bench.create_dataloader("synthetic", self.v(), self.v(), seed=self.v())

    def phase(self):
        with wellread.lightning.PhaseTimer().phase(self.v()):
            pass

    def config(self):
        """A framework that there is not, so that nothing is measured."""
        fields = ["model_name", "batch_sizes", "input_shape", "dtype", "data_source", "threads", "seed"]
        field = self.draw.choice(fields)
        return wellread.bench.BenchmarkConfig(framework="none", verbose=False, **{field: self.v()})


def test_the_table_has_every_public_call(labelled, tmp_path):
    assert Calls(labelled, tmp_path, random.Random(0)).table.keys() == public()


# What else may come of it: a place that cannot be written to, what DLPack asks for, nothing that was measured, and
# what torch says of tensors that it cannot stack.
ALSO = {
    "wellread.torch.collate": (RuntimeError,),
    "wellread.Batch.__dlpack__": (BufferError,),
    "wellread.bench.BenchmarkLogger.log": (OSError,),
    "wellread.bench.BenchmarkLogger.rows": (OSError,),
    "wellread.bench.BenchmarkLogger.read_results": (OSError,),
    "wellread.bench.run_inference_benchmark": (wellread.bench.BenchmarkError,),
    "wellread.bench.run_benchmark_suite": (wellread.bench.BenchmarkError,),
    "wellread.bench.compare_models": (wellread.bench.BenchmarkError,),
}
# These start a process each time, or go through all objects of this one.
SLOW = {name for name in ALSO if ALSO[name] == (wellread.bench.BenchmarkError,)} | {
    "wellread.bench.reset_memory_stats"
}


@pytest.mark.parametrize("name", sorted(public()))
def test_random_arguments_end_in_errors_of_python(labelled, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    calls = Calls(labelled, tmp_path, random.Random(name))
    for _ in range(3 if name in SLOW else ROUNDS):
        attempt(calls.table[name], also=ALSO.get(name, ()))
    assert calls.module.dataset[3].shape == (2, 48, 56)
