"""``embed``: what ``wellread embed --on ray`` has the cluster do. Each actor has the program open the model once, and
compute a part after the other.

driver: the first model that is open ──opened──▶ the command ──parts that are left──▶ dealt to actors that are free
                                                                   │ a part is whole, or its node is gone: once more
the command: joins the parts ◀────────── part, images ◀────────────┘
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import ChoiceError, Error
from . import _cluster, _environment
from ._cluster import Answer, Summary

# What a program is told of the process that asks: where Pythons are, and modules of models.
PASSED_ON = "WELLREAD_"
MODULES = "PYTHONPATH"
PYTHON = "WELLREAD_PYTHON"
# Bytes of what a program has printed that are shown when it ends.
SHOWN = 2000
# The smallest share of a processor or GPU that Ray counts is one of so many.
UNITS = 10_000
# Exit codes of a program that says itself why it ended.
SAID = (1, 2)
MISSING_ROOM = "no node of the cluster has {cpus} processors{gpus} for a model"

Told = dict[str, Any]


def environment(gpus: float) -> dict[str, str]:
    """The environment that the program of a node gets from this process."""
    passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON) or name == MODULES}
    passed |= _environment.told()
    # Ray hides GPUs that an actor does not ask for, in some of its versions.
    return passed if gpus else passed | {"CUDA_VISIBLE_DEVICES": ""}


class Program:
    """A program that computes parts, on this node: it is asked by lines of JSON, and answers so."""

    def __init__(self, line: list[str], folder: str | None, environment: dict[str, str]) -> None:
        # Where it is not installed in the same place: that of this Python.
        program = line if os.access(line[0], os.X_OK) else [sys.executable, "-m", "wellread", *line[1:]]
        told = _environment.beside(os.environ, environment)
        if not os.access(told.get(PYTHON, ""), os.X_OK):
            told[PYTHON] = sys.executable
        # Open as long as the program runs.
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=folder,
            env=told,
            # The program writes UTF-8, whatever the locale of its node is.
            encoding="utf-8",
        )

    def answer(self) -> Told:
        """Its next line; how it ended, where there is none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line.endswith("\n"):
            found: Told = json.loads(line)
            return found
        code = self.process.wait()
        self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, self.log.tell() - SHOWN))
        said = self.log.read().decode(errors="replace").strip()
        if code in SAID and said:
            return {"error": said.removeprefix("error: "), "usage": code == 2}
        return {"lost": f"the program ended with exit code {code}" + (f": {said}" if said else "")}

    def ask(self, question: Told) -> Told:
        """Its answer to a question."""
        assert self.process.stdin is not None
        # One that has ended says so as its answer.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        return self.answer()


class Model:
    """An actor: the program with the model, and what it did."""

    def __init__(self, line: list[str], folder: str | None, environment: dict[str, str]) -> None:
        self.how = (line, folder, environment)
        self.program: Program | None = None

    def _answer(self, told: Told, images: int, start: float) -> Answer:
        import ray

        node = ray.get_runtime_context().get_node_id()
        return Answer(told, None, node, socket.gethostname(), images, time.monotonic() - start, start)

    def open(self) -> Answer:
        """Opens the model; what was opened."""
        start = time.monotonic()
        try:
            self.program = Program(*self.how)
        except OSError as error:
            return self._answer({"error": f"cannot run {self.how[0][0]}: {error}", "usage": False}, 0, start)
        return self._answer(self.program.answer(), 0, start)

    def part(self, number: int, folder: str) -> Answer:
        """Computes a part."""
        start = time.monotonic()
        if self.program is None:
            return self._answer({"lost": "the actor was begun anew"}, 0, start)
        told = self.program.ask({"part": number, "folder": folder})
        return self._answer(told, int(told.get("images", 0)), start)


def _shares(there: float, share: float) -> int:
    """How often `share` fits, in ten-thousandths as Ray counts: 0.1 fits three times in 0.3; floats make it 2."""
    return round(there * UNITS) // max(1, round(share * UNITS))


def room(ray: Any, cpus: float, gpus: float) -> int:
    """Actors that fit on the nodes that are there."""
    found = 0
    for node in ray.nodes():
        if node.get("Alive"):
            there = node.get("Resources", {})
            counts = [_shares(there.get(name, 0), share) for name, share in (("CPU", cpus), ("GPU", gpus)) if share]
            found += min(counts)
    return found


def differing(one: str, other: str) -> str:
    """In what two lines that say what a table is made of are different."""
    first, second = json.loads(one), json.loads(other)
    return ", ".join(
        f"{name}: {first.get(name)!r} and {second.get(name)!r}"
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    )


