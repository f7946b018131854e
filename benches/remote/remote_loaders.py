"""Loaders that read a bucket: each yields batches as rows and pixels of the stored type.

Random readers are given wellread's order. LitData, MosaicML Streaming and WebDataset read their own shards one
after the other, as they are made for.
"""

import io
import os
import tempfile
from pathlib import Path

import numpy as np
from remote_sets import BUCKET, FORMATS

WORKERS = 8


def shape_of(job):
    return job["channels"], job["height"], job["width"]


class Wellread:
    """A set in one of wellread's formats, in a bucket, in the folder, or kept on disk."""

    def __init__(self, job):
        import wellread as wr

        where = job["folder"] if job["local"] else f"s3://{BUCKET}"
        cache = {"cache": f"disk:{job['cache']}:8GiB"} if job["cache"] else {}
        images = wr.Dataset(f"{where}/{job['set']}/{FORMATS[job['format']]}", **cache)
        self.some = job["rows"] if job["rows"] < len(images) else None
        if self.some:
            # As far apart as they lie in the set.
            self.kept = np.random.default_rng(job["seed"]).choice(len(images), self.some, replace=False)
            images = images.select(np.sort(self.kept))
        self.loader = wr.DataLoader(images, job["batch"], shuffle=True, seed=job["seed"], dtype="stored",
                                    num_workers=job["threads"])  # fmt: skip

    def rows_of(self, rows):
        return np.sort(self.kept)[rows] if self.some else np.asarray(rows)

    def epoch(self, e):
        if e > 0:
            # A later epoch is to go over the link again, and not to find the pages of a small set in memory.
            self.loader._built.forget_pages()
        rows, at = self.rows_of(self.loader.rows(e)), 0
        for batch in self.loader:
            pixels = np.asarray(batch)
            yield rows[at : at + len(pixels)], pixels
            at += len(pixels)

    def stats(self):
        # Wheels of before have none.
        return self.loader.stats() if hasattr(self.loader, "stats") else {}


class Zarr:
    """One call for each batch, whose chunks zarr-python fetches together."""

    def __init__(self, job):
        import zarr

        zarr.config.set({"async.concurrency": 64, "threading.max_workers": job["threads"]})
        path = f"{BUCKET}/{job['set']}/zarr"
        if job["loader"] == "zarr-s3fs":
            import s3fs

            fs = s3fs.S3FileSystem(endpoint_url=job["url"], key="lab", secret="lab-secret", asynchronous=True)
            store = zarr.storage.FsspecStore(fs, path=path, read_only=True)
        else:
            from obstore.store import S3Store

            store = S3Store(BUCKET, prefix=f"{job['set']}/zarr", endpoint=job["url"], region="us-east-1",
                            access_key_id="lab", secret_access_key="lab-secret",
                            client_options={"allow_http": True})  # fmt: skip
            store = zarr.storage.ObjectStore(store, read_only=True)
        self.job, self.array = job, zarr.open_array(store, mode="r")

    def epoch(self, e):
        for rows in batches(self.job, e):
            ordered = np.sort(rows)
            pixels = self.array.get_orthogonal_selection((ordered,))
            yield rows, pixels[np.searchsorted(ordered, rows)]


class Lance:
    def __init__(self, job):
        import lance

        options = {"endpoint": job["url"], "allow_http": "true", "region": "us-east-1",
                   "access_key_id": "lab", "secret_access_key": "lab-secret"}  # fmt: skip
        path = f"s3://{BUCKET}/{job['set']}/lance-binary"
        self.job, self.dataset = job, lance.dataset(path, storage_options=options)

    def epoch(self, e):
        for rows in batches(self.job, e):
            column = self.dataset.take(rows.tolist())["pixels"].to_pylist()
            yield (
                rows,
                np.stack([np.frombuffer(one, self.job["dtype"]).reshape(shape_of(self.job)) for one in column]),
            )


