#!/usr/bin/env python3
"""The licences of all crates that are compiled into the package and the command with all engines, in one text.

    python3 scripts/third_party.py --out THIRD-PARTY.txt     writes the text
    python3 scripts/third_party.py --list                    prints name, version and licence of each crate
    python3 scripts/third_party.py --into dist/*.whl         puts the text into wheels, beside their own licences

It asks no network: a build, or `cargo fetch --locked`, has fetched the crates. It needs cargo and Python 3.10.

    Cargo.lock -> cargo metadata -> crates below the two programs -> licence files of each -> one text
"""

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NAME = "THIRD-PARTY.txt"
PROGRAMS = ("wellread-cli", "wellread-python")
LICENCE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)(?![a-z])", re.I)
# Folders of a crate that are not compiled in.
NOT_COMPILED = {"tests", "test", "benches", "examples", "doc", "docs"}
# Files of these endings are programs that have such a name.
SOURCES = {".rs", ".c", ".h", ".py", ".json", ".toml", ".sh"}
# Texts for crates that are packed without one. These two are this repository's, but for the names of authors.
TEXTS = {"Apache-2.0": "LICENSE-APACHE", "MIT": "LICENSE-MIT"}
# Holders of the copyright of C libraries that lie in a crate without their licence file.
HOLDERS = {"blosc-src": "Francesc Alted and the Blosc Development Team (c-blosc)"}
BSD_3 = """\
Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met:

1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following
   disclaimer.

2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
   disclaimer in the documentation and/or other materials provided with the distribution.

3. Neither the name of the copyright holder nor the names of its contributors may be used to endorse or promote
   products derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY,
WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE
OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""


@dataclass(frozen=True)
class Crate:
    """A crate that is compiled in, with the texts that it is packed with: their paths in it, and what they say."""

    name: str
    version: str
    licence: str
    authors: tuple[str, ...]
    repository: str
    texts: tuple[tuple[str, str], ...]

    @property
    def title(self) -> str:
        return f"{self.name} {self.version} ({self.licence or 'no licence stated'})"


def metadata() -> dict[str, Any]:
    """Cargo's metadata of the workspace and its dependencies, of this platform and with all engines."""
    told = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    (host,) = re.findall(r"^host: (.*)$", told, re.M)
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise SystemExit(f"cargo metadata failed: {last} (hint: fetch the crates first: cargo fetch --locked)")
    return json.loads(done.stdout)


def below(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The packages from elsewhere that are compiled into the programs: none of tests or of build scripts."""
    packages = {package["id"]: package for package in told["packages"]}
    needs = {
        node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        for node in told["resolve"]["nodes"]
    }
    todo = [package["id"] for package in told["packages"] if not package["source"] and package["name"] in PROGRAMS]
    seen = set(todo)
    while todo:
        new = set(needs[todo.pop()]) - seen
        seen |= new
        todo += new
    found = [packages[which] for which in seen if packages[which]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts_of(folder: Path) -> tuple[tuple[str, str], ...]:
    """The licence files of a crate, and of C libraries that lie in it."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - NOT_COMPILED)
        for name in sorted(files):
            path = Path(place, name)
            in_folder = path.parent.name.lower() in {"licenses", "license"}
            if (LICENCE.match(name) or in_folder) and path.suffix.lower() not in SOURCES:
                text = path.read_text(encoding="utf-8", errors="replace").strip()
                found += [(path.relative_to(folder).as_posix(), text)] if text else []
    return tuple(found)


def crates(told: dict[str, Any]) -> list[Crate]:
    return [
        Crate(
            package["name"],
            package["version"],
            package["license"] or "",
            tuple(package["authors"]),
            package["repository"] or "",
            texts_of(Path(package["manifest_path"]).parent),
        )
        for package in below(told)
    ]


def known_text(crate: Crate) -> tuple[str, str] | None:
    """The licence and text of a crate that is packed without one. `None` where nothing here has it."""
    for licence, file in TEXTS.items():
        if licence in re.split(r"[\s()/]+", crate.licence):
            text = (ROOT / file).read_text(encoding="utf-8").strip()
            # The copyright is that of the crate's authors.
            return licence, re.sub(r"^Copyright .*\n+", "", text, flags=re.M) if licence == "MIT" else text
    if crate.licence == "BSD-3-Clause":
        return crate.licence, BSD_3.strip()
    return None


def without_text(found: list[Crate]) -> list[str]:
    return [crate.title for crate in found if not crate.texts and known_text(crate) is None]


def text_of(found: list[Crate]) -> str:
    """Each text once, below the crates that are under it."""
    by_text: dict[str, list[str]] = {}
    for crate in found:
        texts = list(crate.texts)
        if not texts and (known := known_text(crate)):
            by = ", ".join([*crate.authors, *HOLDERS.get(crate.name, "").splitlines()]) or crate.repository
            texts = [(f"text of {known[0]}; packed without one, by {by}", known[1])]
        for place, text in texts:
            by_text.setdefault(text, []).append(f"{crate.title}: {place}")
    line = "-" * 100
    head = (
        f"wellread with all engines is compiled from {len(found)} crates by others. Their licences stand below.\n"
        "Each text stands once, under the crates that have it. A crate under several licences joined by OR is\n"
        "used under one of them.\n"
    )
    parts = ["\n".join([line, *names, line, "", text, ""]) for text, names in by_text.items()]
    return "\n".join([head, *parts])


def put_into(wheel: Path, text: str) -> None:
    """Replaces a wheel by one with the text beside its licences, and with the text's hash in its list of files."""
    data = text.encode()
    new = wheel.with_name(f"{wheel.name}.new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as out:
        (record,) = [name for name in old.namelist() if name.endswith(".dist-info/RECORD")]
        added = record.removesuffix("RECORD") + f"licenses/{NAME}"
        for item in old.infolist():
            if item.filename not in (record, added):
                out.writestr(item, old.read(item), compress_type=item.compress_type)
        out.writestr(added, data)
        rows = [row for row in csv.reader(io.StringIO(old.read(record).decode())) if row and row[0] != added]
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        listed = io.StringIO()
        csv.writer(listed, lineterminator="\n").writerows([[added, f"sha256={digest}", str(len(data))], *rows])
        out.writestr(record, listed.getvalue())
    os.replace(new, wheel)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--out", type=Path, metavar="FILE", help="write the text to a file")
    kinds.add_argument("--list", action="store_true", help="print name, version and licence of each crate")
    kinds.add_argument("--into", type=Path, nargs="+", metavar="WHEEL", help="put the text into these wheels")
    args = parser.parse_args()
    found = crates(metadata())
    if args.list:
        print("\n".join(crate.title for crate in found))
        return
    if missing := without_text(found):
        sys.exit(f"no text of the licence of {', '.join(missing)} (hint: add it to scripts/third_party.py)")
    text = text_of(found)
    if args.out:
        args.out.write_text(text, encoding="utf-8")
    for wheel in args.into or []:
        put_into(wheel, text)


if __name__ == "__main__":
    main()
