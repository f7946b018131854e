"""OME-Arrow in Parquet, read in Python: as upstream does, as it did before its cache, and as well as Python can."""

import numpy as np

from ..images import ArrowImages, assemble, image_column


def parquet_column(path):
    """The image column of a Parquet file, all of it in memory."""
    import pyarrow.parquet as pq

    name = image_column(pq.read_schema(path))
    return pq.read_table(path, columns=[name])[name]


class UpstreamCache:
    """Upstream's cached dataset: each image becomes Python objects and then an array of its own type in a list, when
    opened. `__getitem__` copies, converts to float, looks for the maximum and divides.

    Upstream divides only the images whose maximum exceeds 1, and always by 255. Here all are scaled alike, by the
    range of their type, so that the pixels can be compared. The work is the same.
    """

    knows_framework = True

    def __init__(self, path, finish, framework="pytorch"):
        column = parquet_column(path)
        self.finish, self.framework = finish, framework
        self.images = [assemble(column[i].as_py()) for i in range(len(column))]

    def __len__(self):
        return len(self.images)

    def native(self, i):
        return self.images[i].copy()

    def __getitem__(self, i):
        stored = self.native(i)
        factor, offset = self.finish.factors(stored.dtype)
        image = self.finish.cropped(stored)
        if self.framework == "pytorch":
            import torch

            image = torch.from_numpy(image).float()
            factor, offset = float(factor), float(offset)
        else:
            image = image.astype(np.float32)
        image.max()
        if factor != 1:
            image = image * factor
        return image + offset if offset else image


class FloatCache:
    """The fastest such cache: images are scaled, too, when opened, and `__getitem__` only copies. It takes four bytes
    a pixel in every process, and suits no transform that comes before scaling."""

    def __init__(self, path, finish):
        column = parquet_column(path)
        self.images = [finish(assemble(column[i].as_py())) for i in range(len(column))]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i].copy()


class AsPy:
    """Upstream before its cache: the conversion to Python objects in each `__getitem__`."""

    def __init__(self, path, finish):
        self.column, self.finish = parquet_column(path), finish

    def __len__(self):
        return len(self.column)

    def native(self, i):
        return assemble(self.column[i].as_py())

    def __getitem__(self, i):
        return self.finish(self.native(i))


class FlatParquet:
    """The best that Python does: the file is read whole, and an image is a slice of Arrow's flat values."""

    def __init__(self, path, finish):
        # Chunk by chunk: all of a large column in one array would exceed its 32-bit offsets.
        self.parts = [ArrowImages(part) for part in parquet_column(path).chunks]
        self.ends = np.cumsum([len(part) for part in self.parts])
        self.finish = finish

    def __len__(self):
        return int(self.ends[-1])

    def native(self, i):
        part = int(np.searchsorted(self.ends, i, side="right"))
        before = 0 if part == 0 else self.ends[part - 1]
        return self.parts[part][i - before]

    def __getitem__(self, i):
        return self.finish(self.native(i))


class OmeArrowFolder:
    """ome-arrow's own dataset; each worker process opens it for itself."""

    def __init__(self, path, finish):
        from ome_arrow.dataset import OMEArrowDataset

        self.path, self.finish = path, finish
        self.ids = OMEArrowDataset(path).image_ids
        self.opened = None

    def __len__(self):
        return len(self.ids)

    def __getstate__(self):
        return {**self.__dict__, "opened": None}

    def native(self, i):
        from ome_arrow.dataset import OMEArrowDataset

        self.opened = self.opened or OMEArrowDataset(self.path)
        return np.asarray(self.opened.read_image(self.ids[i]))

    def __getitem__(self, i):
        return self.finish(self.native(i))
