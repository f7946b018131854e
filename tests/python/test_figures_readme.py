"""README's table of peers, and counts of docs/method.md that are computed (scripts/figures.py)."""

import importlib.util
import json
import math
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    """scripts/figures.py as a module, and what it takes from benches, whose names are for their own folders only."""
    before, path = set(sys.modules), list(sys.path)
    spec = importlib.util.spec_from_file_location("figures_script", ROOT / "scripts" / "figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(ROOT / "benches"):
            sys.modules.pop(name)


def of_ways(seconds, rules=3):
    """A result of large fields in which each loader takes these seconds, in first and later epochs; wellread one."""
    seconds = {"wellread:tiff": (1, 1), "wellread:ome-zarr": (1, 1), "wellread:keyed.duckdb": (1, 1), **seconds}
    each = range(1, 7)
    runs = {name: [{"round": r, "epochs_s": [first, later], "first_batch_s": 0.1, "memory_mb": 1.0} for r in each]
            for name, (first, later) in seconds.items()}  # fmt: skip
    ours = {"zarr": "wellread:ome-zarr", "tens": "wellread:ome-zarr", "duck": "wellread:keyed.duckdb"}
    rows = [{"set": "a set", "ours": ours.get(name[:4], "wellread:tiff"), "peer": name, "about": f"way {name}"}
            for name in seconds if not name.startswith("wellread:")]  # fmt: skip
    twins = [{"of": name, **run} for name in ("wellread:tiff", "tifffile") for run in runs[name]]
    facts = {"command": "compare.py", "rules": rules, "commit": "abc", "date": "2026-01-02", "machine": "one"}
    measured = {"name": "1080", "title": "96 images, 1080 x 1080 uint16 (cells), batches of 4", "images": 96,
                "batch": 4, "later": 1, "rows": rows, "runs": runs, "twins": twins}  # fmt: skip
    return {"facts": {**facts, "threads": 2, "versions": {}}, "sets": [measured]}


PLATES_OF_BEFORE = {"facts": {"rules": 1}, "parts": {}}


def test_the_readme_has_the_nearest_way_of_each_phase_and_the_nearest_library_first(script):
    peers = of_ways({
        "tifffile": (4, 3), "tifffile-threads": (2, 2.5), "tifffile-kept": (3, 2), "spdl": (5, 5),
        "zarr-python-0": (8, 6), "zarr-threads": (9, 6.5), "duckdb": (7, 9), "duckdb-bare": (6, 8),
        "tensorstore": (1.25, 1.5),
    })  # fmt: skip
    text = script.readme_table(peers, peers, PLATES_OF_BEFORE)
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()[2:6]]
    assert rows == [
        ["way tensorstore", "1.25 (1.25–1.25)", "1.50 (1.50–1.50)", "both read the same files"],
        ["first epoch: way tifffile-threads; later epochs: way tifffile-kept", "2.00 (2.00–2.00)", "2.00 (2.00–2.00)",
         "both read the same files, not compressed"],
        ["way zarr-python-0", "8.00 (8.00–8.00)", "6.00 (6.00–6.00)",
         "both read the same files; the peer reads in the process that iterates"],
        ["way duckdb-bare", "6.00 (6.00–6.00)", "8.00 (8.00–8.00)",
         "a file of its own: pixels without the rest of OME-Arrow"],
    ]  # fmt: skip
    # A library of which nothing was measured has no row.
    assert "Vortex" not in text and "pylance" not in text
    said = "way tensorstore is the closest slower peer in later epochs (a set). wellread is 1.50 (1.50–1.50) times as"
    assert f"\n\n{said} fast.\n\nOne run" in text
    # What is true of one phase alone says so.
    peers = of_ways({"tifffile": (4, 3), "tifffile-0": (2, 4), "spdl": (5, 2)})
    text = script.readme_table(peers, peers, PLATES_OF_BEFORE)
    assert (
        "| first epoch: way tifffile-0; later epochs: way spdl | 2.00 (2.00–2.00) | 2.00 (2.00–2.00) | both read the "
        "same files, not compressed; the peer reads in the process that iterates (first epoch) |"
    ) in text


