"""Pages that scripts write of commands and of the Python package: what they hold, and that they are not stale."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        spec.loader.exec_module(module)
    return module


commands, python = load("command-reference"), load("python-reference")

TOP = """\
The program

Usage: wellread [OPTIONS] <COMMAND>

Commands:
  one   Do one thing,
        and another
  two   Do two
  help  Print help

Options:
  -h, --help  Print help"""
GROUP = "Shared things:\n      --near <N>  Near ones\n\nExamples:\n  wellread {name}"
HELP = (
    "Do it\n\nUsage: wellread {name} <PATH>\n\nIt ends with a note.\n\nOptions:\n  -h, --help  Print help\n\n" + GROUP
)


def helps(**more):
    return {"": TOP} | {name: HELP.format(name=name) + more.get(name, "") for name in ("one", "two")}


def test_a_command_has_a_page_and_shared_options_one_page():
    pages = commands.pages(helps())
    assert sorted(pages) == ["commands.md", "commands/one.md", "commands/shared-options.md", "commands/two.md"]
    assert "| [`wellread one`](commands/one.md) | Do one thing, and another |\n" in pages["commands.md"]
    assert "help.md" not in pages["commands.md"]
    one = pages["commands/one.md"]
    assert one.startswith(
        "# wellread one\n\n```text\nDo it\n\nUsage: wellread one <PATH>\n\nIt ends with a note.\n```\n"
    )
    assert "## Options\n\n```text\n  -h, --help  Print help\n```\n" in one
    assert "## Examples\n\n```text\n  wellread one\n```\n" in one
    assert "--near" not in one and "[Shared things](shared-options.md#shared-things)" in one
    assert "## Shared things\n\n```text\n      --near <N>  Near ones\n```\n" in pages["commands/shared-options.md"]


def test_a_group_with_other_words_stays_with_its_command():
    changed = helps() | {"two": HELP.format(name="two").replace("Near ones", "Far ones")}
    pages = commands.pages(changed)
    assert "Near ones" in pages["commands/one.md"] and "Far ones" in pages["commands/two.md"]
    assert "Shared things" not in pages["commands/shared-options.md"]


def test_a_long_page_hands_its_groups_on():
    many = "\n\nMany: of all kinds:\n" + "\n".join(f"      --option-{i}" for i in range(commands.MOST_LINES))
    pages = commands.pages(helps(one=many))
    assert len(pages["commands/one.md"].splitlines()) < 50
    assert "(one-options.md#many-of-all-kinds)" in pages["commands/one.md"]
    assert "## Many: of all kinds\n" in pages["commands/one-options.md"]
    assert "--option-7\n" in pages["commands/one-options.md"]


def test_a_page_of_many_options_hands_its_examples_on():
    many = "\n".join(f"      --option-{i}" for i in range(commands.MOST_LINES - 20))
    pages = commands.pages(
        helps() | {"one": HELP.format(name="one").replace("  -h, --help", f"{many}\n  -h, --help")}
    )
    assert "## Examples" not in pages["commands/one.md"] and "--option-7\n" in pages["commands/one.md"]
    assert "(one-options.md#examples)" in pages["commands/one.md"]
    assert "## Examples\n\n```text\n  wellread one\n```\n" in pages["commands/one-options.md"]


def test_pages_of_commands_that_are_gone_are_removed(tmp_path):
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands/three.md").write_text("old")
    commands.write(tmp_path, commands.pages(helps()))
    assert sorted(path.name for path in (tmp_path / "commands").iterdir()) == [
        "one.md",
        "shared-options.md",
        "two.md",
    ]


def general(text):
    for pattern, of_any_machine in commands.MACHINE:
        text = pattern.sub(of_any_machine, text)
    return text


def test_the_default_of_one_option_is_not_that_of_the_next():
    jobs = "      --jobs <JOBS>  Threads, one at least\n                     [default: 16]\n"
    assert general(jobs) == jobs.replace("16", "all processors")
    threads = "      --threads <N>  Threads of the model\n"
    limit = "      --turn-limit <S>  Seconds to answer\n                     [default: 300]\n"
    assert general(threads + limit) == threads + limit
    assert "answer is ended\n" + " " * 39 + "[default: 300]\n" in (ROOT / "docs/commands/embed.md").read_text()


@pytest.mark.parametrize("option", ["--read-as <", "--path-map <", "--cells-edge <", "--in-flight <"])
def test_options_of_opening_a_set_are_on_one_page(option):
    having = {page.name for page in (ROOT / "docs/commands").glob("*.md") if option in page.read_text()}
    assert having == {"shared-options.md"}


# The text of a command behind its options, in the sources.
AFTER_HELP = re.compile(r'\bafter_help = "((?:[^"\\]|\\.)*)"', re.DOTALL)


def notes_of_commands():
    for path in sorted((ROOT / "crates/wellread-cli/src").rglob("*.rs")):
        for found in AFTER_HELP.finditer(path.read_text()):
            text = re.sub(r"(?<!\\)\\\n\s*", "", found[1])
            yield path.name, text.replace("\\\\", "\\").replace('\\"', '"')


def test_paragraphs_of_help_texts_have_no_line_breaks_of_their_own():
    texts = list(notes_of_commands())
    assert len(texts) > 12
    for name, text in texts:
        for paragraph in text.split("\n\n"):
            lines = [line for line in paragraph.split("\n") if not line.startswith(" ")]
            # A terminal of another width would show every second line short.
            assert len(lines) <= 1, f"{name}: {lines}"


def test_examples_of_help_texts_run_when_they_are_copied():
    shown = [(name, text) for name, text in notes_of_commands() if "Example" in text]
    pages = [(path.name, path.read_text()) for path in sorted((ROOT / "docs/commands").glob("*.md"))]
    shown += [
        (name, text.split("## Examples\n")[1].split("\n## ")[0]) for name, text in pages if "## Examples" in text
    ]
    assert len(shown) > 24
    for name, text in shown:
        before = ""
        for line in (line for line in text.split("\n") if line.startswith("  ")):
            # A terminal breaks longer lines, and its shell takes the rest for another command.
            assert len(line) <= 80, f"{name}: {line}"
            assert before.endswith(" \\") != line.startswith("  wellread "), f"{name}: {line}"
            before = line
        assert not before.endswith("\\"), name


PACKAGE = '''\
"""A package.

