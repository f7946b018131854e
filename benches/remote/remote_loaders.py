"""Loaders that read a bucket: each yields batches as rows and `float32` tensors of torch (N, C, Y, X) in [0, 1].

Loaders that read at random are given wellread's order. LitData, MosaicML Streaming and WebDataset read their own
shards one after the other, as they are made for. A loader's imports are named beside it, and done before the clock
starts.
"""

import io
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.utils.data
from ahead import AheadOfUse
from collation import as_it_is, room
from remote_sets import BUCKET, FORMATS, SHARDS, chosen

WORKERS = 8
# Batches that are asked for at once where a library reads one by a call: 8 x 16 images are as many requests as
# wellread has at once (`wellread.link`).
AHEAD = 8
# Of clients that keep fewer connections by themselves.
REQUESTS = 128


def shape_of(job):
    return job["channels"], job["height"], job["width"]


def empty(job, count):
    return np.empty((count, *shape_of(job)), np.float32)


def scale(job):
    """What stored pixels are multiplied by."""
    return np.float32(1 / np.iinfo(job["dtype"]).max)


class Wellread:
    """A set in one of wellread's formats, in a bucket, in the folder, or kept on disk. The thread that waits for a
    batch reads files of the folder too. It never waits for a network, so that a set behind one has a thread more."""

    def __init__(self, job):
        import wellread as wr

        where = job["folder"] if job["local"] else f"s3://{BUCKET}"
        cache = {"cache": f"disk:{job['cache']}:8GiB"} if job["cache"] else {}
        images = wr.Dataset(f"{where}/{job['set']}/{FORMATS[job['format']]}", **cache)
        self.kept = chosen(job["images"], job["rows"], job["seed"])
        if self.kept is not None:
            images = images.select(self.kept)
        self.loader = wr.DataLoader(images, job["batch"], shuffle=True, seed=job["seed"], as_="torch", shard=False,
                                    num_workers=job["threads"] - job["local"])  # fmt: skip

    def epoch(self, e):
        if e > 0:
            # A later epoch is to go over the link again, and not to find the pages of a small set in memory.
            self.loader._built.forget_pages()
        rows, at = np.asarray(self.loader.rows(e)), 0
        rows = rows if self.kept is None else self.kept[rows]
        for batch in self.loader:
            yield rows[at : at + len(batch)], batch
            at += len(batch)

    def stats(self):
        # Wheels of before have none.
        return self.loader.stats() if hasattr(self.loader, "stats") else {}


class BatchByCall(AheadOfUse):
    """For libraries that read a batch by one call, `take`: threads call it for the next batches."""

    def __init__(self, job):
        self.job = job
        super().__init__(lambda e: batches(job, e), self.with_rows, AHEAD, AHEAD)

    def with_rows(self, rows):
        return rows, torch.from_numpy(self.take(rows))


class Zarr(BatchByCall):
    """One call for each batch, whose chunks zarr-python fetches together."""

    def __init__(self, job):
        import zarr

        super().__init__(job)
        zarr.config.set({"async.concurrency": REQUESTS, "threading.max_workers": job["threads"]})
        path = f"{BUCKET}/{job['set']}/zarr"
        if job["loader"] == "zarr-s3fs":
            store = zarr.storage.FsspecStore(s3fs_of(job, asynchronous=True), path=path, read_only=True)
        else:
            from obstore.store import S3Store

            store = S3Store(BUCKET, prefix=f"{job['set']}/zarr", endpoint=job["url"], region="us-east-1",
                            access_key_id="lab", secret_access_key="lab-secret",
                            client_options={"allow_http": True})  # fmt: skip
            store = zarr.storage.ObjectStore(store, read_only=True)
        self.array = zarr.open_array(store, mode="r")

    def take(self, rows):
        order = np.argsort(rows)
        pixels = self.array.get_orthogonal_selection((rows[order],))
        batch = empty(self.job, len(rows))
        for place, image in zip(order, pixels, strict=True):
            np.multiply(image, scale(self.job), out=batch[place])
        return batch


def s3fs_of(job, **more):
    """With as many connections as there are requests; botocore has ten otherwise."""
    import s3fs

    return s3fs.S3FileSystem(endpoint_url=job["url"], key="lab", secret="lab-secret",
                             config_kwargs={"max_pool_connections": REQUESTS}, **more)  # fmt: skip


class Lance(BatchByCall):
    """`take` of a column of bytes, whose buffers are scaled without Python objects."""

    def __init__(self, job):
        import lance

        super().__init__(job)
        options = {"endpoint": job["url"], "allow_http": "true", "region": "us-east-1",
                   "access_key_id": "lab", "secret_access_key": "lab-secret"}  # fmt: skip
        path = f"s3://{BUCKET}/{job['set']}/lance-binary"
        self.dataset = lance.dataset(path, storage_options=options)

    def take(self, rows):
        column = self.dataset.take(rows.tolist(), columns=["pixels"])["pixels"].combine_chunks()
        _, offsets, data = column.buffers()
        offsets = np.frombuffer(offsets, np.int64)[column.offset :][: len(rows) + 1]
        pixels = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].view(self.job["dtype"])
        batch = empty(self.job, len(rows))
        np.multiply(pixels.reshape(batch.shape), scale(self.job), out=batch)
        return batch


