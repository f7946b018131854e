"""Fixtures: the wellread binary under test, and sets that it generates."""

import csv
import gc
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import scheduling
from generated_sets import KINDS, generate, kind_name

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
import chromium  # noqa: E402

# What a launcher of jobs, a hook of git, a terminal or a task that these tests run in has set for its own programs.
NOT_OURS = re.compile(
    "SLURM_.*|TORCHELASTIC_.*|(LOCAL_|GROUP_|NODE_)?RANK|(LOCAL_|GROUP_)?WORLD_SIZE|MASTER_(ADDR|PORT)"
    "|GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX)|CLICOLOR_FORCE|FORCE_COLOR|WELLREAD_(PHASES|TASK|PYTHON)"
)


def pytest_configure():
    """Leave the processors to other tests."""
    # Threads of OpenMP sleep while they wait for each other.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Processes of a fork server need not import it each.
    multiprocessing.set_forkserver_preload(["torch"])


def pytest_collection_modifyitems(items):
    """Long files first."""
    scheduling.long_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files by `--dist loadfile`, but those of the cluster together."""
    return scheduling.by_unit(config, log) if config.option.dist == "loadfile" else None


def pytest_collection_finish():
    """Tell Python's collector that torch, JAX and Ray stay: it would go through their objects many times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def environment():
    """Nothing of who runs the tests: neither their settings of git, such as signed commits, nor their job's ranks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for name in filter(NOT_OURS.fullmatch, list(os.environ)):
            patch.delenv(name)
        if not os.environ.get("WELLREAD_DUCKDB"):
            patch.setenv("WELLREAD_DUCKDB", sys.executable)
        yield


@pytest.fixture(scope="session")
def wellread():
    """Run the binary; return its JSON document."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    assert binary, "set WELLREAD to the binary under test"

    def run(*args, code=0):
        # For what hangs: some runs take an idle machine minutes.
        done = subprocess.run([binary, "--json", *map(str, args)], capture_output=True, text=True, timeout=3600)
        assert done.returncode == code, f"{args}: exit {done.returncode}\n{done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else done.stderr

    return run


@pytest.fixture(scope="session")
def shared():
    """Real images beside the clone, where a development machine has them."""
    root = os.environ.get("WELLREAD_SHARED")
    root = Path(root) if root else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not root.is_dir():
        pytest.skip("no shared/data folder on this machine")
    return root


@pytest.fixture(scope="session", params=KINDS, ids=kind_name)
def generated(request, wellread, tmp_path_factory):
    """A set of cell images in all formats that can hold it, with its expected checksums by name."""
    return generate(wellread, tmp_path_factory.mktemp("set"), request.param)


@pytest.fixture(scope="session")
def tasks(tmp_path_factory):
    """Runs processes of `wellread tasks`' adapters."""
    from tasks_process import Tasks

    tasks = Tasks(tmp_path_factory.mktemp("tasks"))
    yield tasks
    tasks.close()


@pytest.fixture(scope="session")
def cells(wellread, tmp_path_factory):
    """Forty small uint16 cell images of two channels, in every format of this build: their paths by format."""
    folder = tmp_path_factory.mktemp("cells")
    document = wellread("generate", folder, "--images", 40, "--size", "48x56", "--dtype", "uint16", "--channels", 2)
    return {written["format"]: written["path"] for written in document["written"] if not written["error"]}


@pytest.fixture(scope="session")
def parquet(cells):
    """The same in one Parquet file."""
    return cells["parquet"]


@pytest.fixture(scope="session")
def labelled(parquet, tmp_path_factory):
    """The same with columns beside the images: a class, a well, a score with gaps, a truth value and a day."""
    import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(parquet)
    n = len(table)
    beside = {
        "class": pa.array([i % 3 for i in range(n)], pa.int64()),
        "well": [f"A{i // 10:02}" for i in range(n)],
        "score": pa.array([None if i == 5 else i / 8 for i in range(n)], pa.float32()),
        "count": pa.array([None if i == 7 else i for i in range(n)], pa.int32()),
        "live": [i % 2 == 0 for i in range(n)],
        "day": [datetime.date(2026, 1, 1 + i % 28) for i in range(n)],
    }
    for name, values in beside.items():
        table = table.append_column(name, values if isinstance(values, pa.Array) else pa.array(values))
    path = tmp_path_factory.mktemp("labelled") / "cells.parquet"
    pq.write_table(table, path)
    return str(path)


@pytest.fixture
def bench(wellread, tmp_path):
    """Run small benchmarks; return the rows of each table, the summary and the results folder."""
    import pyarrow.parquet as pq
    from bench_worker import SMALL

    def run(what, *args, code=0):
        out = tmp_path / "results"
        python = ["--python", sys.executable] if "--framework" in args else []
        # What a test says itself comes in place of what is usual. Images of its own are not generated.
        own = {*args, *(("--images", "--size") if "--input" in args else ())}
        small = [word for pair in zip(SMALL[::2], SMALL[1::2], strict=True) if pair[0] not in own for word in pair]
        said = wellread("bench", *what, *small, *python, "--out", out, *args, code=code)
        if code:
            return said
        tables = {name: pq.read_table(out / f"{name}.parquet").to_pylist() for name in what}
        return tables, json.loads((out / "summary.json").read_text()), out

    return run


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Weights and ONNX files, made once."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def infer(wellread, tmp_path, models):
    """Run a benchmark; return its rows, from the table and, with raw samples, from the JSON file."""

    def run(*args, code=0):
        common = ["--python", sys.executable, "--model-dir", models]
        if "--output-dir" not in args:
            common += ["--output-dir", tmp_path / "raw"]
        said = wellread("infer", *common, *args, code=code)
        if code:
            return said
        with open(said["csv"], newline="") as file:
            rows = list(csv.DictReader(file))
        return rows, json.loads(open(said["samples"]).read()), said

    return run


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """Put a module of this text before every other of its name, as the worker sees it."""

    def write(name, text):
        folder = tmp_path / "stubs"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))

    return write


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium of the system."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = chromium.program()
    if not path:
        pytest.skip("no Chromium on this machine: install chromium, or name one in WELLREAD_BROWSER")
    with playwright.sync_playwright() as driver:
        browser = chromium.launch(driver, path)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The documentation as a site, and what mdbook said."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    mdbook = shutil.which("mdbook") or shutil.which("mdbook", path=cache / "wellread/mdbook/bin")
    if not mdbook:
        pytest.skip("no mdbook here: `make mdbook` gets it")
    folder = tmp_path_factory.mktemp("site")
    docs = Path(__file__).resolve().parents[2] / "docs"
    done = subprocess.run([mdbook, "build", docs, "--dest-dir", folder], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr + done.stdout
    return folder, done.stderr + done.stdout
