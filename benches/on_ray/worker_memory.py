"""The most memory that a worker of Ray holds by itself, as Linux tells it. Ray's objects are shared, and left out."""

import contextlib
import threading
from pathlib import Path
from types import SimpleNamespace

# Looking takes a processor for milliseconds, so that no timed run has it.
EVERY_S = 0.05
# They read no images.
AGENTS = (b"ray::DashboardAgent", b"ray::RuntimeEnvAgent")


def held(processes=Path("/proc")):
    """Bytes of the worker that holds most; 0 where none runs, or the system does not tell."""
    most = 0
    for folder in processes.iterdir() if processes.is_dir() else ():
        # Others end meanwhile.
        with contextlib.suppress(OSError):
            title = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            if title.startswith(b"ray::") and not title.startswith(AGENTS):
                lines = (folder / "status").read_text().splitlines()
                most = max(most, *(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:")), 0)
    return most


@contextlib.contextmanager
def watched():
    """Looks while the block runs; `most` has the bytes then."""
    found, ended = SimpleNamespace(most=0), threading.Event()

    def look():
        while not ended.wait(EVERY_S):
            found.most = max(found.most, held())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
