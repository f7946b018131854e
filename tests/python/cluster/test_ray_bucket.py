"""A Ray cluster that reads from a bucket and writes into it. Nodes have credentials of their own, and nothing else:
the process that asks tells them where the bucket is.
"""

import os
import sys

import moto_server
import pytest
import ray_cluster
import wellread as wr
from wellread import ray as wray
from wellread.ray import _environment

ray = pytest.importorskip("ray")
boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto.server")

BUCKET = "screens"


@pytest.fixture(scope="module")
def s3(cluster, tmp_path_factory):
    """A client of a server that this process alone is told of: the nodes were started before."""
    with moto_server.running(tmp_path_factory.mktemp("moto") / "log", "a-secret-of-the-driver") as url:
        client = boto3.client("s3", endpoint_url=url)
        client.create_bucket(Bucket=BUCKET)
        yield client


def keys(s3):
    """All keys of the bucket."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))


def test_nodes_are_told_where_the_bucket_is_and_no_credentials(s3, cluster, monkeypatch):
    monkeypatch.setenv("WELLREAD_IN_FLIGHT", "3")

    # In the test, since nodes do not find its module.
    @ray.remote
    def there(told):
        import os

        from wellread.ray import _environment

        _environment.take(told)
        names = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "WELLREAD_IN_FLIGHT")
        return {name: os.environ.get(name) for name in names}

    told = _environment.told()
    assert not [name for name in told if "KEY" in name or "SECRET" in name or "TOKEN" in name]
    assert ray.get(there.remote(told)) == {
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
        "AWS_ACCESS_KEY_ID": ray_cluster.OWN["AWS_ACCESS_KEY_ID"],
        "WELLREAD_IN_FLIGHT": "3",
    }


def test_what_an_earlier_job_told_does_not_stay_and_a_nodes_own_does(monkeypatch):
    monkeypatch.setattr(_environment, "_told", {})
    for name in ("AWS_ENDPOINT_URL", "WELLREAD_ANONYMOUS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "of-the-node")
    _environment.take({"AWS_ENDPOINT_URL": "http://a", "AWS_REGION": "of-the-driver", "WELLREAD_ANONYMOUS": "1"})
    assert [os.environ.get(name) for name in ("AWS_ENDPOINT_URL", "AWS_REGION")] == ["http://a", "of-the-node"]
    assert os.environ["WELLREAD_ANONYMOUS"] == "1"
    _environment.take({"AWS_ENDPOINT_URL": "http://b"})
    assert os.environ["AWS_ENDPOINT_URL"] == "http://b" and "WELLREAD_ANONYMOUS" not in os.environ
    _environment.take({})
    assert "AWS_ENDPOINT_URL" not in os.environ and os.environ["AWS_REGION"] == "of-the-node"
    # A choice takes the place of the node's own as long as the job lasts.
    monkeypatch.setenv("WELLREAD_IN_FLIGHT", "9")
    for value in ("3", "4", "9"):
        _environment.take({"WELLREAD_IN_FLIGHT": value})
        assert os.environ["WELLREAD_IN_FLIGHT"] == value
    _environment.take({})
    assert os.environ["WELLREAD_IN_FLIGHT"] == "9"
    told = {"AWS_REGION": "of-the-driver", "WELLREAD_IN_FLIGHT": "3"}
    assert _environment.beside({"AWS_REGION": "a", "WELLREAD_IN_FLIGHT": "9"}, told) == {
        "AWS_REGION": "a",
        "WELLREAD_IN_FLIGHT": "3",
    }


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ("http://me:a-word@host:9000/path?sig=a-word", "http://host:9000/path"),
        ("me:a-word@host", "host"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_a_password_in_an_address_stays_here(monkeypatch, own, told):
    monkeypatch.setenv("AWS_ENDPOINT_URL", own)
    assert _environment.told()["AWS_ENDPOINT_URL"] == told


@pytest.mark.parametrize(("format", "name"), [("parquet", "set.parquet"), ("tiff", "images")])
def test_a_set_is_converted_into_the_bucket_and_read_from_it(s3, cluster, wellread, labelled, format, name):
    source, there = wr.Dataset(labelled), f"s3://{BUCKET}/convert/{name}"
    done = wray.convert(labelled, there, format=format, rows_per_part=12)
    assert (done["images"], done["parts"]) == (40, 4)
    # Nothing else is left there.
    assert not [key for key in keys(s3) if ".wellread-" in key]
    assert ray_cluster.images_of(wr.Dataset(there)) == ray_cluster.images_of(source)
    assert wray.checksum(there) == wellread("checksum", there)
    assert wray.verify(there, labelled)["passed"]
    with pytest.raises(wr.Error, match="already exists"):
        wray.convert(labelled, there, format=format)
    if format == "parquet":
        listed = [key.rsplit("/", 1)[1] for key in keys(s3) if key.startswith("convert/set.parquet/")]
        assert listed == [*(f"part-0000{i}.parquet" for i in range(4)), "wellread-parts.json"]
        assert list(wr.Dataset(there).column("well")) == list(source.column("well"))


def test_ray_data_is_written_into_the_bucket(s3, cluster, labelled):
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    there = f"s3://{BUCKET}/write/set.parquet"
    wray.write(wray.read(labelled, dtype="stored", override_num_blocks=3, rows_per_block=6), there)
    assert ray_cluster.images_of(wr.Dataset(there)) == ray_cluster.images_of(wr.Dataset(labelled))
    rows = wray.read(there, dtype="stored", override_num_blocks=2).take_all()
    assert sorted(row["row"] for row in rows) == list(range(40))
    assert not [key for key in keys(s3) if ".wellread-" in key]


def test_the_command_tells_nodes_its_options_of_the_link(s3, cluster, wellread, parquet, monkeypatch):
    monkeypatch.setenv("WELLREAD_PYTHON", sys.executable)
    there = f"s3://{BUCKET}/command/set.parquet"
    on = ["--on", f"ray:{cluster.address}"]
    done = wellread("--in-flight", 2, "convert", parquet, there, *on)
    assert done["images"] == 40
    sums = wellread("checksum", parquet)
    # Nobody is known by name then: anybody may list the bucket and read these objects.
    s3.put_bucket_acl(Bucket=BUCKET, ACL="public-read")
    for key in keys(s3):
        s3.put_object_acl(Bucket=BUCKET, Key=key, ACL="public-read")
    assert wellread("--anonymous", "checksum", there, *on) == sums
    # The option takes the place of a value that is none.
    monkeypatch.setenv("WELLREAD_LINK_BYTES", "many")
    assert wellread("--link-bytes", "1MiB", "checksum", there, *on) == sums


def test_a_conversion_that_was_given_up_leaves_nothing_in_the_bucket(s3, cluster, cells, tmp_path, wellread):
    folder = tmp_path / "images"
    wellread("convert", cells["parquet"], folder, "--format", "tiff")
    damaged = sorted(folder.glob("*.tiff"))[21]
    damaged.write_bytes(damaged.read_bytes()[:200])
    with pytest.raises(wr.Error, match=damaged.name):
        wray.convert(folder, f"s3://{BUCKET}/broken/set.parquet", mixed=True, rows_per_part=10)
    assert not [key for key in keys(s3) if key.startswith("broken/")]
