"""Peak resident memory of a peer's process."""

import resource
import sys
from pathlib import Path

# Last, as modules there are named like torch and jax.
sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "wellread"))
from _tasks.memory import resident_mb  # noqa: E402


def mb():
    """Of this process, in MB of 10^6 bytes as wellread's own; its workers' are not in it."""
    # Not `ru_maxrss` where there is anything else: what the process had that started this one is in it.
    return resident_mb(peak=True) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