def test_the_readme_says_how_loaders_that_ran_twice_were_chosen(script):
    for rules, how in ((3, "in turn"), (2, "drawn at random")):
        peers = of_ways({"tifffile": (4, 3)}, rules)
        text = script.readme_table(peers, peers, PLATES_OF_BEFORE)
        said = f"95 % noise floor of the rows above: one loader of each side a round, {how}, run twice | 0 % | 0 % |"
        assert said in text


def test_the_row_of_sites_has_the_nearest_way_of_each_phase(script):
    each = range(1, 7)

    def runs(first, *later):
        return [{"round": r, "rows": 192, "memory_mb": 1.0, "epochs_s": [first, *later]} for r in each]

    names = {"wellread lzw": runs(1.0, 1.0, 0.25), "tifffile lzw": runs(4.0, 2.0),
             "tifffile-imread lzw": runs(3.0, 2.5)}  # fmt: skip
    twins = [{"of": "wellread lzw", "side": "wellread", **run} for run in runs(1.0, 1.0, 0.5)]
    rows = [{"what": "LZW", "top": name, "bottom": "wellread lzw", "goal": 8, "at_most": False}
            for name in names if name != "wellread lzw"]  # fmt: skip
    part = {"rows": rows, "about": {name: f"way {name}" for name in names}, "runs": names, "twins": twins}
    row, floor = script.sites_row({"parts": {"a": part}})
    assert row == (
        "| 192 generated sites of 5 channels, TIFF with LZW; first epoch: way tifffile-imread lzw; later epochs: way "
        "tifffile lzw | 3.00 (3.00–3.00) | 2.00 (2.00–2.00) | both read the same files; another run |"
    )
    # The third epoch of wellread, which no other has, is in no figure: neither in ratios nor in the noise.
    assert floor == "| 95 % noise floor of the row of sites | 0 % | 0 % | of that run |"


def binomial_interval(count, tries):
    """The exact 95 % interval of a share (Clopper and Pearson 1934)."""

    def up_to(most, share):
        return sum(math.comb(tries, k) * share**k * (1 - share) ** (tries - k) for k in range(most + 1))

    def turn(is_below):
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if is_below(middle) else (low, middle)
        return low

    low = turn(lambda share: 1 - up_to(count - 1, share) < 0.025) if count else 0.0
    return low, turn(lambda share: up_to(count, share) > 0.025) if count < tries else 1.0


def test_counts_of_false_alarms_have_their_interval_and_the_bound_of_the_test():
    text = (ROOT / "docs" / "method.md").read_text()
    (counts,), (intervals,) = (
        re.findall(rf"^\| {start}\|(.*)\|$", text, re.M)
        for start in ("tables of 200 with a verdict ", "exact binomial 95 % interval, in % of tables ")
    )
    said = [cell.strip() for cell in intervals.split("|")]
    ends = [binomial_interval(int(count), 200) for count in counts.split("|")]
    assert said == [f"{100 * low:.1f}–{100 * high:.1f}" for low, high in ends] and len(said) == 9
    # crates/wellread-cli/tests/it/false_alarms.rs
    bound = int(0.05 * 200 + 2.33 * math.sqrt(0.05 * 0.95 * 200))
    assert f"or above {bound} of 200." in text


def test_what_real_processes_would_have_missed_is_that_of_their_intervals():
    kept = json.loads((ROOT / "docs" / "results" / "same-thing-twice.json").read_text())["tables"]["same-thing-twice"]
    # Half of a median interval, on the scale of logarithms.
    reach = min(math.sqrt(float(row[-1])) for row in kept["rows"])
    assert f"reaches a factor of {reach:.1f} and more" in (ROOT / "docs" / "method.md").read_text() and reach > 1.5
