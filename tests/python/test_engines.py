"""Lance, Vortex and DuckDB: our tables read by the engines' Python libraries, theirs read by wellread.

Long because all engines have one list of readers and writers, which every test goes through.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

import duckdb
import lance
import lancedb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import vortex
import wellread as wr
from ome_arrow import OMEArrow
from test_cross_reading import assemble, check


def read_lance(path):
    return lance.dataset(str(path)).to_table()


def read_lancedb(path):
    """The same folder as a table of a LanceDB database."""
    return lancedb.connect(str(path.parent)).open_table(path.stem).to_arrow()


def read_vortex(path):
    return vortex.open(str(path)).scan().read_all().to_arrow_table()


def read_duckdb(path):
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.sql("SELECT * FROM images ORDER BY row_id").to_arrow_table()


def read_parquet(path):
    return pq.read_table(path)


READERS = {
    "lance": ("images.lance", read_lance),
    "lancedb": ("images.lance", read_lancedb),
    "vortex": ("images.vortex", read_vortex),
    "duckdb": ("images.duckdb", read_duckdb),
    "parquet-duckdb": ("images-duckdb.parquet", read_parquet),
}


def test_a_build_of_the_workspace_has_the_engines(wellread):
    """They are default features of the crate `wellread` alone. Tests that skip absent formats would skip them
    unseen."""
    package = pytest.importorskip("wellread")
    missing = {absent["name"] for absent in wellread("doctor")["formats_missing"]}
    for engine in ("lance", "vortex", "duckdb"):
        assert engine not in missing
        assert engine in package.formats()


@pytest.mark.parametrize("reader", READERS)
def test_the_engines_libraries_read_our_tables(generated, reader):
    folder, expected, _ = generated
    name, read = READERS[reader]
    table = read(folder / name)
    assert table["row_id"].to_pylist() == list(range(len(expected)))
    images = table["ome_image"].to_pylist()
    check({i["name"]: assemble(i) for i in images}, expected)
    dtype = next(iter(expected.values()))["dtype"]
    if dtype in ("uint8", "uint16"):
        check({i["name"]: OMEArrow(data=i).export(how="numpy", dtype=np.dtype(dtype)) for i in images}, expected)


OPENED_TWICE = """
import hashlib, json, sys, wellread
sets = [wellread.Dataset(path) for path in sys.argv[1:]]
print(json.dumps([[hashlib.sha256(images[i].tobytes()).hexdigest() for i in range(len(images))] for images in sets]))
"""


def as_if_by(release, path, target):
    """A copy of a database whose header names another release of DuckDB."""
    content = bytearray(path.read_bytes())
    content[52:84] = release.encode().ljust(32, b"\0")
    # DuckDB's checksum of the first header.
    words = np.frombuffer(content, "<u8", count=511, offset=8)
    mixed = np.bitwise_xor.reduce(words * np.uint64(0xBF58476D1CE4E5B9)) ^ np.uint64(5381)
    content[:8] = int(mixed).to_bytes(8, "little")
    target.write_bytes(content)
    return target


def test_databases_of_a_newer_release_are_read_by_the_library_with_one_note(generated, tmp_path):
    folder, _, _ = generated
    tested = folder / "images.duckdb"
    newer = [as_if_by("v9.1.0", tested, tmp_path / name) for name in ("a.duckdb", "b.duckdb")]

    def read(*paths):
        command = [sys.executable, "-c", OPENED_TWICE, *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout), [line for line in done.stderr.splitlines() if line.startswith("note: ")]

    # By the DuckDB of these tests: when that is raised, the stamp is, too.
    (right,), silent = read(tested)
    found, notes = read(*newer)
    assert silent == [] and len(set(right)) > 1
    assert found == [right, right]
    (note,) = notes
    assert f"{newer[0]} was written by DuckDB v9.1.0, newer than " in note
    assert note.endswith("it is read through the library")


@pytest.mark.parametrize("format", ["lance", "vortex", "duckdb", "parquet-duckdb", "parquet"])
def test_options_keep_pixels(wellread, generated, tmp_path, format):
    folder, expected, _ = generated
    source = folder / "images.parquet"
    endings = {"lance": "lance", "vortex": "vortex", "duckdb": "duckdb"}
    for tune in ["random", "scan", "size", "reference"]:
        target = tmp_path / f"{tune}.{endings.get(format, 'parquet')}"
        wellread("convert", source, target, "--format", format, "--tune", tune, "--chunk", "1,1,2,24,32")
        sums = wellread("checksum", target, "--read-as", format)
        assert {s["name"]: s["sha256"] for s in sums} == {n: e["sha256"] for n, e in expected.items()}, tune


def struct_type(pixels):
    """The look of upstream's inferred tables, with pixels of another type."""
    chunk = pa.struct(
        [(a, pa.int64()) for a in ["t", "c", "z", "y", "x", "shape_z", "shape_y", "shape_x"]]
        + [("pixels", pa.list_(pixels))]
    )
    meta = pa.struct([("type", pa.string()), *[(f"size_{a}", pa.int64()) for a in "xyzct"]])
    return pa.struct([("name", pa.string()), ("pixels_meta", meta), ("chunks", pa.list_(chunk))])


