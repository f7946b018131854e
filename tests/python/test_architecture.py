"""docs/architecture.md and docs/architecture/: what they name is there, and they name every crate and folder."""

import re
import subprocess
from pathlib import Path

import pytest
from test_house import house

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "architecture.md", *sorted((ROOT / "docs" / "architecture").glob("*.md"))]
PAGE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
# Fenced blocks are pictures.
TEXT = re.sub(r"^```.*?^```", "", PAGE, flags=re.S | re.M)
CRATES = sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))
SECTIONS = {
    name: (int(lines.replace(",", "")), body)
    for name, lines, body in re.findall(r"^### (wellread[\w-]*), ([\d,]+) lines$(.*?)(?=^#|\Z)", TEXT, re.M | re.S)
}
PYTHON = ("python", "fuzz", "scripts", "tests", "benches")
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


def defined(of, function, text):
    """Whether a file has the function. It is that of the type or trait `of` where that is said. Else it is the
    only one of that name, or the only one outside of types."""
    if of:
        parts = re.findall(rf"^(?:impl|(?:pub\S* )?trait)\b[^{{]*\b{of}\b.*?^}}", text, re.M | re.S)
        return any(re.search(rf"\bfn {function}\b", part) for part in parts)
    found = re.findall(rf"^(.*)\b(?:fn|def) {function}\b", text, re.M)
    return len(found) == 1 or len([before for before in found if not before.startswith(" ")]) == 1


def code(file):
    """A file of Rust without its unit tests."""
    return re.split(r"^#\[cfg\(test\)\]\n(?:pub\S* )?mod \w+ {", file.read_text(encoding="utf-8"), flags=re.M)[0]


def sources(*crates):
    for crate in crates:
        source = ROOT / "crates" / crate / "src"
        yield from (file for file in source.rglob("*.rs") if not is_test(file.relative_to(source)))


def section(title):
    return re.search(rf"^##+ {title}$(.*?)(?=^#|\Z)", TEXT, re.M | re.S)[1]


# A flag in a line of code, behind commands that are named whole and text of the command line alone.
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
COMMANDS = re.compile(r"`[^`]*`|\b(?:wellread|aws) [a-z].*|--features|^\s*about: .*")


def test_messages_that_python_shows_name_options_and_no_flags():
    others = {"bench", "cli", "compare", "infer", "measure", "model", "report", "tasks", "train", "worker"}
    crates = [crate for crate in CRATES if crate.removeprefix("wellread-") not in others]
    assert {"wellread-store", "wellread-loader", "wellread-duckdb", "wellread-python"} <= set(crates)
    found = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in sources(*crates)
        for line in code(file).splitlines()
        if not line.lstrip().startswith("//") and FLAG.search(COMMANDS.sub("", line))
    ]
    assert not found, "name the option by `surface::option` or `option_as`:\n" + "\n".join(found)


# Files of crates that load with a condition variable, or a value that one thread makes for all: no batch waits there.
WAITS = r"\b(Condvar|Lazy)\b"
WAITS_OF_OTHERS = {
    "crates/wellread-store/src/features/row_id.rs": "columns are asked for before the first batch",
    "crates/wellread-store/src/byte_budget.rs": "images of a conversion wait for their writer",
}


# Pages that a program writes, or that say how things were once.
NOT_BY_HAND = ("docs/commands/", "docs/decisions/", "docs/results/", "docs/support.md", "docs/architecture/")


def test_files_that_list_codecs_are_named_for_a_new_one():
    files = set()
    for folder, ending in (("crates", "rs"), *((name, "py") for name in PYTHON), ("docs", "md")):
        for file in (ROOT / folder).rglob(f"*.{ending}"):
            name = file.relative_to(ROOT).as_posix()
            if file == Path(__file__) or name.startswith(NOT_BY_HAND) or "target" in file.parts:
                continue
            text = file.read_text(encoding="utf-8")
            lines = [line for line in text.splitlines() if not line.lstrip().startswith(("//", "#"))]
            files |= {name} if "packbits" in "\n".join(lines).lower() else set()
    assert len(files) > 12
    missing = files - set(spans(section("A new TIFF codec")))
    assert not missing, f'name in "A new TIFF codec" what is to be done in {sorted(missing)}'


