"""Arrow in and out: pyarrow, polars and DuckDB, without a copy where pixels are typed."""

import gc
import hashlib
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import wellread as wr
from null_rows import without_image
from own_process import peak, resident, run_alone


def test_a_set_becomes_a_table_and_comes_back(generated):
    folder, _, written = generated
    for name, document in written.items():
        if document["error"]:
            continue
        ds = wr.Dataset(document["path"])
        table = pa.table(ds)
        assert table.column_names[:2] == ["row_id", "ome_image"] and len(table) == 5
        back = wr.Dataset.from_arrow(table)
        assert back.format == "arrow" and len(back) == 5
        for row in range(5):
            assert np.array_equal(back[row], ds[row]) and back[row].dtype == ds[row].dtype, name
            assert back.name(row) == ds.name(row)


def test_columns_stand_beside(labelled):
    ds = wr.Dataset(labelled)
    table = pa.table(ds)
    assert table.column_names == ["row_id", "ome_image", *ds.columns]
    back = wr.Dataset.from_arrow(table.slice(10, 20))
    assert back.column("class").tolist() == [row % 3 for row in range(10, 30)]
    assert np.array_equal(back[:], ds[10:30])
    loader = wr.DataLoader(back, 8, shuffle=True, labels="class", num_workers=2, dtype="stored")
    rows = loader.rows(0)
    pixels, classes = zip(*loader, strict=True)
    assert np.array_equal(np.concatenate(pixels), back[:][rows]) and np.concatenate(classes).tolist() == [
        (10 + r) % 3 for r in rows
    ]


@pytest.mark.parametrize("ids", [[101, 205, 999], ["P1-A01", "P1-A02", "P1-A03"]])
def test_a_row_id_is_data_unless_it_counts_rows(parquet, tmp_path, ids):
    images = pq.read_table(parquet).select(["ome_image"]).slice(0, 3)
    counted = wr.Dataset.from_arrow(images.append_column("row_id", pa.array([0, 1, 2])))
    assert counted.columns == []
    ds = wr.Dataset.from_arrow(images.append_column("row_id", pa.array(ids)))
    assert ds.columns == ["row_id"] and list(ds.column("row_id")) == ids
    table = pa.table(ds)
    assert table.column_names == ["row_id", "ome_image", "row_id_y"]
    assert table["row_id"].to_pylist() == [0, 1, 2] and table["row_id_y"].to_pylist() == ids
    pq.write_table(images.append_column("row_id", pa.array(ids)), tmp_path / "own.parquet")
    own = wr.Dataset(tmp_path / "own.parquet")
    assert own.columns == ["row_id"] and list(own.column("row_id")) == ids


# As the docstring of from_arrow and its page say it.
@pytest.mark.parametrize(
    ("names", "called"),
    [
        (["v", "v", "v"], ["v", "v_y", "v_y_y"]),
        # A name that another column has is not taken from it.
        (["v", "v", "v_y"], ["v", "v_y_y", "v_y"]),
        (["v", "w", "v"], ["v", "w", "v_y"]),
    ],
)
def test_columns_of_one_name_are_all_there(parquet, names, called):
    images = pq.read_table(parquet).select(["ome_image"]).slice(0, 2)
    values = [[1, 2], [3, 4], [5, 6]]
    columns = [*images.columns, *[pa.chunked_array([column]) for column in values]]
    ds = wr.Dataset.from_arrow(pa.Table.from_arrays(columns, names=["ome_image", *names]))
    assert ds.columns == called
    assert [ds.column(name).tolist() for name in called] == values
    assert pa.table(ds).column_names == ["row_id", "ome_image", *called]


def test_large_whole_numbers_with_missing_ones_are_told_apart(parquet):
    images = pq.read_table(parquet).select(["ome_image"]).slice(0, 4)
    ids = pa.array([2**53, 2**53 + 1, None, 5], pa.int64())
    ds = wr.Dataset.from_arrow(images.append_column("id", ids))
    rows = [ds.filter(id=wanted) for wanted in (2**53, 2**53 + 1, None, [5, 2**53 + 1])]
    assert [len(found) for found in rows] == [1, 1, 1, 2]
    assert np.array_equal(rows[1][0], ds[1])
    with pytest.raises(TypeError, match="column id has numbers"):
        ds.filter(id="5")
    loader = wr.DataLoader(ds, 4, labels="id", classes=True, rows=[0, 1, 3])
    assert loader.classes == [5, 2**53, 2**53 + 1]
    assert [labels.tolist() for _, labels in loader] == [[1, 2, 0]]


