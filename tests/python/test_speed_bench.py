"""The tables of docs/speed.md (`make bench-speed`): what they say of a result, and that a run measures."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"


@pytest.fixture(scope="module")
def page():
    """The module of the tables, whose imports are for the folders of benches only."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("peers", "plates", "speed"):
            patch.syspath_prepend(BENCHES / folder)
        yield importlib.import_module("speed_page")
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(BENCHES):
                sys.modules.pop(name)


def result(rounds=6, kernel=2000.0):
    """One thread has 100 images/s and two have 200, a tenth more in each process; reading alone would give 400."""
    rows = [
        {"format": form, "kept": kept, "one": [100.0 + 10 * i for i in range(rounds)],
         "two": [200.0 + 20 * i for i in range(rounds)], "kernel": [kernel + kernel / 10 * i for i in range(rounds)],
         "read": [400.0 + 40 * i for i in range(rounds)]}
        for form, kept in (("parquet", False), ("parquet", True))
    ]  # fmt: skip
    counts = [
        {"format": "lance", "images": images, "rate": [rate] * rounds, "first": [0.002] * rounds, "mb": [64] * rounds}
        for images, rate in ((1_000, 1e6), (1_000_000, 5e5))
    ]
    facts = {"command": "speed.py", "commit": "abc", "date": "2026-11-28", "machine": "2 processors",
             "rounds": rounds, "repeats": 3, "batch": 16}  # fmt: skip
    return {"facts": facts, "speed": {"limits": [{"title": "noise", "side": 100, "rows": rows}], "count": counts}}


def test_tables_have_medians_with_intervals_and_the_limit_that_binds(page):
    lines = page.section(result()).splitlines()
    assert lines[0].startswith("One run (`speed.py`, commit abc, 2026-11-28) on 2 processors: 6 processes, 3 repeats")
    reading, kept = (line for line in lines if line.startswith("| parquet |"))
    # 250 images of 40,000 bytes a second are 0.01 GB/s. Reading gives twice as much in each process.
    assert reading == (
        "| parquet |  | 125 (104–146) | 250 (207–293) | 2.00 (2.00–2.00) | 0.01 | 0.10 (0.10–0.10) "
        "| reading and decoding | 0.50 (0.50–0.50) |"
    )
    assert kept.endswith("| 0.10 (0.10–0.10) | widening and scaling | 0.10 (0.10–0.10) |")
    small, large = (line for line in lines if line.startswith("| lance |"))
    assert small == "| lance | 1,000 | 1.00 (1.00–1.00) |  | 2.00 (2.00–2.00) | 64.0 |"
    assert large == "| lance | 1,000,000 | 2.00 (2.00–2.00) | 2.00 (2.00–2.00) | 2.00 (2.00–2.00) | 64.0 |"


def test_first_epochs_stand_beside_later_ones_where_they_were_measured(page):
    one = result()
    assert "first epoch" not in page.section(one)
    for row in one["speed"]["limits"][0]["rows"]:
        row["first"] = [rate / 2 for rate in row["two"]]
    text = page.section(one)
    assert page.FIRST in text and "| ratio | first epoch, images/s | of later epochs | written, GB/s |" in text
    (reading, _) = (line for line in text.splitlines() if line.startswith("| parquet |"))
    assert "| 250 (207–293) | 2.00 (2.00–2.00) | 125 (104–146) | 0.50 (0.50–0.50) | 0.01 |" in reading
    # One process without a value, as of an epoch that was cut short.
    one["speed"]["limits"][0]["rows"][0]["first"][2] = None
    assert "first epoch" not in page.section(one)


def test_a_title_has_the_number_of_images(page):
    one = result()
    assert "\n**noise**\n" in page.section(one)
    one["speed"]["limits"][0]["images"] = 1000
    assert "\n**noise, 1,000 images**\n" in page.section(one)


def test_the_limit_of_a_small_share_is_called_the_nearest(page):
    text = page.section(result())
    assert "| nearest limit | of that limit |" in text and "bound by" not in text


def test_a_share_above_one_is_no_limit(page):
    lines = page.section(result(kernel=160.0)).splitlines()
    assert all("| limit not valid | 1.25 (1.25–1.25) |" in line for line in lines if line.startswith("| parquet |"))


def test_a_limit_is_named_where_the_whole_interval_is_at_most_one(page):
    def bound(shares):
        row = {"kept": True, "two": [100.0 * share for share in shares], "kernel": [100.0] * len(shares)}
        return page.nearest(row)[0]

    assert bound([0.7, 0.8, 0.8, 0.9, 0.9, 1.0]) == "widening and scaling"
    assert bound([0.7, 0.8, 0.8, 0.9, 0.9, 1.2]) == "open"
    assert bound([0.7, 0.8, 1.05, 1.1, 1.1, 1.2]) == "limit not valid"


def test_few_processes_and_half_a_run_are_refused(page):
    assert page.refused(result()) is None
    assert page.refused(result(rounds=5)) == "5 processes: a page needs 6"
    half = result()
    del half["speed"]["count"]
    assert page.refused(half) == "not measured: count"


def test_a_run_measures_each_format_and_cache(tmp_path):
    program = os.environ.get("WELLREAD") or shutil.which("wellread")
    # Few small images, in the way of the large run.
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import speed\n"
        "speed.SETS = {'tiny': (32, ['--images', '16', '--kind', 'noise', '--dtype', 'uint8',"
        " '--compression', 'none', '--formats', 'parquet,tiff'])}\n"
        "speed.COUNTED, speed.COUNTS = ('parquet',), (16, 32)\n"
        "speed.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, BENCHES, "--wellread", program, "--out", tmp_path / "speed.json",
         "--rounds", "2", "--repeats", "1"], capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "speed.json").read_text())
    assert found["facts"]["command"] == "speed.py --rounds 2 --repeats 1"
    (table,) = found["speed"]["limits"]
    assert (table["title"], table["images"]) == ("tiny", 16)
    keys = {(row["format"], row["kept"]) for row in table["rows"]}
    assert keys == {(form, kept) for form in ("parquet", "tiff") for kept in (False, True)}
    for row in table["rows"]:
        assert all(len(row[name]) == 2 and min(row[name]) > 0 for name in ("one", "two", "first", "kernel")), row
    assert [(row["format"], row["images"]) for row in found["speed"]["count"]] == [("parquet", 16), ("parquet", 32)]
    assert all(min(row["rate"]) > 0 and min(row["first"]) > 0 for row in found["speed"]["count"])
    # The folder with the sets is gone.
    assert [path.name for path in tmp_path.iterdir()] == ["speed.json"]
