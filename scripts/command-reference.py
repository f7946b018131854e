"""command-reference.py WELLREAD DOCS: DOCS/commands.md and a page for each command, from its own help text.

`make reference` calls it; tests/python/test_docs.py fails when the pages are not what the program says.

    help of each command -> parts (usage, arguments, groups of options, examples) -> a page for each command
                                └─ groups that several commands share word for word -> commands/shared-options.md

A page of more than `MOST_LINES` lines hands its groups of options to a second one, `NAME-options.md`.
Where that is not enough, its examples go there too.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from links import slug

MOST_LINES = 200
HEAD = """# Commands

`make reference` writes this page and the pages of the commands from `wellread COMMAND --help`. Every command takes
`--json`, `--quiet` and `--help`. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 `compare` found a regression,
130 interrupted. [Result columns](result-columns.md) has the meaning of each column of the results.

With `--json` stdout has one JSON document, and everything else goes to stderr. So do errors: where there is no
result, stdout is empty, and the exit code is not 0. `--quiet` prints neither progress nor hints. Results stay, on
stdout, and so do warnings of what is lost or changed.
"""
SHARED = """# Options that several commands share

`make reference` writes this page. [Commands](../commands.md) lists the commands.
"""
# Defaults that are those of the machine.
MACHINE = [
    # Of the option itself: its text ends before the line of the next one.
    (re.compile(r"(--(?:jobs|threads) <[A-Z]+>(?:(?!\n +-)[^\[])*)\[default: \d+\]"), r"\1[default: all processors]"),
    (re.compile(r"/home/you/\.cache"), "~/.cache"),
]
# Parts that every command has under these titles, with another text each.
EXAMPLES = ("Example", "Examples")
OWN = ("Arguments", "Commands", *EXAMPLES, "Options")


def help_of(binary: Path, *command: str) -> str:
    """The output of `wellread COMMAND --help`, on any machine."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "XDG_CACHE_HOME": "/home/you/.cache"}
    done = subprocess.run([binary, *command, "--help"], capture_output=True, text=True, check=True, env=environment)
    text = done.stdout
    for pattern, general in MACHINE:
        text = pattern.sub(general, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def commands(text: str) -> dict[str, str]:
    """The commands that the program's own help lists, with what each does."""
    listed = text.split("Commands:\n")[1].split("\n\n")[0]
    found = re.findall(r"^  ([a-z-]+) +(.+(?:\n {8,}.+)*)", listed, re.M)
    return {name: " ".join(about.split()) for name, about in found if name != "help"}


def parts(text: str) -> tuple[str, dict[str, str]]:
    """The description, usage and notes of a help text, and its titled parts by title."""
    notes: list[str] = []
    titled: dict[str, str] = {}
    for block in re.split(r"\n\n(?=\S)", text):
        first, _, rest = block.partition("\n")
        if rest and re.fullmatch(r"[A-Z][^.]*:", first):
            titled[first.removesuffix(":")] = rest
        else:
            notes.append(block)
    return "\n\n".join(notes), titled


def block(text: str) -> str:
    """Text as the program prints it."""
    return f"```text\n{text}\n```\n"


def sections(titled: dict[str, str]) -> str:
    """A section for each part."""
    return "".join(f"\n## {title}\n\n{block(text)}" for title, text in titled.items())


def page_of(name: str, usage: str, titled: dict[str, str], elsewhere: list[str]) -> str:
    """The page of a command, with links to its parts that are elsewhere (`PAGE#TITLE`)."""
    links = [f"[{title}]({page}#{slug(title)})" for page, title in (place.split("#") for place in elsewhere)]
    foot = ", ".join([*links, "[all commands](../commands.md)"])
    return f"# wellread {name}\n\n{block(usage)}{sections(titled)}\n## More\n\n{foot}\n"


def shared(helps: dict[str, tuple[str, dict[str, str]]]) -> dict[str, str]:
    """Groups of options that several commands have, each with the same words."""
    found: dict[str, list[str]] = {}
    for _, titled in helps.values():
        for title, text in titled.items():
            if title not in OWN:
                found.setdefault(title, []).append(text)
    same = {title: {" ".join(text.split()) for text in texts} for title, texts in found.items()}
    # Of several layouts of the same words the one that most commands have.
    return {
        title: max(texts, key=texts.count)
        for title, texts in found.items()
        if len(texts) > 1 and len(same[title]) == 1
    }


def pages(helps: dict[str, str]) -> dict[str, str]:
    """The pages by their paths below the documentation, of help texts by command; that of the program is ""."""
    listed = commands(helps[""])
    parted = {name: parts(helps[name]) for name in listed}
    common = shared(parted)
    rows = "\n".join(f"| [`wellread {name}`](commands/{name}.md) | {about} |" for name, about in listed.items())
    written = {
        "commands.md": f"{HEAD}\n| command | it does |\n|---|---|\n{rows}\n\n"
        f"[Options that several commands share](commands/shared-options.md)\n\n{block(helps[''])}",
        "commands/shared-options.md": SHARED + sections(common),
    }
    for name, (usage, titled) in parted.items():
        own = {title: text for title, text in titled.items() if title not in common}
        page = page_of(name, usage, own, [f"shared-options.md#{title}" for title in titled if title in common])
        more: list[str] = []
        for kept in (OWN, [title for title in OWN if title not in EXAMPLES]):
            if len(page.splitlines()) <= MOST_LINES:
                break
            more = [title for title in own if title not in kept]
            links = [f"{name}-options.md#{title}" for title in more]
            links += [f"shared-options.md#{title}" for title in titled if title in common]
            page = page_of(name, usage, {title: text for title, text in own.items() if title in kept}, links)
        if more:
            back = f"[wellread {name}]({name}.md) has its usage and its other options."
            rest = sections({title: own[title] for title in more})
            what = "examples" if set(more) <= set(EXAMPLES) else "options of each part"
            written[f"commands/{name}-options.md"] = f"# wellread {name}: {what}\n\n{back}\n{rest}"
        written[f"commands/{name}.md"] = page
    return written


def asked(binary: Path) -> dict[str, str]:
    """The help texts of the program and of its commands."""
    with tempfile.TemporaryDirectory() as folder:
        # The program calls itself by the name it is called by.
        program = Path(folder) / "wellread"
        program.symlink_to(binary.resolve())
        top = help_of(program)
        return {"": top} | {name: help_of(program, name) for name in commands(top)}


def write(docs: Path, written: dict[str, str]) -> None:
    """Put the pages there, and remove those of commands that are gone."""
    folder = docs / "commands"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for path, text in written.items():
        (docs / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[2]), pages(asked(Path(sys.argv[1]))))
