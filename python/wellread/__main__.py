"""``python -m wellread``: the command."""

import sys

from ._native import run_cli


def main() -> None:
    """Run the command with the arguments of this process, and end with its exit code."""
    # What Python has printed comes before what the command prints.
    sys.stdout.flush()
    sys.exit(run_cli(["wellread", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
