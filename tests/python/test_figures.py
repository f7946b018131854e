"""Figures of README.md and docs/peers*.md are those of docs/results (scripts/figures.py)."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def figures(root, *arguments):
    command = [sys.executable, root / "scripts" / "figures.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    """The pages, the result files and the scripts, to be changed."""
    for folder in ("benches", "docs/results", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "docs" / "images").mkdir()
    pages = ("method", "peers", "peers-loaders", "peers-plates", "peers-remote", "peers-small", "speed", "trace",
             "transforms")  # fmt: skip
    for page in ("README.md", *(f"docs/{name}.md" for name in pages), "docs/images/loaders.svg"):
        shutil.copy(ROOT / page, tmp_path / page)
    return tmp_path


def test_the_pages_say_what_the_result_files_have():
    done = figures(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_result_is_small_and_says_machine_date_and_command():
    kept = sorted((ROOT / "docs" / "results").glob("*.json"))
    runs = ["front", "peers", "peers-small", "plates", "remote-a", "remote-b", "speed", "writing"]
    # Of runs by hand each page has a result of its own.
    pages = [path.stem for path in (ROOT / "docs" / "results").glob("*.md")]
    others = ["campaign", "same-thing-twice", "trace", "transforms"]
    assert len(pages) == 5 and sorted(path.stem for path in kept) == sorted([*runs, *pages, *others])
    for path in kept:
        assert path.stat().st_size < 200_000, path.name
        facts = json.loads(path.read_text())["facts"]
        assert all(facts[name] for name in ("machine", "date", "command", "commit")), path.name


def another(text, start):
    """The text with another last digit in the first number behind `start`."""
    found = re.search(rf"{re.escape(start)}[0-9.,]*?(?=[0-9] )[0-9]", text)
    digit = str((int(found[0][-1]) + 1) % 10)
    return text[: found.end() - 1] + digit + text[found.end() :]


@pytest.mark.parametrize(
    ("page", "start"),
    [
        ("README.md", ", run twice | "),
        ("docs/peers.md", "| OME-Zarr folder | tensorstore, arrays opened once | "),
        ("docs/peers-small.md", "| Lance | pylance `take`, bare pixels as one binary | "),
        ("docs/peers-plates.md", "tifffile.memmap, kept mapped, torch DataLoader, 2 workers | wellread | "),
        ("docs/results/hyperfine.md", "| `checksum` | "),
        ("docs/results/inference-cpu.md", "| vit_b_16 | 4 | candle | "),
        ("docs/results/cyto-dl.md", "| `full_training` | "),
        ("docs/transforms.md", "| uint16 to float32 | "),
        ("docs/trace.md", "| 1080 x 1080 `uint16`, Parquet | "),
        ("docs/trace.md", "| one reading of the clock (`clock_read_ns` in the file) | "),
        ("docs/method.md", "| 20 of `dataset` | drawn at random | 200 | "),
    ],
)
def test_another_figure_is_found(copy, page, start):
    text = (copy / page).read_text()
    (copy / page).write_text(another(text, start))
    done = figures(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{page}: a table is not that of docs/results" in done.stdout


def same_thing_twice():
    spec = importlib.util.spec_from_file_location("same_thing_twice", ROOT / "scripts" / "same-thing-twice.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


# Leaves a file of its own in its folder, and fails where a file beside it says so.
PROGRAM = """\
#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
mkdir -p "$out" && touch "$out/$$" && test ! -e "$0-fails"
"""


def test_an_interrupted_process_of_the_same_thing_is_measured_again(tmp_path):
    script, program, fails = same_thing_twice(), tmp_path / "program", tmp_path / "program-fails"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    out = tmp_path / "out"
    (out / "set").mkdir(parents=True)
    fails.touch()
    with pytest.raises(subprocess.CalledProcessError):
        script.measured(program, out, "dataset", 2)
    fails.unlink()
    folders = script.measured(program, out, "dataset", 2)
    assert sorted((out / "dataset").iterdir()) == sorted(folders)
    # Nothing of the first is in it.
    assert [len(list(folder.iterdir())) for folder in folders] == [1, 1]
    assert script.measured(program, out, "dataset", 2) == folders


def test_the_same_thing_twice_has_a_verdict_in_few_tables():
    script = same_thing_twice()
    row = {"verdict": "unclear", "low": 0.8, "high": 1.6}
    tables = [
        [row, {**row, "verdict": "slower"}],
        [{**row, "verdict": "same"}] * 2,
        [{**row, "verdict": "faster"}] * 2,
    ]
    assert script.counted(tables) == (3, 2, 6, 3, "2.00")
    kept = json.loads((ROOT / "docs" / "results" / "same-thing-twice.json").read_text())["tables"]["same-thing-twice"]
    assert tuple(kept["head"]) == script.HEAD
    found = {(benchmark, how): (int(tables), int(alarms)) for benchmark, how, tables, alarms, *_ in kept["rows"]}
    assert set(found) == {(f"20 of `{name}`", how) for name in ("dataset", "dataloader")
                          for how in ("drawn at random", "one after the other")}  # fmt: skip
    for (_, how), (tables, alarms) in found.items():
        assert tables == (200 if how == "drawn at random" else 11) and alarms * 20 <= tables


def test_no_table_of_a_run_by_hand_is_without_its_result():
    for page in sorted((ROOT / "docs" / "results").glob("*.md")):
        text = re.sub(r"^<!-- ([\w-]+):begin -->.*?^<!-- \1:end -->", "", page.read_text(), flags=re.S | re.M)
        tables = [line for line in text.splitlines() if line.startswith("|---")]
        # What CytoDL's runs were of is no figure.
        assert len(tables) == (page.stem == "cyto-dl"), page.name


# Pages that quote upstream's documents. A test compares what they say of wellread with the tables.
COMPARED = ("upstream.md", "migration.md")
RATE = re.compile(r"[0-9] (?:images/s|samples/s|rows/s|[GM]B/s|µs|ns)\b")


def typed_by_hand(text):
    """Lines of a page with a rate or a short time, outside of tables from results and of fenced blocks."""
    text = re.sub(r"^<!-- ([\w-]+):begin -->.*?^<!-- \1:end -->|^```.*?^```", "", text, flags=re.S | re.M)
    return [line for line in text.splitlines() if RATE.search(line)]


def test_no_rate_is_typed_by_hand_but_on_dated_records():
    assert typed_by_hand(
        "It has 3,504 images/s.\n<!-- a-b:begin -->\n| 17 ns |\n<!-- a-b:end -->\n```\n1 µs\n```\n"
    ) == ["It has 3,504 images/s."]
    docs = ROOT / "docs"
    records = (docs / "decisions", docs / "results")
    pages = [page for page in docs.rglob("*.md") if page.parent not in records and page.name not in COMPARED]
    assert len(pages) > 80
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages):
        assert typed_by_hand(page.read_text()) == [], page.relative_to(ROOT)


def test_minutes_of_a_build_are_those_of_the_decision():
    decision = (ROOT / "docs/decisions/0038-what-a-build-takes.md").read_text()
    (full,) = re.findall(r"^\| a cold full build with all tests, two cores \|[^|]*\| (\d+) min", decision, re.M)
    (light,) = re.findall(r"\bThe light build took\s+(\d+) min", decision)
    both = {"README.md": {full, light}, "CONTRIBUTING.md": {full}, "Makefile": {full, light},
            "Containerfile": {full}, "docs/howto/install.md": {light}}  # fmt: skip
    for page, minutes in both.items():
        text = re.sub(r"\n# ", " ", (ROOT / page).read_text())
        assert set(re.findall(r"\bsome (\w+) minutes", text)) == minutes, page


def test_the_readme_s_table_of_builds_is_that_of_the_decision():
    decision = (ROOT / "docs/decisions/0038-what-a-build-takes.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|", decision, re.M)
    known = {about.split(",")[0] if "cold" in about else about: (before, after) for about, before, after in rows}
    text = (ROOT / "README.md").read_text().split("| | before | after |\n|---|---|---|\n")[1].split("\n\n")[0]
    said = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()]
    assert len(said) == 4
    for about, before, after in said:
        assert before == known[about][0] and re.match(rf"{after}(?:$| \(|;)", known[about][1]), about


def test_a_ratio_of_no_result_is_found_in_the_text(copy):
    with (copy / "README.md").open("a") as readme:
        readme.write("\nIt has 0.82 (0.58–0.74) of that speed.\n")
    done = figures(copy)
    assert done.returncode == 1 and "README.md: 0.82 (0.58–0.74) is in no file of docs/results" in done.stdout


def test_a_ratio_without_a_verdict_is_in_no_page():
    for page in ("README.md", "docs/peers.md", "docs/peers-small.md", "docs/peers-plates.md", "docs/peers-remote.md"):
        for line in (ROOT / page).read_text().splitlines():
            assert "), no verdict" not in line and "no verdict: 0." not in line, f"{page}: {line}"


def test_no_page_of_results_says_how_many_times_a_peer_without_an_interval():
    for path in (ROOT / "docs" / "results").glob("*.md"):
        assert "| times |" not in path.read_text(), path.name


def test_a_page_is_written_from_the_results(copy):
    text = (copy / "README.md").read_text()
    (copy / "README.md").write_text(another(text, ", run twice | "))
    assert figures(copy, "--write").returncode == 0
    assert (copy / "README.md").read_text() == text


def test_a_result_that_no_page_may_show_is_not_kept(copy):
    path = copy / "peers.json"
    result = json.loads((copy / "docs/results/peers.json").read_text())
    result["facts"]["rules"] = 3
    (copy / "docs/results/peers.json").write_text(json.dumps(result))
    figures(copy, "--write")
    assert figures(copy, "--take", copy / "docs/results/peers.json").returncode == 0
    before = (copy / "docs/results/peers.json").read_text()
    for one in result["sets"]:
        one["runs"] = {name: runs[:5] for name, runs in one["runs"].items()}
    path.write_text(json.dumps(result))
    done = figures(copy, "--take", path)
    assert done.returncode == 1 and "5 rounds" in done.stderr
    # Those of before are shown, with what is to be known of them, and not taken any more.
    path.write_text(json.dumps({**result, "facts": {**result["facts"], "rules": 2}}))
    assert "measured by rules 2; today's are 3" in figures(copy, "--take", path).stderr
    path.write_text("{}")
    assert "not the result of one run" in figures(copy, "--take", path).stderr
    assert (copy / "docs/results/peers.json").read_text() == before


def test_small_images_and_large_fields_are_kept_apart(copy):
    results = copy / "docs" / "results"
    before = {name: json.loads((results / f"{name}.json").read_text()) for name in ("peers", "peers-small")}
    whole = copy / "peers.json"
    large = before["peers"]
    whole.write_text(json.dumps({**large, "facts": {**large["facts"], "rules": 3, "commit": "abc1234"}}))
    assert figures(copy, "--take", whole, "--write").returncode == 0
    # A run of fields alone leaves the other result and its page as they are.
    after = {name: json.loads((results / f"{name}.json").read_text()) for name in before}
    assert after["peers"]["facts"]["commit"] == "abc1234" and after["peers-small"] == before["peers-small"]
    assert "commit abc1234" in (copy / "docs/peers.md").read_text()
    assert "commit abc1234" not in (copy / "docs/peers-small.md").read_text()
    both = {**after["peers"], "sets": [*after["peers"]["sets"], *before["peers-small"]["sets"]]}
    whole.write_text(json.dumps(both))
    assert figures(copy, "--take", whole, "--write").returncode == 0
    small = json.loads((results / "peers-small.json").read_text())
    assert [one["name"] for one in small["sets"]] == ["20k", "1k"]
    assert "commit abc1234" in (copy / "docs/peers-small.md").read_text()


def with_rules(copy, name, rules):
    """Says of a kept result by which rules it was measured, and writes the pages anew."""
    path = copy / "docs" / "results" / f"{name}.json"
    result = json.loads(path.read_text())
    result["facts"]["rules"] = rules
    path.write_text(json.dumps(result))
    done = figures(copy, "--write")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("peers", {"docs/peers.md": "| first batch, peer |", "README.md": "| first epoch | later epochs |"}),
        ("peers-small", {"docs/peers-small.md": "| first batch, peer |"}),
        ("front", {"docs/peers-loaders.md": "| ratio, first |", "README.md": "![Bar chart of images/s"}),
        ("speed", {"docs/speed.md": "| of that limit |"}),
    ],
)
def test_figures_by_other_rules_than_todays_are_withdrawn(copy, name, shown):
    assert all(part in (copy / page).read_text() for page, part in shown.items())
    with_rules(copy, name, 99)
    for page, part in shown.items():
        text = (copy / page).read_text()
        assert part not in text and "Withdrawn until it is measured again: the rules of this benchmark" in text


def test_the_readme_has_a_row_of_sites_only_by_todays_rules(copy):
    row = " generated sites of 5 channels, TIFF with LZW"
    before, copied = (
        "This run is of rules of before.",
        "In the run of sites torch's workers copied each batch once more",
    )
    with_rules(copy, "plates", 1)
    assert row not in (copy / "README.md").read_text() and before in (copy / "docs/peers-plates.md").read_text()
    for rules in (2, 3):
        with_rules(copy, "plates", rules)
        text = (copy / "README.md").read_text()
        assert row in text and before not in (copy / "docs/peers-plates.md").read_text()
        assert (copied in text) == (rules == 2)


@pytest.mark.parametrize(
    ("name", "rules", "pages"),
    [
        ("front", 2, ("README.md", "docs/peers-loaders.md")),
        ("peers", 3, ("docs/peers.md",)),
        ("peers-small", 3, ("docs/peers-small.md",)),
        ("plates", 3, ("README.md", "docs/peers-plates.md")),
        ("remote-b", 3, ("docs/peers-remote.md",)),
    ],
)
def test_the_copy_of_torch_s_workers_is_told_of_runs_that_had_it(copy, name, rules, pages):
    said = "torch's workers copied each batch once more than they need, which favours wellread"
    with_rules(copy, name, rules - 1)
    before = {page: (copy / page).read_text().count(said) for page in pages}
    assert all(before.values())
    with_rules(copy, name, rules)
    assert all((copy / page).read_text().count(said) < count for page, count in before.items())
