"""``convert``: a set in another format, written by all nodes at once.

ranges of rows ──tasks──▶ parts, each read back ──in order──▶ one set, moved to its place
                            └ of an interrupted run: kept where they hold what they should
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy

from .. import __version__, _check, _native
from .._types import Path
from ..dataset import Dataset
from ..errors import ChoiceError, Error
from . import _cluster, _sets
from ._job import Job
from ._whole import ON_ERROR, unreadable
from ._write import format_of, options

# Bytes of pixels in a part at most, and parts at least, as far as images are enough: the parts of a set are the same
# on any cluster, so that another one can go on with them.
PART_BYTES = 256 << 20
PARTS = 64
LEAST_ROWS = 16


def part_task(job: tuple[Any, ...]) -> tuple[tuple[int, bool], int]:
    """Writes a range of rows as a part: bytes of pixels, and whether an interrupted run had left it."""
    how, start, end, path, format, choices, memory, check, resume = job
    images = _sets.opened(how)._native.select(list(range(start, end)))
    if resume and _native.part_holds(images, path, format, choices):
        return (0, True), end - start
    return (_native.write_part(images, path, format, choices, memory, check), False), end - start


def rows_of_a_part(dataset: Dataset) -> int:
    """Rows of a part, whatever the cluster. A part of more rows than are read together begins where such rows do, so
    that no other task reads them, too."""
    shape, dtype = dataset._native.info(0)
    size = math.prod(shape) * numpy.dtype(dtype).itemsize
    most = max(1, PART_BYTES // max(1, size))
    rows = min(most, max(LEAST_ROWS, -(-len(dataset) // PARTS)))
    group = _native.row_group(dataset._native)
    return rows // group * group if rows > group else rows


def converted(
    job: Job,
    dataset: Dataset,
    target: str,
    format: str,
    choices: dict[str, Any],
    *,
    overwrite: bool,
    resume: bool,
    verify: bool,
    mixed: bool,
    memory: int,
    rows_per_part: int | None,
) -> dict[str, Any]:
    """Writes all of a set; what came of it."""
    if not len(dataset):
        raise Error(f"{dataset.path}: there is no image to convert", path=dataset.path)
    if not mixed:
        _native.check_one_kind(dataset._native, True)
    choices = choices | {"types": _native.types_of(dataset._native) if _native.is_table_format(format) else []}
    rows = rows_of_a_part(dataset) if rows_per_part is None else rows_per_part
    ranges = list(_sets.ranges(len(dataset), rows, 1))
    how = _sets.recipe(dataset)
    note = {
        "source": dataset.path,
        "images": len(dataset),
        "stamp": how.stamp,
        "format": format,
        "options": choices,
        "rows_per_part": rows,
        "wellread": __version__,
        "on": "ray",
    }
    parts = _native.Parts(target, format, overwrite, json.dumps(note) if resume else None)
    try:
        names = [parts.part_name(number) for number in range(len(ranges))]
        jobs = [
            (how, start, end, parts.part(name), format, choices, memory, verify, resume)
            for name, (start, end) in zip(names, ranges, strict=True)
        ]
        if job.total is not None:
            job.total(len(dataset))
        written, resumed = 0, 0
        # Whatever ends this, no task writes any more when what they wrote goes.
        with closing(job.run(part_task, jobs)) as answers:
            for (start, end), (size, was_there) in zip(ranges, answers, strict=True):
                written += size
                resumed += end - start if was_there else 0
        images = parts.commit(names, choices, dataset._native)
    except BaseException:
        _give_up(parts, resume)
        raise
    return {
        "source": dataset.path,
        "source_format": dataset.format,
        "target": target,
        "format": format,
        "images": images,
        "parts": len(ranges),
        "bytes_of_pixels_written": written,
        "images_resumed": resumed,
        "verified": verify,
        "cluster": job.summary(),
    }


def apart(source: str, target: str) -> None:
    """Refuses to write into the source, or over a folder that holds it.

    Raises:
        wellread.ChoiceError: one lies in the other.
    """
    pair = [path if _native.is_address(path) else os.path.realpath(path) for path in (source, target)]
    one, other = (path.rstrip("/") + "/" for path in pair)
    if one.startswith(other) or other.startswith(one):
        raise ChoiceError(
            f"{target}: lies in the source, or the source in it; choose a target elsewhere", path=target
        )


def _give_up(parts: _native.Parts, resume: bool) -> None:
    """Leaves what was written to a later call, or removes it: whoever keeps the traceback must not keep the lock."""
    try:
        if resume:
            parts.keep()
        else:
            parts.discard()
    except ValueError:
        # What failed was the last step, which had done so.
        return


def convert(
    source: Path | Sequence[Path] | Dataset,
    target: Path,
    *,
    format: str | None = None,
    compression: str = "default",
    chunk: Sequence[int] | None = None,
    shard: Sequence[int] | None = None,
    tune: str = "random",
    variant: str | None = None,
    checksums: bool = True,
    overwrite: bool = False,
    resume: bool = False,
    verify: bool = True,
    mixed: bool = False,
    on_error: str = "raise",
    memory: int = 1 << 30,
    rows_per_part: int | None = None,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Converts a set of images into another format, as ``wellread convert --on ray`` does.

    For TIFF, OME-Zarr and PNG, whose images have files of their own, the target equals that of one machine to the
    byte. For tables it is a folder of parts, each of which is the table that one machine writes for those rows. The
    folder opens as one set, with the same images, names and columns in the same order. For Lance it is one dataset:
    tasks write its fragments, and the driver commits them as one version.

    Args:
        source: the set, which every node can open; or a :class:`wellread.Dataset`, for options of opening.
        target: the place to write, on storage that all nodes share, or in a bucket. It appears when it is complete.
        format: the format; by default the ending of the target's name decides.
        compression, chunk, shard, tune, variant, checksums: as of ``wellread convert``.
        overwrite: replaces a set that is there.
        resume: keeps the complete parts when interrupted, and continues from those that an earlier call with the same
            arguments has left, on any cluster. It compares these parts with the source.
        verify: reads back each part and compares it with the source.
        mixed: takes images of several pixel types, or images and masks, into one set.
        on_error: what becomes of images that cannot be read. "raise" fails at the first. "skip" leaves them out, and
            reads each image twice: the set must be known before it is written.
        memory: bytes of pixels that wait in a task between reading and writing.
        rows_per_part: images of a part. The default is a 64th of all, 256 MiB at most, and whole row groups of the
            source where a part is larger than one.
        address: the cluster. The default is the one that this process is connected to, then that of ``RAY_ADDRESS``,
            else one that starts on this machine.
        progress: a function that is called as tasks end, with the rows that are done and the rows in all. Rows count
            twice if they are read twice; those of the second time are added when it begins.

    Returns:
        A summary: images, parts, bytes, and images that an interrupted run had left. ``cluster`` has the seconds and
        images per second of each node, and the slowest node. ``skipped`` lists the images that were left out.

    Raises:
        ImportError: Ray is not installed.
        wellread.Error: the first row that cannot be read or written. Nothing is left then, unless ``resume``.
    """
    place = _cluster.absolute(_check.path("target", target))
    known = format_of(place, format)
    choices = options(compression, chunk, shard, tune, variant, checksums)
    dataset = _sets.of(source)
    # Not the folder that several sets have in common: the target may well lie beside them.
    for path in dataset._given:
        apart(path, place)
    # Checked before the cluster is asked for anything: it may look at all images first.
    skips = _check.word("on_error", on_error, ON_ERROR) == "skip"
    how: dict[str, Any] = {
        "overwrite": _check.truth("overwrite", overwrite),
        "resume": _check.truth("resume", resume),
        "verify": _check.truth("verify", verify),
        "mixed": _check.truth("mixed", mixed),
        "memory": _check.whole("memory", memory, 1),
        "rows_per_part": None if rows_per_part is None else _check.whole("rows_per_part", rows_per_part, 1),
    }
    job = Job(address, progress=progress)
    skipped = unreadable(job, dataset) if skips else []
    if skipped:
        dataset = _sets.without(dataset, [image["row"] for image in skipped])
    result = converted(job, dataset, place, known, choices, **how)
    return result | {"images_skipped": len(skipped), "skipped": skipped}
