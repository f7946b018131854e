"""Conditions of a release, as far as a bare machine can check them, offline.

    python3 scripts/release.py check [--tag v0.1.0] [--verify]   every check, a line each; exit code 1 when one failed
    python3 scripts/release.py version                           the version of this workspace
    python3 scripts/release.py set 0.2.0                         writes another version wherever one is stated
    python3 scripts/release.py order                             the crates in the order in which they are published
    python3 scripts/release.py notes                             what CHANGELOG.md says of this version

It needs Python and cargo alone. Checks whose tool or files are missing are named and left out.

Long because it is the list of what is checked before a release, as one program without a package.
"""

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PYTHON_PACKAGES = {"wellread": ROOT / "pyproject.toml", "wellread-cli": ROOT / "crates/wellread-cli/pyproject.toml"}
WORKFLOWS = ROOT / ".github/workflows"
# What crates.io accepts: bytes of a packed crate, keywords and their length, categories.
CRATE_BYTES, KEYWORDS, KEYWORD_LENGTH, CATEGORIES = 10 << 20, 5, 20, 5
# What a wheel may have: PyPI accepts 100 MiB, and users wait for each megabyte.
WHEEL_BYTES = 60_000_000
# The newest versions of symbols that a manylinux_2_28 wheel may ask for (PEP 600, auditwheel's policy).
SYMBOLS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
NOT_FETCHED = "cargo has not fetched all dependencies (cargo fetch --locked)"


class Skip(Exception):
    """A check that cannot be made here, and why."""


def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


# --- crates ---


@functools.cache
def workspace() -> list[dict[str, Any]]:
    """The crates of this workspace as cargo sees them, without their dependencies' own."""
    return cargo_metadata("--no-deps")["packages"]


