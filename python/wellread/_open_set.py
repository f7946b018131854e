"""Reading an open set: images, shapes, names, columns.

::

    Dataset (:mod:`wellread.dataset`) opens, and makes sets of others ──▶ OpenSet reads
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from . import _arrays, _check, _options, _rows, _views
from .errors import ChoiceError, Error

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
    from typing_extensions import Self

    from ._native import Dataset as _Opened

_AXES = "TCZYX"


class OpenSet:
    """A set that is open: see :class:`wellread.Dataset`."""

    _path: str
    # The paths that it was opened by: several, where it is several sets as one.
    _given: tuple[str, ...]
    # What is read from; None once closed.
    _handle: _Opened | None = None
    # Why it could not be opened, in a worker process: raised when it is used.
    _refusal: Error | None = None
    _length: int = 0
    # As :attr:`shape`, once it was looked for.
    _shape: tuple[int, ...] | None = None
    # Of a set of no rows, shape and type of the first image of the set that it was made of.
    _model: tuple[list[int], str] | None = None
    # The images that its cells are cut out of, and how, where rows are cells.
    _cut: tuple[Any, ...] | None

    @property
    def _native(self) -> _Opened:
        handle = self._handle
        if handle is None:
            if self._refusal is not None:
                raise self._refusal
            raise ChoiceError(
                f"{self._label()}: this dataset was closed (hint: open it anew)", path=self._path, hint="open it anew"
            )
        return handle

    @_native.setter
    def _native(self, handle: _Opened) -> None:
        self._handle = handle

    def _label(self, shown: Callable[[str], str] = str) -> str:
        """Its path; of several sets how many they are, and the first paths. Each path is as `shown`."""
        if len(self._given) == 1:
            return shown(self._given[0])
        return f"{len(self._given)} sets ({_check.some([shown(path) for path in self._given], 2)})"

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._handle is None

    def close(self) -> None:
        """Closes the files and empties the cache. Its path, its length and the arrays that it has read stay; other
        calls are an error (:class:`wellread.ChoiceError`). Loaders, and sets that were made of it (:meth:`cells`,
        :meth:`with_columns`), continue: the files stay open until the last of them is closed or gone. Closing again
        does nothing.
        """
        self._handle = None

    def __enter__(self) -> Self:
        _ = self._native
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def parts(self) -> dict[str, range | list[int]]:
        """The sets that make up this one, by their names, with the rows of each, in order. Rows are a range if
        they follow each other, else a list. Empty if it is one set. ``ds.select(ds.parts[name])`` is one of them.
        Chosen rows (:meth:`select`, :meth:`filter`) and :meth:`cells` stay in their parts; a part may lose all its
        rows.
        """
        return {name: _rows.of_ranges(ranges) for name, ranges in self._native.parts()}

    def part_weights(self, shares: Sequence[float] | Mapping[str, float]) -> list[float]:
        """Weights of the rows, for ``DataLoader(…, weights=…)``, which draw each part in its share, for any number of
        rows. ``both.part_weights([1, 1])`` mixes two sets half and half.

        Args:
            shares: a number for each of :attr:`parts`, in their order or by their names; only their ratios count.

        Raises:
            ValueError: not one number for each part, a negative one, or none above 0.
        """
        if isinstance(shares, Mapping):
            names = list(self.parts)
            if set(names) != set(shares):
                raise ValueError(f"shares must have the names of all parts, {names[:12]}, not {list(shares)[:12]}")
            shares = [shares[name] for name in names]
        given = _check.several("shares", shares)
        return self._native.part_weights([_check.real(f"shares[{i}]", one, 0) for i, one in enumerate(given)])

    @property
    def cells_report(self) -> dict[str, Any] | None:
        """Counts of the table of cells, if rows are cells (:meth:`cells`), else None. They are ``rows`` of the table,
        ``cells`` and ``images``. ``without_image``, ``without_position``, ``outside``, ``dropped`` (at the border),
        ``images_without_cells`` and ``labels_without_image`` (label images) have a ``count`` each, and the ``first``
        few in words. ``site_numbers`` is there if the table may count sites from 1 and the images from 0.
        ``repeated_labels`` is there if the column ``label`` repeats in an image, so that rows number the cells.
        """
        report = self._native.cells_report()
        return None if report is None else json.loads(report)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The set as an Arrow stream, for ``pyarrow.table(ds)``, ``polars.DataFrame(ds)`` or DuckDB. It has
        ``row_id``, ``ome_image`` (the published OME-Arrow struct, pixels as lists of their own type) and the columns
        beside the images. Rows are read as the stream is. A requested schema is not followed, as the interface
        allows."""
        return self._native.arrow_stream()

    @property
    def path(self) -> str:
        """The path that was opened; of several, the folder that they have in common."""
        return self._path

    @property
    def format(self) -> str:
        """Name of the storage format, such as "parquet"."""
        return self._native.format

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """Type of the first image's pixels as stored; IndexError if there is no image."""
        import numpy

        if self._model is not None:
            return numpy.dtype(self._model[1])
        return numpy.dtype(self._native.info(_rows.one(0, self._length))[1])

    @property
    def columns(self) -> list[str]:
        """Names of the columns of plain values beside the images. A table's ``row_id`` is one of them unless it
        counts rows from 0. If columns share a name, all but the first get ``_y`` behind it.
        """
        return self._native.column_names()

    @property
    def cache_report(self) -> dict[str, int]:
        """Counts of the cache: bytes, images, hits, misses. A set behind a network also has counts of the process's
        cache on disk, if there is one, for all such sets. "disk_hits" and "disk_misses" are ranges that it had and
        had not. "disk_bytes_read" and "disk_bytes_kept" are bytes read from it and put there.
        """
        return self._native.cache_report()

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int | numpy.integer) -> NDArray[Any]: ...

    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> NDArray[Any] | list[NDArray[Any]]: ...

    def __getitem__(self, index):
        if isinstance(index, tuple):
            # To users of NumPy it is a part of one image.
            raise TypeError(
                "an index names rows, not axes of images: ds[[3, 0]] reads rows 3 and 0, ds[3][0] the first channel "
                "of row 3"
            )
        return self.read(index)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for row in range(self._length):
            yield self[row]

    @overload
    def read(self, index: int | numpy.integer, region: slice | Sequence[slice] | None = None) -> NDArray[Any]: ...

    @overload
    def read(
        self, index: slice | Sequence[int] | NDArray[Any], region: slice | Sequence[slice] | None = None
    ) -> NDArray[Any] | list[NDArray[Any]]: ...
    def read(self, index, region=None):
        """Reads images, or the same box of each, in the stored type.

        Args:
            index: a row, or a slice, list of rows or array of truth values, as in ``ds[index]``.
            region: slices along the last axes of (T, C, Z, Y, X). ``(slice(0, 256), slice(256, 512))`` is the
                first 256 rows and second 256 columns of all planes. Only the chunks, tiles or strips that it
                touches are decoded. Steps are not possible.

        Returns:
            An array (C, Y, X), or (T, C, Z, Y, X) if the region has more than one time point or depth. Several rows
            add an axis before that (of length 0 for no row). They give a list of arrays if images differ in shape
            or type. The memory is the caller's, aligned to 64 bytes and writable.

        Raises:
            IndexError: there is no such row, or the region lies outside the image.
            wellread.CorruptImageError: an image cannot be read; ``path`` and ``row`` say which.
            wellread.UnsupportedImageError: wellread does not read this kind of image; it may be fine.
        """
        native = self._native
        rows = _rows.many(index, self._length) if _rows.is_several(index) else None
        row = _rows.one(index, self._length) if rows is None else None
        import numpy

        if rows is None:
            return numpy.asarray(native.read([row], self._box(row, region)))[0]
        if not rows:
            return self._none(region)
        if native.alike(rows):
            return numpy.asarray(native.read(rows, self._box(rows[0], region)))
        return [numpy.asarray(native.read([row], self._box(row, region)))[0] for row in rows]

    def _none(self, region) -> NDArray[Any] | list[NDArray[Any]]:
        """No image of the first one's shape and type; a list where there is none or it cannot be read."""
        import numpy

        first = self._first()
        if first is None:
            return []
        shape, dtype = first
        box = self._box(0, region, shape)
        t, c, z, y, x = shape if box is None else box[1]
        return numpy.empty((0, c, y, x) if t == z == 1 else (0, t, c, z, y, x), dtype)

    def _first(self) -> tuple[list[int], str] | None:
        """Shape (TCZYX) and type of the first image; where no rows were chosen, of the first that could have been."""
        if not self._length:
            return self._model
        try:
            return self._native.info(0)
        except Error:
            return None

    def _box(self, row: int, region, shape: Sequence[int] | None = None) -> tuple[list[int], list[int]] | None:
        if region is None:
            return None
        shape = self._native.info(row)[0] if shape is None else shape
        parts = [region] if isinstance(region, slice) else _check.several("region", region, "slices")
        if len(parts) > 5:
            raise ValueError(f"region has {len(parts)} slices, and images five axes ({_AXES})")
        start, length = [0] * 5, list(shape)
        for axis, part in enumerate(parts, 5 - len(parts)):
            if not isinstance(part, slice):
                raise TypeError(f"region must be slices, not {type(part).__name__}")
            try:
                first, end, step = part.indices(shape[axis])
            except TypeError:
                raise TypeError("region must be slices of whole numbers") from None
            if step != 1:
                raise ValueError(f"region has a step of {step} along {_AXES[axis]}, which is not possible")
            wanted = part.stop if part.stop is not None else end
            if end <= first or wanted > shape[axis]:
                raise IndexError(f"region {part} lies outside axis {_AXES[axis]} of {shape[axis]} (row {row})")
            start[axis], length[axis] = first, end - first
        return start, length

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of ``ds[:]``, without reading it: (N, C, Y, X), or (N, T, C, Z, Y, X). A set of no rows
        (:meth:`select`) takes the shape of its first image, and a set of no images has (0,). It looks at all images
        once, in a folder at each file; :meth:`image_shape` is for one image.

        Raises:
            ValueError: images differ in shape or type, so that they are no one array (a
                :class:`wellread.ChoiceError`).
            wellread.Error: a file cannot be read, or files of one image differ in size or type.
        """
        if self._shape is None:
            native = self._native
            if self._length and not native.alike(list(range(self._length)), True):
                first = native.info(0)
                row, other = next(
                    (row, info) for row in range(1, self._length) if (info := native.info(row)) != first
                )
                shown = [f"{' x '.join(map(str, shape))} {dtype}" for shape, dtype in (other, first)]
                raise ChoiceError(
                    f"{self._label()}: row {row} is {shown[0]} and row 0 {shown[1]} (TCZYX), so the images have no "
                    "one shape (hint: image_shape(row) is that of one)",
                    path=self._path,
                    row=row,
                    hint="image_shape(row) is that of one",
                )
            if self._length:
                self._shape = (self._length, *self.image_shape(0))
            else:
                none = self._none(None)
                self._shape = (0,) if isinstance(none, list) else none.shape
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of axes of :attr:`shape`; ValueError as there."""
        return len(self.shape)

    def image_shape(self, index: int) -> tuple[int, ...]:
        """Shape of an image, without reading its pixels: (C, Y, X), or (T, C, Z, Y, X); see ``ds[i]``."""
        t, c, z, y, x = self._native.info(_rows.one(index, self._length))[0]
        return (c, y, x) if t == z == 1 else (t, c, z, y, x)

    def name(self, index: int) -> str:
        """Name of an image: from its metadata, or its file's without the ending."""
        return self._native.name(_rows.one(index, self._length))

    def split(
        self, fractions: Sequence[float] = (0.8, 0.1, 0.1), *, by: str | Sequence[Any] | None = None, seed: int = 0
    ) -> list[list[int]]:
        """Rows in parts, such as training, validation and test.

        Each row's part follows from a hash of its name alone. So it stays the same when images are added to the
        folder or table, or put into another order or format. It changes where sets are combined and the name of a
        set comes before its images' names (:meth:`concat`). ``by`` keeps parts there, by a column such as
        "Metadata_Well". The parts are those of wellread's Rust API and of
        :class:`wellread.lightning.WellreadDataModule`.

        Args:
            fractions: the share of the rows of each part, about: positive numbers with a sum of 1 at most. The rest
                up to 1 is in no part.
            by: a column, a tuple of columns, or a list of one key per row. Rows with equal values are in one part.
            seed: draws another split: a whole number from 0 to 2**64 - 1.

        Returns:
            The rows of each part, ascending. A UserWarning tells of a part without rows. Without ``by``, another
            tells of names that begin with the name of a set.

        Raises:
            KeyError: there is no such column.
            ValueError: fractions that make no sense, keys that are not one per row (a :class:`wellread.ChoiceError`).
        """
        shares = [
            _check.real(f"fractions[{i}]", part) for i, part in enumerate(_check.several("fractions", fractions))
        ]
        parts = self._split(shares, "by", by, seed)
        _views.tell_of_split(self, [(str(i), share) for i, share in enumerate(shares)], parts, "by", by)
        return parts

    def _split(self, shares: list[float], name: str, by: Any, seed: int) -> list[list[int]]:
        """The rows of each part; `name` is what the caller's argument `by` is called."""
        columns, keys = _options.grouping(name, by)
        _options.check_grouping(name, columns, keys, self)
        return self._native.split(shares, columns, keys, _check.whole("seed", seed, 0, 2**64 - 1))

    def metadata(self, index: int) -> dict[str, Any]:
        """The metadata of an image.

        Returns:
            id, name, channels (a list of id, name, emission_um, excitation_um, illumination, color_rgba), shape_tczyx
            and dtype. Also the physical size of a pixel along X, Y and Z (value and unit, or None), and acquired (ISO
            8601, or None).
        """
        row = _rows.one(index, self._length)
        shape, dtype = self._native.info(row)
        return json.loads(self._native.metadata(row)) | {"shape_tczyx": list(shape), "dtype": dtype}

    def column(self, name: str) -> NDArray[Any]:
        """The values of a column beside the images (:attr:`columns`), one per row, such as a label or a well.

        Numbers, truth values and times keep their types. If some are missing, whole numbers become float64 with NaN,
        and truth values objects with None. float64 is exact up to 2**53 only; ``pyarrow.table(dataset).column(name)``
        keeps type and nulls. Texts are an array of objects (str or None).

        Raises:
            KeyError: there is no such column.
            TypeError: its values have no type in NumPy.
        """
        return _arrays.of_values(self._native.column(_check.text("name", name)))

    def _images(self) -> str:
        """How many images there are, or cells, in words."""
        return _check.counted(self._length, "image" if self._cut is None else "cell")
