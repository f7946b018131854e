"""10^5 random crops of generated plates, in every layout, against NumPy slices of what tifffile and zarr-python read.

The rule of a crop is written down here from docs/howto/cells.md alone: nothing is asked of wellread but the crops.
"""

import json
import re
import shutil

import numpy as np
import pytest
import tifffile
import wellread as wr

LAYOUTS = ("harmony", "imagexpress", "load-data", "hcs-zarr")
HEIGHT, WIDTH, CHANNELS = 130, 109, 5
WELLS, FIELDS = ("A01", "A02", "B01", "B02"), 2
STAINS = ("DNA", "ER", "RNA", "AGP", "Mito")
# Cells of each image, of a table; of these some have no position in the image.
CELLS, LOST = 79, 4
# Names of columns of positions, each with what its table is written as.
COLUMNS = (
    ("Nuclei_Location_Center_X", "Nuclei_Location_Center_Y", "csv"),
    ("centroid-1", "centroid-0", "parquet"),
    ("x", "y", "memory"),
)
# Around the image as much as any crop reaches.
AROUND = 160


class Plate:
    """A generated plate, as its files are: all images, and the label image that belongs to each."""

    def __init__(self, folder, layout):
        self.layout, first = layout, 0 if layout == "hcs-zarr" else 1
        self.path = self.opened(folder / "images", layout)
        self.sites = [(well, first + field) for well in WELLS for field in range(FIELDS)]
        stacks = [self.stack(layout, folder, *site) for site in self.sites]
        self.images = np.stack(stacks)
        self.size = self.pixel_size(layout)
        self.masks = [self.mask(layout, *site) for site in self.sites]

    @staticmethod
    def opened(images, layout):
        return {"load-data": images / "load_data.csv", "hcs-zarr": images / "plate.zarr"}.get(layout, images)

    def stack(self, layout, folder, well, site):
        row, column = "ABCDEFGH".index(well[0]) + 1, int(well[1:])
        if layout == "hcs-zarr":
            import zarr

            return np.asarray(zarr.open(str(self.path), mode="r")[f"{well[0]}/{column}/{site}/0"])[0, :, 0]
        name = {
            "harmony": "r{row:02}c{column:02}f{site:02}p01-ch{channel}sk1fk1fl1.tiff",
            "imagexpress": "plate_{well}_s{site}_w{channel}.tif",
            "load-data": "plate_{well}_s{site}_{stain}.tiff",
        }[layout]
        about = {"row": row, "column": column, "site": site, "well": well}
        names = (name.format(channel=i + 1, stain=stain, **about) for i, stain in enumerate(STAINS))
        found = [next((folder / "images").rglob(name)) for name in names]
        planes = np.stack([tifffile.imread(path) for path in found])
        # As a microscope writes them: nothing says that there are more axes.
        assert planes.shape[1:] == (HEIGHT, WIDTH)
        return planes

    def pixel_size(self, layout):
        """Micrometres, as a file says them; None where none does."""
        if layout == "harmony":
            text = next(self.path.rglob("Index.xml")).read_text()
            return round(float(re.search('ImageResolutionX Unit="m">([^<]*)<', text)[1]) * 1e6, 9)
        if layout == "hcs-zarr":
            about = json.loads((self.path / "A" / "1" / "0" / "zarr.json").read_text())["attributes"]["ome"]
            return about["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"][-1]
        return None

    @staticmethod
    def mask(layout, well, site):
        """The name of its label image: it begins with that of the image."""
        if layout == "hcs-zarr":
            return f"{well[0]}/{int(well[1:])}/{site}.tiff"
        if layout == "harmony":
            return f"r{'AB'.index(well[0]) + 1:02}c{well[1:]}f{site:02}_mask.tiff"
        return f"plate_{well}_s{site}_mask.tiff"


@pytest.fixture(scope="module", params=LAYOUTS)
def plate(request, wellread, tmp_path_factory):
    layout, folder = request.param, tmp_path_factory.mktemp("crops") / "plate"
    size = ("--size", f"{HEIGHT}x{WIDTH}", "--channels", CHANNELS)
    wellread("generate", folder, "--plate", "2x2", "--fields", FIELDS, *size, "--layout", layout, "--masks")
    plate = Plate(folder, layout)
    # The names are those that a generated plate's label images have.
    masks = (path.relative_to(folder / "masks").as_posix() for path in (folder / "masks").rglob("*.tiff"))
    assert sorted(masks) == sorted(plate.masks)
    return plate


