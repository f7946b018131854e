"""The pages of the comparison with peers (`make bench-peers`): what they say of a result."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2] / "benches" / "peers"
NAMES = ("judge", "page", "compare")


@pytest.fixture(scope="module")
def modules():
    """Those of benches/peers, whose names are for their own folder only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HERE)
        found = {name: importlib.import_module(name) for name in NAMES}
        yield type("Modules", (), found)
        for name in NAMES:
            sys.modules.pop(name)


@pytest.fixture(scope="module")
def page(modules):
    return modules.page


def run(round_, first, *later):
    return {"round": round_, "open_s": 0.01, "first_batch_s": 0.02, "epochs_s": [first, *later], "memory_mb": 10.0}


def result(rounds=6):
    """A set of 100 images: two peers, of which one comes close in the first epoch."""
    each = range(1, rounds + 1)
    runs = {
        "wellread:tiff": [run(r, 1.0, 0.5, 0.1, 0.5) for r in each],
        "tifffile": [run(r, 4.0, 2.0, 2.0, 9.0) for r in each],
        "spdl": [run(r, 1.05, 25.0, 25.0, 25.0) for r in each],
        "zarr-python": [{"round": 1, "error": "ValueError: no | such"}],
    }
    twins = [{"of": name, **run(r, first, again)} for r in each
             for name, first, again in (("wellread:tiff", 1.1, 0.55), ("tifffile", 4.0, 2.0))]  # fmt: skip
    about = {"set": "TIFF folder", "ours": "wellread:tiff"}
    rows = [{**about, "peer": name, "about": f"peer {name}"} for name in ("spdl", "tifffile", "zarr-python")]
    one = {"name": "1080", "title": "100 images, 1080 x 1080 uint16, batches of 4", "images": 100, "batch": 4}
    facts = {"command": "compare.py --rounds 6", "rules": 3, "commit": "abc", "date": "2026-01-02",
             "machine": "2 processors", "threads": 2, "versions": {"torch": "2.15.0"}}  # fmt: skip
    return {"facts": facts, "sets": [{**one, "later": 3, "rows": rows, "runs": runs, "twins": twins}]}


PAGE = "# Title\n<!-- peers:begin -->\nold\n<!-- peers:end -->\nafter\n"
SMALL_PAGE = PAGE.replace("peers:", "peers-small:")


def test_the_page_has_the_tables_of_one_run(page):
    text = page.put(PAGE, result())
    assert text.startswith(
        "# Title\n<!-- peers:begin -->\nOne run (`compare.py --rounds 6`, commit abc, 2026-01-02) on"
    )
    assert text.endswith("<!-- peers:end -->\nafter\n") and "\nold\n" not in text
    # The first epoch: within 10 % nothing is said; closest first, failures last.
    first, later = text.split("**100 images, 1080 x 1080 uint16, batches of 4**, later epochs")
    assert [line for line in first.splitlines() if line.startswith("| TIFF")] == [
        "| TIFF folder | peer spdl | 20 ms | 20 ms | 95 | 100 | no verdict: the interval "
        "reaches into the noise floor of 10%; peer faster in 0 of 6 rounds |",
        "| TIFF folder | peer tifffile | 20 ms | 20 ms | 25 | 100 | 4.00 (4.00–4.00) |",
        "| TIFF folder | peer zarr-python | not measured: ValueError: no \\| such |  |  |  |  |",
    ]
    # The table has the names.
    assert "\n\nRows without a verdict in the first epoch: 1 of 2. peer tifffile is" in first and "1.05" not in first
    assert "95 % noise floor, of loaders that ran twice in a round: 10.0%." in first
    assert "decoded pages" not in text and "Withdrawn" not in text
    # Later epochs are the median of each process: 2 s beside 0.5 s.
    assert [line for line in later.splitlines() if line.startswith("| TIFF")][:2] == [
        "| TIFF folder | peer tifffile | 50 | 200 | 4.00 (4.00–4.00) | 10 | 10 |",
        "| TIFF folder | peer spdl | 4 | 200 | 50.0 (50.0–50.0) | 10 | 10 |",
    ]
    said = "peer tifffile is the closest slower peer in later epochs (TIFF folder). wellread is 4.00 (4.00–4.00)"
    assert said in later
    assert page.put(text, result()) == text


def test_a_run_by_other_rules_has_no_figures(page):
    one = result()
    for rules in (1, page.RULES - 2, page.RULES + 1, None):
        one["facts"]["rules"] = rules
        text = page.put(PAGE, one)
        assert page.WITHDRAWN_RULES in text and "commit abc" in text and "images/s" not in text
    del one["facts"]["rules"]
    assert page.WITHDRAWN_RULES in page.put(PAGE, one) and page.by_rules(one, 1)
    assert page.WITHDRAWN_RULES not in page.put(PAGE, result())


