"""Which share of the images this process delivers: its rank, and the number of ranks.

    given        shard=(rank, world_size), a process group, or False       taken as it is
                 rank= and world_size=, also with shard="local"
    found        torch.distributed, jax.distributed, if initialised        all that are must agree, as must RANK …
                 what the parent of a worker process has found
                 RANK and WORLD_SIZE, or the step that srun has started    what a launcher says of this process
                 SLURM_PROCID and SLURM_NTASKS without a job               the same, handed on into a container
    else         one rank

Ranks are looked for when they are needed and not when a loader is made. Programs make their loaders before they start
a process group. Nothing is imported for it, and no library is made to start anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from . import _check
from .errors import ChoiceError

Ranks = tuple[int, int]
ALONE: Ranks = (0, 1)
# The most ranks.
MAX_RANKS = 2**31
# Steps of Slurm that srun does not start have numbers from here on: the batch script, the shell of an allocation.
_SPECIAL_STEPS = 0xFFFFFFF0
# What was said already: each line once in a process.
_said: set[str] = set()


class OfGroup(tuple):
    """Rank and number of ranks in a process group, which is often a part of all processes."""


class Found(NamedTuple):
    """Facts about this process, their source, and what its user should know."""

    ranks: Ranks
    by: str
    notice: str | None = None


class Inherited(NamedTuple):
    """Ranks that the process that pickles a loader has found."""

    ranks: Ranks
    by: str
    process: int


def given(shard: Any, rank: Any, world_size: Any, sampler: Any) -> Ranks | None:
    """The ranks that the caller names; None where they are to be found.

    Raises TypeError or ValueError for arguments that make no sense.
    """
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size must be given together")
    is_auto = isinstance(shard, str)
    if is_auto and shard not in ("auto", "local"):
        raise ValueError(
            f'shard must be "auto", "local", (rank, world_size), a process group or False, not {shard!r}'
        )
    if rank is not None:
        if not is_auto:
            raise ValueError("shard and rank with world_size are the same: give one of them")
        shard, is_auto = (rank, world_size), False
    # torch's DistributedSampler has the rows of this rank alone.
    divided = getattr(sampler, "num_replicas", None)
    is_divided = type(divided) is int and divided > 1
    if is_auto and is_divided and shard == "local":
        raise ValueError(f'sampler divides the rows among {divided} ranks already: leave it out, or shard="local"')
    if is_auto:
        return ALONE if is_divided else None
    if shard is None or type(shard).__name__ in ("bool", "bool_"):
        if shard:
            raise ValueError('shard must be "auto", (rank, world_size), a process group or False, not True')
        return ALONE
    ranks = _named(shard)
    if is_divided and ranks[1] > 1:
        raise ValueError(
            f"sampler divides the rows among {divided} ranks already: leave out shard, rank and world_size, or the "
            "sampler"
        )
    return ranks


def _named(shard: Any) -> Ranks:
    if isinstance(shard, OfGroup):
        return cast("Ranks", shard)
    rank, size = getattr(shard, "rank", None), getattr(shard, "size", None)
    if callable(rank) and callable(size):
        # One of torch.distributed's process groups.
        try:
            pair = [rank(), size()]
        except Exception as error:
            raise ValueError(f"shard is a {type(shard).__name__} that does not tell its ranks: {error}") from error
        return cast("Ranks", OfGroup(_checked(pair)))
    pair = _check.several("shard", shard, '"auto", (rank, world_size), a process group or False')
    if len(pair) != 2:
        raise ValueError(f"shard must be (rank, world_size), not {len(pair)} things")
    return _checked(pair)


def _checked(pair: list[Any]) -> Ranks:
    world_size = _check.whole("world_size", pair[1], 1, MAX_RANKS)
    return _check.whole("rank", pair[0], 0, world_size - 1), world_size


def now(named: Ranks | None, inherited: Inherited | None = None) -> Found:
    """Rank and number of ranks of this process at this moment.

    Raises:
        ChoiceError: what is known contradicts itself.
    """
    if named is not None:
        if named[1] > 1 and not isinstance(named, OfGroup):
            running = _initialised()
            if running is not None and running.ranks != named:
                raise wrong(
                    f"shard is {words(named)}, and {running.by} says {words(running.ranks)}",
                    "leave shard, rank and world_size out, or give the process group of those that divide the images "
                    "as shard; shard=False delivers all images",
                )
        return Found((named[0], named[1]), "shard")
    running = _initialised()
    if running is not None:
        _compare(running, os.environ)
        return running
    if inherited is not None and _is_child_of(inherited.process):
        return Found(inherited.ranks, inherited.by)
    return of_environment(os.environ)


def to_hand_on(inherited: Inherited | None) -> Inherited | None:
    """Ranks that a worker process of this one takes as found, if there are several."""
    try:
        found = now(None, inherited)
    except ChoiceError:
        # Told where images are asked for.
        return None
    return Inherited(found.ranks, found.by, os.getpid()) if found.ranks[1] > 1 else None


def _initialised() -> Found | None:
    """The ranks of the libraries that this process runs on, if they have been started."""
    found = [running for running in (_of_torch(), _of_jax()) if running is not None]
    if len(found) == 2 and found[0].ranks != found[1].ranks:
        first, second = found
        raise wrong(
            f"{first.by} says {words(first.ranks)}, and {second.by} says {words(second.ranks)}",
            "start both with the same processes, or give shard=False and the rows of this process",
        )
    return found[0] if found else None


def _compare(running: Found, variables: Mapping[str, str]) -> None:
    """Raises ChoiceError where a launcher has told this process other ranks than those it runs as."""
    try:
        launched = _of_launcher(variables)
    except ChoiceError:
        # What runs is known without it.
        return
    if launched is not None and launched.ranks[1] > 1 and not _fit(running.ranks, launched.ranks):
        raise wrong(
            f"{running.by} says {words(running.ranks)}, and RANK and WORLD_SIZE say {words(launched.ranks)}",
            "unset RANK and WORLD_SIZE if they are left from something else, or give shard",
        )


def _fit(ranks: Ranks, launched: Ranks) -> bool:
    """Whether ranks are those that a launcher has started, or equally many were started by each of these."""
    each, rest = divmod(ranks[1], launched[1])
    return ranks == launched or (each > 1 and not rest)


def _of_torch() -> Found | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Found((distributed.get_rank(), distributed.get_world_size()), "torch.distributed")


def _of_jax() -> Found | None:
    jax = sys.modules.get("jax")
    is_initialized = getattr(getattr(jax, "distributed", None), "is_initialized", None)
    # JAX's own state: jax.process_index() would start a backend, which takes the memory of devices.
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if is_initialized is None:
        # A JAX without the question.
        if getattr(state, "client", None) is None:
            return None
    elif not is_initialized():
        return None
    ranks = getattr(state, "process_id", None), getattr(state, "num_processes", None)
    if not all(isinstance(number, int) for number in ranks):
        raise wrong(
            "jax.distributed is initialised, and this JAX does not tell its ranks before a backend is started",
            "give shard=(jax.process_index(), jax.process_count()), or shard=False",
        )
    return Found((int(ranks[0]), int(ranks[1])), "jax.distributed")  # type: ignore[arg-type]


def _is_child_of(process: int) -> bool:
    """Whether a process has started this one, as torch starts its workers. A loader that was pickled elsewhere, such
    as into a file, says nothing of this process."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    parent = multiprocessing.parent_process() if multiprocessing is not None else None
    return process != os.getpid() and process in (os.getppid(), getattr(parent, "pid", None))


