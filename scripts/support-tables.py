#!/usr/bin/env python3
"""support-tables.py WELLREAD [--write]: the tables of docs/support.md, to stdout or into the page.

    generated set ─▶ WELLREAD convert, each format with each codec, in chunks, from a bucket ─▶ formats
    crates/*/Cargo.toml ─▶ features                                  .github/workflows/*.yml ─▶ platforms

A cell of the table of formats is what the program did when it was tried, not what a list says. The program needs
every engine and DuckDB's library (WELLREAD_DUCKDB). `make reference` calls this script; tests/python/test_docs.py
fails when the page is not what the script prints.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "support.md"
CODECS = ("none", "lz4", "zstd", "deflate", "lzw", "packbits", "snappy")
# A chunk that no format takes by itself.
CHUNK = "1,1,1,32,32"
IN_CHUNKS = re.compile(r"\b(?:\d+x)*32x32\b|\b32 x 32\b")
NAME = "bucket"
# The system of which runs are on record: those of .ci/run. The workflows have run on none yet.
RAN = {("ubuntu", "x86_64"): "`make test` on another Linux, before a change lands (`.ci/run`)"}


class Program:
    """The program under test, and a folder for what it writes."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.environment = {**os.environ, "NO_COLOR": "1", "XDG_CACHE_HOME": str(folder / "cache")}

    def __call__(self, *arguments):
        """The document that a command prints; None where it fails."""
        command = [self.binary, "--json", *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, cwd=self.folder, timeout=300
        )
        if done.returncode:
            return None
        return json.loads(done.stdout) if done.stdout.strip() else {}


def formats(program):
    """Rows of the table of formats."""
    doctor = program("doctor")
    if doctor["formats_missing"]:
        missing = ", ".join(one["name"] for one in doctor["formats_missing"])
        raise SystemExit(f"this build lacks {missing}: take one with every engine, and name DuckDB's library")
    set_ = program.folder / "set"
    said = program("generate", set_, "--images", 3, "--size", "64x64", "--seed", 1)
    paths = {one["format"]: one["path"] for one in said["written"] if not one["error"]}
    rows = [["format", "read", "write", "a crop reads", "from a bucket", "codecs written", "versions"]]
    with Bucket(program) as address:
        for one in doctor["formats"]:
            name, path = one["name"], paths[one["name"]]
            written = [codec for codec in CODECS if written_with(program, paths["parquet"], name, codec)]
            fetched = program.folder / f"from-{name}"
            kept = program("convert", f"{address}/{Path(path).name}", fetched, "--format", "tiff", "--read-as", name)
            rows.append([
                f"`{name}`",
                yes(program("info", path, "--read-as", name)),
                yes(written),
                crop(program, paths["parquet"], name),
                yes(kept),
                ", ".join(written),
                one["engine"],
            ])  # fmt: skip
    return rows


def written_with(program, source, name, codec):
    """Whether a set is written with a codec; `convert` reads it back and compares every pixel."""
    return program("convert", source, program.folder / f"{name}-{codec}", "--format", name, "--compression", codec)


def crop(program, source, name):
    """The part of an image that a crop reads: the chunks that it touches, where the format has chunks inside of an
    image."""
    target = program.folder / f"{name}-in-chunks"
    if program("convert", source, target, "--format", name, "--chunk", CHUNK) is None:
        return "the whole image"
    layout = program("info", target, "--read-as", name)["layout"]
    return "its chunks" if IN_CHUNKS.search(layout) else "the whole image"


class Bucket:
    """A bucket on this machine that holds the generated set (crates/wellread-remote/examples/loopback)."""

    def __init__(self, program):
        self.program = program

    def __enter__(self):
        sys.path.insert(0, str(ROOT / "tests" / "python"))
        os.environ["WELLREAD"] = str(self.program.binary)
        import loopback

        served = self.program.folder / "served"
        served.mkdir()
        (self.program.folder / "set").rename(served / NAME)
        (self.program.folder / "set").symlink_to(served / NAME)
        self.server = loopback.Loopback(loopback.program(self.program.folder), "serve", served).__enter__()
        self.program.environment |= {
            "AWS_ENDPOINT_URL": self.server.url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
        }  # fmt: skip
        return f"s3://{NAME}"

    def __exit__(self, *raised):
        self.server.__exit__(*raised)


def yes(done):
    return "yes" if done is not None and done != [] else "no"


