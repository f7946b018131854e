"""The way of a new user of a cluster by one page, docs/howto/ray.md: a line converts a plate, two nodes train on it.
Both nodes of torchrun are processes of this machine.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import wellread as wr
from several_ranks import torchrun

pytest.importorskip("ray")
ROOT = Path(__file__).resolve().parents[3]
ROWS = list(range(40))
# Each as the page has it.
CONVERT = "wellread convert plate-tiff plate.parquet --on ray\n"
TRAIN = "examples/distributed/train_torchrun.py plate.parquet --checkpoint run.pt"


def test_a_plate_is_converted_in_one_line_and_two_nodes_train_on_it(cluster, cells, monkeypatch, tmp_path):
    page = (ROOT / "docs" / "howto" / "ray.md").read_text(encoding="utf-8")
    assert CONVERT in page and TRAIN in page and "torchrun --nnodes 2 --nproc-per-node 2 " in page
    shutil.copytree(cells["tiff"], tmp_path / "plate-tiff")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WELLREAD_PYTHON", sys.executable)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    _, *words = shlex.split(CONVERT)
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    subprocess.run([binary, "--quiet", *words], check=True, timeout=600)
    assert len(list((tmp_path / "plate.parquet").glob("part-*.parquet"))) == 3
    assert len(wr.Dataset("plate.parquet")) == 40
    monkeypatch.delenv("RAY_ADDRESS")
    script, *options = shlex.split(TRAIN)
    logs = tmp_path / "logs"
    logs.mkdir()
    ranks = torchrun(
        logs, 2, 2, ROOT / script, *(tmp_path / word if word[0] != "-" else word for word in options), "--epochs", 1
    )  # fmt: skip
    seen = [rank["0"] for rank in ranks]
    assert [len(rows) for rows in seen] == [10] * 4
    assert [sorted(seen[0] + seen[1]), sorted(seen[2] + seen[3])] == [ROWS[:20], ROWS[20:]]
    assert (tmp_path / "run.pt").stat().st_size > 0
