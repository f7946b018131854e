"""python-reference.py [--write]: the reference of the Python package, from signatures and docstrings of its sources.

`make reference` calls it; tests/python/test_reference_pages.py fails when a page is not what the sources say. It
imports nothing of the package, so it needs no build.

    public names (scripts/public_names.py) -> signature, docstring -> docs/reference/python/*.md

A class of `wellread` itself has a page of its own, and so has each other public module. Without --write it prints the
pages that differ and ends with 1 when there is one.
"""

import ast
import re
import sys
import textwrap
from pathlib import Path

from links import slug
from public_names import Module, Thing, file_of, is_attribute, methods, public, read, signature

ROOT = Path(__file__).resolve().parent.parent
PAGES = Path("docs/reference/python")
# Public modules, and what each is for.
MODULES = {
    "wellread": "sets of images, and loaders of NumPy arrays, tensors and JAX arrays",
    "wellread.torch": "datasets for torch's own `DataLoader`, and the loader with tensors",
    "wellread.jax": "the loader with JAX's arrays",
    "wellread.lightning": "a data module and a callback for Lightning",
    "wellread.ray": "sets on a Ray cluster: read, written, converted, checked",
    "wellread.bench": "inference benchmarks in Python",
}
# A page of more lines hands the methods of its class to a second one, `NAME-methods.md`.
MOST_LINES = 200
# Parts of long modules and of methods of long classes that have a page of their own: its name, its title, its things.
PARTS = {
    "wellread.Dataset": (
        "dataset-makers.md",
        "Make a set from a wellread.Dataset or a table",
        ("cells", "concat", "from_arrow", "from_load_data", "with_columns"),
    ),
    "wellread.ray": (
        "wellread-ray-checks.md",
        "Check sets by wellread.ray",
        ("Checksums", "checksum", "stats", "verify"),
    ),
    "wellread.bench": (
        "wellread-bench-classes.md",
        "Classes of wellread.bench",
        ("BenchmarkConfig", "BenchmarkError", "BenchmarkLogger"),
    ),
}
# Sections of docstrings.
TITLES = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$", re.M)
ROLE = re.compile(r":(?:class|meth|func|attr|mod|exc):`~?([^`]+)`")
UPSTREAM = re.compile(r"(?<![\w`/.-])[Uu]pstream\b(?![`/.-])")
ITEM = re.compile(r"^((?:\*{0,2}\w+(?:, )?)+|[\w.]+):\s*(.*)$")


