"""Parts of a release: order of crates, versions, licences, workflows; and that the checks find what is wrong.

Nothing is built and nothing is asked of the network.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/release.py"

needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo on this machine")


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def crate(name, *needs, publish=None, dev=()):
    dependencies = [{"name": need, "kind": None, "req": "^1"} for need in needs]
    dependencies += [{"name": need, "kind": "dev", "req": "*"} for need in dev]
    return {"name": name, "dependencies": dependencies, "publish": publish}


def test_crates_come_after_what_they_need(release):
    crates = [crate("a", "b", "c"), crate("b", "d"), crate("c", "d", "elsewhere"), crate("d", dev=["a"])]
    assert release.publish_order(crates) == ["d", "b", "c", "a"]
    with pytest.raises(ValueError, match="need each other: a, b$"):
        release.publish_order([crate("a", "b"), crate("b", "a"), crate("c")])


@needs_cargo
def test_the_order_of_this_workspace_is_one_in_which_it_can_be_published(release):
    told = subprocess.check_output([sys.executable, SCRIPT, "order"], text=True).split()
    crates = {package["name"]: package for package in release.workspace()}
    folders = {folder.parent.name for folder in ROOT.glob("crates/*/Cargo.toml")}
    # The native module of the Python package is the one crate that is published in another way.
    assert set(told) == folders - {"wellread-python"} == set(crates) - {"wellread-python"}
    assert len(told) == len(set(told))
    for place, name in enumerate(told):
        own = {d["name"] for d in crates[name]["dependencies"] if d["name"].startswith("wellread")}
        assert own <= set(told[:place]), f"{name} comes before {own - set(told[:place])}"
    assert told[-1] == "wellread-cli"


@needs_cargo
def test_all_places_state_one_version(release):
    stated = release.versions()
    assert {"CITATION.cff", "packaging/conda/recipe.yaml", "packaging/homebrew/wellread.rb"} <= set(stated)
    assert set(stated.values()) == {release.version()} and len(stated) > 30, stated
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", release.version())
    assert release.check_versions(None) == []
    (wrong, *_) = release.check_versions("v99.0.0")
    assert wrong == f"the tag is v99.0.0, not v{release.version()}"


def test_another_version_is_written_wherever_one_is_stated(release, tmp_path):
    old, new = release.version(), "27.1.3-rc.1"
    for file in release.STATED:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    release.set_version(tmp_path, old, new)
    crates = len(list(ROOT.glob("crates/*/Cargo.toml")))
    own = [d for d in release.read_toml(ROOT / "Cargo.toml")["workspace"]["dependencies"].values() if "path" in d]
    for file in release.STATED:
        before, after = (ROOT / file).read_text().splitlines(), (tmp_path / file).read_text().splitlines()
        changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        assert len(changed) == {"Cargo.toml": len(own) + 1, "Cargo.lock": crates}.get(file, 1), (file, changed)
        assert all(b == a.replace(old, new) for a, b in changed), (file, changed)
    with pytest.raises(SystemExit, match="no version"):
        release.set_version(tmp_path, new, "2")


def test_versions_of_pre_releases_are_written_as_python_does(release):
    written = {"0.2.0": "0.2.0", "0.2.0-rc.1": "0.2.0rc1", "1.0.0-alpha.12": "1.0.0a12", "1.0.0-beta.3": "1.0.0b3"}
    assert {version: release.python_version(version) for version in written} == written


def test_sections_of_the_changelog(release):
    text = "# Changelog\n\n## Unreleased\n\n* new\n\n## 0.1.10\n\n* ten\n\n## 0.1.1 (2026-12-01)\n\n* one\n* two\n"
    assert release.changelog_section(text, "0.1.1") == "* one\n* two"
    assert release.changelog_section(text, "Unreleased") == "* new"
    assert release.changelog_section(text, "0.1") is None


ALLOWED = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Zlib"}
EXPRESSIONS = {
    "MIT": True,
    "GPL-3.0": False,
    "MIT OR GPL-3.0": True,
    "MIT AND GPL-3.0": False,
    "GPL-3.0/MIT": True,
    "Apache-2.0 / MIT": True,
    "Apache-2.0 WITH LLVM-exception": True,
    "MIT WITH LLVM-exception": False,
    "(MIT OR GPL-3.0) AND Zlib": True,
    "MIT OR GPL-3.0 AND GPL-2.0": True,  # AND binds closer
    "(MIT OR GPL-3.0) AND GPL-2.0": False,
    "Zlib AND (GPL-3.0 OR (MIT AND Apache-2.0))": True,
    "": False,
    "MIT MIT": False,
    "(MIT": False,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_licence_expressions(release, expression):
    assert release.is_allowed(expression, ALLOWED) == EXPRESSIONS[expression]


@needs_cargo
def test_the_licences_of_all_dependencies_are_allowed(release):
    allowed = release.allowed_licences()
    assert {"MIT", "Apache-2.0", "BSD-3-Clause"} <= allowed
    assert not any(word in licence for licence in allowed for word in ("GPL", "MPL", "proprietary"))
    try:
        packages = release.dependencies()
    except release.Skip as reason:
        pytest.skip(str(reason))
    assert len(packages) > 300
    assert release.check_licences() == []


@needs_cargo
def test_crates_have_what_crates_io_shows(release):
    assert release.check_fields() == []
    assert release.check_order() == []


def test_workflows_are_pinned_and_restricted(release):
    assert len(list((ROOT / ".github/workflows").glob("*.yml"))) >= 4
    assert release.check_workflows() == []
    loose = "on: push\njobs:\n  a:\n    steps:\n      - uses: actions/checkout@main\n      - uses: ./local/a.yml\n"
    assert release.workflow_faults("a.yml", loose) == [
        "a.yml: actions/checkout@main is not pinned to a major version",
        "a.yml has no permissions",
        "a.yml has no concurrency",
    ]


def test_free_threaded_python_has_a_wheel_that_is_tried():
    """Each Python gets the wheel that fits it: one that does not would be refused by its name."""
    wheels = (ROOT / ".github/workflows/wheels.yml").read_text()
    build, use = wheels.split("\n  use:\n")
    assert len(re.findall(r"args: --release .*--features engines --interpreter python3\.14t$", build, re.M)) == 1
    assert re.search(r'python: \[.*"3\.14", "3\.14t"\]', use)
    assert "--no-index --find-links dist wellread wellread-cli" in use and "dist/*" not in use


def test_the_package_s_tests_run_with_the_wheels_alone():
    """In a release, before anything is published, and with nothing of the clone's own package on the path."""
    wheels = (ROOT / ".github/workflows/wheels.yml").read_text()
    assert "make test-wheel" in wheels.split("\n  tests:\n")[1]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", "--dry-run", "test-wheel", "CACHE=/c"]
    told = subprocess.check_output(command, cwd=ROOT, env=plain, text=True)
    *_, install, run = told.replace("\\\n", "").splitlines()
    assert "--no-index" in install and install.endswith("--find-links dist   wellread wellread-cli")
    assert "env -u PYTHONPATH -u CARGO_TARGET_DIR" in run and "/c/wheel/bin/python" in run
    assert "tests/python/test_package_*.py" in run