def test_columns_without_a_counterpart_are_named(parquet):
    import decimal

    images = pq.read_table(parquet).select(["ome_image"]).slice(0, 2)
    prices = pa.array([decimal.Decimal("1.5"), decimal.Decimal("2.25")], pa.decimal128(10, 2))
    ds = wr.Dataset.from_arrow(images.append_column("count", pa.array([1, 2])).append_column("dose", prices))
    with pytest.raises(TypeError, match='column "dose".*Decimal128.*NumPy'):
        wr.DataLoader(ds, 2, features="d*")
    assert next(iter(wr.DataLoader(ds, 2, features="c*")))[1].tolist() == [[1.0], [2.0]]


def test_tables_of_others(parquet):
    import duckdb
    import polars

    want = wr.Dataset(parquet)[:]
    table = pq.read_table(parquet)
    for made in (
        table,
        polars.from_arrow(table),
        duckdb.from_arrow(table),
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(7)),
    ):
        ds = wr.Dataset.from_arrow(made)
        assert np.array_equal(ds[:], want), type(made)
        assert np.array_equal(np.concatenate(list(wr.DataLoader(ds, 16, dtype="stored"))), want)
    assert len(polars.DataFrame(wr.Dataset(parquet))) == 40


def test_the_tables_memory_is_kept_and_not_copied(parquet):
    table = pq.read_table(parquet)
    before = pa.total_allocated_bytes()
    ds = wr.Dataset.from_arrow(table)
    assert pa.total_allocated_bytes() - before < 64 << 10
    want = ds[5]
    del table
    gc.collect()
    assert pa.total_allocated_bytes() >= ds[:].nbytes
    assert np.array_equal(ds[5], want)
    del ds
    gc.collect()
    assert pa.total_allocated_bytes() < before


def test_tables_of_polars_are_not_copied_either(wellread, tmp_path):
    # In a process of its own, where nothing else takes memory; 32 MB of pixels.
    wellread("generate", tmp_path, "--images", 16, "--size", "1024x1024", "--dtype", "uint16", "--formats", "parquet")
    run_alone(take_polars, tmp_path / "images.parquet")


def take_polars(path):
    import polars

    # Polars itself puts what it was given in four pieces together, at once or when it first hands it out.
    table = polars.from_arrow(pq.read_table(path))
    handed_out = pa.table(table)
    first = wr.Dataset.from_arrow(table.slice(0, 1))[0]

    before = resident()
    ds = wr.Dataset.from_arrow(table)
    assert np.array_equal(ds[0], first)
    assert resident() - before < 8 << 20, "of 32 MB"
    del handed_out
    want = wr.Dataset(str(path))
    assert all(np.array_equal(ds[row], want[row]) for row in range(16))


def test_a_damaged_size_takes_no_memory(parquet):
    # In a process of its own, whose peak is its own.
    run_alone(read_damaged, parquet)


def read_damaged(path):
    image = pq.read_table(path).slice(0, 1).combine_chunks()["ome_image"].chunk(0)
    meta = image.field("pixels_meta")
    known = wr.Dataset.from_arrow(pa.table({"ome_image": image}))[0]
    claimed = 400 << 20
    height = claimed // (known.nbytes // known.shape[-2])
    fields = {field.name: meta.field(field.name) for field in meta.type}
    fields["size_y"] = pa.array([height], meta.type.field("size_y").type)
    parts = {field.name: image.field(field.name) for field in image.type}
    parts["pixels_meta"] = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    damaged = pa.StructArray.from_arrays(list(parts.values()), names=list(parts))
    table = pa.table({"ome_image": pa.chunked_array([pa.concat_arrays([damaged, damaged])])})
    whole = wr.Dataset.from_arrow(table)
    before = peak()
    for ds in (whole, whole.select([1])):
        with pytest.raises(wr.Error, match="chunks must cover the image"):
            ds[0]
    assert peak() - before < claimed // 4