def positions(random, count, length):
    """Along an axis: anywhere, at both ends, in the middle between pixels, on pixels; all of them in the image."""
    ends = np.array([-0.5, np.nextafter(length - 0.5, 0), 0, length - 1])
    kinds = [
        random.uniform(-0.5, length - 0.5, count),
        random.choice(ends, count),
        random.uniform(0, min(12, length - 1), count),
        random.uniform(max(length - 12, 0), length - 0.5, count),
        random.integers(0, length - 1, count) + 0.5,
        random.integers(0, length, count).astype(np.float64),
    ]
    return np.choose(random.choice(len(kinds), count, p=[0.5, 0.06, 0.14, 0.14, 0.08, 0.08]), kinds)


def draw(random, plate):
    """The columns of a table in random order: site, number, position, and whether the cell can be cut out."""
    count = CELLS * len(plate.sites)
    site = np.repeat(np.arange(len(plate.sites)), CELLS)
    number = np.tile(random.permutation(CELLS * 3)[:CELLS] + 1, len(plate.sites))
    y, x = positions(random, count, HEIGHT), positions(random, count, WIDTH)
    lost = random.random(count) < LOST / CELLS
    wrong = random.choice([np.nan, -0.51, WIDTH - 0.5, 1e9, -1e300], count)
    x = np.where(lost, wrong, x)
    order = random.permutation(count)
    return site[order], number[order], y[order], x[order], ~lost[order]