def image(i):
    pixels = np.random.default_rng(i).integers(0, 60_000, (6, 7), dtype=np.uint16)
    place = dict.fromkeys(["t", "c", "z", "y", "x"], 0)
    chunk = {**place, "shape_z": 1, "shape_y": 6, "shape_x": 7, "pixels": pixels.ravel().tolist()}
    sizes = dict(zip(["size_x", "size_y", "size_z", "size_c", "size_t"], [7, 6, 1, 1, 1], strict=True))
    return pixels, {"name": f"i{i}", "pixels_meta": {"type": "uint16", **sizes}, "chunks": [chunk]}


def write_lance(table, path):
    lance.write_dataset(table, str(path))


def write_vortex(table, path):
    vortex.io.write(table, str(path))


def write_duckdb(table, path):
    with duckdb.connect(str(path)) as connection:
        connection.register("source", table)
        connection.execute("CREATE TABLE images AS FROM source")


def write_parquet(table, path):
    pq.write_table(table, path)


WRITERS = {
    "lance": ("a.lance", write_lance),
    "vortex": ("a.vortex", write_vortex),
    "duckdb": ("a.duckdb", write_duckdb),
    "parquet-duckdb": ("a.parquet", write_parquet),
    "parquet": ("a.parquet", write_parquet),
}


@pytest.mark.parametrize("pixels", ["uint16", "int64", "int32", "uint32", "float64"])
@pytest.mark.parametrize("format", WRITERS)
def test_foreign_tables_with_nulls_and_features(wellread, tmp_path, format, pixels):
    """Rows without an image are named or left out; columns beside the images go through every conversion."""
    name, write = WRITERS[format]
    made = [image(i) for i in range(7)]
    images = [None if i == 3 else m[1] for i, m in enumerate(made)]
    table = pa.table(
        {
            "well": [f"A{i:02}" for i in range(7)],
            "dose": pa.array([None, *range(6)], pa.float64()),
            "image": pa.array(images, struct_type(pa.type_for_alias(pixels))),
        }
    )
    path = tmp_path / name
    write(table, path)
    error = wellread("checksum", path, "--read-as", format, code=1)
    assert "row 3" in error and "--skip-null" in error
    target = tmp_path / "out.parquet"
    wellread("convert", path, target, "--read-as", format, "--skip-null")
    out = pq.read_table(target)
    kept = [i for i in range(7) if i != 3]
    assert out["well"].to_pylist() == [f"A{i:02}" for i in kept]
    assert out["dose"].to_pylist() == [table["dose"][i].as_py() for i in kept]
    for i, found in zip(kept, out["ome_image"].to_pylist(), strict=True):
        assert np.array_equal(assemble(found)[0, 0, 0], made[i][0])


def test_features_go_through_every_engine(wellread, tmp_path):
    made = [image(i)[1] for i in range(4)]
    table = pa.table({"well": list("abcd"), "n": [1, None, 3, 4], "image": pa.array(made, struct_type(pa.uint16()))})
    source = tmp_path / "source.parquet"
    pq.write_table(table, source)
    for name, read in [("a.lance", read_lance), ("a.vortex", read_vortex), ("a.duckdb", read_duckdb)]:
        wellread("convert", source, tmp_path / name)
        found = read(tmp_path / name)
        assert (found["well"].to_pylist(), found["n"].to_pylist()) == (list("abcd"), [1, None, 3, 4]), name
        back = tmp_path / f"{name}.parquet"
        wellread("convert", tmp_path / name, back)
        assert pq.read_table(back)["n"].to_pylist() == [1, None, 3, 4], name


