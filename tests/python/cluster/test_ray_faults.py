"""Nodes whose disk is full, or whose credentials have expired: an error says so, and the next run goes on."""

import contextlib
import http.client
import http.server
import os
import shutil
import socket
import sqlite3
import subprocess
import threading

import moto_server
import pytest
import ray_cluster
import wellread as wr
from wellread import ray as wray
from wellread.ray import _cluster

ray = pytest.importorskip("ray")
boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto.server")

BUCKET = "faults"
# The name of credentials that the server refuses.
EXPIRED = "expired-key"
REFUSAL = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
NODE = f"node {socket.gethostname()}: "


@pytest.fixture(autouse=True)
def three_nodes(cluster, monkeypatch, tmp_path):
    """An earlier test may have killed one. Answers for later runs are kept here."""
    ray_cluster.wait_for(3)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache-home"))


@pytest.fixture(scope="module")
def endpoint(cluster, tmp_path_factory):
    with moto_server.running(tmp_path_factory.mktemp("moto") / "log", "a-secret-of-the-driver") as url:
        boto3.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
        yield url


@contextlib.contextmanager
def node(cluster, **environment):
    """One more node, with these variables of its own, as long as the block lasts. It alone has a free processor:
    others may do all tasks before its first process has started."""
    others = _cluster.alive(ray)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ray_cluster.OWN, **environment}.items():
            patch.setenv(name, value)
        added = cluster.add_node(**ray_cluster.NODE)
    busy = []
    try:
        ray_cluster.wait_for(4)
        busy = ray_cluster.occupy(others)
        yield
    finally:
        for one in busy:
            ray.kill(one)
        cluster.remove_node(added)
        ray_cluster.wait_for(3)


@contextlib.contextmanager
def disk(folder, size):
    """A disk of this size at a folder."""
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    if mount is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)


def keys(endpoint, prefix):
    """All keys of the bucket that begin so."""
    listed = boto3.client("s3", endpoint_url=endpoint).list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return [entry["Key"] for entry in listed.get("Contents", [])]


def test_a_disk_that_all_nodes_write_to_is_full(cluster, wellread, cells, tmp_path):
    wellread("convert", cells["parquet"], tmp_path / "one", "--format", "tiff", "--compression", "none")
    whole, shared = ray_cluster.files(tmp_path / "one"), tmp_path / "shared"
    # A little more than half of the images.
    with disk(shared, "256k"):
        how = {"format": "tiff", "compression": "none", "rows_per_part": 4, "resume": True}
        with pytest.raises(wr.Error, match="space"):
            wray.convert(cells["parquet"], shared / "set", **how)
        assert [path.name for path in shared.iterdir()] == [".wellread-resume-set"]
        subprocess.run(["mount", "-o", "remount,size=64m", shared], check=True)
        done = wray.convert(cells["parquet"], shared / "set", **how)
        assert (done["images"], ray_cluster.files(shared / "set")) == (40, whole) and done["images_resumed"] > 0
        assert ray_cluster.hidden(shared) == []


def test_a_disk_of_one_node_is_full(cluster, endpoint, wellread, cells, tmp_path):
    """A table in SQLite is copied to a node's own disk."""
    images, database, full = tmp_path / "images", tmp_path / "cells.sqlite", tmp_path / "full"
    wellread("convert", cells["parquet"], images, "--format", "tiff")
    source = wr.Dataset(images)
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "CREATE TABLE Per_Object (ImageNumber INT, ObjectNumber INT, Nuclei_Location_Center_X FLOAT, "
            "Nuclei_Location_Center_Y FLOAT)"
        )
        connection.execute("CREATE TABLE Per_Image (ImageNumber INT, Image_FileName_DNA TEXT)")
        names = [(row, f"{source.name(row)}.tif") for row in range(len(source))]
        connection.executemany("INSERT INTO Per_Image VALUES (?, ?)", names)
        places = [(row, 1, 20.0 + row % 8, 24.0) for row in range(len(source))]
        connection.executemany("INSERT INTO Per_Object VALUES (?, ?, ?, ?)", places)
    boto3.client("s3", endpoint_url=endpoint).upload_file(str(database), BUCKET, "cells.sqlite")
    there = source.cells(f"s3://{BUCKET}/cells.sqlite", size=16)
    want = wray.checksum(source.cells(database, size=16))
    assert len(want) == 40
    with disk(full, "8m"), node(cluster, TMPDIR=str(full)):
        with pytest.raises(wr.Error, match="free for a copy") as raised:
            wray.checksum(there, resume=True)
        assert str(raised.value).startswith(NODE) and str(full) in str(raised.value)
        assert list(full.glob("wellread-copy-*")) == []
    assert wray.checksum(there, resume=True) == want


class Refusing(http.server.BaseHTTPRequestHandler):
    """Hands requests on, but for those that are signed with credentials which have expired."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.refuses and EXPIRED in self.headers.get("Authorization", ""):
            # As S3 does.
            status, headers, said = 400, {"Content-Type": "application/xml", "Content-Length": len(REFUSAL)}, REFUSAL
        else:
            link = http.client.HTTPConnection(self.server.behind, timeout=60)
            with contextlib.closing(link):
                link.request(self.command, self.path, body, dict(self.headers))
                got = link.getresponse()
                status, said = got.status, got.read()
            left_out = ("transfer-encoding", "connection", "date", "server")
            headers = {name: value for name, value in got.getheaders() if name.lower() not in left_out}
            if self.command != "HEAD":
                headers = {name: value for name, value in headers.items() if name.lower() != "content-length"}
                headers["Content-Length"] = len(said)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        # Who has its answer from another request does not wait for this one.
        with contextlib.suppress(ConnectionError):
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(said)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def refusing(endpoint, monkeypatch):
    """A server before that of the bucket, which this process and so the nodes ask."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    server.daemon_threads, server.refuses, server.behind = True, True, endpoint.removeprefix("http://")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    server.server_close()


def test_the_credentials_of_one_node_have_expired(cluster, endpoint, refusing, wellread, cells, tmp_path):
    there, target = f"s3://{BUCKET}/images", f"s3://{BUCKET}/converted"
    wellread("convert", cells["parquet"], there, "--format", "tiff")
    want = wellread("checksum", there)
    how = {"format": "tiff", "rows_per_part": 4, "resume": True}
    with node(cluster, AWS_ACCESS_KEY_ID=EXPIRED, AWS_ENDPOINT_URL=os.environ["AWS_ENDPOINT_URL"]):
        for ask in (lambda: wray.checksum(there, resume=True), lambda: wray.convert(there, target, **how)):
            with pytest.raises(wr.Error, match="ExpiredToken") as raised:
                ask()
            said = str(raised.value)
            assert f"s3://{BUCKET}/images" in said and "the credentials have expired: get new ones" in said
            assert "AWS_ACCESS_KEY_ID" in said and ray_cluster.OWN["AWS_SECRET_ACCESS_KEY"] not in said
        # A result for each image has no place for the node, and an error that ends a task has.
        assert said.startswith(NODE)
        assert keys(endpoint, "converted/") == []
        # As of new ones.
        refusing.refuses = False
        assert wray.checksum(there, resume=True) == want
        done = wray.convert(there, target, **how)
    assert done["images"] == 40 and wellread("checksum", target) == want
    assert not [key for key in keys(endpoint, "") if ".wellread-" in key]
