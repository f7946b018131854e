"""The commands and snippets of the documentation: the fenced blocks of its pages, and a program that runs those of
one page.

``python docs_pages.py docs/python.md`` runs the blocks of that page one after the other in the working folder. It
runs ``sh`` by bash, ``python`` in one namespace, as a reader who goes through the page would. It stops at the first
that fails and says its file and line. HTML comments before a block, which readers do not see, say what to do with it:

``<!-- not run: REASON -->``
    It cannot run here: a GPU, the user's own program, half an hour. The reason is checked to be there.
``<!-- file: NAME -->``
    The block is a file: it is written to NAME, for the blocks that follow.
``<!-- smaller: OLD => NEW -->``
    OLD is replaced by NEW before it is run: fewer images or rounds than a user would take. Any number of these.
``<!-- exit: 0 3 -->``
    Exit codes of a block that is right to end with another code than 0.
``<!-- prepare … -->``
    Lines of shell (``<!-- prepare python``: of Python) that are run at this place: data that the page supposes to be
    there.
"""

import os
import re
import subprocess
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = ("sh", "python")
FILES = ("csv", "json", "sql", "toml", "yaml")
# Rust is compiled by the doctests of the crate `wellread`; text is what a command prints.
OTHERS = ("rust", "text")

_COMMENT = re.compile(r"<!--(.*?)-->", re.S)
# Around what scripts/figures.py writes.
_MARK = re.compile(r"[\w-]+:(begin|end)")
_FENCE = re.compile(r"^( *)```(.*)$")


@dataclass
class Block:
    """A fenced block, or lines of preparation, with what the comments before it say."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None = None
    file: str | None = None
    exits: tuple[int, ...] = (0,)
    smaller: list[tuple[str, str]] = field(default_factory=list)
    hidden: bool = False

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def to_run(self) -> str:
        """Its text with what is to be smaller replaced."""
        text = self.text
        for old, new in self.smaller:
            if old not in text:
                raise ValueError(f"{self.place}: there is no {old!r} to make smaller")
            text = text.replace(old, new)
        return text


def pages() -> list[Path]:
    """Every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    lines = page.read_text().splitlines()
    found, comments, at = [], [], 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith("<!--"):
            end = next((i for i in range(at, len(lines)) if "-->" in lines[i]), None)
            if end is None:
                raise ValueError(f"{page}:{at + 1}: a comment without its end")
            said = _COMMENT.search("\n".join(lines[at : end + 1])).group(1).strip()
            if said.startswith("prepare"):
                first, _, rest = said.partition("\n")
                language = first.removeprefix("prepare").strip() or "sh"
                found.append(Block(page, at + 2, language, rest + "\n", hidden=True))
            elif not _MARK.fullmatch(said):
                comments.append((at + 1, said))
            at = end + 1
            continue
        fence = _FENCE.match(line)
        if fence:
            indent, language = fence.groups()
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith(f"{indent}```"))
            text = "".join(f"{text.removeprefix(indent)}\n" for text in lines[at + 1 : end])
            block = Block(page, at + 2, language.split(",")[0], text)
            for number, said in comments:
                _heed(block, said, number)
            found.append(block)
            comments, at = [], end
        elif line.strip():
            comments = []
        at += 1
    return found


def _heed(block: Block, said: str, number: int) -> None:
    word, _, rest = said.partition(":")
    rest = rest.strip()
    if word == "not run":
        block.not_run = rest
    elif word == "file":
        block.file = rest
    elif word == "smaller":
        old, arrow, new = rest.partition(" => ")
        if not arrow:
            raise ValueError(f"{block.page}:{number}: smaller: OLD => NEW")
        block.smaller.append((old, new))
    elif word == "exit":
        block.exits = tuple(int(code) for code in rest.split())
    else:
        raise ValueError(f"{block.page}:{number}: a comment that says nothing known: {said}")


def run(page: Path) -> str | None:
    """Run the page's blocks in the working folder; what went wrong, if anything did."""
    names: dict = {"__name__": "__main__"}
    for block in blocks(page):
        if block.not_run is not None or block.language in OTHERS:
            continue
        print(f"--- {block.place}", flush=True)
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.to_run)
        elif block.language == "sh":
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.to_run])
            if done.returncode not in block.exits:
                return f"{block.place}: exit code {done.returncode}"
        else:
            try:
                # As many lines before as in the page, so that a traceback says the page's line.
                exec(compile("\n" * (block.line - 1) + block.to_run, str(page), "exec"), names)
            except BaseException:
                traceback.print_exc()
                return f"{block.place}: it raises"
    return None


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    sys.exit(run(ROOT / sys.argv[1]))
