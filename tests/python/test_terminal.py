"""The output of a running benchmark: progress and figures so far in a terminal, plain text in a pipe."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")

COLUMNS = 100
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_lines(written):
    """The drawings in a terminal, one after the other."""
    return "\n".join(CONTROL.split(written))


@pytest.fixture
def command(tmp_path):
    """A benchmark that is long enough to be looked at; its paths are short, as they are printed."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    assert binary, "set WELLREAD to the binary under test"
    arguments = (
        "bench dataset --images 32 --size 64x64 --formats parquet,tiff --repeats 2 --samples 1000 --out results"
    )
    environment = {**os.environ, "TERM": "xterm-256color"}
    return {"args": [binary, *arguments.split()], "cwd": tmp_path, "env": environment}


def in_terminal(command, columns, until=None):
    """Runs it with a pseudo terminal for all three streams; its exit code, and everything it wrote. Ctrl-C ends it
    once what it wrote has the pattern `until`."""
    import fcntl
    import pty
    import select
    import struct
    import termios

    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(**command, stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    # Long enough for a machine that is busy with other things.
    written, end = [], time.monotonic() + 1500
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                part = os.read(ours, 65536)
            except OSError:
                # Linux says so when nobody holds the other side any more.
                break
            if not part:
                break
            written.append(part)
            if until and re.search(until, on_lines(b"".join(written).decode(errors="ignore"))):
                process.send_signal(signal.SIGINT)
                until = None
        return process.wait(300), b"".join(written).decode()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)


def test_a_terminal_shows_progress_figures_so_far_and_a_table_that_fits(command):
    code, written = in_terminal(command, COLUMNS)
    assert code == 0, written[-2000:]
    *shown, final = CONTROL.split(written)
    shown = "\n".join(shown)
    # The bar of the benchmark, how long still, and below it the figures so far.
    assert re.search(r"\bdataset +\S+ +\d+/\d+ \(.* left\)", shown), shown[-2000:]
    assert re.search(r"(parquet|tiff) .*\(\d runs?\)", shown) and "best so far" in shown, shown[-2000:]
    # Nothing of them is left when it has ended.
    assert "left)" not in final and "best so far" not in final
    lines = final.replace("\r", "").splitlines()
    for format in ("parquet", "tiff"):
        assert any(line.strip().startswith(format) and "random" in line for line in lines), final
    assert lines[-1] == "Report: results/report.html", final
    wide = [line for line in lines if len(line) > COLUMNS]
    assert not wide, "\n".join(wide)


# The time left beside the steps of a benchmark, once one is done.
LEFT = r"\bdataset +\S+ +[1-9]\d*/\d+ \((\d+)([smhdwy]) left\)"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_557_600}


def test_the_time_left_is_no_more_than_the_time_budget(command):
    """The bar waits for the rounds that fit into ten minutes, and not for all."""
    command["args"][command["args"].index("--repeats") + 1] = "100000"
    command["args"] += ["--time-budget", "600"]
    code, written = in_terminal(command, COLUMNS, until=LEFT)
    assert code == 130, written[-2000:]
    shown = re.findall(LEFT, on_lines(written))
    assert shown, written[-2000:]
    assert all(int(number) * UNITS[unit] <= 600 for number, unit in shown), shown


def test_sentences_are_broken_for_a_narrow_terminal(command):
    code, written = in_terminal(command, 72)
    assert code == 0, written[-2000:]
    final = CONTROL.split(written)[-1].replace("\r", "")
    said = next(line for line in final.splitlines() if line.startswith("Measured on "))
    assert len(said) <= 72 and "Every figure is a median" in " ".join(final.split()), final


def test_a_pipe_gets_plain_text(command):
    done = subprocess.run(**command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr
    assert "parquet" in done.stdout and "Report: results/report.html" in done.stdout
    # A sentence is a line: what reads it breaks it, or does not.
    assert any(line.startswith("Measured on ") and line.endswith(".") for line in done.stdout.splitlines())
    # A line per phase tells how far it is; what only a terminal shows is not there.
    phases = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert len(phases) == 2 and phases[0].startswith("prepared 32 "), done.stderr
    assert re.fullmatch(r"dataset: \d( of 2)? rounds? of \d+ configurations? in [\d.]+ (s|minutes).*", phases[1]), (
        done.stderr
    )
    for stream in (done.stdout, done.stderr):
        assert "\r" not in stream and "\x1b" not in stream
        assert "left)" not in stream and "best so far" not in stream, stream
