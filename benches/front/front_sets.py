"""The sets of `benches/front.py`: one generated plate in the files of each loader, all of Zstandard at one level.

wellread generate --plate, tifffile    ─▶ zstd/      a TIFF for each channel, one strip
wellread generate --plate, zarr-python ─▶ planes/    OME-Zarr 0.4, a chunk for each channel
wellread convert zstd/                 ─▶ lance/     OME-Arrow in Lance
tifffile, pylance                      ─▶ pylance/   a column of bytes
tifffile, LitData                      ─▶ litdata/   shards
"""

import json
from dataclasses import dataclass
from pathlib import Path

import checks
import numpy as np
import plate_sets
from plate_sets import LEVEL, Plate

# Pixels of a shard of LitData, which its pages take as an example.
SHARD = "64MB"


@dataclass(frozen=True)
class Sets:
    """Where they are."""

    tiff: Plate
    zarr: Plate
    lance: Path
    pylance: Path
    litdata: Path
    expected: Path
    """Checksums of the sites, as tifffile reads them."""

    def bytes(self):
        """The size of each on disk."""
        folders = {"tiff": self.tiff.images, "zarr": self.zarr.images, "lance": self.lance, "pylance": self.pylance,
                   "litdata": self.litdata}  # fmt: skip
        return {
            name: sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            for name, folder in folders.items()
        }


def write(program, data, sites, size):
    """Writes the sets that are not there yet, and the checksums that all must have."""
    tiff = plate_sets.plate(program, data / "zstd", "zstd", sites, size)
    zarr = plate_sets.plate(program, data / "planes", "planes", sites, size)
    made = Sets(tiff, zarr, data / "lance" / "images.lance", data / "pylance" / "sites.lance",
                data / "litdata" / "shards", data / "zstd" / "whole.npy")  # fmt: skip
    facts = {"sites": sites, "size": size, "level": LEVEL}
    level = ("--compression", f"zstd:{LEVEL}")
    writers = {
        "lance": lambda: plate_sets.call(program, "convert", tiff.images, made.lance, *level),
        "pylance": lambda: of_bytes(tiff, made.pylance),
        "litdata": lambda: shards(tiff, made.litdata),
    }
    for name, writer in writers.items():
        if plate_sets.fresh(data / name, facts):
            (data / name).mkdir(parents=True)
            writer()
            plate_sets.finish(data / name, facts)
    if not made.expected.exists():
        sums = [[checks.checksum(one.read(site)) for site in one.sites()] for one in (tiff, zarr)]
        if sums[0] != sums[1]:
            raise SystemExit(f"{data}: TIFF and OME-Zarr have other pixels: remove the folder and run again")
        np.save(made.expected, np.array(sums[0], np.uint32))
    return made


def of_bytes(plate, target):
    """A row for each site: the Zstandard frames of its channels, one behind the other."""
    import imagecodecs
    import lance
    import pyarrow as pa

    schema = pa.schema([("pixels", pa.large_binary())])

    def batches():
        for site in plate.sites():
            frames = [imagecodecs.zstd_encode(channel.tobytes(), level=LEVEL) for channel in plate.read(site)]
            yield pa.record_batch([pa.array([b"".join(frames)], pa.large_binary())], schema=schema)

    lance.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), target)


def shards(plate, target):
    """A sample for each site, compressed by LitData: each one alone. An array, because LitData leaves rows that are
    mostly `bytes` as they are."""
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(
        str(target), chunk_bytes=SHARD, compression=f"zstd:{LEVEL}", compression_level="sample"
    )  # fmt: skip
    for row, site in enumerate(plate.sites()):
        writer[row] = {"row": row, "pixels": np.ascontiguousarray(plate.read(site))}
    writer.done()
    writer.merge()
    config = json.loads((target / "index.json").read_text())["config"]
    if config["compression"] != f"zstd:{LEVEL}":
        raise SystemExit(f"{target}: LitData compressed by {config['compression']}, not zstd:{LEVEL}")
