"""The package under torch: workers that share an iterable set, its epochs, and states that a run goes on from."""

import pickle
import sys
import warnings

import numpy as np
import pytest
import torch
import wellread as wr
import wellread.torch


@pytest.mark.parametrize("batch_size", [None, 6])
def test_iterable_shares_deliver_everything_once(parquet, batch_size):
    dataset = wellread.torch.IterableDataset(parquet, batch_size=batch_size, shuffle=True, seed=4, flip=True)
    alone = [item.clone() for item in torch.utils.data.DataLoader(dataset, batch_size=None)]
    assert sum(1 if batch_size is None else len(item) for item in alone) == 40
    dataset.set_epoch(0)
    workers = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=3, multiprocessing_context="fork")
    shared = list(workers)
    # To the bit, and in the same order.
    assert len(shared) == len(alone) and all(torch.equal(a, b) for a, b in zip(shared, alone, strict=True))


@pytest.mark.parametrize(
    "choices",
    [
        {"weights": [1.0] * 40, "images_per_epoch": 80},
        {"order": "balanced", "by": [i % 3 for i in range(40)]},
        {"rows": [3, 3, 3, 5] * 7},
        {"shuffle": True, "rank": 2, "world_size": 3, "uneven": "pad"},
        {"shuffle": True, "crops_per_image": 2, "random_crop": 30},
    ],
    ids=["weighted", "balanced", "repeated", "padded", "crops"],
)
def test_workers_take_turns_with_the_batches_of_one(parquet, choices):
    """To the bit: rows that come more than once have draws of their own each time."""
    dataset = wellread.torch.IterableDataset(parquet, batch_size=6, seed=4, flip=True, labels=range(40), **choices)
    for epoch in range(2):
        dataset.set_epoch(epoch)
        alone = [[part.clone() for part in batch] for batch in torch.utils.data.DataLoader(dataset, batch_size=None)]
        assert len(alone) == len(dataset)
        for workers in (3, 16):
            dataset.set_epoch(epoch)
            loader = torch.utils.data.DataLoader(
                dataset, batch_size=None, num_workers=workers, multiprocessing_context="fork"
            )
            for (pixels, labels), (others, theirs) in zip(alone, loader, strict=True):
                assert torch.equal(pixels, others) and torch.equal(labels, theirs)


def tell_in_stderr(worker):
    """In a worker process: a forked one would keep its warnings for pytest."""
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_: print(message, file=sys.stderr, flush=True)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_single_images_of_several_workers_are_warned_of_once(parquet, method, capfd):
    """torch's loader makes each batch of the images of one worker, which is not told how many."""
    warning = "makes each batch of the single images of one of 2 workers"
    loaded = torch.utils.data.DataLoader
    # In two epochs.
    cases = [(2, 4, True, 1)]
    if method == "fork":
        cases += [(2, None, True, 0), (2, None, False, 0), (1, 4, True, 0), (0, 4, True, 0)]
    for workers, batch_size, single, told in cases:
        dataset = wellread.torch.IterableDataset(parquet, batch_size=None if single else 4, indices=True)
        context = method if workers else None
        choices = {"multiprocessing_context": context, "worker_init_fn": tell_in_stderr if workers else None}
        loader = loaded(dataset, batch_size=batch_size, num_workers=workers, **choices)
        rows = [[int(row) for row in torch.as_tensor(batch[1]).flatten()] for _ in range(2) for batch in loader]
        said = capfd.readouterr().err
        assert said.count(warning) == told and ("batch_size=None to torch's DataLoader" in said) == bool(told)
        if told:
            assert rows[:2] == [[0, 2, 4, 6], [1, 3, 5, 7]]
        else:
            assert sum(rows, []) == [*range(40)] * 2


def test_single_images_of_several_workers_keep_no_shares(parquet):
    classes = [i % 2 for i in range(40)]
    dataset = wellread.torch.IterableDataset(parquet, labels=classes, order="balanced", by=classes)
    message = 'order="balanced" holds for batches of one process.* one of 2 workers: give batch_size=N to '
    with pytest.raises(wr.ChoiceError, match=message):
        list(torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=2, multiprocessing_context="fork"))
    # One by one, and of one worker, they come as they are.
    for workers, batch_size in ((2, None), (1, 4), (0, 4)):
        dataset.set_epoch(0)
        loader = torch.utils.data.DataLoader(dataset, batch_size=batch_size, num_workers=workers)
        labels = torch.cat([torch.as_tensor(labels).flatten() for _, labels in loader]).tolist()
        dataset.set_epoch(0)
        assert labels == [int(label) for _, label in dataset]