def features():
    """Rows of the table of features: what each crate that a user builds has by default, and on demand."""
    crates = {name: manifest(name) for name in ("wellread-cli", "wellread-python", "wellread", "wellread-store",
                                                "wellread-infer")}  # fmt: skip
    every = [feature for features in crates.values() for feature in features if feature != "default"]
    rows = [["feature", *(f"`{crate}`" for crate in crates), "it is"]]
    about = {
        "engines": "`lance`, `vortex`, `duckdb`, `remote` and `sqlite`",
        "remote": "images in S3, Google Cloud Storage, Azure and on web servers",
        "sqlite": "tables of cells in databases of CellProfiler",
        "onnxruntime": "ONNX Runtime, loaded where a session is opened",
        "portable": "without the calls that only Linux has, for tests of other paths (`make test-portable`)",
        "cuda": "NVIDIA GPUs for `wellread infer --framework candle`",
    }
    for name in dict.fromkeys(every):
        cells = ["by default" if name in features.get("default", []) else "on demand" if name in features else "–"
                 for features in crates.values()]  # fmt: skip
        rows.append([f"`{name}`", *cells, about.get(name, "the format")])
    return rows


def manifest(crate):
    """The features of a crate, by name."""
    text = (ROOT / "crates" / crate / "Cargo.toml").read_text()
    part = text.split("\n[features]\n")[1].split("\n[")[0]
    return {
        name: re.findall(r'"([^"]+)"', values) for name, values in re.findall(r"^([\w-]+) = \[([^\]]*)\]", part, re.M)
    }


def platforms():
    """Rows of the table of platforms: what the workflows would do on each, and whether that has run."""
    ci, wheels = ((ROOT / ".github" / "workflows" / f"{name}.yml").read_text() for name in ("ci", "wheels"))
    rows = [["system", "processor", "command", "Python wheels", "a workflow would test", "run so far"]]
    tested = re.search(r"name: make test .*?runner: \[([^\]]+)\]", ci, re.S)[1].split(", ")
    pythons = re.findall(r'"([\d.]+t?)"', re.search(r"^\s*python: \[([^\]]+)\]", wheels, re.M)[1])
    # Free-threaded ones are counted by themselves.
    first, *_, last = [python for python in pythons if not python.endswith("t")]
    free = "".join(f", {python}" for python in pythons if python.endswith("t"))
    built = dict(re.findall(r"- target: (\w+)\s+runner: ([\w.-]+)", wheels))
    for runner in tested:
        target = next((name for name, on in built.items() if on == runner), None)
        wheel = f"{target}, manylinux 2.28, Python {first}–{last}{free}" if target else "no"
        rows.append([system(runner), processor(runner), "yes", wheel, "every test (`make test`)", ran(runner)])
    for runner, crates in re.findall(r"- runner: ([\w.-]+)\s+crates: (.+)", ci):
        names = crates.replace("-p ", "").split()
        whole = names == ["wellread-cli"]
        what = "the light command" if whole else ", ".join(f"`{name}`" for name in names)
        command = "from source" if whole else "no"
        rows.append([system(runner), processor(runner), command, "no", f"compiles: {what}", ran(runner)])
    return rows


def ran(runner):
    """Whether the tests of a system have run, and where that is on record."""
    return RAN.get((runner.partition("-")[0], processor(runner)), "not run yet")


def system(runner):
    name, _, version = runner.partition("-")
    known = {"ubuntu": "Linux (Ubuntu {})", "macos": "macOS {}", "windows": "Windows Server {}"}
    return known[name].format(version.removesuffix("-arm"))


def processor(runner):
    return "aarch64" if runner.endswith("-arm") or runner.startswith("macos") else "x86_64"


def table(rows):
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("|" + "---|" * len(line) if line[0] == "---" else f"| {' | '.join(line)} |" for line in lines)


def put(text, tables):
    """The page with its tables between their markers."""
    for name, rows in tables.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            raise SystemExit(f"the page has no {begin} … {end}")
        text = f"{text[: text.index(begin)]}{begin}\n{table(rows)}\n{text[text.index(end) :]}"
    return text


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("wellread", type=Path, help="the program, with every engine")
    ap.add_argument("--write", action="store_true", help="put the tables into docs/support.md")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(a.wellread.resolve(), Path(folder).resolve())
        tables = {"formats": formats(program), "features": features(), "platforms": platforms()}
    page = put(PAGE.read_text(), tables)
    if a.write:
        PAGE.write_text(page)
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