LISTING = """
Version symbols section '.gnu.version' contains 3 entries:
  002:   2 (GLIBC_2.2.5)       3 (GLIBC_2.28)
Version needs section '.gnu.version_r' contains 2 entries:
  0x0010:   Name: GLIBC_2.28  Flags: none  Version: 12
  0x0020:   Name: GLIBC_2.4  Flags: none  Version: 9
  0x0030:   Name: GLIBCXX_3.4.9  Flags: none  Version: 7
  0x0040:   Name: GLIBC_PRIVATE  Flags: none  Version: 5
"""


def test_symbols_that_are_too_new_are_found(release):
    assert release.symbol_versions(LISTING) == {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 9)}
    assert release.too_new(LISTING) == []
    newer = LISTING + "  0x0050:   Name: GLIBC_2.34  Flags: none\n  0x0060:   Name: GLIBCXX_3.4.30\n"
    assert release.too_new(newer) == ["GLIBC_2.34 (at most 2.28)", "GLIBCXX_3.4.30 (at most 3.4.24)"]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf here (binutils)")
def test_a_wheel_is_read(release, tmp_path, monkeypatch):
    """A wheel of this Python's own program and of metadata that differ: both checks read what is in it."""
    monkeypatch.setattr(release, "built", lambda *endings: sorted(tmp_path.glob("*.whl")))
    monkeypatch.setitem(release.SYMBOLS, "GLIBC", (2, 1))
    about = "Metadata-Version: 2.4\nName: wellread\nVersion: 9.9.9\nRequires-Python: >=3.10\n\nA page\n"
    with zipfile.ZipFile(tmp_path / "wellread-9.9.9-cp310-abi3-linux_x86_64.whl", "w") as packed:
        packed.write(Path(sys.executable).resolve(), "wellread/program")
        packed.writestr("wellread/text.py", "GLIBC_2.99")
        packed.writestr("wellread-9.9.9.dist-info/METADATA", about)
    faults = release.check_symbols()
    assert len(faults) == 1 and re.search(r"wellread/program needs GLIBC_2\.\d+ \(at most 2\.1\)$", faults[0]), faults
    told = "; ".join(release.check_metadata())
    for part in (
        "its version is not",
        "licence files are missing",
        "the licences of its crates are missing",
        "its extras differ",
        "PyPI takes no such platform",
    ):
        assert part in told, told
    assert "Requires-Python" not in told


