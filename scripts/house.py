#!/usr/bin/env python3
"""The house in figures: lines of crates and of their unit tests, long files, imports in circles, files past places.

    python3 scripts/house.py [--crate NAME] [--json]

Reads `crates/*/src` and `python/wellread`, and the length of other files of code. It needs nothing but Python 3.10.
It ends with 1 when the files of a crate or of the package import each other in a circle. It also ends with 1 when a
crate's top-level modules do: then none of them is below the others. In the package the same holds for the files and
folders of each folder. Where the head of a `lib.rs` shows layers, an import that goes up and a module in no layer are
faults too. How an import is read:

    file -> `use` lines and paths in code (crate::a::B, super::B, a::B) -> re-exports -> the file that defines a name

A `pub use` hands a name on and is no import. `mod x;` is none either. Tests (`#[cfg(test)]`, `tests.rs`) are left
out: they may look anywhere. Macros' `$crate::` paths belong to those who call them and are left out too. In Python
imports inside of functions count like those of their module.

Formats and their helpers read, list and write through `wellread_store::place` alone, so that another place than the
file system touches none of them. Code that goes past it is listed and fails too, but for `PAST_PLACES`.

Long because it reads imports of two languages, and is one program without a package.
"""

import argparse
import ast
import itertools
import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# More lines than this need a reason in the head of the file: a line `//! Long because …`.
LONG = 400
REASON = re.compile(r"^(?://! |# )?Long because ", re.MULTILINE)
# Folders of code beside the crates' sources and the package, whose long files need a reason too.
BESIDE = (
    *("crates/*/tests", "crates/*/examples", "crates/*/benches"),
    *("benches", "examples", "fuzz", "packaging", "recipes", "scripts", "tests"),
)

LITERALS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\bb?r(#*)\".*?\"\1|b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\.[^']*|[^'\\])'", re.DOTALL
)
ITEM = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+|async\s+|unsafe\s+|extern\s+\"\"\s+)*"
    r"(?:fn|struct|enum|trait|type|union|static(?:\s+mut)?|const|macro_rules!)\s+(\w+)",
    re.MULTILINE,
)
USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
MODULE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)
PATH = re.compile(r"(?<![\w:$])(?:crate|self|super|[a-z_]\w*)(?:\s*::\s*(?:super|\w+))+")
# What names the file system without asking a place.
FILE_SYSTEM = re.compile(
    r"(?<!\w)fs::|\bstd::fs\b|(?<!\w)File::(?:open|create)|(?<!\w)OpenOptions::new|\bsymlink_metadata\("
    r"|\.(?:exists|try_exists|is_dir|is_file|is_symlink|canonicalize|read_dir|read_link)\(\)"
    r"|(?<!\w)File::options|\b(?:memmap2|tempfile)::|\blibc::(?:open|stat|lstat|statvfs)\b|\bLocalFileSystem\b"
)
# Crates of formats.
OF_FORMATS = ("wellread-store", "wellread-lance", "wellread-vortex", "wellread-duckdb")
# Files and folders there that may name the file system, and why.
PAST_PLACES = {
    "wellread-store/src/place/": "the room itself: the file system is one of the places",
    "wellread-store/src/staged.rs": "locks, links and renaming over what is there are the file system's own",
    "wellread-store/src/staged/": "what killed runs left, links, reserved names: the file system's own",
    "wellread-store/src/journal.rs": "a locked file of the file system, which other places have none of",
    "wellread-store/src/disk_cache/": "a cache lies on a disk of this machine",
    "wellread-store/src/mapping.rs": "maps files of this machine",
    "wellread-store/src/fd_table.rs": "asks the process about itself",
    "wellread-store/src/free_space.rs": "a disk of this machine is asked, before something is put there",
    "wellread-store/src/parted/holds.rs": "writes an image to this machine, to see what a format keeps of it",
    "wellread-store/src/python.rs": "looks for a program of this machine",
    "wellread-store/src/checksum.rs": "a list that the user names, which may be a pipe",
    "wellread-store/src/trace.rs": "a timeline is written on this machine",
    "wellread-duckdb/src/library/": "looks for a library of this machine",
    "wellread-duckdb/src/fuzzing.rs": "writes what is fuzzed",
}
TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")