def cargo_metadata(*options: str) -> dict[str, Any]:
    if not shutil.which("cargo"):
        raise Skip("no cargo here")
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def publishable(packages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [package for package in packages if package["publish"] != []]


def needs(package: dict[str, Any], names: set[str]) -> set[str]:
    """Which of these crates have to be published before this one. Tests' dependencies count where they have a
    version: cargo keeps them in what it publishes."""
    return {
        dependency["name"]
        for dependency in package["dependencies"]
        if dependency["name"] in names and (dependency["kind"] != "dev" or dependency["req"] != "*")
    }


def publish_order(packages: list[dict[str, Any]]) -> list[str]:
    """Each crate after those that it needs, by name where the order is free."""
    names = {package["name"] for package in packages}
    waiting = {package["name"]: needs(package, names) for package in packages}
    order: list[str] = []
    while waiting:
        ready = sorted(name for name, missing in waiting.items() if missing <= set(order))
        if not ready:
            raise ValueError(f"crates that need each other: {', '.join(sorted(waiting))}")
        order += ready
        waiting = {name: missing for name, missing in waiting.items() if name not in ready}
    return order


def version() -> str:
    return read_toml(ROOT / "Cargo.toml")["workspace"]["package"]["version"]


def python_version(version: str) -> str:
    """As Python writes it, and maturin does: 0.2.0rc1 for 0.2.0-rc.1."""
    return re.sub(
        r"-(alpha|beta|rc)\.(\d+)$", lambda found: {"alpha": "a", "beta": "b"}.get(found[1], "rc") + found[2], version
    )


def check_order() -> list[str]:
    packages = publishable(workspace())
    private = {package["name"] for package in workspace()} - {package["name"] for package in packages}
    wrong = [f"{p['name']} needs {n}, which is not published" for p in packages for n in sorted(needs(p, private))]
    try:
        publish_order(packages)
    except ValueError as error:
        wrong.append(str(error))
    return wrong


def check_fields() -> list[str]:
    wrong = []
    for package in publishable(workspace()):
        name = package["name"]
        wanted = ("description", "license", "repository", "homepage", "readme", "keywords", "categories")
        wrong += [f"{name} has no {field}" for field in wanted if not package[field]]
        folder = Path(package["manifest_path"]).parent
        files = [package["readme"] or "", "LICENSE-MIT", "LICENSE-APACHE"]
        wrong += [f"{name}: no file {file}" for file in files if file and not (folder / file).is_file()]
        if len(package["keywords"]) > KEYWORDS or any(len(word) > KEYWORD_LENGTH for word in package["keywords"]):
            wrong.append(f"{name}: at most {KEYWORDS} keywords of {KEYWORD_LENGTH} letters")
        if len(package["categories"]) > CATEGORIES:
            wrong.append(f"{name}: at most {CATEGORIES} categories")
    return wrong


def check_packages() -> list[str]:
    """Packs every crate as `cargo publish` would, without compiling it."""
    with tempfile.TemporaryDirectory() as folder:
        # A build folder of its own: it waits for no build and leaves nothing behind.
        environment = {**os.environ, "CARGO_TARGET_DIR": folder}
        command = ["cargo", "package", "--workspace", "--no-verify", "--locked", "--offline", "--allow-dirty"]
        for package in workspace():
            command += [] if package["publish"] != [] else ["--exclude", package["name"]]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode and "offline" in done.stderr:
            raise Skip(NOT_FETCHED)
        if done.returncode:
            return [line for line in done.stderr.splitlines() if line.startswith("error")] or [done.stderr[-500:]]
        return [
            f"{packed.name} has {packed.stat().st_size >> 20} MiB; crates.io takes {CRATE_BYTES >> 20}"
            for packed in Path(folder).rglob("*.crate")
            if packed.stat().st_size > CRATE_BYTES
        ]


def check_builds() -> list[str]:
    """`cargo publish --dry-run` compiles what it has packed: the better part of an hour."""
    command = ["cargo", "publish", "--workspace", "--dry-run", "--locked", "--allow-dirty"]
    done = subprocess.run(command, cwd=ROOT)
    return ["cargo publish --workspace --dry-run failed"] if done.returncode else []


# --- versions ---


def versions() -> dict[str, str]:
    """The version that each place states, by place."""
    stated = {"Cargo.toml": version()}
    for package in workspace():
        stated[f"crate {package['name']}"] = package["version"]
    for name, requirement in read_toml(ROOT / "Cargo.toml")["workspace"]["dependencies"].items():
        if isinstance(requirement, dict) and "path" in requirement:
            stated[f"Cargo.toml, dependency {name}"] = requirement.get("version", "none")
    for name, path in PYTHON_PACKAGES.items():
        project = read_toml(path)["project"]
        # maturin takes it from the crate.
        if "version" not in project.get("dynamic", []):
            stated[f"pyproject.toml of {name}"] = project.get("version", "none")
    patterns = {
        "CITATION.cff": r"^version: (\S+)$",
        "packaging/conda/recipe.yaml": r'^  version: "?([^"\s]+)"?$',
        "packaging/homebrew/wellread.rb": r"/v([^/]+)\.tar\.gz\"$",
        # The command that the extra installs is that of the same version.
        "pyproject.toml": r'^bench = \["wellread-cli==([^"]+)"\]$',
    }
    for file, pattern in patterns.items():
        found = re.search(pattern, (ROOT / file).read_text(), re.M)
        stated[file] = found.group(1) if found else "none"
    return stated


# Each place that states a version, as what stands before it; behind it stands a quote, a space or an end.
STATED = {
    "Cargo.toml": [r'^version = "', r'^wellread[\w-]* = \{ path = "crates/[^"]+", version = "'],
    "Cargo.lock": [r'^name = "wellread[\w-]*"\nversion = "'],
    "CITATION.cff": [r"^version: "],
    "packaging/conda/recipe.yaml": [r'^  version: "'],
    "packaging/homebrew/wellread.rb": [r'^  url ".*/v'],
    "pyproject.toml": [r'^bench = \["wellread-cli=='],
}


def set_version(root: Path, old: str, new: str) -> None:
    """Writes another version wherever one is stated; CHANGELOG.md is for a person to write."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?", new):
        raise SystemExit(f"{new} is no version such as 0.2.0 or 0.2.0-rc.1")
    for file, places in STATED.items():
        path = root / file
        text = path.read_text()
        for before in places:
            text = re.sub(f'({before}){re.escape(old)}(?=["\\s]|\\.tar)', rf"\g<1>{new}", text, flags=re.M)
        path.write_text(text)


def changelog_section(text: str, wanted: str) -> str | None:
    """The text of CHANGELOG.md below `## VERSION`, with or without a date behind it."""
    found = re.search(rf"^## \[?{re.escape(wanted)}\]?(?=\s|$).*?$(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found.group(1).strip() if found else None


def check_versions(tag: str | None) -> list[str]:
    now = version()
    wrong = [f"{place} says {stated}, not {now}" for place, stated in versions().items() if stated != now]
    changes = (ROOT / "CHANGELOG.md").read_text()
    if tag is not None:
        wrong += [] if tag == f"v{now}" else [f"the tag is {tag}, not v{now}"]
        wrong += [] if changelog_section(changes, now) else [f"CHANGELOG.md has no section `## {now}`"]
    elif not (changelog_section(changes, now) or changelog_section(changes, "Unreleased")):
        wrong.append(f"CHANGELOG.md has neither `## Unreleased` nor `## {now}`")
    return wrong


# --- licences ---


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met by these licences alone. `/` is an old way to write OR."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either() -> bool:
        met = both()
        while words and words[0] == "OR":
            words.pop(0)
            met = both() or met
        return met

    def both() -> bool:
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one() -> bool:
        word = words.pop(0)
        if word == "(":
            met = either()
            words.pop(0)
            return met
        if words and words[0] == "WITH":
            word = f"{word} {words.pop(0)} {words.pop(0)}"
        return word in allowed

    try:
        met = either()
    except IndexError:
        return False
    return met and not words


def allowed_licences() -> set[str]:
    return set(read_toml(ROOT / "deny.toml")["licenses"]["allow"])


def dependencies() -> list[dict[str, Any]]:
    """Every crate of the lock file; of this platform alone where cargo has not fetched those of others."""
    try:
        return cargo_metadata()["packages"]
    except RuntimeError:
        told = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
        host = re.search(r"^host: (.*)$", told, re.M)
        try:
            return cargo_metadata("--filter-platform", host.group(1) if host else "")["packages"]
        except RuntimeError as error:
            raise Skip(NOT_FETCHED) from error


def check_licences() -> list[str]:
    allowed = allowed_licences()
    return [
        f"{package['name']} {package['version']}: {package['license'] or 'no licence'}"
        for package in dependencies()
        if not is_allowed(package["license"] or "", allowed)
    ]


def check_deny() -> list[str]:
    if not shutil.which("cargo-deny"):
        raise Skip("no cargo-deny here (cargo install cargo-deny)")
    kinds = ["licenses", "bans", "sources"]
    # Advisories need a database, which `cargo deny fetch` gets from the network.
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    if any(home.glob("advisory-db*/*")):
        kinds.append("advisories")
    done = subprocess.run(["cargo", "deny", "--offline", "check", *kinds], cwd=ROOT, capture_output=True, text=True)
    return faults(done, "error", "cargo deny failed")


# --- what users may rely on ---


def last_release() -> str | None:
    """The newest tag of a release that this commit stands on, but for a tag of its own."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD~1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or None


def check_semver() -> list[str]:
    """Whether the version says how far public names differ from the last release. It compiles both for minutes."""
    if not shutil.which("cargo-semver-checks"):
        raise Skip("no cargo-semver-checks here (cargo install cargo-semver-checks)")
    before = last_release()
    if not before:
        raise Skip("no release to compare with: git has no tag v* before this commit")
    command = ["cargo", "semver-checks", "--workspace", "--baseline-rev", before]
    for package in workspace():
        command += [] if package["publish"] != [] else ["--exclude", package["name"]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return faults(done, "--- failure", "cargo semver-checks failed")


def faults(done: subprocess.CompletedProcess[str], mark: str, otherwise: str) -> list[str]:
    """The lines of a tool that failed that begin so, or its last ones."""
    if done.returncode == 0:
        return []
    said = (done.stdout + done.stderr).strip().splitlines()
    return [line for line in said if line.startswith(mark)] or said[-5:] or [otherwise]


# --- workflows, Python packages, wheels ---


def workflow_faults(name: str, text: str) -> list[str]:
    """Findings without a parser: actions by major version, permissions and concurrency stated."""
    wrong = []
    for action in re.findall(r"uses:\s*(\S+)", text):
        if not action.startswith("./") and not re.search(r"@(v\d+|release/v\d+|[0-9a-f]{40})$", action):
            wrong.append(f"{name}: {action} is not pinned to a major version")
    wrong += [
        f"{name} has no {key}" for key in ("permissions", "concurrency") if not re.search(rf"^{key}:", text, re.M)
    ]
    return wrong


def check_workflows() -> list[str]:
    return [
        fault for file in sorted(WORKFLOWS.glob("*.yml")) for fault in workflow_faults(file.name, file.read_text())
    ]


def lint(tool: str, *arguments: str | Path) -> list[str]:
    """The findings of a linter; there must be none."""
    path = shutil.which(tool)
    if not path:
        raise Skip(f"no {tool} here")
    done = subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip().splitlines()
    return (said or [f"{tool} failed"]) if done.returncode else []


def built(*endings: str) -> list[Path]:
    found = [path for ending in endings for path in sorted((ROOT / "dist").glob(f"*{ending}"))]
    if not found:
        raise Skip(f"no {' or '.join(endings)} in dist/ (make wheel)")
    return found


def check_metadata() -> list[str]:
    """A wheel says of itself the same as pyproject.toml."""
    wrong = []
    for wheel in built(".whl"):
        with zipfile.ZipFile(wheel) as packed:
            (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
            text = packed.read(name).decode()
            licences = {Path(name).name for name in packed.namelist() if ".dist-info/licenses/" in name}
        fields = re.findall(r"^([A-Za-z-]+): (.*)$", text.split("\n\n")[0], re.M)
        project = read_toml(PYTHON_PACKAGES[dict(fields)["Name"]])["project"]
        extras = {value for key, value in fields if key == "Provides-Extra"}
        wanted = [
            (dict(fields)["Version"] == python_version(version()), f"its version is not {version()}"),
            (dict(fields).get("Requires-Python") == project["requires-python"], "Requires-Python differs"),
            (dict(fields).get("License-Expression") == project["license"], "the licence differs"),
            (set(project["license-files"]) <= licences, "licence files are missing"),
            ("THIRD-PARTY.txt" in licences, "the licences of its crates are missing (scripts/third_party.py)"),
            (set(project.get("optional-dependencies", {})) == extras, "its extras differ"),
            ("text/markdown" in dict(fields).get("Description-Content-Type", ""), "it has no page in Markdown"),
            (
                "-manylinux" in wheel.name or "-macosx" in wheel.name or "-win" in wheel.name,
                "PyPI takes no such platform",
            ),
        ]
        wrong += [f"{wheel.name}: {fault}" for holds, fault in wanted if not holds]
    return wrong


def check_sizes() -> list[str]:
    return [
        f"{wheel.name} has {wheel.stat().st_size / 1e6:.0f} MB, more than {WHEEL_BYTES / 1e6:.0f}"
        for wheel in built(".whl")
        if wheel.stat().st_size > WHEEL_BYTES
    ]


def symbol_versions(listing: str) -> dict[str, tuple[int, ...]]:
    """The newest version of each library's symbols in what `readelf --version-info` or `objdump -T` prints."""
    newest: dict[str, tuple[int, ...]] = {}
    for library, number in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)\b", listing):
        newest[library] = max(newest.get(library, ()), tuple(int(part) for part in number.split(".")))
    return newest


def too_new(listing: str) -> list[str]:
    return [
        f"{library}_{'.'.join(map(str, found))} (at most {'.'.join(map(str, SYMBOLS[library]))})"
        for library, found in symbol_versions(listing).items()
        if found > SYMBOLS[library]
    ]


def check_symbols() -> list[str]:
    tool = shutil.which("readelf")
    if not tool:
        raise Skip("no readelf here (binutils)")
    wrong = []
    for wheel in [path for path in built(".whl") if "linux" in path.name]:
        with zipfile.ZipFile(wheel) as packed, tempfile.TemporaryDirectory() as folder:
            for entry in packed.infolist():
                with packed.open(entry) as file:
                    if file.read(4) != b"\x7fELF":
                        continue
                path = packed.extract(entry, folder)
                # Only what is asked for: a library that is static here may define versions of its own.
                # Its headings are in the language of the environment.
                command, plain = [tool, "--wide", "--version-info", path], {**os.environ, "LC_ALL": "C"}
                listing = subprocess.check_output(command, env=plain, text=True)
                needed = listing.partition("Version needs section")[2]
                wrong += [f"{wheel.name}: {entry.filename} needs {fault}" for fault in too_new(needed)]
    return wrong


# --- all of them ---

CheckFunction = Callable[[], list[str]]


def checks(tag: str | None, verify: bool) -> list[tuple[str, CheckFunction, str]]:
    """Name, check, and what to do when it fails."""
    yaml = (
        "{extends: default, rules: {line-length: {max: 130}, document-start: disable, truthy: {check-keys: false}}}"
    )
    workflows = sorted(WORKFLOWS.glob("*.yml"))
    recipe = ROOT / "packaging/conda/recipe.yaml"
    listed: list[tuple[str, CheckFunction, str]] = [
        ("versions agree", lambda: check_versions(tag), "make them the version in Cargo.toml"),
        ("what crates.io shows of crates", check_fields, "complete the [package] of these crates"),
        ("order of publishing", check_order, "let dependencies point one way, and give them versions"),
        ("crates can be packed", check_packages, "see: cargo package --workspace --no-verify"),
        (
            "licences of dependencies",
            check_licences,
            "read the licence, then allow it in deny.toml or drop the crate",
        ),
        ("cargo deny", check_deny, "see: cargo deny check"),
        ("workflows are pinned and restricted", check_workflows, "pin actions to a major version; state permissions"),
        ("actionlint", lambda: lint("actionlint", *workflows), "mend the workflow"),
        ("yamllint", lambda: lint("yamllint", "-s", "-d", yaml, *workflows, recipe), "mend the file"),
        ("shellcheck", lambda: lint("shellcheck", *sorted(ROOT.glob("scripts/*.sh")), ".ci/run"), "mend the script"),
        ("hadolint", lambda: lint("hadolint", "Containerfile"), "mend the Containerfile"),
        ("ruby", lambda: lint("ruby", "-c", "packaging/homebrew/wellread.rb"), "mend the formula"),
        ("metadata of wheels", check_metadata, "build the wheels anew: make wheel"),
        ("size of wheels", check_sizes, "find what has grown: unzip -v, and cargo bloat --crates"),
        ("twine", lambda: lint("twine", "check", "--strict", *built(".whl", ".tar.gz")), "mend pyproject.toml"),
        (
            "symbols of wheels",
            check_symbols,
            "build in a manylinux_2_28 container, as .github/workflows/wheels.yml does",
        ),
    ]
    if verify:
        listed += [
            ("cargo semver-checks", check_semver, "raise the version as far as it asks, or bring the names back"),
            ("crates build as published", check_builds, "see above"),
        ]
    return listed


def check(tag: str | None, verify: bool, only: list[str]) -> int:
    listed = checks(tag, verify)
    unknown = set(only) - {name for name, _, _ in listed}
    if unknown:
        print(f"no such check: {', '.join(sorted(unknown))}; there are: {', '.join(name for name, _, _ in listed)}")
        return 2
    failed = skipped = 0
    for name, function, remedy in listed:
        if only and name not in only:
            continue
        try:
            wrong = function()
        except Skip as reason:
            skipped += 1
            print(f"skipped  {name}: {reason}", flush=True)
            continue
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            wrong = [str(error)]
        if wrong:
            failed += 1
            more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            print(f"FAILED   {name}: {'; '.join(wrong[:5])}{more}. To do: {remedy}", flush=True)
        else:
            print(f"ok       {name}", flush=True)
    print(f"{failed} failed, {skipped} skipped")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="every check")
    checking.add_argument("--tag", help="the tag of the release, which has to fit the version")
    checking.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="this check, and others named so"
    )
    checking.add_argument("--verify", action="store_true", help="compile every crate as it would be published, too")
    telling = commands.add_parser("version", help="the version of this workspace")
    telling.add_argument("--python", action="store_true", help="as Python writes it")
    setting = commands.add_parser("set", help="writes another version wherever one is stated")
    setting.add_argument("new", metavar="VERSION")
    commands.add_parser("order", help="crates in the order of publishing")
    commands.add_parser("notes", help="what CHANGELOG.md says of this version")
    arguments = parser.parse_args()
    if arguments.command == "check":
        return check(arguments.tag, arguments.verify, arguments.only)
    if arguments.command == "version":
        print(python_version(version()) if arguments.python else version())
        return 0
    if arguments.command == "set":
        set_version(ROOT, version(), arguments.new)
        return 0
    if arguments.command == "order":
        print("\n".join(publish_order(publishable(workspace()))))
        return 0
    notes = changelog_section((ROOT / "CHANGELOG.md").read_text(), version())
    print(notes or f"wellread {version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