class Writer:
    """Pages of the public modules, with links between them."""

    def __init__(self, package: Path):
        self.package = package
        self.found = found = public(package, MODULES)
        # Full name -> (page, anchor).
        self.places: dict[str, tuple[str, str]] = {}
        # Of a class of `wellread`, which has a page of its own: whether its methods have another.
        self.is_long: dict[str, bool] = {}
        for dotted, things in found.items():
            for one in things:
                self.place(dotted, one)
        for one in found["wellread"]:
            page, at = self.places[f"wellread.{one.name}"]
            if not at and len(self.alone(one)[page].splitlines()) > MOST_LINES:
                self.is_long[one.name] = True
                self.place("wellread", one)

    def place(self, dotted: str, one: Thing) -> None:
        """Note where a thing and its members are."""
        full, own = f"{dotted}.{one.name}", dotted == "wellread" and bool(methods(one))
        page = f"{one.name.lower()}.md" if own else part_of(dotted, one.name) or page_name(dotted)
        self.places[full] = (page, "" if own else slug(one.name))
        behind = f"{one.name.lower()}-methods.md" if self.is_long.get(one.name) and own else page
        for member in one.members:
            if is_attribute(member.node):
                self.places[f"{full}.{member.name}"] = (page, "attributes" if own else slug(one.name))
            elif member.name != "__init__":
                at = part_of(full, member.name) if behind != page else None
                self.places[f"{full}.{member.name}"] = (at or behind, slug(f"{one.name}.{member.name}"))

    def pages(self) -> dict[str, str]:
        written = {}
        for dotted, things in self.found.items():
            page = page_name(dotted)
            listed = "".join(f"* {self.link(f'{dotted}.{one.name}', page, one.name)}\n" for one in things)
            parts = [f"# {dotted}\n", self.prose(docstring_of_module(self.package, dotted), page, dotted), listed]
            of_page = {page: parts}
            for one in things:
                at = self.places[f"{dotted}.{one.name}"]
                if not at[1]:
                    written |= self.alone(one)
                    continue
                if at[0] not in of_page:
                    of_page[at[0]] = [f"# {title_of(dotted)}\n", f"[`{dotted}`]({page}) has the rest.\n"]
                of_page[at[0]] += [
                    f"## `{one.name}`\n",
                    *self.of_thing(one, dotted, at[0]),
                    *self.of_methods(one, dotted, at[0]),
                ]
            written |= {name: joined(texts) for name, texts in of_page.items()}
        return written

    def alone(self, one: Thing) -> dict[str, str]:
        """The page of a class, or its two or three pages."""
        full = f"wellread.{one.name}"
        page = self.places[full][0]
        parts = [f"# {full}\n", *self.of_thing(one, "wellread", page, "## Attributes\n")]
        if not self.is_long.get(one.name):
            return {page: joined([*parts, *self.of_methods(one, "wellread", page)])}
        second, third = page.replace(".md", "-methods.md"), PARTS.get(full, ("",))[0]
        listed = "".join(f"* {self.link(f'{full}.{member.name}', page, member.name)}\n" for member in methods(one))
        about = f"{self.link(full, second, full)} has its arguments and attributes.\n"
        written = {
            page: joined([*parts, "## Methods\n", listed]),
            second: joined([f"# Methods of {full}\n\n{about}", *self.of_methods(one, "wellread", second)]),
        }
        if third:
            head = f"# {title_of(full)}\n\n{about}"
            written[third] = joined([head, *self.of_methods(one, "wellread", third)])
        return written

    def of_thing(self, one: Thing, dotted: str, page: str, title: str = "") -> list[str]:
        """How it is called, what it is, and its attributes."""
        full = f"{dotted}.{one.name}"
        shown = next((member.node for member in one.members if member.name == "__init__"), one.node)
        called = "" if isinstance(shown, ast.ClassDef) else self.called(full, one.module, shown)
        bases = " and ".join(self.link(base, page, base) for base in one.bases if base != "Exception")
        kept = [member for member in one.members if is_attribute(member.node)]
        rows = "".join(
            f"| `{member.name}` | `{cell(self.spelled(ast.unparse(member.node.returns), member.module))}` "
            f"| {cell(self.words(member.docstring, page, full))} |\n"
            for member in kept
        )
        table = [title, f"| attribute | type | |\n|---|---|---|\n{rows}"] if kept else []
        return [called, f"Base: {bases}.\n" if bases else "", self.prose(one.docstring, page, full), *table]

    def of_methods(self, one: Thing, dotted: str, page: str) -> list[str]:
        """Those of its methods that are on this page."""
        parts = []
        for member in methods(one):
            name = f"{one.name}.{member.name}"
            if self.places[f"{dotted}.{name}"][0] != page:
                continue
            called = self.called(name, member.module, member.node)
            own = dotted == "wellread" and bool(methods(one))
            text = self.prose(member.docstring, page, f"{dotted}.{one.name}")
            parts += [f"##{'' if own else '#'} `{name}`\n", called, text]
        return parts

    def called(self, name: str, module: Module, node: ast.AST) -> str:
        """The block of code with a signature."""
        return f"```text\n{self.spelled(signature(name, node), module)}\n```\n"

    def spelled(self, text: str, module: Module) -> str:
        """Types by their public names: a module may import one of them under a private name."""
        public_names = {one.name for one in self.found["wellread"]}
        for node in ast.walk(module.tree):
            for alias in node.names if isinstance(node, ast.ImportFrom) and node.level else ():
                if alias.name in public_names and (alias.asname or "").startswith("_"):
                    text = re.sub(rf"\b{alias.asname}\b", f"wellread.{alias.name}", text)
        return text

    def prose(self, text: str, page: str, scope: str) -> str:
        """A docstring as Markdown."""
        parts, at = [], 0
        for found in TITLES.finditer(text):
            if found.start() < at:
                continue
            parts += self.paragraphs(text[at : found.start()], page, scope)
            body = re.match(r"(?:\n| +[^\n]*(?:\n|$))*", text[found.end() :])[0]
            at = found.end() + len(body)
            parts.append(self.section(found[1], body, page, scope))
        parts += self.paragraphs(text[at:], page, scope)
        return joined(parts)

    def paragraphs(self, text: str, page: str, scope: str) -> list[str]:
        found = []
        for block in re.split(r"\n\s*\n", text.strip("\n")):
            if not block.strip() or block.strip() == "::":
                continue
            if block.lstrip().startswith(">>>") or block.startswith("    "):
                found.append(f"```text\n{textwrap.dedent(block)}\n```\n")
            else:
                # Two colons announce a block of code.
                found.append(f"{re.sub('::$', ':', self.words(block, page, scope))}\n")
        return found

    def section(self, title: str, body: str, page: str, scope: str) -> str:
        """The table of a section: arguments, attributes or errors, each with what it is."""
        head = {"Args": "argument", "Attributes": "attribute", "Raises": "error"}.get(title)
        margin = min((len(line) - len(line.lstrip()) for line in body.splitlines() if line.strip()), default=0)
        lines = [line[margin:] for line in body.strip("\n").splitlines()]
        if head is None:
            return f"**{title}:** {self.words(' '.join(' '.join(lines).split()), page, scope)}\n"
        rows: list[list[str]] = []
        for line in lines:
            item = ITEM.match(line) if line and not line.startswith(" ") else None
            if item:
                rows.append([item[1], item[2]])
            elif rows and line.strip():
                rows[-1][1] += f" {line.strip()}"
            elif line.strip():
                raise SystemExit(f"{scope}: {title}: not NAME: TEXT: {line}")
        table = "".join(
            f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {cell(self.words(about, page, scope))} |\n"
            for names, about in rows
        )
        return f"| {head} | |\n|---|---|\n{table}"

    def words(self, text: str, page: str, scope: str) -> str:
        """Text with links for roles, and without what Markdown would take for markup."""
        text = text.replace("``", "`")
        parts = re.split(r"(:\w+:`[^`]+`|`[^`]*`)", text)
        for i, part in enumerate(parts):
            role = ROLE.fullmatch(part)
            if role:
                parts[i] = self.link(self.known(role[1], scope), page, role[1])
            elif i % 2 == 0:
                parts[i] = re.sub(r"([*<])", r"\\\1", part)
        return "".join(parts)

    def known(self, name: str, scope: str) -> str:
        """The full name of what a docstring in `scope` calls so."""
        steps = scope.split(".")
        for length in range(len(steps), -1, -1):
            full = ".".join([*steps[:length], name])
            if full in self.places:
                return full
        return name if "." in name else f"wellread.{name}"

    def link(self, full: str, page: str, text: str) -> str:
        """A link from a page to what it names, or its name alone."""
        if full not in self.places:
            return f"`{text}`"
        target, place = self.places[full]
        return f"[`{text}`]({'' if target == page and place else target}{f'#{place}' if place else ''})"


