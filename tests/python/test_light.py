"""The build stays as light as it is: units of cargo, crates, and bytes of the program."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]

needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo on this machine")


def graph(*what):
    """The units that cargo would compile."""
    asked = ["cargo", "build", "--release", "--locked", "-Zunstable-options", "--unit-graph", *what]
    told = subprocess.check_output(
        asked, cwd=ROOT, env={**os.environ, "RUSTC_BOOTSTRAP": "1"}, stderr=subprocess.DEVNULL
    )
    return json.loads(told)["units"]


def units(*what):
    """Each unit by all that decides what the compiler is given, and by what it needs."""
    found, known = graph(*what), {}

    def identity(index):
        if index not in known:
            unit = found[index]
            kind = unit["pkg_id"], unit["target"]["name"], tuple(unit["target"]["kind"]), unit["mode"]
            how = tuple(sorted(unit["features"])), unit["profile"]["opt_level"], unit["platform"]
            known[index] = hash((kind, how, tuple(sorted(identity(d["index"]) for d in unit["dependencies"]))))
        return known[index]

    return {
        identity(index): f"{unit['pkg_id']} {unit['mode']}, level {unit['profile']['opt_level']}"
        for index, unit in enumerate(found)
    }


@needs_cargo
def test_nothing_is_compiled_twice_for_programs_module_and_tests():
    everything = units("--workspace", "--all-targets")
    assert len(everything) > 700
    for part in ("--bins", "--lib"):
        found = units("--workspace", part)
        assert 700 < len(found) < len(everything)
        again = [found[unit] for unit in found.keys() - everything.keys()]
        assert not again, f"cargo build --workspace {part} compiles {len(again)} units once more: {sorted(again)[:5]}"


@needs_cargo
@pytest.mark.parametrize("features", [(), ("--features", "engines")], ids=["light", "engines"])
def test_module_and_command_stand_on_the_same_units(features):
    """`pip install . ./crates/wellread-cli` and `make wheel` build one after the other, each by itself."""
    module = units("-p", "wellread-python", "--lib", *features)
    command = units("-p", "wellread-cli", "--bins", *features)
    assert len(module.keys() & command.keys()) > 200
    again = [label for unit, label in module.items() if unit not in command and label in command.values()]
    assert not again, f"{len(again)} units are compiled once more, by features of their own: {sorted(again)[:5]}"


@needs_cargo
def test_no_program_of_tests_is_built_that_has_none():
    """The Python module and the command have no tests. That of the module would take as long as the module."""
    tested = {
        (unit["pkg_id"].rsplit("/", 1)[1].split("#")[0], unit["target"]["kind"][0])
        for unit in graph("--workspace", "--all-targets")
        if unit["mode"] == "test"
    }
    assert ("wellread-cli", "lib") in tested and ("wellread-cli", "test") in tested
    assert not tested & {("wellread-python", "cdylib"), ("wellread-cli", "bin")}


def test_make_installs_the_program_that_it_builds(tmp_path):
    """By a cargo that only says what it was asked for, and a program that is there already."""
    asked, home, target = tmp_path / "asked", tmp_path / "home", tmp_path / "target"
    for file, text in (
        ("bin/cargo", f'#!/bin/sh\necho "$*" >> {asked}\n'),
        ("target/release/wellread", "the program"),
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
        (tmp_path / file).chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "CARGO"))}
    env |= {"PATH": f"{tmp_path / 'bin'}:{env['PATH']}", "CARGO_HOME": str(home), "CARGO_TARGET_DIR": str(target)}
    # Packages for the engines' build are not what is tried.
    command = ["make", "--no-print-directory", "install", "--old-file=engine-packages"]
    subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
    assert asked.read_text() == "build --release --locked --workspace --bins\n"
    installed = home / "bin/wellread"
    assert installed.read_text() == "the program" and os.access(installed, os.X_OK)


def test_levels_of_the_build_are_of_crates_that_are_there():
    """cargo only warns of a name that no crate has."""
    manifest, lock = (tomllib.loads((ROOT / name).read_text()) for name in ("Cargo.toml", "Cargo.lock"))
    named = set(manifest["profile"]["release"]["package"]) - {"*"}
    assert len(named) > 30
    assert not named - {package["name"] for package in lock["package"]}


def test_the_workspace_stays_as_light_as_it_is():
    """Crates of the lock file, and releases of Arrow: Lance's, Vortex's and ours (docs/decisions/0038)."""
    locked = (ROOT / "Cargo.lock").read_text()
    assert 600 < locked.count("[[package]]\n") <= 750
    assert 1 <= len(re.findall(r'^name = "arrow-array"$', locked, re.M)) <= 3


def features_of(crate, feature, crates):
    """All features of all crates that this one turns on, itself among them: pairs of a crate and a feature."""
    found, asked = set(), [(crate, feature)]
    while asked:
        crate, feature = one = asked.pop()
        if one not in found:
            found.add(one)
            for name in crates.get(crate, {}).get(feature, []):
                other, _, its = name.partition("/")
                asked.append((other.rstrip("?"), its) if its else (crate, name))
    return found


def test_no_build_leaves_out_the_calls_of_linux_unless_it_is_asked_to():
    """`portable` is for tests of the paths of other systems. By the command's, all crates with such paths have it."""
    manifests = {path.parent.name: tomllib.loads(path.read_text()) for path in ROOT.glob("crates/*/Cargo.toml")}
    crates = {name: manifest.get("features", {}) for name, manifest in manifests.items()}
    have = {(name, "portable") for name, features in crates.items() if "portable" in features}
    assert {"wellread", "wellread-cli", "wellread-measure", "wellread-store"} <= {name for name, _ in have}
    assert have <= features_of("wellread-cli", "portable", crates)
    for name, features in crates.items():
        for feature in set(features) - {"portable"}:
            assert not features_of(name, feature, crates) & have, f"{name}/{feature}"
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    for manifest in [workspace, *manifests.values()]:
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            parts = [manifest, *manifest.get("target", {}).values()]
            for name, what in [one for part in parts for one in part.get(kind, {}).items()]:
                assert isinstance(what, str) or "portable" not in what.get("features", []), name


