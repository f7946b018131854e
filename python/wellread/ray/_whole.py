"""Whole sets: checksums, verification and statistics, each as one machine finds them.

ranges of rows ──tasks──▶ digests of each row ──in order──▶ checksum, verify
rows of groups ──tasks──▶ counts, sums of groups of rows ──in order──▶ stats
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard

from .. import _check, _native
from .._signature import warn
from .._types import Path
from ..dataset import Dataset
from ..errors import Error
from . import _sets
from ._job import Job
from ._kept import has_failed

# Percentiles that are computed unless others are asked for, as by `wellread stats`.
PERCENTILES = (0.1, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9)
IGNORED = ("order", "names")
ON_ERROR = ("raise", "skip")


def checksum_task(job: tuple[_sets.Recipe, int, int]) -> tuple[str, int]:
    """Digests of a range of rows."""
    how, start, end = job
    return _native.checksums(_sets.opened(how)._native, start, end, 1), end - start


def sums_of(job: Job, dataset: Dataset) -> str:
    """The result of each row, as JSON."""
    how = _sets.recipe(dataset, job.kept is not None)
    if job.total is not None:
        job.total(len(dataset))
    ranges = _sets.ranges(len(dataset), *job.rows_per_task(dataset))
    texts = job.run(checksum_task, [(how, start, end) for start, end in ranges])
    # Each is a list: what is between the brackets of all of them is one.
    inner = (text.strip()[1:-1] for text in texts)
    return "[" + ",".join(text for text in inner if text) + "]"


def sums_of_each(job: Job, sets: Iterable[Dataset]) -> list[str]:
    """The results of sets, in turn. A set after one with an image that cannot be read is left out: no set is compared
    with that."""
    found: list[str] = []
    for dataset in sets:
        if any(map(has_failed, found)):
            break
        found.append(sums_of(job, dataset))
    return found


def _name(dataset: Dataset, row: int) -> str:
    try:
        return dataset.name(row)
    except Error:
        return f"row {row}"


def failed_rows(text: str, dataset: Dataset) -> list[tuple[int, dict[str, Any]]]:
    """The rows that could not be read, with the reason of each, of results as text.

    Raises:
        wellread.Error: there is none that can be read. A link or a server failed, or a node's credentials expired.
    """
    rows = json.loads(text)
    found = [(row, one) for row, one in enumerate(rows) if "cause" in one]
    for _, one in found:
        if one["may_pass"] and _native.is_address(one["path"]):
            # The image may be as good as any other.
            _native.check_read(json.dumps([one]))
    if found and len(found) == len(rows):
        raise Error(f"{dataset.path}: no image can be read: {found[0][1]['cause']}", path=dataset.path, row=0)
    return found


def listed(dataset: Dataset, failed: Iterable[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Rows that could not be read as a result lists them: row, name and reason of each."""
    return [{"row": row, "name": _name(dataset, row), "reason": one["cause"]} for row, one in failed]


def unreadable(job: Job, dataset: Dataset) -> list[dict[str, Any]]:
    """The images that cannot be read: row, name and reason of each.

    Raises:
        wellread.Error: there is none that can be read.
    """
    return listed(dataset, failed_rows(sums_of(job, dataset), dataset))


class Checksums(list[dict[str, Any]]):
    """The checksums of the images of a set: for each, in order, row, name, shape_tczyx, dtype and sha256."""

    def __init__(self, sums: Iterable[dict[str, Any]], cluster: dict[str, Any]) -> None:
        super().__init__(sums)
        self._cluster = cluster

    @property
    def cluster(self) -> dict[str, Any]:
        """The work of the nodes, as the result of :func:`verify` has it."""
        return self._cluster


