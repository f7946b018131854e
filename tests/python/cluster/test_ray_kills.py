"""The campaign of kills on a cluster (fuzz/ray_kills.py) in small, and what its seeds choose."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest
import ray_cluster

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def kills():
    path = Path(__file__).parents[3] / "fuzz" / "ray_kills.py"
    spec = importlib.util.spec_from_file_location("ray_kills", path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module.
    sys.modules["ray_kills"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["ray_kills"]


def test_a_seed_chooses_the_same_each_time_and_leaves_work_for_after_the_kill(kills):
    for command in kills.COMMANDS:
        chosen = [kills.moment(command, seed, 3) for seed in range(200)]
        assert chosen == [kills.moment(command, seed, 3) for seed in range(200)]
        assert {one.node for one in chosen} == {0, 1, 2}
        moments = {one.at for one in chosen}
        assert len(moments) > 1 and min(moments) <= 1 and all(one.at < one.of for one in chosen)
    # Each of four actors has a part in work, and one more is left to begin.
    assert max(kills.moment("embed", seed, 3).at for seed in range(200)) < kills.PARTS - 4


def test_what_differs_is_said(kills):
    assert kills.difference({"a": 1}, {"a": 1}) is None
    assert kills.difference({"a": 1, "b": 2}, {"a": 2, "b": 2}) == "1 of 2 differ: a"
    assert kills.difference(b"a", b"b") == "they differ"
    found = {"command": "stats", "seed": 3, "at": 7, "of": 60, "node": 1, "killed": 1, "wrong": None}
    assert kills.line(found) == "stats seed 3: node 1 killed after 7 of 60 images: the same as one machine"
    assert kills.line({**found, "wrong": "they differ"}).endswith("WRONG: they differ")


def test_a_node_that_is_killed_and_a_driver_change_nothing(kills, cluster, tmp_path):
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    campaign = kills.Campaign(cluster, ray_cluster.NODE, tmp_path, binary, nodes=1)
    campaign.prepare()
    try:
        for command in ("verify", "stats", "resume"):
            found = campaign.seed(command, 1, 900)
            assert found["wrong"] is None and (found["killed"] == 1 or command == "resume"), kills.line(found)
    finally:
        for _ in list(campaign.nodes):
            campaign.kill(0)
        ray_cluster.wait_for(3)
