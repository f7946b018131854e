"""Ctrl-C is answered while the package works: what was asked for takes many seconds, and is not done by then.

That is a matter of order and not of time: a script says "heard" only where the exception came before the result. It
is "ready" within its `try`, so that a machine that stops there for a while is no traceback.
"""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import wellread as wr

# Noise of 4.5 MB, which takes zlib some hundredths of a second.
NOISE = """
import sys
import numpy as np, tifffile
import wellread as wr
noise = np.random.default_rng(0).integers(0, 999, (1500, 1500), np.uint16)
tifffile.imwrite(sys.argv[1] + "/a.tif", noise, compression="zlib")
"""
TRY = """
try:
    print("ready", flush=True)
    {}
    print("done", flush=True)
except KeyboardInterrupt:
    print("heard", flush=True)
"""


# Who runs the tests in the background of a shell has had the signal ignored, which is inherited.
HEED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


def interrupted(folder, script):
    """Runs a script, sends it Ctrl-C after it said "ready", and returns the lines that it says afterwards."""
    script = HEED + script
    # The work is shared among all processors: where there are very many, it may be done before the first signal.
    for pause in (0.5, 0.1):
        process = subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True)
        with process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(pause)
            process.send_signal(signal.SIGINT)
            said = process.stdout.read().split("\n")[:-1]
        assert process.returncode == 0 or said[:1] == ["done"]
        if said[:1] != ["done"]:
            break
    return said


@pytest.mark.parametrize("workers", [0, 1])
def test_while_a_batch_is_waited_for(tmp_path, workers):
    loader = f"wr.DataLoader(sys.argv[1], 4000, rows=[0] * 4000, num_workers={workers}, resize=8)"
    assert interrupted(tmp_path, NOISE + TRY.format(f"next(iter({loader}))")) == ["heard"]


def test_while_many_images_are_read(tmp_path):
    script = NOISE + TRY.format("wr.Dataset(sys.argv[1])[[0] * 2000]")
    after = "print(wr.Dataset(sys.argv[1])[[0, 0]].shape)"
    assert interrupted(tmp_path, script + after) == ["heard", "(2, 1, 1500, 1500)"]


def test_while_one_large_image_is_read(tmp_path):
    """An OME-Zarr image of 600 chunks, all of them one file."""
    import numcodecs
    import numpy as np
    import zarr

    pieces, side = 600, 1500
    group = zarr.create_group(tmp_path / "large.zarr", zarr_format=2)
    kept = {"chunks": (side, side), "dtype": "uint16", "compressors": numcodecs.Zlib(1)}
    array = group.create_array("0", shape=(side * pieces, side), **kept)
    array[:side] = np.random.default_rng(0).integers(0, 999, (side, side), np.uint16)
    (chunk,) = (path for path in (tmp_path / "large.zarr" / "0").rglob("0*") if path.is_file())
    for piece in range(1, pieces):
        os.link(chunk, chunk.with_name(chunk.name.replace("0", str(piece), 1)))
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    scale = [{"type": "scale", "scale": [1.0, 1.0]}]
    levels = [{"path": "0", "coordinateTransformations": scale}]
    group.attrs["multiscales"] = [{"version": "0.4", "name": "large", "axes": axes, "datasets": levels}]
    script = """
        import sys
        import wellread as wr
        ds = wr.Dataset(sys.argv[1])
        """
    after = "print(ds.read(0, (slice(0, 8), slice(0, 8))).shape)"
    said = interrupted(tmp_path / "large.zarr", textwrap.dedent(script) + TRY.format("ds[0]") + after)
    assert said == ["heard", "(1, 8, 8)"]


