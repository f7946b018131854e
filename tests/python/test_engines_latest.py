"""`make engines-latest`: its stamps are those of the crates, and it judges files of the releases that tests have."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location("engines_latest", ROOT / "scripts" / "engines_latest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["engines_latest"] = module
    spec.loader.exec_module(module)
    return module


latest = load()


@pytest.fixture(scope="module")
def small():
    return [images for images in latest.make_sets() if images.name == "uint16"]


@pytest.fixture(scope="module")
def library():
    return {latest.duckdb.__version__: latest.Wellread(sys.executable)}


def default_of(package):
    (found,) = [one for one in latest.variants() if (one.package, one.name) == (package, "default")]
    return found


@pytest.mark.parametrize(
    ("package", "stamps"),
    [("pylance", {"RELEASE", "FORMAT"}), ("vortex-data", {"FORMAT"}), ("duckdb", {"RELEASE", "STORAGE"})],
)
def test_files_of_the_releases_here_are_read_past_the_library_and_rightly(package, stamps, small, library, tmp_path):
    variant = default_of(package)
    assert set(latest.stamps(variant.ending)) == stamps
    (row,) = latest.run(variant, small, library, tmp_path)
    assert (row.problems, row.refused, row.files) == ([], [], 1)
    assert row.readers == {"own reader"}
    assert latest.newer_than_stamps([row]) == []


def test_a_stamp_that_is_behind_is_named_with_what_it_can_be_raised_to(monkeypatch, small, library, tmp_path):
    (row,) = latest.run(default_of("duckdb"), small, library, tmp_path)
    newest = row.declared[0]["RELEASE"]
    known = latest.stamps("duckdb")
    monkeypatch.setattr(latest, "STAMPED", ("duckdb",))
    monkeypatch.setattr(latest, "stamps", lambda ending: known | {"RELEASE": ("1.0", known["RELEASE"][1])})
    major, minor = latest.numbers(newest)[:2]
    (line,) = latest.newer_than_stamps([row])
    assert line.strip() == f'crates/wellread-duckdb/src/file.rs: RELEASE from "1.0" to "{major}.{minor}"'
    # The program reads such a file without a note, which the stamp would have it say.
    latest.check(
        library[latest.duckdb.__version__], tmp_path / row.variant.folder / "uint16.duckdb", None, *small, row
    )
    assert [problem.split(": ", 1)[1] for problem in row.problems] == [
        "newer than the stamps ['RELEASE'], and the program says nothing of it"
    ]
