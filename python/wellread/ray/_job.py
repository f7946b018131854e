"""Something that is done to whole sets: tasks over rows, the work of the nodes, and the answers of an earlier run.

jobs ──those without an answer──▶ cluster ──▶ journal ──▶ answers, in the order of jobs
  └────those with one, by their rows────────────┘
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

from .. import _check
from ..dataset import Dataset
from . import _cluster, _sets
from ._cluster import Summary
from ._kept import Journal, Kept, key_of, writing

# Tasks for each processor: nodes that are faster do more of them.
TASKS_PER_PROCESSOR = 4
# Tasks of a set whose answers are kept, on any cluster.
KEPT_TASKS = 512
# Rows of a task at most: what is lost with a node is not much.
MOST_ROWS = 20_000

Done = Callable[[int], None]
# It is told how many rows are done, and how many there are in all.
Progress = Callable[[int, int], None]


def _counting(progress: Progress) -> tuple[Done, Done]:
    """The calls of a job that tell `progress` of rows: `done` and `total`."""
    counts = [0, 0]

    def done(rows: int) -> None:
        # Tasks that look at names alone have done none.
        if rows:
            counts[0] += rows
            progress(*counts)

    def total(rows: int) -> None:
        counts[1] += rows
        progress(*counts)

    return done, total


class Job:
    """Something that is done to sets on a cluster: how far it is, and what the nodes did. With `resume` it keeps the
    answers of tasks, and takes those that an interrupted one has left. `progress` takes the place of `done` and
    `total`.

    Raises:
        TypeError: `progress` cannot be called.
    """

    def __init__(
        self,
        address: str | None,
        done: Done | None = None,
        total: Done | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> None:
        if progress is not None:
            if not callable(progress):
                raise TypeError(f"progress must be a function of two numbers, not {_check.kind(progress)}")
            done, total = _counting(progress)
        self.ray: Any = _cluster.connected(address)
        self.done: Done | None = done
        self.total: Done | None = total
        self.kept: Kept | None = Kept() if resume else None
        self.resumed: int = 0
        self.nodes: Summary = Summary()
        self.there: set[str] = _cluster.alive(self.ray)
        self.start: float = time.monotonic()

    def run(self, work: Callable[[Any], tuple[Any, int]], jobs: Sequence[Any]) -> Generator[Any, None, None]:
        """Results of jobs, in order. All begin with the recipe of one set, which a node gets once. Closed before the
        last of them, it waits until no task runs any more."""
        if self.kept is None or not jobs:
            return self._run(work, jobs)
        return self._go_on(work, jobs, self.kept.of(jobs[0][0]))

    def _run(
        self,
        work: Callable[[Any], tuple[Any, int]],
        jobs: Sequence[Any],
        keep: Callable[[int, int, Any], None] | None = None,
    ) -> Generator[Any, None, None]:
        """Results of jobs, in order, which the cluster does."""
        return _cluster.run(
            self.ray,
            work,
            [job[1:] for job in jobs],
            summary=self.nodes,
            done=self.done,
            keep=keep,
            shared=[job[0] for job in jobs[:1]],
        )

    def _go_on(
        self, work: Callable[[Any], tuple[Any, int]], jobs: Sequence[Any], journal: Journal
    ) -> Generator[Any, None, None]:
        """Results of jobs, as of :meth:`run`. Jobs in the journal are not done, and the others go into it."""
        keys = [key_of(work, job) for job in jobs]
        there = [journal.images(key) for key in keys]
        left = [number for number, images in enumerate(there) if images is None]
        resumed = sum(images for images in there if images is not None)
        self.resumed += resumed
        if self.done is not None:
            self.done(resumed)

        def keep(number: int, images: int, result: Any) -> None:
            with writing():
                journal.keep(keys[left[number]], images, result)

        jobs_left = [jobs[number] for number in left]
        answers = self._run(work, jobs_left, keep)
        with closing(answers):
            for key, images in zip(keys, there, strict=True):
                yield next(answers) if images is None else journal.answer(key)

    def finish(self) -> None:
        """Removes what was kept: nobody needs it any more."""
        if self.kept is not None:
            self.kept.forget()

    def rows_per_task(self, dataset: Dataset) -> tuple[int, int]:
        """Rows of a task, and rows that are read together. They are the same on any cluster where a later run may go
        on."""
        tasks = KEPT_TASKS if self.kept is not None else TASKS_PER_PROCESSOR * _cluster.processors(self.ray)
        rows, group = _sets.rows_of_a_task(dataset, tasks)
        return min(rows, MOST_ROWS), group

    def summary(self) -> dict[str, Any]:
        """The work of the nodes, the nodes that were lost meanwhile, and images that an interrupted run had read. A
        node that came later and did something counts as those that were there at the beginning."""
        lost = sorted((self.there | set(self.nodes.nodes)) - _cluster.alive(self.ray))
        document = self.nodes.document(time.monotonic() - self.start)
        return document | {"lost_nodes": lost, "images_resumed": self.resumed}
