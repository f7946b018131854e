"""Runs `loopback`, the server and proxy of tests and benchmarks (crates/wellread-remote/examples/loopback)."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "crates" / "wellread-remote" / "examples" / "loopback" / "main.rs"
# Not through a proxy that the environment names.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def program(folder: Path) -> Path:
    """The program that `make build-all` has left beside wellread, or else one that is compiled into `folder`."""
    wellread = os.environ.get("WELLREAD") or shutil.which("wellread")
    built = Path(wellread or "wellread").parent / "examples" / "loopback"
    if built.is_file() and built.stat().st_mtime >= max(file.stat().st_mtime for file in SOURCE.parent.iterdir()):
        return built
    compiled = folder / "loopback"
    if not compiled.is_file():
        # Its name is there when it is whole.
        with tempfile.TemporaryDirectory(dir=folder) as made:
            command = ["rustc", "--edition", "2024", "-O", SOURCE, "-o", Path(made) / "loopback"]
            subprocess.run(command, check=True, cwd=made)
            (Path(made) / "loopback").rename(compiled)
    return compiled


class Loopback:
    """A server of a folder ("serve"), or a proxy of a server ("proxy"), which ends with the block that uses it."""

    def __init__(self, program, mode, source, **options):
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        command = [program, mode, source, *(part for word in words for part in word.split("=", 1))]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([*map(str, command)], stdin=pipe, stdout=pipe, text=True)
        self.url = self._process.stdout.readline().strip()
        assert self.url.startswith("http://"), "it says why above"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def set(self, **options):
        """Changes options while it runs: latency_ms, mbit, faults, seed, kinds, stall_s. Its counts."""
        with OPENER.open(f"{self.url}/loopback/set?{urllib.parse.urlencode(options)}", timeout=60) as answer:
            return json.load(answer)

    def stats(self):
        """Requests, bytes and faults so far."""
        return self.set()

    def environment(self):
        """Variables that lead S3's clients here."""
        return {
            "AWS_ENDPOINT_URL": self.url, "AWS_ENDPOINT_URL_S3": self.url, "AWS_ACCESS_KEY_ID": "lab",
            "AWS_SECRET_ACCESS_KEY": "lab-secret", "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
        }  # fmt: skip
