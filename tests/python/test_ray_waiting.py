"""Tasks that no node of a cluster can run: what a program says while it waits. Ray is a stand-in here."""

import types

import pytest
from wellread.ray import _cluster


class Ray:
    """Ray, as far as tasks need it. No task ends before `waits` looks; a node has processors from the last one on."""

    def __init__(self, processors, waits):
        self.processors, self.waits, self.looks = processors, waits, 0
        self.exceptions = types.SimpleNamespace(RayError=RuntimeError)

    def remote(self, function):
        task = types.SimpleNamespace(remote=lambda work, job: (work, job))
        return types.SimpleNamespace(options=lambda **choices: task)

    def cluster_resources(self):
        return {}

    def nodes(self):
        return [
            {"Alive": True, "Resources": {"CPU": self.processors} if self.processors else {}},
            {"Alive": False, "Resources": {"CPU": 64}},
        ]

    def wait(self, references, num_returns, timeout):
        self.looks += 1
        return ([], references) if self.looks <= self.waits else (references[:1], references[1:])

    def get(self, reference):
        work, job = reference
        result, images = work(job)
        return _cluster.Answer(result, None, "node", "host", images, 1.0)

    def cancel(self, reference, force):
        raise AssertionError("no task is given up")


def double(job):
    return 2 * job, 1


def results(processors, waits, num_cpus=1):
    ray, summary = Ray(processors, waits), _cluster.Summary()
    return list(_cluster.run(ray, double, [1, 2, 3], summary=summary, num_cpus=num_cpus))


@pytest.mark.parametrize(
    ("processors", "num_cpus", "has"), [(0, 1, "no node has any"), (2, 4, "the largest node has 2")]
)
def test_a_cluster_without_processors_is_named_once_and_waited_for(monkeypatch, capsys, processors, num_cpus, has):
    monkeypatch.setattr(_cluster, "WAIT_SECONDS", 0)
    assert results(processors, 5, num_cpus) == [2, 4, 6]
    said = capsys.readouterr()
    expected = f"note: waiting for a node of the cluster with {num_cpus} free processors or more: {has}\n"
    assert (said.out, said.err) == ("", expected)


def test_slow_tasks_and_short_waits_are_not_told(monkeypatch, capsys):
    monkeypatch.setattr(_cluster, "WAIT_SECONDS", 0)
    assert results(2, 5) == [2, 4, 6]
    monkeypatch.setattr(_cluster, "WAIT_SECONDS", 3600)
    assert results(0, 5) == [2, 4, 6]
    assert capsys.readouterr().err == ""
