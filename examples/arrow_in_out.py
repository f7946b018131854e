"""Arrow tables in and out: pyarrow, polars and DuckDB, without a copy where columns are typed."""

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import wellread
from _images import cells

path = cells(64)
stored = wellread.Dataset(path)

# In: whatever a query leaves in memory is a set of images.
table = pq.read_table(path)
crowded = wellread.Dataset.from_arrow(table.filter(pc.equal(table["crowded"], 1)))
print(f"pyarrow: {len(crowded)} crowded images, {crowded[0].shape} {crowded[0].dtype}")

frame = polars.from_arrow(table).filter(polars.col("well").is_in(["A01", "A02"]))
wells = wellread.Dataset.from_arrow(frame.to_arrow())
print(f"polars: {len(wells)} images of two wells")

result = duckdb.sql("SELECT ome_image, crowded FROM 'PATH' WHERE well = 'A03' ORDER BY row_id".replace("PATH", path))
of_query = wellread.Dataset.from_arrow(result)
rows = [row for row, well in enumerate(stored.column("well")) if well == "A03"]
assert np.array_equal(of_query[:], stored[rows])
print(f"DuckDB: {len(of_query)} images of a query, the same as those stored")

# Such a set goes into a loader like any other.
batch, labels = next(iter(wellread.DataLoader(crowded, 8, labels="crowded")))
print(f"a batch: {batch.shape} {batch.dtype}, labels {labels.tolist()}")

# Out: any consumer of Arrow streams takes a set, whatever format it is stored in.
back = pa.table(stored)
print(f"as a table: {back.num_rows} rows of {back.column_names}")
print(f"as a frame: {polars.DataFrame(crowded).shape}")
assert np.array_equal(wellread.Dataset.from_arrow(back)[:], stored[:])