class HandedOn(torch.utils.data.IterableDataset):
    """A dataset of somebody else around one, whose callers know nothing of it."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        yield from self.dataset


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("order", ["weighted", "balanced"])
def test_single_images_whose_batches_may_keep_shares_are_warned_of(parquet, order, wrapped, capfd):
    """Each position of a weighted order is drawn by itself; and another caller may make no batches."""
    by = {"by": [i % 2 for i in range(40)]} if order == "balanced" else {"weights": [0.0, 1.0, 3.0, 0.0] * 10}
    dataset = wellread.torch.IterableDataset(parquet, indices=True, seed=4, order=order, **by)
    rows = [int(row) for _, row in dataset]
    dataset.set_epoch(0)
    loader = torch.utils.data.DataLoader(
        HandedOn(dataset) if wrapped else dataset,
        batch_size=4,
        num_workers=2,
        multiprocessing_context="fork",
        worker_init_fn=tell_in_stderr,
    )
    if order == "balanced" and not wrapped:
        with pytest.raises(wr.ChoiceError, match='order="balanced" holds for batches of one process'):
            list(loader)
        return
    batches = [batch.tolist() for _, batch in loader]
    # Those of one worker and of the other in turn: the first has every second image of the order.
    assert batches == [rows[8 * (i // 2) + i % 2 :][:8:2] for i in range(10)]
    assert capfd.readouterr().err.count("makes each batch of the single images of one of 2 workers") == 1


def test_single_images_keep_the_parts_of_a_list(parquet):
    """A list of parts is as good as a tuple of them. In a part, a list has one value per image."""
    choices = {"labels": [f"A{i}" for i in range(40)], "indices": True}
    wanted = [batch[0] for batch, *_ in wr.DataLoader(parquet, as_="torch", **choices)]

    def add(batch):
        return [batch[0] * 2, *batch[1:], b"raw", [], np.zeros((0, 3)), {"of": (batch[2], [7])}]

    items = list(wellread.torch.IterableDataset(parquet, batch_transform=add, **choices))
    assert len(items) == 40
    for row, (image, label, index, raw, empty, nothing, inner) in enumerate(items):
        assert torch.equal(image, wanted[row] * 2) and (label, int(index)) == (f"A{row}", row)
        assert (raw, empty, nothing.shape) == (b"raw", [], (0, 3))
        assert int(inner["of"][0]) == row and inner["of"][1] == 7
    assert type(items[0]) is list
    for alone in ("text", b"raw"):
        assert next(iter(wellread.torch.IterableDataset(parquet, batch_transform=lambda _, a=alone: a))) == alone


def test_single_images_keep_what_a_batch_transform_adds(parquet):
    def add(batch):
        return {"image": batch, "share": 0.25, "text": "beta", "seed": torch.tensor(7)}

    item = next(iter(wellread.torch.IterableDataset(parquet, batch_transform=add)))
    assert item["image"].shape == (2, 48, 56)
    assert (item["share"], item["text"], int(item["seed"])) == (0.25, "beta", 7)


def rows_of(dataset, **choices):
    """The rows of an epoch of torch's loader, in their order."""
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, **choices)
    return torch.cat([rows for _, rows in loader]).tolist()


def stream(path, **choices):
    return wellread.torch.IterableDataset(path, batch_size=6, shuffle=True, seed=4, indices=True, **choices)


@pytest.mark.parametrize(
    ("workers", "method"), [(0, None), (1, "fork"), (2, "fork"), (2, "spawn"), (1, "forkserver")]
)
def test_each_iteration_of_torchs_loader_runs_the_next_epoch(parquet, workers, method):
    """Also where its workers are made anew each time, as copies of a dataset that has seen no epoch."""
    want = [rows_of(stream(parquet, epoch=epoch)) for epoch in range(4)]
    assert len({tuple(rows) for rows in want}) == 4
    choices = {"num_workers": workers, "multiprocessing_context": method, "timeout": 600 if workers else 0}
    dataset = stream(parquet)
    assert [rows_of(dataset, **choices) for _ in range(2)] == want[:2]
    assert (dataset.state_dict()["epoch"], dataset.state_dict()["position"]) == (2, 0)
    # Another start, and where that was left.
    dataset.set_epoch(0)
    assert rows_of(dataset, **choices) == want[0]
    halfway = stream(parquet)
    halfway.set_epoch(2)
    next(iter(halfway))
    if workers < 2:
        dataset.load_state_dict(halfway.state_dict())
        assert [rows_of(dataset, **choices) for _ in range(2)] == [want[2][6:], want[3]]
    if not workers:
        return
    # Workers that persist, also where the parent says which epoch is next.
    loader = torch.utils.data.DataLoader(stream(parquet), batch_size=None, persistent_workers=True, **choices)
    epochs = [torch.cat([rows for _, rows in loader]).tolist() for _ in range(2)]
    loader.dataset.set_epoch(3)
    assert [*epochs, torch.cat([rows for _, rows in loader]).tolist()] == [*want[:2], want[3]]


