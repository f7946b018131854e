"""The comparison of plates and cells (`make bench-plates`): what its tables may say."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
NAMES = ("judge", "page", "plate_page")


@pytest.fixture(scope="module")
def page():
    """Its page, and what it takes from benches/peers, whose names are for their own folder only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHES / "peers")
        patch.syspath_prepend(BENCHES / "plates")
        yield importlib.import_module("plate_page")
        for name in NAMES:
            sys.modules.pop(name, None)


def run(round_, first, later):
    return {"round": round_, "epochs_s": [first, *later], "rows": 100, "memory_mb": 1.0}


def result(rounds=6, peer_s=2.0, ours_s=0.5):
    """One row, whose peer takes four times as long in later epochs and twice as long in the first."""
    ours = [run(i, ours_s * 2, [ours_s, ours_s]) for i in range(1, rounds + 1)]
    peer = [{**run(i, peer_s, [peer_s]), "memory_mb": 3.0} for i in range(1, rounds + 1)]
    row = {"what": "a set", "top": "peer", "bottom": "ours", "goal": 3, "at_most": False}
    part = {
        "rows": [row],
        "about": {"peer": "the peer", "ours": "wellread"},
        "runs": {"peer": peer, "ours": ours},
        "twins": [{"of": "ours", **one} for one in ours],
        "copy": [{"gb_per_s": 10.0}],
    }
    opened = [
        {"round": i, "open_s": 0.25, "again_s": 0.2, "listing_s": 0.1, "index": False} for i in range(1, rounds + 1)
    ]
    opening = {"files": 34560, "dropped": False, "runs": {"forgotten": [], "first": opened, "after": opened}}
    facts = {"command": "plates.py", "commit": "abc", "date": "2026-01-01", "machine": "one", "threads": 2}
    facts |= {"versions": {"Python": "3"}, "rounds": rounds, "sites": 4, "size": 256, "crops": 32, "few": 4}
    return {"facts": facts, "parts": {"a": part, "e": opening}}


@pytest.mark.parametrize(
    ("ratio", "goal", "at_most", "said"),
    [
        ((8.5, 8.1, 9.0), 8, False, "reached"),
        ((8.5, 8.01, 9.0), 8, False, "open"),
        ((7.0, 6.9, 7.95), 8, False, "open"),
        ((8.5, 7.9, 9.0), 8, False, "open"),
        ((7.0, 6.9, 7.9), 8, False, "missed"),
        ((1.5, 1.4, 1.58), 1.6, True, "reached"),
        ((1.5, 1.4, 1.6), 1.6, True, "open"),
        ((1.5, 1.4, 1.7), 1.6, True, "open"),
        ((1.8, 1.7, 1.9), 1.6, True, "missed"),
        ((9.0, None, None), 8, False, "met, without interval"),
        ((1.7, None, None), 1.6, True, "not met, without interval"),
        ((1.7, 1.6, 1.8), None, False, ""),
    ],
)
def test_a_goal_is_reached_by_the_whole_interval(page, ratio, goal, at_most, said):
    """By more than the noise floor, here 1 %."""
    assert page.verdict(*ratio, goal, at_most, 0.01) == said


def test_nothing_is_reached_where_the_noise_is_unknown(page):
    assert page.verdict(9.0, 8.5, 9.5, 8, False, None) == "open"


def test_the_noise_floor_is_of_each_side(page):
    part = result()["parts"]["a"]
    # The peer's second runs take a quarter longer, wellread's as long.
    for one in part["runs"]["peer"]:
        part["twins"].append({"of": "peer", "side": "peer", **one, "epochs_s": [2.0, 2.5]})
    assert page.floor(part, page.PHASES["first"][1]) == 0
    assert page.floor(part, page.PHASES["later"][1]) == pytest.approx(0.25)
    assert page.floor(part, lambda run: None) is None


def test_the_tables_have_rates_ratios_and_verdicts(page):
    text = page.section(result())
    first, later = (line for line in text.splitlines() if line.startswith("| a set"))
    assert first == "| a set | the peer | wellread | 50.0 | 100 | 2.00 (2.00–2.00) | at least 3 | missed |"
    # The memory of both stands beside later epochs.
    assert (
        later
        == "| a set | the peer | wellread | 50.0 | 200 | 4.00 (4.00–4.00) | 3.00 | 1.00 | at least 3 | reached |"
    )
    assert "| memory, A, MB | B, MB |" in text and "4 generated sites of 256 x 256" in text
    assert "| first time | 0.25 (0.25–0.25) | under 3 | reached |" in text
    assert "The goals of random crops are for 1,000 sites. With LZW each site is visited 1.0 times an epoch" in text
    assert "keeps nothing of it from process to process" in text


