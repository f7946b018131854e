"""The comparison of sets in buckets (`make bench-remote`): what its tables may say."""

import importlib
import random
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
NAMES = ("judge", "page", "plate_page", "remote_page")


@pytest.fixture(scope="module")
def page():
    """Its page, and what it takes from other folders of benches, whose names are for their own folder only."""
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("peers", "plates", "remote"):
            patch.syspath_prepend(BENCHES / folder)
        yield importlib.import_module("remote_page")
        for name in NAMES:
            sys.modules.pop(name, None)


def runs(first_s, later_s=None, cpu_s=1.0, rounds=6, **more):
    """Epochs of 100 images."""
    epochs = [{"s": s, "images": 100, "cpu_s": cpu_s} for s in (first_s, later_s) if s]
    return [
        {"round": i, "first_batch_s": 0.1, "epochs": epochs, "memory_mb": 200.0, **more} for i in range(1, rounds + 1)
    ]


def result(rounds=6):
    """wellread reaches 0.95 of the link in a later epoch, and a peer takes eight times as long in the first one."""
    ours = runs(1.0, 0.5, rounds=rounds, loader_requests=40)
    at = {
        "runs": {
            "wellread ome-zarr": ours,
            "wellread parquet": runs(0.5, 0.5, cpu_s=1.2, rounds=rounds),
            "wellread parquet, folder": runs(0.1, 0.1, rounds=rounds),
            "wellread parquet, disk cache": runs(0.5, 0.2, rounds=rounds),
            "zarr-obstore": runs(8.0, rounds=rounds),
            "litdata": runs(0.25, rounds=rounds),
            "pylance": [{"error": "no answer"}],
        },
        "twins": [{"of": "wellread ome-zarr", **one} for one in ours],
        "limits": {
            "wellread ome-zarr": [{"round": i, "limit_link_per_s": 200 / 0.95} for i in range(1, rounds + 1)],
            "wellread parquet": [{"round": 1, "error": "the server is gone"}],
        },
    }
    facts = {"command": "remote.py", "commit": "abc", "date": "2026-01-01", "machine": "one", "threads": 2}
    facts |= {"versions": {"Python": "3"}, "rounds": rounds, "mbit": 1000, "rules": 2, "readers": 2}
    return {"facts": facts, "links": {"a": {"about": "images", "latencies": {"20": at}}}}


def cells(text, *begin):
    """The cells of the line that begins with these."""
    return next(
        found
        for line in text.splitlines()
        if (found := [cell.strip() for cell in line.strip("|").split("|")])[: len(begin)] == list(begin)
    )


def test_a_format_has_its_rates_and_its_share_of_the_link(page):
    text = page.section(result())
    assert cells(text, "ome-zarr") == [
        "ome-zarr", "0.10", "100", "200", "0.95 (0.95–0.95)", "at least 0.9", "reached", "40", "200"
    ]  # fmt: skip
    assert cells(text, "wellread, random order")[-2:] == ["requests, all epochs", "memory, MB"]
    assert cells(text, "parquet")[1] == "not measured: the server is gone"
    assert "95 % noise floor, of loaders that ran twice in a round: first epochs 0.0%, later epochs 0.0%." in text


def test_first_epochs_of_rules_of_before_are_left_out(page):
    before = result()
    del before["facts"]["rules"]
    text = page.section(before)
    assert cells(text, "ome-zarr")[1:4] == ["200", "0.95 (0.95–0.95)", "at least 0.9"]
    assert "Withdrawn until they are measured again" in text and "Withdrawn" not in page.section(result())
    assert "zarr-python + obstore" not in text and "CPU of an image" not in text
    assert "rate of the second epoch, disk cache / folder" in text


def test_rates_of_unlike_numbers_of_threads_are_not_compared(page):
    before = result()
    del before["facts"]["readers"]
    text = page.section(before)
    assert page.ONE_READER in text and page.ONE_READER not in page.section(result())
    about = "rate of the second epoch, disk cache / folder"
    assert about not in text and about in page.section(result())
    assert "CPU of an image in the first epoch, link / folder" in text


def test_a_verdict_needs_more_than_the_noise(page):
    one = result()
    at = one["links"]["a"]["latencies"]["20"]
    at["twins"] = [{**twin, "epochs": [{**epoch, "s": epoch["s"] * 1.1} for epoch in twin["epochs"]]}
                   for twin in at["twins"]]  # fmt: skip
    text = page.section(one)
    assert cells(text, "ome-zarr")[6] == "open"
    assert cells(text, "zarr-python + obstore")[-1] == "reached"
    assert "first epochs 10.0%, later epochs 10.0%" in text


