"""Others read in a bucket what `convert` wrote there: zarr-python by obstore, pylance, pyarrow.

The bucket is moto's. Each library reads every image, by its own client of S3.
"""

import json

import boto3
import lance
import moto_server
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
import zarr
from obstore.store import S3Store
from test_cross_reading import assemble, check

BUCKET, REGION, KEY, SECRET = "written", "us-east-1", "lab", "the-secret-of-peers"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    with moto_server.running(tmp_path_factory.mktemp("moto") / "log", SECRET) as url:
        boto3.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
        yield url


@pytest.fixture(scope="module")
def source(wellread, tmp_path_factory):
    """A set on this machine, of several channels and depths, and what its images are, by name."""
    folder = tmp_path_factory.mktemp("source")
    made = wellread("generate", folder, "--images", 4, "--size", "130x110", "--channels", 2, "--depth", 3,
                    "--dtype", "uint16", "--formats", "parquet")  # fmt: skip
    images = json.loads((folder / "expected.json").read_text())["images"]
    return made["written"][0]["path"], {image["name"]: image for image in images}


SHARDS = ("--shard", "1,1,3,160,160", "--chunk", "1,1,1,80,80")


@pytest.mark.parametrize(
    ("folder", "variant", "options"), [("v2", "0.4", ()), ("v3", "0.5", ()), ("shards", "0.5", SHARDS)]
)
def test_zarr_python_and_obstore_read_our_ome_zarr(endpoint, source, wellread, folder, variant, options):
    path, expected = source
    wellread("convert", path, f"s3://{BUCKET}/{folder}", "--format", "ome-zarr", "--variant", variant, *options)
    found = {}
    for name in expected:
        store = S3Store(BUCKET, prefix=f"{folder}/{name}.zarr", endpoint=endpoint, region=REGION, access_key_id=KEY,
                        secret_access_key=SECRET, client_options={"allow_http": True})  # fmt: skip
        group = zarr.open_group(zarr.storage.ObjectStore(store, read_only=True), mode="r")
        about = group.attrs["ome"] if variant == "0.5" else group.attrs
        array = group[about["multiscales"][0]["datasets"][0]["path"]]
        assert array.shards == ((1, 1, 3, 160, 160) if options else None)
        found[name] = array[:]
    check(found, expected)


def test_pyarrow_reads_our_parquet(endpoint, source, wellread):
    path, expected = source
    wellread("convert", path, f"s3://{BUCKET}/images.parquet")
    there = pyarrow.fs.S3FileSystem(endpoint_override=endpoint, region=REGION, access_key=KEY, secret_key=SECRET)
    images = pq.read_table(f"{BUCKET}/images.parquet", filesystem=there)["ome_image"].to_pylist()
    check({image["name"]: assemble(image) for image in images}, expected)


def test_pylance_reads_our_lance_dataset(endpoint, source, wellread):
    path, expected = source
    wellread("convert", path, f"s3://{BUCKET}/images.lance")
    options = {"endpoint": endpoint, "allow_http": "true", "region": REGION, "access_key_id": KEY,
               "secret_access_key": SECRET}  # fmt: skip
    dataset = lance.dataset(f"s3://{BUCKET}/images.lance", storage_options=options)
    check({image["name"]: assemble(image) for image in dataset.to_table()["ome_image"].to_pylist()}, expected)
