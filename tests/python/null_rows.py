"""Sets in which a row holds no image."""

import pyarrow as pa
import pyarrow.parquet as pq


def without_image(folder, row, path):
    """Writes `images.parquet` of a generated set to `path` with a null in place of an image; the names of all."""
    table = pq.read_table(folder / "images.parquet")
    images = table["ome_image"].to_pylist()
    names = [image["name"] for image in images]
    images[row] = None
    column = pa.array(images, table["ome_image"].type)
    pq.write_table(table.set_column(table.schema.get_field_index("ome_image"), "ome_image", column), path)
    return names
