"""``python -m wellread`` becomes the command."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest


def run(*args):
    return subprocess.run(
        [sys.executable, "-m", "wellread", *map(str, args)], capture_output=True, text=True, timeout=1500
    )


def test_it_is_the_same_command(parquet, wellread):
    done = run("--json", "info", parquet)
    assert done.returncode == 0 and json.loads(done.stdout) == wellread("info", parquet)


def test_its_exit_codes_are_the_same(tmp_path):
    missing = run("info", tmp_path / "none.parquet")
    assert missing.returncode == 1 and "none.parquet" in missing.stderr
    wrong = run("info")
    assert wrong.returncode == 2 and "Usage" in wrong.stderr
    assert run("--help").returncode == 0 and run("--version").stdout.startswith("wellread ")


def test_ctrl_c_leaves_nothing_half_written(tmp_path):
    folder = tmp_path / "set"
    command = [
        sys.executable,
        "-m",
        "wellread",
        "generate",
        str(folder),
        "--images",
        "20000",
        "--size",
        "256x256",
        # All of them would need more room than some disks have.
        "--formats",
        "parquet",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    # Until there is something half written, whenever that is.
    written = 0
    while not written and process.poll() is None:
        time.sleep(0.02)
        with contextlib.suppress(OSError):
            written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130 and "interrupted" in said
    assert list(folder.rglob("*.parquet")) == []


def test_the_command_is_looked_for_where_it_may_be(tmp_path, monkeypatch):
    from wellread import _command

    for name in ("named", "wellread"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(_command.sysconfig, "get_path", lambda which: str(tmp_path / "nothing"))
    monkeypatch.setenv("WELLREAD", str(tmp_path / "named"))
    assert _command.program() == str(tmp_path / "named")
    monkeypatch.delenv("WELLREAD")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _command.program() == str(tmp_path / "wellread")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match=r"pip install ./crates/wellread-cli, or make install, in a clone"):
        _command.program()
    monkeypatch.delenv("WELLREAD_PYTHON", raising=False)
    assert _command.environment()["WELLREAD_PYTHON"] == sys.executable
    monkeypatch.setenv("WELLREAD_PYTHON", "other")
    assert _command.environment()["WELLREAD_PYTHON"] == "other"
