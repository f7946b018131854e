"""Sets in a bucket, against moto's server: S3 as boto3 meets it, with listings, ETags, conditions, multipart uploads.

moto answers as Amazon does down to odd corners (empty objects, markers of folders, errors in XML). boto3 comes
with it, by which the tests put and look at objects past wellread.

Long because tests share one server and its sets, which fixtures of this file make once.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import moto_server
import numpy as np
import pyarrow.parquet as pq
import pytest
import wellread as wr
from generated_sets import KINDS, generate, kind_name

boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto.server")

BUCKET = "plates"
SECRET = "a-secret-that-nobody-prints"


# Planes of one channel, and several channels, depths and times: a place knows no pixel types, and requests take time.
@pytest.fixture(scope="module", params=[KINDS[0], KINDS[2]], ids=kind_name)
def generated(request, wellread, tmp_path_factory):
    """A set in all formats, as the other files of tests have it, of two kinds."""
    return generate(wellread, tmp_path_factory.mktemp("set"), request.param)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    """The URL of a server of its own, which lives as long as the tests of this file; the environment leads to it."""
    with moto_server.running(tmp_path_factory.mktemp("moto") / "log", SECRET) as url:
        yield url


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
    """Local path and address of a set in each format that was written."""
    folder, _, written = generated
    found = {}
    for name, document in written.items():
        if not document["error"]:
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


def test_pictures_and_comparisons_are_those_of_the_folder(sets, wellread, tmp_path):
    for name, (local, address) in sets.items():
        pictures = [tmp_path / f"{name}-{side}.png" for side in ("here", "there")]
        for path, picture in zip((local, address), pictures, strict=True):
            wellread("view", path, "--row", 2, "--out", picture)
        assert pictures[0].read_bytes() == pictures[1].read_bytes(), name
        assert wellread("verify", local, "--against", address)["passed"], name


def test_a_set_is_converted_into_a_bucket_and_out_of_it(sets, s3, wellread, tmp_path):
    local, address = next(iter(sets.values()))
    converted = f"{address.split('/')[3]}-converted/"
    engines = [name for name in ("lance", "vortex", "duckdb") if name in sets]
    for target in ("parquet", "tiff", "ome-zarr", *engines):
        there = f"s3://{BUCKET}/{converted}{target}"
        wellread("convert", local, there, "--format", target)
        assert wellread("verify", there, "--against", local)["passed"]
        back = tmp_path / target
        wellread("convert", there, back, "--format", target)
        assert wellread("checksum", back) == wellread("checksum", local)
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=converted)["Contents"]
    assert not [entry["Key"] for entry in listed if ".wellread-" in entry["Key"]]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)


@pytest.mark.parametrize("size", [None, "1GiB", "4MiB"], ids=["no cache", "a cache", "a small cache"])
def test_what_reads_local_files_alone_says_that_it_fetched_a_copy(sets, s3, monkeypatch, tmp_path, size):
    if "duckdb" not in sets:
        pytest.skip("this build has no DuckDB, or none is installed")
    _, address = sets["duckdb"]
    temporary, cache = tmp_path / "temporary", tmp_path / "cache"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    length = s3.head_object(Bucket=BUCKET, Key=address.split("/", 3)[3])["ContentLength"]
    fits = size == "1GiB" or size == "4MiB" and length <= 4 << 20
    if size is not None:
        monkeypatch.setenv("WELLREAD_DISK_CACHE", f"{cache}:{size}")
    done = subprocess.run([os.environ.get("WELLREAD", "wellread"), "info", address], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("fetched") == 1 and address in done.stderr
    assert f" to {cache if fits else temporary}/wellread-copy-" in done.stderr
    left = [path for folder in (temporary, cache) if folder.exists() for path in folder.glob("wellread-copy-*")]
    assert left == [], "the copy goes when the set is closed"


def test_a_table_of_cells_in_sqlite_is_read_from_a_bucket(s3, tmp_path):
    import sqlite3

    import tifffile

    images, database = tmp_path / "images", tmp_path / "cells.sqlite"
    images.mkdir()
    for name, first in (("a.tif", 0), ("b.tif", 9000)):
        tifffile.imwrite(images / name, np.arange(first, first + 64 * 64, dtype=np.uint16).reshape(64, 64))
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "CREATE TABLE Per_Object (ImageNumber INT, ObjectNumber INT, Nuclei_Location_Center_X FLOAT, "
            "Nuclei_Location_Center_Y FLOAT)"
        )
        connection.execute("CREATE TABLE Per_Image (ImageNumber INT, Image_FileName_DNA TEXT)")
        connection.executemany("INSERT INTO Per_Image VALUES (?, ?)", [(1, "a.tif"), (2, "b.tif")])
        connection.executemany("INSERT INTO Per_Object VALUES (?, ?, ?, ?)", [(2, 1, 20.0, 30.0), (1, 1, 40.0, 24.0)])
    there = wr.Dataset(put(s3, images, "cells/images")).cells(put(s3, database, "cells/cells.sqlite"), size=16)
    here = wr.Dataset(images).cells(database, size=16)
    assert len(here) == len(there) == 2
    assert here[0].ravel()[0] == 9000 + 22 * 64 + 12
    for row in range(2):
        np.testing.assert_array_equal(here[row], there[row])


def keys_of(s3, prefix: str) -> list[str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


def test_a_set_in_a_bucket_is_replaced_on_request_alone(sets, s3, wellread):
    local, address = next(iter(sets.values()))
    prefix = f"{address.split('/')[3]}-replaced/"
    there = f"s3://{BUCKET}/{prefix}set"
    wellread("convert", local, there, "--format", "ome-zarr", "--variant", "0.4")
    assert "already exists" in wellread("convert", local, there, "--format", "tiff", code=1)
    wellread("convert", local, there, "--format", "tiff", "--overwrite")
    assert wellread("checksum", there) == wellread("checksum", local)
    assert not [key for key in keys_of(s3, prefix) if ".zarr" in key or ".wellread-" in key]
    # Neither is a source, nor what is more than a set.
    assert "same place" in wellread("convert", there, there, "--format", "tiff", "--overwrite", code=2)
    s3.put_object(Bucket=BUCKET, Key=f"{prefix}set/notes.txt", Body=b"mine")
    assert "notes.txt" in wellread("convert", local, there, "--format", "tiff", "--overwrite", code=1)


def interrupted(s3, source: Path, name: str) -> int:
    """Kills a conversion of ``source`` once it has noted images; how many, or 0 where it was done before."""
    program = os.environ.get("WELLREAD") or shutil.which("wellread")
    command = [program, "convert", str(source), f"s3://{BUCKET}/{name}", "--format", "tiff", "--resume"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder, name = name.rsplit("/", 1)

    def noted() -> int:
        with contextlib.suppress(s3.exceptions.NoSuchKey):
            journal = f"{folder}/.wellread-resume-{name}/.wellread-journal"
            text = s3.get_object(Bucket=BUCKET, Key=journal)["Body"].read().decode()
            runs = [line for line in text.splitlines() if line.startswith("0-")]
            return int(runs[0][2:]) + 1 if runs and "placing" not in text else 0
        return 0

    while process.poll() is None and not noted():
        time.sleep(0.02)
    process.kill()
    process.wait()
    return noted()


def test_a_conversion_that_was_killed_is_gone_on_with(s3, wellread, tmp_path):
    tifffile = pytest.importorskip("tifffile")
    # As many images as it takes until one run is slow enough to be killed.
    for count in (500, 2000, 8000, 32000):
        source, name = tmp_path / f"images-{count}", f"killed/{count}"
        source.mkdir()
        for i in range(count):
            tifffile.imwrite(source / f"{i:06d}.tif", np.full((8, 8), i % 251, np.uint8))
        noted = interrupted(s3, source, name)
        if 0 < noted < count // 2:
            break
    there = f"s3://{BUCKET}/{name}"
    assert not keys_of(s3, f"{name}/")
    document = wellread("convert", source, there, "--format", "tiff", "--resume")
    assert (document["images_resumed"], document["images"]) == (noted, count)
    assert wellread("verify", there, "--against", source)["passed"]
    # Of runs before that were too quick, what they had begun is left.
    assert not [key for key in keys_of(s3, "killed/") if key.startswith(f"killed/.wellread-resume-{count}/")]
    # Once more, nothing is left to do; another format is another set.
    assert wellread("convert", source, there, "--format", "tiff", "--resume")["images_resumed"] == count


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C goes to all processes of a console")
def test_an_interrupted_conversion_says_so_and_leaves_nothing_in_the_bucket(s3, tmp_path, monkeypatch):
    tifffile = pytest.importorskip("tifffile")
    program = os.environ.get("WELLREAD") or shutil.which("wellread")
    # A busy server answers late.
    monkeypatch.setenv("WELLREAD_ABORT_TIMEOUT", "600")
    # As many images as it takes until a run is slow enough to be interrupted.
    for count in (200, 2000, 20000):
        source, prefix = tmp_path / f"images-{count}", f"cut-{count}/"
        source.mkdir()
        for i in range(count):
            tifffile.imwrite(source / f"{i:06d}.tif", np.full((8, 8), i % 251, np.uint8))
        command = [program, "convert", str(source), f"s3://{BUCKET}/{prefix}set", "--format", "tiff"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not keys_of(s3, prefix):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[1]
        if process.returncode != 0:
            break
    assert process.returncode == 130, said
    assert "interrupted" in said and "error" not in said, said
    assert not keys_of(s3, prefix)


def test_single_files_are_not_gone_on_with(sets, wellread):
    local, _ = next(iter(sets.values()))
    said = wellread("convert", local, f"s3://{BUCKET}/one.parquet", "--resume", code=2)
    assert "cannot be resumed" in said
    said = wellread("convert", local, f"s3://{BUCKET}/one.tiff", "--resume", code=1)
    assert "written as a whole" in said


def test_the_second_epoch_comes_from_the_cache_on_disk(sets, s3, tmp_path):
    cache = f"disk:{tmp_path / 'cache'}:1GiB"
    for name, (local, address) in sets.items():
        # Pictures are opened for each read, which asks for their versions; engines' libraries do as they like.
        if name not in ("parquet", "tiff", "ome-zarr"):
            continue
        copy = f"{address.split('/')[3]}-cached/{name}"
        files = keys_of(s3, address.split("/", 3)[3])
        for key in files:
            inside = key.removeprefix(address.split("/", 3)[3])
            s3.copy_object(Bucket=BUCKET, Key=copy + inside, CopySource={"Bucket": BUCKET, "Key": key})
        here, there = wr.Dataset(local), wr.Dataset(f"s3://{BUCKET}/{copy}", cache=cache)
        options = {"batch_size": 2, "shuffle": True, "seed": 3}
        want = [np.asarray(batch) for batch in wr.DataLoader(here, **options)]
        for _ in range(2):
            for a, b in zip(want, wr.DataLoader(there, **options), strict=True):
                np.testing.assert_array_equal(a, np.asarray(b), err_msg=name)
            assert there.cache_report["disk_bytes_kept"] > 0
            # Whoever asks the server from now on gets no answer.
            for key in keys_of(s3, copy):
                s3.delete_object(Bucket=BUCKET, Key=key)


def of_a_child(method, target, argument):
    """The item that a function puts into a queue in a process of its own, which has to end well."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=target, args=(argument, queue))
    process.start()
    found = queue.get(timeout=600)
    process.join()
    assert process.exitcode == 0
    return found


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_the_cache_on_disk(sets, s3, method, tmp_path):
    local, address = next(iter(sets.values()))
    # An address of which this process has nothing in memory yet.
    address = put(s3, local, f"{address.split('/', 3)[3]}-shared-{method}")
    opened = wr.Dataset(address, cache=f"disk:{tmp_path / 'cache'}:1GiB")
    want = opened[0]
    blocks = [path for path in (tmp_path / "cache").rglob("*-*") if path.parent.name != "cache"]
    assert blocks
    written = {path: path.stat().st_mtime_ns for path in blocks}
    np.testing.assert_array_equal(of_a_child(method, first_pixels_of, opened), want)
    assert written == {path: path.stat().st_mtime_ns for path in blocks}