def test_while_a_set_is_opened(parquet):
    """A stream whose producer does not answer until the exception was seen."""
    script = """
        import contextlib, os, sys, threading, time
        import pyarrow as pa, pyarrow.parquet as pq
        import wellread as wr

        table = pq.read_table(sys.argv[1])
        go, finished = threading.Event(), threading.Event()

        def batches():
            yield from table.to_batches()
            print("ready", flush=True)
            go.wait()
            finished.set()

        reader = pa.RecordBatchReader.from_batches(table.schema, batches())
        try:
            wr.Dataset.from_arrow(reader)
            print("done", flush=True)
        except KeyboardInterrupt:
            print("heard", "too late" if finished.is_set() else "in time", flush=True)
        go.set()
        print(finished.wait(600), flush=True)
        # The thread that was left ends by itself.
        def threads():
            for task in os.listdir("/proc/self/task"):
                with contextlib.suppress(OSError):
                    yield open(f"/proc/self/task/{task}/comm").read().strip()

        while "wellread" in set(threads()):
            time.sleep(0.01)
        print(len(wr.Dataset(sys.argv[1])))
        """
    assert interrupted(parquet, textwrap.dedent(script)) == ["heard in time", "True", "40"]


SILENT_SERVER = """
import http.server, re, sys, threading
import numpy as np, tifffile
import wellread as wr

file = sys.argv[1] + "/a.tif"
noise = np.random.default_rng(0).integers(0, 999, (1, 1400, 1400), np.uint16)
tifffile.imwrite(file, noise)
whole = open(file, "rb").read()
silent, asked = threading.Event(), threading.Event()


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if silent.is_set():
            if not asked.is_set():
                asked.set()
                print("ready", flush=True)
            threading.Event().wait()
        if self.path != "/a.tif":
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        first, last, part = 0, len(whole) - 1, re.fullmatch(r"bytes=(\\d*)-(\\d*)", self.headers.get("Range", ""))
        if part and part[1]:
            first, last = int(part[1]), min(last, int(part[2] or last))
        elif part:
            first = max(0, len(whole) - int(part[2]))
        self.send_response(206 if part else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(last + 1 - first))
        if part:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(whole[first : last + 1])

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/a.tif"
"""


@pytest.mark.parametrize(
    ("before", "work"),
    [
        ("", "wr.Dataset(address)"),
        ("ds = wr.Dataset(address)", "ds[0]"),
        ("loader = wr.DataLoader(address, 1, num_workers=0)", "list(loader)"),
        ("loader = wr.DataLoader(address, 1, num_workers=1)", "list(loader)"),
    ],
    ids=["opening", "an image", "a batch", "a batch of a worker"],
)
def test_while_a_server_does_not_answer(tmp_path, before, work):
    """Nothing but the exception ends it: the server never says a word once it is silent."""
    lines = ["silent.set()", "try:", f"    {work}", "    print('done', flush=True)"]
    lines += ["except KeyboardInterrupt:", "    print('heard', flush=True)"]
    script = HEED + SILENT_SERVER + "\n".join([before, *lines])
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=600)
        finally:
            process.kill()
    assert said == "heard\n"


class ClosedWithCtrlC:
    """A native iteration in whose closing Ctrl-C arrives: Python raises it once the call has returned."""

    def __init__(self, native):
        self.native = native
        self.was_closed = False

    def __getattr__(self, name):
        return getattr(self.native, name)

    def __length_hint__(self):
        return self.native.__length_hint__()

    def close(self):
        self.native.close()
        if not self.was_closed:
            self.was_closed = True
            raise KeyboardInterrupt


@pytest.mark.parametrize("taken", [1, 20])
def test_while_an_iteration_closes(parquet, monkeypatch, taken):
    """The iteration is closed again when its last name goes. That printed a traceback."""
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    loader = wr.DataLoader(parquet, 2, num_workers=2)
    iterator = iter(loader)
    native = iterator.core.native = ClosedWithCtrlC(iterator.core.native)
    for _ in range(taken):
        next(iterator)
    with pytest.raises(KeyboardInterrupt):
        iterator.core.close(ended=taken == 20)
    del iterator
    assert native.was_closed and not ignored
    assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == ((0, 2) if taken == 1 else (1, 0))
    assert len(list(loader)) == 20