def of_environment(variables: Mapping[str, str]) -> Found:
    """Statements of launchers to this process: ``RANK`` and ``WORLD_SIZE``, and the step that ``srun`` has started.

    Where both are there, ``RANK`` and ``WORLD_SIZE`` count. A launcher such as torchrun runs once on each node, as a
    task of the step, and starts the ranks. Where no such launcher can have made them, they must be those of the step.
    """
    launched = _of_launcher(variables)
    if launched is None:
        return _of_slurm(variables)
    # Of torchrun and its like, which number the ranks as they please.
    if variables.get("TORCHELASTIC_RUN_ID") or _tasks(variables) is None:
        return launched
    step = _of_slurm(variables)
    # Another launcher in each task starts several ranks.
    if step.ranks[1] > 1 and not _fit(launched.ranks, step.ranks):
        raise wrong(
            f"RANK and WORLD_SIZE say {words(launched.ranks)}, and the step of Slurm says {words(step.ranks)}",
            "unset RANK and WORLD_SIZE if they are left from something else, initialise torch.distributed before "
            "the first batch, or give shard",
        )
    return launched


def _of_launcher(variables: Mapping[str, str]) -> Found | None:
    rank, world_size = (number(variables, name) for name in ("RANK", "WORLD_SIZE"))
    if rank is None:
        # Lightning tells the processes that it starts their LOCAL_RANK, and initialises torch.distributed.
        if world_size is None or world_size == 1 or variables.get("LOCAL_RANK"):
            return None
        raise wrong(f"WORLD_SIZE is {world_size}, and RANK is not set", "set both, or give shard=False")
    if world_size is None:
        raise wrong(f"RANK is {rank}, and WORLD_SIZE is not set", "set both, or give shard=False")
    if not 0 <= rank < world_size <= MAX_RANKS:
        raise wrong(
            f"RANK is {rank}, and WORLD_SIZE is {world_size}", "ranks count from 0: set both, or give shard=False"
        )
    return _told((rank, world_size), "RANK and WORLD_SIZE")