@dataclass
class Module:
    """A file: what it defines, what it hands on, what it takes."""

    file: Path
    path: tuple
    text: str
    children: dict = field(default_factory=dict)
    items: set = field(default_factory=set)
    doors: dict = field(default_factory=dict)
    globs: list = field(default_factory=list)


def plain(text: str) -> str:
    """Code without comments, texts and tests; as many lines as before."""
    text = LITERALS.sub(lambda found: '""' + "\n" * found[0].count("\n"), text)
    while found := TEST.search(text):
        text = (
            text[: found.start()]
            + "\n" * text.count("\n", found.start(), end_of_item(text, found.end()))
            + text[end_of_item(text, found.end()) :]
        )
    return text


def unit_tests(source: Path) -> int:
    """Lines of unit tests: items under `#[cfg(test)]`, and whole files that are such a module or lie in `tests`."""
    whole, lines = set(), {}
    for file in sorted(source.rglob("*.rs")):
        text = LITERALS.sub(lambda found: '""' + "\n" * found[0].count("\n"), file.read_text(encoding="utf-8"))
        lines[file] = 0
        if file.name == "tests.rs" or "tests" in file.relative_to(source).parts:
            whole.add(file)
            continue
        folder = file.parent if file.name in ("mod.rs", "lib.rs", "main.rs") else file.parent / file.stem
        at = 0
        while found := TEST.search(text, at):
            at = end_of_item(text, found.end())
            item = text[found.start() : at]
            lines[file] += item.count("\n") + 1
            whole |= {folder / f"{name}.rs" for name in MODULE.findall(item)}
    return sum(len(file.read_text(encoding="utf-8").splitlines()) if file in whole else lines[file] for file in lines)


def says_why(file: Path, text: str) -> bool:
    """Whether the head of a file has a reason for its length: its first comment, or its docstring."""
    if file.suffix == ".py":
        return bool(REASON.search(ast.get_docstring(ast.parse(text)) or ""))
    mark = "//!" if file.suffix == ".rs" else "#"
    return bool(REASON.search("\n".join(itertools.takewhile(lambda line: line.startswith(mark), text.splitlines()))))


def long_files(files) -> dict:
    """Those of `files` that are long without a reason, the longest first: lines."""
    found = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        count = len(text.splitlines())
        if count > LONG and not says_why(file, text):
            found[file] = count
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def beside(root: Path) -> list:
    """Files of code that are neither of a crate's sources nor of the package."""
    found = []
    for folder in sorted(folder for pattern in BESIDE for folder in root.glob(pattern)):
        for here, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name not in ("target", "__pycache__") and name[0] != "."]
            found += [Path(here, name) for name in names if name.endswith((".rs", ".py", ".sh"))]
    return sorted(found)


def end_of_item(text: str, start: int) -> int:
    """Where the item that begins at `start` ends: after its `;` or its outermost braces."""
    depth = 0
    for at in range(start, len(text)):
        letter = text[at]
        if letter in "{([":
            depth += 1
        elif letter in "})]":
            depth -= 1
            if depth == 0 and letter == "}":
                return at + 1
        elif letter == ";" and depth == 0:
            return at + 1
    return len(text)


