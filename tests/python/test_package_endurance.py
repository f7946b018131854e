"""The package in the long run: memory, threads, processes, and a check of the native module for leaks."""

import ctypes
import gc
import hashlib
import multiprocessing
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest
import wellread as wr
from own_process import HANGS, resident, run_alone

MB = 1 << 20


@pytest.fixture(scope="module")
def large(wellread, tmp_path_factory):
    """Images that tell in memory: an epoch of 64 of them is 16 MB as float32."""
    folder = tmp_path_factory.mktemp("large")
    wellread("generate", folder, "--images", 64, "--size", "256x256", "--formats", "parquet")
    return str(folder / "images.parquet")


@pytest.mark.parametrize("as_", ["numpy", "torch", "jax"])
def test_fifty_epochs_do_not_grow(large, as_):
    loader = wr.DataLoader(large, 8, True, num_workers=2, as_=as_, labels=list(range(64)), flip=True)
    kept, sizes = [], []
    for _ in range(50):
        # Each epoch's batches are held until the next epoch has ended, so memory changes hands all the time.
        last = kept
        kept = [pixels for pixels, _labels in loader]
        del last
        sizes.append(resident())
    # What stays of every epoch is in each ten epochs: of each a batch, 20 MB. Other libraries of this process may
    # take memory at any time, but hardly in each ten.
    grown = [sizes[at + 10] - sizes[at] for at in range(9, 49, 10)]
    assert min(grown) < 10 * MB, [size // MB for size in sizes]


def test_memory_that_is_dropped_comes_back(large):
    # In a process of its own: here, other libraries give back and take memory meanwhile.
    run_alone(hold_and_drop, large)


def hold_and_drop(large):
    loader = wr.DataLoader(large, 8, num_workers=2)
    for _batch in loader:
        pass
    before = resident()
    kept = [batch for _ in range(8) for batch in loader]
    held = sum(batch.nbytes for batch in kept)
    # Half of it, by far: the loader need not take new memory for the batches that it had already, and a machine that
    # is short of memory may have put some of it elsewhere.
    assert resident() - before > held / 2
    views = [batch[:1, :, :1] for batch in kept]
    del kept
    assert resident() - before > held / 2, "a small view keeps all of its batch"
    del views, _batch, loader
    # What is freed glibc keeps for the next who asks, unless told to give it back.
    ctypes.CDLL(None).malloc_trim(0)
    assert resident() - before < held / 4


def test_threads_iterate_at_once(large):
    dataset = wr.Dataset(large)
    every = dataset[:]
    loader = wr.DataLoader(dataset, 8, num_workers=2, dtype="stored")
    wrong, running = [], threading.Barrier(9)

    def iterate():
        running.wait()
        for _ in range(3):
            for at, batch in enumerate(loader):
                if not np.array_equal(batch, every[8 * at : 8 * at + 8]):
                    wrong.append(at)

    def shuffle(seed):
        own = wr.DataLoader(dataset, 8, True, seed=seed, num_workers=1, dtype="stored")
        running.wait()
        for epoch in range(3):
            if not np.array_equal(np.concatenate(list(own)), every[own.rows(epoch)]):
                wrong.append(f"seed {seed}")

    def read(seed):
        draw = random.Random(seed)
        running.wait()
        for _ in range(60):
            rows = draw.sample(range(64), 5)
            if not np.array_equal(dataset[rows], every[rows]):
                wrong.append(rows)

    threads = [threading.Thread(target=iterate) for _ in range(3)]
    threads += [threading.Thread(target=call, args=(seed,)) for call in (shuffle, read) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_batches_outlive_everything(large):
    import jax.dlpack
    import torch

    every = wr.Dataset(large)[:]
    digests, kept = [], []

    def keep(array, want):
        kept.append(array)
        digests.append(hashlib.sha256(np.ascontiguousarray(want)).digest())

    for round_ in range(4):
        dataset = wr.Dataset(large)
        loader = wr.DataLoader(dataset, 8, num_workers=2, as_="batch", dtype="stored")
        for at, batch in enumerate(loader):
            want = every[8 * at : 8 * at + 8]
            if at % 4 == 0:
                keep(np.asarray(batch)[2:6:2, :, ::7, 5:90], want[2:6:2, :, ::7, 5:90])
            elif at % 4 == 1:
                keep(torch.from_dlpack(batch)[3].movedim(0, 2), np.moveaxis(want[3], 0, 2))
            elif at % 4 == 2:
                keep(batch.memoryview(), want)
            else:
                keep(jax.dlpack.from_dlpack(batch), want)
        # An image that was read alone, too, and an iteration that is left in the middle.
        keep(dataset[round_][:, 10:], every[round_][:, 10:])
        for batch in loader:
            keep(np.asarray(batch), every[:8])
            break
        del batch, loader, dataset
        gc.collect()
    # Whatever was freed by mistake is written over now.
    for other in range(3):
        for batch in wr.DataLoader(large, 8, seed=other, num_workers=2):
            batch.fill(-1)
    found = [hashlib.sha256(np.ascontiguousarray(np.asarray(array))).digest() for array in kept]
    assert found == digests


def child(connection, pickled, inherited):
    """Reads and iterates in another process; answers with digests of what it got of each set."""
    found = []
    for sets in [pickle.loads(pickled)] + ([inherited] if inherited else []):
        for name, (dataset, loader) in sets.items():
            pixels = hashlib.sha256(dataset[:]).hexdigest()
            loader.set_epoch(1)
            found.append((name, pixels, hashlib.sha256(np.concatenate(list(loader))).hexdigest()))
    connection.send(found)
    connection.close()


# Processes take a second to start: each reads the sets of all formats.
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_of_any_kind_read_what_the_parent_has_read(cells, method):
    context = multiprocessing.get_context(method)
    sets, want, busy = {}, [], []
    for name, path in cells.items():
        dataset = wr.Dataset(path)
        loader = wr.DataLoader(dataset, 4, True, seed=5, num_workers=2)
        pixels = hashlib.sha256(dataset[:]).hexdigest()
        loader.set_epoch(1)
        want.append((name, pixels, hashlib.sha256(np.concatenate(list(loader))).hexdigest()))
        sets[name] = dataset, loader
        # Under way while the processes begin: its threads hold locks and are not in the child.
        under_way = iter(loader)
        first = next(under_way)
        busy.append((under_way, first, first.copy()))
    inherited = sets if method == "fork" else None
    processes = []
    for _ in range(3):
        mine, theirs = context.Pipe()
        process = context.Process(target=child, args=(theirs, pickle.dumps(sets), inherited))
        process.start()
        theirs.close()
        processes.append((process, mine))
    for process, mine in processes:
        assert mine.poll(HANGS), f"a process of {method} does not answer"
        assert mine.recv() == want * (2 if inherited else 1)
        process.join(HANGS)
        assert process.exitcode == 0
    # The parent is none the worse for it.
    for under_way, first, kept in busy:
        assert np.array_equal(first, kept) and len(list(under_way)) == 9


# What is called again and again: every public function of the package, in its cheap and its failing uses. The number
# is how often of a hundred thousand, ten thousand at most: those that open files or start threads are dearer. Ten
# thousand calls show a leak of 13 bytes a call, and ten times as many show one of 12.
CALLS = {
    "Dataset": (200, "wr.Dataset(path)"),
    "Dataset, no such file": (5, "wr.Dataset('/no/where')"),
    "Dataset[i]": (5, "ds[3]"),
    "Dataset[i], out of range": (1, "ds[400]"),
    "Dataset[rows]": (10, "ds[[3, 1, 4]]"),
    "Dataset.read": (5, "ds.read(2, (slice(0, 8), slice(8, 20)))"),
    "Dataset.shape": (1, "ds.image_shape(2), ds.shape, ds.ndim"),
    "Dataset.name": (1, "ds.name(2)"),
    "Dataset.metadata": (5, "ds.metadata(2)"),
    "Dataset.column": (20, "ds.column('well'), ds.column('score')"),
    "Dataset.columns": (1, "ds.columns"),
    "Dataset.dtype": (1, "ds.dtype, ds.format, ds.path, len(ds), ds.cache_report"),
    "Dataset, pickled": (200, "pickle.loads(pickle.dumps(ds))"),
    "Dataset.__arrow_c_stream__": (50, "ds.__arrow_c_stream__()"),
    "Dataset, as a table": (1000, "pa.table(ds)"),
    "Dataset.from_arrow": (200, "wr.Dataset.from_arrow(table)[0]"),
    "Dataset.from_arrow, no images": (20, "wr.Dataset.from_arrow(small)"),
    "DataLoader": (50, "wr.DataLoader(ds, 4, num_workers=0)"),
    "DataLoader, wrong choice": (50, "wr.DataLoader(ds, 4, crop=4000)"),
    "DataLoader, an epoch": (500, "for batch in loader: pass"),
    "DataLoader, an epoch with threads": (1000, "for batch in threaded: pass"),
    "DataLoader, left early": (500, "next(iter(threaded))"),
    "DataLoader, labels": (1000, "for batch in with_labels: pass"),
    "DataLoader.state_dict": (5, "loader.state_dict()"),
    "DataLoader.load_state_dict": (100, "loader.load_state_dict(state)"),
    "DataLoader.load_state_dict, wrong": (20, "loader.load_state_dict({'version': 9})"),
    "DataLoader.rows": (5, "loader.rows(3)"),
    "DataLoader.set_epoch": (1, "loader.set_epoch(3)"),
    "DataLoader.stats": (2, "loader.stats()"),
    "DataLoader.traffic": (1, "loader.traffic, loader.skipped, len(loader), loader.image_shape, repr(loader)"),
    "Batch.__dlpack__, dropped": (2, "batch_.__dlpack__(max_version=(1, 0))"),
    "Batch.__dlpack__, unversioned": (2, "batch_.__dlpack__()"),
    "Batch.__dlpack__, refused": (2, "batch_.__dlpack__(dl_device=(2, 0))"),
    "Batch, as an array": (5, "np.from_dlpack(batch_), np.asarray(batch_)"),
    "Batch.memoryview": (100, "batch_.memoryview()"),
    "Batch.toreadonly": (2, "np.asarray(batch_.toreadonly()), batch_.bits()"),
    "Batch.rows": (1, "batch_.rows, batch_.shape, batch_.nbytes, batch_.dtype, batch_.index, batch_.epoch"),
    "formats": (1, "wr.formats()"),
}  # fmt: skip

# Counts the bytes that malloc has handed out, Python's own objects among them (PYTHONMALLOC=malloc).
SCRIPT = """
import ctypes, gc, pickle, sys
import numpy as np
import wellread as wr

path, calls, part = sys.argv[1], CALLS, float(sys.argv[2])
if part == 1:
    import pyarrow as pa, pyarrow.parquet as pq

    table = pq.read_table(path)
    small = pa.table({"x": [1, 2]})
ds = wr.Dataset(path)
loader = wr.DataLoader(ds, 4, True, num_workers=0)
threaded = wr.DataLoader(ds, 4, True, num_workers=2)
with_labels = wr.DataLoader(ds, 4, columns=["well", "score"], num_workers=1)
batch_ = next(iter(wr.DataLoader(ds, 4, as_="batch", dtype="float16")))
state = loader.state_dict()

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info

def used():
    gc.collect()
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd

def run(code, times):
    for _ in range(times):
        try:
            exec(code, globals())
        except (IndexError, ValueError, wr.Error, BufferError, OSError):
            pass
    globals().pop("batch", None)

def growth(code, times):
    marks = [used()]
    for _ in range(4):
        run(code, times // 4)
        marks.append(used())
    # What is taken once, to be kept, is in one quarter; what leaks is in all of them.
    return min(after - before for before, after in zip(marks, marks[1:]))

# The smallest allocation of glibc has 32 bytes: one lost in every second of a thousand calls shows.
def allowed(times):
    return 12 * (times // 4) + 1_000

for name, (dear, text) in calls.items():
    code = compile(text, name, "exec")
    times = max(16, min(10_000, int(part * 100_000 / dear)))
    run(code, times // 8)
    grown = growth(code, times)
    # A leak grows with the calls; what the allocator keeps does not. So a call that seems to leak is measured longer.
    for _ in range(2):
        if grown < allowed(times):
            break
        times *= 4
        grown = growth(code, times)
    print(times // 4, grown, allowed(times), name, sep=chr(9), flush=True)
"""


COUNTED = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="free-threaded Python has an allocator of its own only"
)


def counted(labelled, calls, part="1", under=()):
    """The calls: how often each was made, by how many bytes memory grew, how many are allowed, and its name."""
    script = SCRIPT.replace("CALLS", repr(calls))
    done = subprocess.run(
        [*under, sys.executable, "-c", script, labelled, part], capture_output=True, text=True, timeout=3600,
        env={**os.environ, "PYTHONMALLOC": "malloc"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(lines) == len(calls)
    return [(int(times), int(grown), int(allowed), name) for times, grown, allowed, name in lines]


@COUNTED
def test_no_call_leaves_anything_behind(labelled):
    for times, grown, allowed, name in counted(labelled, CALLS):
        assert grown < allowed, f"{name}: {grown} bytes more after {times} calls"


@COUNTED
def test_a_call_that_leaves_32_bytes_every_second_time_is_found(labelled):
    leaks = "n = globals().get('n', 0) + 1; kept = n % 2 and libc.malloc(24)"
    calls = {"leaks": (50, leaks), "keeps": (50, "len(ds)")}
    found = {name: grown >= allowed for _, grown, allowed, name in counted(labelled, calls)}
    assert found == {"leaks": True, "keeps": False}


@COUNTED
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind on this machine")
def test_valgrind_finds_nothing_in_the_native_module(labelled, tmp_path):
    log = tmp_path / "valgrind.log"
    # Without pyarrow, under which everything takes minutes.
    few = {name: call for name, call in CALLS.items() if not re.search("pa[.]|table|small", call[1])}
    leak_check = ["--leak-check=full", "--show-leak-kinds=definite", "--num-callers=30"]
    counted(labelled, few, part="0", under=["valgrind", f"--log-file={log}", *leak_check])
    text = re.sub(r"(?m)^==\d+== ?", "", log.read_text())
    assert "ERROR SUMMARY" in text
    # A record is a paragraph, innermost frames first: what CPython and NumPy do when the module imports them is far
    # from it. PyO3 makes type objects once and keeps them.
    ours = [
        record
        for record in text.split("\n\n")
        if re.search(r"lib_native|_native[.]abi3|_native::", "\n".join(record.splitlines()[1:12]))
        and "create_type_object" not in record
    ]
    assert not ours, "\n\n".join(ours)