def test_columns_with_names_that_lance_cannot_have_are_renamed(wellread, tmp_path):
    """pylance panicked on a table with a column `_rowid`, and did not select one without a name."""
    images = pa.array([image(i)[1] for i in range(2)], struct_type(pa.uint16()))
    named = {
        "_rowid": "_rowid_y",
        "_rowaddr": "_rowaddr_y",
        "_rowoffset": "_rowoffset_y",
        "_row_created_at_version": "_row_created_at_version_y",
        "_row_last_updated_at_version": "_row_last_updated_at_version_y",
        "": "unnamed",
        "a.b": "a_b",
    }
    columns = {name: [i, 10 + i] for i, name in enumerate(named)}
    pq.write_table(pa.table({**columns, "image": images}), tmp_path / "a.parquet")
    done = wellread("convert", tmp_path / "a.parquet", tmp_path / "b.lance")
    assert done["columns_renamed"] == [[old, new] for old, new in named.items()]
    found = read_lance(tmp_path / "b.lance")
    for old, new in named.items():
        assert found[new].to_pylist() == columns[old], new
        alone = lance.dataset(str(tmp_path / "b.lance")).to_table(columns=[new])
        assert alone[new].to_pylist() == columns[old], new


@pytest.mark.parametrize("format", ["legacy", "2.0", "stable", "duckdb"])
def test_categories_are_columns_of_text(wellread, tmp_path, format):
    """Arrow's dictionaries in files of Lance, each with a dictionary of its own, and DuckDB's ENUM."""
    # The oldest files know no nulls, and one dictionary.
    words = ["x", "z" if format == "legacy" else None, "y", "x", "z"]
    images = pa.array([image(i)[1] for i in range(5)], struct_type(pa.uint16()))
    table = pa.table({"drug": pa.array(words).dictionary_encode(), "image": images})
    path = tmp_path / ("a.duckdb" if format == "duckdb" else "a.lance")
    if format == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.register("source", table)
            enum = "drug::VARCHAR::ENUM ('x', 'y', 'z')"
            connection.execute(f"CREATE TABLE images AS SELECT * REPLACE ({enum} AS drug) FROM source")
    else:
        rows = 5 if format == "legacy" else 3
        lance.write_dataset(table, str(path), data_storage_version=format, max_rows_per_file=rows)
    target = tmp_path / "out.parquet"
    about = wellread("convert", path, target)
    assert (about["feature_columns"], about["columns_left_out"]) == (1, [])
    assert pq.read_table(target)["drug"].to_pylist() == words


def test_intervals_are_left_out_for_every_format(wellread, tmp_path):
    """Months, days and hours at once: DuckDB alone has a type for them."""
    images = pa.array([image(i)[1] for i in range(3)], struct_type(pa.uint16()))
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("source", pa.table({"n": [0, 1, 2], "image": images}))
        connection.execute("CREATE TABLE images AS SELECT *, INTERVAL 3 HOUR AS wait FROM source")
    for name, read in [
        ("b.parquet", read_parquet),
        ("b.lance", read_lance),
        ("b.vortex", read_vortex),
        ("b.duckdb", read_duckdb),
    ]:
        about = wellread("convert", path, tmp_path / name)
        assert (about["feature_columns"], about["columns_left_out"]) == (1, ["wait"]), name
        assert read(tmp_path / name)["n"].to_pylist() == [0, 1, 2], name


def test_types_of_duckdb_that_others_lack_are_left_out(wellread, tmp_path):
    """VARIANT made the table unreadable, the offsets of times were lost, and the largest UHUGEINT was -1."""
    images = pa.array([image(i)[1] for i in range(3)], struct_type(pa.uint16()))
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("source", pa.table({"n": [0, 1, 2], "image": images}))
        connection.execute(
            "CREATE TABLE images AS SELECT *, 'a'::VARIANT AS any_value, '12:00:00+05'::TIMETZ AS begun, "
            "1::UHUGEINT AS most, '12:00:00.000001999'::TIME_NS AS fine FROM source"
        )
    for name, read in [("b.parquet", read_parquet), ("b.lance", read_lance), ("b.duckdb", read_duckdb)]:
        about = wellread("convert", path, tmp_path / name)
        assert about["feature_columns"] == 2, name
        assert sorted(about["columns_left_out"]) == ["any_value", "begun", "most"], name
        table = read(tmp_path / name)
        assert table["n"].to_pylist() == [0, 1, 2], name
        assert table["fine"].cast(pa.int64()).to_pylist() == [43_200_000_001_999] * 3, name


