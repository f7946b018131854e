"""The licences of all crates in one text, and in wheels. Nothing is built and nothing is asked of the network."""

import base64
import csv
import hashlib
import importlib.util
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("third_party", ROOT / "scripts/third_party.py")
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    sys.modules["third_party"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def crates(script):
    if shutil.which("cargo") is None:
        pytest.skip("no cargo on this machine")
    try:
        return script.crates(script.metadata())
    except SystemExit as reason:
        pytest.skip(str(reason))


def test_every_crate_has_the_text_of_its_licence(script, crates):
    assert len(crates) > 300
    assert script.without_text(crates) == []
    names = {crate.name for crate in crates}
    assert {"parquet", "lance-core", "vortex", "pyo3", "object_store", "rusqlite", "zstd-sys"} <= names
    # What tests alone use is not compiled in.
    assert "proptest" not in names
    text = script.text_of(crates)
    assert all(crate.title in text for crate in crates)
    # The C library in a crate has a licence of its own.
    assert re.search(r"^zstd-sys .*: zstd/LICENSE$", text, re.M)


def test_crates_of_tests_and_build_scripts_are_left_out(script):
    def package(name, source="registry"):
        return {"id": name, "name": name, "version": "1.0.0", "source": source}

    def node(name, **needs):
        return {"id": name, "deps": [{"pkg": to, "dep_kinds": [{"kind": kind}]} for to, kind in needs.items()]}

    told = {
        "packages": [package("wellread-cli", None), package("own", None), *map(package, "abcd")],
        "resolve": {
            "nodes": [node("wellread-cli", own=None, b="dev"), node("own", a=None, c="build"), node("a", d=None)]
            + [node(name) for name in "bcd"]
        },
    }
    assert [package["name"] for package in script.below(told)] == ["a", "d"]


def crate(script, licence, texts=()):
    return script.Crate("a", "1.0.0", licence, ("An Author",), "", texts)


def test_a_crate_without_a_text_has_that_of_its_licence(script):
    of = {licence: script.known_text(crate(script, licence)) for licence in ("MIT/Apache-2.0", "MIT", "BSD-3-Clause")}
    assert [known[0] for known in of.values()] == ["Apache-2.0", "MIT", "BSD-3-Clause"]
    # Not with this project's copyright.
    assert "Permission is hereby granted" in of["MIT"][1] and "Copyright" not in of["MIT"][1]
    assert script.without_text([crate(script, "ISC"), crate(script, "MIT")]) == ["a 1.0.0 (ISC)"]
    assert script.without_text([crate(script, "ISC", (("LICENSE", "may be used"),))]) == []
    text = script.text_of([crate(script, "MIT")])
    assert "a 1.0.0 (MIT): text of MIT; packed without one, by An Author\n" in text


def test_licence_files_are_found_by_their_names(script, tmp_path):
    files = ("LICENSE_A2", "license-mit.txt", "NOTICE", "lib/COPYING", "LICENSES/ZLIB.txt")
    others = ("licensee.txt", "src/license.rs", "tests/LICENSE", "README.md")
    for name in (*files, *others):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}\n")
    found = dict(script.texts_of(tmp_path))
    assert found == {name: f"text of {name}" for name in files}


def test_a_wheel_gets_the_text_once(script, tmp_path):
    wheel = tmp_path / "wellread-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("wellread/a.py", "a = 1\n")
        packed.writestr(
            "wellread-1.0.dist-info/RECORD", "wellread/a.py,sha256=x,6\nwellread-1.0.dist-info/RECORD,,\n"
        )
    for text in ("before", "the licences"):
        script.put_into(wheel, text)
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]
    added = "wellread-1.0.dist-info/licenses/THIRD-PARTY.txt"
    with zipfile.ZipFile(wheel) as packed:
        assert sorted(packed.namelist()) == sorted({added, "wellread/a.py", "wellread-1.0.dist-info/RECORD"})
        assert packed.read(added) == b"the licences"
        assert packed.read("wellread/a.py") == b"a = 1\n"
        rows = list(csv.reader(packed.read("wellread-1.0.dist-info/RECORD").decode().splitlines()))
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"the licences").digest()).rstrip(b"=").decode()
    assert [added, f"sha256={digest}", "12"] in rows
    assert ["wellread/a.py", "sha256=x", "6"] in rows and len(rows) == 3


def test_wheels_are_made_by_the_maturin_of_the_tests():
    tests = (ROOT / "tests/python/requirements.txt").read_text(encoding="utf-8").splitlines()
    (needed,) = (ROOT / "packaging/requirements.txt").read_text(encoding="utf-8").splitlines()
    assert needed.startswith("maturin==") and needed in tests
