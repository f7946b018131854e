"""check-installed.py: the installed package and command, as a user has them, on a generated set in every format.

It needs nothing of the clone. The package has to read every format that the command writes, with the same pixels.
DuckDB's formats count where the package `duckdb` is installed (for Python 3.10 there is no release from 2.0 on).
"""

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import wellread

DUCKDB = importlib.util.find_spec("duckdb") is not None


def main() -> None:
    command = shutil.which("wellread", path=str(Path(sys.executable).parent)) or shutil.which("wellread")
    assert command, "no command `wellread`: install the wheel wellread-cli, too"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "set"
        formats = sorted(name for name in wellread.formats() if DUCKDB or "duckdb" not in name)
        generate = [command, "--quiet", "generate", made, "--images", "12", "--size", "64x48"]
        subprocess.run([*generate, "--formats", ",".join(formats)], check=True, stdout=subprocess.DEVNULL)
        sums = {}
        for path in sorted(made.iterdir()):
            if path.suffix == ".json":
                continue
            told = json.loads(subprocess.check_output([command, "info", path, "--json"]))
            loader = wellread.DataLoader(str(path), 4, shuffle=True, seed=3, num_workers=2)
            sums[f"{path.name} ({told['format']})"] = sum(float(batch.sum()) for batch in loader)
        assert len(sums) >= 4, f"only {list(sums)} were written"
        (first, *others) = sums.values()
        assert first > 0 and all(abs(other - first) < 1e-6 * first for other in others), sums
        subprocess.run([sys.executable, "-m", "wellread", "doctor"], check=True, stdout=subprocess.DEVNULL)
    for package in ("torch", "jax"):
        assert package not in sys.modules, f"importing wellread has imported {package}"
    print(f"{len(sums)} sets read alike: {', '.join(sums)}")


if __name__ == "__main__":
    main()
