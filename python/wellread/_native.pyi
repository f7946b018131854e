"""The native module: bindings over the Rust crates. Use the package; this module may change."""

import builtins
import os
from collections.abc import Callable, Iterator
from typing import Any, final

__version__: str

def formats() -> list[str]:
    """Names of the storage formats of this build."""

def is_address(path: str) -> bool:
    """Whether a path is an address, such as "s3://bucket/plate.parquet", and none of the file system."""

def misspelt_fields(pattern: str) -> list[tuple[str, str]]:
    """Fields of a pattern that are columns of their own, and nearly called like a known one: each with that one."""

def missing_column(name: str, there: list[str]) -> str:
    """The message about a column that is not beside the images, with those that may have been meant."""

def parse_bytes(text: str) -> int:
    """Bytes of an amount of memory, such as "512MiB"."""

def marks(dataset: Dataset) -> str:
    """The marks of a set, as text for a process that opens it again: they tell it from another one at its path."""

def check_marks(dataset: Dataset, marks: str) -> None:
    """Raises an error where a set that was opened again has other rows than a text of `marks` tells."""

def remember(dataset: Dataset) -> None:
    """Has ready what a process that is forked later compares the set with that it opens."""

def are_in_other_order(dataset: Dataset, names: list[str]) -> bool:
    """Whether these texts name each image of a set once, in another order than the set's."""

def row_group(dataset: Dataset) -> int:
    """Rows that are read together; ranges of rows begin at a multiple of it."""

def checksums(dataset: Dataset, start: int, end: int, jobs: int) -> str:
    """The results of the rows from one up to another, as JSON: a list with a digest or an error for each."""

def check_read(sums: str) -> None:
    """Raises the error of the first row, in a text of `checksums`, that could not be read."""

def expected_sums(path: str | os.PathLike[str]) -> str:
    """The checksums in a file (a list, or an object with one under ``images``), as JSON."""

def verify_sums(
    dataset: Dataset, sums: str, expected: str | None, other: Dataset | None, any_order: bool, any_names: bool
) -> str:
    """The document of ``wellread verify --json`` for a set whose rows were read before."""

def types_of(dataset: Dataset) -> list[str]:
    """Names of the pixel types of a set, each once."""

def check_one_kind(dataset: Dataset, types: bool) -> None:
    """Raises an error where masks are among the images; with `types`, also where images are of several types."""

def group_rows(dataset: Dataset, by: list[str]) -> list[tuple[list[str | None], list[int]]]:
    """Values of the columns and rows of each group of a set."""

def row_names(dataset: Dataset, rows: list[int]) -> str:
    """Names of the channels of these rows, as JSON."""

def channel_order(first: int, names: list[str]) -> str:
    """The order of channels of rows, as JSON, from texts of `row_names`; `first` is the first of the rows."""

def channel_order_of(dataset: Dataset, rows: list[int]) -> str:
    """The order of channels of rows, as JSON, where the first of them has no names."""

def partial_stats(dataset: Dataset, rows: list[int], first: int, order: str, jobs: int) -> str:
    """Counts of these rows, as JSON."""

def finish_stats(by: list[str] | None, groups: list[tuple[list[str | None], StatsSum]]) -> str:
    """The file of statistics, as JSON: of each group that the columns `by` tell, or of the one group. The sums were
    finished."""

def from_images(images: list[tuple[str, list[int], str, bytes]], channels: list[str]) -> Dataset:
    """Images in memory as a set: name, shape (T, C, Z, Y, X), type and pixels of each, and their channels' names."""

def with_profiles(dataset: Dataset, table: str, on: str, columns: list[str]) -> Dataset:
    """A set with the columns of a table of profiles beside its images, as ``wellread convert --join`` puts them."""

def format_of_name(name: str) -> str | None:
    """The format that a target's name tells of by its ending."""

def is_table_format(format: str) -> bool:
    """Whether a format is one of tables, which hold images and columns in a file."""

def write_part(dataset: Dataset, path: str, format: str, options: dict[str, Any], memory: int, check: bool) -> int:
    """Writes all images of a set as the part at `path`; with `check` it is read back. The bytes of their pixels."""

def part_holds(dataset: Dataset, path: str, format: str, options: dict[str, Any]) -> bool:
    """Whether the part at `path` holds the images of a set, pixels and all. Other names of channels are an error."""

