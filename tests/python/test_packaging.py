"""Release workflows, recipe, formula and extras, as far as their texts tell (scripts/release.py)."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_release_compiles_crates_as_published_and_installs_the_source_distributions():
    """Before anything is published: both jobs stand before those that publish."""
    workflows = ROOT / ".github/workflows"
    release, wheels = ((workflows / f"{name}.yml").read_text() for name in ("release", "wheels"))
    check = release.split("\n  check:\n")[1].split("\n  wheels:\n")[0]
    assert '--verify --only "cargo semver-checks" --only "crates build as published"' in check
    sdist = wheels.split("\n  sdist:\n")[1].split("\n  use:\n")[0]
    assert "pip install dist/wellread-*.tar.gz dist/wellread_cli-*.tar.gz" in sdist and "check-installed.py" in sdist


def test_the_extra_bench_is_the_command_of_the_same_version(release):
    extras = release.read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    assert extras["bench"] == [f"wellread-cli=={release.version()}"]


def test_whatever_packs_the_program_packs_the_licences_of_its_crates():
    for file in ("Containerfile", "packaging/conda/recipe.yaml", "packaging/homebrew/wellread.rb"):
        text = (ROOT / file).read_text()
        assert text.index("cargo") < text.index("third_party.py") and text.count("THIRD-PARTY.txt") >= 2, file


def test_a_crate_that_is_there_twice_is_told(release):
    assert release.read_toml(ROOT / "deny.toml")["bans"]["multiple-versions"] == "warn"