def test_a_check_prints_one_line_and_the_exit_code_says_whether_one_failed(release, capsys, monkeypatch):
    def skipped():
        raise release.Skip("no tool here")

    listed = [
        ("good", list, ""),
        ("bad", lambda: [f"fault {number}" for number in range(7)], "mend it"),
        ("absent", skipped, ""),
    ]
    monkeypatch.setattr(release, "checks", lambda tag, verify: listed)
    assert release.check(None, False, []) == 1
    assert capsys.readouterr().out.splitlines() == [
        "ok       good",
        "FAILED   bad: fault 0; fault 1; fault 2; fault 3; fault 4; and 2 more. To do: mend it",
        "skipped  absent: no tool here",
        "1 failed, 1 skipped",
    ]
    assert release.check(None, False, ["good", "absent"]) == 0
    assert release.check(None, False, ["god"]) == 2
    assert "no such check: god" in capsys.readouterr().out


CARGO = """#!/usr/bin/env bash
# Publishes to a file, as crates.io would answer: the second crate is there already, the third has to wait once.
if [[ $1 != publish ]]; then exec REAL "$@"; fi
crate=${*: -1}
[[ $crate != SECOND ]] || { echo "error: crate $crate@0.1.0 already exists" >&2; exit 101; }
[[ $crate != THIRD || -e WAITED ]] || { touch WAITED; echo "status 429 Too Many Requests" >&2; exit 101; }
[[ $crate != FIFTH ]] || { echo "error: no token" >&2; exit 101; }
echo "$crate" >> PUBLISHED
"""


