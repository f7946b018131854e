"""The mutation campaign (`make campaign`) in small: damage to a set of each kind, kills of each format."""

import importlib.util
import json
import os
import shutil
import types
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def campaign():
    path = Path(__file__).parents[2] / "fuzz" / "campaign.py"
    spec = importlib.util.spec_from_file_location("campaign", path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module.
    import sys

    sys.modules["campaign"] = module
    spec.loader.exec_module(module)
    return module


def test_a_small_campaign_finds_nothing(campaign, wellread, tmp_path, capsys):
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    kinds = len(campaign.ways())
    words = ["--wellread", binary, "--n", str(3 * kinds), "--seed", "1", "--kills", "2", "--out", str(tmp_path)]
    code = campaign.main(words)
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    document = json.loads((tmp_path / "campaign.json").read_text())
    sets = document["sets"]
    # Every format of this build; parquet-default is parquet with --tune reference.
    formats = {format["name"] for format in wellread("doctor", "--python", "no-such-python")["formats"]}
    assert formats >= {"tiff", "parquet", "ome-zarr"}
    assert {s["set"].split()[0] for s in sets} == formats - {"parquet-default"}
    # The long campaign damages each of them 600 times and more.
    assert 600 * kinds <= campaign.LONG
    assert document["wellread"].startswith("wellread ")
    assert all(s["tried"] >= 3 for s in sets)
    # Most damage is seen, and the libraries of reference were asked.
    assert sum(s["wellread"]["error"] for s in sets if s["checksums"]) > kinds
    assert sum(sum(s["library"].values()) for s in sets if s["set"].startswith("tiff")) > 0
    assert {k["format"] for k in document["killed"]} == formats
    resumed = {k["format"] for k in document["killed"] if k["resumes"]}
    assert resumed == {"tiff", "ome-zarr", "image-folder", "lance", "duckdb"} & formats
    # As many as were asked for, whatever the machine.
    assert {k["format"]: k["killed"] for k in document["killed"] if k["killed"] != 2} == {}
    # Twenty children that drop what the parent has used, after its threads have ended and in the middle of epochs.
    assert document["forked"] is True
    assert document["children"] == {"idle": [0] * 20, "in an epoch": [0] * 20}


def test_one_in_a_hundred_is_the_most_of_a_set_and_of_all(campaign):
    def row(tried, other, checked=True, crashes=0):
        read = dict.fromkeys(campaign.OUTCOMES, 0) | {"other": other, "crash": crashes}
        read["error"] = tried - other - crashes
        return campaign.Row(campaign.Way("tiff", "set", checked=checked), read=read)

    every = "all sets with checksums"
    assert campaign.faults_of([row(600, 6), row(3, 0)]) == {}
    assert campaign.faults_of([row(600, 7), row(600, 0)]) == {"tiff set": {"other": 7}}
    # A few pieces of damage to a set are judged with those of the others.
    assert campaign.faults_of([row(60, 1), row(60, 0)]) == {}
    assert campaign.faults_of([row(60, 1), row(39, 0)]) == {every: {"other": 1}}
    # Other pixels are no fault of what has no checksums, a crash is.
    assert campaign.faults_of([row(600, 500, checked=False)]) == {}
    assert campaign.faults_of([row(600, 0, checked=False, crashes=1)]) == {"tiff set": {"crash": 1}}


# A package whose loaders, dropped in another process than made them, end it.
CRASHES = """
import os, signal

class DataLoader:
    def __init__(self, path, **options):
        self.process = os.getpid()

    def __len__(self):
        return 3

    def __iter__(self):
        return iter(range(3))

    def __del__(self):
        if os.getpid() != self.process:
            os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_children_that_die_of_a_parents_loaders_are_told(campaign, tmp_path, monkeypatch):
    """The recipe finds what it was made for: each of the twenty children ends by a signal."""
    (tmp_path / "wellread.py").write_text(CRASHES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    forks = campaign.Campaign.__new__(campaign.Campaign)
    with pytest.raises(SystemExit) as error:
        forks.fork(tmp_path)
    assert str(error.value).count("-11") == 40
    (tmp_path / "wellread.py").write_text(CRASHES.replace("os.getpid() != self.process", "False"))
    assert forks.fork(tmp_path) == {"idle": [0] * 20, "in an epoch": [0] * 20}
    (tmp_path / "wellread.py").write_text("raise ImportError")
    assert forks.fork(tmp_path) is None


def test_a_campaign_without_forks_says_that_they_are_left_out(campaign, tmp_path, monkeypatch, capsys):
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    words = ["--wellread", binary, "--n", "1", "--kills", "0", "--formats", "image-folder", "--no-references"]
    (tmp_path / "wellread.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    out = ["--out", str(tmp_path / "out")]
    for more, code in (([], 1), (["--no-fork"], 0)):
        assert campaign.main([*words, *out, *more]) == code
        said = capsys.readouterr().out
        assert "forked: not tried" in said
        assert ("there is no package wellread (--no-fork leaves them out)" in said) == (code == 1)
        assert json.loads((tmp_path / "out/campaign.json").read_text())["children"] is None


# A program with one format, whose conversions and their going on end as the test has it.
PROGRAM = """#!/bin/sh
case "$*" in
    doctor*) echo '{"formats": [{"name": "FORMAT"}]}';;
    checksum*) echo '[]';;
    *--resume*) RESUME;;
    convert*) CONVERT;;