class Tiffs:
    """A dataset of torch's: a request for each file, its bytes to tifffile."""

    def __init__(self, job):
        import s3fs

        self.job, self.fs = job, None
        found = s3fs.S3FileSystem(endpoint_url=job["url"], key="lab", secret="lab-secret").find(
            f"{BUCKET}/{job['set']}/tiff"
        )
        self.files = sorted(file for file in found if file.endswith((".tif", ".tiff")))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, row):
        import s3fs
        import tifffile

        if self.fs is None:
            self.fs = s3fs.S3FileSystem(endpoint_url=self.job["url"], key="lab", secret="lab-secret")
        pixels = tifffile.imread(io.BytesIO(self.fs.cat_file(self.files[row])))
        return row, pixels.reshape(shape_of(self.job))

    def epoch(self, e):
        import torch.utils.data

        yield from torch.utils.data.DataLoader(
            self, batch_sampler=[rows.tolist() for rows in batches(self.job, e)], num_workers=WORKERS,
            collate_fn=stacked, multiprocessing_context="forkserver",
        )  # fmt: skip


class Litdata:
    def __init__(self, job):
        import litdata
        from litdata.streaming import downloader

        # It reads ahead by obstore, which wants TLS unless it is told otherwise; LitData has no option for it.
        downloader._OBSTORE_CLIENT_OPTIONS = {**downloader._OBSTORE_CLIENT_OPTIONS, "allow_http": True}
        self.job, self.kept = job, tempfile.TemporaryDirectory()
        options = {"endpoint_url": job["url"], "aws_access_key_id": "lab", "aws_secret_access_key": "lab-secret"}
        self.dataset = litdata.StreamingDataset(
            f"s3://{BUCKET}/{job['set']}/litdata", cache_dir=self.kept.name, storage_options=options, shuffle=False
        )

    def epoch(self, e):
        import litdata

        yield from litdata.StreamingDataLoader(
            self.dataset, batch_size=self.job["batch"], num_workers=WORKERS, collate_fn=Decoded(self.job)
        )


class Mosaic:
    def __init__(self, job):
        from streaming import StreamingDataset

        os.environ["S3_ENDPOINT_URL"] = job["url"]
        self.job, self.kept = job, tempfile.TemporaryDirectory()
        self.dataset = StreamingDataset(remote=f"s3://{BUCKET}/{job['set']}/mds", local=self.kept.name, shuffle=False,
                                        batch_size=job["batch"])  # fmt: skip

    def epoch(self, e):
        import torch.utils.data

        yield from torch.utils.data.DataLoader(
            self.dataset, batch_size=self.job["batch"], num_workers=WORKERS, collate_fn=Decoded(self.job)
        )


class Webdataset:
    def __init__(self, job):
        import webdataset

        shards = sorted(path.name for path in Path(job["folder"], job["set"], "wds").glob("*.tar"))
        urls = [f"pipe:curl -s -f {job['url']}/{BUCKET}/{job['set']}/wds/{name}" for name in shards]
        self.job, self.workers = job, min(WORKERS, len(urls))
        self.dataset = webdataset.WebDataset(urls, shardshuffle=False)

    def epoch(self, e):
        import torch.utils.data

        yield from torch.utils.data.DataLoader(
            self.dataset, batch_size=self.job["batch"], num_workers=self.workers, collate_fn=Decoded(self.job)
        )


class Decoded:
    """Samples of those who stream, as rows and pixels."""

    def __init__(self, job):
        self.dtype, self.shape = job["dtype"], shape_of(job)

    def __call__(self, samples):
        rows = [int(one["row"]) if "row" in one else int(one["__key__"]) for one in samples]
        pixels = [one.get("pixels", one.get("pixels.bin")) for one in samples]
        return np.array(rows), np.stack([np.frombuffer(one, self.dtype).reshape(self.shape) for one in pixels])


def stacked(samples):
    rows, pixels = zip(*samples, strict=True)
    return np.array(rows), np.stack(pixels)


def batches(job, e):
    """The rows of each batch, drawn for this epoch."""
    drawn = np.random.default_rng([job["seed"], e])
    rows = drawn.permutation(job["images"])[: job["rows"]]
    return [rows[at : at + job["batch"]] for at in range(0, len(rows), job["batch"])]


# The loader, and the set that it reads beside wellread's own.
LOADERS = {
    "wellread": (Wellread, None), "zarr-obstore": (Zarr, "zarr"), "zarr-s3fs": (Zarr, "zarr"),
    "pylance": (Lance, "lance-binary"), "tifffile-fsspec": (Tiffs, None), "litdata": (Litdata, "litdata"),
    "mosaicml-streaming": (Mosaic, "mds"), "webdataset": (Webdataset, "wds"),
}  # fmt: skip
SEQUENTIAL = ("litdata", "mosaicml-streaming", "webdataset")