def leaves(tree: str):
    """The paths of a `use` tree with the names they get: `a::{b, c as d}` gives (a, b) as b and (a, c) as d."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, name = (part.strip() for part in tree.partition(" as "))
        steps = tuple(step.strip() for step in path.split("::") if step.strip())
        if steps:
            yield steps, name or (steps[-2] if steps[-1] == "self" and len(steps) > 1 else steps[-1])
        return
    before = tuple(step.strip() for step in tree[:brace].split("::") if step.strip())
    depth, part = 0, ""
    for letter in tree[brace + 1 : tree.rfind("}")] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            for steps, name in leaves(part):
                full = before + steps
                yield (full[:-1] if full[-1] == "self" else full), (before[-1] if steps == ("self",) else name)
            part = ""
        else:
            part += letter


def modules(source: Path) -> dict:
    """Module path -> module, for the files that the crate's root reaches."""
    found = {}

    def read(file: Path, path: tuple) -> None:
        text = plain(file.read_text(encoding="utf-8"))
        module = found[path] = Module(file, path, text)
        module.items = set(ITEM.findall(text))
        folder = file.parent if file.name in ("mod.rs", "lib.rs", "main.rs") else file.parent / file.stem
        for name in MODULE.findall(text):
            for candidate in (folder / f"{name}.rs", folder / name / "mod.rs"):
                if candidate.exists():
                    module.children[name] = (*path, name)
                    read(candidate, (*path, name))
                    break
        for door, tree in USE.findall(text):
            for steps, name in leaves(tree):
                if steps[-1] == "*":
                    if door:
                        module.globs.append(steps[:-1])
                elif door:
                    module.doors[name] = steps

    root = source / "lib.rs"
    read(root if root.exists() else source / "main.rs", ())
    return found


def resolve(found: dict, module: Module, steps: tuple, seen: frozenset = frozenset()):
    """The file that defines what `steps` names, as `module` writes it; None when it is of another crate."""
    key = (module.path, steps)
    if key in seen or not steps:
        return module.file if not steps else None
    seen = seen | {key}
    first, rest = steps[0], steps[1:]
    if first == "crate":
        return resolve(found, found[()], rest, seen)
    if first == "self":
        return resolve(found, module, rest, seen)
    if first == "super":
        return resolve(found, found[module.path[:-1]], rest, seen) if module.path else None
    if first in module.children:
        return resolve(found, found[module.children[first]], rest, seen)
    if first in module.doors and module.doors[first] != steps:
        return resolve(found, module, module.doors[first] + rest, seen)
    if first in module.items:
        return module.file
    for steps_of_glob in module.globs:
        target = resolve(found, module, (*steps_of_glob, *steps), seen)
        if target:
            return target
    return None


def imports(source: Path) -> dict:
    """File -> {file that it imports from: names}."""
    found = modules(source)
    arrows = {module.file: {} for module in found.values()}
    for module in found.values():
        taken, inner = [], USE.sub(lambda use: "\n" * use[0].count("\n"), module.text)
        for door, tree in USE.findall(module.text):
            if not door:
                taken += [steps[:-1] if steps[-1] == "*" else steps for steps, _ in leaves(tree)]
        local = {name: steps for door, tree in USE.findall(module.text) if not door for steps, name in leaves(tree)}
        for path in PATH.findall(re.sub(r"\s*::\s*", "::", inner)):
            steps = tuple(path.split("::"))
            if steps[0] in ("crate", "self", "super") or steps[0] in module.children or steps[0] in module.doors:
                taken.append(steps)
            elif steps[0] in local:
                taken.append(local[steps[0]] + steps[1:])
        for steps in taken:
            target = None
            # The longest part that names something: what follows may be a variant or an associated function.
            for length in range(len(steps), 0, -1):
                target = resolve(found, module, steps[:length])
                if target:
                    break
            if target and target != module.file:
                arrows[module.file].setdefault(target, set()).add(steps[-1])
    return arrows


def circles(arrows: dict) -> list:
    """The sets of nodes that reach each other (Tarjan), the largest first."""
    index, low, stack, held, result = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        held.add(node)
        for target in arrows.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in held:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            part = []
            while True:
                other = stack.pop()
                held.discard(other)
                part.append(other)
                if other == node:
                    break
            if len(part) > 1:
                result.append(sorted(part))

    sys.setrecursionlimit(10_000)
    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return sorted(result, key=len, reverse=True)


# The files that open a crate or a folder of the package: they are above all that lies beside them.
OPENERS = ("lib", "__init__")


def room(folder: Path, file: Path) -> str:
    """The file or folder in `folder` that a file there belongs to."""
    return file.relative_to(folder).parts[0].removesuffix(file.suffix)


def modules_of(source: Path, arrows: dict) -> set:
    """The top-level modules of a crate, without those of its tests."""
    return {room(source, file) for file in arrows} - {*OPENERS, "main"}


