"""``python -m wellread``: the command."""

import sys

from ._command import become


def main() -> None:
    """Run the command with the arguments of this process, and end with its exit code."""
    become(sys.argv[1:])


if __name__ == "__main__":
    main()