@needs_cargo
def test_publishing_leaves_what_is_there_waits_and_stops_at_an_error(release, tmp_path):
    order = release.publish_order(release.publishable(release.workspace()))
    names = {"SECOND": order[1], "THIRD": order[2], "FIFTH": order[4]}
    names |= {"REAL": shutil.which("cargo"), "WAITED": tmp_path / "waited", "PUBLISHED": tmp_path / "published"}
    script = re.sub("|".join(names), lambda found: str(names[found.group()]), CARGO)
    (tmp_path / "cargo").write_text(script)
    (tmp_path / "cargo").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PUBLISH_PAUSE": "0"}
    done = subprocess.run([ROOT / "scripts/publish-crates.sh"], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "no token" in done.stderr
    assert (tmp_path / "published").read_text().split() == [order[0], order[2], order[3]]
    assert f"{order[1]} is published already" in done.stdout and f"{order[2]} has to wait" in done.stdout


CARGO_DENY = """#!/bin/sh
[ "$1" = deny ] || exit 9
printf '%b' 'SAID' >&2
exit CODE
"""


@pytest.mark.parametrize(
    ("code", "said", "faults"),
    [
        (0, r"error: of no account\n", []),
        (1, r"error[a]: one\n  here\nerror[b]: two\n", ["error[a]: one", "error[b]: two"]),
        (2, r"[ERROR] failed to load config\n", ["[ERROR] failed to load config"]),
        (2, r"1\n2\n3\n4\n5\n6\n", ["2", "3", "4", "5", "6"]),
        (101, "", ["cargo deny failed"]),
    ],
)
def test_whatever_cargo_deny_says_when_it_fails_is_a_fault(release, tmp_path, monkeypatch, code, said, faults):
    (tmp_path / "cargo").write_text(CARGO_DENY.replace("SAID", said).replace("CODE", str(code)))
    (tmp_path / "cargo-deny").write_text("#!/bin/sh\n")
    for name in ("cargo", "cargo-deny"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert release.check_deny() == faults


def test_advisories_are_checked_where_their_database_is(release, tmp_path, monkeypatch):
    (tmp_path / "cargo").write_text('#!/bin/sh\necho "$*" > asked\n')
    (tmp_path / "cargo-deny").write_text("#!/bin/sh\n")
    for name in ("cargo", "cargo-deny"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(release, "ROOT", tmp_path)
    asked = "deny --offline check licenses bans sources"
    assert release.check_deny() == [] and (tmp_path / "asked").read_text() == f"{asked}\n"
    (tmp_path / "home/advisory-dbs/of-rustsec").mkdir(parents=True)
    assert release.check_deny() == [] and (tmp_path / "asked").read_text() == f"{asked} advisories\n"


def test_public_names_are_compared_with_the_last_release(release, tmp_path, monkeypatch):
    """Those of the crates that go to crates.io, with the newest tag before this commit. The tool is a stand-in."""
    (tmp_path / "cargo").write_text(
        '#!/bin/sh\necho "$*" > asked\n'
        "printf -- '--- failure inherent_method_missing: one ---\\n  that\\nSummary two\\n'\nexit $(cat code)\n"
    )
    (tmp_path / "cargo").chmod(0o755)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    for line in (["init", "-q"], *[["commit", "-q", "--allow-empty", "-m", word] for word in ("one", "two")]):
        subprocess.run([*git, *line], cwd=tmp_path, check=True)
    # Not where a developer may have installed it.
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(shutil.which('git')).parent}:/usr/bin:/bin")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "workspace", lambda: [crate("a"), crate("native", publish=[])])
    with pytest.raises(release.Skip, match="no cargo-semver-checks here"):
        release.check_semver()
    (tmp_path / "cargo-semver-checks").write_text("#!/bin/sh\n")
    (tmp_path / "cargo-semver-checks").chmod(0o755)
    # The release that this commit is has its tag already.
    subprocess.run([*git, "tag", "v0.2.0"], cwd=tmp_path, check=True)
    with pytest.raises(release.Skip, match="no release to compare with"):
        release.check_semver()
    subprocess.run([*git, "tag", "v0.1.0", "HEAD~1"], cwd=tmp_path, check=True)
    (tmp_path / "code").write_text("0")
    assert release.check_semver() == []
    assert (tmp_path / "asked").read_text() == "semver-checks --workspace --baseline-rev v0.1.0 --exclude native\n"
    (tmp_path / "code").write_text("1")
    assert release.check_semver() == ["--- failure inherent_method_missing: one ---"]
    # It compiles, so it is no check of every day.
    assert "cargo semver-checks" not in {name for name, _, _ in release.checks(None, False)}
    assert "cargo semver-checks" in {name for name, _, _ in release.checks(None, True)}


def test_a_wheel_that_has_grown_is_a_fault(release, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "built", lambda *endings: sorted(tmp_path.glob("*.whl")))
    for name, size in (("small", release.WHEEL_BYTES), ("large", release.WHEEL_BYTES + 2_000_000)):
        with open(tmp_path / f"{name}.whl", "wb") as file:
            file.truncate(size)
    assert release.WHEEL_BYTES == 60_000_000
    assert release.check_sizes() == ["large.whl has 62 MB, more than 60"]
    assert "size of wheels" in {name for name, _, _ in release.checks(None, False)}


@pytest.mark.parametrize(("version", "written"), [("0.2.0", "0.2.0"), ("0.2.0-rc.1", "0.2.0rc1")])
def test_what_a_release_has_to_download(tmp_path, version, written):
    """By the scripts of a tree that has this version, and what they pack of it."""
    dist, out, tree = tmp_path / "dist", tmp_path / "out", tmp_path / "tree"
    dist.mkdir()
    packed_too = ("LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "crates/wellread-cli/README.md")
    for file in ("scripts/release.py", "scripts/release-assets.sh", *packed_too):
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tree / file)
    (tree / "Cargo.toml").write_text(f'[workspace.package]\nversion = "{version}"\n')
    (tmp_path / "sbom.json").write_text("{}")
    for target in ("x86_64", "aarch64"):
        name = f"wellread_cli-{written}"
        with zipfile.ZipFile(dist / f"{name}-py3-none-manylinux_2_28_{target}.whl", "w") as packed:
            packed.writestr(f"{name}.data/scripts/wellread", f"the program for {target}")
            packed.writestr(f"{name}.dist-info/licenses/THIRD-PARTY.txt", "licences of others")
    command = [tree / "scripts/release-assets.sh", dist, tmp_path / "sbom.json", out]
    subprocess.run(command, check=True, capture_output=True)
    packs = {f"wellread-{version}-{target}-unknown-linux-gnu.tar.gz": target for target in ("aarch64", "x86_64")}
    assert {path.name for path in out.iterdir()} == {"SHA256SUMS", *packs, f"wellread-{version}.cdx.json"}
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=out, check=True, capture_output=True)
    for pack, target in packs.items():
        subprocess.run(["tar", "xzf", pack], cwd=out, check=True)
        folder = out / pack.removesuffix(".tar.gz")
        assert {path.name for path in folder.iterdir()} >= {
            "wellread",
            "LICENSE-MIT",
            "LICENSE-APACHE",
            "THIRD-PARTY.txt",
        }
        assert os.access(folder / "wellread", os.X_OK)
        assert (folder / "wellread").read_text() == f"the program for {target}"


def test_both_packages_show_what_a_page_of_pypi_needs(release):
    for name, path in release.PYTHON_PACKAGES.items():
        project = release.read_toml(path)["project"]
        assert project["name"] == name and project["requires-python"] == ">=3.10"
        assert {"Documentation", "Changelog", "Issues", "Repository"} <= set(project["urls"])
        versions = [c.rsplit(" ", 1)[1] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
        assert versions == ["3.10", "3.11", "3.12", "3.13", "3.14"]
        for licence in project["license-files"]:
            assert (path.parent / licence).read_text() == (ROOT / licence).read_text()
        # PyPI resolves no relative links.
        page = (path.parent / project["readme"]).read_text()
        assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", page))
    extras = release.read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    assert set(extras) == {"torch", "jax", "ray", "lightning", "duckdb", "bench"}
    assert extras["duckdb"] == ["duckdb>=2.0"]
