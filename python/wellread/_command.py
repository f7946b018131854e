"""Where the command ``wellread`` is: a program of its own, which the package starts."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping

MISSING = (
    "the command wellread is not installed: pip install ./crates/wellread-cli, or make install, in a clone of "
    "wellread; the variable WELLREAD can name the program, too"
)


def program() -> str:
    """The path of the command: what the variable ``WELLREAD`` names, what is installed beside this Python, or what is
    on PATH.

    Raises:
        FileNotFoundError: there is none.
    """
    named = os.environ.get("WELLREAD")
    found = shutil.which(named) if named else None
    found = found or shutil.which("wellread", path=sysconfig.get_path("scripts")) or shutil.which("wellread")
    if found is None:
        raise FileNotFoundError(MISSING)
    return found


def environment() -> Mapping[str, str]:
    """Variables for the command: the frameworks that it measures are those of this Python, unless told otherwise."""
    return {"WELLREAD_PYTHON": sys.executable, **os.environ}


def become(arguments: list[str]) -> None:
    """Has the command take the place of this process, which ends with its exit code.

    Raises:
        SystemExit: code 1 where there is no command.
    """
    # What Python has printed comes before what the command prints.
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        found = program()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    if os.name == "posix":
        os.execve(found, ["wellread", *arguments], environment())
    # Elsewhere a process that is replaced seems to have ended to whoever waits for it.
    import subprocess

    sys.exit(subprocess.call([found, *arguments], env=environment()))
