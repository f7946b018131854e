"""Folders with a file per image: tifffile, zarr-python, Pillow. Files of tifffile and Pillow are opened anew for each
image, as is usual. Arrays of zarr-python stay open."""

from pathlib import Path

import numpy as np

from ..images import as_tczyx


class Folder:
    """The common part of the folders. A subclass has `pattern` and `native(i)`.

    `files` are those of the rows, in their order, where the program knows them.
    """

    takes_files = True

    def __init__(self, path, finish, files=None):
        self.files = [Path(file) for file in files] if files else sorted(Path(path).glob(self.pattern))
        self.finish = finish
        if not self.files:
            raise FileNotFoundError(f"no {self.pattern} in {path}")

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return self.finish(self.native(i))


class Tifffile(Folder):
    """tifffile: the first series, its axes as the file names them."""

    pattern = "**/*.tif*"

    def native(self, i):
        import tifffile

        with tifffile.TiffFile(self.files[i]) as file:
            series = file.series[0]
            array = series.asarray()
        return as_tczyx(*named(array, series.axes))


def named(array, axes):
    """An array and its axes, without those of length 1 that the file does not name; one that remains is of planes."""
    unnamed = [i for i, axis in enumerate(axes) if axis in "QI"]
    single = tuple(i for i in unnamed if array.shape[i] == 1)
    if len(unnamed) - len(single) > 1:
        raise ValueError(f"axes {axes} of lengths {array.shape} are not named")
    kept = "".join(axis for i, axis in enumerate(axes) if i not in single)
    return array.squeeze(single), kept.replace("Q", "Z").replace("I", "Z")


class ZarrPython(Folder):
    """zarr-python: the full resolution, found once for all images from the metadata of the first.

    Arrays are opened once, as opening takes about as long as reading a small image. The first ones are opened with
    the set, outside of an epoch's clock, as wellread's set is. The others are opened when they are first read.
    """

    pattern = "**/*.zarr"
    # Opening takes a millisecond or more for each.
    opened_with_set = 4096

    def __init__(self, path, finish, files=None):
        import zarr

        super().__init__(path, finish, files)
        attributes = zarr.open_group(str(self.files[0]), mode="r").attrs.asdict()
        scales = attributes.get("ome", attributes)["multiscales"][0]
        self.level = scales["datasets"][0]["path"]
        self.axes = "".join(axis["name"] if isinstance(axis, dict) else axis for axis in scales["axes"])
        self.arrays = {}
        for i in range(min(len(self.files), self.opened_with_set)):
            self.array(i)

    def array(self, i):
        """The array of a row, opened once."""
        import zarr

        if i not in self.arrays:
            self.arrays[i] = zarr.open_array(str(self.files[i] / self.level), mode="r")
        return self.arrays[i]

    def native(self, i):
        return as_tczyx(self.array(i)[:], self.axes)


class Pillow(Folder):
    """Pillow, PNG and JPEG."""

    pattern = "**/*.[pj][np]g"

    def native(self, i):
        from PIL import Image

        with Image.open(self.files[i]) as image:
            array = np.asarray(image)
        return as_tczyx(array, "YX" if array.ndim == 2 else "YXC")