@final
class StatsSum:
    """Statistics that are being put together."""

    def __new__(cls) -> StatsSum: ...
    def add(self, text: str) -> None:
        """Adds a text of `partial_stats`, of the rows that follow."""
    def finish(self, order: str, percents: list[float]) -> None:
        """Makes the statistics of what was added, in whose place they are kept; `order` is that of the channels."""

@final
class Parts:
    """A set that is being written in parts."""

    def __new__(cls, target: str, format: str, overwrite: bool, resume: str | None) -> Parts: ...
    def part(self, name: str) -> str:
        """Where a part of this name is written."""
    def part_name(self, number: int) -> str:
        """The name of a part by its number."""
    @property
    def ending(self) -> str:
        """The ending of the parts' names."""
    @property
    def joins(self) -> bool:
        """Whether parts become one table when the set is made of them."""
    @property
    def keeps_columns(self) -> bool:
        """Whether columns of all images stand beside files of images."""
    def commit(self, parts: list[str], options: dict[str, Any], source: Dataset | None) -> int:
        """Makes a set of these parts, in this order, at its place. The number of images."""
    def keep(self) -> None:
        """Leaves what was written to a later run that goes on with it; where none does, it goes."""
    def discard(self) -> None:
        """Removes all that was written."""

def trace_start(path: str, about: str) -> None:
    """Begins to record what threads do, for `trace_finish` to write to `path`."""

def trace_finish() -> tuple[int, int] | None:
    """Ends the recording and writes its file: the number of spans, and of those that were not kept."""

@final
class Step:
    """Something the caller does, from where this is made to `end`."""

    def __init__(self) -> None: ...
    def end(self, name: str) -> None:
        """Ends it; on the timeline it is the calling thread's."""

@final
class Batch:
    """Images in memory, C order: what a loader delivers, before a library has made its array of it.

    Implements DLPack, NumPy's array interface and, from CPython 3.12 on, the buffer protocol. All views share the
    memory; it goes back to the loader with the last of them.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes: (N, C, Y, X), or (N, T, C, Z, Y, X) where there is more than one time point or depth."""
    @property
    def dtype(self) -> str:
        """Name of the numbers' type: "float32", "uint16", "bfloat16" …"""
    @property
    def nbytes(self) -> int:
        """Bytes of all pixels."""
    @property
    def address(self) -> int:
        """Address of the first pixel, a multiple of 64."""
    @property
    def readonly(self) -> bool:
        """Whether views are told not to write."""
    @property
    def rows(self) -> list[int]:
        """The dataset's row of each image."""
    @property
    def index(self) -> int | None:
        """Which batch of its epoch it is, from 0; None for images that were read by themselves."""
    @property
    def epoch(self) -> int | None:
        """The epoch that it belongs to; None for images that were read by themselves."""
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def toreadonly(self) -> Batch:
        """The same memory, whose views are told not to write."""
    def bits(self) -> Batch:
        """The same memory seen as uint16: for libraries without bfloat16."""
    def memoryview(self) -> builtins.memoryview:
        """The pixels as a memoryview of their shape (halves as bytes), by the buffer protocol."""
    def __buffer__(self, flags: int, /) -> builtins.memoryview: ...
    def __jax_array__(self) -> Any:
        """A JAX array over the same memory, or over a copy of read-only memory: ``jax.numpy.asarray(batch)``."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the pixels are: (1, 0), memory of the host."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over the same memory: versioned when `max_version` is (1, 0) or later.

        Raises BufferError for a device other than the host and, of read-only pixels, for consumers before DLPack 1.0.
        """