def test_a_run_whose_workers_copied_batches_says_so_in_its_captions(page):
    one = result()
    assert page.COPIED not in page.put(PAGE, one)
    one["facts"]["rules"] = page.RULES - 1
    text = page.put(PAGE, one)
    said = f"{page.COPIED} in the rows `torch DataLoader, 2 workers`."
    title = "100 images, 1080 x 1080 uint16, batches of 4**"
    assert f"\n**First epoch, from opening on: {title}. {said}\n\n| set" in text
    assert f"\n**{title}, later epochs. {said}\n\n| set" in text and "4.00 (4.00–4.00)" in text
    # Tables without such a row do not say it.
    one["sets"][0]["rows"] = [row for row in one["sets"][0]["rows"] if row["peer"] == "spdl"]
    assert page.COPIED not in page.put(PAGE, one)


def test_a_peer_that_was_set_up_slowly_has_no_row(page):
    one = result()
    assert page.WITHDRAWN_SLOW not in page.put(PAGE, one)
    for about in ("SPDL, threads, tifffile", "duckdb, the same on bare pixels as BLOBs"):
        one["sets"][0]["rows"][0]["about"] = about
        text = page.put(PAGE, one)
        assert f"| {about.split(',')[0]}," not in text and text.count(page.WITHDRAWN_SLOW) == 1
    one["sets"][0]["rows"][0]["about"] = "SPDL, threads, tifffile, whole batches"
    text = page.put(PAGE, one)
    assert "| SPDL, threads, tifffile, whole batches |" in text and page.WITHDRAWN_SLOW not in text


def test_no_name_of_a_peer_is_the_same_as_another_row_s(page):
    one = result()
    one["sets"][0]["rows"][0]["about"] = "duckdb, the same on bare pixels as BLOBs, not compressed"
    text = page.put(PAGE, one)
    assert (
        "| duckdb, `WHERE row_id IN (…)`, bare pixels as BLOBs, not compressed |" in text and "the same" not in text
    )
    for name in ("README.md", "docs/peers.md", "docs/peers-small.md"):
        assert not re.search(r"^\|.*\bthe same (?:on|cache)\b", (HERE.parents[1] / name).read_text(), re.M), name


def test_a_long_list_of_versions_has_lines_of_25_words_at_most(page):
    one = result()
    one["facts"]["versions"] = {f"library-{n}": f"{n}.0" for n in range(12)}
    text = page.put(PAGE, one)
    assert "Each loader had 2 threads or workers. 100 images" in text
    lines = text.split("\n\nVersions:\n\n")[1].split("\n\n")[0].splitlines()
    assert [line.count("library-") for line in lines] == [10, 2] and all(line.startswith("* ") for line in lines)


def test_the_page_names_the_files_that_images_were_made_from(page):
    one = result()
    one["facts"]["files"] = [{"name": "a.tiff", "sha256": "0" * 63 + "1"}]
    said = f"3 epochs, 6 rounds. The files of JUMP: `a.tiff` (SHA-256 `{'0' * 63}1`).\n"
    assert said in page.put(PAGE, one)
    # Small images are noise.
    one["sets"][0]["name"] = "1k"
    assert "JUMP" not in page.put(SMALL_PAGE, one)


def test_a_run_says_how_many_files_a_process_may_have_open(page):
    one = result()
    assert "open files" not in page.put(PAGE, one)
    one["facts"]["open_files"] = 1_048_576
    assert ") on 2 processors, at most 1,048,576 open files. Each loader had 2 threads" in page.put(PAGE, one)
    one["facts"]["open_files"] = -1
    assert ") on 2 processors, no limit of open files. Each loader had 2 threads" in page.put(PAGE, one)


def test_loaders_that_run_twice_take_turns_and_were_drawn_before(page):
    one = result()
    assert page.taken(one) == "one loader of each side a round, in turn"
    one["facts"]["rules"] = page.RULES - 1
    assert page.taken(one) == "one loader of each side a round, drawn at random"


def test_a_single_later_epoch_is_said_to_be_the_second(page):
    one = result()
    one["sets"][0]["later"] = 1
    assert "\n**100 images, 1080 x 1080 uint16, batches of 4**, later epochs: the second one\n" in page.put(PAGE, one)


