"""Sets on servers of other kinds: Azure (Azurite), Google Cloud Storage, and nginx, with ranges and without.

Each is skipped only where its server cannot be had, and says why. `WELLREAD_CACHE` is the folder that Azurite is put
into, once.
"""

import contextlib
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from loopback import OPENER, Loopback, program
from ports import free_port

AZURITE = "azurite@3.37.0"
# Azurite's own, which everybody knows.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def answers(url):
    try:
        OPENER.open(url, timeout=10).close()
    except urllib.error.HTTPError:
        # It says no, so it is there.
        return True
    except OSError:
        return False
    return True


@contextlib.contextmanager
def running(command, url, log, **how):
    """A server, from when it answers at `url` on."""
    with log.open("wb") as out:
        server = subprocess.Popen([*map(str, command)], stdout=out, stderr=out, **how)
        try:
            for _ in range(1200):
                assert server.poll() is None, log.read_text()
                if answers(url):
                    break
                time.sleep(0.1)
            yield server
        finally:
            # Azurite takes a minute and a half to end by itself.
            server.kill()
            server.wait()


@pytest.fixture(scope="module")
def local(wellread, tmp_path_factory):
    """Sets of several kinds, larger than what is kept of beginnings and ends, and the checksums of their pixels."""
    folder = tmp_path_factory.mktemp("local")
    made = wellread("generate", folder, "--images", 5, "--size", "260x240", "--dtype", "uint16",
                    "--formats", "parquet,tiff,ome-zarr,vortex")  # fmt: skip
    paths = [Path(one["path"]) for one in made["written"] if not one["error"]]
    assert len(paths) >= 3
    return {path: wellread("checksum", path) for path in paths}


@pytest.fixture(scope="module")
def quiet():
    """No credentials and no proxy but those that a test gives."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AZURE_", "GOOGLE_", "STORAGE_"))]:
            patch.delenv(name)
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("no_proxy", "127.0.0.1")
        patch.setenv("WELLREAD_ATTEMPTS", "3")
        yield patch


@pytest.fixture(scope="module")
def azurite(quiet, tmp_path_factory):
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("Azurite needs Node and npm, and they are not here")
    cache = Path(os.environ.get("WELLREAD_CACHE") or Path.home() / ".cache" / "wellread") / "azurite"
    program = cache / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(
            ["npm", "install", "--silent", "--prefix", cache, AZURITE], capture_output=True, text=True
        )
        if made.returncode:
            pytest.skip(f"npm cannot install {AZURITE}: {made.stderr.strip()[-300:]}")
    folder, port = tmp_path_factory.mktemp("azurite"), free_port()
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    command = [program, "--blobPort", port, "--location", folder, "--skipApiVersionCheck", "--silent"]
    with running(command, url, folder / "log"):
        connection = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url};DefaultEndpointsProtocol=http"
        quiet.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
        quiet.setenv("AZURE_ALLOW_HTTP", "true")
        create_container(port, "plates")
        yield "az://plates"


def create_container(port, name):
    """Signed as Azure wants it; nothing of wellread makes containers."""
    import base64
    import email.utils
    import hashlib
    import hmac

    date, version = email.utils.formatdate(usegmt=True), "2021-12-02"
    resource = f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    headers = f"x-ms-date:{date}\nx-ms-version:{version}\n"
    signed = "PUT" + "\n" * 12 + headers + resource
    digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{ACCOUNT}/{name}?restype=container", method="PUT",
        headers={"x-ms-date": date, "x-ms-version": version,
                 "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"},
    )  # fmt: skip
    with OPENER.open(request, timeout=60) as answer:
        assert answer.status == 201


def test_azure_is_written_to_read_from_and_verified(azurite, local, wellread):
    for path, want in local.items():
        address = f"{azurite}/{path.name}"
        form = wellread("info", path)["format"]
        wellread("convert", path, address, "--format", form)
        assert wellread("checksum", address) == want, path.name
        assert wellread("verify", address, "--against", path)["passed"], path.name


def test_azure_says_which_key_is_not_there_and_no_secret(azurite, wellread):
    said = wellread("info", f"{azurite}/no/such.parquet", code=1)
    assert "no/such.parquet" in said and "AZURE_STORAGE_CONNECTION_STRING" in said and KEY not in said


@pytest.fixture(scope="module")
def gcs(quiet, local, tmp_path_factory):
    """A bucket of Google's XML interface, which is what object_store speaks and is S3's but for signatures.

    The emulator in PyPI (gcp-storage-emulator 2026.7.19) is not faithful enough: it answers 501 to HEAD and lists in
    JSON alone.
    """
    try:
        loopback = program(tmp_path_factory.mktemp("loopback"))
    except (OSError, subprocess.CalledProcessError) as why:
        pytest.skip(f"loopback is not built, and cannot be: {why}")
    root = next(iter(local)).parent
    with Loopback(loopback, "serve", root.parent) as server:
        quiet.setenv("STORAGE_EMULATOR_HOST", server.url)
        yield f"gs://{root.name}"


def test_google_cloud_storage_is_read(gcs, local, wellread):
    for path, want in local.items():
        assert wellread("checksum", f"{gcs}/{path.name}") == want, path.name
    said = wellread("info", f"{gcs}/no/such.parquet", code=1)
    assert "no/such.parquet" in said and "STORAGE_EMULATOR_HOST" in said


NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; autoindex on; default_type application/octet-stream; etag on;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  types {{ text/html html; }}
  server {{ listen 127.0.0.1:{port}; root {root}; }}
  server {{ listen 127.0.0.1:{without}; root {root}; max_ranges 0; }}
}}
"""


@pytest.fixture(scope="module")
def nginx(quiet, local, tmp_path_factory):
    """URLs of a server with ranges and of one without, over the folder of the sets."""
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if not program:
        pytest.skip("nginx is not here (for example: sudo apt-get install nginx-light)")
    folder, ports = tmp_path_factory.mktemp("nginx"), (free_port(), free_port())
    root = next(iter(local)).parent
    config = folder / "nginx.conf"
    user = "user root;" if os.getuid() == 0 else ""
    config.write_text(user + NGINX.format(folder=folder, port=ports[0], without=ports[1], root=root))
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    with running([program, "-c", config, "-p", folder, "-e", folder / "start.log"], urls[0], folder / "log"):
        yield urls


def test_nginx_is_read_as_a_folder(nginx, local, wellread):
    import wellread as wr

    for path, want in local.items():
        address = f"{nginx[0]}/{path.name}"
        assert wellread("checksum", address) == want, path.name
        np.testing.assert_array_equal(wr.Dataset(address)[2], wr.Dataset(path)[2], err_msg=path.name)


def test_nginx_cannot_be_written_to(nginx, local, wellread):
    said = wellread("convert", next(iter(local)), f"{nginx[0]}/new.parquet", code=1)
    assert "new.parquet" in said and "cannot write" in said, said


def test_a_server_without_ranges_is_an_error_that_says_so(nginx, local, wellread):
    parquet = next(path for path in local if path.suffix == ".parquet")
    said = wellread("info", f"{nginx[1]}/{parquet.name}", code=1)
    assert "range" in said and parquet.name in said, said