@final
class Dataset:
    """A set of images. Rows are checked by the package."""

    def __new__(
        cls,
        path: str | list[str],
        *,
        format: str | None = None,
        table: str | None = None,
        column: str | None = None,
        level: int = 0,
        cache: str | None = None,
        layout: str | None = None,
        pattern: str | None = None,
        missing: str | None = None,
        unmatched: str | None = None,
        path_map: list[tuple[str, str]] | None = None,
        skip_null: bool = False,
        in_color: bool = False,
    ) -> Dataset: ...
    @staticmethod
    def from_arrow(stream: Any, column: str | None = None, skip_null: bool = False) -> Dataset: ...
    def cells(self, table: Any, choices: dict[str, Any], masks: Dataset | None) -> Dataset: ...
    def with_columns(
        self, stream: Any, on: list[str], nulls: bool, index: list[str] | None = None
    ) -> tuple[Dataset, list[tuple[str, str]], tuple[str | None, str | None, bool]]: ...
    def select(self, rows: list[int]) -> Dataset: ...
    @staticmethod
    def concat(sets: list[Dataset]) -> Dataset: ...
    def parts(self) -> list[tuple[str, list[tuple[int, int]]]]: ...
    def names_begin_with_parts(self) -> bool: ...
    def part_weights(self, shares: list[float]) -> list[float]: ...
    def cells_report(self) -> str | None: ...
    def are_cut(self) -> bool: ...
    def arrow_stream(self) -> Any: ...
    def __len__(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def format(self) -> str: ...
    def mask_among_files(self) -> tuple[str, str] | None: ...
    def unmatched_names(self) -> tuple[str, str, bool] | None: ...
    def images_without_row(self) -> str | None: ...
    def unused_table(self) -> str | None: ...
    def info(self, row: int) -> tuple[list[int], str]: ...
    def alike(self, rows: list[int], each_file: bool = False) -> bool: ...
    def split(
        self, fractions: list[float], columns: list[str] | None, keys: list[str | None] | None, seed: int
    ) -> list[list[int]]: ...
    def name(self, row: int) -> str: ...
    def metadata(self, row: int) -> str: ...
    def mask_channels(self) -> list[tuple[int, str]]: ...
    def mixed_channels(
        self, rows: list[int] | None, channels: list[int] | None, most: int
    ) -> tuple[tuple[str, list[str]], tuple[str, list[str]]] | None: ...
    def read(self, rows: list[int], region: tuple[list[int], list[int]] | None = None) -> Batch: ...
    def layout(self) -> dict[str, Any]: ...
    def first_beyond_cache(self, option: str) -> str | None: ...
    def cache_report(self) -> dict[str, int]: ...
    def column(self, name: str) -> tuple[bytes, str, bytes | None] | list[str | None]: ...
    def columns(self, names: list[str]) -> list[tuple[bytes, str, bytes | None] | list[str | None]]: ...
    def column_names(self) -> list[str]: ...
    def columns_left_out(self) -> list[tuple[str, str]]: ...

@final
class LentMemory:
    """Memory that is waiting for a batch, each piece for one of its size. Its owner keeps what it lends alive."""

    def __new__(cls) -> LentMemory: ...
    def lend(self, address: int, bytes: int) -> None: ...
    def withdraw(self, batches: int, bytes: int) -> list[int]: ...

@final
class Loader:
    """Delivers a dataset in batches, epoch after epoch."""

    def __new__(cls, dataset: Dataset, choices: dict[str, Any], targets: Dataset | None = None) -> Loader: ...
    def __len__(self) -> int: ...
    @property
    def images(self) -> int: ...
    @property
    def image_shape(self) -> list[int]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def arrays(self) -> list[tuple[list[int], str]]: ...
    @property
    def pairing(self) -> str | None: ...
    @property
    def unit_scale(self) -> tuple[float, float]: ...
    @property
    def has_mask(self) -> bool: ...
    @property
    def batch_bytes(self) -> int: ...
    @property
    def prefetch(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def readers(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def traffic(self) -> tuple[int, int]: ...
    def stats(self) -> tuple[int, int, tuple[int, int, float] | None]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def forget_pages(self) -> None: ...
    def rows(self, epoch: int) -> list[int]: ...
    def run(self) -> Batches: ...
    def state(self, epoch: int, position: int, since: str | None = None) -> str: ...
    def resume(self, state: str, turn: int = 0, turns: int = 1) -> Batches: ...

@final
class Batches(Iterator[Any]):
    """The batches of one epoch, in order."""

    def __iter__(self) -> Batches: ...
    def __next__(self) -> Batch | list[Batch] | tuple[int, list[Any], list[int]]: ...
    def next_from(self, from_dlpack: Callable[[Any], Any]) -> Any | None:
        """The next batch, made by `from_dlpack` of a capsule; None at the end."""
    def __length_hint__(self) -> int: ...
    def progress(self) -> tuple[int, int] | None: ...
    def skipped(self) -> tuple[int, list[tuple[int, str]]]: ...
    def close(self) -> None: ...