def test_what_wellread_keeps_is_told_by_the_size_of_the_set(page):
    said = "wellread keeps up to 64 MiB of decoded pages, "
    assert page.kept_pages({"name": "1080", "images": 24}) == said + "all of the 53 MiB of this set"
    assert page.kept_pages({"name": "1080", "images": 96}) == said + "at most 30% of the 214 MiB of this set"
    assert page.kept_pages({"name": "20k", "images": 20_000}) == said + "at most 34% of the 191 MiB of this set"
    assert page.kept_pages({"name": "1k", "images": 1000}) == said + "all of the 10 MiB of this set"


def test_a_run_in_parts_is_of_one_commit_and_machine(modules):
    compare = modules.compare
    first, second = result(), result()
    second["sets"][0]["name"] = "1k"
    second["facts"] |= {"command": "compare.py --sets 1k --add", "date": "2026-01-03", "files": []}
    first["facts"]["files"] = [{"name": "a.tiff", "sha256": "1"}]
    whole = compare.add(second, first)
    assert [one["name"] for one in whole["sets"]] == ["1080", "1k"]
    assert whole["facts"]["command"] == "compare.py --rounds 6; compare.py --sets 1k --add"
    assert whole["facts"]["date"] == "2026-01-02 to 2026-01-03" and whole["facts"]["files"] == first["facts"]["files"]
    assert "One run (`compare.py --rounds 6`, `compare.py --sets 1k --add`, commit abc" in modules.page.put(
        PAGE, whole
    )
    # A set that is measured again takes the place of what was there.
    again = compare.add({**second, "sets": [{**second["sets"][0], "title": "again"}]}, whole)
    assert [one["title"] for one in again["sets"]] == [first["sets"][0]["title"], "again"]
    assert again["facts"]["date"] == whole["facts"]["date"]
    for name in ("commit", "machine"):
        other = {**second, "facts": {**second["facts"], name: "another"}}
        with pytest.raises(ValueError, match=f"^its {name} differ from those of this call$"):
            compare.add(other, first)


def test_kept_images_stand_beside_peers_that_keep_them(page):
    one = result()
    measured = one["sets"][0]
    measured["runs"] |= {name: measured["runs"]["tifffile"] for name in ("zarr-array", "tensorstore-kept", "pylance")}
    measured["runs"] |= {name: measured["runs"]["wellread:tiff"]
                         for name in ("wellread:ome-zarr,kept", "wellread:images.vortex")}  # fmt: skip
    measured["rows"] += [
        {"set": "kept", "ours": "wellread:ome-zarr,kept", "peer": "zarr-array", "about": "which keeps nothing"},
        {"set": "kept", "ours": "wellread:ome-zarr,kept", "peer": "tensorstore-kept", "about": "which keeps"},
        {"set": "Vortex", "ours": "wellread:images.vortex", "peer": "pylance", "about": "take"},
    ]
    text = page.put(PAGE, one)
    assert "which keeps nothing" not in text and "| kept | which keeps |" in text
    assert text.count("Withdrawn until they are measured again: rows that set images") == 1
    assert text.count("For Parquet and Vortex, wellread keeps up to 64 MiB of decoded pages, at most 29% of") == 1
    assert "| Vortex | take, pixels in nested lists of int64 |" in text
    measured["name"] = "20k"
    assert "| Vortex | take, pixels in nested lists of the images' type |" in page.put(SMALL_PAGE, one)


def test_one_array_of_small_images_is_read_by_batches_or_has_no_row(page):
    one = result()
    measured = one["sets"][0]
    measured["runs"]["tensorstore-array"] = measured["runs"]["tifffile"]
    measured["rows"] += [
        {"set": "array", "ours": "wellread:tiff", "peer": "tensorstore-array", "about": "image by image"}
    ]
    # A large field takes much longer than a call.
    assert "| array | image by image |" in page.put(PAGE, one) and page.WITHDRAWN_BY_IMAGE not in page.put(PAGE, one)
    for name in ("1k", "20k"):
        measured["name"] = name
        text = page.put(SMALL_PAGE, one)
        assert "image by image |" not in text and text.count(page.WITHDRAWN_BY_IMAGE) == 1
    measured["runs"]["tensorstore-batches"] = measured["runs"]["tifffile"]
    text = page.put(SMALL_PAGE, one)
    assert "| array | image by image |" in text and page.WITHDRAWN_BY_IMAGE not in text


