"""Run every script of the gallery, and say which package one lacks: `make examples`.

    python examples/gallery/run_all.py [--only NAME[,NAME …]] [--out results/gallery] [--generated] [--small]

It ends with 1 when a script failed or was left out.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What each script imports beside wellread and NumPy: module -> package. Those in `OPTIONAL` have a fallback.
DRAWN = {"PIL": "pillow", "pyarrow": "pyarrow"}
TORCH = {"torch": "torch", **DRAWN}
NEEDS = {
    "pretrain_cells": TORCH,
    "segment_nuclei": TORCH,
    "label_free": TORCH,
    "embed_umap": {**TORCH, "pandas": "pandas"},
    "guard_pull_request": DRAWN,
    "choose_format": DRAWN,
}
# Settings of a test: seconds, and no result to look at.
SMALL = {
    "pretrain_cells": "--steps 8",
    "segment_nuclei": "--steps 6 --size 96",
    "label_free": "--steps 6 --size 96",
    "embed_umap": "--steps 4",
    "guard_pull_request": "--images 24 --seconds 3",
    "choose_format": "--seconds 5 --formats parquet,tiff",
}
OPTIONAL = {"embed_umap": {"pycytominer": "pycytominer", "umap": "umap-learn"}}


def missing(modules: dict[str, str]) -> list[str]:
    """The packages of these modules that are not installed."""
    return [package for module, package in modules.items() if importlib.util.find_spec(module) is None]


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="some of the scripts, such as segment_nuclei,label_free")
    parser.add_argument("--out", type=Path, default=Path("results/gallery"))
    parser.add_argument("--generated", action="store_true", help="generated images also where there are real ones")
    parser.add_argument("--small", action="store_true", help="settings of a test, which take seconds")
    choices = parser.parse_args(arguments)
    names = choices.only.split(",") if choices.only else list(NEEDS)
    unknown = [name for name in names if name not in NEEDS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}: the scripts are {', '.join(NEEDS)}")
    environment = {**os.environ, **({"WELLREAD_SHARED": ""} if choices.generated else {})}
    failed = []
    for name in names:
        lacks = missing({"wellread": "wellread", "numpy": "numpy", **NEEDS[name]})
        if lacks:
            print(f"\n== {name}: left out, {' and '.join(lacks)} missing: pip install {' '.join(lacks)}", flush=True)
            failed.append(name)
            continue
        for package in missing(OPTIONAL.get(name, {})):
            print(f"\n{name} does without {package}: pip install {package}")
        print(f"\n== {name}", flush=True)
        begun = time.monotonic()
        small = SMALL[name].split() if choices.small else []
        command = [sys.executable, HERE / f"{name}.py", "--out", choices.out, *small]
        if subprocess.run(command, env=environment).returncode:
            failed.append(name)
        print(f"{time.monotonic() - begun:.0f} s", flush=True)
    done = len(names) - len(failed)
    print(f"\n{done} of {len(names)} ran: {choices.out}" + (f"; not: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
