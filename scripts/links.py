#!/usr/bin/env python3
"""Fails on links of the pages that lead nowhere: files, images, and headings within pages. And on headings that are
underlined: no link finds them, and a stray line makes them.

    python3 scripts/links.py [PAGE ...]

Without a path it reads the pages of `PAGES`. It prints `FILE:LINE: LINK: CAUSE` for each broken link and ends with 1
when there is one. It asks no server for addresses: the check needs no network. It needs nothing but Python 3.10.

    page -> text without fenced blocks and comments -> links -> file there? -> heading there? -> inside of docs/?
"""

import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "*.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "crates/*.md",
    "crates/*/README.md",
    "python/*.md",
    ".github/**/*.md",
)
ELSEWHERE = ("http://", "https://", "mailto:")
# Fenced blocks and comments may hold anything; as many lines stay.
HIDDEN = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$|<!--.*?-->", re.S | re.M)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|<(?:a|img)\s[^>]*?(?:href|src)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)
# A line of text, and one below it that makes a heading of it.
UNDERLINED = re.compile(r"^ {0,3}[^\s|].*\n {0,3}(=+|-+)[ \t]*$", re.M)


@dataclass(frozen=True)
class Broken:
    """A link that leads nowhere."""

    file: str
    line: int
    link: str
    cause: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.link}: {self.cause}"


def shown(text: str) -> str:
    """The text without fenced blocks and comments, line by line as before."""
    return HIDDEN.sub(lambda match: "\n" * match[0].count("\n"), text)


def slug(heading: str) -> str:
    """The name of a heading in links, as GitHub and mdBook make it."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of a page's headings; of equal ones the second ends in -1, and so on."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(shown(page.read_text(encoding="utf-8"))):
        name = slug(heading)
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset(found)


def broken(page: Path, root: Path = ROOT) -> list[Broken]:
    """The links of a page that lead nowhere."""
    text, docs, found = shown(page.read_text(encoding="utf-8")), root / "docs", []
    name = page.relative_to(root).as_posix() if page.is_relative_to(root) else page.as_posix()
    # Inline code is no link, but may be the text of one.
    text = CODE.sub(lambda match: "x" * len(match[0]), text)
    for match in LINK.finditer(text):
        link = match[1] or match[2]
        if link.startswith(ELSEWHERE):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        cause = ""
        if not target.exists():
            cause = "no such file"
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target)):
            cause = "no such heading"
        elif docs in page.parents and docs != target and docs not in target.parents:
            cause = "it leaves docs/, and the site has the pages of docs/ alone; name the path instead"
        if cause:
            found.append(Broken(name, text[: match.start()].count("\n") + 1, link, cause))
    for match in UNDERLINED.finditer(text):
        cause = "it makes a heading of the line above; begin a heading with #, or remove the line"
        found.append(Broken(name, text[: match.start(1)].count("\n") + 1, match[1], cause))
    return found


def main(paths: list[str]) -> int:
    """Print the broken links of these pages, or of `PAGES`; 1 when there is one, 2 when a page is missing."""
    pages = [Path(path).resolve() for path in paths]
    if not paths:
        pages = sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})
    missing = [str(page) for page in pages if not page.is_file()]
    if missing or not pages:
        print(f"no such page: {', '.join(missing) or ROOT}", file=sys.stderr)
        return 2
    found = [one for page in pages for one in broken(page)]
    for one in found:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