def test_epochs_are_counted_by_each_iteration_that_was_begun(parquet):
    want = [rows_of(stream(parquet, epoch=epoch)) for epoch in range(4)]
    dataset = stream(parquet)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    # The same seed each time: torch gives its workers the same one.
    torch.manual_seed(1)
    assert next(iter(loader))[1].tolist() == want[0][:6]
    torch.manual_seed(1)
    # Two at once: each is one epoch.
    both = list(zip(loader, loader, strict=True))
    found = [torch.cat([pair[side][1] for pair in both]).tolist() for side in (0, 1)]
    assert sorted(found) == sorted(want[1:3])
    # A copy counts on its own.
    copied = pickle.loads(pickle.dumps(dataset))
    assert rows_of(copied) == want[3] and rows_of(dataset) == want[3]


@pytest.mark.parametrize("persist", [False, True])
def test_a_state_taken_while_workers_deliver_is_of_their_epoch(parquet, persist):
    """It was that of the next one: what was left of the epoch was skipped."""
    want = [rows_of(stream(parquet, epoch=epoch)) for epoch in range(3)]
    choices = {"num_workers": 2, "multiprocessing_context": "fork", "prefetch_factor": 1}
    dataset = stream(parquet)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, persistent_workers=persist, **choices)
    for epoch in range(2):
        iterator = iter(loader)
        rows = next(iterator)[1].tolist()
        # Of seven batches the workers are asked for three by now.
        state = dataset.state_dict()
        assert (state["epoch"], state["position"]) == (epoch, 0)
        resumed = stream(parquet)
        resumed.load_state_dict(state)
        assert rows_of(resumed) == want[epoch]
        for _, more in iterator:
            rows += more.tolist()
        assert rows == want[epoch]
        state = dataset.state_dict()
        assert (state["epoch"], state["position"]) == (epoch + 1, 0)
    # What is said to it, and what it iterates itself, count from then on.
    dataset.set_epoch(1)
    assert dataset.state_dict()["epoch"] == 1
    assert next(iter(dataset))[1].tolist() == want[1][:6]
    assert (dataset.state_dict()["epoch"], dataset.state_dict()["position"]) == (1, 6)


def test_a_state_that_workers_go_on_from_is_kept_while_they_do(parquet):
    halfway = stream(parquet)
    next(iter(halfway))
    state = halfway.state_dict()
    dataset = stream(parquet)
    dataset.load_state_dict(state)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=1, multiprocessing_context="fork", prefetch_factor=1
    )
    iterator = iter(loader)
    assert next(iterator)[1].tolist() == rows_of(stream(parquet))[6:12]
    assert dataset.state_dict() == state and state["position"] == 6
    del iterator


def test_an_iterable_dataset_goes_on_from_its_state(parquet):
    def dataset(**choices):
        return wellread.torch.IterableDataset(parquet, batch_size=6, shuffle=True, flip=True, **choices)

    whole = dataset()
    assert whole.state_dict()["position"] == 0
    first, second = list(whole), list(whole)
    stopped = dataset()
    iterator = iter(stopped)
    for done, want in enumerate(first, 1):
        assert torch.equal(next(iterator), want)
        state = stopped.state_dict()
        assert (state["epoch"], state["position"]) == (0, min(6 * done, 40))
        resumed = dataset()
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        for epoch in (first[done:], second):
            assert all(torch.equal(a, b) for a, b in zip(epoch, resumed, strict=True))
    assert next(iterator, None) is None and stopped.state_dict()["epoch"] == 1
    resumed.load_state_dict(state)
    resumed.set_epoch(1)
    assert torch.equal(next(iter(resumed)), second[0])
    for wrong, kind in (([], TypeError), ({}, ValueError), (state | {"position": -1}, ValueError)):
        with pytest.raises(kind):
            resumed.load_state_dict(wrong)
    resumed = dataset(seed=9)
    resumed.load_state_dict(state)
    with pytest.raises(ValueError, match="saved with seed 0"):
        next(iter(resumed))