# What is not made on other systems in another way, or is so on macOS as well.
OF_LINUX_ALONE = {
    "wellread-model/src/infer/onnxruntime/cuda.rs": "NVIDIA's libraries",
    "wellread-duckdb/src/library/mod.rs": "a test with the C library of Linux",
    "wellread-store/src/mapping/kept.rs": "maps, which macOS has too",
}


def test_what_only_linux_does_can_be_left_out_of_a_build():
    """Each path for other systems is compiled and tested on Linux by `make test-portable`."""
    named, lacking = set(), []
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        name = str(path.relative_to(ROOT / "crates"))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "cfg" not in line or 'target_os = "linux"' not in line:
                continue
            if 'feature = "portable"' in line:
                named.add(name.split("/")[0])
            elif name not in OF_LINUX_ALONE and "cfg(all(test, " not in line:
                lacking.append(f"{name}:{number}: {line.strip()}")
    assert not lacking, 'not(feature = "portable") is missing in:\n' + "\n".join(lacking)
    # Where a crate names the feature, it has it: cargo only warns of one that is not there.
    manifests = {name: tomllib.loads((ROOT / "crates" / name / "Cargo.toml").read_text()) for name in named}
    assert len(named) > 5 and all("portable" in manifest["features"] for manifest in manifests.values())


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf here (binutils)")
def test_the_program_stays_as_small_as_it_is():
    """All that is loaded, which stripping leaves. The goal of docs/decisions/0038 is 120 MB."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    assert binary, "set WELLREAD to the binary under test"
    listing = subprocess.check_output(
        ["readelf", "--wide", "--section-headers", Path(binary).resolve()],
        env={**os.environ, "LC_ALL": "C"}, text=True,
    )  # fmt: skip
    # Type, address, place, size, size of an entry, flags.
    sections = re.findall(r"\] \S+ +(\w+) +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +(\w*) ", listing)
    loaded = sum(int(size, 16) for kind, size, flags in sections if "A" in flags and kind != "NOBITS")
    assert 5_000_000 < loaded <= 120_000_000
