"""Links that fail: whatever goes wrong on the way, pixels are right or there is an error, and nothing hangs.

`WELLREAD_FAULTS` is how many faults are injected at least: few in `make test`, 10,000 in `make campaign`.
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import wellread as wr
from loopback import Loopback, program

FAULTS = int(os.environ.get("WELLREAD_FAULTS", "60"))
KINDS = ("500", "503", "cut", "short", "stall", "range")
# What hangs: so many seconds of a run in which nothing waits longer than the client's own bounds.
HANGS = 900


@pytest.fixture(scope="module")
def loopback(tmp_path_factory):
    try:
        return program(tmp_path_factory.mktemp("loopback"))
    except (OSError, subprocess.CalledProcessError) as why:
        pytest.skip(f"loopback is not built, and cannot be: {why}")


@pytest.fixture(scope="module")
def bucket(wellread, tmp_path_factory):
    """A folder that is served, sets of every format in a bucket of it, and the checksum of their pixels."""
    root = tmp_path_factory.mktemp("served")
    # Larger than what is kept of beginnings and ends, so that ranges in the middle are asked for.
    made = wellread("generate", root / "plates", "--images", 6, "--size", "280x260", "--dtype", "uint16")
    names = [one["path"] for one in made["written"] if not one["error"]]
    assert len(names) >= 4
    return root, {Path(name).name: wellread("checksum", name) for name in names}


def environment(server, attempts=40):
    # So many faults in a row have a chance of 1e-12; what stalls is given up soon.
    bounds = {"WELLREAD_ATTEMPTS": str(attempts), "WELLREAD_TIMEOUT": "0.4", "WELLREAD_IN_FLIGHT": "16"}
    return {**os.environ, **server.environment(), **bounds}


def checksum(address, env):
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    done = subprocess.run(
        [binary, "--json", "checksum", address], capture_output=True, text=True, timeout=HANGS, env=env
    )
    assert done.returncode == 0, f"{address}: {done.stderr}"
    return json.loads(done.stdout)


def test_no_fault_changes_a_pixel_and_none_hangs(loopback, bucket):
    root, expected = bucket
    with Loopback(loopback, "serve", root, faults=0.25, stall_s=2) as server:
        rounds = 0
        while server.set(seed=rounds, kinds=",".join(KINDS if rounds % 4 == 0 else KINDS[:4]))["faults"] < FAULTS:
            for name, want in expected.items():
                found = checksum(f"s3://plates/{name}", environment(server))
                assert found == want, f"{name}, seed {rounds}"
            rounds += 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_that_only_fails_ends_in_an_error_that_says_so(loopback, bucket, kind):
    root, expected = bucket
    name = next(name for name in expected if name.endswith(".parquet"))
    with Loopback(loopback, "serve", root, faults=1, kinds=kind, stall_s=2) as server:
        binary = os.environ.get("WELLREAD") or shutil.which("wellread")
        began = time.monotonic()
        done = subprocess.run([binary, "checksum", f"s3://plates/{name}"], capture_output=True, text=True,
                              timeout=HANGS, env=environment(server, attempts=3))  # fmt: skip
        assert done.returncode == 1 and time.monotonic() - began < HANGS
        assert name in done.stderr and "3 attempts" in done.stderr, done.stderr
        assert "lab-secret" not in done.stderr


def test_batches_through_a_link_that_fails_are_those_of_the_folder(loopback, bucket, tmp_path):
    """Loaders of a process of its own, whose environment leads to the server, with threads."""
    root, expected = bucket
    script = tmp_path / "sums.py"
    script.write_text(
        "import hashlib, sys\nimport numpy as np\nimport wellread as wr\n"
        "for workers in (0, 3):\n"
        "    loader = wr.DataLoader(wr.Dataset(sys.argv[1]), 3, shuffle=True, seed=5, num_workers=workers)\n"
        "    sums = hashlib.sha256()\n"
        "    for batch in loader: sums.update(np.ascontiguousarray(batch).tobytes())\n"
        "    print(sums.hexdigest())\n"
    )
    with Loopback(loopback, "serve", root, faults=0.2, kinds="500,503,cut,short,range", seed=11) as server:
        for name in expected:
            sums = hashlib.sha256()
            for batch in wr.DataLoader(wr.Dataset(root / "plates" / name), 3, shuffle=True, seed=5):
                sums.update(np.ascontiguousarray(batch).tobytes())
            command = [sys.executable, script, f"s3://plates/{name}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, env=environment(server))
            assert done.returncode == 0, f"{name}: {done.stderr}"
            assert done.stdout.split() == [sums.hexdigest()] * 2, name
        assert server.stats()["faults"] > 0


# Reads an image of each set, lets the test replace all files, and says of each row its digest or the error.
READER_OF_REPLACED = """
import hashlib, json, sys
import numpy as np
import wellread as wr

def image(ds, row):
    try:
        return hashlib.sha256(np.ascontiguousarray(ds[row]).tobytes()).hexdigest()
    except wr.Error as why:
        return str(why)

