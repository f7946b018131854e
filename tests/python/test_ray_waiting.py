"""Tasks that no node of a cluster can run: what a program says while it waits. Ray is a stand-in here."""

import functools
import pickle
import sys
import types
from pathlib import Path

import pytest
from wellread import errors
from wellread.ray import _cluster, _commands


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
        return _cluster.Answer(result, None, "node", "host", images, 1.0, 0.0)

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


class Putting(Ray):
    """Ray that keeps what is put, and has a task take it by a reference."""

    def __init__(self):
        super().__init__(2, 0)
        self.kept, self.sent = [], []

    def put(self, what):
        self.kept.append(what)
        return len(self.kept) - 1

    def remote(self, function):
        def start(work, job, *references):
            self.sent.append((job, references))
            return functools.partial(function, work, job, *(self.kept[one] for one in references))

        return types.SimpleNamespace(options=lambda **choices: types.SimpleNamespace(remote=start))

    def get(self, reference):
        result, images = reference.args[0]((*reference.args[2:], *reference.args[1]))
        return _cluster.Answer(result, None, "node", "host", images, 1.0, 0.0)


def total(job):
    table, first, second = job
    return table[first] + table[second], 1


def test_what_jobs_share_is_put_once_and_jobs_are_small():
    ray, table = Putting(), {1: "one", 2: "two"}
    jobs = [(1, 2), (2, 2), (2, 1)]
    found = list(_cluster.run(ray, total, jobs, summary=_cluster.Summary(), shared=[table]))
    assert found == ["onetwo", "twotwo", "twoone"]
    assert ray.kept == [table] and ray.sent == [(job, (0,)) for job in jobs]


def test_slow_tasks_and_short_waits_are_not_told(monkeypatch, capsys):
    monkeypatch.setattr(_cluster, "WAIT_SECONDS", 0)
    assert results(2, 5) == [2, 4, 6]
    monkeypatch.setattr(_cluster, "WAIT_SECONDS", 3600)
    assert results(0, 5) == [2, 4, 6]
    assert capsys.readouterr().err == ""


class Failing(Ray):
    """Ray whose tasks fail on their node."""

    def __init__(self, error):
        super().__init__(2, 0)
        self.error = error

    def get(self, reference):
        return _cluster.Answer(None, self.error, "node", "n7", 0, 1.0, 0.0)

    def cancel(self, reference, force):
        pass


def test_an_error_names_the_node_unless_an_image_is_at_fault():
    full = errors.Error("/data/set: cannot write: No space left on device", path="/data/set", hint="free some space")
    damaged = errors.CorruptImageError("a.tif: row 3: is cut off", path="a.tif", row=3)
    refused = errors.CorruptImageError("s3://b/a.tif: row 3: the server answered 503", path="s3://b/a.tif", row=3)
    refused._is_of_link = True
    # As a task hands it on.
    refused = pickle.loads(pickle.dumps(refused))
    choice = errors.ChoiceError("no such format")
    named, others = (full, refused), (damaged, choice)
    for error, said in [(one, f"node n7: {one}") for one in named] + [(one, str(one)) for one in others]:
        with pytest.raises(errors.Error) as raised:
            list(_cluster.run(Failing(error), double, [1], summary=_cluster.Summary()))
        assert str(raised.value) == said and raised.value.path == error.path
    assert raised.type is errors.ChoiceError


class Commands(Ray):
    """Ray with one node of eight processors, of which another job holds six unless a command `begins`."""

    def __init__(self, waits, begins):
        super().__init__(8, waits)
        self.begins = begins

    def remote(self, function):
        def start(line, log, folder, environment):
            if self.begins:
                Path(log).touch()
            return log

        return types.SimpleNamespace(options=lambda **choices: types.SimpleNamespace(remote=start))

    def nodes(self):
        return [{"NodeID": "a", "NodeManagerHostname": "n1", "Alive": True, "Resources": {"CPU": 8, "GPU": 1}}]

    def available_resources(self):
        return {"CPU": 2.0}

    def get(self, reference):
        return None


@pytest.mark.parametrize("begins", [False, True])
def test_a_command_that_waits_for_its_node_says_what_is_asked_and_free(monkeypatch, capsys, tmp_path, begins):
    strategies = types.SimpleNamespace(NodeAffinitySchedulingStrategy=lambda name, soft: None)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    log = tmp_path / "log.txt"
    # Of an earlier run: it tells nothing of this one.
    log.touch()
    commands = [{"line": ["wellread"], "log": str(log)}]

    monkeypatch.setattr(_cluster, "WAIT_SECONDS", 3600)
    assert _commands.run(Commands(3, begins), commands, None) == [None]
    assert capsys.readouterr().err == ""

    monkeypatch.setattr(_cluster, "WAIT_SECONDS", 0)
    assert _commands.run(Commands(3, begins), commands, None) == [None]
    expected = (
        "note: waiting for the node n1, which has other work: a command asks for its 8 processors and 1 GPUs. "
        "The cluster has 2 processors and 0 GPUs free\n"
    )
    assert capsys.readouterr().err == ("" if begins else expected)