def test_both_sides_have_as_many_epochs(page):
    """wellread's later epochs are faster the more there were; the peer has two of them."""
    one = result()
    for ours, peer in zip(one["parts"]["a"]["runs"]["ours"], one["parts"]["a"]["runs"]["peer"], strict=True):
        ours["epochs_s"] = [1.0, 0.8, 0.6, 0.2, 0.1, 0.1, 0.1]
        peer["epochs_s"] = [2.0, 2.8, 2.8]
    one["parts"]["a"]["twins"] = [{"of": "ours", **run} for run in one["parts"]["a"]["runs"]["ours"]]
    later = [line for line in page.section(one).splitlines() if line.startswith("| a set")][1]
    # 0.7 s of the first two, where all six have 0.15.
    assert (
        later
        == "| a set | the peer | wellread | 35.7 | 143 | 4.00 (4.00–4.00) | 3.00 | 1.00 | at least 3 | reached |"
    )
    assert "\n**Sites of 5 channels, a file for each**, later epochs\n" in page.section(one)
    # The noise is of the same epochs: second runs that slow down after these do not count.
    for twin in one["parts"]["a"]["twins"]:
        twin["epochs_s"] = [1.0, 0.88, 0.66, 9.0, 9.0, 9.0, 9.0]
    part = one["parts"]["a"]
    assert page.floor(part, page.PHASES["later"][1]) == pytest.approx(59.0)
    assert page.floor_of(part, "later") == pytest.approx(0.1)
    assert page.judged(part, part["rows"][0], "later")["judgement"].clear
    text = page.section(one)
    assert text.count("95 % noise floor, of loaders that ran twice in a round: 10.0%.") == 1
    # All rows of a part have the epochs of the loader that ran fewest.
    assert {len(run["epochs_s"]) for runs in page.equal(part)["runs"].values() for run in runs} == {3}
    assert {len(twin["epochs_s"]) for twin in page.equal(part)["twins"]} == {3}
    one["parts"]["a"]["twins"] = [{"of": "ours", **run} for run in one["parts"]["a"]["runs"]["ours"]]
    # A round in which the peer had time for one only.
    one["parts"]["a"]["runs"]["peer"][3]["epochs_s"] = [2.0, 2.8]
    later = [line for line in page.section(one).splitlines() if line.startswith("| a set")][1]
    assert (
        later
        == "| a set | the peer | wellread | 35.7 | 125 | 3.50 (3.50–3.50) | 3.00 | 1.00 | at least 3 | reached |"
    )


@pytest.mark.parametrize(("goal", "cells"), [(None, "none |  |"), (3, "at least 3 | missed |")])
def test_a_ratio_stands_where_it_has_a_verdict(page, goal, cells):
    one = result()
    one["parts"]["a"]["rows"][0]["goal"] = goal
    later = [line for line in page.section(one).splitlines() if line.startswith("| a set")][1]
    assert later.startswith("| a set | the peer | wellread | 50.0 | 200 | 4.00 (4.00–4.00) | 3.00 | 1.00 | ")
    for peer in one["parts"]["a"]["runs"]["peer"]:
        peer["epochs_s"][1] = 0.5
    later = [line for line in page.section(one).splitlines() if line.startswith("| a set")][1]
    said = "no verdict: the interval holds 1; A faster in 0 of 6 rounds"
    assert later == f"| a set | the peer | wellread | 200 | 200 | {said} | 3.00 | 1.00 | {cells}"
    # Beyond 1, and within the noise floor.
    for peer in one["parts"]["a"]["runs"]["peer"]:
        peer["epochs_s"][1] = 0.6
    for twin in one["parts"]["a"]["twins"]:
        twin["epochs_s"] = [1.0, 0.65, 0.65]
    later = [line for line in page.section(one).splitlines() if line.startswith("| a set")][1]
    said = "no verdict: the interval reaches into the noise floor of 30%; A faster in 0 of 6 rounds"
    assert later == f"| a set | the peer | wellread | 167 | 200 | {said} | 3.00 | 1.00 | {cells}"


def test_a_run_by_rules_of_before_says_so(page):
    one = result()
    assert page.BEFORE in page.section(one)
    one["facts"]["rules"] = page.RULES
    assert page.BEFORE not in page.section(one)
    # A run that says none has the rules before today's if its second runs tell their side.
    one = result()
    for twin in one["parts"]["a"]["twins"]:
        twin["side"] = "wellread"
    assert page.rules_of(one) == 2 and page.copied(one) and page.BEFORE not in page.section(one)
    one["facts"]["rules"] = page.RULES + 1
    assert page.BEFORE in page.section(one)


