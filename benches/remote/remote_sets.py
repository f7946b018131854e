"""Sets in a folder that is served as a bucket: wellread's in its formats, and the same pixels as peers have them."""

import shutil
import subprocess
import zlib
from dataclasses import dataclass

import numpy as np

BUCKET = "remote"
# Bytes of a shard of those who stream, at most; small sets have smaller ones, so that every worker has two.
SHARD, FEWEST = 32 << 20, 16
# Folders of those shards.
SHARDS = {"litdata": "litdata-16", "mds": "mds-16", "wds": "wds-16"}


@dataclass(frozen=True)
class Kind:
    """The images of a part of the benchmark."""

    about: str
    images: int
    height: int
    width: int
    channels: int
    dtype: str
    rows: int
    """Images of an epoch, at most."""

    @property
    def bytes(self):
        """Of an image."""
        return self.channels * self.height * self.width * np.dtype(self.dtype).itemsize

    @property
    def per_shard(self):
        """Images of a shard."""
        return max(1, min(SHARD // self.bytes, -(-self.images // FEWEST)))


KINDS = {
    "a": Kind("1,000 images of 100 x 100, uint8", 1000, 100, 100, 1, "uint8", 1000),
    "b": Kind("256 images of 1080 x 1080, uint16, Zstandard", 256, 1080, 1080, 1, "uint16", 256),
    "c": Kind("crops of single cells, 5 x 96 x 96, uint16", 100_000, 96, 96, 5, "uint16", 4000),
}
FORMATS = {"parquet": "images.parquet", "lance": "images.lance", "vortex": "images.vortex", "tiff": "tiff",
           "ome-zarr": "ome-zarr", "ome-zarr-series": "images.zarr"}  # fmt: skip


def checksum(pixels):
    """The checksum of the pixels of an image, whatever axes of length 1 it has."""
    return zlib.crc32(np.ascontiguousarray(pixels).tobytes())


def chosen(images, rows, seed):
    """The rows of an epoch that has not all images, as far apart as they lie in the set; None where it has all."""
    return np.sort(np.random.default_rng(seed).choice(images, rows, replace=False)) if rows < images else None


def orders(folder, kind, batch, epochs, seed):
    """The rows of each epoch in wellread's order, which all who read at random are given."""
    import wellread as wr

    images, kept = wr.Dataset(folder / FORMATS["parquet"]), chosen(kind.images, kind.rows, seed)
    images = images if kept is None else images.select(kept)
    loader = wr.DataLoader(images, batch, shuffle=True, seed=seed, shard=False)
    found = np.array([loader.rows(e) for e in range(epochs)])
    return found if kept is None else kept[found]


def write(program, root, name, kind, formats, peers):
    """Writes what is not there yet; checksums of all rows, by the folder's own files."""
    import wellread as wr

    folder = root / BUCKET / name
    for form in dict.fromkeys(["parquet", *formats]):
        if (folder / FORMATS[form]).exists():
            continue
        made = root / f"{name}.{form}.new"
        shutil.rmtree(made, ignore_errors=True)
        if form == "ome-zarr-series":
            series(program, folder, made, kind)
            continue
        command = [program, "generate", made, "--images", kind.images, "--size", f"{kind.height}x{kind.width}",
                   "--channels", kind.channels, "--dtype", kind.dtype, "--formats", form,
                   "--compression", "zstd"]  # fmt: skip
        if form == "ome-zarr":
            # The chunks of an image in one object.
            command += ["--shard", f"1,{kind.channels},1,{kind.height},{kind.width}"]
        subprocess.run([*map(str, command), "--quiet"], check=True, stdout=subprocess.DEVNULL)
        folder.mkdir(parents=True, exist_ok=True)
        (made / FORMATS[form]).rename(folder / FORMATS[form])
        shutil.rmtree(made)
    images = wr.Dataset(folder / FORMATS["parquet"])
    sums = folder / "checksums.npy"
    if not sums.exists():
        np.save(sums, np.array([checksum(images[row]) for row in range(len(images))], "uint32"))
    writers = {"zarr": zarr_array, "lance-binary": lance_table, SHARDS["litdata"]: litdata, SHARDS["mds"]: mds,
               SHARDS["wds"]: wds}  # fmt: skip
    for peer in sorted(filter(None, peers)):
        target = folder / peer
        if not target.exists():
            made = root / f"{name}.{peer}.new"
            shutil.rmtree(made, ignore_errors=True)
            writers[peer](images, made, kind)
            made.rename(target)
    return np.load(sums)


def series(program, folder, made, kind):
    """All images in one OME-Zarr group, whose metadata are in one object. A set becomes one if it has columns."""
    import wellread as wr

    made.mkdir()
    images = wr.Dataset(folder / FORMATS["parquet"])
    lines = [f"{images.name(row)},{row}\n" for row in range(len(images))]
    (made / "rows.csv").write_text("name,row\n" + "".join(lines))
    command = [program, "convert", folder / FORMATS["parquet"], made / "images.zarr", "--join", made / "rows.csv",
               "--on", "name", "--compression", "zstd",
               "--shard", f"1,{kind.channels},1,{kind.height},{kind.width}", "--quiet"]  # fmt: skip
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
    (made / "images.zarr").rename(folder / FORMATS["ome-zarr-series"])
    shutil.rmtree(made)


def zarr_array(images, target, kind):
    """All images in one array, a chunk each."""
    import zarr

    shape = (kind.channels, kind.height, kind.width)
    array = zarr.create_array(target, shape=(len(images), *shape), chunks=(1, *shape), dtype=kind.dtype,
                              compressors=zarr.codecs.ZstdCodec(level=3))  # fmt: skip
    for row in range(len(images)):
        array[row] = np.asarray(images[row]).reshape(shape)


def lance_table(images, target, kind):
    """Pixels as bytes, a row each."""
    import lance
    import pyarrow as pa

    schema = pa.schema([("pixels", pa.large_binary())])

    def batches(step=256):
        for at in range(0, len(images), step):
            rows = [np.asarray(images[row]).tobytes() for row in range(at, min(at + step, len(images)))]
            yield pa.record_batch([pa.array(rows, pa.large_binary())], schema=schema)

    lance.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), target)


def sample(images, row):
    return {"row": row, "pixels": np.ascontiguousarray(images[row]).tobytes()}


def litdata(images, target, kind):
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(target), chunk_size=kind.per_shard)
    for row in range(len(images)):
        writer[row] = sample(images, row)
    writer.done()
    writer.merge()


def mds(images, target, kind):
    from streaming import MDSWriter

    # Of its header and of each sample it has some bytes more: less than an image in all.
    size = kind.per_shard * (kind.bytes + 64) + 4096
    with MDSWriter(out=str(target), columns={"row": "int", "pixels": "bytes"}, size_limit=size) as writer:
        for row in range(len(images)):
            writer.write(sample(images, row))


def wds(images, target, kind):
    import webdataset

    target.mkdir(parents=True)
    with webdataset.ShardWriter(str(target / "%06d.tar"), maxcount=kind.per_shard, verbose=0) as writer:
        for row in range(len(images)):
            one = sample(images, row)
            writer.write({"__key__": f"{row:08d}", "pixels.bin": one["pixels"]})
