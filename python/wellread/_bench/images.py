"""Stored pixels to the floats that every loader must deliver.

`Finish` is the documented recipe of the benchmark (centre crop, then scale), written with NumPy alone: what a user
of any of the peers writes. `assemble` and `ArrowImages` read OME-Arrow values: as Python objects, and flat.
"""

import numpy as np

AXES = "tczyx"
# Names of OME pixel types that NumPy calls otherwise.
DTYPES = {"float": "float32", "double": "float64", "bit": "uint8"}
# What the memory of wellread's batches begins at a multiple of: XLA takes such memory as it is, and copies other.
ALIGNMENT = 64


class Finish:
    """Native TCZYX pixels to float32 CYX (TCZYX where there are several planes).

    `dtype` is the images' own type where files declare a wider one, as ome-arrow does of 8-bit images.
    """

    def __init__(self, crop=None, scale=None, dtype=None):
        self.crop, self.scale, self.dtype = crop, scale, dtype

    def __call__(self, native):
        return self.scaled(self.cropped(native).astype(np.float32), native.dtype)

    def scaled(self, values, dtype):
        """Floats of pixels of `dtype`, scaled in place."""
        factor, offset = self.factors(dtype)
        if factor != 1:
            values *= factor
        if offset:
            values += offset
        return values

    def cropped(self, native):
        """A view of the centre, without axes of length 1 before the channels."""
        if self.crop:
            height, width = self.crop
            y, x = (native.shape[-2] - height) // 2, (native.shape[-1] - width) // 2
            if y < 0 or x < 0:
                raise ValueError(f"an image of {native.shape[-2:]} is smaller than the crop {self.crop}")
            native = native[..., y : y + height, x : x + width]
        t, c, z, y, x = native.shape
        return native.reshape(c, y, x) if t == z == 1 else native

    def factors(self, dtype):
        """Factor and offset: the range of the type to [0, 1], unless another factor was asked for."""
        if self.scale is not None:
            return np.float32(self.scale), np.float32(0)
        dtype = np.dtype(self.dtype or dtype)
        if np.issubdtype(dtype, np.floating):
            return np.float32(1), np.float32(0)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.float32(1 / (high - low)), np.float32(-low / (high - low))


def aligned(array, dtype):
    """A copy as `dtype` that begins where a batch of wellread's does; NumPy's own memory does so by chance only."""
    size = array.size * np.dtype(dtype).itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + size].view(dtype).reshape(array.shape)
    np.copyto(copy, array, casting="unsafe")
    return copy


def as_tczyx(array, axes):
    """An array with the named axes (such as "CYX"), all five in order."""
    axes = axes.lower().replace("s", "c")
    if axes == AXES:
        return array
    order = [axes.index(axis) for axis in AXES if axis in axes]
    lengths = [array.shape[axes.index(axis)] if axis in axes else 1 for axis in AXES]
    return np.ascontiguousarray(array.transpose(order)).reshape(lengths)


def image_column(schema):
    """The name of the first OME-Arrow column of an Arrow schema."""
    import pyarrow as pa

    for field in schema:
        if pa.types.is_struct(field.type) and field.type.get_field_index("pixels_meta") >= 0:
            return field.name
    raise ValueError(f"no OME-Arrow column among {', '.join(schema.names)}")


def assemble(image):
    """An OME-Arrow value that became Python objects (`as_py`), as a TCZYX array."""
    meta = image["pixels_meta"]
    out = np.zeros([meta[f"size_{axis}"] for axis in AXES], DTYPES.get(meta["type"], meta["type"]))
    for chunk in image["chunks"] or ():
        z, y, x = (chunk[axis] for axis in "zyx")
        dz, dy, dx = (chunk[f"shape_{axis}"] for axis in "zyx")
        pixels = np.asarray(chunk["pixels"]).reshape(dz, dy, dx)
        out[chunk["t"], chunk["c"], z : z + dz, y : y + dy, x : x + dx] = pixels
    if not image["chunks"]:
        for plane in image["planes"] or ():
            pixels = np.asarray(plane["pixels"]).reshape(out.shape[-2:])
            out[plane["t"], plane["c"], plane["z"]] = pixels
    return out


class ArrowImages:
    """OME-Arrow values in Arrow's memory, without Python objects: offsets, and one buffer of pixels."""

    def __init__(self, column):
        """`column`: an Arrow struct array with `pixels_meta` and `chunks`."""
        meta, chunks = column.field("pixels_meta"), column.field("chunks")
        self.shapes = np.stack([meta.field(f"size_{axis}").to_numpy(zero_copy_only=False) for axis in AXES], 1)
        self.dtypes = [DTYPES.get(name, name) for name in meta.field("type").to_pylist()]
        self.first = chunks.offsets.to_numpy() - chunks.offsets[0].as_py()
        places = chunks.flatten()
        named = ("t", "c", "z", "y", "x", "shape_z", "shape_y", "shape_x")
        self.places = np.stack([places.field(k).to_numpy(zero_copy_only=False).astype(np.int64) for k in named], 1)
        pixels = places.field("pixels")
        self.starts = pixels.offsets.to_numpy() - pixels.offsets[0].as_py()
        self.values = pixels.flatten().to_numpy(zero_copy_only=False)

    def __len__(self):
        return len(self.shapes)

    def __getitem__(self, i):
        """Row `i`, TCZYX. A view of Arrow's memory where the image is one chunk of its own type."""
        shape, dtype = tuple(self.shapes[i]), np.dtype(self.dtypes[i])
        begin, end = self.first[i], self.first[i + 1]
        if end - begin == 1 and dtype == self.values.dtype:
            return self.values[self.starts[begin] : self.starts[begin + 1]].reshape(shape)
        out = np.zeros(shape, dtype)
        for k in range(begin, end):
            t, c, z, y, x, dz, dy, dx = self.places[k]
            pixels = self.values[self.starts[k] : self.starts[k + 1]].reshape(dz, dy, dx)
            out[t, c, z : z + dz, y : y + dy, x : x + dx] = pixels
        return out
