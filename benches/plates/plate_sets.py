"""The sets of `benches/plates.py`: a plate as a microscope writes it, the same as OME-Zarr, its cells stored, and the
checksums that the pixels must have.

    wellread generate --plate ─▶ none/            a TIFF for each channel, not compressed, one strip
    wellread generate --plate, tifffile ─▶ lzw/   the same pixels as JUMP's microscope writes them: LZW, one strip
    wellread generate --plate ─▶ zarr/            OME-Zarr 0.4 plate, chunks of 256 x 256, Zstandard
    … tifffile, zarr-python   ─▶ zstd/, planes/   the same pixels, Zstandard: one strip; a chunk for each channel
    wellread convert --cells  ─▶ crops.lance      the cells of some of these sites
    wellread generate         ─▶ usual/lance      images of the same shape and number that are no cells of anything
    wellread generate --plate ─▶ opening/         many small files

Checksums are of what tifffile and zarr-python read, sliced by NumPy.
"""

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import checks
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHANNELS = 5
CROP = 96
# Stored pixels are multiplied by it.
SCALE = np.float32(1 / 65535)
# Level of Zstandard of the sets that are alike in codec (benches/front.py).
LEVEL = 3
POSITION = ("Nuclei_Location_Center_X", "Nuclei_Location_Center_Y")
# Written anew where this differs from what a folder was written by.
VERSION = 4


