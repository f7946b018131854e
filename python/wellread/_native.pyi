"""The native module: bindings over the Rust crates. Use the package; what is here may change."""

import builtins
from collections.abc import Callable, Iterator
from typing import Any, final

__version__: str

def formats() -> list[str]:
    """Names of the storage formats of this build."""

def parse_bytes(text: str) -> int:
    """Bytes of an amount of memory, such as "512MiB"."""

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
    ) -> Dataset: ...
    @staticmethod
    def from_arrow(stream: Any, column: str | None = None) -> Dataset: ...
    def cells(self, table: str, choices: dict[str, Any]) -> Dataset: ...
    def with_columns(self, stream: Any, on: list[str], nulls: bool) -> Dataset: ...
    def select(self, rows: list[int]) -> Dataset: ...
    @staticmethod
    def concat(sets: list[Dataset]) -> Dataset: ...
    def parts(self) -> list[tuple[str, int, int]]: ...
    def part_weights(self, shares: list[float]) -> list[float]: ...
    def cells_report(self) -> str | None: ...
    def arrow_stream(self) -> Any: ...
    def __len__(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def format(self) -> str: ...
    def mask_among_files(self) -> tuple[str, str] | None: ...
    def strays(self) -> tuple[str, str] | None: ...
    def info(self, row: int) -> tuple[list[int], str]: ...
    def alike(self, rows: list[int]) -> bool: ...
    def split(
        self, fractions: list[float], columns: list[str] | None, keys: list[str] | None, seed: int
    ) -> list[list[int]]: ...
    def name(self, row: int) -> str: ...
    def metadata(self, row: int) -> str: ...
    def read(self, rows: list[int], region: tuple[list[int], list[int]] | None = None) -> Batch: ...
    def layout(self) -> dict[str, Any]: ...
    def cache_report(self) -> dict[str, int]: ...
    def column(self, name: str) -> tuple[bytes, str, bytes | None] | list[str | None]: ...
    def column_names(self) -> list[str]: ...

@final
class Lent:
    """Memory of equal size that is waiting for a batch. Its owner keeps what it lends alive."""

    def __new__(cls) -> Lent: ...
    def lend(self, address: int) -> None: ...
    def withdraw(self, batches: int) -> list[int]: ...

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
    def set_epoch(self, epoch: int) -> None: ...
    def forget_pages(self) -> None: ...
    def rows(self, epoch: int) -> list[int]: ...
    def run(self) -> Batches: ...
    def state(self, epoch: int, position: int) -> str: ...
    def resume(self, state: str, turn: int = 0, turns: int = 1) -> Batches: ...

@final
class Batches(Iterator[Any]):
    """The batches of one epoch, in order."""

    def __iter__(self) -> Batches: ...
    def __next__(self) -> Batch | list[Batch] | tuple[int, list[Any], list[int]]: ...
    def next_from(self, from_dlpack: Callable[[Any], Any]) -> Any | None:
        """What `from_dlpack` makes of a capsule of the next batch; None at the end."""
    def __length_hint__(self) -> int: ...
    def progress(self) -> tuple[int, int] | None: ...
    def skipped(self) -> tuple[int, list[tuple[int, str]]]: ...
    def close(self) -> None: ...
