"""The most memory that a worker of Ray holds by itself, as Linux tells it. Ray's objects are shared, and left out."""

import contextlib
import threading
from pathlib import Path
from types import SimpleNamespace

# Looking takes a processor for milliseconds, so that no timed run has it.
EVERY_S = 0.05
# Agents read no images. What is idle may be of the job before, whose workers end a little after it.
NOT_AT_WORK = (b"ray::DashboardAgent", b"ray::RuntimeEnvAgent", b"ray::IDLE")


def held(processes=Path("/proc")):
    """Bytes of the worker at work that holds most; 0 where none is, or the system does not tell."""
    most = 0
    for folder in processes.iterdir() if processes.is_dir() else ():
        # Others end meanwhile.
        with contextlib.suppress(OSError):
            title = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            if title.startswith(b"ray::") and not title.startswith(NOT_AT_WORK):
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