esac
"""


@pytest.mark.parametrize(
    ("format", "convert", "resume", "told"),
    [
        ("tiff", "echo 'no such codec' >&2; exit 1", "exit 0", "no such codec"),
        ("tiff", "exit 0", "echo 'no such option' >&2; exit 2", "no such option"),
        ("tiff", "exit 0", "echo 'error: tiff cannot be resumed: x' >&2; exit 2", "tiff cannot be resumed"),
        ("lance", "exit 0", "echo 'a full disk' >&2; exit 1", "a full disk"),
        ("parquet", "exit 0", "exit 0", "parquet: --resume ends with 0"),
        ("parquet", "exit 0", "echo 'no such option' >&2; exit 2", "no such option"),
    ],
)
def test_a_conversion_that_fails_is_a_fault(campaign, tmp_path, format, convert, resume, told):
    """Such a format was passed over without a word, and so was one that is no longer gone on with."""
    program = tmp_path / "program"
    text = PROGRAM.replace("FORMAT", format).replace("RESUME", resume).replace("CONVERT", convert)
    program.write_text(text)
    program.chmod(0o755)
    small = campaign.Campaign.__new__(campaign.Campaign)
    small.binary = str(program)
    small.arguments = types.SimpleNamespace(formats=[], kills=1, seed=1)
    with pytest.raises(SystemExit) as error:
        small.kills(tmp_path, tmp_path / "source")
    assert told in str(error.value)


def test_damage_follows_from_its_seed_and_is_damage(campaign):
    import random

    good = bytes(range(256)) * 3
    kinds = set()
    for seed in range(300):
        damaged, kind = campaign.damage(good, random.Random(seed))
        assert damaged != good and (damaged, kind) == campaign.damage(good, random.Random(seed))
        kinds.add(kind)
    assert len(kinds) == 9


def test_a_reader_that_ends_by_a_signal_or_never_is_told(campaign):
    assert campaign.run(["sh", "-c", "kill -SEGV $$"])[0] < 0
    assert campaign.run(["sleep", "60"], limit=0.2)[0] is None
    code, out, said, memory = campaign.run(["sh", "-c", "echo out; echo said >&2; exit 3"])
    assert (code, out, said) == (3, b"out\n", "said\n") and memory > 0


def test_libraries_that_crash_or_raise_are_told(campaign, tmp_path):
    def crash(_):
        os.abort()

    def fail(_):
        raise ValueError

    assert campaign.reference(crash, tmp_path).outcome == "crash"
    assert campaign.reference(fail, tmp_path).outcome == "error"
    assert campaign.reference(lambda _: [1, [2]], tmp_path).images == [1, [2]]


def test_the_pages_have_the_counts_of_the_long_run(campaign):
    root = Path(__file__).parents[2]
    run = json.loads((root / "docs/results/campaign.json").read_text())
    checked = [kind for kind in run["sets"] if kind["checksums"]]
    count = {name: sum(kind["wellread"][name] for kind in checked) for name in campaign.OUTCOMES}
    tried = sum(kind["tried"] for kind in checked)
    assert count["other"] == 0 and not any(kind["wellread"][bad] for kind in run["sets"] for bad in campaign.BAD)
    page = (root / "fuzz/README.md").read_text()
    assert f"{sum(kind['tried'] for kind in run['sets']):,} pieces of damage to {len(run['sets'])} kinds" in page
    assert f"{tried:,} pieces of damage to sets with checksums" in page
    assert f"{count['error']:,} were errors, and {count['same']} changed no pixel" in page
    ends = [end for group in run["children"].values() for end in group]
    assert set(ends) == {0} and f"All {len(ends)} forked children" in page
    assert f"Of {sum(kind['killed'] for kind in run['killed'])} conversions that were killed" in page
    (lance,) = (kind for kind in run["sets"] if kind["set"] == "lance --compression zstd")
    decision = (root / "docs/decisions/0032-checksums.md").read_text()
    assert f"None of {tried:,} pieces" in decision
    assert f"{lance['wellread']['other']} of {lance['tried']} in Lance" in decision
