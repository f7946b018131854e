"""How the Python of a command on a cluster ends with the command. Ray is a stand-in here, whose tasks do not end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import ray_cluster

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
RAY = """
    import os
    import pathlib
    import time

    FOLDER = pathlib.Path(os.environ["RAY_OF_TEST"])

    class exceptions:
        class RayError(Exception):
            pass

    class Task:
        def options(self, **_):
            return self

        def remote(self, work, job, *shared):
            # What it writes is there, and nobody is told.
            work((*shared, *job))
            return object()

    def is_initialized():
        return True

    def nodes():
        return [{"Alive": True, "NodeID": "a", "Resources": {"CPU": 1}}]

    def cluster_resources():
        return {"CPU": 1}

    def put(what):
        return what

    def remote(function):
        return Task()

    def wait(references, num_returns, timeout):
        if not (FOLDER / "waits").exists():
            (FOLDER / "begun").write_text(str(os.getpid()))
            (FOLDER / "begun").rename(FOLDER / "waits")
        time.sleep(0.05)
        return [], references

    def cancel(reference, force):
        (FOLDER / "ending").touch()
        time.sleep(float(os.environ.get("CANCEL_SECONDS", "0")))
"""
# As the command starts it.
CODE = """
    import signal, sys
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from wellread.ray.__main__ import main
    sys.exit(main())
"""


@pytest.fixture
def environment(tmp_path):
    """The environment of a command that finds the stand-in, and the folder of its files."""
    modules = tmp_path / "modules" / "ray"
    modules.mkdir(parents=True)
    (modules / "__init__.py").write_text(textwrap.dedent(RAY))
    paths = [str(modules.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "WELLREAD_PYTHON": sys.executable,
        "RAY_OF_TEST": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


def until(file, process):
    """Waits for a file of a process."""
    while not file.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def lives(pid):
    """Whether a process runs. One that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def converting(parquet, environment, folder, *words):
    """A conversion whose tasks wait, the process of its Python, and the folder of its target."""
    out = folder / "out"
    out.mkdir()
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    command = [binary, "--quiet", "convert", parquet, out / "set", "--format", "tiff", "--on", "ray", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    until(folder / "waits", process)
    assert ray_cluster.hidden(out), "a part is written by now"
    return process, int((folder / "waits").read_text()), out


@pytest.mark.parametrize("words", [[], ["--resume"]], ids=["removed", "kept"])
def test_an_interrupted_command_ends_after_its_python(parquet, environment, tmp_path, words):
    process, pid, out = converting(parquet, environment, tmp_path, *words)
    with process:
        process.send_signal(signal.SIGINT)
        process.wait(600)
        is_alive, left = lives(pid), [path.name for path in out.iterdir()]
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert not is_alive and left == ([".wellread-resume-set"] if words else [])
    assert "the tasks on the cluster are being ended" in said
    assert "Traceback" not in said and "error" not in said, said


def test_a_python_whose_command_was_killed_ends_and_says_nothing(parquet, environment, tmp_path):
    process, pid, out = converting(parquet, environment, tmp_path)
    with process:
        process.kill()
        # At its end once the Python has closed it, too.
        said = process.stderr.read()
    deadline = time.monotonic() + 600
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not lives(pid) and list(out.iterdir()) == [] and said == ""


def test_a_second_request_does_not_wait(parquet, environment, tmp_path):
    process, pid, _ = converting(parquet, {**environment, "CANCEL_SECONDS": "3600"}, tmp_path)
    with process:
        process.send_signal(signal.SIGINT)
        until(tmp_path / "ending", process)
        # What comes within a second of the first is of the same request.
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        process.wait(600)
        assert process.returncode == 130 and not lives(pid)


def test_a_python_that_nobody_reads_ends_and_says_nothing(parquet, environment):
    command = [sys.executable, "-c", textwrap.dedent(CODE)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        process.stdout.close()
        sets = [{"path": parquet, "options": {}}]
        request = {"command": "checksum", "sets": sets, "address": None, "resume": False}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        # Its stdin stays open.
        process.wait(600)
        assert (process.returncode, process.stderr.read()) == (130, "")