def test_order_is_drawn_anew_in_each_round_and_twins_take_turns(monkeypatch):
    monkeypatch.syspath_prepend(BENCHES)
    plan = importlib.import_module("remote").plan
    sys.modules.pop("remote")
    names = ["wellread parquet", "wellread lance", "pylance", "litdata"]
    rounds = list(plan(names, 20, random.Random(42)))
    assert all(sorted(name for name, again in jobs if not again) == sorted(names) for jobs in rounds)
    again = [[name for name, again in jobs if again] for jobs in rounds]
    assert all(sorted(name.startswith("wellread") for name in twins) == [False, True] for twins in again)
    # Drawn at random, one variant may have most of the second runs.
    counts = [[name for twins in again for name in twins].count(name) for name in names]
    assert counts == [10, 10, 10, 10]
    assert len({tuple(jobs) for jobs in rounds}) > 10
    assert rounds == list(plan(names, 20, random.Random(42)))
    assert [len(jobs) for jobs in plan(names[:2], 2, random.Random(1))] == [3, 3]


def test_a_peer_stands_beside_the_format_nearest_to_its_own(page):
    text = page.section(result())
    assert cells(text, "zarr-python + obstore")[2:] == [
        "OME-Zarr, a group an image", "12.5", "100", "8.00 (8.00–8.00)", "at least 5", "reached"
    ]  # fmt: skip
    assert cells(text, "LitData")[2:] == ["Parquet", "400", "200", "0.50 (0.50–0.50)", "at least 1", "missed"]
    assert not any(line.startswith("| pylance") for line in text.splitlines()), "without wellread's Lance beside it"


def test_two_loaders_without_a_verdict_have_no_ratio(page):
    one = result()
    at = one["links"]["a"]["latencies"]["20"]
    # The noise floor of first epochs is 100 %: 1.6 times is no verdict, and so is 0.8 of another loader's rate.
    at["twins"] = [{**twin, "epochs": [{**epoch, "s": 2 * epoch["s"], "cpu_s": 2.0} for epoch in twin["epochs"]]}
                   for twin in at["twins"]]  # fmt: skip
    at["runs"]["zarr-obstore"] = runs(1.6)
    at["runs"]["wellread parquet, disk cache"] = runs(0.5, 0.125)
    text = page.section(one)
    within = "no verdict: the interval reaches into the noise floor of 100%"
    assert cells(text, "zarr-python + obstore")[5:] == [
        f"{within}; peer faster in 0 of 6 rounds", "at least 5", "missed"
    ]  # fmt: skip
    assert cells(text, "LitData")[5:] == [f"{within}; peer faster in 6 of 6 rounds", "at least 1", "open"]
    about = "rate of the second epoch, disk cache / folder"
    assert cells(text, "parquet", about)[2:] == [f"{within}; below 1 in 6 of 6 rounds", "at least 0.8", "open"]
    assert "1.60" not in text and "0.80 (" not in text
    # A share of a limit is of no other loader.
    assert cells(text, "ome-zarr")[4] == "0.95 (0.95–0.95)"


def test_the_table_of_peers_is_of_first_epochs(page):
    lines = page.section(result()).splitlines()
    (head,) = [i for i, line in enumerate(lines) if line.startswith("| peer |")]
    assert cells(lines[head], "peer")[3:6] == [
        "peer, first epoch, images/s", "wellread, first epoch, images/s", "ratio of first epochs"
    ]  # fmt: skip
    assert lines[head - 2] == page.FIRST_OF_PEERS
    for part in ("no later epoch of a peer was compared", "up to 8 worker processes"):
        assert part in page.FIRST_OF_PEERS
    alone = result()
    alone["links"]["a"]["latencies"]["20"]["runs"] = {"wellread ome-zarr": runs(1.0, 0.5)}
    assert page.FIRST_OF_PEERS not in page.section(alone)


def test_places_are_compared_with_the_folder(page):
    text = page.section(result())
    rate, cpu = (line for line in text.splitlines() if line.startswith("| parquet |") and "folder |" in line)
    assert "| 0.50 (0.50–0.50) | at least 0.8 | missed |" in rate
    assert "| 1.20 (1.20–1.20) | at most 1.3 | reached |" in cpu


def test_few_rounds_have_no_interval_and_no_page(page):
    few = result(rounds=5)
    said = "no verdict: 5 of the 6 rounds that a verdict needs | at least 5 | met, without interval"
    assert said in page.section(few) and "8.00" not in page.section(few)
    with pytest.raises(ValueError, match="5 rounds: a page needs 6"):
        page.put("<!-- remote-a:begin -->\n<!-- remote-a:end -->", few)
