"""Table engines, asked for the rows of a batch: pylance, vortex-data, duckdb.

Open files of an engine do not survive a fork or a pickle, so each process opens for itself. `fork_safe = False` asks
for workers that are not forked: a forked process lacks the engine's threads and waits for them for ever.
"""

import os

from ..images import ArrowImages, image_column


class Engine:
    """The common part of the engines. A subclass has `open()`, `count()` and `column(rows)`: Arrow structs in that
    order.
    """

    fork_safe = False

    def __init__(self, path, finish):
        self.path, self.finish = str(path), finish
        self.opened = self.open()
        self.length = self.count()

    def __getstate__(self):
        return {**self.__dict__, "opened": None}

    def __len__(self):
        return self.length

    def _natives(self, rows):
        import pyarrow as pa

        if self.opened is None:
            self.opened = self.open()
        column = self.column(rows)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        images = ArrowImages(column.chunk(0) if isinstance(column, pa.ChunkedArray) else column)
        return [images[k] for k in range(len(rows))]

    def native(self, i):
        return self._natives([i])[0]

    def take(self, rows):
        return [self.finish(native) for native in self._natives(rows)]

    def __getitem__(self, i):
        return self.finish(self.native(i))


class LanceTable(Engine):
    """pylance: `take` of what an image needs of the column."""

    def open(self):
        import lance

        dataset = lance.dataset(self.path)
        name = image_column(dataset.schema)
        # Projected by the name of a child, lance decodes the others not at all.
        self.fields = {"meta": f"{name}.pixels_meta", "chunks": f"{name}.chunks"}
        return dataset

    def count(self):
        return self.opened.count_rows()

    def column(self, rows):
        import pyarrow as pa

        table = self.opened.take(rows, columns=self.fields)
        parts = [table[name].combine_chunks() for name in ("meta", "chunks")]
        return pa.StructArray.from_arrays(parts, ["pixels_meta", "chunks"])


class VortexFile(Engine):
    """vortex-data: a scan by row indices, which come back in rising order."""

    def open(self):
        import vortex

        return vortex.open(self.path)

    def count(self):
        return len(self.opened)

    def column(self, rows):
        import pyarrow as pa
        import vortex
        import vortex.expr as expr

        rising = sorted(rows)
        indices = vortex.array(pa.array(rising, pa.uint64()))
        found = self.opened.scan(expr.column("ome_image"), indices=indices).read_all().to_arrow_array()
        place = {row: k for k, row in enumerate(rising)}
        parts = [plain_lists(found.field(name)) for name in ("pixels_meta", "chunks")]
        found = pa.StructArray.from_arrays(parts, ["pixels_meta", "chunks"])
        return found.take(pa.array([place[row] for row in rows]))


def plain_lists(array):
    """Arrow's list views, which vortex gives, as lists."""
    return array.cast(plain_type(array.type)) if plain_type(array.type) != array.type else array


def plain_type(kind):
    """A type with lists in place of list views, at any depth, and plain texts in place of string views."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    if hasattr(kind, "value_field") and not pa.types.is_dictionary(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_field.type)))
    return pa.string() if pa.types.is_string_view(kind) else kind


class DuckTable(Engine):
    """duckdb on its own file: `WHERE row_id IN (...)`, what an image needs of the column."""

    source = "images"

    def open(self):
        import duckdb

        connection = duckdb.connect(self.path, read_only=True)
        connection.execute(f"SET threads = {os.environ.get('OMP_NUM_THREADS', '1')}")
        return connection

    def count(self):
        return self.opened.sql(f"SELECT count(*) FROM {self.source}").fetchall()[0][0]

    def column(self, rows):
        wanted = "struct_pack(pixels_meta := ome_image.pixels_meta, chunks := ome_image.chunks)"
        ids = ",".join(str(int(row)) for row in rows)
        found = self.opened.sql(f"SELECT row_id, {wanted} AS image FROM {self.source} WHERE row_id IN ({ids})")
        table = found.to_arrow_table()
        place = {row: k for k, row in enumerate(table["row_id"].to_pylist())}
        return table["image"].combine_chunks().take([place[row] for row in rows])


class DuckParquet(DuckTable):
    """duckdb on a Parquet file."""

    def open(self):
        import duckdb

        self.source = "read_parquet('" + self.path.replace("'", "''") + "')"
        connection = duckdb.connect()
        connection.execute(f"SET threads = {os.environ.get('OMP_NUM_THREADS', '1')}")
        return connection
