"""How a loader is run: one loop, clock and check for all, in a process of its own.

    python runs.py NAME FOLDER [--batch 16] [--threads 2] [--later 3] [--seed 0] [--checked]

Inside of the clock: opening (in the first epoch), reading, decoding, scaling, putting batches together, delivery to
the process that iterates, and, in the first epoch, starting workers. Outside: importing libraries, the order of the
rows, the comparison of pixels, and what a virtual machine's host takes to find memory.
"""

import argparse
import importlib
import importlib.util
import json
import os
import random
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import checks
import numpy as np
import torch
from peers import FOLDER, LOADERS, WELLREAD, Own

# Last, as modules there are named like torch and jax.
sys.path.append(str(FOLDER.parent))
from _tasks.memory import proportional_mb, resident_mb  # noqa: E402


@dataclass(frozen=True)
class Task:
    """What a process is to do."""

    name: str
    """The loader: a key of `LOADERS`, or `wellread:FILE`, with `,kept` where images are kept from epoch to epoch."""
    folder: str
    batch: int
    threads: int
    later: int
    """Epochs after the first."""
    seed: int
    orders: tuple
    """The rows of each epoch, in order; wellread's own, which must be these."""
    checked: bool = False
    """Compare every batch of every epoch, whatever it costs: such a run tells no times."""

    def about(self):
        return json.loads((Path(self.folder) / "about.json").read_text())

    def path(self, name):
        return str(Path(self.folder) / name)

    def batches(self, e):
        """The rows of each batch of an epoch."""
        rows = self.orders[e]
        return [rows[at : at + self.batch] for at in range(0, len(rows), self.batch)]

    def scale(self):
        """The factor of stored pixels."""
        return np.float32(1 / np.iinfo(self.about()["dtype"]).max)


def loader_of(name):
    return WELLREAD if name.startswith("wellread:") else LOADERS[name]


def measure(task):
    """Runs the epochs of a task in this process: their seconds, and what was found wrong with pixels."""
    loader = loader_of(task.name)
    torch.set_num_threads(task.threads)
    # As many open files as the system allows, for all alike.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for module in loader.imports:
        importlib.import_module(module)
    if "pyarrow" in sys.modules:
        import pyarrow

        pyarrow.set_cpu_count(task.threads)
        pyarrow.set_io_thread_count(task.threads)
        # Which it imports at the first conversion, where it is there.
        if importlib.util.find_spec("pandas"):
            importlib.import_module("pandas")
    expected = np.load(task.path("checksums.npy")).tolist()
    drawn = random.Random(f"{task.name} {task.seed}")
    find_memory()
    before = memory()
    opened = time.perf_counter()
    source = loader.make(task, task.threads if loader.workers else 0)
    open_s = time.perf_counter() - opened
    epochs, first_batch_s, looked_at = [], None, 0
    for e in range(1 + task.later):
        rows, parts = task.orders[e], task.batches(e)
        # One batch of each timed epoch, drawn at random, is kept and compared when the clock stands.
        pick, kept, count, found = drawn.randrange(len(parts)), None, 0, []
        begin = time.perf_counter()
        for k, batch in enumerate(source.epoch(e)):
            if first_batch_s is None:
                first_batch_s = open_s + time.perf_counter() - begin
            count += len(batch)
            if task.checked:
                found.append((k, checks.of_batch(batch.numpy(), task.about()["dtype"])))
            elif k == pick:
                kept = batch
        seconds = time.perf_counter() - begin
        del batch
        epochs.append(seconds + (open_s if e == 0 else 0))
        if kept is not None:
            found.append((pick, checks.of_batch(kept.numpy(), task.about()["dtype"])))
            kept = None
        looked_at += sum(len(sums) for _, sums in found)
        what = wrong_with(source, e, task, parts, (count, found), expected)
        if what:
            raise ValueError(f"epoch {e + 1}: {what}")
    # The peak of this process, or what it and its workers have at the end, where that is more.
    more = max(after - at_first for after, at_first in zip(memory(peak=True), before, strict=True))
    return {"open_s": open_s, "first_batch_s": first_batch_s, "epochs_s": epochs, "images": len(rows),
            "compared": looked_at, "memory_mb": more}  # fmt: skip


def find_memory(mb=1536):
    """Has the host of a virtual machine find memory before the clock starts: a process touches so much and ends.

    Where free memory has gone back to the host, a page's first use costs 30 times a later one, for any loader."""
    touch = (
        "import mmap; n = %d << 20; m = mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS);"
        "m.madvise(mmap.MADV_HUGEPAGE); [m.__setitem__(at, 1) for at in range(0, n, 4096)]"
    )
    subprocess.run([sys.executable, "-S", "-c", touch % mb], check=True)


def memory(peak=False):
    """MB: of this process alone, and of all, pages that several share counted once."""
    return resident_mb(peak) or 0.0, proportional_mb() or 0.0


def wrong_with(source, e, task, parts, delivered, expected):
    """The fault of what an epoch delivered; None where there is none."""
    count, found = delivered
    rows = task.orders[e]
    if count != len(rows):
        return f"{count} images of {len(rows)}"
    if isinstance(source, Own) and list(source.loader.rows(e)) != list(rows):
        return "wellread's order is another one than its peers were given"
    if getattr(source, "own_order", False):
        # Which rows a batch has is not known; that all came is known of runs that compare them all.
        sums = [one for _, sums in found for one in sums]
        if task.checked:
            return checks.wrong(sums, rows, expected)
        return None if set(sums) <= set(expected) else "images that are not of the set"
    if task.checked and len(found) != len(parts):
        return f"{len(found)} batches of {len(parts)}"
    return next(filter(None, (checks.wrong(sums, parts[k], expected) for k, sums in found)), None)


def orders_of(folder, file, batch, epochs, seed):
    """The orders in which wellread delivers a set: those that all are given."""
    import wellread as package

    loader = package.DataLoader(str(Path(folder) / file), batch_size=batch, shuffle=True, seed=seed, shard=False)
    return tuple([int(row) for row in loader.rows(e)] for e in range(epochs))


def serve(pipe, call, *arguments):
    """In a process of its own: sends what the call returns, or what went wrong."""
    try:
        answer = call(*arguments)
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    pipe.send(answer)
    pipe.close()
    # What a library has begun in its threads is not waited for; workers are torch's, and end with their pipe.
    sys.stdout.flush()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("name", help=f"{', '.join(LOADERS)}, or wellread:FILE[,kept]; - reads a task as JSON")
    ap.add_argument("folder", type=Path, nargs="?")
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--later", type=int, default=3)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--checked", action="store_true", help="compare every batch; times are of no use then")
    a = ap.parse_args()
    if a.name == "-":
        task = Task(**json.load(sys.stdin))
    else:
        about = json.loads((a.folder / "about.json").read_text())
        orders = orders_of(a.folder, about["whole"], a.batch, 1 + a.later, a.seed)
        task = Task(a.name, str(a.folder), a.batch, a.threads, a.later, a.seed, orders, a.checked)
    print(json.dumps({"task": {**asdict(task), "orders": None}, **measure(task)}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
