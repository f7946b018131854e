"""annbatch, which needs Python >= 3.12 and so runs in an environment of its own; as peers.py, a JSON line per epoch.

python annbatch_peer.py FOLDER --batch 16 --chunk 1 --epochs 2

The set is one zarr array (images x pixels) beside the others, one image per zarr chunk, not compressed, sharded as
annbatch advises. `--chunk 1` shuffles row by row, as wellread does; more is annbatch's way, blocks of so many rows.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import peak
import torch
import zarr

# Rows that are fetched at once, as annbatch's default has them (512 x 32), as far as there are so many.
PRELOADED = 16_384


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("folder", type=Path)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--chunk", type=int, default=1)
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    torch.set_num_threads(2)
    # The codecs in Rust that annbatch advises for zarr v3.
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "threading.max_workers": 2})
    from annbatch import Loader

    opened = time.perf_counter()
    array = zarr.open_array(str(a.folder / "annbatch.zarr"), mode="r")
    shape = tuple(array.attrs["shape"])
    scale = np.float32(1 / np.iinfo(array.dtype).max)
    # Whole batches in what is fetched, at most a quarter of the set, or it would be a preload of all of it.
    rows = max(a.batch * a.chunk, min(PRELOADED, array.shape[0] // 4) // (a.batch * a.chunk) * a.batch * a.chunk)
    loader = Loader(chunk_size=a.chunk, preload_nchunks=rows // a.chunk, batch_size=a.batch, shuffle=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader.add_dataset(array)
    open_s = time.perf_counter() - opened
    for epoch in range(a.epochs):
        start = time.perf_counter()
        first, count = None, 0
        for batch in loader:
            pixels = batch["X"].astype(np.float32)
            pixels *= scale
            tensor = torch.from_numpy(pixels).view(-1, 1, *shape)
            first = first or time.perf_counter() - start
            count += len(tensor)
        seconds = time.perf_counter() - start
        print(json.dumps({"epoch": epoch, "epoch_s": seconds, "first_batch_s": first + (open_s if epoch == 0 else 0),
                          "samples_per_sec": count / seconds, "peak_rss_mb": peak.mb()}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
