"""Sets of images on a cluster, by Ray: read, written, converted and checked by tasks on many machines.

>>> import wellread.ray
>>> images = wellread.ray.read("plate.parquet", columns=["Metadata_Well"], dtype="stored")    # ray.data.Dataset
>>> wellread.ray.write(images.filter(...), "chosen.parquet")
>>> wellread.ray.convert("plate-tiff", "plate.parquet")
>>> wellread.ray.stats("plate.parquet", out="stats.json")

Nothing here schedules: Ray does, which the extra ``ray`` brings (``pip install '.[ray]'`` in a clone). Every node has
to see the paths, on storage that all share or in a bucket. Importing this module does not import Ray.
"""

from __future__ import annotations

from ._convert import convert
from ._read import read
from ._whole import Checksums, checksum, stats, verify
from ._write import write

__all__ = ["Checksums", "checksum", "convert", "read", "stats", "verify", "write"]