def test_times_in_seconds_are_times_in_parquet(wellread, tmp_path):
    """Parquet has times of milliseconds and finer alone: pyarrow read whole numbers."""
    images = pa.array([image(i)[1] for i in range(2)], struct_type(pa.uint16()))
    seen = pa.array([1_700_000_000, None], pa.timestamp("s"))
    begun = pa.array([3_600, None], pa.time32("s"))
    day = pa.array([86_400_000, None], pa.date64())
    path = tmp_path / "a.lance"
    lance.write_dataset(pa.table({"seen": seen, "begun": begun, "day": day, "image": images}), str(path))
    wanted = {
        "seen": seen.cast(pa.timestamp("ms")),
        "begun": begun.cast(pa.time32("ms")),
        "day": day.cast(pa.date32()),
    }
    wellread("convert", path, tmp_path / "b.parquet")
    wellread("convert", path, tmp_path / "b.zarr")
    [beside] = (tmp_path / "b.zarr").rglob("*.parquet")
    for file in [tmp_path / "b.parquet", beside]:
        table = pq.ParquetFile(file).read()
        for name, column in wanted.items():
            assert table[name].type == column.type, (file, name)
            assert table[name].to_pylist() == column.to_pylist(), (file, name)


@pytest.mark.parametrize("end", ["parquet", "lance", "duckdb"])
def test_types_of_images_and_masks_are_named_where_they_are_left_out(wellread, tmp_path, end):
    """Tables of other writers have them, and wellread's metadata have no place for either."""
    fields = [*struct_type(pa.uint16()), pa.field("image_type", pa.string())]
    write = {"parquet": pq.write_table, "lance": write_lance, "duckdb": write_duckdb}[end]
    for name, masks, expected in [
        ("with", pa.list_(pa.struct([("label", pa.int64())])), ["types of images", "masks"]),
        ("without", None, ["types of images"]),
    ]:
        all_fields = fields + ([pa.field("masks", masks)] if masks else [])
        more = {"image_type": "fluorescence", **({"masks": [{"label": 1}]} if masks else {})}
        images = pa.array([image(i)[1] | more for i in range(2)], pa.struct(all_fields))
        path = tmp_path / "sets" / f"{name}.{end}"
        path.parent.mkdir(exist_ok=True)
        write(pa.table({"image": images}), path)
        about = wellread("convert", path, tmp_path / f"{name}-{end}-again.parquet")
        assert about["metadata_left_out"] == expected, name
    # Of parts, each fact once.
    about = wellread("convert", tmp_path / "sets" / f"*.{end}", tmp_path / f"all-{end}.parquet")
    assert about["metadata_left_out"] == ["types of images", "masks"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+05:30", "UTC"])
def test_zones_of_times_are_kept(wellread, tmp_path, zone):
    """Parquet itself has moments alone: the zone is in Arrow's schema beside them."""
    images = pa.array([image(i)[1] for i in range(2)], struct_type(pa.uint16()))
    seen = pa.array([1_700_000_000_000_001, None], pa.timestamp("us", zone))
    pq.write_table(pa.table({"seen": seen, "image": images}), tmp_path / "a.parquet")
    for name, read in [("b.parquet", read_parquet), ("b.lance", read_lance), ("b.vortex", read_vortex)]:
        wellread("convert", tmp_path / "a.parquet", tmp_path / name)
        found = read(tmp_path / name)["seen"].combine_chunks()
        assert found.type == seen.type, name
        assert found.cast(pa.int64()).to_pylist() == [1_700_000_000_000_001, None], name


@pytest.mark.parametrize("options", [{"coerce_timestamps": "ms"}, {"version": "2.4"}])
def test_zones_of_times_in_another_unit_are_kept(wellread, tmp_path, options):
    """Arrow's schema in the file says nanoseconds, and Parquet's says coarser ones."""
    images = pa.array([image(i)[1] for i in range(2)], struct_type(pa.uint16()))
    seen = pa.array([1_700_000_000_000_000_000, None], pa.timestamp("ns", "Europe/Berlin"))
    pq.write_table(pa.table({"seen": seen, "image": images}), tmp_path / "a.parquet", **options)
    stored = pq.read_table(tmp_path / "a.parquet")["seen"].type
    assert stored.tz == "Europe/Berlin" and stored.unit != "ns"
    for name, read in [("b.parquet", read_parquet), ("b.lance", read_lance)]:
        wellread("convert", tmp_path / "a.parquet", tmp_path / name)
        found = read(tmp_path / name)["seen"].combine_chunks()
        assert found.type == stored, name
        assert found.cast(pa.timestamp("ns", "Europe/Berlin")).to_pylist() == seen.to_pylist(), name


def test_times_that_others_do_not_have_are_named(wellread, tmp_path):
    """DuckDB's infinity was the year 294247, and the year 9999 in INT96, as Spark writes it, was 1816."""
    images = pa.array([image(i)[1] for i in range(3)], struct_type(pa.uint16()))
    numbers = {"infinite": (1 << 63) - 1, "far": 253_402_214_400_000_000, "day": 1_795_219_200_000_000}
    said = {"infinite": "has the time infinity", "far": "has the time 9999-12-31T00:00:00 in INT96"}
    for name, number in numbers.items():
        path = tmp_path / f"{name}.parquet"
        seen = pa.array([0, None, number], pa.int64()).cast(pa.timestamp("us"))
        table = pa.table({"seen": seen, "image": images})
        pq.write_table(table, path, use_deprecated_int96_timestamps=name == "far")
        if name not in said:
            keys = [group["key"] for group in wellread("stats", path, "--by", "seen")["groups"]]
            assert keys == [["1970-01-01T00:00:00"], [None], ["2026-11-21T00:00:00"]]
            continue
        with pytest.raises(wr.Error, match=f'row 2: the column "seen" {said[name]}') as failed:
            wr.Dataset(path).column("seen")
        assert "wellread convert --without-column" in str(failed.value)
        assert "--without-column" in wellread("convert", path, tmp_path / "b.parquet", code=1)
        wellread("convert", path, tmp_path / f"without-{name}.parquet", "--without-column", "seen")


def test_zones_of_times_in_seconds_are_kept(wellread, tmp_path):
    """pyarrow writes seconds as milliseconds to Parquet, and Arrow's schema beside them says seconds."""
    images = pa.array([image(i)[1] for i in range(2)], struct_type(pa.uint16()))
    seen = pa.array([1_700_000_000, None], pa.timestamp("s", "Europe/Vienna"))
    pq.write_table(pa.table({"seen": seen, "image": images}), tmp_path / "a.parquet")
    for name, read in [("b.parquet", read_parquet), ("b.lance", read_lance), ("b.vortex", read_vortex)]:
        wellread("convert", tmp_path / "a.parquet", tmp_path / name)
        found = read(tmp_path / name)["seen"].combine_chunks()
        assert found.type == pa.timestamp("ms", "Europe/Vienna"), name
        assert found.cast(pa.int64()).to_pylist() == [1_700_000_000_000, None], name


@pytest.mark.parametrize("format", ["lance", "duckdb", "parquet"])
def test_a_table_without_rows_has_no_image_to_convert(wellread, tmp_path, format):
    name, write = WRITERS[format]
    images = pa.array([image(i)[1] for i in range(2)], struct_type(pa.uint16()))
    table = pa.table({"n": [0, 1], "well": ["a", "b"], "image": images})
    path = tmp_path / name
    write(table.slice(0, 0) if format == "parquet" else table, path)
    if format == "lance":
        lance.dataset(str(path)).delete("n >= 0")
    elif format == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.execute("DELETE FROM images")
    error = wellread("convert", path, tmp_path / "out.parquet", code=1)
    assert "there is no image to convert" in error


def test_lancedb_folders_with_several_tables(wellread, tmp_path):
    database = lancedb.connect(str(tmp_path / "db"))
    for name, count in [("first", 2), ("second", 3)]:
        rows = pa.array([image(i)[1] for i in range(count)], struct_type(pa.uint16()))
        database.create_table(name, pa.table({"image": rows}))
    assert wellread("info", tmp_path / "db", "--table", "second")["images"] == 3
    error = wellread("info", tmp_path / "db", code=2)
    assert "first" in error and "second" in error and "--table" in error
    assert "first" in wellread("info", tmp_path / "db", "--table", "third", code=2)


def test_lance_files_of_the_oldest_format(wellread, tmp_path):
    made = [image(i) for i in range(9)]
    rows = pa.array([m[1] for m in made], struct_type(pa.uint16()))
    path = tmp_path / "a.lance"
    lance.write_dataset(pa.table({"n": range(9), "image": rows}), str(path), data_storage_version="legacy")
    assert "0.1" in wellread("info", path)["variant"]
    wellread("convert", path, tmp_path / "out.parquet")
    images = pq.read_table(tmp_path / "out.parquet")["ome_image"].to_pylist()
    for found, (pixels, _) in zip(images, made, strict=True):
        assert np.array_equal(assemble(found)[0, 0, 0], pixels)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_lance_files_of_other_formats_in_several_fragments(wellread, tmp_path, version):
    made = [image(i) for i in range(9)]
    path = tmp_path / "a.lance"
    table = pa.table({"n": range(9), "image": pa.array([m[1] for m in made], struct_type(pa.uint16()))})
    lance.write_dataset(table, str(path), data_storage_version=version, max_rows_per_file=4, max_rows_per_group=4)
    about = wellread("info", path)
    assert version in about["variant"] and about["layout"] == "3 fragments"
    wellread("convert", path, tmp_path / "out.parquet")
    images = pq.read_table(tmp_path / "out.parquet")["ome_image"].to_pylist()
    for found, (pixels, _) in zip(images, made, strict=True):
        assert np.array_equal(assemble(found)[0, 0, 0], pixels)


@pytest.mark.parametrize("structure", ["miniblock", "fullzip", "sparse"])
def test_a_damaged_piece_of_lances_newest_format_is_an_error_before_lance_asks_for_its_memory(
    wellread, tmp_path, structure
):
    """A piece begins with its size. One of 32 TiB ended the process, or said that there was not enough memory."""
    long = "".join(chr(97 + i * i // 7 % 23) for i in range(40_000))
    texts = [None if row % 2 else f"{row}{long}" for row in range(6)]
    kept = {"lance-encoding:compression": "zstd", "lance-encoding:structural-encoding": structure}
    schema = pa.schema([pa.field("text", pa.string(), metadata=kept), pa.field("image", struct_type(pa.uint16()))])
    columns = [pa.array(texts), pa.array([image(row)[1] for row in range(6)], schema.field("image").type)]
    path = tmp_path / "a.lance"
    lance.write_dataset(pa.table(columns, schema=schema), str(path), data_storage_version="2.3")
    wellread("convert", path, tmp_path / "good.parquet")
    assert pq.read_table(tmp_path / "good.parquet")["text"].to_pylist() == texts
    (file,) = (path / "data").iterdir()
    data = bytearray(file.read_bytes())
    # Behind eight bytes of the size.
    data[data.index(b"\0\0\0\0\x28\xb5\x2f\xfd") + 1] = 0x20
    file.write_bytes(data)
    said = wellread("convert", path, tmp_path / "out.parquet", code=1)
    assert "a.lance" in said and "larger than it can be" in said and "panicked" not in said


@pytest.mark.parametrize("version", ["legacy", "stable"])
def test_columns_added_to_a_lance_table(wellread, tmp_path, version):
    """Each lies in files of its own; one that was added without values lies in none."""
    path = tmp_path / "a.lance"
    table = pa.table({"n": range(9), "image": pa.array([image(i)[1] for i in range(9)], struct_type(pa.uint16()))})
    dataset = lance.write_dataset(table, str(path), data_storage_version=version, max_rows_per_file=4)
    dataset.add_columns({"twice": "n * 2"})
    if version != "legacy":
        dataset.add_columns(pa.field("dose", pa.float32()))
    dataset.delete("n = 5")
    wellread("convert", path, tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    left = [0, 1, 2, 3, 4, 6, 7, 8]
    assert found["n"].to_pylist() == left and found["twice"].to_pylist() == [2 * n for n in left]
    assert [i["name"] for i in found["ome_image"].to_pylist()] == [f"i{n}" for n in left]
    if version != "legacy":
        assert found["dose"].to_pylist() == [None] * len(left)


def test_deleted_lance_rows_are_gone(wellread, tmp_path):
    rows = pa.array([image(i)[1] for i in range(9)], struct_type(pa.uint16()))
    path = tmp_path / "a.lance"
    dataset = lance.write_dataset(pa.table({"n": range(9), "image": rows}), str(path), max_rows_per_file=4)
    dataset.delete("n IN (0, 5)")
    sums = wellread("checksum", path)
    assert [s["name"] for s in sums] == [f"i{i}" for i in [1, 2, 3, 4, 6, 7, 8]]


@pytest.mark.parametrize("name, read", [("a.lance", read_lance), ("a.duckdb", read_duckdb)])
def test_the_engines_libraries_read_what_was_killed_and_resumed(wellread, tmp_path, name, read):
    wellread("generate", tmp_path / "set", "--images", 160, "--size", "512x512", "--formats", "tiff")
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    arguments = ["convert", tmp_path / "set" / "tiff", tmp_path / name, "--resume"]
    left = tmp_path / f".wellread-resume-{name}"
    process = subprocess.Popen([binary, *map(str, arguments)], stderr=subprocess.DEVNULL)
    written = 0
    # Whenever that is: what it leaves is gone on with.
    while process.poll() is None and written < 30 << 20:
        # Files come and go while they are counted.
        with contextlib.suppress(OSError):
            written = sum(path.stat().st_size for path in left.rglob("*") if path.is_file())
        time.sleep(0.001)
    process.kill()
    process.wait()
    if not (tmp_path / name).exists():
        wellread(*arguments)
    table = read(tmp_path / name)
    assert table["row_id"].to_pylist() == list(range(160))
    expected = {e["name"]: e for e in json.loads((tmp_path / "set" / "expected.json").read_text())["images"]}
    images = table["ome_image"].to_pylist()[::20]
    found = {i["name"]: assemble(i) for i in images}
    check(found, {name: expected[name] for name in found})


@pytest.mark.parametrize(
    "format, name",
    [("parquet", "a.parquet"), ("ome-arrow-dataset", "a"), ("vortex", "a.vortex"), ("duckdb", "a.duckdb")],
)
def test_a_table_that_is_written_to_is_an_error(wellread, tmp_path, format, name):
    """New pixels at the old places would come with labels that were read before."""
    tables = []
    for well in ("A1", "B2"):
        made = [image(i + 10 * (well == "B2"))[1] for i in range(4)]
        columns = {"well": [well] * 4, "image": pa.array(made, struct_type(pa.uint16()))}
        pq.write_table(pa.table(columns), tmp_path / f"{well}.parquet")
        tables.append(tmp_path / well / name)
        tables[-1].parent.mkdir()
        wellread("convert", tmp_path / f"{well}.parquet", tables[-1], "--format", format)
    ds = wr.Dataset(tables[0])
    before = ds[0].copy()
    for new in sorted(tables[1].rglob("*")) if tables[1].is_dir() else [tables[1]]:
        if new.is_file():
            shutil.copyfile(new, tables[0] / new.relative_to(tables[1]))
    with pytest.raises(wr.Error, match="was written to after it was opened"):
        list(wr.DataLoader(ds, 2, labels="well"))
    anew = wr.Dataset(tables[0])
    assert list(anew.column("well")) == ["B2"] * 4
    assert not np.array_equal(anew[0], before)


def test_lance_reads_a_dataset_whose_fragments_several_tasks_wrote(wellread, tmp_path):
    from wellread import _native
    from wellread.ray import _write

    [written] = wellread("generate", tmp_path, "--images", 7, "--size", "20x24", "--formats", "parquet")["written"]
    source, target = wr.Dataset(written["path"])._native, tmp_path / "set.lance"
    choices = _write.options() | {"types": _native.types_of(source)}
    parts = _native.Parts(str(target), "lance", False, None)
    names = [parts.part_name(number) for number in range(3)]
    for name, rows in zip(names, ([0, 1, 2], [3], [4, 5, 6]), strict=True):
        _native.write_part(source.select(rows), parts.part(name), "lance", choices, 1 << 20, True)
    assert parts.commit(names, choices, source) == 7
    dataset = lance.dataset(str(target))
    assert (dataset.version, [one.fragment_id for one in dataset.get_fragments()]) == (1, [0, 1, 2])
    dataset.validate()
    whole = tmp_path / "whole.lance"
    wellread("convert", written["path"], whole)
    assert dataset.to_table() == read_lance(whole)
    assert dataset.to_table(columns=["row_id"])["row_id"].to_pylist() == list(range(7))
    assert dataset.take([5, 2], columns=["row_id"])["row_id"].to_pylist() == [5, 2]
