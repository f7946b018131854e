"""moto's server, S3 as boto3 meets it, for tests; the environment leads to it."""

import contextlib
import os
import subprocess
import sys
import time
import urllib.request

import pytest
from ports import free_port


@contextlib.contextmanager
def running(log, secret):
    """The URL of a server, which lives as long as the block, and writes to `log`."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
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
            patch.setenv("AWS_SECRET_ACCESS_KEY", secret)
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
