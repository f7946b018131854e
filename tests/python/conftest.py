"""Fixtures: the wellread binary under test, and sets that it generates."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def wellread():
    """Run the binary; return its JSON document."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    assert binary, "set WELLREAD to the binary under test"

    def run(*args, code=0):
        done = subprocess.run([binary, "--json", *map(str, args)], capture_output=True, text=True, timeout=600)
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


@pytest.fixture(
    scope="session",
    params=[
        ("uint8", 1, 1, 1),
        ("uint16", 3, 1, 1),
        ("uint16", 2, 4, 2),
        ("float32", 1, 3, 1),
    ],
    ids=lambda p: f"{p[0]}-c{p[1]}z{p[2]}t{p[3]}",
)
def generated(request, wellread, tmp_path_factory):
    """A set of cell images in all formats that can hold it, with its expected checksums by name."""
    dtype, channels, depth, time = request.param
    folder = tmp_path_factory.mktemp("set")
    document = wellread(
        "generate", folder, "--images", 5, "--size", "61x83", "--dtype", dtype,
        "--channels", channels, "--depth", depth, "--time", time,
    )  # fmt: skip
    expected = json.loads((folder / "expected.json").read_text())["images"]
    return folder, {e["name"]: e for e in expected}, {w["format"]: w for w in document["written"]}
