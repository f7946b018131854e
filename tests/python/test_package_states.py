"""Where an iteration is: errors and Ctrl-C lose no batch, and a state that was loaded stays as it is."""

import contextlib
import copy
import pickle
import shutil
import signal

import numpy as np
import pytest
import torch
import wellread as wr
from wellread import _device

ROWS = list(range(40))


@pytest.fixture
def heeded():
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def in_call(number, action):
    """A transform that does something in its call of this number, counted from 1, and changes nothing."""
    calls = []

    def transform(batch):
        calls.append(None)
        if len(calls) == number:
            action()
        return batch

    return transform


def fail():
    raise RuntimeError("of the transform")


def interrupt():
    signal.raise_signal(signal.SIGINT)


def rest_of(parquet, state):
    """The labels of the images that a state leaves."""
    loader = wr.DataLoader(parquet, 5, labels=ROWS)
    loader.load_state_dict(state)
    return sum((labels.tolist() for _, labels in loader), [])


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("action", "error"), [(fail, RuntimeError), (interrupt, KeyboardInterrupt)])
@pytest.mark.parametrize(("step", "call"), [("transform", 13), ("batch_transform", 3)])
@pytest.mark.parametrize("choices", [{}, {"as_": "torch", "device": "cpu"}, {"as_": "jax"}])
def test_an_error_of_a_transform_loses_no_batch(parquet, workers, action, error, step, call, choices):
    steps = {step: in_call(call, action)}
    loader = wr.DataLoader(parquet, 5, num_workers=workers, labels=ROWS, **choices, **steps)
    iterator = iter(loader)
    seen = [label for _ in range(2) for label in np.asarray(next(iterator)[1]).tolist()]
    with pytest.raises(error):
        next(iterator)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (0, 10)
    assert seen + rest_of(parquet, state) == ROWS
    # The iteration goes on after the lost batch, and counts on.
    assert np.asarray(next(iterator)[1]).tolist() == [15, 16, 17, 18, 19]
    assert loader.state_dict()["position"] == 20
    loader.close()
    assert loader.state_dict()["position"] == 20


def test_two_errors_lose_no_batch_either(parquet):
    loader = wr.DataLoader(parquet, 5, batch_transform=lambda batch: batch if batch is None else fail())
    iterator = iter(loader)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            next(iterator)
    assert loader.state_dict()["position"] == 0
    loader.close()
    assert loader.state_dict()["position"] == 0


def test_an_error_in_the_last_batch_leaves_it_to_the_state(parquet):
    loader = wr.DataLoader(parquet, 5, batch_transform=in_call(8, fail))
    iterator = iter(loader)
    for _ in range(7):
        next(iterator)
    with pytest.raises(RuntimeError):
        next(iterator)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (0, 35)
    assert rest_of(parquet, state) == [35, 36, 37, 38, 39]
    with pytest.raises(StopIteration):
        next(iterator)
    assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (1, 0)


def test_ctrl_c_after_a_batch_was_taken_loses_none(parquet):
    """Python raises it where the native call has returned, before the batch is the caller's."""
    loader = wr.DataLoader(parquet, 5, as_="torch")
    iterator = iter(loader)
    next(iterator)
    take = iterator._take
    assert take is not None

    def interrupted():
        assert take() is not None
        raise KeyboardInterrupt

    iterator._take = interrupted
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert loader.state_dict()["position"] == 5
    iterator._take = take
    next(iterator)
    assert loader.state_dict()["position"] == 15


class NoStream(contextlib.nullcontext):
    """A stream, or an event, of a machine without CUDA."""

    def wait_event(self, event):
        pass

    def record(self, stream):
        pass


@pytest.mark.parametrize("call", [1, 3, 8])
def test_batches_that_are_moved_ahead_of_an_error_are_not_lost(parquet, monkeypatch, call):
    """As with CUDA, where the next batch is on its way to the device when a transform fails."""
    for name in ("Stream", "stream", "Event", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: NoStream())
    loader = wr.DataLoader(parquet, 5, as_="torch", labels=ROWS, batch_transform=in_call(call, fail))
    iterator = iter(loader)
    iterator._mover = _device._Ahead(torch.device("cpu"))
    for number in range(1, call):
        next(iterator)
        place = (0, 5 * number)
        assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == place
    with pytest.raises(RuntimeError):
        next(iterator)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (0, 5 * (call - 1))
    assert rest_of(parquet, state) == ROWS[5 * (call - 1) :]
    assert len(list(iterator)) == 8 - call
    assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (1, 0)


