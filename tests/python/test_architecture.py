"""docs/architecture.md: paths and functions that it names are there, and it names every crate and folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# Fenced blocks are pictures.
TEXT = re.sub(r"^```.*?^```", "", PAGE, flags=re.S | re.M)
CRATES = sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))
SECTIONS = {
    name: (int(lines.replace(",", "")), body)
    for name, lines, body in re.findall(r"^### (wellread[\w-]*), ([\d,]+) lines$(.*?)(?=^##)", TEXT, re.M | re.S)
}
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"target"}
FILES = {path.name for folder in ("crates", "fuzz") for path in (ROOT / folder).rglob("*.rs")}


def spans(text):
    return re.findall(r"`([^`]+)`", text)


def rows(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", text, re.M)]


def named(crate):
    """The files and folders that stand in the first column of a crate's table."""
    return [span for row in rows(SECTIONS[crate][1]) for span in spans(row[0])]


def is_test(file):
    return file.name == "tests.rs" or "tests" in file.parts


def test_paths_are_there():
    wrong = []
    for span in spans(TEXT):
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", span) and span.split("/")[0] in FOLDERS:
            wrong += [] if (ROOT / span).exists() else [span]
        elif re.fullmatch(r"\w+\.rs", span):
            wrong += [] if span in FILES else [span]
    assert not wrong, wrong


def test_functions_are_in_the_files_before_them():
    wrong, seen = [], 0
    for line in TEXT.splitlines():
        file = None
        for span in spans(line):
            path = ROOT / span
            if "/" in span and path.is_file():
                file = path
            elif function := re.fullmatch(r"(\w+)\(\)", span):
                seen += 1
                found = file and re.search(rf"\b(fn|def) {function[1]}\b", file.read_text(encoding="utf-8"))
                wrong += [] if found else [f"{span} in {file}"]
            elif file and re.fullmatch(r"[A-Z_]{4,}", span):
                seen += 1
                text = file.read_text(encoding="utf-8")
                wrong += [] if f"static {span}:" in text or f"\n{span} = " in text else [f"{span} in {file}"]
    assert not wrong, "\n".join(wrong)
    assert seen > 50


def test_every_crate_has_a_section():
    assert sorted(SECTIONS) == CRATES


@pytest.mark.parametrize("crate", CRATES)
def test_every_folder_of_a_crate_is_named(crate):
    source = ROOT / "crates" / crate / "src"
    folders = {
        f"{file.parent.relative_to(source)}/"
        for file in source.rglob("*.rs")
        if file.parent != source and not is_test(file.relative_to(source))
    }
    there = named(crate)
    assert not folders - set(there), "say in docs/architecture.md what lives there and what may not"
    missing = [name for name in there if not (source / name).exists()]
    assert not missing, missing
    assert len(there) == len(set(there)), "named twice"


@pytest.mark.parametrize("crate", CRATES)
def test_every_top_level_file_of_a_crate_is_named(crate):
    source = ROOT / "crates" / crate / "src"
    files = {path.name for path in source.glob("*.rs")} - {"lib.rs", "main.rs"}
    assert not files - set(named(crate)), "say in docs/architecture.md what lives there"


@pytest.mark.parametrize("crate", CRATES)
def test_lines_are_about_right(crate):
    files = (ROOT / "crates" / crate / "src").rglob("*.rs")
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert abs(lines - SECTIONS[crate][0]) <= 0.1 * SECTIONS[crate][0], f"{lines} lines: does the reason still hold?"


def dependencies(crate):
    """What the crate is built of; what its tests need besides is left out."""
    manifest = (ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8")
    sections = re.findall(r"^\[(?:target\..*\.)?dependencies\]$(.*?)(?=^\[|\Z)", manifest, re.M | re.S)
    return {name for section in sections for name in re.findall(r"^([\w-]+)", section, re.M)}


def test_crates_import_lower_layers_and_what_their_row_names():
    table = {row[1].strip("`"): (int(row[0]), set(spans(row[2]))) for row in rows(TEXT) if row[0].isdigit()}
    assert sorted(table) == CRATES
    for crate, (layer, imported) in table.items():
        assert dependencies(crate) & set(CRATES) == imported, crate
        for other in imported:
            assert table[other][0] < layer, f"{crate} and {other}: not a lower layer"