def paint(folder, random, plate, site, number, y, x, there):
    """Label images in which most cells have a patch of pixels about their position; returns them."""
    labels = np.zeros((len(plate.sites), HEIGHT, WIDTH), np.uint16)
    for i in np.flatnonzero(there & (random.random(len(site)) < 0.95)):
        top, left = int(y[i]) - random.integers(0, 9), int(x[i]) - random.integers(0, 9)
        labels[site[i], max(top, 0) : top + 9, max(left, 0) : left + 9] = number[i]
    for image, name in zip(labels, plate.masks, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        tifffile.imwrite(path, image)
    return labels


def table(folder, plate, kind, names, columns):
    """The table in a file, or in memory."""
    site, number, y, x, _ = columns
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pa.table(
        {
            "Metadata_Plate": ["plate"] * len(site),
            "Metadata_Well": [plate.sites[i][0] for i in site],
            "Metadata_Site": [plate.sites[i][1] for i in site],
            "ObjectNumber": number,
            names[0]: pa.array(x, from_pandas=True),
            names[1]: pa.array(y, from_pandas=True),
            "Place": np.arange(len(site)),
        }
    )
    if kind == "parquet":
        pq.write_table(found, folder / "cells.parquet")
        return folder / "cells.parquet"
    if kind == "csv":
        rows = found.to_pylist()
        lines = [",".join(found.column_names)]
        lines += [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
        (folder / "cells.csv").write_text("\n".join(lines) + "\n")
        return folder / "cells.csv"
    return found


def windows(images, size):
    """All crops of this size of images with zeros around them, by the first row and column, without a copy."""
    around = [(0, 0)] * (images.ndim - 2) + [(AROUND, AROUND)] * 2
    return np.lib.stride_tricks.sliding_window_view(np.pad(images, around), size, axis=(-2, -1))


def expected(plate, labels, size, edge, mask, columns):
    """The places in the table of the cells that there are, and their crops."""
    site, number, y, x, there = columns
    kept = np.flatnonzero(there)
    site, number = site[kept], number[kept]
    # The pixel that the position lies in is at index size // 2.
    starts = [np.floor(at[kept] + 0.5).astype(int) - side // 2 for at, side in zip((y, x), size, strict=True)]
    lasts = [HEIGHT - size[0], WIDTH - size[1]]
    if edge == "shift":
        starts = [np.clip(start, 0, last) for start, last in zip(starts, lasts, strict=True)]
    if edge == "drop":
        inside = np.logical_and.reduce([(s >= 0) & (s <= last) for s, last in zip(starts, lasts, strict=True)])
        kept, site, number = kept[inside], site[inside], number[inside]
        starts = [start[inside] for start in starts]
    top, left = (start + AROUND for start in starts)
    # Of the axes (image, channel, first row, first column, row, column).
    crops = windows(plate.images, size)[site, :, top, left]
    if mask == "none":
        return kept, crops
    own = windows(labels, size)[site, top, left] == number[:, None, None]
    if mask == "zero":
        return kept, np.where(own[:, None], crops, 0)
    return kept, np.concatenate([crops, own[:, None].astype(crops.dtype)], axis=1)


def delivered(cells, way, seed):
    """All crops of a set by row: at once, or by a loader in an order of its own."""
    if way == "read":
        return np.asarray(cells[:])
    choices = {"order": "block", "block": 3} if way == "block" else {"order": "shuffle", "num_workers": 2}
    loader = wr.DataLoader(cells, 64, as_="batch", dtype="stored", seed=seed, **choices)
    found = np.zeros((len(cells), *cells.image_shape(0)), cells.dtype)
    seen = np.zeros(len(cells), int)
    for batch in loader:
        found[batch.rows] = np.asarray(batch)
        seen[batch.rows] += 1
    assert (seen == 1).all()
    return found


def test_a_hundred_thousand_crops_are_slices(plate, tmp_path):
    random = np.random.default_rng([29, LAYOUTS.index(plate.layout)])
    units = ("pixel", "um") if plate.size else ("pixel",)
    ways, checked, calls = ("read", "shuffle", "block"), 0, 0
    dataset = {cache: wr.Dataset(plate.path, cache=cache) for cache in (None, "memory")}
    while checked < 25_000:
        for edge in ("shift", "pad", "drop"):
            for mask in ("none", "zero", "channel"):
                folder = tmp_path / str(calls)
                folder.mkdir()
                columns = draw(random, plate)
                site, number, y, x, _ = columns
                side = 150 if edge == "pad" and calls % 4 == 0 else 49
                size = tuple(int(n) for n in random.integers(1, side, 2))
                x_name, y_name, kind = COLUMNS[calls % 3]
                unit = units[calls // 3 % len(units)]
                written = columns
                if unit == "um":
                    micrometres = [at * plate.size for at in (y, x)]
                    written = (site, number, *micrometres, columns[4])
                    # Near to the border of two pixels the number that is written may be the other one's.
                    y, x = (at / plate.size for at in micrometres)
                    inside = (np.floor(y + 0.5) >= 0) & (np.floor(y + 0.5) < HEIGHT)
                    inside &= (np.floor(x + 0.5) >= 0) & (np.floor(x + 0.5) < WIDTH)
                    columns = (site, number, y, x, inside)
                choices = {"size": size, "edge": edge, "unit": unit, "mask": mask, "unmatched": "skip"}
                labels = None
                if mask != "none":
                    labels = paint(folder / "labels", random, plate, *columns)
                    choices["masks"] = folder / "labels"
                source = table(folder, plate, kind, (x_name, y_name), written)
                kept, wanted = expected(plate, labels, size, edge, mask, columns)
                cells = dataset["memory" if calls % 2 else None].cells(source, **choices)
                about = f"call {calls}: {choices}, {kind}"
                if not len(kept):
                    assert len(cells) == 0, about
                    continue
                assert len(cells) == len(kept), about
                np.testing.assert_array_equal(cells.column("Place"), kept, about)
                np.testing.assert_array_equal(cells.column("ObjectNumber"), columns[1][kept], about)
                assert list(cells.column("Metadata_Well")) == [plate.sites[i][0] for i in columns[0][kept]], about
                assert list(cells.column("Metadata_Site")) == [plate.sites[i][1] for i in columns[0][kept]], about
                report = cells.cells_report
                lost = report["without_position"]["count"] + report["outside"]["count"]
                assert (report["rows"], lost) == (len(site), int((~columns[4]).sum())), about
                assert report["dropped"]["count"] == int(columns[4].sum()) - len(kept), about
                found = delivered(cells, ways[calls % len(ways)], calls)
                assert found.dtype == wanted.dtype == np.uint16 and found.shape == wanted.shape, about
                if not np.array_equal(found, wanted):
                    other = np.flatnonzero((found != wanted).reshape(len(found), -1).any(1))
                    cell = kept[other[0]]
                    raise AssertionError(f"{about}: {len(other)} crops differ, first {[c[cell] for c in columns]}")
                checked += len(kept)
                calls += 1
                shutil.rmtree(folder)