def test_a_transform_sees_the_place_after_the_batch_before_its_own(parquet):
    places = []
    loader = wr.DataLoader(
        parquet, 10, batch_transform=lambda batch: places.append(loader.state_dict()["position"]) or batch
    )
    assert len(list(loader)) == 4 and places == [0, 10, 20, 30]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_that_cannot_be_read_loses_no_other(tmp_path, cells, workers):
    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-500])
    loader = wr.DataLoader(folder, 5, num_workers=workers, labels=ROWS)
    iterator = iter(loader)
    assert next(iterator)[1].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(wr.CorruptImageError):
        next(iterator)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (0, 5)
    other = wr.DataLoader(folder, 5, on_error="skip", labels=ROWS)
    other.load_state_dict(state)
    assert sum((labels.tolist() for _, labels in other), []) == [5, 6, *range(8, 40)]


def test_the_next_epoch_is_that_of_a_state_which_was_loaded(parquet):
    loader = wr.DataLoader(parquet, 5, epoch=4)
    next(iter(loader))
    state = loader.state_dict()
    other = wr.DataLoader(parquet, 5)
    other.load_state_dict(state)
    assert other.epoch == 4
    for twin in (pickle.loads(pickle.dumps(other)), copy.copy(other), copy.deepcopy(other)):
        assert twin.epoch == 4 and twin.state_dict() == state
    assert len(list(other)) == 7 and other.epoch == 5
    other.load_state_dict(state)
    other.set_epoch(9)
    assert other.epoch == 9


@pytest.mark.parametrize("rank", range(3))
def test_a_rest_of_fewer_images_than_ranks_stays_with_copies(parquet, rank):
    alone = wr.DataLoader(parquet, 1, rows=range(7), epoch=2)
    iterator = iter(alone)
    for _ in range(6):
        next(iterator)
    state = alone.state_dict()
    loader = wr.DataLoader(parquet, 1, rows=range(7), shard=(rank, 3), labels=ROWS)
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    for each in (pickle.loads(pickle.dumps(loader)), copy.copy(loader), copy.deepcopy(loader), loader):
        assert each.epoch == 2 and list(each) == []
        assert each.epoch == 3
        assert [labels.tolist() for _, labels in each] == [[rank], [rank + 3]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("as_", ["numpy", "torch", "jax"])
def test_an_iteration_that_is_asked_for_no_batch_is_no_epoch(parquet, workers, as_):
    """Trainers make one to see whether a loader can be iterated, and drop it."""
    loader = wr.DataLoader(parquet, 5, True, seed=3, num_workers=workers, as_=as_, labels=ROWS)

    def rest(iterator):
        return [label for _, labels in iterator for label in np.asarray(labels).tolist()]

    iter(loader)
    kept = iter(loader)
    assert loader.epoch == 0 and loader.state_dict()["position"] == 0
    assert rest(loader) == loader.rows(0)
    # It is the next epoch once its first batch is asked for, and not before.
    assert loader.epoch == 1 and rest(kept) == loader.rows(1)
    pairs = [[np.asarray(labels).tolist() for _, labels in pair] for pair in zip(loader, loader, strict=True)]
    assert [sum(part, []) for part in zip(*pairs, strict=True)] == [loader.rows(2), loader.rows(3)]
    # What was delivered is not forgotten, either.
    begun = iter(loader)
    seen = [label for _ in range(2) for label in np.asarray(next(begun)[1]).tolist()]
    iter(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (4, 10)
    other = wr.DataLoader(parquet, 5, True, seed=3, num_workers=workers, as_=as_, labels=ROWS)
    waiting = iter(other)
    other.load_state_dict(state)
    for _ in range(2):
        iter(other)
        assert other.epoch == 4 and other.state_dict() == state
    assert seen + rest(waiting) == loader.rows(4) and other.epoch == 5
    assert rest(other) == loader.rows(5)
    late = iter(other)
    other.set_epoch(9)
    assert rest(late) == loader.rows(9) and other.epoch == 10
    late = iter(other)
    other.close()
    with pytest.raises(wr.ChoiceError, match="closed"):
        next(late)


def test_a_trainer_tells_of_later_epochs_alone(parquet):
    loader = wr.DataLoader(parquet, 5, True, epoch=2)
    next(iter(loader))
    state = loader.state_dict()
    told = loader.batch_sampler.sampler
    for epoch, then in ((0, 3), (3, 3), (7, 7)):
        told.set_epoch(epoch)
        assert loader.epoch == then
    loader.load_state_dict(state)
    for epoch in (0, 2):
        told.set_epoch(epoch)
        assert loader.state_dict() == state
    # That of the state is over, such as one of which the trainer takes some batches.
    told.set_epoch(3)
    assert loader.epoch == 3 and loader.state_dict()["position"] == 0