sets = {name: wr.Dataset(f"s3://plates/{name}") for name in sys.argv[1:]}
for ds in sets.values():
    ds[0]
print("opened", flush=True)
sys.stdin.readline()
print(json.dumps({name: [image(ds, row) for row in range(len(ds))] for name, ds in sets.items()}))
"""


def test_an_object_that_is_replaced_in_mid_epoch_is_an_error_and_no_image_is_of_both(loopback, wellread, tmp_path):
    """The rows after the first, of every format, from objects that were replaced meanwhile."""
    served, other = tmp_path / "served" / "plates", tmp_path / "other"
    images = []
    for folder, seed in ((served, 1), (other, 2)):
        # More than what is kept of the ends of files.
        made = wellread("generate", folder, "--images", 24, "--size", "280x260", "--dtype", "uint16", "--seed", seed)
        images.append([one["sha256"] for one in json.loads((folder / "expected.json").read_text())["images"]])
    old, new = images
    names = [Path(one["path"]).name for one in made["written"] if not one["error"]]
    with Loopback(loopback, "serve", served.parent) as server:
        command = [sys.executable, "-c", READER_OF_REPLACED, *names]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment(server)) as reader:
            try:
                assert reader.stdout.readline() == "opened\n"
                for file in (path for name in names for path in [served / name, *(served / name).rglob("*")]):
                    if file.is_file():
                        # Lance gives each file a name of its own.
                        twin = other / file.relative_to(served)
                        file.write_bytes(twin.read_bytes() if twin.is_file() else file.read_bytes()[::-1])
                found = json.loads(reader.communicate("go\n", timeout=HANGS)[0])
            finally:
                reader.kill()
        unrefused = set()
        for name, rows in found.items():
            for row, said in enumerate(rows):
                assert said in (old[row], new[row]) or "was replaced" in said, f"{name} row {row}: {said}"
            # An image that nobody had looked at is a new one, where it has objects of its own.
            assert name == "ome-zarr" or not set(rows) & set(new), name
            if not any("was replaced" in said for said in rows):
                unrefused.add(name)
        # DuckDB reads a copy of one version.
        assert unrefused == {name for name in names if "duckdb" in name}
        again = next(name for name in names if name.endswith(".parquet"))
        assert [one["sha256"] for one in checksum(f"s3://plates/{again}", environment(server))] == new


def test_a_proxy_that_fails_before_a_server_that_does_not_changes_no_pixel(loopback, bucket):
    root, expected = bucket
    name, want = next(iter(expected.items()))
    kinds = "500,503,cut,short,range"
    with (
        Loopback(loopback, "serve", root) as server,
        Loopback(loopback, "proxy", server.url, faults=0.2, seed=3, kinds=kinds) as between,
    ):
        assert checksum(f"s3://plates/{name}", environment(between)) == want
        assert between.stats()["requests"] >= server.stats()["requests"] > 0


def of_lab(endpoint):
    """An environment that leads to an endpoint, past all proxies."""
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return env | {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "lab", "AWS_SECRET_ACCESS_KEY": "lab-secret",
        "AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C goes to all processes of a console")
@pytest.mark.parametrize("command", ["info", "checksum", "convert", "stats", "doctor"])
def test_ctrl_c_ends_a_command_whose_request_hangs(command, tmp_path):
    """Nothing else ends it in time: the server never answers, and the client waits for longer than the test."""
    address = "s3://plates/a.parquet"
    words = {"convert": [address, tmp_path / "copy.parquet"], "doctor": ["--data", address]}.get(command, [address])
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(HANGS)
        env = of_lab(f"http://127.0.0.1:{listener.getsockname()[1]}") | {"WELLREAD_TIMEOUT": str(4 * HANGS)}
        with subprocess.Popen([binary, command, *words], stderr=subprocess.PIPE, text=True, env=env) as process:
            try:
                connection, _ = listener.accept()
                with connection:
                    assert b"/plates" in connection.recv(4096)
                    process.send_signal(signal.SIGINT)
                    said = process.communicate(timeout=HANGS)[1]
            finally:
                process.kill()
    assert process.returncode == 130 and "interrupted" in said, said


@pytest.mark.parametrize("address", ["http://nobody.invalid/plates/a.parquet", "s3://plates/a.parquet"])
def test_a_host_that_nobody_knows_is_an_error_that_names_address_and_cause(address):
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    env = of_lab("http://lab:a-word@nobody.invalid") | {"WELLREAD_ATTEMPTS": "2"}
    done = subprocess.run([binary, "info", address], capture_output=True, text=True, timeout=HANGS, env=env)
    assert done.returncode == 1 and address in done.stderr, done.stderr
    # A machine whose name server does not answer cannot say more than the second.
    causes = ("failed to lookup address information", "nothing came for too long")
    assert any(cause in done.stderr for cause in causes) and "after 2 attempts" in done.stderr, done.stderr
    assert "look at the " in done.stderr, done.stderr
    assert "a-word" not in done.stderr and "lab-secret" not in done.stderr
