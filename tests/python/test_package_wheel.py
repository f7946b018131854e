"""The wheels, of the package and of the command: what is in them, and that they work in an environment of their own.

maturin packs the native module that the build has left. It would have cargo build that package alone, with features
of its own, which compiles everything once more. So a cargo before the other in PATH builds the workspace instead,
which is done.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "no build"))
CARGO = """#!/usr/bin/env bash
# For another PATH pyo3 is compiled anew, and the module with it: this is that of the build, without this folder.
export PATH=$PATH_OF_THE_BUILD
# What maturin tells the build of interpreters would have it begin anew; the module is of every CPython from 3.10 on.
if [[ $1 == rustc ]]; then
    unset "${!PYO3_@}" CARGO_ENCODED_RUSTFLAGS
    REAL build --release --locked --offline --workspace --all-targets --message-format json-render-diagnostics \\
        > "$COPIES/messages" || exit
    # maturin moves what it packs, and tests beside this one load the module and run the command: it gets copies.
    cp "$CARGO_TARGET_DIR"/release/{lib_native.so,wellread} "$COPIES" || exit
    # Of the tests' program, which bears the module's name, it must not hear.
    exec sed -E -e '/"test":true\\},"features"/d' \\
        -e 's#"[^"]*/release/(lib_native\\.so|wellread)"#"'"$COPIES"'/\\1"#g' "$COPIES/messages"
fi
# Of all platforms, it would ask for packages that a build here has not fetched.
if [[ $1 == metadata ]]; then
    exec REAL "$@" --filter-platform "$(rustc -vV | sed -n 's/^host: //p')"