@dataclass(frozen=True)
class Plate:
    """A plate on disk: what peers know of it."""

    folder: Path
    """With `images` and `cells.parquet`."""
    kind: str
    """none, lzw, zstd (TIFF), zarr or planes (OME-Zarr)."""

    @property
    def images(self):
        return self.folder / "images"

    @property
    def zarr(self):
        return self.kind in ("zarr", "planes")

    def size(self):
        """Height and width of the images."""
        return json.loads((self.folder / "about.json").read_text())["size"]

    def table(self, few=False):
        """The cells, or those of the sites whose cells are stored too."""
        return self.folder / ("few.parquet" if few else "cells.parquet")

    def sites(self):
        """Files of each site, one a channel; of OME-Zarr its array. In wellread's order."""
        if self.zarr:
            (root,) = self.images.glob("*.zarr")
            found = [path.parent for path in root.glob("*/*/*/0") if path.is_dir()]
            found.sort(key=lambda path: (path.parts[-3], int(path.parts[-2]), int(path.parts[-1])))
            return [str(path / "0") for path in found]
        files = sorted(str(path) for path in self.images.rglob("*.tiff"))
        return [files[at : at + CHANNELS] for at in range(0, len(files), CHANNELS)]

    def cells(self, few=False):
        """Of each cell the number of its site, and the first row and column of its crop: moved inside at borders."""
        table = pq.read_table(self.table(few))
        places = {place: i for i, place in enumerate(self.places())}
        wells, fields = table["Metadata_Well"].to_pylist(), table["Metadata_Site"].to_pylist()
        sites = np.array([places[place] for place in zip(wells, fields, strict=True)])
        size = self.size()
        x, y = (np.floor(table[name].to_numpy() + 0.5).astype(int) - CROP // 2 for name in POSITION)
        return sites, np.clip(y, 0, size - CROP), np.clip(x, 0, size - CROP)

    def places(self):
        """Well and field of each site, told from the names."""
        if self.zarr:
            parts = [Path(path).parts[-4:-1] for path in self.sites()]
            return [(f"{row}{int(column):02}", int(field)) for row, column, field in parts]
        names = [Path(files[0]).name for files in self.sites()]
        return [(f"{chr(64 + int(name[1:3]))}{name[4:6]}", int(name[7:9])) for name in names]

    def read(self, site):
        """All channels of a site, as the reference libraries read them."""
        if self.zarr:
            import zarr

            return zarr.open_array(site, mode="r")[0, :, 0]
        return np.stack([plane(path) for path in site])


def plane(path):
    """The image of a file; tifffile adds axes where OME-XML has them."""
    import tifffile

    pixels = tifffile.imread(path)
    return pixels.reshape(pixels.shape[-2:])


def call(program, *words):
    """Runs wellread and keeps its words to itself, unless it fails."""
    done = subprocess.run([program, "--quiet", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"wellread {' '.join(map(str, words))}: {done.stderr.strip()}")


def grid(wells):
    """Rows and columns of a plate of so many wells, nearly as many of each."""
    rows = next(n for n in range(int(wells**0.5), 0, -1) if wells % n == 0)
    if rows > 26 or wells // rows > 48:
        raise SystemExit(f"{wells} wells fit no plate: take a number that is a product of two like ones")
    return rows, wells // rows


def fresh(folder, facts):
    """Whether a set must be written (what is there is of other facts); an unfinished folder is removed."""
    stamp = folder / "about.json"
    if stamp.exists() and json.loads(stamp.read_text()) == {"version": VERSION, **facts}:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    return True


def finish(folder, facts):
    (folder / "about.json").write_text(json.dumps({"version": VERSION, **facts}))


def plate(program, folder, kind, sites, size):
    """A plate of so many sites in the files of `kind`."""
    fields = next(n for n in (4, 2, 1) if sites % n == 0)
    rows, columns = grid(sites // fields)
    facts = {"kind": kind, "sites": sites, "size": size}
    made = Plate(folder, kind)
    if not fresh(folder, facts):
        return made
    words = ["--plate", f"{rows}x{columns}", "--fields", fields, "--channels", CHANNELS, "--size", f"{size}x{size}"]
    if made.zarr:
        words += ["--layout", "hcs-zarr", "--variant", "0.4", "--chunk", "1,1,1,256,256", "--compression", "zstd:1"]
    else:
        words += ["--layout", "harmony", "--compression", "none"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    call(program, "generate", folder, *words, "--cells-table")
    anew = {"lzw": lzw, "zstd": zstd, "planes": planes}.get(kind)
    if anew:
        paths = made.sites() if made.zarr else [path for files in made.sites() for path in files]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(anew, paths))
    finish(folder, facts)
    return made


def lzw(path):
    """Writes a file anew as an Opera Phenix (JUMP) does: LZW without a predictor, all rows in one strip."""
    pack(path, compression="lzw")


def zstd(path):
    """Writes a file anew with Zstandard, without a predictor, all rows in one strip."""
    pack(path, compression="zstd", compressionargs={"level": LEVEL})


def pack(path, **codec):
    import tifffile

    pixels = plane(path)
    tifffile.imwrite(path, pixels, predictor=False, rowsperstrip=len(pixels), metadata=None, **codec)


def planes(path):
    """Writes an array anew with zarr-python: Zstandard, a chunk for each channel."""
    import numcodecs
    import zarr

    pixels = zarr.open_array(path, mode="r")[...]
    made = zarr.create_array(
        path, shape=pixels.shape, chunks=(1, 1, 1, *pixels.shape[-2:]), dtype=pixels.dtype, zarr_format=2,
        compressors=numcodecs.Zstd(level=LEVEL), chunk_key_encoding={"name": "v2", "separator": "/"}, overwrite=True,
    )  # fmt: skip
    made[...] = pixels


def few(made, sites):
    """The table of the cells of the first sites, which are cut out and stored."""
    table = pq.read_table(made.table())
    of_site = made.cells()[0]
    pq.write_table(table.filter(pa.array(of_site < sites)), made.table(few=True))


def checksums(made, sites):
    """Of each site, of each cell, and of each cell of the first sites: files, the first two written once."""
    names = {name: made.folder / f"{name}.npy" for name in ("sites", "cells", "few")}
    of_site, ys, xs = made.cells()
    if not names["cells"].exists():
        whole, crops = [], np.zeros(len(of_site), np.uint32)
        for i, site in enumerate(made.sites()):
            pixels = made.read(site)
            whole.append(checks.checksum(pixels))
            for cell in np.flatnonzero(of_site == i):
                y, x = ys[cell], xs[cell]
                crops[cell] = checks.checksum(pixels[:, y : y + CROP, x : x + CROP])
        np.save(names["sites"], np.array(whole, np.uint32))
        np.save(names["cells"], crops)
    np.save(names["few"], np.load(names["cells"])[of_site < sites])


def stored(program, made, folder, sites):
    """The few cells as Lance, and as many images of their shape that were generated."""
    table = made.table(few=True)
    number = pq.read_metadata(table).num_rows
    facts = {"sites": sites, "crops": number}
    if not fresh(folder, facts):
        return number
    folder.mkdir(parents=True)
    call(program, "convert", made.images, folder / "crops.lance", "--cells", table, "--cells-size",
         f"{CROP}x{CROP}", "--compression", "none")  # fmt: skip
    call(program, "generate", folder / "usual", "--images", number, "--size", f"{CROP}x{CROP}",
         "--channels", CHANNELS, "--formats", "lance", "--compression", "none")  # fmt: skip
    finish(folder, facts)
    return number


def opening(program, folder, wells):
    """A plate of small files, as many as a screen has: 18 sites of 5 channels in each well."""
    facts = {"wells": wells, "files": wells * 18 * CHANNELS}
    if fresh(folder, facts):
        call(program, "generate", folder, "--plate", wells, "--fields", 18, "--size", "16x16", "--channels", CHANNELS,
             "--layout", "harmony")  # fmt: skip
        finish(folder, facts)
    return facts["files"]


def warm(folder):
    """Read all files, so that they are in the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()
