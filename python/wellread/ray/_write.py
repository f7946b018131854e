"""``write``: a :class:`ray.data.Dataset` as a set of images: tasks write parts, and the driver makes one set of them.

driver: Parts(target) ──folder──▶ write task: a part for each block, of a name that no other attempt has
                                      │ (first row, part) in the task's result
driver: parts in the order of rows ◀──┘ ──Parts.commit──▶ the set; parts of attempts that failed go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _check, _native
from .._types import Path
from ..errors import ChoiceError, Error
from . import _cluster, _write_blocks

if TYPE_CHECKING:
    import ray.data

TUNES = ("random", "scan", "size", "reference")


def options(
    compression: str = "default",
    chunk: Sequence[int] | None = None,
    shard: Sequence[int] | None = None,
    tune: str = "random",
    variant: str | None = None,
    checksums: bool = True,
) -> dict[str, Any]:
    """Choices of writing for the native module."""

    def sizes(name: str, value: Sequence[int] | None) -> list[int] | None:
        if value is None:
            return None
        found = [_check.whole(f"{name}[{i}]", one) for i, one in enumerate(value)]
        if len(found) != 5:
            raise ValueError(f"{name} must be 5 numbers (T, C, Z, Y, X), not {len(found)}")
        return found

    return {
        "compression": _check.text("compression", compression),
        "chunk": sizes("chunk", chunk),
        "shard": sizes("shard", shard),
        "tune": _check.word("tune", tune, TUNES),
        "variant": None if variant is None else _check.text("variant", variant),
        "checksums": _check.truth("checksums", checksums),
        "jobs": 1,
        "types": [],
    }


def format_of(target: str, format: str | None) -> str:
    """The format to write: as it is named, or by the ending of the target's name.

    Raises:
        wellread.ChoiceError: the name tells none.
    """
    found = _native.format_of_name(target) if format is None else _check.text("format", format)
    if found is None:
        known = ", ".join(_native.formats())
        raise ChoiceError(
            f"{target}: cannot tell the format from the name; pass format= with one of {known}", path=target
        )
    _native.is_table_format(found)
    return found


def write(
    dataset: ray.data.Dataset,
    path: Path,
    *,
    format: str | None = None,
    image: str = "image",
    name: str | None = "name",
    channels: Sequence[str] = (),
    overwrite: bool = False,
    verify: bool = True,
    compression: str = "default",
    chunk: Sequence[int] | None = None,
    shard: Sequence[int] | None = None,
    tune: str = "random",
    variant: str | None = None,
    checksums: bool = True,
    concurrency: int | None = None,
    ray_remote_args: Mapping[str, Any] | None = None,
) -> None:
    """Writes a :class:`ray.data.Dataset` as a set of images, by all nodes at once. The set appears when it is
    complete. A task that Ray runs again writes its part once more, and one of the two counts.

    Args:
        dataset: rows with an image each, (Y, X), (C, Y, X) or (T, C, Z, Y, X). Blocks are put in the
            order of their first rows if a column ``row`` has numbers, as :func:`read` gives it. Else their order is
            that of Ray's tasks. All other columns of plain values stand beside the images, where the format keeps
            them.
        path: the target, on storage that all nodes share, or in a bucket. For tables (Parquet, Vortex …) it is a
            folder of them, which opens as one set. For Lance it is one dataset: tasks write its fragments, and the
            driver commits them as one version. It writes rows again only if blocks have unlike columns. For TIFF,
            OME-Zarr and PNG it is a folder of images as one writer makes it. A warning names columns that the format
            does not keep.
        format: the format; by default the ending of the path decides.
        image, name: the columns of images and of their names; with ``name=None`` images are called by their rows.
        channels: names of the channels.
        overwrite: replaces a set that is there.
        verify: reads back each part before it counts.
        compression, chunk, shard, tune, variant, checksums: as of ``wellread convert``.
        concurrency, ray_remote_args: as of :meth:`ray.data.Dataset.write_datasink`.

    Raises:
        ImportError: Ray Data is not installed.
        wellread.Error: images that cannot be written, or a target that is there. Nothing is left then.
        KeyError: the dataset has no such column.
    """
    _cluster.data()
    from ._datasink import WellreadDatasink

    target = _cluster.absolute(_check.path("path", path))
    known = format_of(target, format)
    choices = options(compression, chunk, shard, tune, variant, checksums)
    sink = WellreadDatasink(
        target,
        known,
        choices,
        image=_check.text("image", image),
        name=None if name is None else _check.text("name", name),
        channels=[_check.text("channels", channel) for channel in channels],
        verify=_check.truth("verify", verify),
    )
    replaces = _check.truth("overwrite", overwrite)
    how = {"concurrency": concurrency, "ray_remote_args": dict(ray_remote_args or {}) or None}
    try:
        _write_blocks.begin(sink, replaces)
        dataset.write_datasink(sink, **{key: value for key, value in how.items() if value is not None})
        if _write_blocks.is_begun(sink):
            # Ray tells nobody of a dataset without rows.
            raise Error(f"{target}: there is no image to write", path=target)
    finally:
        _write_blocks.discard(sink)
