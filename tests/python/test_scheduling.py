"""How tests are shared among processes."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import scheduling

HERE = Path(__file__).parent


def test_long_files_are_there_and_begun_first():
    assert [name for name in scheduling.LONG if not (HERE / name).exists()] == []
    names = ("test_a.py::one", "test_inference.py::two", "cluster/test_ray_data.py::three", "test_a.py::four")
    items = [SimpleNamespace(nodeid=f"tests/python/{name}") for name in names]
    scheduling.long_first(items)
    assert [item.nodeid.split("::")[1] for item in items] == ["three", "two", "one", "four"]
    # xdist would sort files by the number of their tests.
    assert "--dist loadfile --no-loadscope-reorder" in (HERE.parents[1] / "Makefile").read_text()


class Process:
    """A process that is told which tests to run, by their places in the list."""

    shutting_down = False

    def __init__(self, name):
        self.gateway, self.told = SimpleNamespace(id=name), []

    def send_runtest_some(self, places):
        self.told += places

    def shutdown(self):
        pass


def test_files_that_share_a_cluster_are_run_by_one_process(pytestconfig):
    pytest.importorskip("xdist")
    files = (
        "cluster/test_ray_a.py", "test_long.py", "test_c.py", "cluster/test_ray_b.py", "test_d.py", "test_e.py",
    )  # fmt: skip
    tests = [f"tests/python/{file}::test_{i}[a::b]" for file in files for i in range(3)]
    given = {"tx": ["popen", "popen"], "dist": "loadfile"}
    config = SimpleNamespace(option=SimpleNamespace(loadscopereorder=False, dist="loadfile"), getvalue=given.get)
    scheduler = pytestconfig.hook.pytest_xdist_make_scheduler(config=config, log=None)
    first, second = processes = Process("first"), Process("second")
    for process in processes:
        scheduler.add_node(process)
        scheduler.add_node_collection(process, tests)
    scheduler.schedule()
    for process in processes:
        for place in list(process.told):
            scheduler.mark_test_complete(process, place)
    assert [first.told[:6], second.told[:3]] == [[0, 1, 2, 9, 10, 11], [3, 4, 5]]
    # Every test once, each file by one process.
    assert sorted(first.told + second.told)[:12] == list(range(12))