def first_pixels_of(opened, queue):
    queue.put(opened[0])


def test_a_cache_on_disk_that_cannot_be_is_refused(sets, tmp_path, monkeypatch, wellread):
    local, address = next(iter(sets.values()))
    with pytest.raises(Exception, match="lies on this machine"):
        wr.Dataset(local, cache=f"disk:{tmp_path}:1GiB")
    with pytest.raises(wr.ChoiceError, match="lies behind a network"):
        wr.Dataset(address, cache="file:1GiB")
    with pytest.raises(ValueError, match="disk needs a folder and a size"):
        wr.Dataset(address, cache="disk")
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(Exception, match="cannot keep a cache there"):
        wr.Dataset(address, cache=f"disk:{file}:1GiB")
    monkeypatch.setenv("WELLREAD_DISK_CACHE", f"{file}:1GiB")
    assert "cannot keep a cache there" in wellread("info", address, code=1)
    monkeypatch.setenv("WELLREAD_DISK_CACHE", f"{tmp_path / 'used'}:1GiB")
    assert wellread("checksum", address) == wellread("checksum", local)
    assert list((tmp_path / "used").rglob("*-*"))


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


def test_crops_and_epochs_that_are_broken_off(sets):
    for name, (local, address) in sets.items():
        options = {"batch_size": 1, "shuffle": True, "seed": 3, "crop": 8, "num_workers": 2}
        here, there = wr.DataLoader(wr.Dataset(local), **options), wr.DataLoader(wr.Dataset(address), **options)
        for _ in range(3):
            a, b = next(iter(here)), next(iter(there))
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=name)


