"""The structure: no imports in circles, no format that names the file system, and a reader that finds both."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location("house", ROOT / "scripts" / "house.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    return module


house = load()
# Crates whose heads show their layers.
LAYERED = ("bench", "cli", "compare", "duckdb", "infer", "loader", "python", "store")
FOLDERS = [path.parent for path in sorted(ROOT.glob("crates/*/Cargo.toml"))] + [ROOT / "python" / "wellread"]


@pytest.mark.parametrize("folder", FOLDERS, ids=house.label)
def test_nothing_imports_in_a_circle(folder):
    found = house.of_crate(folder)
    assert found["lines"] > 100 and found["files"] > 0
    assert [circle["ties"] for circle in found["circles"]] == []
    assert [circle["ties"] for circle in found["circles_of_rooms"]] == []


def test_no_import_goes_up_in_the_layers_that_heads_show():
    found = {folder.name: house.of_crate(folder) for folder in FOLDERS}
    assert {name: crate["upward"] for name, crate in found.items() if crate["upward"]} == {}
    shown = {name: crate["layers"] for name, crate in found.items() if crate["layers"]}
    assert {f"wellread-{name}" for name in LAYERED} <= set(shown)
    for name, layers in shown.items():
        source = ROOT / "crates" / name / "src"
        modules = {path.stem for path in source.iterdir()} - {"lib", "main"}
        named = [module for layer in layers for module in layer]
        assert set(named) <= modules and len(named) == len(set(named)), name


PICTURE = """//! Imports go one way, from above to below:
//!
//! ```text
//!  one · two …  the first ones
//!  three        the last one
//! ```
mod one;
mod two;
mod three;
mod between;
"""
TABLE = """//! | layer | module | what it holds |
//! |---|---|---|
//! | high | [`one`] | the first one, unlike `three` |
//! | | `two`, [`Two`] | as much |
//! | low | [`three`](mod@three) | the last one |
mod one;
"""


def test_layers_of_heads_are_read_and_imports_that_go_up_are_found(tmp_path):
    assert house.layers(PICTURE) == [["one", "two"], ["three"]]
    assert house.layers(TABLE) == [["one", "two", "Two"], ["three"]]
    assert house.layers("//! Nothing.\n") == []
    files = {"lib.rs": PICTURE, "one.rs": "use crate::three::A;\nuse crate::two::B;\n", "two.rs": "pub struct B;\n"}
    files |= {"between.rs": "use crate::two::B;\npub fn f(_: B) {}\n", "three.rs": "pub struct A;\n"}

    def found():
        arrows(tmp_path, files)
        taken = house.imports(tmp_path)
        between, modules = house.rooms(tmp_path, taken), house.modules_of(tmp_path, taken)
        return house.upward(house.layers(files["lib.rs"]), between, modules)

    assert found() == ["between stands in no layer"]
    files["lib.rs"] = PICTURE.replace("//!  one ", "//!  between      uses two\n//!  one ")
    assert house.layers(files["lib.rs"]) == [["between"], ["one", "two"], ["three"]]
    assert found() == []
    files["three.rs"] = "pub struct A;\nfn g() { crate::between::f() }\n"
    assert found() == ["three -> between"]
    files["lib.rs"] += "#[cfg(test)]\nmod given;\n"
    files["given.rs"] = ""
    assert found() == ["three -> between"]
    files["lib.rs"] = "mod one;\nmod two;\nmod three;\nmod between;\n"
    assert found() == []


def test_tables_of_modules_in_heads_name_every_module():
    """A module that the table of a head leaves out is not found by who starts there."""
    missing, tables = {}, 0
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        text = path.read_text(encoding="utf-8")
        head = "\n".join(line for line in text.splitlines() if line.startswith("//!"))
        if not re.search(r"\| module \|", head):
            continue
        tables += 1
        modules = re.findall(r"(?<!#\[cfg\(test\)\]\n)^(?:pub(?:\([^)]*\))? )?mod (\w+);$", text, re.MULTILINE)
        named = re.findall(r"`(?:mod@)?(\w+)(?:\(\))?`", head)
        if lacks := [module for module in modules if module not in named]:
            missing[str(path.relative_to(ROOT))] = lacks
    assert tables > 20
    assert missing == {}


def test_every_long_file_says_why():
    long = {file: lines for folder in FOLDERS for file, lines in house.of_crate(folder)["long"].items()}
    long |= {str(file.relative_to(ROOT)): lines for file, lines in house.long_files(house.beside(ROOT)).items()}
    assert long == {}, "split the file, or say in its head why it is one: Long because …"


def test_reasons_stand_in_heads_and_files_beside_the_sources_need_them_too(tmp_path):
    body = "a\n" * (house.LONG + 1)
    files = {
        "tests/a.py": f'"""Tests.\n\nLong because it is.\n"""\n{body}',
        "tests/deep/b.py": f'"""Tests."""\n# Long because it is.\n{body}',
        "scripts/c.sh": f"# Long because it is.\n{body}",
        "crates/x/tests/it/d.rs": f"//! Tests.\n//!\n//! Long because they are.\n{body}",
        "crates/x/tests/it/e.rs": f"//! Tests.\n\n//! Long because they are.\n{body}b\n",
        "fuzz/target/f.rs": body,
        "docs/g.py": body,
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    long = house.long_files(house.beside(tmp_path))
    found = {str(file.relative_to(tmp_path)): lines for file, lines in long.items()}
    assert found == {"crates/x/tests/it/e.rs": house.LONG + 5, "tests/deep/b.py": house.LONG + 3}


def test_formats_read_and_write_through_places_alone():
    past = house.past_places(ROOT / "crates")
    wrong = {name: lines for name, lines in past.items() if not house.is_excepted(name)}
    assert wrong == {}, "use wellread_store::place, so that another place than the file system touches no format"
    unneeded = [place for place in house.PAST_PLACES if not any(name.startswith(place) for name in past)]
    assert unneeded == [], "no file there names the file system any more"


def test_a_store_that_wraps_another_can_forget_no_method():
    """The compiler asks for every method of `Store` but two, which follow from others and which no store replaces."""
    source = (ROOT / "crates" / "wellread-store" / "src" / "store.rs").read_text()
    (trait,) = re.findall(r"^pub trait Store: .*?^}$", source, re.DOTALL | re.MULTILINE)
    derived = re.findall(r"^    fn (\w+)\([^;{]*\{$", trait, re.MULTILINE)
    assert derived == ["is_empty", "bytes_on_disk"]
    stores = 0
    for path in ROOT.glob("crates/*/*/**/*.rs"):
        for block in re.findall(r"^impl Store for .*?^}$", path.read_text(), re.DOTALL | re.MULTILINE):
            stores += 1
            assert not set(derived) & set(re.findall(r"^    fn (\w+)", block, re.MULTILINE)), path
    assert stores > 20


def test_names_of_the_file_system_are_found(tmp_path):
    text = """
