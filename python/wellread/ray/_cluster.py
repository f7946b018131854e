"""The cluster: how it is found, and how tasks of ours run on it.

what jobs share ──put, once──▶ Ray: each node fetches it once
jobs ──submit, a few more than processors──▶ Ray ──▶ task: opens the set once per process, works, answers
                                               └──▶ in the order of jobs: answers; who was slow
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import socket
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..errors import Error

HOW = "pip install '.[ray]' in a clone of wellread"
MISSING = f"wellread.ray needs Ray: {HOW}"
NOT_THERE = f"{HOW}, on every node"
# Times that Ray runs a task again whose node or process is gone.
RETRIES = 8
# So long tasks may take to end that are given up.
END_SECONDS = 30.0
# So long an address has to answer.
REACH_SECONDS = 10.0
# So long no task may end until a line says that none can start.
WAIT_SECONDS = 10.0
# Tasks in flight for each processor: the next one waits at its node.
AHEAD = 2


def modules() -> Any:
    """Ray.

    Raises:
        ImportError: it is not installed; the message says how to get it.
    """
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        if error.name not in ("ray", None):
            raise
        raise ImportError(MISSING, name="ray") from None


def data() -> Any:
    """Ray Data, which needs more packages than Ray itself.

    Raises:
        ImportError: it is not installed; the message says how to get it.
    """
    modules()
    try:
        return importlib.import_module("ray.data")
    except ImportError as error:
        raise ImportError(f"{MISSING} ({error})", name=error.name) from error


def check_reached(address: str | None) -> None:
    """Refuses an address at which nobody answers, which Ray would try for as long as an hour.

    Raises:
        wellread.Error: nobody answers.
    """
    named = address or os.environ.get("RAY_ADDRESS", "")
    host, _, port = named.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        # Such as "auto": Ray looks for it itself.
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        hint = "`ray start --head` prints the address of its cluster, and port 6379 is usual"
        raise Error(f"no Ray cluster answers at {named}: {error} (hint: {hint})", hint=hint) from None


def words(error: BaseException) -> str:
    """The message of an exception of Ray, without its traceback."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        return f"{type(cause).__name__}: {cause}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def connected(address: str | None) -> Any:
    """Ray, connected to the cluster at `address`. By default that is the cluster that this process is connected to,
    then that of ``RAY_ADDRESS``, else one that starts on this machine.

    Raises:
        ImportError: Ray is not installed.
        wellread.Error: nobody answers at the address.
    """
    ray = modules()
    if not ray.is_initialized():
        check_reached(address)
        choices: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address:
            choices["address"] = address
        ray.init(**choices)
    return ray