def test_a_run_whose_workers_copied_batches_says_so_in_its_captions(page):
    one = result()
    part = one["parts"]["a"]
    for held in ("about", "runs"):
        part[held]["tifffile lzw"] = part[held]["peer"]
    part["rows"][0]["top"] = "tifffile lzw"
    one["facts"]["rules"] = page.RULES
    assert page.page.COPIED not in page.section(one)
    one["facts"]["rules"] = page.RULES - 1
    text = page.section(one)
    caption = "**Sites of 5 channels, a file for each**, later epochs: the second one"
    assert f"\n{caption}. {page.page.COPIED}. It concerns the rows of" in text
    assert text.count(page.page.COPIED) == 2
    # torch's own collation is in shared memory.
    part["rows"][0]["top"] = "peer"
    assert page.page.COPIED not in page.section(one)


def test_rows_of_crops_say_what_the_peer_reads(page):
    one = result()
    one["parts"]["b"] = one["parts"].pop("a")
    row, about = one["parts"]["b"]["rows"][0], one["parts"]["b"]["about"]
    assert page.WHOLE_IMAGE not in page.section(one)
    row["what"], about["peer"] = "TIFF, LZW in one strip", "tifffile, whole image, sliced"
    first, later = page.section(one).split("**, later epochs")
    # Entry points of strips are found by later epochs.
    assert "| TIFF, LZW in one strip 1) |" in first and page.ENTRY_POINTS not in first
    assert "| TIFF, LZW in one strip 1) 2) |" in later
    assert f"\n1) {page.WHOLE_IMAGE}\n\n2) {page.ENTRY_POINTS}\n" in later
    row["what"] = "TIFF, not compressed"
    assert page.ENTRY_POINTS not in page.section(one) and "| TIFF, not compressed 1) |" in page.section(one)


def test_a_loader_that_failed_has_no_figure(page):
    broken = result()
    broken["parts"]["a"]["runs"]["peer"] = [{"round": 0, "error": "ValueError: other pixels"}]
    lines = [line for line in page.section(broken).splitlines() if line.startswith("| a set")]
    assert len(lines) == 2 and all("not measured: ValueError: other pixels" in line for line in lines)


def test_a_page_takes_six_rounds_and_keeps_what_stands_around(page):
    text = "before\n<!-- plates:begin -->\nold\n<!-- plates:end -->\nafter\n"
    put = page.put(text, result())
    assert put.startswith("before\n<!-- plates:begin -->\nOne run") and put.endswith("<!-- plates:end -->\nafter\n")
    assert "\nold\n" not in put
    with pytest.raises(ValueError, match="5 rounds: a page needs 6"):
        page.put(text, result(5))
    with pytest.raises(ValueError, match="the page has no"):
        page.put("nothing", result())


def test_the_page_of_the_book_has_its_markers(page):
    book = (BENCHES.parent / "docs" / "peers-plates.md").read_text()
    assert page.section(result()) in page.put(book, result())


PLAN = """
import json, sys
from argparse import Namespace
from pathlib import Path
sys.path.insert(0, {benches!r})
import plates
from plate_loaders import LOADERS

made = Namespace(images=Path("images"), folder=Path("folder"), table=lambda few: "cells.parquet")
a = Namespace(threads=2, seconds=1, sites=192, crops=4096, size=1080, data=Path("data"))
parts = plates.variants_of(a, dict.fromkeys(("lzw", "none", "zarr"), made))
print(json.dumps({{
    part: {{name: LOADERS[variant.job.loader][1] for name, variant in variants.items()}}
    for part, (variants, _) in parts.items()
}}))
"""


def test_peers_that_decode_little_are_read_without_workers_too():
    pytest.importorskip("torch")
    code = PLAN.format(benches=str(BENCHES))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    workers = json.loads(done.stdout)
    for part, names in (("a", ("tifffile", "tifffile-mapped")), ("b", ("tifffile", "tifffile-mapped"))):
        assert all((workers[part][f"{name} none"], workers[part][f"{name}-0 none"]) == (2, 0) for name in names)
    assert (workers["b"]["zarr-python zarr"], workers["b"]["zarr-python-0 zarr"]) == (2, 0)


OF_ZARR = """
import json, sys
from argparse import Namespace
sys.path.insert(0, {benches!r})
import plates, zarr
from plate_loaders import LOADERS

job = Namespace(plate=Namespace(sites=list, size=int), table=None, threads=2, orders=([],), batch=1)
threads = dict()
for name in ("zarr-python", "zarr-python-0"):
    make, workers, _ = LOADERS[name]
    make(job, workers)
    threads[name] = zarr.config.get("threading.max_workers")
print(json.dumps(threads))
"""


def test_zarr_python_has_as_many_threads_as_others():
    pytest.importorskip("torch")
    pytest.importorskip("zarr")
    done = subprocess.run(
        [sys.executable, "-c", OF_ZARR.format(benches=str(BENCHES))], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    # Of two processes one each.
    assert json.loads(done.stdout) == {"zarr-python": 1, "zarr-python-0": 2}