def joined(parts: list[str]) -> str:
    """Parts with an empty line between them."""
    return "\n".join(part for part in parts if part)


def introduced(text: str) -> str:
    """A page whose first "upstream" is a link to what it means; code, tables and titles are left alone."""
    lines, fenced = text.split("\n"), False
    for i, line in enumerate(lines):
        fenced ^= line.startswith("```")
        if not fenced and not line.startswith(("|", "#")) and UPSTREAM.search(line):
            lines[i] = UPSTREAM.sub(r"[\g<0>](../../upstream.md)", line, count=1)
            break
    return "\n".join(lines)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def part_of(full: str, name: str) -> str | None:
    """The page of its own that a part of a module or class has, if `name` is in one."""
    page, _, names = PARTS.get(full, ("", "", ()))
    return page if name in names else None


def title_of(full: str) -> str:
    """The title of that page."""
    return PARTS[full][1]


def page_name(dotted: str) -> str:
    return f"{dotted.replace('.', '-')}.md"


def docstring_of_module(package: Path, dotted: str) -> str:
    return ast.get_docstring(read(file_of(package, dotted)).tree) or ""


def index(written: dict[str, str]) -> str:
    """The page that lists the others."""
    rows = "".join(f"| [`{dotted}`](python/{page_name(dotted)}) | {about} |\n" for dotted, about in MODULES.items())
    own = sorted(set(written) - {page_name(dotted) for dotted in MODULES})
    parts = {page for page, _, _ in PARTS.values()}
    own = [page for page in own if not page.endswith("-methods.md") and page not in parts]
    classes = ", ".join(f"[`{re.search('^# (.*)$', written[page], re.M)[1]}`](python/{page})" for page in own)
    return (
        "# Python API\n\n`make reference` writes these pages from the signatures and docstrings of the package. "
        "[wellread for Python](../python.md)\nexplains how the parts work together.\n\n"
        f"| module | it has |\n|---|---|\n{rows}\nClasses with a page of their own: {classes}.\n"
    )


def pages(root: Path = ROOT) -> dict[str, str]:
    """All pages by their paths below the root."""
    written = Writer(root / "python" / "wellread").pages()
    found = {f"{PAGES.as_posix()}/{name}": introduced(text) for name, text in written.items()}
    return found | {f"{PAGES.as_posix()}.md": index(written)}


def main(write: bool) -> int:
    found = pages()
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / PAGES).glob("*")}
    gone = sorted(there - set(found))
    stale = [
        path
        for path, text in found.items()
        if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text
    ]
    if write:
        (ROOT / PAGES).mkdir(parents=True, exist_ok=True)
        for path in gone:
            (ROOT / path).unlink()
        for path in stale:
            (ROOT / path).write_text(found[path], encoding="utf-8")
        return 0
    for path in [*stale, *gone]:
        print(f"{path}: not what the sources say: make reference")
    return 1 if stale or gone else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
