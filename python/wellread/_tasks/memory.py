"""Memory of this process and its children, as the kernel counts it, in MB of 10^6 bytes. None where there is no
/proc."""

from __future__ import annotations

import os

_MB = 1_000_000


def resident_mb(peak: bool = False) -> float | None:
    """Resident memory of this process in MB: now, or the most since it began."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 / _MB for line in status if line.startswith(wanted))
    except (OSError, StopIteration):
        return None


def proportional_mb(root: int | None = None) -> float | None:
    """Memory of a process (this one by default) and all below it in MB, pages of several counted once (PSS).

    Takes milliseconds: the kernel walks all pages.
    """
    total, waiting = 0, [root or os.getpid()]
    while waiting:
        pid = waiting.pop()
        try:
            with open(f"/proc/{pid}/smaps_rollup") as rollup:
                total += next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:"))
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as children:
                    waiting.extend(map(int, children.read().split()))
        except (OSError, StopIteration):
            # A child that has just ended; the first is there, unless there is no /proc or it ended too.
            continue
    return total / _MB if total else None