>>> import wellread
"""
from ._base import Base
from .other import found as find
from ._native import Item, version
from ._native import Item as _One

__all__ = ["Item", "Set", "find", "version"]


class Set(Base):
    """Images; see :meth:`read` and :class:`Item`.

    Args:
        path: a file, or "*.tif" | "*.png",
            or several.
        a, b: two more.

    Raises:
        ValueError: no ``path``.

    More of it.
    """

    def __init__(self, path: str | None, *, a: int = 1, b: int = 2) -> None: ...
    def read(self, row: int) -> bytes:
        """Reads a row, as :attr:`size` says."""
    def chosen(self, condition: Sequence[bool] | None = None, /, *, more_than: int = 0, a_line_has: int = 10) -> _One:
        """Some rows::

            chosen([True])

        No more.
        """
    def _hidden(self):
        """Nobody's."""
'''
FILES = {
    "__init__.py": PACKAGE,
    "_base.py": 'class Base:\n    @property\n    def size(self) -> int | None:\n        """Rows."""\n',
    "_native.pyi": 'version: str\n\nclass Item:\n    """A thing."""\n',
    "other.py": f'def found({", ".join(f"argument_{i}: int = {i}" for i in range(9))}) -> int:\n    """Finds."""\n',
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "python" / "wellread"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(python, "MODULES", {"wellread": "all of it"})
    return tmp_path


def test_pages_have_signatures_arguments_and_errors(package):
    pages = python.pages(package)
    assert sorted(pages) == [f"docs/reference/python{end}" for end in (".md", "/set.md", "/wellread.md")]
    of_set = pages["docs/reference/python/set.md"]
    assert of_set.startswith(
        "# wellread.Set\n\n```text\nwellread.Set(path: str | None, *, a: int=1, b: int=2)\n```\n"
    )
    assert "Images; see [`read`](#setread) and [`Item`](wellread.md#item).\n" in of_set
    assert '| `path` | a file, or "\\*.tif" \\| "\\*.png", or several. |\n| `a`, `b` | two more. |\n' in of_set
    assert "| error | |\n|---|---|\n| `ValueError` | no `path`. |\n\nMore of it.\n" in of_set
    assert "| `size` | `int \\| None` | Rows. |\n" in of_set
    assert "## `Set.read`\n\n```text\nSet.read(row: int) -> bytes\n```\n" in of_set
    assert "as [`size`](#attributes) says" in of_set and "_hidden" not in of_set
    assert (
        "```text\nSet.chosen(\n    condition: Sequence[bool] | None = None,\n    /,\n    *,\n"
        "    more_than: int = 0,\n    a_line_has: int = 10,\n) -> wellread.Item\n```\n\n"
        "Some rows:\n\n```text\nchosen([True])\n```\n\nNo more.\n"
    ) in of_set
    of_all = pages["docs/reference/python/wellread.md"]
    assert "```text\n>>> import wellread\n```\n" in of_all
    assert "## `version`\n\n```text\nwellread.version: str\n```\n" in of_all
    assert "wellread.find(\n    argument_0: int = 0,\n" in of_all and ") -> int\n```\n\nFinds.\n" in of_all
    assert "* [`Set`](set.md)\n" in of_all


def test_parts_of_a_long_class_and_of_a_module_have_pages_of_their_own(package, monkeypatch):
    parts = {"wellread.Set": ("set-reads.md", "Reads", ("read",)), "wellread": ("found.md", "Found", ("find",))}
    monkeypatch.setattr(python, "PARTS", parts)
    pages = python.pages(package)
    # A class that is not long keeps its methods.
    assert "docs/reference/python/set-reads.md" not in pages
    assert pages["docs/reference/python/found.md"].startswith(
        "# Found\n\n[`wellread`](wellread.md) has the rest.\n\n## `find`\n"
    )
    assert "* [`find`](found.md#find)\n" in pages["docs/reference/python/wellread.md"]
    monkeypatch.setattr(python, "MOST_LINES", 10)
    pages = python.pages(package)
    assert pages["docs/reference/python/set-reads.md"].startswith("# Reads\n\n[`wellread.Set`](set.md) has its")
    assert "## `Set.read`\n" in pages["docs/reference/python/set-reads.md"]
    assert "## `Set.read`\n" not in pages["docs/reference/python/set-methods.md"]
    assert "* [`read`](set-reads.md#setread)\n" in pages["docs/reference/python/set.md"]
    assert "[found.md]" not in pages["docs/reference/python.md"]


def test_the_first_upstream_of_a_page_is_a_link():
    text = "# Upstream\n\n| upstream |\n\n```text\nupstream\n```\n\nIt is upstream's, as upstream has it."
    said = "It is [upstream](../../upstream.md)'s, as upstream has it."
    assert python.introduced(text) == text.replace("It is upstream's, as upstream has it.", said)
    assert python.introduced("`upstream`, a/upstream") == "`upstream`, a/upstream"


def test_a_name_that_nothing_defines_is_an_error(package):
    file = package / "python/wellread/__init__.py"
    file.write_text(PACKAGE.replace('"Set", "find"', '"Set", "lost", "find"'))
    with pytest.raises(SystemExit, match="wellread.lost is in __all__"):
        python.pages(package)


def run(root, *arguments):
    command = [sys.executable, root / "scripts/python-reference.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_pages_are_what_the_sources_say():
    done = run(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_docstring_and_a_page_of_nothing_are_found(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__", "*.so")
    for folder in ("scripts", "python/wellread", "docs/reference"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignore)
    file = tmp_path / "python/wellread/dataset.py"
    file.write_text(file.read_text().replace('"""A set of images: ', '"""A very large set of images: '))
    (tmp_path / "docs/reference/python/gone.md").write_text("# Gone\n")
    done = run(tmp_path)
    lines = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert (done.returncode, lines) == (1, [f"docs/reference/python/{name}.md" for name in ("dataset", "gone")])
    assert run(tmp_path, "--write").returncode == 0
    assert "A very large set of images: " in (tmp_path / "docs/reference/python/dataset.md").read_text()
    assert (run(tmp_path).returncode, run(tmp_path).stdout) == (0, "")
