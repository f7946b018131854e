"""Tests of memory and threads: what this process holds, and processes of their own where nothing else takes any."""

import contextlib
import gc
import multiprocessing
import os
import re
from pathlib import Path

# Seconds after which a process hangs: one on a machine at a fifth of its speed does not.
HANGS = 600


def resident():
    """Bytes of memory that this process holds."""
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def peak():
    """The most bytes of memory that this process has held."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))


def loader_threads():
    """Threads of loaders, by number: other libraries of this process begin and end threads as they like."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            if re.fullmatch(r"wellread-(\d+|ahead|preload)", (task / "comm").read_text().strip()):
                found.add(task.name)
    return found


def run_alone(call, *args):
    """Calls a module's function in a new process, which must end well."""
    process = multiprocessing.get_context("spawn").Process(target=call, args=args)
    process.start()
    process.join(HANGS)
    process.kill()
    process.join()
    assert process.exitcode == 0, "what it says stands in stderr"