@dataclass
class Pool:
    """Actors, and the parts that they compute."""

    ray: Any
    request: dict[str, Any]
    summary: Summary
    # Answers to the actors that are at work: the actor, and its part; None while it opens the model.
    running: dict[Any, tuple[Any, int | None]] = field(default_factory=dict)
    idle: list[Any] = field(default_factory=list)
    parts: list[int] | None = None
    folder: str = ""
    left: int = 0
    # The first model that was opened, and the host that it is on.
    opened: Told | None = None
    host: str = ""
    # How often each part was lost; None for models that were not opened.
    losses: Counter[int | None] = field(default_factory=Counter)

    def start(self) -> None:
        """Starts one more actor."""
        cpus, gpus = self.request["cpus"], self.request["gpus"]
        # Actors that are lost are begun anew here, where it is known what they did.
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        actor = self.ray.remote(Model).options(**options).remote(
            self.request["line"], self.request["folder"], environment(gpus)
        )  # fmt: skip
        self.running[actor.open.remote()] = (actor, None)

    def fill(self) -> None:
        """Starts as many actors as are wanted and fit.

        Raises:
            wellread.Error: none fits.
        """
        cpus, gpus = self.request["cpus"], self.request["gpus"]
        fit = room(self.ray, cpus, gpus)
        if not fit:
            asked = f" and {gpus:g} GPUs" if gpus else ""
            hint = "fewer --cpus-per-actor or --gpus-per-actor, or start a node"
            raise Error(f"{MISSING_ROOM.format(cpus=cpus, gpus=asked)} (hint: {hint})", hint=hint)
        parts = self.request["most_parts"] if self.parts is None else self.left
        wanted = min(self.request["actors"] or fit, fit, parts)
        for _ in range(wanted - len(self.running) - len(self.idle)):
            self.start()

    def deal(self) -> None:
        """Gives the next parts to actors that are free."""
        while self.parts and self.idle:
            actor, number = self.idle.pop(), heapq.heappop(self.parts)
            self.running[actor.part.remote(number, self.folder)] = (actor, number)

    def lost(self, actor: Any, number: int | None, why: str) -> None:
        """Has what an actor did done once more.

        Raises:
            wellread.Error: it was lost too often.
        """
        with contextlib.suppress(Exception):
            self.ray.kill(actor)
        self.losses[number] += 1
        if self.losses[number] > _cluster.RETRIES:
            what = "a model" if number is None else f"part {number}"
            raise Error(f"{what} was lost {self.losses[number]} times on the cluster, the last time: {why}")
        if number is not None and self.parts is not None:
            heapq.heappush(self.parts, number)

    def is_opened(self, answer: Answer) -> bool:
        """Whether this is the first model that was opened.

        Raises:
            wellread.Error: another node has opened something else.
        """
        opened: Told = answer.result["opened"]
        if self.opened is None:
            self.opened, self.host = opened, answer.host
            return True
        if opened["made_of"] != self.opened["made_of"]:
            differ = differing(self.opened["made_of"], opened["made_of"])
            raise Error(f"{self.host} and {answer.host} have not opened the same: {differ}")
        return False

    def stop(self) -> None:
        """Ends all actors; programs end with them."""
        for actor in [*self.idle, *(actor for actor, _ in self.running.values())]:
            with contextlib.suppress(Exception):
                self.ray.kill(actor)


def _next(pool: Pool) -> tuple[Any, int | None, Answer] | None:
    """The answer of an actor; None if there is none, or an actor was lost."""
    ready, _ = pool.ray.wait(list(pool.running), num_returns=1, timeout=1.0)
    if not ready:
        return None
    actor, number = pool.running.pop(ready[0])
    try:
        answer: Answer = pool.ray.get(ready[0])
    except pool.ray.exceptions.RayTaskError as error:
        # Neither the program nor the node has failed: it would do so each time.
        raise Error(_cluster.words(error)) from None
    except pool.ray.exceptions.RayError as error:
        pool.lost(actor, number, _cluster.words(error))
        return None
    if "lost" in answer.result:
        pool.lost(actor, number, f"{answer.host}: {answer.result['lost']}")
        return None
    if "error" in answer.result:
        # What one node has opened and another cannot is a matter of that node.
        on_node = f"on {answer.host}: " if number is None and pool.opened is not None else ""
        raise (ChoiceError if answer.result.get("usage") else Error)(on_node + answer.result["error"])
    return actor, number, answer


def run(
    ray: Any,
    request: dict[str, Any],
    ask: Callable[[Told], Told],
    tell: Callable[[int, int], None],
    total: Callable[[int], None],
    summary: Summary,
) -> int:
    """Computes the parts that are left; how many images they are of. `ask` is told what the first model says that was
    opened, and answers which parts are left. `tell` is given each part that is whole, and its images.

    Raises:
        wellread.Error: a program failed, nodes have opened something else, or a part was lost each time.
    """
    pool = Pool(ray, request, summary)
    images = 0
    try:
        pool.fill()
        while pool.parts is None or pool.left:
            if not pool.running:
                pool.fill()
            found = _next(pool)
            if found is None:
                pool.fill()
            else:
                actor, number, answer = found
                pool.idle.append(actor)
                if number is None:
                    if pool.is_opened(answer):
                        said = ask({"opened": pool.opened})
                        pool.parts, pool.folder, pool.left = sorted(said["parts"]), said["folder"], len(said["parts"])
                        total(said["images"])
                else:
                    pool.left -= 1
                    images += answer.images
                    summary.note(answer)
                    tell(number, answer.images)
            pool.deal()
    finally:
        pool.stop()
    return images
