"""The readers of images: one entry per reader, its class imported when it is used.

A reader is made from a path and a `Finish`, has a length, and gives `reader[i]` as float32. It may have
`native(i)`, the stored TCZYX pixels, and `take(rows)`, many images by one call to its library. `fork_safe = False`
says that a forked process must not use what was opened before.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reader:
    """A reader's registration."""

    name: str
    """Name in tables and of `--loaders`."""
    formats: tuple[str, ...] | None
    """Formats it reads; `None` for whatever wellread reads."""
    where: str
    """`module:Class` in this package."""
    packages: tuple[tuple[str, str], ...]
    """Modules that it imports, as (module, how to get it)."""
    about: str
    """One line."""

    def load(self) -> Any:
        """Import its class."""
        module, name = self.where.split(":")
        return getattr(importlib.import_module(f".{module}", __name__), name)


PYARROW = ("pyarrow.parquet", "pip install pyarrow")
# Engines hand over Arrow arrays.
ARROW = ("pyarrow", "pip install pyarrow")
PARQUET = ("parquet", "parquet-default")
WELLREAD = (("wellread", "pip install . (in a clone of wellread)"),)

READERS = (
    Reader("wellread", None, "own:Loader", WELLREAD, "wellread.DataLoader, its own threads; single images: Dataset"),
    Reader("wellread-dataset", None, "own:Images", WELLREAD, "wellread's Dataset in torch.utils.data.DataLoader"),
    Reader("upstream-cache", PARQUET, "tables:UpstreamCache", (PYARROW,),
           "a RAM list of images, filled when opened"),
    Reader("float-cache", PARQUET, "tables:FloatCache", (PYARROW,),
           "a RAM list of images scaled to float32 when opened"),
    Reader("pyarrow", PARQUET, "tables:FlatParquet", (PYARROW,), "read whole, flat Arrow values sliced"),
    Reader("as-py", PARQUET, "tables:AsPy", (PYARROW,), "Arrow to Python objects in each __getitem__"),
    Reader("ome-arrow", ("ome-arrow-dataset",), "tables:OmeArrowFolder",
           (("ome_arrow.dataset", "pip install ome-arrow"),), "OMEArrowDataset.read_image"),
    Reader("lance", ("lance",), "engines:LanceTable", (("lance", "pip install pylance"), ARROW), "pylance take"),
    Reader("vortex", ("vortex",), "engines:VortexFile", (("vortex.expr", "pip install vortex-data"), ARROW),
           "vortex-data scan by row indices"),
    Reader("duckdb", ("duckdb",), "engines:DuckTable", (("duckdb", "pip install duckdb"), ARROW),
           "WHERE row_id IN (...)"),
    Reader("duckdb", ("parquet-duckdb",), "engines:DuckParquet", (("duckdb", "pip install duckdb"), ARROW),
           "the Parquet file, WHERE row_id IN (...)"),
    Reader("tifffile", ("tiff",), "folders:Tifffile", (("tifffile", "pip install tifffile"),), "tifffile.imread"),
    Reader("zarr", ("ome-zarr",), "folders:ZarrPython", (("zarr", "pip install zarr"),),
           "zarr-python, level 0, arrays opened once"),
    Reader("pillow", ("image-folder",), "folders:Pillow", (("PIL.Image", "pip install pillow"),), "Pillow"),
)  # fmt: skip


def of_formats(formats: Iterable[str]) -> list[Reader]:
    """The readers of any of these formats."""
    return [entry for entry in READERS if entry.formats is None or set(entry.formats) & set(formats)]


def find(name: str, format_name: str) -> Reader:
    """The reader of that name for a format."""
    for entry in READERS:
        if entry.name == name and (entry.formats is None or format_name in entry.formats):
            return entry
    raise LookupError(f"there is no reader {name!r} of {format_name}")


def describe(entry: Reader, framework: str) -> dict[str, Any]:
    """An entry for the program: importable or why not. All that opening would import is imported, outside of the
    clocks: a loader that is kept opens once, and its first epoch counts from there."""
    reasons: list[str] = []
    load: Any = None
    for module, how in entry.packages:
        try:
            importlib.import_module(module)
        # A broken package raises anything; it is as unusable as a missing one.
        except Exception as error:
            reasons.append(f"{module} cannot be imported ({error}); {how}")
    if not reasons:
        try:
            load = entry.load()
            # What depends on the framework.
            getattr(load, "import_for", lambda _: None)(framework)
        except Exception as error:
            reasons.append(f"{entry.name} cannot be imported for {framework} ({error}); {entry.packages[0][1]}")
    tracks = getattr(load, "tracks", ("dataset", "dataloader", "loop", "conversion"))
    if framework not in getattr(load, "frameworks", (framework,)):
        tracks = ()
    return {
        "name": entry.name,
        "about": entry.about,
        "formats": entry.formats,
        "unavailable": "; ".join(reasons) or None,
        "tracks": list(tracks),
        "native": hasattr(load, "native"),
    }
