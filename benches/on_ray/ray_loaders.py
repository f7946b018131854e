"""Ways to read a set of images into a :class:`ray.data.Dataset` with a column ``image`` of stored pixels.

Functions that run in tasks are made within others, so that Ray sends them by value: nodes do not find this module.
"""

from pathlib import Path

# Bytes of pixels that a task of a peer decodes at once.
AT_ONCE = 16 << 20
# Tasks into which peers' lists of files are cut.
BLOCKS = 8


def rows_at_once(job):
    return max(16, AT_ONCE // job["image_bytes"])


def wellread_of(name):
    def read(job):
        import wellread.ray

        return wellread.ray.read(str(Path(job["folder"]) / name), dtype="stored")

    return read


def read_images(job):
    import ray

    return ray.data.read_images(str(Path(job["folder"]) / "set-png"))


def read_parquet_png(job):
    import ray

    def decode(batch):
        import io

        import numpy as np
        from PIL import Image

        return {"image": np.stack([np.asarray(Image.open(io.BytesIO(png))) for png in batch["png"]])}

    read = ray.data.read_parquet(str(Path(job["folder"]) / "set-encoded" / "png"))
    return read.map_batches(decode, batch_size=rows_at_once(job), batch_format="numpy")


def read_parquet_bare(job):
    import ray

    shape, dtype = (job["height"], job["width"]), job["dtype"]

    def decode(batch):
        import numpy as np

        return {"image": np.stack([np.frombuffer(pixels, dtype).reshape(shape) for pixels in batch["bare"]])}

    read = ray.data.read_parquet(str(Path(job["folder"]) / "set-encoded" / "bare"))
    return read.map_batches(decode, batch_size=rows_at_once(job), batch_format="numpy")


def files_decoded(job, paths, decode_one):
    """A list of files, decoded in tasks."""
    import ray

    def decode(batch):
        import numpy as np

        return {"image": np.stack([np.squeeze(decode_one(path)) for path in batch["path"]])}

    items = [{"path": str(path)} for path in paths]
    read = ray.data.from_items(items, override_num_blocks=BLOCKS)
    return read.map_batches(decode, batch_size=rows_at_once(job), batch_format="numpy")


def read_tifffile(job):
    def decode_one(path):
        import tifffile

        return tifffile.imread(path)

    return files_decoded(job, sorted((Path(job["folder"]) / "set-tiff").rglob("*.tif*")), decode_one)


def read_zarr(job):
    def decode_one(path):
        import zarr

        return zarr.open_array(f"{path}/0", mode="r")[...]

    arrays = (Path(job["folder"]) / "set-zarr").rglob("0/zarr.json")
    return files_decoded(job, sorted(path.parent.parent for path in arrays), decode_one)


# Each by its name in the table.
LOADERS = {
    "wellread parquet": wellread_of("set.parquet"),
    "wellread tiff": wellread_of("set-tiff"),
    "wellread ome-zarr": wellread_of("set-zarr"),
    "read_images (PNG)": read_images,
    "read_parquet + PIL (PNG)": read_parquet_png,
    "read_parquet + frombuffer (bare bytes)": read_parquet_bare,
    "tifffile": read_tifffile,
    "zarr-python": read_zarr,
}
# Of the same stored form, where wellread reads it; else what wellread writes by itself.
COMPARED = {
    "read_images (PNG)": "wellread parquet",
    "read_parquet + PIL (PNG)": "wellread parquet",
    "read_parquet + frombuffer (bare bytes)": "wellread parquet",
    "tifffile": "wellread tiff",
    "zarr-python": "wellread ome-zarr",
}
