"""Links that fail: whatever goes wrong on the way, pixels are right or there is an error, and nothing hangs.

`WELLREAD_FAULTS` is how many faults are injected at least: few in `make test`, 10,000 in `make campaign`.
"""

import hashlib
import json
import os
import shutil
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
    # The engines' own files: those that places read (decision 44).
    names = [one["path"] for one in made["written"] if not one["error"] and one["format"] not in ("duckdb", "lance")]
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


def test_an_object_that_is_replaced_is_an_error_until_it_is_opened_anew(loopback, bucket):
    root, expected = bucket
    name = next(name for name in expected if name.endswith(".parquet"))
    copy = root / "plates" / f"replaced-{name}"
    shutil.copyfile(root / "plates" / name, copy)
    script = (
        "import os, sys, wellread as wr\n"
        "ds = wr.Dataset(sys.argv[1]); ds[0]\n"
        "os.utime(sys.argv[2], (1, 1))\n"
        "try:\n    [ds[row] for row in range(len(ds))]\nexcept wr.Error as why:\n    print('replaced' in str(why))\n"
        "print(wr.Dataset(sys.argv[1])[0].shape == ds.shape)\n"
    )
    with Loopback(loopback, "serve", root) as server:
        command = [sys.executable, "-c", script, f"s3://plates/{copy.name}", copy]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, env=environment(server))
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[0] == "True", done.stdout


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


@pytest.mark.parametrize("address", ["http://nobody.invalid/plates/a.parquet", "s3://plates/a.parquet"])
def test_a_host_that_nobody_knows_is_an_error_that_names_address_and_cause(address):
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    env |= {
        "AWS_ENDPOINT_URL": "http://lab:a-word@nobody.invalid", "AWS_ACCESS_KEY_ID": "lab",
        "AWS_SECRET_ACCESS_KEY": "lab-secret", "AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "WELLREAD_ATTEMPTS": "2",
    }  # fmt: skip
    done = subprocess.run([binary, "info", address], capture_output=True, text=True, timeout=HANGS, env=env)
    assert done.returncode == 1 and address in done.stderr, done.stderr
    # A machine whose name server does not answer cannot say more than the second.
    causes = ("failed to lookup address information", "nothing came for too long")
    assert any(cause in done.stderr for cause in causes) and "after 2 attempts" in done.stderr, done.stderr
    assert "look at the " in done.stderr, done.stderr
    assert "a-word" not in done.stderr and "lab-secret" not in done.stderr