def test_what_is_no_image_table_is_refused(parquet):
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        wr.Dataset.from_arrow([1, 2])
    with pytest.raises(wr.Error, match="no image column"):
        wr.Dataset.from_arrow(pa.table({"a": [1, 2]}))
    with pytest.raises(wr.Error, match='no column "b"'):
        wr.Dataset.from_arrow(pa.table({"a": [1, 2]}), column="b")

    class Wrong:
        def __arrow_c_stream__(self):
            return 5

    with pytest.raises(TypeError):
        wr.Dataset.from_arrow(Wrong())
    ds = wr.Dataset.from_arrow(pq.read_table(parquet))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ds)
    # A stream can be taken once, and left.
    stream = wr.Dataset(parquet).__arrow_c_stream__()
    del stream


def test_categories_are_columns(labelled):
    import polars as pl

    table = pa.table(wr.Dataset(labelled))
    words = pa.array(["a", "b", None, "a"] * 10)
    table = table.append_column("kind", words.dictionary_encode())
    ds = wr.Dataset.from_arrow(table)
    assert ds.column("kind").tolist()[:4] == ["a", "b", None, "a"]
    frame = pl.from_arrow(table.drop_columns("kind").append_column("kind", words)).with_columns(
        pl.col("kind").cast(pl.Categorical)
    )
    assert wr.Dataset.from_arrow(frame).column("kind").tolist() == words.to_pylist()
    # Batches with dictionaries of their own, and a slice of one.
    parts = [
        table.slice(3, 9),
        table.slice(20, 5).drop_columns("kind").append_column("kind", pa.array(["z"] * 5).dictionary_encode()),
    ]
    ds = wr.Dataset.from_arrow(pa.concat_tables(parts))
    assert ds.column("kind").tolist() == words.to_pylist()[3:12] + ["z"] * 5


def test_rows_without_an_image_are_left_out_on_request(generated, tmp_path):
    folder, expected, _ = generated
    path = tmp_path / "nulls.parquet"
    names = without_image(folder, 1, path)
    whole = wr.Dataset(path)
    assert len(whole) == len(names)
    with pytest.raises(wr.Error, match=r"skip_null=True"):
        whole[1]
    for ds in (
        wr.Dataset(path, skip_null=True),
        wr.Dataset([path], skip_null=True, cache="memory"),
        pickle.loads(pickle.dumps(wr.Dataset(path, skip_null=True))),
    ):
        assert [ds.name(row) for row in range(len(ds))] == names[:1] + names[2:]
        for row in range(len(ds)):
            digest = hashlib.sha256(np.ascontiguousarray(ds[row]).tobytes()).hexdigest()
            assert digest == expected[ds.name(row)]["sha256"]
        batches = list(wr.DataLoader(ds, batch_size=1, dtype="stored", num_workers=0))
        assert len(batches) == len(names) - 1
    assert len(wr.Dataset(folder / "images.parquet", skip_null=True)) == len(names)
    both = wr.Dataset([path, folder / "images.parquet"], skip_null=True)
    assert [len(rows) for rows in both.parts.values()] == [len(names) - 1, len(names)]
    # A table in memory: its error named an argument that from_arrow did not take.
    table = pq.read_table(path)
    with pytest.raises(wr.Error, match=r"skip_null=True"):
        wr.Dataset.from_arrow(table)[1]
    in_memory = wr.Dataset.from_arrow(table, skip_null=True)
    assert [in_memory.name(row) for row in range(len(in_memory))] == names[:1] + names[2:]
    digest = hashlib.sha256(np.ascontiguousarray(in_memory[1]).tobytes()).hexdigest()
    assert digest == expected[in_memory.name(1)]["sha256"]
    for opened in (lambda: wr.Dataset(path, skip_null="yes"), lambda: wr.Dataset.from_arrow(table, skip_null="yes")):
        with pytest.raises(TypeError, match="skip_null must be True or False"):
            opened()