def test_choices_of_the_link_are_kept_for_processes_to_come(sets, monkeypatch):
    for variable in ("WELLREAD_IN_FLIGHT", "WELLREAD_LINK_BYTES", "WELLREAD_ANONYMOUS"):
        monkeypatch.setenv(variable, "")
    wr.link(in_flight=3, link_bytes="64MiB")
    assert os.environ["WELLREAD_IN_FLIGHT"] == "3"
    assert os.environ["WELLREAD_LINK_BYTES"] == str(64 << 20)
    assert os.environ["WELLREAD_ANONYMOUS"] == ""
    local, address = next(iter(sets.values()))
    code = f"import wellread as wr; print(sum(len(b) for b in wr.DataLoader({address!r}, 2, num_workers=2)))"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(said.stdout) == len(wr.Dataset(local))
    for wrong in ({"in_flight": 0}, {"in_flight": 5000}, {"link_bytes": 0}, {"link_bytes": "many"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            wr.link(**wrong)
    with pytest.raises(TypeError, match="anonymous"):
        wr.link(anonymous="yes")


def test_options_of_the_link(sets, wellread):
    local, address = next(iter(sets.values()))
    link = ("--in-flight", "2", "--link-bytes", "32MiB")
    assert wellread("checksum", address, *link) == wellread("checksum", local)


def first_pixels(address, queue):
    queue.put(wr.Dataset(address)[0])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_read_on(sets, method):
    _, address = next(iter(sets.values()))
    want = wr.Dataset(address)[0]
    np.testing.assert_array_equal(of_a_child(method, first_pixels, address), want)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_torch_deliver_the_batches_of_the_folder(few, method):
    """The DataLoader is torch's own, and this process has read the dataset before."""
    import torch
    import wellread.torch

    def batches(path, **options):
        dataset = wellread.torch.Dataset(path)
        dataset[0]
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(3)).tolist()
        return list(torch.utils.data.DataLoader(dataset, batch_size=5, sampler=order, **options))

    local, address = few
    here = batches(local)
    there = batches(address, num_workers=2, multiprocessing_context=method)
    assert len(here) == len(there) == 5 and all(map(torch.equal, here, there))


def test_an_open_set_is_read_in_a_forked_process(sets):
    for name, (_, address) in sets.items():
        opened = wr.Dataset(address)
        want = opened[0]
        np.testing.assert_array_equal(of_a_child("fork", first_pixels_of, opened), want, err_msg=name)


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
    config.write_text(f"[profile web]\nsso_session = lab\nregion = eu-west-1\nendpoint_url = {endpoint}\n")
    monkeypatch.setenv("AWS_PROFILE", "web")
    said = wellread("info", address, code=1)
    assert "aws sso login --profile web" in said and "aws configure export-credentials --profile web" in said
    assert "permissions of the file" not in said


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
    report = (out / "report.html").read_text()
    for column in ("requests over the link", "read amplification", "waiting for the link, all threads"):
        assert column in report, column
    # Neither tables, the report, the timeline nor the record of the command.
    files = [file for file in out.rglob("*") if file.is_file()]
    assert len(files) > 2 and not [file for file in files if SECRET.encode() in file.read_bytes()]


def test_bench_storage_reads_files_over_the_link_and_none_cold(few, wellread, tmp_path):
    _, address = few
    wellread("bench", "storage", "--input", address, "--in-place", "--repeats", 1, "--out", tmp_path / "results")
    rows = pq.read_table(tmp_path / "results" / "storage.parquet").to_pylist()
    read = {(row["operation"], row["cache"]): row for row in rows if row["operation"] != "write"}
    for (_, cache), row in read.items():
        if cache == "warm":
            assert row["status"] == "ok" and row["verified"], row
        else:
            assert row["status"] == "unavailable" and "lies behind a network" in row["reason"], row
    assert {("read_files", cache) for cache in ("warm", "cold", "direct")} <= read.keys()


@pytest.fixture(scope="module")
def few(s3, wellread, tmp_path_factory):
    """A folder of images that is in the bucket too, and its address."""
    folder = tmp_path_factory.mktemp("few")
    made = wellread("generate", folder, "--images", 24, "--size", "64x64", "--formats", "ome-zarr")
    local = Path(made["written"][0]["path"])
    return local, put(s3, local, "few.ome.zarr")


def test_bench_measures_a_loader_whose_ranges_are_kept_on_disk(few, wellread, tmp_path):
    _, address = few
    cache, out = f"disk:{tmp_path / 'cache'}:1GiB", tmp_path / "results"
    wellread("bench", "dataloader", "--input", address, "--in-place", "--repeats", 1, "--batch-sizes", 4,
             "--workers", 0, "--no-cold", "--loader-cache", cache, "--out", out)  # fmt: skip
    rows = pq.read_table(out / "dataloader.parquet").to_pylist()
    assert rows and all(row["status"] == "ok" and row["verified"] for row in rows)
    # An object for each image, and its metadata.
    blocks = [path for path in (tmp_path / "cache").rglob("*-*") if path.parent.name != "cache"]
    assert len(blocks) >= 24


def test_doctor_says_what_the_link_gives_and_no_secret(few, endpoint, wellread):
    local, address = few
    options = ("--rounds", 1, "--time-budget", 5)
    found = wellread("doctor", "--data", address, *options)
    assert found["stages"][0]["name"] == "fetching" and found["binds"] != "decoding"
    assert not any("cannot be dropped" in note for note in found["notes"])
    link = found["link"]
    assert link["endpoint"] == endpoint and link["region"] == "us-east-1"
    assert link["credentials"] == "the environment (AWS_ACCESS_KEY_ID)" and SECRET not in json.dumps(link)
    assert link["latency_s"] > 0 and link["bytes_per_s"] > 0 and link["at_once"] >= 8
    assert "link" not in wellread("doctor", "--data", local, *options)


def test_advise_predicts_requests_bytes_and_cost_of_each_format(few, wellread, tmp_path):
    local, address = few
    options = ("--formats", "ome-zarr,parquet", "--time-budget", 20, "--scratch", tmp_path)
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