def _of_slurm(variables: Mapping[str, str]) -> Found:
    """The tasks of the step that this process is one of. A process that srun has not started is the only one of its
    program, whatever number of tasks the job was given."""
    rank, step = (number(variables, name) for name in ("SLURM_PROCID", "SLURM_STEP_ID"))
    of_job, tasks = number(variables, "SLURM_NTASKS"), _tasks(variables)
    is_special = step is not None and step >= _SPECIAL_STEPS
    if tasks is None and rank:
        raise wrong(
            f"SLURM_PROCID is {rank}, and SLURM_STEP_NUM_TASKS is not set, so that the number of ranks is not known",
            "hand on both to this process, or give shard",
        )
    # Of a step with a terminal, the first task alone is the user's shell.
    if tasks is None or is_special or variables.get("SLURM_PTY_PORT"):
        notice = (
            f"wellread: the job of Slurm has {of_job} tasks, but srun has not started this process beside others. "
            "It delivers all images; shard=(rank, world_size) delivers a part"
        )
        return Found(ALONE, "Slurm", notice if of_job is not None and of_job > 1 else None)
    if tasks < 2:
        return Found(ALONE, "Slurm")
    if rank is None or not 0 <= rank < tasks <= MAX_RANKS:
        said = "not set" if rank is None else rank
        raise wrong(
            f"{_tasks_name(variables)} is {tasks}, and SLURM_PROCID is {said}",
            "hand on both to this process, or give shard",
        )
    return _told((rank, tasks), f"SLURM_PROCID and {_tasks_name(variables)}")


def _tasks_name(variables: Mapping[str, str]) -> str:
    return "SLURM_STEP_NUM_TASKS" if variables.get("SLURM_STEP_NUM_TASKS", "").strip() else "SLURM_NTASKS"


def _tasks(variables: Mapping[str, str]) -> int | None:
    """How many tasks the step has that this process is one of, if that is told.

    ``SLURM_NTASKS`` is that number in a step. Slurm sets it in a batch script too, where one process runs, and beside
    it the number of the job. Without a job somebody has handed on the rank and this number, as into a container.
    """
    is_handed_on = bool(variables.get("SLURM_PROCID", "").strip()) and not any(
        variables.get(name, "").strip() for name in ("SLURM_JOB_ID", "SLURM_JOBID")
    )
    name = _tasks_name(variables)
    is_told = name != "SLURM_NTASKS" or is_handed_on or bool(variables.get("SLURM_STEP_ID", "").strip())
    return number(variables, name) if is_told else None


def _told(ranks: Ranks, by: str) -> Found:
    if ranks[1] == 1:
        return Found(ranks, by)
    notice = (
        f"wellread: {words(ranks)} by {by}: this process delivers its part of the images; shard=False delivers all"
    )
    return Found(ranks, by, notice)


def number(variables: Mapping[str, str], name: str) -> int | None:
    """The whole number that a variable is, if it is set."""
    text = variables.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise wrong(f"{name} is {text!r}, which is no whole number", "set it right, or give shard=False")
    return int(text)


def wrong(cause: str, hint: str) -> ChoiceError:
    """The error for facts that contradict each other."""
    return ChoiceError(f"{cause} (hint: {hint})", hint=hint)


def words(ranks: Ranks) -> str:
    """Ranks as people say it."""
    return f"rank {ranks[0]} of {ranks[1]}"


def tell(found: Found) -> None:
    """Logs what the user should know of the ranks, once in a process."""
    if found.notice is not None:
        _say(found.notice)


def tell_left_out(images: int, found: Found) -> None:
    """Logs that some of so many images are in no rank's part, where that is so, once in a process."""
    left = images % found.ranks[1]
    if left:
        _say(
            f"wellread: each epoch leaves out {left} of {images} images, which do not divide among {found.ranks[1]} "
            'ranks; uneven="pad" repeats some instead'
        )


def _say(line: str) -> None:
    if line not in _said:
        import logging

        _said.add(line)
        logging.getLogger("wellread").warning("%s", line)
