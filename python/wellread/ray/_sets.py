"""Sets in tasks: opened once in each process, and cut into ranges of rows.

driver: Dataset ──Recipe (of one job, to each node once)──▶ task: opened() ──▶ the set, as earlier tasks left it
"""

from __future__ import annotations

import os
import pickle
import socket
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .. import __version__, _native
from .. import dataset as _dataset
from .._types import Path
from ..dataset import Dataset
from ..errors import Error
from . import _environment
from ._cluster import absolute

# Sets that a process keeps open.
KEPT = 4
SAME_VERSION = "install the same version of wellread on all nodes"

_opened: OrderedDict[Recipe, Dataset] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class Recipe:
    """How a task opens the set, and what it was like when the job began."""

    # It may have lists of rows and tables in memory. The job tells recipes apart sooner.
    pickled: bytes = field(compare=False)
    stamp: str
    # A process outlives a job, and what it knows of files is of no use to the next: they may be others by then.
    job: str
    version: str
    # Names and values of the environment where the job began.
    environment: tuple[tuple[str, str], ...]


def of(path: Path | Sequence[Path] | Dataset) -> Dataset:
    """The set at `path`, whose paths mean the same on every node. An open one, such as some rows, stays as it is
    but for its paths."""
    if not isinstance(path, Dataset):
        path = Dataset(path)
    if path._made is not None:
        call, (first, *others) = path._made
        if isinstance(first, list):
            return call([of(one) for one in first], *others)
        return call(of(first), *others)
    if path._joined is not None:
        images, *how = path._joined
        return _dataset._with_columns(of(images), *how)
    if path._cut is not None:
        images, table, choices, masks = path._cut
        table = of(table) if isinstance(table, Dataset) else absolute(table) if isinstance(table, str) else table
        choices = choices | {"masks": None if choices["masks"] is None else absolute(choices["masks"])}
        return _dataset._cells_of(of(images), table, choices, None if masks is None else of(masks))
    if path._options is None:
        # In memory: the error of pickling it says what to do.
        return path
    paths = [path._paths] if isinstance(path._paths, str) else path._paths
    whole = [absolute(one) for one in paths]
    if whole == paths:
        return path
    return _dataset._reopened(whole[0] if isinstance(path._paths, str) else whole, path._options)


def with_profiles(images: Dataset, profiles: str, on: str, columns: list[str]) -> Dataset:
    """A set with the columns of a file of profiles beside its images, as ``wellread convert --join`` puts them there.
    A process reads the file when it opens the set, once for a job."""
    dataset = _dataset._beside(images, None, images._cut)
    dataset._made = (with_profiles, (images, profiles, on, columns))
    dataset._native = _native.with_profiles(images._native, profiles, on, columns)
    dataset._length = len(images)
    return dataset


def without(dataset: Dataset, rows: Sequence[int]) -> Dataset:
    """A set without some of its rows. A process is sent these, which are few, and not those that the set has."""
    left_out = set(rows)
    kept = dataset.select([row for row in range(len(dataset)) if row not in left_out])
    kept._made = (without, (dataset, sorted(left_out)))
    return kept


def recipe(dataset: Dataset, is_kept: bool = False) -> Recipe:
    """How tasks open a set. Where answers are kept for a later run, its stamp also has the bytes of all files.

    Raises:
        TypeError: a set in memory, which no other process can open.
    """
    # Of several sets each: their common folder changes with the target beside them, and not with what is in them.
    stamps = ":".join(map(_stamp, _sources(dataset)))
    stamp = f"{len(dataset)}:{stamps}" + (f":{_bytes(dataset)}" if is_kept else "")
    environment = tuple(_environment.told().items())
    return Recipe(pickle.dumps(dataset), stamp, uuid.uuid4().hex, __version__, environment)


def _bytes(dataset: Dataset) -> str:
    """The bytes of the files of a set; nothing where they cannot be told, such as beside a file that is damaged."""
    try:
        return str(dataset._native.layout()["bytes_on_disk"])
    except Error:
        return ""


def _sources(dataset: Dataset) -> Iterator[str]:
    """The paths of the images of a set, and of the table and the masks that its cells are of."""
    if dataset._made is not None:
        of = dataset._made[1][0]
        for one in of if isinstance(of, list) else [of]:
            yield from _sources(one)
    elif dataset._joined is not None:
        yield from _sources(dataset._joined[0])
    elif dataset._cut is not None:
        images, table, choices, masks = dataset._cut
        for one in (images, table, choices["masks"], masks):
            if isinstance(one, Dataset):
                yield from _sources(one)
            elif isinstance(one, str):
                # A file of SQLite may have the name of its table behind it.
                yield one if os.path.exists(one) else one.rpartition(":")[0]
    else:
        yield from dataset._given


def _stamp(path: str) -> str:
    # Of what a bucket holds, whoever opens it anew looks again; of a folder it tells what was put into it or removed.
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"


def opened(how: Recipe) -> Dataset:
    """The set, which this process opens once for a job.

    Raises:
        wellread.Error: it cannot be opened here, or has other images than where the job began; the node has another
            version of wellread.
    """
    with _lock:
        known = _opened.get(how)
        if known is not None:
            _opened.move_to_end(how)
            return known
        if how.version != __version__:
            versions = f"{socket.gethostname()} has wellread {__version__}, and the job began with {how.version}"
            raise Error(f"{versions} (hint: {SAME_VERSION})", hint=SAME_VERSION)
        _environment.take(dict(how.environment))
        try:
            dataset: Dataset = pickle.loads(how.pickled)
        except Error as error:
            hint = "all nodes must see the same files, which nobody changes meanwhile"
            raise Error(f"on {socket.gethostname()}: {error}; {hint}", path=error.path, hint=hint) from error
        _opened[how] = dataset
        while len(_opened) > KEPT:
            # Who still reads of it keeps it open.
            _opened.popitem(last=False)
        return dataset


def ranges(rows: int, most: int, group: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `most` rows, each of which begins at a multiple of `group`."""
    step = max(group, most // group * group)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def rows_of_a_task(dataset: Dataset, tasks: int) -> tuple[int, int]:
    """Rows for each of so many tasks, and the rows that are read together."""
    group = _native.row_group(dataset._native)
    return -(-len(dataset) // max(1, tasks)), group
