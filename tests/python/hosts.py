"""Hosts on this machine, for tests: network namespaces with addresses, names and caches of their own, on one bridge.

test process (gateway) ──bridge──┬── host 0: eth0, a name, a folder
                                 └── host 1: eth0, …
"""

import contextlib
import http.server
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Host:
    """One of them."""

    name: str
    address: str
    namespace: str
    folder: Path
    """For what it keeps, such as its cache, and for its name as it tells it."""

    def command(self, words):
        """The words that run a command there. Its cache of what lies behind a network is in its folder."""
        script = 'hostname "$0" && hostname > "$1" && shift && exec "$@"'
        of_host = [
            f"WELLREAD_DISK_CACHE={self.cache}:64MiB",
            *("GLOO_SOCKET_IFNAME=eth0", "NO_PROXY=*", "no_proxy=*"),
        ]
        alone = ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "sh", "-c", script, self.name]
        return [*alone, self.folder / "name", "env", *of_host, *words]

    @property
    def cache(self):
        """The folder of its cache."""
        return self.folder / "cache"

    def cached(self):
        """Bytes of its disk that the cache takes."""
        return sum(file.stat().st_blocks * 512 for file in self.cache.rglob("*") if file.is_file())


# Port 9 of a host refuses, since nothing listens there. A firewall would let this wait.
REACH = """
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
try:
    socket.create_connection((address, port), 60).close()
except ConnectionRefusedError:
    sys.exit(port != 9)
"""


def _ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


def _check_reach(gateway, hosts):
    """Skips the test unless hosts reach this process and each other: a firewall may drop what goes over bridges, as
    Docker's does."""
    with socket.create_server((gateway, 0)) as server:
        here = [(host, gateway, server.getsockname()[1]) for host in hosts]
        there = [(one, other.address, 9) for one, other in itertools.pairwise(hosts)]
        for host, address, port in here + there:
            words = ["ip", "netns", "exec", host.namespace, sys.executable, "-c", REACH, address, str(port)]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"{host.name} does not reach {address}: {done.stderr.strip()[-300:]}")


@contextlib.contextmanager
def made(folder, count=2):
    """The address of this process, as hosts see it, and the hosts. The test is skipped where none can be made."""
    if os.name == "nt" or os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "hostname"))):
        pytest.skip("hosts are network namespaces, which root makes with `ip`, `unshare` and `hostname`")
    # Interfaces have names of 15 letters at most.
    mark, net = f"wr{os.getpid() % 10_000_000}", f"10.213.{os.getpid() % 250}"
    hosts = []
    try:
        try:
            _ip("link", "add", mark, "type", "bridge")
            _ip("addr", "add", f"{net}.1/24", "dev", mark)
            _ip("link", "set", mark, "up")
            for number in range(count):
                name = f"{mark}-{number}"
                host = Host(f"host-{number}", f"{net}.{number + 2}", name, folder / f"host-{number}")
                host.folder.mkdir()
                hosts.append(host)
                _ip("netns", "add", name)
                _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
                _ip("link", "set", name, "master", mark, "up")
                _ip("-n", name, "addr", "add", f"{host.address}/24", "dev", "eth0")
                for interface in ("eth0", "lo"):
                    _ip("-n", name, "link", "set", interface, "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
        _check_reach(f"{net}.1", hosts)
        yield f"{net}.1", hosts
    finally:
        for host in hosts:
            _ip("netns", "del", host.namespace, check=False)
            _ip("link", "del", host.namespace, check=False)
        _ip("link", "del", mark, check=False)


@contextlib.contextmanager
def served(file, address):
    """The address of a file on a server at an address of this machine, and the addresses that asked for it."""
    whole, asked = Path(file).read_bytes(), set()

    class Server(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            asked.add(self.client_address[0])
            first, last, part = 0, len(whole) - 1, re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            if part and part[1]:
                first, last = int(part[1]), min(last, int(part[2] or last))
            elif part:
                first = max(0, len(whole) - int(part[2]))
            self.send_response(206 if part else 200)
            for name, value in (("Accept-Ranges", "bytes"), ("ETag", '"one"'), ("Content-Length", last + 1 - first)):
                self.send_header(name, str(value))
            if part:
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(whole[first : last + 1])

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer((address, 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{address}:{server.server_port}/{Path(file).name}", asked
        finally:
            server.shutdown()
            thread.join()