def processors(ray: Any) -> int:
    """Processors of the whole cluster."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def lacking(ray: Any, num_cpus: float) -> str | None:
    """The reason why no task can start, if no node has the processors that one needs."""
    most = max((float(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node.get("Alive")), default=0.0)
    if most >= num_cpus:
        return None
    has = f"the largest node has {most:g}" if most else "no node has any"
    return f"note: waiting for a node of the cluster with {num_cpus:g} free processors or more: {has}"


def tell(note: str) -> None:
    """Prints a note, if somebody reads it."""
    with contextlib.suppress(OSError, ValueError):
        print(note, file=sys.stderr, flush=True)


def alive(ray: Any) -> set[str]:
    """The names of the nodes that the cluster has."""
    return {str(node["NodeID"]) for node in ray.nodes() if node.get("Alive")}


def named(call: Any, remote: dict[str, Any]) -> dict[str, Any]:
    """The needs of each task for a function of Ray Data: by the names that it knows, else in a dictionary."""
    known = inspect.signature(call).parameters
    found = {name: value for name, value in remote.items() if name in known}
    others = {name: value for name, value in remote.items() if name not in known}
    return found | ({"ray_remote_args": others} if others else {})


@dataclass
class Node:
    """The work of a node."""

    host: str
    images: int = 0
    seconds: float = 0.0
    tasks: int = 0
    slowest_task_seconds: float = 0.0
    # When its first task with images began and the last one ended, by its own clock.
    span: tuple[float, float] | None = None

    def document(self) -> dict[str, Any]:
        """As a summary shows it. Images per second are those from the node's first task to its last, and those of one
        task at a time."""
        span = self.span[1] - self.span[0] if self.span is not None else 0.0
        return {
            "host": self.host,
            "images": self.images,
            "tasks": self.tasks,
            "images_per_s": self.images / span if span > 0 else None,
            "images_per_s_per_task": self.images / self.seconds if self.seconds > 0 else None,
            "slowest_task_seconds": self.slowest_task_seconds,
        }


@dataclass
class Summary:
    """The work of all nodes, by their names in the cluster."""

    nodes: dict[str, Node] = field(default_factory=dict)

    def note(self, answer: Answer) -> None:
        """Counts a task."""
        node = self.nodes.setdefault(answer.node, Node(answer.host))
        node.images += answer.images
        node.tasks += 1
        if answer.images:
            # Tasks that look at names alone say nothing of how fast images are read.
            node.seconds += answer.seconds
            begin, end = node.span or (answer.began, answer.began)
            node.span = (min(begin, answer.began), max(end, answer.began + answer.seconds))
        node.slowest_task_seconds = max(node.slowest_task_seconds, answer.seconds)

    def document(self, seconds: float) -> dict[str, Any]:
        """One summary: seconds of the whole, images per second of all and of each node, and the slowest node. That is
        the node with the fewest images per second and task: nodes may have unlike numbers of processors."""
        nodes = {name: node.document() for name, node in sorted(self.nodes.items())}
        images = sum(node.images for node in self.nodes.values())
        rates = {name: node["images_per_s_per_task"] for name, node in nodes.items() if node["images_per_s_per_task"]}
        return {
            "seconds": seconds,
            "images_per_s": images / seconds if seconds > 0 else None,
            "nodes": nodes,
            "slowest_node": min(rates, key=lambda name: rates[name]) if rates else None,
        }


@dataclass
class Answer:
    """The result of a task."""

    result: Any
    error: BaseException | None
    node: str
    host: str
    images: int
    seconds: float
    # By the clock of its node, which no other node's compares with.
    began: float


def answer(work: Callable[[Any], tuple[Any, int]], job: Any, *shared: Any) -> Answer:
    """Does a job, in a task: what it found, how many images it read, where and how long. The job follows what
    all jobs share. Errors of wellread are answers, so that Ray neither tries again what fails each time nor wraps
    what they say."""
    import ray

    start = time.monotonic()
    result, images, error = None, 0, None
    try:
        result, images = work((*shared, *job) if shared else job)
    except (Error, TypeError, ValueError, KeyError) as raised:
        error = raised
    node = ray.get_runtime_context().get_node_id()
    return Answer(result, error, node, socket.gethostname(), images, time.monotonic() - start, start)


def of_node(error: BaseException, host: str) -> BaseException:
    """An error of a task. It names the node unless an image or a choice is at fault. One node may have a full disk,
    or expired credentials."""
    if not isinstance(error, Error) or not (type(error) is Error or error._is_of_link):
        return error
    return Error(f"node {host}: {error}", path=error.path, row=error.row, hint=error.hint)


def run(
    ray: Any,
    work: Callable[[Any], tuple[Any, int]],
    jobs: Sequence[Any],
    *,
    summary: Summary,
    done: Callable[[int], None] | None = None,
    keep: Callable[[int, int, Any], None] | None = None,
    num_cpus: float = 1,
    shared: Sequence[Any] = (),
) -> Generator[Any, None, None]:
    """The result of each job, in their order. `work` is a function of this package that returns a result and the
    number of images that it read. `done` is called with that number as tasks end, in any order. So is `keep`,
    with the number of the job, that number and the result. Ray sends `shared` to each node once, and a job is what
    follows it then.

    Raises:
        wellread.Error: what the first task raised that failed, or how its node or process was lost for good; the
            others are given up.
    """
    # Who starts it may have a package that is not installed on the nodes, but in the same place.
    task = ray.remote(answer).options(
        num_cpus=num_cpus, max_retries=RETRIES, scheduling_strategy="SPREAD", name=f"wellread.{work.__name__}"
    )
    # Ray keeps it as long as there is a reference here.
    references = [ray.put(one) for one in shared]
    most = AHEAD * max(1, int(processors(ray) / max(num_cpus, 0.01)))
    waiting: dict[Any, int] = {}
    arrived: dict[int, Any] = {}
    given, next_one = 0, 0
    waited_since, is_told = time.monotonic(), False
    try:
        while next_one < len(jobs):
            while given < len(jobs) and len(waiting) < most and given - next_one < 4 * most:
                waiting[task.remote(work, jobs[given], *references)] = given
                given += 1
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=1.0)
            if ready:
                waited_since = time.monotonic()
            elif not is_told and time.monotonic() - waited_since >= WAIT_SECONDS:
                waited_since = time.monotonic()
                if (note := lacking(ray, num_cpus)) is not None:
                    is_told = True
                    tell(note)
            for reference in ready:
                number = waiting.pop(reference)
                try:
                    one: Answer = ray.get(reference)
                except ray.exceptions.RayError as raised:
                    said = words(raised)
                    hint = NOT_THERE if "No module named 'wellread" in said else None
                    advice = "" if hint is None else f" (hint: {hint})"
                    raise Error(f"a task failed on the cluster: {said}{advice}", hint=hint) from raised
                if one.error is not None:
                    raise of_node(one.error, one.host)
                summary.note(one)
                if keep is not None:
                    keep(number, one.images, one.result)
                if done is not None:
                    done(one.images)
                arrived[number] = one.result
            while next_one in arrived:
                yield arrived.pop(next_one)
                next_one += 1
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)
        if waiting:
            # What they write is removed by who gave up, and they must not put it there again.
            ray.wait(list(waiting), num_returns=len(waiting), timeout=END_SECONDS)


def absolute(path: str) -> str:
    """A path that means the same in a process of another working folder; an address as it is."""
    return path if _native.is_address(path) else os.path.abspath(path)
