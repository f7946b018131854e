"""command-reference.py WELLREAD: writes docs/commands.md from the program's own help texts, to stdout.

`make reference` calls it; tests/python/test_docs.py fails when the page is not what the program says.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = """# Commands

What `wellread COMMAND --help` says, put here by `make reference`. Every command takes `--json` (one JSON document on
stdout, everything else on stderr), `--quiet` and `--help`. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 `compare`
found a regression, 130 interrupted. What the columns of results mean is in [result columns](result-columns.md).
"""
# Defaults that are those of the machine.
MACHINE = [
    (re.compile(r"(--(?:jobs|threads) <[A-Z]+>[^\[]*)\[default: \d+\]"), r"\1[default: all processors]"),
    (re.compile(r"/home/you/\.cache"), "~/.cache"),
]


def help_of(binary: Path, *command: str) -> str:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "XDG_CACHE_HOME": "/home/you/.cache"}
    done = subprocess.run([binary, *command, "--help"], capture_output=True, text=True, check=True, env=environment)
    text = done.stdout
    for pattern, general in MACHINE:
        text = pattern.sub(general, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def commands(text: str) -> list[str]:
    listed = text.split("Commands:\n")[1].split("\n\n")[0]
    return [name for name in re.findall(r"^  ([a-z-]+) ", listed, re.M) if name != "help"]


def page(binary: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        # The program calls itself by the name it is called by.
        program = Path(folder) / "wellread"
        program.symlink_to(binary.resolve())
        top = help_of(program)
        parts = [HEAD, f"```text\n{top}\n```\n"]
        parts += [f"## wellread {name}\n\n```text\n{help_of(program, name)}\n```\n" for name in commands(top)]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page(Path(sys.argv[1])))