# What gives a ratio its interval: methods of an estimator, the function for sides of processes, the one for rounds.
RATIOS = "|".join(
    [
        r"\.ratio\(&?\w[^)]*, ",
        r"\bnested::ratio\(",
        r"\.(?:ratio_of_medians|median_of_ratios)\(",
        r"(?<!fn )\bcompare\([^)]*Pairing::",
    ]
)


def test_files_that_compute_intervals_of_ratios_are_named():
    files = set()
    for file in sources(*CRATES):
        lines = [line for line in code(file).splitlines() if not line.lstrip().startswith("//")]
        files |= {str(file.relative_to(ROOT))} if re.search(RATIOS, "\n".join(lines)) else set()
    assert len(files) > 8
    missing = files - set(spans(section("The interval of a ratio")))
    assert not missing, f'name in "The interval of a ratio" what {sorted(missing)} compute'


def test_waits_are_named_or_are_none_of_a_batch():
    crates = ("wellread-loader", "wellread-store", "wellread-remote")
    files = {str(file.relative_to(ROOT)) for file in sources(*crates) if re.search(WAITS, code(file))}
    assert len(files) > 8
    assert not set(WAITS_OF_OTHERS) - files, "a reason for a file that has none"
    named = set(spans(section("Why a batch is late")))
    missing = files - named - set(WAITS_OF_OTHERS)
    assert not missing, f'name in "Why a batch is late" who waits in {sorted(missing)}'


def test_builds_without_places_name_every_scheme_that_is_registered():
    def schemes(macro, text):
        return re.findall(rf"^ *wellread_store::{macro}!\(\"(\w+)\"", text, re.M)

    registered = [scheme for file in sources("wellread-remote") for scheme in schemes("register_place", code(file))]
    assert {"s3", "https"} <= set(registered)
    absent = schemes("absent_place", (ROOT / "crates/wellread/src/engines.rs").read_text(encoding="utf-8"))
    assert sorted(absent) == sorted(registered), "name each in crates/wellread/src/engines.rs"


def test_exported_macros_name_their_crate_alone():
    # A program that depends on `wellread` alone can call them.
    macros = [
        f"{file.relative_to(ROOT)}: {name}{body}"
        for file in sources(*CRATES)
        for name, body in re.findall(
            r"^#\[macro_export\]\nmacro_rules! (\w+) (\{.*?^\})", file.read_text(encoding="utf-8"), re.M | re.S
        )
    ]
    assert len(macros) >= 10
    wrong = [macro.split("{")[0] for macro in macros if re.search(r"\bwellread_\w+::", macro)]
    assert not wrong, f"name it by `$crate::`: {wrong}"


def test_layouts_are_named_where_users_look_for_them():
    folder = ROOT / "crates/wellread-store/src/sites"
    files = re.findall(r"^ *&super::(\w+)::LAYOUT,$", (folder / "layouts.rs").read_text(encoding="utf-8"), re.M)
    texts = [(folder / f"{file}.rs").read_text(encoding="utf-8") for file in files]
    names = [re.search(r"static LAYOUT: Layout = Layout \{\s*name: \"([\w-]+)\"", text)[1] for text in texts]
    assert len(names) > 6

    def page(name):
        return " ".join((ROOT / name).read_text(encoding="utf-8").split())

    quoted, marked = [", ".join(f"{mark}{name}{mark}" for name in names) for mark in ('"', "`")]
    assert f"make images: {quoted}, or" in page("python/wellread/dataset.py")
    assert f"one microscope: {marked} |" in page("docs/formats/plates.md")
    listed = [row[0].strip("`") for row in rows((ROOT / "docs/howto/plates.md").read_text(encoding="utf-8"))]
    assert [name for name in listed if name in names] == names


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
            elif function := re.fullmatch(r"(?:(\w+)::)?(\w+)\(\)", span):
                seen += 1
                found = file and defined(*function.groups(), file.read_text(encoding="utf-8"))
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
    assert not folders - set(there), "say in docs/architecture/crates-*.md what lives there and what may not"
    missing = [name for name in there if not (source / name).exists()]
    assert not missing, missing
    assert len(there) == len(set(there)), "named twice"


def test_rows_of_folders_say_what_may_not_be_there():
    silent = [
        f"{crate}: {row[0]}"
        for crate, (_, body) in SECTIONS.items()
        for row in rows(body)
        if any(span.endswith("/") for span in spans(row[0])) and not row[2]
    ]
    assert not silent, "say what may not be there:\n" + "\n".join(silent)