use std::fs::File;
fn f() { OpenFile::open(path); place::exists(&path); } // fs::read
fn g(path: &Path) -> bool { path.is_dir() && File::open(path).is_ok() }
#[cfg(test)]
mod tests { fn h() { std::fs::read("a").unwrap(); } }
fn i() { OpenOptions::new(); }
fn j(path: &Path) { path.try_exists(); place::metadata(path); }
fn k() { libc::statvfs(); tempfile::tempdir(); }
"""
    for name in ("a.rs", "tests.rs"):
        file = tmp_path / "wellread-store" / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert house.past_places(tmp_path) == {"wellread-store/src/a.rs": [2, 4, 7, 8, 9]}


def arrows(folder, files):
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return {
        (str(file.relative_to(folder)), str(target.relative_to(folder)))
        for file, targets in house.imports(folder).items()
        for target in targets
    }


def test_an_import_ends_at_the_file_that_defines_the_name(tmp_path):
    found = arrows(
        tmp_path,
        {
            "lib.rs": "pub mod a;\nmod b;\nmod deep;\npub use b::{One, inner::Two as Other};\npub use deep::*;\n",
            "a.rs": 'use crate::{One, Other};\nuse crate::Three;\nfn f() { let a = "crate::b::One"; } // crate::b\n',
            "b/mod.rs": "pub mod inner;\npub struct One;\n",
            "b/inner.rs": "pub enum Two { X }\npub(crate) fn g() {}\n",
            "deep.rs": "pub struct Three;\nfn h() { super::b::inner::g(); self::i(); }\nfn i() {}\n",
        },
    )
    assert found == {
        ("a.rs", "b/mod.rs"),
        ("a.rs", "b/inner.rs"),
        ("a.rs", "deep.rs"),
        ("deep.rs", "b/inner.rs"),
    }


def test_unit_tests_are_counted_and_nothing_else_is(tmp_path):
    (tmp_path / "a").mkdir()
    files = {
        "lib.rs": "mod a;\n\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod given;\n#[cfg(unix)]\nmod b;\n",
        # A line that ends a text is no end of an item, and a comment is no attribute.
        "a.rs": 'fn a() {}\n// #[cfg(test)]\n\n#[cfg(test)]\nmod tests {\n    const X: &str = "}";\n}\n\nfn b() {}\n',
        "a/tests.rs": "one\ntwo\n",
        "b.rs": "fn b() {}\n",
        "given.rs": "fn given() {}\n",
        "tests.rs": "one\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    # Of lib.rs two items of two lines, of a.rs one of four; and three whole files.
    assert house.unit_tests(tmp_path) == 4 + 4 + 2 + 1 + 1


def test_a_circle_is_found_and_tests_do_not_close_one(tmp_path):
    files = {
        "lib.rs": "mod a;\nmod b;\nmod c;\n",
        "a.rs": "use super::b::Low;\npub struct High;\npub enum Kind { One }\n",
        "b.rs": "use crate::c;\npub struct Low;\n#[cfg(test)]\nmod tests {\n    use crate::a::High;\n}\n",
        "c.rs": "pub const N: usize = 1;\n",
    }
    assert arrows(tmp_path, files) == {("a.rs", "b.rs"), ("b.rs", "c.rs")}
    assert house.circles(house.imports(tmp_path)) == []
    files["c.rs"] = "fn f() -> bool { matches!(g(), crate::a::Kind::One) }\n"
    assert ("c.rs", "a.rs") in arrows(tmp_path, files)
    (circle,) = house.circles(house.imports(tmp_path))
    assert [file.name for file in circle] == ["a.rs", "b.rs", "c.rs"]


def test_folders_that_need_each_other_are_a_circle_of_rooms(tmp_path):
    arrows(
        tmp_path,
        {
            "lib.rs": "mod a;\nmod b;\n",
            "a/mod.rs": "pub mod one;\npub mod two;\n",
            "a/one.rs": "use crate::b::three::Three;\n",
            "a/two.rs": "pub struct Two;\n",
            "b/mod.rs": "pub mod three;\n",
            "b/three.rs": "pub use crate::a::two::Two;\npub struct Three(crate::a::two::Two);\n",
        },
    )
    found = house.imports(tmp_path)
    assert house.circles(found) == []
    assert house.circles(house.rooms(tmp_path, found)) == [["a", "b"]]


def test_folders_of_a_python_package_that_need_each_other_are_a_circle(tmp_path):
    package = tmp_path / "parcel"
    files = {
        "__init__.py": "from .low import one\n",
        "low/__init__.py": "",
        "low/base.py": "X = 1\n",
        "low/one.py": "from . import left\n",
        "low/left/__init__.py": "from ..base import X\n",
        "low/left/two.py": "Y = 2\n",
        "low/right/__init__.py": "from ..left import two\n",
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)

    def found():
        taken = house.python_imports(package)
        folders = sorted({file.parent for file in taken})
        return [circle for folder in folders for circle in house.circles_of_rooms(package, folder, taken)]

    assert house.circles(house.python_imports(package)) == [] and found() == []
    (package / "low" / "left" / "three.py").write_text("import parcel.low.right\n")
    (circle,) = found()
    assert circle["rooms"] == ["low/left", "low/right"]
    assert circle["ties"] == ["left/three.py -> right/__init__.py", "right/__init__.py -> left/two.py"]


def test_imports_of_python_modules_and_of_their_functions_count(tmp_path):
    package = tmp_path / "parcel"
    package.mkdir()
    (package / "__init__.py").write_text("from .one import f\n")
    (package / "one.py").write_text("from . import two\n\n\ndef f():\n    import parcel.three\n")
    (package / "two.py").write_text("import parcel.one\nimport json\n")
    (package / "three.py").write_text("from .two import json\n")
    found = {
        (file.name, target.name) for file, targets in house.python_imports(package).items() for target in targets
    }
    assert found == {
        ("__init__.py", "one.py"),
        ("one.py", "two.py"),
        ("one.py", "three.py"),
        ("two.py", "one.py"),
        ("three.py", "two.py"),
    }
