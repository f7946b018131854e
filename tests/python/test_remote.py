"""Sets in a bucket, against moto's server: S3 as boto3 meets it, with listings, ETags, conditions, multipart uploads.

moto answers as Amazon does down to odd corners (empty objects, markers of folders, errors in XML), and boto3 comes
with it, by which the tests put and look at objects past wellread.
"""

import contextlib
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import wellread as wr

boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto.server")

BUCKET = "plates"
SECRET = "a-secret-that-nobody-prints"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    """The URL of a server of its own, which lives as long as the tests of this file; the environment leads to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    log = tmp_path_factory.mktemp("moto") / "log"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        for _ in range(1200):
            assert server.poll() is None, log.read_text()
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/moto-api/", timeout=10):
                break
            time.sleep(0.1)
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                patch.delenv(name)
            patch.setenv("AWS_ENDPOINT_URL", url)
            patch.setenv("AWS_ACCESS_KEY_ID", "lab")
            patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
            patch.setenv("AWS_REGION", "us-east-1")
            patch.setenv("AWS_CONFIG_FILE", os.devnull)
            patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
            patch.setenv("NO_PROXY", "127.0.0.1")
            patch.setenv("no_proxy", "127.0.0.1")
            patch.setenv("WELLREAD_ATTEMPTS", "4")
            yield url
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="module")
def s3(endpoint):
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket=BUCKET)
    return client


def put(s3, local: Path, key: str) -> str:
    """Puts a file, or all of a folder, at a key; its address."""
    files = [local] if local.is_file() else sorted(path for path in local.rglob("*") if path.is_file())
    for file in files:
        inside = "" if file == local else f"/{file.relative_to(local).as_posix()}"
        s3.put_object(Bucket=BUCKET, Key=key + inside, Body=file.read_bytes())
    return f"s3://{BUCKET}/{key}"


@pytest.fixture(scope="module")
def sets(generated, s3):
    """Local path and address of a set in each format that was written and that places read."""
    folder, _, written = generated
    engines = ("lance", "vortex", "duckdb")
    found = {}
    for name, document in written.items():
        if not document["error"] and not any(engine in name for engine in engines):
            local = Path(document["path"])
            found[name] = (local, put(s3, local, f"{folder.name}/{local.name}"))
    assert len(found) >= 4
    return found


def test_every_format_has_the_pixels_of_the_folder(sets):
    for name, (local, address) in sets.items():
        here, there = wr.Dataset(local), wr.Dataset(address)
        assert len(here) == len(there), name
        for row in range(len(here)):
            assert here.name(row) == there.name(row), name
            np.testing.assert_array_equal(here[row], there[row], err_msg=name)


def test_commands_say_of_a_bucket_what_they_say_of_a_folder(sets, wellread):
    for name, (local, address) in sets.items():
        assert wellread("checksum", local) == wellread("checksum", address), name
        infos = [wellread("info", place) for place in (local, address)]
        keys = ("format", "images", "shape_tczyx", "dtype", "files", "bytes_on_disk")
        assert [infos[0][key] for key in keys] == [infos[1][key] for key in keys], name
        stats = [wellread("stats", place) for place in (local, address)]
        assert stats[0]["channels"] == stats[1]["channels"], name


def test_a_set_is_converted_into_a_bucket_and_out_of_it(sets, s3, wellread, tmp_path):
    local, address = next(iter(sets.values()))
    converted = f"{address.split('/')[3]}-converted/"
    for target in ("parquet", "tiff", "ome-zarr"):
        there = f"s3://{BUCKET}/{converted}{target}"
        wellread("convert", local, there, "--format", target)
        assert wellread("verify", there, "--against", local)["passed"]
        back = tmp_path / target
        wellread("convert", there, back, "--format", target)
        assert wellread("checksum", back) == wellread("checksum", local)
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=converted)["Contents"]
    assert not [entry["Key"] for entry in listed if ".wellread-" in entry["Key"]]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)


def test_nothing_is_replaced_in_a_bucket(sets, wellread):
    local, address = next(iter(sets.values()))
    assert "already exists" in wellread("convert", local, address, "--format", "parquet", code=1)


def test_batches_are_those_of_the_folder_for_any_workers(sets):
    for name, (local, address) in sets.items():
        options = {"batch_size": 2, "shuffle": True, "seed": 3}
        here = [np.asarray(batch) for batch in wr.DataLoader(wr.Dataset(local), **options)]
        for workers in (0, 3):
            there = [
                np.asarray(batch) for batch in wr.DataLoader(wr.Dataset(address), num_workers=workers, **options)
            ]
            assert len(here) == len(there), name
            for a, b in zip(here, there, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)


def first_pixels(address, queue):
    queue.put(wr.Dataset(address)[0])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_read_on(sets, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    context = multiprocessing.get_context(method)
    _, address = next(iter(sets.values()))
    want = wr.Dataset(address)[0]
    queue = context.Queue()
    process = context.Process(target=first_pixels, args=(address, queue))
    process.start()
    np.testing.assert_array_equal(queue.get(timeout=600), want)
    process.join()
    assert process.exitcode == 0


def test_an_open_set_is_read_in_a_forked_process(sets):
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    context = multiprocessing.get_context("fork")
    for name, (_, address) in sets.items():
        opened = wr.Dataset(address)
        want = opened[0]
        queue = context.Queue()
        process = context.Process(target=lambda opened=opened, queue=queue: queue.put(opened[0]))
        process.start()
        np.testing.assert_array_equal(queue.get(timeout=600), want, err_msg=name)
        process.join()


def test_errors_name_key_and_source_of_credentials_and_no_secret(s3, wellread):
    said = wellread("info", f"s3://{BUCKET}/no/such.parquet", code=1)
    assert "no/such.parquet" in said and "AWS_ACCESS_KEY_ID" in said
    assert SECRET not in said
    said = wellread("info", "s3://no-such-bucket/a.parquet", code=1)
    assert "no-such-bucket" in said and SECRET not in said


def test_a_profile_names_keys_and_endpoint(sets, endpoint, monkeypatch, tmp_path, wellread):
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    config, credentials = tmp_path / "config", tmp_path / "credentials"
    config.write_text(f"[profile lab]\nregion = eu-west-1\nendpoint_url = {endpoint}\n")
    credentials.write_text(f"[lab]\naws_access_key_id = lab\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    local, address = next(iter(sets.values()))
    assert wellread("checksum", address) == wellread("checksum", local)
    said = wellread("info", f"s3://{BUCKET}/no.parquet", code=1)
    assert "profile lab" in said and SECRET not in said
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert "nobody" in wellread("info", address, code=1)


def test_without_credentials_nothing_is_signed(sets, monkeypatch, wellread):
    local, address = next(iter(sets.values()))
    monkeypatch.setenv("WELLREAD_ANONYMOUS", "1")
    said = wellread("info", f"s3://{BUCKET}/no.parquet", code=1)
    assert "anonymous" in said, said
    monkeypatch.delenv("WELLREAD_ANONYMOUS")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert "anonymous" in wellread("info", f"s3://{BUCKET}/no.parquet", code=1)


def test_a_pickled_set_holds_no_secret(sets):
    import pickle

    _, address = next(iter(sets.values()))
    assert SECRET.encode() not in pickle.dumps(wr.Dataset(address))
    assert SECRET not in json.dumps(repr(wr.Dataset(address)))


def test_requests_and_bytes_over_the_link_are_counted(sets):
    for name, (local, address) in sets.items():
        loader = wr.DataLoader(wr.Dataset(address), batch_size=2, num_workers=0)
        before = loader.stats()
        assert (before["requests"], before["bytes_received"], before["used"]) == (0, 0, 0), name
        batches = list(loader)
        stats = loader.stats()
        pixels = sum(np.asarray(batch).size for batch in batches)
        assert stats["used"] == pixels * wr.Dataset(local).dtype.itemsize, name
        # What opening brought along may hold all of a small set.
        assert (stats["requests"] == 0) == (stats["bytes_received"] == 0), name
        assert stats["link_wait_s"] >= 0, name
        if stats["bytes_received"]:
            assert stats["bytes_read_per_used"] == stats["bytes_received"] / stats["used"], name


def test_bench_has_the_limit_of_the_link_and_what_went_over_it(s3, wellread, tmp_path):
    # Larger than what is kept of the beginnings and ends of files.
    made = wellread("generate", tmp_path / "set", "--images", 6, "--size", "500x500", "--dtype", "uint16",
                    "--formats", "ome-zarr")  # fmt: skip
    address = put(s3, Path(made["written"][0]["path"]), "for-bench.ome.zarr")
    out = tmp_path / "results"
    wellread("bench", "dataloader", "--input", address, "--in-place", "--repeats", 2, "--batch-sizes", 4,
             "--workers", 0, "--no-cold", "--out", out)  # fmt: skip
    rows = pq.read_table(out / "dataloader.parquet").to_pylist()
    assert rows and all(row["status"] == "ok" for row in rows)
    for row in rows:
        assert row["requests"] >= 6 and row["link_bytes"] > 0 and row["link_wait_s"] > 0
        assert row["bytes_read_per_used"] > 0 and row["limit_link_per_s"] > 0
        assert row["limit_read_per_s"] is None, "reading alone waits for the link too"
        assert row["bound_by"] in ("link", "widening and scaling", "limit not valid")


@pytest.fixture(scope="module")
def few(s3, wellread, tmp_path_factory):
    """A folder of images that is in the bucket too, and its address."""
    folder = tmp_path_factory.mktemp("few")
    made = wellread("generate", folder, "--images", 24, "--size", "64x64", "--formats", "ome-zarr")
    local = Path(made["written"][0]["path"])
    return local, put(s3, local, "few.ome.zarr")


def test_doctor_says_what_the_link_gives_and_no_secret(few, endpoint, wellread):
    local, address = few
    options = ("--rounds", 1, "--time-budget", 5)
    link = wellread("doctor", "--data", address, *options)["link"]
    assert link["endpoint"] == endpoint and link["region"] == "us-east-1"
    assert link["credentials"] == "the environment (AWS_ACCESS_KEY_ID)" and SECRET not in json.dumps(link)
    assert link["latency_s"] > 0 and link["bytes_per_s"] > 0 and link["at_once"] >= 8
    assert "link" not in wellread("doctor", "--data", local, *options)


def test_advise_predicts_requests_bytes_and_cost_of_each_format(few, wellread, tmp_path):
    local, address = few
    options = ("--formats", "ome-zarr,parquet", "--time-budget", 5, "--scratch", tmp_path)
    found = wellread("advise", address, *options, "--price-per-1000-requests", 2)["link"]
    by_name = {one["name"]: one for one in found["predictions"]}
    assert {name.split(" ")[0] for name in by_name} >= {"ome-zarr", "parquet"}
    for one in by_name.values():
        assert one["requests_per_epoch"] > 0 and one["bytes_per_epoch"] > 0 and one["images_per_s"] > 0
        assert one["cost_per_epoch"] == pytest.approx(2 * one["requests_per_epoch"] / 1000)
        assert one["bound_by"] in ("latency", "bandwidth", "decoding")
    # A folder of an object for each image takes a request for each at least; a file of small images takes few.
    requests = {name: one["requests_per_epoch"] for name, one in by_name.items()}
    assert min(n for name, n in requests.items() if name.startswith("ome-zarr")) >= 24
    assert max(n for name, n in requests.items() if name.startswith("parquet")) < 24
    assert wellread("advise", local, *options)["link"] is None