def test_every_folder_beside_the_sources_is_named_with_what_may_not_be_there():
    # What is built or measured is not of the repository.
    of_git = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    paths = [file.split("/")[:-1] for file in of_git if "/" in file and not file.startswith(".")]
    # Folders deeper than that belong to the row of the one that they are in.
    deepest = {"crates": 1, "python": 1, "tests": 3}
    folders = {
        "/".join(path[:end]) + "/" for path in paths for end in range(1, 1 + min(len(path), deepest.get(path[0], 2)))
    }
    of_crates = {tuple(path[1:3]) for path in paths if path[0] == "crates" and len(path) > 2}
    table = {span: row for row in rows(section("Other folders")) for span in spans(row[0])}
    missing = folders - set(table) | {
        f"crates/{crate}/{folder}/"
        for crate, folder in of_crates
        if not {f"crates/*/{folder}/", f"crates/{crate}/{folder}/"} & set(table)
    }
    assert not missing, "say in docs/architecture/folders.md what lives there and what may not"
    assert all(any(ROOT.glob(name)) and row[1] and row[2] for name, row in table.items())


def test_every_folder_of_the_python_package_is_named_with_what_may_not_be_there():
    package = ROOT / "python" / "wellread"
    folders = {f"{file.parent.relative_to(ROOT).as_posix()}/" for file in package.rglob("*.py")}
    table = {span: row for row in rows(section(r"The Python package, [\d,]+ lines")) for span in spans(row[0])}
    assert set(table) == folders, "say in docs/architecture/crates-reading.md what lives there and what may not"
    assert all(row[1] and row[2] for row in table.values())


@pytest.mark.parametrize("crate", CRATES)
def test_every_top_level_file_of_a_crate_is_named(crate):
    source = ROOT / "crates" / crate / "src"
    files = {path.name for path in source.glob("*.rs")} - {"lib.rs", "main.rs"}
    assert not files - set(named(crate)), "say in docs/architecture/crates-*.md what lives there"


@pytest.mark.parametrize("crate", CRATES)
def test_lines_are_about_right(crate):
    files = (ROOT / "crates" / crate / "src").rglob("*.rs")
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert abs(lines - SECTIONS[crate][0]) <= 0.1 * SECTIONS[crate][0], f"{lines} lines: does the reason still hold?"


@pytest.mark.parametrize("crate", CRATES)
def test_lines_of_folders_are_about_right(crate):
    source = ROOT / "crates" / crate / "src"
    for folder, said in re.findall(r"`([\w/]+/)` \(([\d,]+)(?: lines)?\)", SECTIONS[crate][1]):
        files = (source / folder).rglob("*.rs")
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        assert lines == pytest.approx(int(said.replace(",", "")), rel=0.1), folder


def test_lines_of_the_python_package_are_about_right():
    said = re.search(r"^### The Python package, ([\d,]+) lines$", TEXT, re.M)[1]
    lines = house.of_crate(ROOT / "python" / "wellread")["lines"]
    assert lines == pytest.approx(int(said.replace(",", "")), rel=0.1)


PARTS = {"quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}


def test_shares_of_unit_tests_are_about_right():
    said = {
        crate: (more == "More than a", PARTS[part])
        for crate, (_, body) in SECTIONS.items()
        for more, part in re.findall(r"\b(A|An|More than a) (\w+) (?:of it )?is (?:unit )?tests\b", body)
    }
    assert len(said) >= 6
    for crate, (more, part) in said.items():
        found = house.of_crate(ROOT / "crates" / crate)
        one_in = found["lines"] / found["tests"]
        # One line in 5.6 is about a sixth, and more than one.
        assert (part - 1 < one_in < part) if more else abs(one_in - part) <= 0.5, (crate, one_in)


def test_all_lines_are_about_those_of_the_page():
    found = [house.of_crate(ROOT / "crates" / crate) for crate in CRATES]
    lines, tests = (sum(crate[what] for crate in found) for what in ("lines", "tests"))
    crates, said, part = re.search(
        r"^The (\d+) crates have ([\d,]+) lines in `crates/\*/src`, unit tests included\. "
        r"About one line in (\w+) is a unit test",
        PAGE,
        re.M,
    ).groups()
    assert int(crates) == len(CRATES)
    assert abs(lines - int(said.replace(",", ""))) <= 0.02 * lines, lines
    assert round(lines / tests) == {"five": 5, "six": 6, "seven": 7}[part]


def dependencies(crate):
    """The parts that the crate is built of; further needs of its tests are left out."""
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
