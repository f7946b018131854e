"""engines_latest.py [--out FOLDER]: files of the newest releases of each engine's Python package, read by wellread.

`make engines-latest` runs it in an environment of its own (scripts/newest-packages.sh). Each package writes the same
small images as OME-Arrow tables. wellread (`WELLREAD`) shows, checksums and converts them. Pixels are compared with
the SHA-256 of the arrays. Names, order and the columns beside the images are compared with what was written. DuckDB's
files are read with the DuckDB of this environment and with that of `WELLREAD_DUCKDB`.

Each engine's crate has stamps: the newest versions whose files its own reader was tested with. The table says who
read a file by the program's note. "own reader" means that there was none: what is of a kind that it does not know is
left to the library without a note. Ends with 1 where anything differs or cannot be read or written.

Long because the writers of each library, what they write and how it is checked are one program.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import duckdb
import lance
import numpy as np
import ome_arrow
import pyarrow as pa
import pyarrow.parquet as pq
import vortex

ROOT = Path(__file__).resolve().parents[1]
DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"]
# The same letter in two forms, other scripts, signs beyond 16 bits, what paths and SQL have a meaning for.
NAMES = [
    "Zelle ä",
    "Zelle a\u0308",
    "細胞-3",
    "🧫 dish",
    "клетка",
    "a b/c'd\"e",
    "n" * 300,
    "صورة",
    "x",
    "e.tif",
    "A01",
    "µ",
]
# Images of a set that spans several blocks of every engine.
MANY = 2500
NOTE = re.compile(r"^note: .* newer than .*: it is read through the library$", re.MULTILINE)
# Endings of the engines' files, as their crates are called.
STAMPED = ("lance", "vortex", "duckdb")
STAMP = re.compile(r'static (\w+): TestedVersion = TestedVersion::new\("[^"]*", "([^"]*)"\)')


@dataclass
class Set:
    """Images, as arrays and as a table."""

    name: str
    images: list[tuple[str, np.ndarray]]
    table: pa.Table

    @property
    def expected(self) -> list[dict]:
        return [expected(i, name, array) for i, (name, array) in enumerate(self.images)]


@dataclass
class Variant:
    """A way in which a package writes a set, and how it is read."""

    package: str
    name: str
    ending: str
    write: Callable[[Set, Path], None]
    read_as: list[str] = field(default_factory=list)
    # Of a format that is not stable: it may be refused, and no stamp is raised for it.
    is_stable: bool = True
    keeps_columns: bool = True
    # Of one image, for packages that write no more into a file.
    is_single: bool = False
    # Which sets it can hold.
    takes: Callable[[Set], bool] = lambda images: True

    @property
    def folder(self) -> str:
        return re.sub(r"\W+", "-", f"{self.package} {self.name}")


@dataclass
class Row:
    """A line of the table: a variant with all its sets, read in one way."""

    variant: Variant
    reading: str
    declared: list[dict[str, str]] = field(default_factory=list)
    readers: set[str] = field(default_factory=set)
    files: int = 0
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def versions(self) -> str:
        said = {" / ".join(v.removeprefix("v") for v in file.values()) for file in self.declared}
        return ", ".join(sorted(said))

    @property
    def result(self) -> str:
        if self.problems:
            return f"{len(self.problems)} WRONG"
        return f"{len(self.refused)} refused" if self.refused else "right"


def expected(row: int, name: str, array: np.ndarray) -> dict:
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    digest = hashlib.sha256(little.tobytes()).hexdigest()
    shape = list(array.shape)
    return {"row": row, "name": name, "shape_tczyx": shape, "dtype": array.dtype.name, "sha256": digest}


def pixels(i: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Noise, a ramp, few values and one value in turn, with the ends of the type and what is no number."""
    random = np.random.default_rng(i)
    kind, count = np.dtype(dtype), int(np.prod(shape))
    if kind.kind == "f":
        ends = [np.nan, np.inf, -np.inf, -0.0, np.finfo(kind).max, np.finfo(kind).tiny]
        values = [
            random.standard_normal(count),
            np.arange(count) / 8,
            random.integers(0, 3, count),
            np.full(count, 0.1),
        ]
    else:
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        ends = [least, most]
        ramp = np.arange(count) % 251 - (100 if least < 0 else 0) % (most - 250 or 1)
        values = [random.integers(least, most, count, endpoint=True), np.clip(ramp, least, most)]
        values += [random.integers(0, 3, count), np.full(count, most // 3)]
    array = values[i % 4].astype(kind)
    # The one value stays alone: engines keep that in a way of its own. Above 255 with 16 bits.
    if i % 4 != 3:
        array[: len(ends)] = ends
    return array.reshape(shape)


def struct(dtype: str) -> pa.StructType:
    """ome-arrow's own type, for pixels of a type."""

    def typed(of: pa.DataType, name: str) -> pa.DataType:
        if pa.types.is_struct(of):
            return pa.struct([pa.field(f.name, typed(f.type, f.name), f.nullable) for f in of])
        if pa.types.is_list(of):
            return pa.list_(pa.type_for_alias(dtype) if name == "pixels" else typed(of.value_type, name))
        return of

    return typed(ome_arrow.OME_ARROW_STRUCT, "")


def record(name: str, array: np.ndarray, has_grid: bool = True, rows: int = 20) -> dict:
    """An image in chunks of some rows of a plane."""
    (times, channels, depth, height, width) = array.shape
    chunks = []
    for t, c, z in np.ndindex(times, channels, depth):
        for y in range(0, height, rows):
            values = array[t, c, z, y : y + rows]
            place = {"t": t, "c": c, "z": z, "y": y, "x": 0}
            shape = {"shape_z": 1, "shape_y": values.shape[0], "shape_x": width}
            chunks.append({**place, **shape, "pixels": values.ravel()})
    sizes = dict(zip(["size_t", "size_c", "size_z", "size_y", "size_x"], array.shape, strict=True))
    about = {"dimension_order": "XYZCT", "type": array.dtype.name, **sizes, "channels": []}
    grid = {"order": "TCZYX", "chunk_t": 1, "chunk_c": 1, "chunk_z": 1, "chunk_y": rows, "chunk_x": width}
    tag = {"type": ome_arrow.OME_ARROW_TAG_TYPE, "version": ome_arrow.OME_ARROW_TAG_VERSION}
    image = {**tag, "id": name, "name": name, "pixels_meta": about, "chunks": chunks, "planes": []}
    return {**image, "chunk_grid": {**grid, "chunk_order": "ZYX"}} if has_grid else image


def with_columns(images: pa.Array) -> pa.Table:
    """A table with columns beside the images, all of which have gaps but one."""
    rows = range(len(images))
    beside = {
        "well": pa.array([None if i % 5 == 2 else f"B{i:02} µ" for i in rows], pa.string()),
        "dose": pa.array([None if i % 3 == 0 else i / 8 for i in rows], pa.float64()),
        "count": pa.array([None if i % 4 == 1 else i - 2 for i in rows], pa.int32()),
        "live": pa.array([None if i % 6 == 5 else i % 2 == 0 for i in rows], pa.bool_()),
        "site": pa.array(list(rows), pa.int64()),
    }
    return pa.table({**beside, "image": images})


def make_sets() -> list[Set]:
    sets = []
    for dtype in DTYPES:
        shapes = [(2, 3, 2, 17, 23) if i % 6 == 4 else (1, 1, 1, 45, 52) for i in range(len(NAMES))]
        images = [(name, pixels(i, dtype, shapes[i])) for i, name in enumerate(NAMES)]
        rows = pa.array([record(*image) for image in images], struct(dtype))
        sets.append(Set(dtype, images, with_columns(rows)))
    images = [
        (f"r{i // 96:02}c{i % 96:02}f{i:04}p01-ch1 ä", pixels(i, "uint16", (1, 1, 1, 4, 5))) for i in range(MANY)
    ]
    rows = pa.array([record(*image) for image in images], struct("uint16"))
    sets.append(Set("many", images, with_columns(rows)))
    # Structs that are null have values below them all the same.
    images = [(name, pixels(i, "uint16", (1, 1, 1, 9, 11))) for i, name in enumerate(NAMES)]
    rows = pa.array([record(*image, has_grid=False) for image in images], struct("uint16"))
    sets.append(Set("no-grid", images, with_columns(rows)))
    # As ome-arrow itself makes them.
    images = [(name, pixels(i, "uint16", (1, 2, 1, 30, 40))) for i, name in enumerate(NAMES)]
    made = [ome_arrow.from_numpy(array, name=name, image_id=name) for name, array in images]
    rows = pa.array([one.as_py() for one in made], ome_arrow.OME_ARROW_STRUCT)
    sets.append(Set("published", images, with_columns(rows)))
    return sets


def compressed(table: pa.Table, codec: str) -> pa.Table:
    """The table, with the codec of its pixels said as Lance wants it."""

    def said(of: pa.Field) -> pa.Field:
        if pa.types.is_struct(of.type):
            return of.with_type(pa.struct([said(f) for f in of.type]))
        if pa.types.is_list(of.type):
            inner = said(of.type.value_field)
            if of.name == "pixels":
                inner = inner.with_metadata({"lance-encoding:compression": codec})
            return of.with_type(pa.list_(inner))
        return of

    return table.cast(pa.schema([said(f) for f in table.schema]))


def by_lance(codec: str | None = None, fragments: int = 1, **options) -> Callable[[Set, Path], None]:
    def write(images: Set, path: Path) -> None:
        table = compressed(images.table, codec) if codec else images.table
        lance.write_dataset(table, str(path), max_rows_per_file=len(table) // fragments, **options)

    return write


def by_duckdb(storage: str | None = None, codec: str | None = None, copy: str | None = None):
    def write(images: Set, path: Path) -> None:
        with duckdb.connect() as connection:
            connection.register("source", images.table)
            if copy:
                connection.execute(f"COPY source TO '{path}' (FORMAT parquet, {copy})")
                return
            if codec:
                connection.execute(f"SET force_compression = '{codec}'")
            options = f" (STORAGE_VERSION '{storage}')" if storage else ""
            connection.execute(f"ATTACH '{path}' AS made{options}")
            connection.execute("CREATE TABLE made.images AS FROM source")
            connection.execute("DETACH made")

    return write


def by_pyarrow(**options) -> Callable[[Set, Path], None]:
    return lambda images, path: pq.write_table(images.table, path, **options)


def by_vortex(name: str) -> Callable[[Set, Path], None]:
    return lambda images, path: getattr(vortex.io.VortexWriteOptions, name)().write(images.table, str(path))


def one(images: Set) -> dict:
    """The first image, as the record that ome-arrow writes."""
    return images.table["image"][0].as_py()


def datasets(**options) -> Callable[[Set, Path], None]:
    return lambda images, path: ome_arrow.write_ome_arrow_dataset(images.table["image"].to_pylist(), path, **options)


def variants() -> list[Variant]:
    parquet_by_both = ["parquet", "parquet-duckdb"]
    # Its own type has pixels of 16 bits.
    in_own_type = {"takes": lambda images: images.name in ("uint8", "uint16", "published")}
    of_ome_arrow = {"is_single": True, "keeps_columns": False, **in_own_type}
    # Lance 2.0 has no structs that are null.
    of_lance_20 = {"takes": lambda images: images.name != "no-grid"}
    return [
        Variant("pylance", "default", "lance", by_lance()),
        Variant("pylance", "pixels zstd, 4 fragments", "lance", by_lance("zstd", fragments=4)),
        Variant("pylance", "pixels lz4", "lance", by_lance("lz4")),
        Variant("pylance", "pixels uncompressed", "lance", by_lance("none")),
        Variant("pylance", "format 2.0", "lance", by_lance(data_storage_version="2.0"), **of_lance_20),
        Variant("pylance", "format 2.1", "lance", by_lance(data_storage_version="2.1")),
        Variant("pylance", "format next", "lance", by_lance(data_storage_version="next"), is_stable=False),
        Variant("vortex-data", "default", "vortex", by_vortex("default")),
        Variant("vortex-data", "compact", "vortex", by_vortex("compact")),
        Variant("duckdb", "default", "duckdb", by_duckdb()),
        Variant("duckdb", "storage latest", "duckdb", by_duckdb("latest")),
        Variant("duckdb", "latest, uncompressed", "duckdb", by_duckdb("latest", "uncompressed")),
        Variant("duckdb", "Parquet, zstd", "parquet", by_duckdb(copy="CODEC zstd"), parquet_by_both),
        Variant("duckdb", "Parquet, uncompressed", "parquet", by_duckdb(copy="CODEC uncompressed"), parquet_by_both),
        Variant("pyarrow", "default", "parquet", by_pyarrow(), parquet_by_both),
        Variant("pyarrow", "uncompressed", "parquet", by_pyarrow(compression="none", use_dictionary=False)),
        Variant("pyarrow", "zstd, pages 2.0", "parquet", by_pyarrow(compression="zstd", data_page_version="2.0")),
        Variant("pyarrow", "lz4, small groups", "parquet", by_pyarrow(compression="lz4", row_group_size=5)),
        Variant(
            "ome-arrow", "Parquet, zstd", "parquet",
            lambda images, path: ome_arrow.to_ome_parquet(one(images), str(path)), **of_ome_arrow,
        ),
        Variant(
            "ome-arrow", "Parquet, uncompressed", "parquet",
            lambda images, path: ome_arrow.to_ome_parquet(one(images), str(path), compression=None), **of_ome_arrow,
        ),
        Variant(
            "ome-arrow", "Vortex", "vortex",
            lambda images, path: ome_arrow.to_ome_vortex(one(images), str(path)), **of_ome_arrow,
        ),
        Variant("ome-arrow", "dataset, zstd", "ome-arrow-dataset", datasets(), keeps_columns=False),
        Variant(
            "ome-arrow", "dataset, uncompressed, tiles", "ome-arrow-dataset",
            datasets(compression=None, chunk_shape=(1, 1, 1, 16, 16)), keeps_columns=False,
        ),
    ]  # fmt: skip


def declared(path: Path) -> dict[str, str]:
    """The versions that a file says it is of, by the names of the stamps that they are compared with."""
    match path.suffix:
        case ".lance":
            manifest = max(path.glob("_versions/*.manifest")).read_bytes()
            # The message `WriterVersion` in field 13: library and version.
            found = re.search(rb"\x6a.\x0a\x05lance\x12(.)", manifest, re.DOTALL)
            release = manifest[found.end() :][: found[1][0]].decode() if found else "?"
            return {"RELEASE": release, "FORMAT": lance.dataset(str(path)).data_storage_version}
        case ".vortex":
            return {"FORMAT": str(int.from_bytes(path.read_bytes()[-8:-6], "little"))}
        case ".duckdb":
            head = path.read_bytes()[: 3 * 4096]
            storage = max(int.from_bytes(head[at + 56 :][:8], "little") for at in (4096, 8192))
            return {"RELEASE": head[52:84].split(b"\0")[0].decode(), "STORAGE": str(storage)}
        case ".parquet":
            return {"": pq.read_metadata(path).format_version}
    return {"": pq.read_schema(path / "images.parquet").metadata[b"ome.arrow.version"].decode()}


def stamps(ending: str) -> dict[str, tuple[str, str]]:
    """An engine's stamps by name: version, and the source file that it stands in."""
    found = {}
    for source in sorted((ROOT / "crates" / f"wellread-{ending}" / "src").rglob("*.rs")):
        for name, newest in STAMP.findall(source.read_text()):
            found[name] = (newest, source.relative_to(ROOT).as_posix())
    assert found, f"wellread-{ending} has no stamp that is written like `{STAMP.pattern}`"
    return found


def numbers(of: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", of)]


def is_newer(declares: str, stamp: str) -> bool:
    """As `TestedVersion` in wellread-store compares: by as many numbers as the stamp has."""
    wanted = numbers(stamp)
    return numbers(declares)[: len(wanted)] > wanted


class Refused(Exception):
    """The program's words for a file that it cannot read."""


class Wellread:
    """The program, with one of DuckDB's libraries."""

    def __init__(self, library: str):
        program = os.environ.get("WELLREAD") or shutil.which("wellread")
        if not program:
            sys.exit("error: set WELLREAD to the program that is to read the files (hint: make engines-latest)")
        self.program = program
        self.environment = {**os.environ, "WELLREAD_DUCKDB": library}

    def __call__(self, *arguments) -> tuple[dict | list, str]:
        """The JSON document and what was said beside it."""
        command = [self.program, "--json", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=self.environment)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            is_refused = done.returncode in (1, 2) and said and said[-1].startswith("error: ")
            raise Refused(said[-1]) if is_refused else RuntimeError(f"exit code {done.returncode}: {said[-1:]}")
        return json.loads(done.stdout), done.stderr


def libraries() -> dict[str, Wellread]:
    """DuckDB's libraries to read with, by release: that of this environment first."""
    found = {duckdb.__version__: Wellread(sys.executable)}
    named = os.environ.get("WELLREAD_DUCKDB")
    if named:
        ask = [named, "-c", "import duckdb; print(duckdb.__version__)"]
        try:
            release = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            release = Path(named).name
        found.setdefault(release, Wellread(named))
    return found


def check(wellread: Wellread, path: Path, read_as: str | None, images: Set, row: Row) -> None:
    """Reads a file; what is wrong with it is noted in the row."""
    fmt = ["--read-as", read_as] if read_as else []
    want = images.expected[:1] if row.variant.is_single else images.expected
    about, said = wellread("info", path, *fmt)
    if about["images"] != len(want):
        row.problems.append(f"{path.name}: info counts {about['images']} images of {len(want)}")
    sums, noted = wellread("checksum", path, *fmt)
    said += noted
    wrong = [f"{w['name'][:40]!r}" for s, w in zip(sums, want, strict=False) if s != w]
    if len(sums) != len(want) or wrong:
        some = f": {', '.join(wrong[:3])}" if wrong else ""
        row.problems.append(f"{path.name}: {len(sums)} images of {len(want)}, {len(wrong)} differ{some}")
    if row.variant.keeps_columns:
        out = path.with_name(f"{path.name}.back.parquet")
        wellread("convert", path, out, "--overwrite", *fmt)
        table = pq.read_table(out)
        for name in images.table.column_names[:-1]:
            kept = table[name].to_pylist() if name in table.column_names else None
            if kept != images.table[name].to_pylist():
                row.problems.append(f"{path.name}: the column {name} differs")
        out.unlink()
    note = NOTE.search(said)
    if row.variant.ending not in STAMPED:
        return
    known = stamps(row.variant.ending)
    newer = [name for name, (newest, _) in known.items() if is_newer(row.declared[-1][name], newest)]
    if bool(note) != bool(newer):
        what = "says that it is newer" if note else "says nothing of it"
        row.problems.append(f"{path.name}: newer than the stamps {newer or 'none'}, and the program {what}")
    row.readers.add("library" if note else "own reader")


def run(variant: Variant, sets: list[Set], read_with: dict[str, Wellread], out: Path) -> list[Row]:
    """Writes all sets in one way, and reads them in all ways."""
    folder = out / variant.folder
    folder.mkdir()
    written: list[tuple[Set, Path]] = []
    unwritten = []
    for images in filter(variant.takes, sets):
        path = folder / f"{images.name}.{variant.ending}"
        try:
            variant.write(images, path)
            written.append((images, path))
        except Exception as error:
            unwritten.append(f"{path.name}: cannot be written: {error}")
    rows = []
    for read_as in variant.read_as or [None]:
        in_duckdb = "duckdb" in (read_as or variant.ending)
        for release, wellread in list(read_with.items())[: None if in_duckdb else 1]:
            reading = [*filter(None, [read_as]), *([f"DuckDB {release}"] if in_duckdb else [])]
            row = Row(variant, " by ".join(reading), problems=list(unwritten))
            rows.append(row)
            # Older releases of a library need not read what newer ones have written.
            may_refuse = not variant.is_stable or (in_duckdb and numbers(release) < numbers(duckdb.__version__))
            for images, path in written:
                row.files += 1
                try:
                    row.declared.append(declared(path))
                    check(wellread, path, read_as, images, row)
                except Exception as error:
                    is_allowed = may_refuse and isinstance(error, Refused)
                    (row.refused if is_allowed else row.problems).append(f"{path.name}: {error}")
    return rows


def newer_than_stamps(rows: list[Row]) -> list[str]:
    """The stamps that newest releases go beyond, and what each can be raised to where all their files are right."""
    lines = []
    for ending in STAMPED:
        own = [row for row in rows if row.variant.ending == ending]
        files = [file for row in own if row.variant.is_stable for file in row.declared]
        wrong = sum(len(row.problems) for row in own)
        for name, (newest, source) in stamps(ending).items():
            most = max((file[name] for file in files), key=numbers, default=newest)
            if is_newer(most, newest):
                to = ".".join(map(str, numbers(most)[: len(numbers(newest))]))
                what = f'stays at "{newest}": {wrong} problems' if wrong else f'from "{newest}" to "{to}"'
                lines.append(f"  {source}: {name} {what}")
    return lines


def print_table(rows: list[Row]) -> None:
    head = ["engine", "release", "written as", "declares", "read as", "read by", "files", "result"]
    lines = [
        [
            row.variant.package, version(row.variant.package), row.variant.name, row.versions,
            row.reading or "-", ", ".join(sorted(row.readers)) or "-", str(row.files), row.result,
        ]
        for row in rows
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for line in [head, ["-" * w for w in widths], *lines]:
        print("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description="Files of the newest releases of each engine, read by wellread.")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "results" / "engines-latest", help="where files are written"
    )
    out = parser.parse_args().out
    read_with = libraries()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    sets = make_sets()
    rows = []
    for variant in variants():
        print(f"{variant.package}: {variant.name}", file=sys.stderr)
        rows += run(variant, sets, read_with, out)
    print_table(rows)
    for row in rows:
        for problem in row.problems + row.refused:
            print(f"{row.variant.package}, {row.variant.name}: {problem}")
    newer = newer_than_stamps(rows)
    if newer:
        print(
            "Stamps to raise. Then build and run this again: so far the library has read these files.",
            *newer,
            sep="\n",
        )
    else:
        print("No stamp is to be raised: no stable format above is newer than its stamp.")
    if any(row.problems for row in rows):
        sys.exit(f"error: files of newest releases are read wrongly or not at all; they are in {out}")
    shutil.rmtree(out)


if __name__ == "__main__":
    main()