class Tiffs:
    """A dataset of torch's: workers ask for the files of a batch at once, and give their bytes to tifffile."""

    def __init__(self, job):
        found = s3fs_of(job).find(f"{BUCKET}/{job['set']}/tiff")
        self.job, self.fs = job, None
        self.files = sorted(file for file in found if file.endswith((".tif", ".tiff")))

    def __len__(self):
        return len(self.files)

    def __getitems__(self, rows):
        import tifffile

        if self.fs is None:
            self.fs = s3fs_of(self.job)
        found = self.fs.cat([self.files[row] for row in rows])
        batch = room((len(rows), *shape_of(self.job)))
        for row, out in zip(rows, batch.numpy(), strict=True):
            pixels = tifffile.imread(io.BytesIO(found[self.files[row]]))
            np.multiply(pixels.reshape(out.shape), scale(self.job), out=out)
        return np.array(rows), batch

    def epoch(self, e):
        # s3fs has threads, which a forked process would lack; `prepare` has started the server.
        yield from torch.utils.data.DataLoader(
            self, batch_sampler=[rows.tolist() for rows in batches(self.job, e)], num_workers=WORKERS,
            collate_fn=as_it_is, multiprocessing_context="forkserver",
        )  # fmt: skip


class Litdata:
    def __init__(self, job):
        import litdata
        from litdata.streaming import downloader

        # It reads ahead by obstore, which wants TLS unless it is told otherwise; LitData has no option for it.
        downloader._OBSTORE_CLIENT_OPTIONS = {**downloader._OBSTORE_CLIENT_OPTIONS, "allow_http": True}
        self.job, self.kept = job, tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = {"endpoint_url": job["url"], "aws_access_key_id": "lab", "aws_secret_access_key": "lab-secret"}
        self.dataset = litdata.StreamingDataset(
            f"s3://{BUCKET}/{job['set']}/{SHARDS['litdata']}", cache_dir=self.kept.name, storage_options=options,
            shuffle=False,
        )  # fmt: skip

    def epoch(self, e):
        import litdata

        yield from litdata.StreamingDataLoader(
            self.dataset, batch_size=self.job["batch"], num_workers=WORKERS, collate_fn=Decoded(self.job)
        )


class Mosaic:
    def __init__(self, job):
        from streaming import StreamingDataset

        os.environ["S3_ENDPOINT_URL"] = job["url"]
        self.job, self.kept = job, tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.dataset = StreamingDataset(remote=f"s3://{BUCKET}/{job['set']}/{SHARDS['mds']}", local=self.kept.name,
                                        shuffle=False, batch_size=job["batch"])  # fmt: skip
        for stream in self.dataset.streams:
            # Forked workers would share its connection, and one the answers to another.
            stream._downloader.clean_up()

    def epoch(self, e):
        yield from torch.utils.data.DataLoader(
            self.dataset, batch_size=self.job["batch"], num_workers=WORKERS, collate_fn=Decoded(self.job)
        )


class Webdataset:
    """As many workers as all others have, or one for each shard where there are fewer."""

    def __init__(self, job):
        import webdataset

        urls = [f"pipe:curl -s -f {job['url']}/{BUCKET}/{job['set']}/{SHARDS['wds']}/{name}"
                for name in job["tars"]]  # fmt: skip
        self.job, self.workers = job, min(WORKERS, len(urls))
        self.dataset = webdataset.WebDataset(urls, shardshuffle=False)

    def epoch(self, e):
        yield from torch.utils.data.DataLoader(
            self.dataset, batch_size=self.job["batch"], num_workers=self.workers, collate_fn=Decoded(self.job)
        )


class Decoded:
    """Samples of those who stream, as rows and a batch, made in the worker."""

    def __init__(self, job):
        self.job = job

    def __call__(self, samples):
        rows = [int(one["row"]) if "row" in one else int(one["__key__"]) for one in samples]
        batch = room((len(samples), *shape_of(self.job)))
        for one, out in zip(samples, batch.numpy(), strict=True):
            pixels = np.frombuffer(one.get("pixels", one.get("pixels.bin")), self.job["dtype"])
            np.multiply(pixels.reshape(out.shape), scale(self.job), out=out)
        return np.array(rows), batch


def batches(job, e):
    """The rows of each batch of an epoch, in wellread's order."""
    rows = np.load(job["orders"])[e]
    return [rows[at : at + job["batch"]] for at in range(0, len(rows), job["batch"])]


def prepare(job):
    """What comes before the clock, for all alike: the loader's imports, also those of its workers."""
    import importlib

    torch.set_num_threads(job["threads"])
    modules = LOADERS[job["loader"]][2]
    for module in modules:
        importlib.import_module(module)
    if job["loader"] == "webdataset":
        # Its users give it the names of the shards.
        folder = Path(job["folder"], job["set"], SHARDS["wds"])
        job["tars"] = sorted(path.name for path in folder.glob("*.tar"))
    if job["loader"] == "tifffile-fsspec":
        import multiprocessing

        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["numpy", "torch", "torch.utils.data", *modules])
        # It imports before it starts a process.
        first = server.Process(target=os.getpid)
        first.start()
        first.join()


# The loader, the set that it reads beside wellread's own, what is imported before the clock starts: also what the
# library imports itself when it opens a set.
LOADERS = {
    "wellread": (Wellread, None, ("wellread",)),
    "zarr-obstore": (Zarr, "zarr", ("zarr.storage", "obstore.store")),
    "zarr-s3fs": (Zarr, "zarr", ("zarr.storage", "s3fs", "aiobotocore.session")),
    "pylance": (Lance, "lance-binary", ("lance", "pyarrow")),
    "tifffile-fsspec": (Tiffs, None, ("s3fs", "aiobotocore.session", "tifffile", "imagecodecs")),
    "litdata": (Litdata, SHARDS["litdata"], ("litdata", "litdata.streaming.downloader", "boto3", "obstore.store")),
    "mosaicml-streaming": (Mosaic, SHARDS["mds"], ("streaming", "boto3")),
    "webdataset": (Webdataset, SHARDS["wds"], ("webdataset",)),
}
SEQUENTIAL = ("litdata", "mosaicml-streaming", "webdataset")