def rooms(folder: Path, arrows: dict) -> dict:
    """The same arrows between what lies in a folder, such as a crate's top-level modules.

    A folder and the file that opens it are one room. The file that opens `folder` itself is none.
    """
    between = {}
    for file, targets in arrows.items():
        for target in targets:
            if not (file.is_relative_to(folder) and target.is_relative_to(folder)):
                continue
            here, there = room(folder, file), room(folder, target)
            if here != there and not {here, there} & set(OPENERS):
                tie = f"{file.relative_to(folder)} -> {target.relative_to(folder)}"
                between.setdefault(here, {}).setdefault(there, set()).add(tie)
    return between


# The layers of a crate in the head of its `lib.rs`: a picture with a line for each, or a table of modules.
PICTURE = re.compile(r"^//! .*from above to below:\n//!\n//! ```text\n(.*?)^//! ```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^//! \| layer \| module \|.*\n//! \|[-|]+\n((?://! \|.*\n)+)", re.MULTILINE)


def layers(head: str) -> list:
    """The layers that the head of a crate shows, from above to below: the names of the modules in each."""
    if picture := PICTURE.search(head):
        lines = [line.removeprefix("//!").strip() for line in picture[1].splitlines()]
        return [re.split(r" \u00b7 ", re.split(r" …| {2,}", line)[0]) for line in lines]
    found = []
    for line in (table := TABLE.search(head)) and table[1].splitlines() or []:
        layer, names = [cell.strip() for cell in line.split("|")][1:3]
        if layer:
            found.append([])
        found[-1] += re.findall(r"`(\w+)`", names)
    return found


def upward(shown: list, between: dict, modules: set) -> list:
    """Modules in no layer, and imports from a layer into one above it; `between` is as of `rooms`."""
    if not shown:
        return []
    place = {name: at for at, names in enumerate(shown) for name in names}
    found = [f"{name} stands in no layer" for name in modules if name not in place]
    for name, at in place.items():
        found += [f"{name} -> {target}" for target in between.get(name, ()) if place.get(target, at) < at]
    return sorted(found)


def past_places(crates: Path) -> dict:
    """File of a format or a helper -> its lines that name the file system; those of `PAST_PLACES` too."""
    found = {}
    for crate in OF_FORMATS:
        for file in sorted((crates / crate / "src").rglob("*.rs")):
            name = str(file.relative_to(crates))
            if file.name == "tests.rs" or "/tests/" in name:
                continue
            code = plain(file.read_text(encoding="utf-8")).splitlines()
            lines = [at for at, line in enumerate(code, 1) if FILE_SYSTEM.search(line)]
            if lines:
                found[name] = lines
    return found


def is_excepted(name: str) -> bool:
    """Whether `PAST_PLACES` has the file, or a folder that it lies in."""
    return any(name == place or place.endswith("/") and name.startswith(place) for place in PAST_PLACES)


