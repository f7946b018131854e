"""``python -m wellread`` is the command."""

import json
import os
import signal
import subprocess
import sys
import time


def run(*args):
    return subprocess.run(
        [sys.executable, "-m", "wellread", *map(str, args)], capture_output=True, text=True, timeout=300
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
    out = tmp_path / "out.parquet"
    command = [
        sys.executable,
        "-m",
        "wellread",
        "generate",
        str(tmp_path / "set"),
        "--images",
        "20000",
        "--size",
        "256x256",
        # All of them would need more room than some disks have.
        "--formats",
        "parquet",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    while not (tmp_path / "set").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert "interrupted" in process.stderr.read() and not out.exists()