fi
exec REAL "$@"
"""
SCRIPT = """
import sys
import wellread as wr
loader = wr.DataLoader(sys.argv[1], 8, shuffle=True, seed=3, num_workers=2)
print(wr.__file__, len(wr.formats()), sum(float(batch.sum()) for batch in loader))
assert "torch" not in sys.modules and "jax" not in sys.modules
"""

pytestmark = [
    pytest.mark.skipif(not (TARGET / "release/lib_native.so").exists(), reason="no build in CARGO_TARGET_DIR"),
    pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo on this machine"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    path = packed(tmp_path_factory.mktemp("wheel"), "crates/wellread-python/Cargo.toml")
    yield path
    # Large, and pytest would keep it.
    path.unlink()


@pytest.fixture(scope="module")
def command_wheel(tmp_path_factory, wheel):
    """After the other wheel, for which a build by another Python may have begun anew."""
    built = [TARGET / "release" / name for name in ("lib_native.so", "wellread")]
    before = [path.stat() for path in built]
    path = packed(tmp_path_factory.mktemp("command"), "crates/wellread-cli/Cargo.toml")
    after = [path.stat() for path in built]
    # The same inodes: where there is another file, there was none for a while, and tests beside this one fail.
    for one, other in zip(before, after, strict=True):
        assert (one.st_mtime_ns, one.st_ino) == (other.st_mtime_ns, other.st_ino), "compiled once more, or moved"
    yield path
    path.unlink()


def with_cargo(folder, real):
    """The environment in which `CARGO` stands before the real one."""
    bin_folder, copies = folder / "bin", folder / "copies"
    bin_folder.mkdir()
    copies.mkdir()
    (bin_folder / "cargo").write_text(CARGO.replace("REAL", str(real)))
    (bin_folder / "cargo").chmod(0o755)
    before = os.environ["PATH"]
    env = {**os.environ, "PATH": f"{bin_folder}:{before}", "PATH_OF_THE_BUILD": before, "COPIES": str(copies)}
    env.pop("CARGO", None)
    return env


def packed(folder, manifest):
    """The wheel that maturin makes of a crate."""
    env = with_cargo(folder, shutil.which("cargo"))
    done = subprocess.run(
        [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--offline", "--out", folder,
         "--interpreter", sys.executable, "--compression-method", "stored", "--manifest-path", manifest],
        cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shutil.rmtree(env["COPIES"])
    (path,) = folder.glob("*.whl")
    return path


def test_a_wheel_has_the_whole_package(wheel):
    assert re.fullmatch(r"wellread-[\d.]+-cp310-abi3-(manylinux|linux|macosx).*\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (about,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = packed.read(about).decode()
    sources = REPOSITORY / "python"
    for source in (sources / "wellread").rglob("*"):
        if source.suffix in (".py", ".pyi") or source.name == "py.typed":
            assert str(source.relative_to(sources)) in names, f"{source} is not in the wheel"
    assert "wellread/_native.abi3.so" in names
    assert "Requires-Python: >=3.10" in metadata and "Requires-Dist: numpy" in metadata
    assert "Provides-Extra: bench" in metadata
    assert any("LICENSE-MIT" in name for name in names)


def test_wheels_work_in_an_environment_of_their_own(wheel, command_wheel, parquet, tmp_path):
    home = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    python = home / "bin/python"
    # numpy is that of the tests; `wellread` must be the wheel's.
    inside = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    )
    (Path(inside.strip()) / "tests.pth").write_text(sysconfig.get_path("purelib"))
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "WELLREAD")}
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet"]
    try:
        subprocess.run([*install, wheel], check=True, env=env, timeout=600)
        where, formats, total = subprocess.check_output(
            [python, "-c", SCRIPT, parquet], env=env, text=True, timeout=600
        ).split()
        here, same_formats, same_total = subprocess.check_output(
            [sys.executable, "-c", SCRIPT, parquet], text=True, timeout=600
        ).split()
        assert str(home) in where and str(home) not in here
        assert (formats, total) == (same_formats, same_total)
        # Without the command, the package says how to get it.
        bare = {**env, "PATH": os.defpath}
        alone = subprocess.run(
            [python, "-m", "wellread", "info", parquet], env=bare, capture_output=True, text=True, timeout=600
        )
        assert alone.returncode == 1 and "pip install ./crates/wellread-cli, or make" in alone.stderr
        subprocess.run([*install, command_wheel], check=True, env=env, timeout=600)
        for command in ([home / "bin/wellread"], [python, "-m", "wellread"]):
            told = subprocess.check_output([*command, "info", parquet, "--json"], env=bare, text=True, timeout=600)
            assert '"images"' in told
    finally:
        shutil.rmtree(home)


def artifact(path, target, *beside, test=False):
    """A line of cargo's messages, its fields in cargo's order."""
    names = [str(path), *map(str, beside)]
    return json.dumps(
        {"reason": "compiler-artifact", "target": {"name": target, "test": True}, "profile": {"test": test},
         "features": [], "filenames": names, "executable": str(path), "fresh": True},
        separators=(",", ":"),
    )  # fmt: skip


def test_maturin_hears_of_copies_alone_and_of_how_cargo_fails(tmp_path):
    """A stand-in for cargo: no build."""
    release = tmp_path / "target/release"
    (release / "deps").mkdir(parents=True)
    for name in ("lib_native.so", "wellread"):
        (release / name).write_text(f"that of {name}")
    same = [
        artifact(release / "deps/libother-0a1b.rlib", "other", release / "deps/libother-0a1b.rmeta"),
        artifact(release / "libwellread_cli.rlib", "wellread_cli"),
        json.dumps({"reason": "build-finished", "success": True}),
    ]
    module, command, symbols = release / "lib_native.so", release / "wellread", release / "wellread.dSYM"
    said = [
        artifact(module, "_native"),
        artifact(command, "wellread", symbols),
        artifact(release / "deps/wellread-0a1b", "wellread", test=True),
        *same,
    ]
    (tmp_path / "said").write_text("\n".join(said) + "\n")
    (tmp_path / "real").write_text(f'#!/bin/sh\ncat "{tmp_path}/said"\nexit "$CODE"\n')
    (tmp_path / "real").chmod(0o755)
    env = {**with_cargo(tmp_path, tmp_path / "real"), "CARGO_TARGET_DIR": str(tmp_path / "target")}
    copies = tmp_path / "copies"

    def cargo(code):
        return subprocess.run(
            [tmp_path / "bin/cargo", "rustc"], env={**env, "CODE": str(code)}, capture_output=True, text=True
        )

    done = cargo(0)
    of_copies = [artifact(copies / "lib_native.so", "_native"), artifact(copies / "wellread", "wellread", symbols)]
    assert (done.returncode, done.stdout.splitlines()) == (0, [*of_copies, *same]), done.stderr
    for name in ("lib_native.so", "wellread"):
        assert (copies / name).read_text() == (release / name).read_text() == f"that of {name}"
    assert (cargo(101).returncode, cargo(101).stdout) == (101, "")
    # Before the first message, and without what is to be copied.
    (tmp_path / "said").write_text("")
    assert cargo(101).returncode == 101
    command.unlink()
    assert cargo(0).returncode == 1
