"""Ray Train on a real cluster: examples/distributed/train_ray.py has ranks on several nodes."""

import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest
import ray_cluster
from several_ranks import run_all

ray = pytest.importorskip("ray")
if importlib.util.find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)

SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "distributed" / "train_ray.py"
ROWS = list(range(40))


@pytest.fixture
def two_hosts(cluster):
    """Two more nodes with room for two ranks each, which alone have free processors. Ray Train tells nodes apart by
    their addresses, and the other nodes of this machine have the same one."""
    from wellread.ray import _cluster

    others = _cluster.alive(ray)
    room = ray_cluster.NODE | {"num_cpus": 2}
    added, busy = [], []
    try:
        added += [cluster.add_node(**room, node_ip_address=f"127.0.0.{number}") for number in (2, 3)]
        ray_cluster.wait_for(5)
        busy += ray_cluster.occupy(others)
        yield cluster
    finally:
        for one in busy:
            ray.kill(one)
        for node in added:
            cluster.remove_node(node)
        ray_cluster.wait_for(3)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one address of their own")
def test_ranks_are_on_two_nodes_each_of_which_has_its_own_part(two_hosts, parquet, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    # From a folder that ranks do not run in.
    path = os.path.relpath(parquet, tmp_path)
    command = [sys.executable, SCRIPT, path, "--workers", 2, "--cpus-per-worker", 1, "--written-rows", "log"]
    (said,) = run_all([command], tmp_path, RAY_ADDRESS=two_hosts.address)
    assert re.search(r"loss \d", said), said
    seen = [json.loads((log / f"{rank}.json").read_text()) for rank in range(2)]
    for epoch in ("0", "1"):
        # Neighbouring rows: two ranks of one node would share them all.
        assert [sorted(rank[epoch]) for rank in seen] == [ROWS[:20], ROWS[20:]]
