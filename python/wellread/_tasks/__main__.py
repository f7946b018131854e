"""`python -m _wellread_tasks ADAPTER`: the process of a task, or of one of its ranks."""

import importlib
import sys

# The name of `--adapter`, and the module here.
ADAPTERS = {"lightning": "lightning", "cyto-dl": "cyto_dl"}

if __name__ == "__main__":
    if sys.version_info < (3, 10):  # noqa: UP036 - whichever Python a branch has
        sys.exit("Python 3.10 or newer is needed, this is " + sys.version.split()[0])
    if len(sys.argv) != 2 or sys.argv[1] not in ADAPTERS:
        sys.exit(f"usage: python -m {__package__} {'|'.join(ADAPTERS)}")
    from . import task

    sys.exit(task.main(importlib.import_module(f".{ADAPTERS[sys.argv[1]]}", __package__).run))
