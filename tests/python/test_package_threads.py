"""Threads of Python share what the package gives them. They run with the interpreter's lock, and without it where
there is an interpreter of that kind (`python3.14t`; `pip install .` builds a wheel for it there)."""

import importlib
import os
import sys
import sysconfig
import threading

import numpy as np
import pytest
import wellread as wr
from own_process import run_alone

THREADS = 8
U16 = np.float32(1 / 65535)


def at_once(work):
    """Runs `work(0)` to `work(7)` in threads that begin together; what they returned."""
    gate, results = threading.Barrier(THREADS), [None] * THREADS

    def run(i):
        gate.wait()
        try:
            results[i] = work(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_the_lock_stays_off_where_the_interpreter_has_none():
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "importing the package switched the interpreter's lock on"
    else:
        assert getattr(sys, "_is_gil_enabled", lambda: True)()


def test_one_dataset_is_read_by_all_threads(cells):
    for path in cells.values():
        ds = wr.Dataset(path)
        want = ds[:]

        def rows(i, ds=ds, want=want):
            for row in list(range(i, len(ds))) + list(range(i)):
                assert np.array_equal(ds[row], want[row])
                assert ds.name(row) and ds.image_shape(row) == ds.image_shape(0)
            return len(ds)

        assert at_once(rows) == [40] * THREADS


def tasks():
    """The threads that this process has."""
    return set(os.listdir("/proc/self/task"))


def test_no_workers_means_no_threads(parquet):
    """`num_workers=0` reads in the thread that asks; workers are threads, there before it asks."""
    # In a process of its own: libraries that other tests have imported start threads when they like.
    run_alone(count_threads, parquet)


def count_threads(parquet):
    ds = wr.Dataset(parquet)
    before = tasks()
    batches = 0
    for _ in wr.DataLoader(ds, 4, shuffle=True, num_workers=0):
        assert tasks() <= before, "a thread was started"
        batches += 1
    assert batches == 10
    # They wait for room: ten batches are more than they may be ahead.
    epoch = iter(wr.DataLoader(ds, 4, shuffle=True, num_workers=2, prefetch=2))
    assert 1 <= len(tasks() - before) <= 2
    assert sum(1 for _ in epoch) == 10


def test_every_thread_has_its_own_epoch_of_one_loader(parquet):
    ds = wr.Dataset(parquet)
    want = ds[:].astype(np.float32) * U16

    def epoch(i):
        loader = wr.DataLoader(ds, 7, shuffle=True, seed=i, num_workers=i % 3)
        return np.array_equal(np.concatenate(list(loader)), want[loader.rows(0)])

    assert all(at_once(epoch))


def test_threads_that_share_an_iterator_get_every_batch_once(parquet):
    ds = wr.Dataset(parquet)
    want = {image.tobytes() for image in ds[:].astype(np.float32) * U16}
    for workers in (0, 2):
        batches = iter(wr.DataLoader(ds, 3, shuffle=True, seed=5, num_workers=workers))

        def take(_, batches=batches):
            return [image.tobytes() for batch in batches for image in batch]

        got = [image for images in at_once(take) for image in images]
        assert len(got) == 40 and set(got) == want


def test_threads_that_share_an_iterator_end_it_once(parquet):
    ds = wr.Dataset(parquet)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for turn in range(50):
            loader = wr.DataLoader(ds, 20, num_workers=turn % 2)
            batches = iter(loader)
            places = []

            def take(_, loader=loader, batches=batches, places=places):
                taken = sum(1 for _ in batches)
                places.append(loader.state_dict())
                return taken

            assert sum(at_once(take)) == 2
            assert places == [loader.state_dict()] * THREADS, "each thread's end is the epoch's"
    finally:
        sys.setswitchinterval(before)


def test_threads_that_begin_epochs_of_one_loader_get_each_once(parquet):
    """They make iterations of the same epoch at the same time. The first to ask for a batch has it."""
    loader = wr.DataLoader(parquet, 8, shuffle=True, indices=True, num_workers=1)

    def begin(_):
        waiting = [iter(loader) for _ in range(5)]
        return [[row for _, rows in iterator for row in rows.tolist()] for iterator in waiting]

    begun = [rows for epochs in at_once(begin) for rows in epochs]
    assert sorted(begun) == sorted(loader.rows(epoch) for epoch in range(5 * THREADS))
    assert loader.epoch == 5 * THREADS


def test_threads_that_begin_epochs_of_one_iterable_dataset_get_each_once(parquet):
    """One that looks where it is, as for a checkpoint, must not write back what another has changed meanwhile."""
    pytest.importorskip("torch")
    epochs = importlib.import_module("wellread.torch").IterableDataset(parquet, batch_size=4)._epochs

    def begin(i):
        begun = []
        for _ in range(50):
            epochs.next()
            begun.append(epochs.begin()[0])
        return begun

    assert sorted(epoch for begun in at_once(begin) for epoch in begun) == list(range(50 * THREADS))


def test_batches_are_freed_by_other_threads_than_took_them(parquet):
    ds = wr.Dataset(parquet)
    kept = [list(wr.DataLoader(ds, 4, num_workers=1)) for _ in range(THREADS)]
    want = np.concatenate(kept[0])

    def drop(i):
        own, kept[i] = kept[i], None
        assert np.array_equal(np.concatenate(own), want)
        loader = wr.DataLoader(ds, 4, num_workers=1)
        for _ in range(5):
            next(iter(loader))
        return own.clear()

    assert at_once(drop) == [None] * THREADS
    assert np.array_equal(np.concatenate(list(wr.DataLoader(ds, 4, num_workers=1))), want)