def test_small_images_have_a_page_of_their_own(page):
    one = result()
    (large,) = one["sets"]
    one["sets"] += [{**large, "name": name, "title": f"{name} small ones"} for name in ("20k", "1k")]
    fields, small = page.put(PAGE, one), page.put(SMALL_PAGE, one)
    assert "**100 images, 1080 x 1080 uint16, batches of 4**" in fields and "small ones" not in fields
    assert "1080 x 1080" not in small
    assert re.findall(r"^\*\*(\w+) small ones\*\*, later epochs$", small, re.M) == ["20k", "1k"]
    # Each page names its own sets behind the run.
    assert fields.count("1 + 3 epochs") == 1 and small.count("1 + 3 epochs") == 2
    # A page for fields is no place for a run of small images alone.
    with pytest.raises(ValueError, match="the page has no <!-- peers-small:begin -->"):
        page.put(PAGE, {**one, "sets": one["sets"][1:]})


def test_the_documentation_has_the_places_for_both(page, modules):
    text = (HERE.parents[1] / "docs" / "peers.md").read_text()
    written = {**result(), "writing": {"rounds": 6, "rows": []}}
    put = page.put(text, written)
    assert put.count("commit abc") == 2
    assert put.split("<!-- peers:begin -->")[0] == text.split("<!-- peers:begin -->")[0]
    assert put.split("<!-- writing:end -->")[1] == text.split("<!-- writing:end -->")[1]


def test_a_peer_that_is_faster_is_said_to_be(page):
    one = result()
    for r in one["sets"][0]["runs"]["spdl"]:
        r["epochs_s"] = [0.5, 25.0]
    text = page.put(PAGE, one)
    said = "peer spdl (TIFF folder): wellread has 0.50 (0.50–0.50) of its speed"
    assert f"Peers that are faster in the first epoch:\n\n* {said}\n\npeer tifffile is" in text
    assert "in every round" not in text
    # Within the noise floor of 10 %, and faster in all rounds: no verdict, and said.
    for r in one["sets"][0]["runs"]["spdl"]:
        r["epochs_s"] = [0.95, 25.0]
    text = page.put(PAGE, one)
    said = "Peers that were faster in every round of the first epoch, without a verdict:\n\n* peer spdl (TIFF folder)"
    assert f"{said}\n\nRows without a verdict in the first epoch: 1 of 2." in text


def test_too_few_rounds_are_put_into_no_page(page, modules, tmp_path):
    with pytest.raises(ValueError, match="batches of 4: 5 rounds: a page needs 6"):
        page.put(PAGE, result(5))
    with pytest.raises(ValueError, match="no <!-- peers:begin -->"):
        page.put("# Title\n", result())
    # What is printed has no ratio of them.
    text = page.sections(result(5))["peers"]
    assert "no verdict: 5 of the 6 rounds" in text and "4.00" not in text and "Closest" not in text
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "result.json").write_text(json.dumps(result(5)))
    with pytest.raises(SystemExit, match="is left as it is"):
        modules.compare.write(tmp_path / "page.md", tmp_path / "result.json")
    assert (tmp_path / "page.md").read_text() == PAGE
    (tmp_path / "result.json").write_text(json.dumps(result()))
    modules.compare.write(tmp_path / "page.md", tmp_path / "result.json")
    assert (tmp_path / "page.md").read_text() == page.put(PAGE, result())


def test_writing_has_its_own_place_and_the_same_judge(page):
    row = {"set": "noise", "format": "tiff", "library": "tifffile", "codec": "none", "ours_s": [0.1] * 6}
    rows = [{**row, "peer_s": [0.5] * 6, "twin": [1.0] * 6}, {**row, "peer_s": [0.11] * 6, "twin": [1.2] * 6}]
    assert result()["facts"]["rules"] == page.RULES
    written = {"facts": result()["facts"], "writing": {"rounds": 6, "rows": rows}}
    text = page.put(PAGE + "<!-- writing:begin --><!-- writing:end -->\n", written)
    assert "| noise | tiff | tifffile | none | 2 | 10 | 5.00 (5.00–5.00) |" in text
    assert "a library writes one image and wellread all of them twice, which suits wellread." in text
    alike = page.put(text, {**written, "writing": {**written["writing"], "warmed_alike": True}})
    assert "both write all images once." in alike and "suits" not in alike
    said = "| none | 9 | 10 | no verdict: the interval reaches into the noise floor of 20%; peer faster in"
    assert said in text and "1.10" not in text
    assert text.count("The noise floor of a row is wellread's noise only") == 1
    # A result by rules of before has no figures.
    before = page.put(text, {**written, "facts": {**result()["facts"], "rules": 1}})
    assert "5.00 (5.00–5.00)" not in before and "wrote five levels" in before
    # What the result is not of stays.
    assert "\nold\n" in text
    written["writing"]["rounds"] = 3
    with pytest.raises(ValueError, match="writing: 3 rounds"):
        page.put(text, written)