def checksum(
    path: Path | Sequence[Path] | Dataset,
    *,
    on_error: str = "raise",
    resume: bool = False,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Checksums:
    """The SHA-256 of every image's pixels, as ``wellread checksum --json`` prints it.

    Args:
        path: the set, which every node can open; or a :class:`wellread.Dataset`, for options of opening.
        on_error: what becomes of images that cannot be read. "raise" fails at the first. "skip" leaves them out, and
            a warning lists them.
        resume: keeps on this machine what nodes have found, and continues from what an interrupted call for the same
            set has left, on any cluster. It repeats tasks that met an image which cannot be read. It repeats all if
            a path has another time or size, or its files have other bytes in all.
        address: the cluster. The default is the one that this process is connected to, then that of ``RAY_ADDRESS``,
            else one that starts on this machine.
        progress: a function that is called as tasks end, with the rows that are done and the rows in all. Rows count
            each time that they are read, and those of a second pass are added when it begins.

    Returns:
        A list with a dictionary for each image, in order: row, name, shape_tczyx, dtype and sha256. Its attribute
        ``cluster`` has the work of the nodes.

    Raises:
        ImportError: Ray is not installed.
        wellread.Error: the first row that cannot be read.
    """
    skips = _check.word("on_error", on_error, ON_ERROR) == "skip"
    job = Job(address, resume=_check.truth("resume", resume), progress=progress)
    dataset = _sets.of(path)
    text = sums_of(job, dataset)
    failed = failed_rows(text, dataset) if skips else []
    if not skips:
        _native.check_read(text)
    if failed:
        lines = [f"row {one['row']}: {one['name']}: {one['reason']}" for one in listed(dataset, failed)]
        warn(f"{dataset.path}: images are left out: " + "; ".join(lines))
    job.finish()
    left_out = {row for row, _ in failed}
    return Checksums((one for row, one in enumerate(json.loads(text)) if row not in left_out), job.summary())


def verify(
    path: Path | Sequence[Path] | Dataset,
    against: Path | Sequence[Path] | Dataset | None = None,
    *,
    ignore: str | Sequence[str] = (),
    resume: bool = False,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Reads every pixel of a set, and compares it, as ``wellread verify --json`` does.

    Args:
        path: the set, as for :func:`checksum`.
        against: expected checksums (a JSON file), or another set of the same images in any format.
        ignore: "order", "names" or both: what may differ.
        resume: as for :func:`checksum`, for both sets.
        address: the cluster, as for :func:`checksum`.
        progress: a function that is told of rows, as for :func:`checksum`; those of `against` are read first.

    Returns:
        What the command says: ``passed``, ``images``, ``expected``, ``problems``, ``differences``, ``summary`` …, and
        in ``cluster`` the work of the nodes. An image that cannot be read or differs is a problem and no exception.

    Raises:
        ImportError: Ray is not installed.
        wellread.Error: a set that cannot be opened; a row of `against` that cannot be read.
    """
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    for word in ignored:
        _check.word("ignore", word, IGNORED)
    job = Job(address, resume=_check.truth("resume", resume), progress=progress)
    dataset = _sets.of(path)
    other: Dataset | None = None
    expected: str | None = None
    if _is_list(against):
        # Before any image is read: a file of something else is told at once.
        expected = _native.expected_sums(against)
    elif against is not None:
        other = _sets.of(against)
        expected = sums_of(job, other)
    sums = sums_of(job, dataset)
    text = _native.verify_sums(
        dataset._native,
        sums,
        expected,
        None if other is None else other._native,
        "order" in ignored,
        "names" in ignored,
    )
    job.finish()
    return json.loads(text) | {"cluster": job.summary()}


def _is_list(against: Any) -> TypeGuard[Path]:
    """Whether what is compared with is a list of checksums."""
    if not isinstance(against, (str, os.PathLike)):
        return False
    return os.fspath(against).lower().endswith(".json") and os.path.isfile(against)


def names_task(job: tuple[_sets.Recipe, list[Sequence[int]]]) -> tuple[list[str], int]:
    """Names of the channels of some rows, one group after the other."""
    how, units = job
    native = _sets.opened(how)._native
    return [_native.row_names(native, list(rows)) for rows in units], 0


def stats_task(job: tuple[_sets.Recipe, list[tuple[Sequence[int], int, str]]]) -> tuple[list[str], int]:
    """Counts of some rows, one group after the other."""
    how, units = job
    native = _sets.opened(how)._native
    texts = [_native.partial_stats(native, list(rows), first, order, 1) for rows, first, order in units]
    return texts, sum(len(rows) for rows, _, _ in units)


def _short(rows: Sequence[int]) -> Sequence[int]:
    """Rows as a task is sent them: a range where they follow one another."""
    follow = range(rows[0], rows[0] + len(rows))
    return follow if rows == follow or rows == list(follow) else rows


def _packed(groups: Sequence[Sequence[int]], most: int, group: int) -> list[list[tuple[int, Sequence[int]]]]:
    """Rows of groups, cut where rows are read together, in tasks of about so many rows: (number of the group, rows)
    of each."""
    tasks: list[list[tuple[int, Sequence[int]]]] = []
    room = 0
    for number, rows in enumerate(groups):
        for start, end in _sets.ranges(len(rows), most, group):
            if end - start > room or not tasks:
                tasks.append([])
                room = max(group, most)
            tasks[-1].append((number, _short(rows[start:end])))
            room -= end - start
    return tasks


def _order_of(order: dict[str, Any], rows: Iterable[int]) -> str:
    """The part of an order of channels for some rows. Most of its text may be rows whose channels stand elsewhere."""
    moved = order["moved"]
    return json.dumps(order | {"moved": {row: moved[row] for row in map(str, rows) if row in moved}})


def stats_text(job: Job, dataset: Dataset, by: Sequence[str] | None, percentiles: Sequence[float]) -> str:
    """The file of statistics."""
    _native.check_one_kind(dataset._native, False)
    grouped: list[tuple[list[str | None], Sequence[int]]] = [([], range(len(dataset)))]
    if by:
        grouped = [*_native.group_rows(dataset._native, list(by))]
    if not len(dataset):
        raise Error(f"{dataset.path}: there are no images to compute statistics of", path=dataset.path)
    if job.total is not None:
        job.total(len(dataset))
    how = _sets.recipe(dataset, job.kept is not None)
    tasks = _packed([rows for _, rows in grouped], *job.rows_per_task(dataset))
    named: list[list[str]] = [[_native.row_names(dataset._native, list(rows[:1]))] for _, rows in grouped]
    are_named = [any(name for names in json.loads(text)["lists"] for name in names) for (text,) in named]
    if any(are_named):
        # In which order channels stand may differ from image to image, and decides which are counted together.
        answers = job.run(names_task, [(how, [rows for _, rows in units]) for units in tasks])
        for units, texts in zip(tasks, answers, strict=True):
            for (number, _), text in zip(units, texts, strict=True):
                named[number].append(text)
        # The first row is among the others.
        named = [texts[1:] for texts in named]
    firsts = [rows[0] for _, rows in grouped]
    orders = [
        _native.channel_order(rows[0], texts) if is_named else _native.channel_order_of(dataset._native, list(rows))
        for (_, rows), texts, is_named in zip(grouped, named, are_named, strict=True)
    ]
    sums = [_native.StatsSum() for _ in grouped]
    left = Counter(number for units in tasks for number, _ in units)
    parsed = [json.loads(order) for order in orders]
    jobs = [
        (how, [(rows, firsts[number], _order_of(parsed[number], rows)) for number, rows in units]) for units in tasks
    ]
    for units, texts in zip(tasks, job.run(stats_task, jobs), strict=True):
        for (number, _), text in zip(units, texts, strict=True):
            sums[number].add(text)
            left[number] -= 1
            if not left[number]:
                # The counts of a group take much more memory than what they come to, and groups come one by one.
                sums[number].finish(orders[number], list(percentiles))
    found = [(key, counted) for (key, _), counted in zip(grouped, sums, strict=True)]
    return _native.finish_stats(list(by) if by else None, found)


def stats(
    path: Path | Sequence[Path] | Dataset,
    *,
    by: str | Sequence[str] | None = None,
    percentiles: Sequence[float] = PERCENTILES,
    out: Path | None = None,
    on_error: str = "raise",
    resume: bool = False,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Each channel's mean, deviation, extremes, percentiles and histogram, to the bit as ``wellread stats`` finds
    them on one machine.

    Args:
        path: the set, as for :func:`checksum`.
        by: columns beside the images, such as "Metadata_Plate": statistics of each group that agrees in them.
        percentiles: which, from 0 to 100.
        out: a file to write them to, which loaders normalise by: ``normalize="stats.json"``.
        on_error: what becomes of images that cannot be read. "raise" fails at the first. "skip" leaves them out, and
            reads each image twice.
        resume: as for :func:`checksum`.
        address: the cluster, as for :func:`checksum`.
        progress: a function that is told of rows, as for :func:`checksum`.

    Returns:
        What the command prints with ``--json``, and in ``cluster`` the work of the nodes. With ``on_error="skip"``,
        ``skipped`` lists the images that were left out.

    Raises:
        ImportError: Ray is not installed.
        wellread.Error: the first row that cannot be read, images of several pixel types, or missing columns.
    """
    columns = [by] if isinstance(by, str) else None if by is None else [_check.text("by", one) for one in by]
    percents = [_check.real(f"percentiles[{i}]", one, 0, 100) for i, one in enumerate(percentiles)]
    target = None if out is None else _check.path("out", out)
    skips = _check.word("on_error", on_error, ON_ERROR) == "skip"
    job = Job(address, resume=_check.truth("resume", resume), progress=progress)
    dataset = _sets.of(path)
    text, failed = stats_of_readable(job, dataset, columns, percents, skips)
    if target is not None:
        _write(target, text + "\n")
    job.finish()
    skipped = {"skipped": listed(dataset, failed)} if skips else {}
    return json.loads(text) | skipped | {"cluster": job.summary()}


def stats_of_readable(
    job: Job, dataset: Dataset, by: Sequence[str] | None, percentiles: Sequence[float], skips: bool
) -> tuple[str, list[tuple[int, dict[str, Any]]]]:
    """The file of statistics, and the rows that it leaves out since they cannot be read."""
    failed = failed_rows(sums_of(job, dataset), dataset) if skips else []
    if failed:
        dataset = _sets.without(dataset, [row for row, _ in failed])
    return stats_text(job, dataset, by, percentiles), failed


def _write(path: str, text: str) -> None:
    """Writes a file, whole or not at all. It has the mode of the one that it replaces, or that of any new file. The
    umask of the process is not touched, since other threads write files by it."""
    place = os.path.realpath(path)
    folder = os.path.dirname(place)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".wellread-partial-{uuid.uuid4().hex}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if os.path.isfile(place):
            shutil.copymode(place, temporary)
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise
