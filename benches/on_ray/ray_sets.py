"""The sets of the comparison on a Ray cluster: the same images in each form that a loader reads.

wellread generate ─▶ set.parquet, expected.json ─▶ set-tiff, set-zarr, set-png
                                                └▶ set-encoded/: Parquet of PNG files, and of bare bytes
"""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Files of a set of encoded images: so many tasks of Ray read them.
FILES = 8


@dataclass(frozen=True)
class Kind:
    """Images of one size."""

    height: int
    width: int
    dtype: str
    images: int
    goal: float
    """How many times as many images per second wellread is to deliver."""

    @property
    def about(self):
        return f"{self.images:,} images of {self.height} x {self.width}, {self.dtype}"

    @property
    def image_bytes(self):
        return self.height * self.width * (2 if self.dtype == "uint16" else 1)


KINDS = {"small": Kind(100, 100, "uint8", 10_000, 20), "large": Kind(1080, 1080, "uint16", 256, 5)}


def checksum(image):
    """The checksum of an image in `expected.json`, of its pixels in C order."""
    return hashlib.sha256(image.tobytes()).hexdigest()


def run(wellread, *words):
    subprocess.run([wellread, "--quiet", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def write_source(wellread, folder, kind):
    """Writes one Parquet file of a kind into a folder, unless it is there; where it is."""
    target = folder / "generated"
    if not (target / "expected.json").exists():
        size = f"{kind.height}x{kind.width}"
        how = ["--images", kind.images, "--size", size, "--dtype", kind.dtype, "--kind", "cells"]
        run(wellread, "generate", target, *how, "--formats", "parquet")
    [source] = target.glob("*.parquet")
    return source


def write(wellread, folder, kind):
    """Writes the sets of a kind into a folder, unless they are there."""
    done = folder / "done.json"
    about = json.dumps({"kind": kind.about, "files": FILES})
    if done.exists() and done.read_text() == about:
        return
    source = write_source(wellread, folder, kind)
    for name, form in (("set-tiff", "tiff"), ("set-zarr", "ome-zarr"), ("set-png", "image-folder")):
        run(wellread, "convert", source, folder / name, "--format", form, "--overwrite")
    run(wellread, "convert", source, folder / "set.parquet", "--overwrite")
    encode(folder / "set-png", folder / "set-encoded")
    done.write_text(about)


def encode(pictures, target):
    """Puts PNG files, and what is in them, into Parquet files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    target.mkdir(exist_ok=True)
    files = sorted(pictures.rglob("*.png"))
    each = -(-len(files) // FILES)
    for number in range(FILES):
        some = files[number * each : (number + 1) * each]
        bare = [np.ascontiguousarray(Image.open(file)) for file in some]
        bare = [image.astype("uint16") if image.dtype == "int32" else image for image in bare]
        columns = {"png": [file.read_bytes() for file in some], "bare": [image.tobytes() for image in bare]}
        for name, values in columns.items():
            (target / name).mkdir(exist_ok=True)
            table = pa.table({name: pa.array(values, pa.binary())})
            pq.write_table(table, target / name / f"{number:02}.parquet", row_group_size=64)


def expected(folder):
    """The checksums of all images."""
    document = json.loads((Path(folder) / "generated" / "expected.json").read_text())
    return [image["sha256"] for image in document["images"]]