def python_imports(package: Path) -> dict:
    """The same of a Python package: file -> {file that it imports from, in its functions too: names}."""

    def file_of(steps: list):
        path = package.parent.joinpath(*steps)
        return next(
            (
                file
                for file in (path / "__init__.py", path.with_suffix(".py"), path.with_suffix(".pyi"))
                if file.exists()
            ),
            None,
        )

    arrows = {file: {} for file in sorted(package.rglob("*.py"))}
    for file, targets in arrows.items():
        here = list(file.relative_to(package.parent).with_suffix("").parts)
        waiting = list(ast.parse(file.read_text(encoding="utf-8")).body)
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Import):
                taken = [(name.name.split("."), name.name) for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = here[: len(here) - node.level] if node.level else []
                steps = base + (node.module.split(".") if node.module else [])
                taken = [
                    (steps + [name.name] if file_of(steps + [name.name]) else steps, name.name) for name in node.names
                ]
            elif is_for_types(node):
                continue
            else:
                waiting += ast.iter_child_nodes(node)
                continue
            for steps, name in taken:
                target = file_of(steps) if steps[0] == package.name else None
                if target and target != file and target.suffix == ".py":
                    targets.setdefault(target, set()).add(name)
    return arrows


def is_for_types(node) -> bool:
    """`if TYPE_CHECKING:`, which nobody runs."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def label(folder: Path) -> str:
    """The name of a crate or package here."""
    return "python" if folder.parent.name == "python" else folder.name


def of_crate(folder: Path) -> dict:
    """The lines about one crate."""
    rust = (folder / "Cargo.toml").exists()
    source = folder / "src" if rust else folder
    files = sorted(source.rglob("*.rs" if rust else "*.py"))
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    arrows = imports(source) if rust else python_imports(source)
    # Of the package every folder, of a crate its top-level modules alone.
    folders = [source] if rust else sorted({file.parent for file in files})
    root = source / "lib.rs"
    shown = layers(root.read_text(encoding="utf-8")) if root.exists() else []

    def name(file: Path) -> str:
        return str(file.relative_to(ROOT))

    return {
        "crate": label(folder),
        "lines": sum(lines.values()),
        "tests": unit_tests(source) if rust else 0,
        "files": len(files),
        "long": {name(file): count for file, count in long_files(files).items()},
        "layers": shown,
        "upward": upward(shown, rooms(source, arrows), modules_of(source, arrows)),
        "circles": [
            {
                "files": [name(file) for file in part],
                "ties": [
                    f"{name(file)} -> {name(target)}: {', '.join(sorted(names))}"
                    for file in part
                    for target, names in sorted(arrows[file].items())
                    if target in part
                ],
            }
            for part in circles(arrows)
        ],
        "circles_of_rooms": [circle for inside in folders for circle in circles_of_rooms(source, inside, arrows)],
    }


def circles_of_rooms(source: Path, inside: Path, arrows: dict) -> list:
    """The circles between what lies in a folder: rooms by their paths in the crate or package, and what ties them."""
    between = rooms(inside, arrows)
    return [
        {
            "rooms": [str((inside / one).relative_to(source)) for one in part],
            "ties": sorted(
                tie for one in part for other, ties in between.get(one, {}).items() if other in part for tie in ties
            ),
        }
        for part in circles(between)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--crate", help="only this one: wellread-store")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folders = [path.parent for path in sorted(ROOT.glob("crates/*/Cargo.toml"))] + [ROOT / "python" / "wellread"]
    folders = [folder for folder in folders if options.crate in (None, label(folder))]
    if not folders:
        parser.error(f"there is no {options.crate}")
    found = [of_crate(folder) for folder in folders]
    past = {name: lines for name, lines in past_places(ROOT / "crates").items() if not is_excepted(name)}
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        show(found)
        for file, count in long_files(beside(ROOT)).items():
            print(f"long: {file.relative_to(ROOT)}: {count} lines")
        print(f"lines of formats that go past places: {sum(len(lines) for lines in past.values())}")
        for name, lines in past.items():
            print(f"past places: crates/{name}: lines {', '.join(map(str, lines))}")
    wrong = any(crate["circles"] or crate["circles_of_rooms"] or crate["upward"] for crate in found)
    return 1 if past or wrong else 0


def show(found: list) -> None:
    """The figures as a table, then each circle with what ties it."""
    print(f"{'crate':<20}{'lines':>8}{'tests':>8}{'files':>7}{'long':>6}{'circles':>9}{'of rooms':>10}")
    rows = [
        (
            crate["crate"],
            crate["lines"],
            crate["tests"],
            crate["files"],
            len(crate["long"]),
            len(crate["circles"]),
            len(crate["circles_of_rooms"]),
        )
        for crate in found
    ]
    for row in [*rows, ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))]:
        print(f"{row[0]:<20}{row[1]:>8,}{row[2]:>8,}{row[3]:>7}{row[4]:>6}{row[5]:>9}{row[6]:>10}")
    for crate in found:
        for file, count in crate["long"].items():
            print(f"long: {file}: {count} lines")
        for tie in crate["upward"]:
            print(f"layers of {crate['crate']}: {tie}")
        for what in ("circles", "circles_of_rooms"):
            for circle in crate[what]:
                members = circle.get("files") or circle["rooms"]
                print(f"circle of {len(members)} in {crate['crate']}: {', '.join(members)}")
                for tie in circle["ties"]:
                    print(f"  {tie}")


if __name__ == "__main__":
    sys.exit(main())
