"""Commands that measure, each alone on a node: what ``wellread infer|tasks --on ray`` has the cluster do.

commands ──▶ a free node ──▶ a task that takes all its processors and GPUs: the command ──▶ how it ended
                 ▲                                                                             │
                 └──────────────────────── the node is free again ◀────────────────────────────┘
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import Error
from . import _cluster, _environment

# What a command is told of the process that asks: where the Python of frameworks is, and the like.
PASSED_ON = "WELLREAD_"


def command_task(line: list[str], log: str, folder: str | None, environment: dict[str, str]) -> str | None:
    """Runs a command to its end on this node; how it failed, if it did. Its output is in `log`."""
    try:
        with open(log, "wb") as out:
            done = subprocess.run(
                line,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=_environment.beside(os.environ, environment),
                check=False,
            )
    except OSError as error:
        return f"cannot run {line[0]}: {error}"
    return None if done.returncode == 0 else f"exit code {done.returncode}"


def whole_nodes(ray: Any) -> list[tuple[str, float, float]]:
    """The nodes of the cluster that have processors: name, processors, GPUs."""
    found = []
    for node in ray.nodes():
        resources = node.get("Resources", {})
        if node.get("Alive") and resources.get("CPU", 0) > 0:
            found.append((str(node["NodeID"]), float(resources["CPU"]), float(resources.get("GPU", 0))))
    return sorted(found)


def waiting(ray: Any, node: tuple[str, float, float]) -> str:
    """The note that a command waits for a node: what it asks for, and what the cluster has free."""
    name, processors, gpus = node
    hosts = {str(one["NodeID"]): str(one.get("NodeManagerHostname", name)) for one in ray.nodes()}
    free = ray.available_resources()
    return (
        f"note: waiting for the node {hosts.get(name, name)}, which has other work: a command asks for its "
        f"{processors:g} processors and {gpus:g} GPUs. The cluster has {free.get('CPU', 0):g} processors and "
        f"{free.get('GPU', 0):g} GPUs free"
    )


def run(
    ray: Any,
    commands: Sequence[dict[str, Any]],
    folder: str | None,
    done: Callable[[int], None] | None = None,
) -> list[str | None]:
    """How each command failed, or None. Each is ``{"line": words, "log": path}``. A node has one at a time, and no
    other task of Ray: it takes all processors and GPUs of the node. A command whose node is lost has failed. One that
    waits for its node is told of after a while.

    Raises:
        wellread.Error: the cluster has no node with processors.
    """
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    free = whole_nodes(ray)
    if not free:
        raise Error("the cluster has no node with processors: start one with `ray start --address … --num-cpus N`")
    environment = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    environment |= _environment.told()
    ends: list[str | None] = [None] * len(commands)
    left = list(range(len(commands)))[::-1]
    running: dict[Any, tuple[int, tuple[str, float, float]]] = {}
    asked: dict[Any, float] = {}
    try:
        while left or running:
            while left and free:
                number, node = left.pop(), free.pop(0)
                name, processors, gpus = node
                # Measured anew by another process it would be timed in another state: it is not tried again.
                task = ray.remote(command_task).options(
                    num_cpus=processors,
                    num_gpus=gpus,
                    max_retries=0,
                    name="wellread.command_task",
                    scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(name, soft=False),
                )
                command = commands[number]
                # It is there again as soon as the command has begun.
                with contextlib.suppress(OSError):
                    os.remove(command["log"])
                reference = task.remote(command["line"], command["log"], folder, environment)
                running[reference] = (number, node)
                asked[reference] = time.monotonic()
            if not running:
                for number in left:
                    ends[number] = "no node of the cluster is left"
                break
            ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            for reference in ready:
                number, node = running.pop(reference)
                asked.pop(reference, None)
                try:
                    ends[number] = ray.get(reference)
                    free.append(node)
                except ray.exceptions.RayError as error:
                    ends[number] = f"its node or process is lost: {_cluster.words(error)}"
                    if node in whole_nodes(ray):
                        free.append(node)
                if done is not None:
                    done(1)
            late = time.monotonic() - _cluster.WAIT_SECONDS
            for reference in [one for one, since in asked.items() if since <= late]:
                del asked[reference]
                number, node = running[reference]
                if not os.path.exists(commands[number]["log"]):
                    _cluster.tell(waiting(ray, node))
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
    return ends
