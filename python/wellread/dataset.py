"""Sets of images, read at random.

Long because the docs of the one class here list the arguments and exceptions of each method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _check, _native, _options, _refused, _rows, _tables, _views
from ._open_set import OpenSet
from ._signature import OF_LOADERS, OF_SETS, telling, warn
from ._types import ArrowStream, Cache, Edge, Lone, Mask, Observed, Path, Size, Unit, Unmatched
from .errors import ChoiceError, Error

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Dataset"]

# Formats of files that are one image each: a set of them is a folder.
_OF_FILES = ("png", "jpg", "jpeg")


class Dataset(OpenSet):
    """A set of images: a file or folder in any format that wellread reads, recognised by its content.

    Args:
        path: the file or folder, a folder of tables (Parquet, Lance, Vortex, DuckDB), or a pattern such as
            "plates/*.parquet" or "screen/**/*.parquet". An address such as "s3://bucket/plate" is a path, too, in a
            build with the feature ``remote``. Folders of tables that are called ``plate=BR1`` become a
            column. A list of any of these is one set (:meth:`concat`, :attr:`parts`).
        format: name of the format, if content alone should not decide (:func:`wellread.formats`).
        table: name of the table, in databases with several; or the split ("train", "val") of an image folder.
        column: name of the image column, in tables with several. The default is the first column with the structure
            of images.
        level: level of multiscale images (OME-Zarr); 0 is full resolution.
        cache: the cache of images that were read: "none", "memory[:SIZE]", "lru:SIZE", "compressed[:SIZE]",
            "compressed-lru:SIZE", "file[:SIZE]" (shared by all processes), "preload[:SIZE]" or "chunked:ROWS[:SIZE]",
            with SIZE as "2GiB". "file" also serves later runs: it knows files by path, size and modification time. If
            a file is replaced and both stay the same, it delivers the old images. For sets in a bucket also
            "disk:FOLDER:SIZE": it keeps bytes as they were fetched, and all processes and later runs share it. Within
            a process all sets behind a network use the folder that was named last, whatever ``cache`` they have.
        layout: how files of a folder make images: "harmony", "imagexpress", "cellvoyager", "cv1000", "columbus",
            "incell", "cellomics", or "files" for an image a file. By default the names decide, if all of them fit one
            layout. "cellprofiler" reads the folder's ``load_data.csv``, wherever its files lie. "ome-companion" takes
            the files that a ``*.companion.ome`` describes. With ``format``, an image is a file.
        pattern: the pattern of file names, instead of a layout: text, ``{field}`` and ``*`` for anything, such as
            "{well}_*_{site:d}_{channel:a}_001.tif". A field with ``:d`` fits digits alone, and one with ``:a``
            letters. Axes of an image are the fields channel (or ch, c, wavelength), z (plane, zstep) and time
            (timepoint, t). The field plate, the field well (or row and col, column) and the field site (or field,
            fov) are the columns Metadata_Plate, Metadata_Well and Metadata_Site. All others are columns of their own
            names.
        missing: images that lack one of their files: "error" fails where one is read, "skip" leaves them out, "zero"
            fills the missing part with 0.
        unmatched: files whose names do not fit the chosen layout or pattern: "error" fails, "skip" leaves them out.
        path_map: beginnings of paths in a table of files (load_data.csv), each with its replacement on this machine.
            A relative replacement begins at the folder of the table, whatever the working folder of a process.
        skip_null: leave out rows of a table that hold no image; otherwise reading such a row is an error. Looks at
            the shape of every row.

    Raises:
        FileNotFoundError: there is no such file (a :class:`wellread.Error` too).
        wellread.Error: the content is no image set, or is damaged.
        wellread.ChoiceError: no such format, or a table, column or level that the set does not have (a
            :class:`ValueError` too).
        ValueError: ``cache`` is no policy.

    ``ds[i]`` is an array in the stored type, of shape (C, Y, X). It is (T, C, Z, Y, X) where an image has more than
    one time point or depth. Negative rows count from the end. ``ds[2:8]``, ``ds[[3, 1]]`` and ``ds[mask]`` read all
    their rows in one request. They are one array with the images along the first axis, or a list of arrays if images
    differ in shape or type. No rows give an empty array, (0, C, Y, X) by the shape and type of the first image.

    A folder with masks beside the images, by the names of folders and files, opens with a UserWarning: both are
    images of the set. A folder with images that its ``load_data.csv`` does not name also opens with one: these are no
    images of the set. So does a folder whose ``load_data.csv`` names files elsewhere: the table is not used. Another
    UserWarning tells of a ``cache`` that is too small for the first image of a set on this machine.

    Threads may share a dataset. It is pickled by its path and options and opens itself anew in forked processes, so
    worker processes of any start method can use it. If the path has other images by then, these processes raise a
    :class:`wellread.Error`: do not add or remove files meanwhile. ``with`` closes it (:meth:`close`).
    """

    # The images, the table and how it is joined to them, where :meth:`with_columns` has made this set.
    _joined: tuple[Any, ...] | None = None
    # Columns of that table which are not beside the images, and what they hold.
    _left_out: Sequence[tuple[str, str]] = ()
    # A name in the joined table whose folders are not those that the images lie in.
    _elsewhere: str | None = None
    # A column of the table that has the images in another order, where rows were taken in theirs. Whether
    # its index has.
    _other_order: str | None = None
    _index_differs = False
    # What makes this set of others, where it is some rows of one or several together, and of what.
    _made: tuple[Callable[..., Dataset], tuple[Any, ...]] | None = None

    @telling("Dataset", OF_LOADERS | OF_SETS)
    def __init__(
        self,
        path: Path | Sequence[Path],
        *,
        format: str | None = None,
        table: str | None = None,
        column: str | None = None,
        level: int | None = None,
        cache: Cache | None = None,
        layout: str | None = None,
        pattern: str | None = None,
        missing: str | None = None,
        unmatched: str | None = None,
        path_map: Mapping[str, str] | None = None,
        skip_null: bool = False,
    ) -> None:
        paths = _check.paths("path", path)
        options: dict[str, Any] = {}
        texts: dict[str, Any] = {"format": format, "table": table, "column": column, "cache": cache}
        texts |= {"layout": layout, "pattern": pattern, "missing": missing, "unmatched": unmatched}
        for name, value in texts.items():
            if value is not None:
                options[name] = _check.text(name, value)
        if path_map is not None:
            if not isinstance(path_map, Mapping):
                raise TypeError(f"path_map must be a dict of texts, not {type(path_map).__name__}")
            pairs = path_map.items()
            options["path_map"] = [tuple(_check.text("path_map", text) for text in pair) for pair in pairs]
        if _check.truth("skip_null", skip_null):
            options["skip_null"] = True
        if level is not None:
            options["level"] = _check.whole("level", level, most=1000)
        if options.get("format") in _OF_FILES:
            raise ChoiceError(
                f'{format}: is no storage format; a folder of PNG and JPEG files is format="image-folder"',
                path=paths if isinstance(paths, str) else paths[0],
            )
        self._open(paths, options)
        beyond = None if cache is None else self._native.first_beyond_cache(f"cache={cache!r}")
        if beyond is not None:
            warn(f"{self._label()}: {beyond}")
        found = self._native.mask_among_files()
        if found is not None:
            warn(
                f"{self._label()}: {found[0]} is a mask of {found[1]} by its name, and both are images of this set: "
                "give the folder of one of them"
            )
        for field, meant in () if pattern is None else _native.misspelt_fields(pattern):
            warn(
                f"{self._label()}: the pattern has a field {{{field}}}, which is a column of its own; did you mean "
                f"{{{meant}}}?"
            )
        without_row = self._native.images_without_row()
        if without_row is not None:
            warn(f'{self._label()}: {without_row}: layout="files" reads each file as an image')
        if layout is None and pattern is None and format is None:
            unused = self._native.unused_table()
            if unused is not None:
                warn(f"{self._label()}: {unused}")
            unfit = self._native.unmatched_names()
            if unfit is not None:
                layout_of, sentence, clash = unfit
                others_out = f'layout="{layout_of}", unmatched="skip" leaves others out'
                advice = "pattern= with a field that tells them apart" if clash else others_out
                warn(f'{self._label()}: {sentence}: {advice}; layout="files" if single files are meant')

    def _open(self, path: str | list[str], options: dict[str, Any]) -> None:
        self._paths: str | list[str] = path
        self._options: dict[str, Any] | None = options
        self._cut: tuple[Dataset, Any, dict[str, Any], Dataset | None] | None = None
        native = _native.Dataset(path, **options)
        self._path = path if isinstance(path, str) else native.path
        self._given = (path,) if isinstance(path, str) else tuple(path)
        self._native = native
        self._length = len(native)

    def _in_color(self) -> Dataset:
        """These pictures as red, green and blue; a grey one has three colours alike."""
        return _reopened(self._paths, {**(self._options or {}), "in_color": True})

    @classmethod
    def from_arrow(cls, table: ArrowStream, *, column: str | None = None, skip_null: bool = False) -> Dataset:
        """The images of a table in memory: anything with ``__arrow_c_stream__``, such as a pyarrow table, a polars
        frame or a DuckDB result. Typed columns are read where they are, without a copy, and kept alive.

        If several columns of the table have one name, the first keeps it. Each other one gets the suffix ``_y``, as
        often as its name takes to differ from all others: ``v``, ``v_y``, ``v_y_y``. :attr:`columns` has these names.

        Args:
            table: rows with a column of OME-Arrow images.
            column: name of the image column, if there are several. The default is the first column with the structure
                of images.
            skip_null: leave out rows that hold no image, as for :class:`Dataset`.

        Raises:
            TypeError: the object has no Arrow stream.
            wellread.Error: it has no image column.
        """
        _tables.check("table", table)
        if column is not None:
            _check.text("column", column)
        dataset = cls.__new__(cls)
        dataset._path, dataset._given, dataset._options, dataset._cut = "arrow", ("arrow",), None, None
        skips = _check.truth("skip_null", skip_null)
        dataset._native = _native.Dataset.from_arrow(table.__arrow_c_stream__(), column, skips)
        dataset._length = len(dataset._native)
        return dataset

    @classmethod
    def from_load_data(
        cls,
        path: Path,
        *,
        path_map: Mapping[str, str] | None = None,
        missing: str | None = None,
        cache: Cache | None = None,
    ) -> Dataset:
        """The images of CellProfiler's ``load_data.csv``: a row is an image, each ``FileName_Orig…`` a channel, and
        each ``Metadata_…`` a column. ``Dataset(path)`` opens such a table as well.

        Args:
            path: the table.
            path_map: beginnings of paths in the table, each with its replacement, as for :class:`Dataset`.
            missing: images that lack one of their files, as for :class:`Dataset`.
            cache: the cache of images that were read, as for :class:`Dataset`.
        """
        table = _check.path("path", path)
        if not table.lower().endswith(".csv"):
            raise ValueError(f"path must be a table of CellProfiler, load_data.csv, not {table!r}")
        return cls(table, path_map=path_map, missing=missing, cache=cache)

    @classmethod
    def concat(cls, datasets: Iterable[Dataset]) -> Dataset:
        """Several sets as one, also of several formats: the rows of the first, then of the next. ``a + b`` is the
        same. Columns are joined by their names: a set without a column has missing values there, and numbers become
        the type that holds them all. The name of a set comes before the names of its images, if two sets may have an
        image of the same name. For sets of files that is so if a file's name is there twice. For tables it is always
        so, since no file is opened to look. :meth:`split` by names gives such images other parts than in their set
        alone, and warns. The caches of the sets stay in use.

        Raises:
            wellread.ChoiceError: a column is text in one set and a number in another, when it is read.
        """
        given = _check.several("datasets", datasets, "a list of datasets")
        for i, dataset in enumerate(given):
            if not isinstance(dataset, Dataset):
                raise TypeError(f"datasets[{i}] must be a wellread.Dataset, not {type(dataset).__name__}")
        if not given:
            raise ValueError("datasets must not be empty")
        return _concat(given)

    def __add__(self, other: Any) -> Dataset:
        if not isinstance(other, Dataset):
            return NotImplemented
        before = self._made[1][0] if self._made is not None and self._made[0] is _concat else [self]
        return _concat([*before, other])

    def select(self, rows: slice | Sequence[int] | NDArray[Any]) -> Dataset:
        """Some rows as a set, in this order, over the same open files and cache. Rows are a slice, a list of rows, a
        range, or one truth value per row. Nothing is read.

        Raises:
            IndexError: there is no such row.
        """
        if not _rows.is_several(rows):
            raise TypeError(f"rows must be a slice, a list of rows or truth values, not {type(rows).__name__}")
        return _select(self, _rows.many(rows, self._length))

    def filter(
        self,
        condition: Callable[[Mapping[str, Any]], Any] | Sequence[bool] | NDArray[Any] | None = None,
        /,
        **values: Any,
    ) -> Dataset:
        """The rows for which a condition holds, as a set: ``ds.filter(Metadata_Plate="BR1", Metadata_Well=["A01",
        "A02"])``, ``ds.filter(lambda columns: columns["Cells_Count"] > 20)``.

        Args:
            condition: one truth value per row; or a callable that is given the columns, as NumPy arrays by their
                names (:meth:`column`), and returns that.
            **values: the value that a column must have, or a list of allowed values; None (or NaN) for a missing one.
                All conditions must hold. A datetime with a time zone is compared in UTC, in which columns with a time
                zone are stored.

        Raises:
            KeyError: there is no such column.
            TypeError: a value of another kind than the column's, such as a text for dates.
            TypeError, ValueError: nothing is asked for, or not one truth value per row.
        """
        return _select(self, _views.rows_where(self, condition, values))

    def cells(
        self,
        table: Path | ArrowStream | Observed | Mapping[str, Any] | Dataset,
        *,
        x: str | None = None,
        y: str | None = None,
        size: Size = (96, 96),
        by: str | Sequence[str] | None = None,
        edge: Edge = "shift",
        unit: Unit = "pixel",
        mask: Mask = "none",
        masks: Path | Dataset | None = None,
        label_masks: bool = False,
        label: str | None = None,
        unmatched: Unmatched = "error",
    ) -> Dataset:
        """The cells of a table, cut out of these images: a set whose rows are cells, in the table's order.

        A read decodes each chunk, tile or strip once for all cells that it is in. A ``cache`` of this set keeps whole
        images, decoded once, and crops are cut out of them. ``order="block"`` of the loader mixes the cells of some
        images at a time. The new set has the columns of the table and those of the images.

        Args:
            table: a table with a row per cell: Parquet (of CytoTable or pycytominer), CSV, TSV or CellProfiler's
                SQLite ("experiment.sqlite:Per_Nuclei" names one of its tables). Or a set of label images, by its path
                or as a Dataset, such as some rows of one (:meth:`select`). Each label is a cell, with its centroid
                and area. Or a table in memory, as :meth:`with_columns` takes it: a pandas or polars frame, a pyarrow
                table. A UserWarning names columns that are left out: nested and binary values, and nulls without a
                type.
            x, y: columns of the position. The default is those of CellProfiler or scikit-image, such as
                ``Nuclei_Location_Center_X``. In frames of pandas and polars, tables of pyarrow and dictionaries they
                may be float16 or decimals.
            size: height and width of a crop in pixels. The pixel that the position lies in is at index ``size // 2``.
            by: columns of both the table and the images that identify a cell's image, such as ``("Plate", "Well",
                "Site")`` (``Plate`` also finds ``Metadata_Plate``). Or a column of the table that has the images'
                names. The default is plate, well, site and field if both have them, else a column of names.
            edge: cells at the border of the image: "shift" moves the box inside, "pad" fills the outside with 0,
                "drop" leaves the cell out.
            unit: unit of the positions: "pixel" (the centre of the first is 0), or "um", by the pixel size in the
                images' metadata.
            mask: "zero" sets pixels outside of the cell to 0, "channel" adds a last channel that is 1 inside. Needs
                label images.
            masks: the set of label images, matched by the names of their images: its path or a Dataset. The default
                is the table, if it is label images.
            label_masks: True if the label images, the table's or ``masks``, are binary masks. Each group of touching
                pixels, also at a corner, gets a number in the order of first pixels, as with
                ``skimage.measure.label(mask > 0)``.
            label: column of the cell's number in its label image. The default is ``ObjectNumber`` or a similar name,
                or ``label``. Where ``label`` repeats in an image, a UserWarning says that rows number the cells, and
                for tables of scikit-image it is an error.
            unmatched: cells without an image or a position, or outside of their image: "error" fails and counts them,
                "skip" leaves them out.

        Returns:
            A dataset whose rows are called ``IMAGE/cell-NUMBER``. Its :attr:`cells_report` counts the cells that were
            left out.

        Raises:
            FileNotFoundError: there is no such table (a :class:`wellread.Error` too).
            wellread.ChoiceError: a column that is missing or not clear, cells that cannot be cut out, crops larger
                than an image (a :class:`ValueError` too).
            wellread.Error: a table that is damaged or no table, two cells of one number in an image.
        """
        given = () if by is None else by
        columns = [by] if isinstance(by, str) else _check.several("by", given, "columns", ordered=False)
        choices: dict[str, Any] = {
            "x": None if x is None else _check.text("x", x),
            "y": None if y is None else _check.text("y", y),
            "size": _check.size("size", size) or (96, 96),
            "by": [_check.text(f"by[{i}]", column) for i, column in enumerate(columns)],
            "edge": _check.word("edge", edge, _options.EDGES),
            "unit": _check.word("unit", unit, _options.UNITS),
            "unmatched": _check.word("unmatched", unmatched, _options.UNMATCHED),
            "mask": _check.word("mask", mask, _options.MASKS),
            "masks": None if masks is None or isinstance(masks, Dataset) else _check.path("masks", masks),
            "label_masks": _check.truth("label_masks", label_masks),
            "label": None if label is None else _check.text("label", label),
        }
        open_masks = masks if isinstance(masks, Dataset) else None
        if isinstance(table, Dataset):
            source: Any = table
        elif _tables.is_table(table):
            positions = [name for name in (choices["x"], choices["y"]) if name is not None]
            source = _tables.with_plain_positions(_tables.with_index(table, choices["by"]), positions)
        else:
            source = _check.path("table", table)
        dataset = _cells_of(self, source, choices, open_masks)
        of_images = self._native.columns_left_out()
        left_out = [column for column in dataset._native.columns_left_out() if column not in of_images]
        _tell_left_out(self._label(), left_out)
        report = dataset.cells_report or {}
        for doubt in ("site_numbers", "repeated_labels"):
            if doubt in report:
                warn(f"{self._label()}: {report[doubt]}")
        return dataset

    def with_columns(
        self,
        table: ArrowStream | Observed | Mapping[str, Any],
        *,
        on: str | Sequence[str] | None = None,
        unmatched: Lone = "error",
    ) -> Dataset:
        """The same images with the columns of a table beside them: the plan of a plate, predictions, an
        AnnData. They serve ``labels=``, ``by=``, ``columns=``, :meth:`split` and other options that take a column.

        Args:
            table: a pandas or polars frame, a pyarrow table, a DuckDB result, or anything else with
                ``__arrow_c_stream__`` (pandas needs pyarrow for it). An object with such a table as its ``obs`` also
                works, such as an AnnData. So do a Series with a name, and a dictionary of columns (with pyarrow).
                It is read at once. Columns of nested or binary values, or of nulls without
                a type, are left out with a UserWarning that names them. A column of the table replaces a column of
                the images with the same name.
            on: columns that both have, such as "Metadata_Well" or ("plate", "well"), by which many images may share a
                row. Or columns of the table with the images' names (:meth:`name`) or those of their files, with or
                without endings and folders. ``wellread convert --join`` finds rows by the same rule. Times pair by
                their value in time, in any unit; a time against a number is an error. A UserWarning tells of folders
                that the images do not lie in. The index of a pandas frame is a column by its name, or "index" if it
                has none. By default the table has one row per image, in their order. A UserWarning tells of a column
                of texts, or of an index, that has the images in another one.
            unmatched: images without a row: "error" fails, "null" gives them nulls. It is an error in any case if no
                image has a row.

        Returns:
            A dataset over the same open files and cache, which is pickled with the table.

        Raises:
            TypeError: the table has no Arrow stream.
            wellread.ChoiceError: columns that are missing, two rows for an image, or an image without one. Also a
                row that could be of either of two images, such as ``a.tif`` of ``P1/a.tif`` and ``P2/a.tif``. Another
                number of rows than images (each is a :class:`ValueError` too).
        """
        given = () if on is None else on
        names = [on] if isinstance(on, str) else _check.several("on", given, "columns", ordered=False)
        names = [_check.text(f"on[{i}]", name) for i, name in enumerate(names)]
        lone = _check.word("unmatched", unmatched, _options.LONE)
        beside, index = _tables.with_index_beside(table, names)
        dataset = _with_columns(self, beside, names, lone, None if names else index)
        _tell_left_out(self._label(), dataset._left_out)
        if dataset._elsewhere is not None:
            warn(
                f"{self._label()}: the table names folders that the images do not lie in, such as "
                f"{dataset._elsewhere}: the rest of the names matched. If these are other images of the same names, "
                "the columns are wrong"
            )
        if dataset._other_order is not None:
            column = dataset._other_order
            warn(
                f"{self._label()}: the table's column {column!r} has the images in another order than the set. "
                f"Without on=, its rows went to the images in the set's order: on={column!r} gives each its own row"
            )
        elif dataset._index_differs:
            warn(
                f"{self._label()}: the index of the frame has the images in another order than the set. Without on=, "
                'its rows went to the images in the set\'s order: table.rename_axis("image_name") and '
                'on="image_name" give each its own row'
            )
        return dataset

    def __reduce__(self) -> tuple[Any, ...]:
        native = self._native
        # Made of sets that are pickled with it, each of which is compared with what is there.
        if self._made is not None:
            return _unpickled, (*self._made, None)
        if self._joined is not None:
            return _unpickled, (_with_columns, self._joined, None)
        if self._cut is not None:
            return _unpickled, (_cells_of, self._cut, _native.marks(native))
        if self._options is None:
            raise TypeError(
                "a Dataset of an Arrow table in memory cannot be pickled: write the table to a file and open that, "
                "or use forked worker processes"
            )
        return _unpickled, (_reopened, (self._paths, self._options), _native.marks(native))

    def __repr__(self) -> str:
        if self.closed:
            return f"wellread.Dataset({self._label(repr)}: closed)"
        return f"wellread.Dataset({self._label(repr)}: {self._images()}, {self.format})"

    def _repr_html_(self) -> str:
        from html import escape

        name = escape(self._label())
        if self.closed:
            return f"<b>wellread.Dataset</b> {name}<br>closed"
        first = ""
        if self._length:
            shape, dtype = self._native.info(0)
            first = f"<br>{' x '.join(map(str, shape))} (TCZYX) {dtype}"
        return f"<b>wellread.Dataset</b> {name}<br>{self._images()}, {escape(self.format)}{first}"


def _tell_left_out(name: str, left_out: Sequence[tuple[str, str]]) -> None:
    """Says to the caller of this package which columns of a table are left out, and what they hold."""
    if left_out:
        names, verb = [name for name, _ in left_out], "is" if len(left_out) == 1 else "are"
        warn(
            f"{name}: of the table {_check.some(names)} cannot stand beside images and {verb} left out: "
            f"{_check.kinds(left_out)}"
        )


def _beside(images: Dataset, options: dict[str, Any] | None, cut: Any) -> Dataset:
    """A set that is made of another and lies where that does."""
    dataset = Dataset.__new__(Dataset)
    dataset._path, dataset._given, dataset._options, dataset._cut = images._path, images._given, options, cut
    return dataset


def _cells_of(images: Dataset, table: Any, choices: dict[str, Any], masks: Dataset | None) -> Dataset:
    # What was chosen is checked by now.
    dataset = _beside(images, images._options, (images, table, choices, masks))
    if isinstance(table, Dataset):
        source: Any = table._native
    else:
        source = table if isinstance(table, str) else table.__arrow_c_stream__()
    dataset._native = images._native.cells(source, choices, None if masks is None else masks._native)
    dataset._length = len(dataset._native)
    return dataset


def _with_columns(
    images: Dataset, table: Any, on: list[str], unmatched: str, index: list[str] | None = None
) -> Dataset:
    dataset = _beside(images, images._options, images._cut)
    dataset._joined = (images, table, on, unmatched)
    dataset._native, dataset._left_out, doubts = images._native.with_columns(
        table.__arrow_c_stream__(), on, unmatched == "null", index
    )
    dataset._elsewhere, dataset._other_order, dataset._index_differs = doubts
    dataset._length, dataset._model = len(dataset._native), images._model
    return dataset


def _select(images: Dataset, rows: list[int]) -> Dataset:
    dataset = _beside(images, None, images._cut)
    dataset._made = (_select, (images, rows))
    dataset._native = images._native.select(rows)
    dataset._length = len(rows)
    dataset._model = None if rows else images._first()
    return dataset


def _concat(datasets: list[Dataset]) -> Dataset:
    dataset = Dataset.__new__(Dataset)
    dataset._options, dataset._cut = None, datasets[0]._cut
    if any(one._cut is None for one in datasets):
        dataset._cut = None
    dataset._made = (_concat, (datasets,))
    native = _native.Dataset.concat([one._native for one in datasets])
    dataset._path, dataset._native, dataset._length = native.path, native, len(native)
    dataset._given = tuple(path for one in datasets for path in one._given)
    if not dataset._length:
        dataset._model = next((one._model for one in datasets if one._model is not None), None)
    return dataset


def _reopened(path: str | list[str], options: dict[str, Any]) -> Dataset:
    # Whoever opened it first was told what is to be said of it, and its arguments were checked.
    dataset = Dataset.__new__(Dataset)
    dataset._open(path, options)
    return dataset


def _unpickled(make: Callable[..., Dataset], of: tuple[Any, ...], marks: str | None) -> Dataset:
    """The set that was pickled, or an error where its path has another one by now (`marks`)."""
    try:
        dataset = make(*of)
        if marks is not None:
            _native.check_marks(dataset._native, marks)
        return dataset
    except Error as error:
        if not _refused.is_starting():
            raise
        refused = Dataset.__new__(Dataset)
        refused._path, refused._options, refused._cut = error.path or "", None, None
        refused._given = (refused._path,)
        refused._refusal = error
        return refused
