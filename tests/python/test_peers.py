"""The comparison with peers (`make bench-peers`): what it writes, and that it sees wrong pixels."""

import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parents[2] / "benches" / "peers"
NAMES = ("judge", "checks", "page", "collation", "peers", "runs", "compare")


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


STORED = np.arange(4 * 5 * 7, dtype=np.uint16).reshape(4, 1, 5, 7) * 400


def scaled(stored):
    return stored.astype(np.float32) / np.float32(np.iinfo(stored.dtype).max)


def test_checks_find_scaled_pixels_whatever_their_place_in_a_batch(modules):
    checks = modules.checks
    expected = [checks.checksum(image) for image in STORED]
    found = checks.of_batch(scaled(STORED)[[2, 0, 3]], "uint16")
    assert found == [expected[2], expected[0], expected[3]]
    assert checks.wrong(found, [0, 2, 3], expected) is None
    # The same by multiplication with the rounded inverse, as most loaders do.
    assert checks.of_batch(STORED.astype(np.float32) * np.float32(1 / 65535), "uint16") == expected


def test_checks_catch_a_wrong_pixel(modules):
    checks = modules.checks
    expected = [checks.checksum(image) for image in STORED]
    changed = STORED.copy()
    changed[1, 0, 4, 6] += 1
    found = checks.of_batch(scaled(changed), "uint16")
    assert checks.wrong(found, [0, 1, 2, 3], expected) == "4 images for 4 rows, 1 of them with other pixels"
    whole = checks.of_batch(scaled(STORED), "uint16")
    assert checks.wrong(whole[:3], [0, 1, 2, 3], expected) == "3 images for 4 rows, 0 of them with other pixels"
    # One image twice in place of another.
    assert checks.wrong([*whole[:3], whole[0]], [0, 1, 2, 3], expected).endswith("1 of them with other pixels")


@pytest.mark.parametrize(
    "batch",
    [
        # Scaled by another type's range, one value between two stored ones, one that is no number, out of range.
        scaled(STORED) * np.float32(65535 / 65000),
        scaled(STORED) + np.eye(5, 7, dtype=np.float32) * np.float32(0.3 / 65535),
        np.full((1, 1, 2, 2), np.nan, np.float32),
        np.full((1, 1, 2, 2), 2.0, np.float32),
        np.full((1, 1, 2, 2), -1 / 65535, np.float32),
        scaled(STORED).astype(np.float64),
    ],
)
def test_checks_refuse_what_is_not_scaled(modules, batch):
    with pytest.raises(ValueError, match="no stored value|not float32"):
        modules.checks.of_batch(batch, "uint16")


COUNT = 6


@pytest.fixture
def folder(modules, tmp_path):
    """A set of TIFF files as benches/peers/sets.py leaves it."""
    import tifffile

    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (COUNT, 1, 1, 1, 9, 11), dtype=np.uint8)
    (tmp_path / "tiff").mkdir()
    for i, image in enumerate(images):
        tifffile.imwrite(tmp_path / "tiff" / f"image-{i:06d}.tiff", image)
    np.save(tmp_path / "checksums.npy", np.array([modules.checks.checksum(image) for image in images]))
    about = {"images": COUNT, "shape": list(images.shape[1:]), "dtype": "uint8", "whole": "tiff"}
    (tmp_path / "about.json").write_text(json.dumps(about))
    return tmp_path


def task(modules, folder, name, **more):
    orders = modules.runs.orders_of(folder, "tiff", 4, 3, 7)
    given = {"batch": 4, "threads": 2, "later": 2, "seed": 7, "orders": orders, **more}
    return modules.runs.Task(name, str(folder), **given)


@pytest.mark.parametrize(
    "name", ["wellread:tiff", "wellread:tiff,kept", "tifffile-mapped-0", "tifffile-mapped", "gather"]
)
def test_each_loader_has_the_same_epochs_and_checks(modules, folder, name):
    one = task(modules, folder, name, checked=True)
    assert all(sorted(order) == list(range(COUNT)) for order in one.orders) and len(set(map(tuple, one.orders))) > 1
    done = modules.runs.measure(one)
    assert (len(done["epochs_s"]), done["images"], done["compared"]) == (3, COUNT, 3 * COUNT)
    assert 0 < done["open_s"] <= done["first_batch_s"] <= done["epochs_s"][0]
    # Of timed epochs a batch is compared, here all there is.
    assert modules.runs.measure(task(modules, folder, name, batch=COUNT))["compared"] == 3 * COUNT


@pytest.mark.parametrize(
    "name",
    ["zarr-array-0", "zarr-batches", "zarr-images", "tensorstore-array", "tensorstore-batches",
     "tensorstore-batches-kept"],
)  # fmt: skip
def test_each_way_to_read_one_array_gives_the_rows_that_were_asked_for(modules, folder, name):
    pytest.importorskip("tensorstore")
    zarr, tifffile = pytest.importorskip("zarr"), pytest.importorskip("tifffile")
    images = np.stack([tifffile.imread(path).reshape(1, 9, 11) for path in sorted((folder / "tiff").glob("*.tiff"))])
    zarr.create_array(str(folder / "array.zarr"), data=images, chunks=(1, 1, 9, 11), zarr_format=2)
    done = modules.runs.measure(task(modules, folder, name, checked=True))
    assert (done["images"], done["compared"]) == (COUNT, 3 * COUNT)


@pytest.mark.parametrize("name", ["wellread:tiff", "tifffile-mapped-0", "gather"])
@pytest.mark.parametrize("checked", [True, False])
def test_a_wrong_pixel_ends_a_run(modules, folder, name, checked):
    import tifffile

    path = folder / "tiff" / "image-000002.tiff"
    image = tifffile.imread(path)
    image.flat[17] ^= 1
    tifffile.imwrite(path, image)
    with pytest.raises(ValueError, match="epoch 1: .* 1 of them with other pixels"):
        modules.runs.measure(task(modules, folder, name, checked=checked, batch=COUNT))


def test_other_rows_than_were_asked_for_end_a_run(modules, folder):
    one = task(modules, folder, "wellread:tiff")
    orders = (one.orders[1], one.orders[0], one.orders[2])
    with pytest.raises(ValueError, match="another one than its peers were given"):
        modules.runs.measure(task(modules, folder, "wellread:tiff", orders=orders, batch=COUNT))


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
    facts = {"command": "compare.py --rounds 6", "rules": 2, "commit": "abc", "date": "2026-01-02",
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
    assert "No verdict in the first epoch beside peer spdl (TIFF folder)." in first and "1.05" not in first
    assert "95 % noise floor, of loaders that ran twice in a round: 10.0%." in first
    assert "decoded pages" not in text and "Withdrawn" not in text
    # Later epochs are the median of each process: 2 s beside 0.5 s.
    assert [line for line in later.splitlines() if line.startswith("| TIFF")][:2] == [
        "| TIFF folder | peer tifffile | 50 | 200 | 4.00 (4.00–4.00) | 10 | 10 |",
        "| TIFF folder | peer spdl | 4 | 200 | 50.0 (50.0–50.0) | 10 | 10 |",
    ]
    said = "peer tifffile is the closest slower peer in later epochs (TIFF folder): wellread is 4.00 (4.00–4.00)"
    assert said in later
    assert page.put(text, result()) == text


def test_a_run_by_other_rules_has_no_figures(page):
    one = result()
    for rules in (1, page.RULES + 1, None):
        one["facts"]["rules"] = rules
        text = page.put(PAGE, one)
        assert page.WITHDRAWN_RULES in text and "commit abc" in text and "images/s" not in text
    del one["facts"]["rules"]
    assert page.WITHDRAWN_RULES in page.put(PAGE, one) and page.by_rules(one, 1)
    assert page.WITHDRAWN_RULES not in page.put(PAGE, result())


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
    assert text.count("wellread keeps up to 64 MiB of decoded pages of Parquet and Vortex") == 1
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


def test_memory_of_a_batch_is_shared_in_workers_alone(modules, monkeypatch):
    collation = modules.collation
    assert not collation.room((2, 1, 3, 4)).is_shared()
    monkeypatch.setattr(collation, "get_worker_info", lambda: "a worker")
    batch = collation.room((2, 1, 3, 4))
    batch.numpy()[1, 0, 2] = 5
    assert batch.is_shared() and batch.shape == (2, 1, 3, 4) and batch.is_contiguous()
    assert batch.dtype == modules.runs.torch.float32 and batch[1, 0, 2].tolist() == [5.0] * 4


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
    assert "peer spdl is faster in the first epoch (TIFF folder): wellread has 0.50 (0.50–0.50)" in text
    assert "in every round" not in text
    # Within the noise floor of 10 %, and faster in all rounds: no verdict, and said.
    for r in one["sets"][0]["runs"]["spdl"]:
        r["epochs_s"] = [0.95, 25.0]
    text = page.put(PAGE, one)
    said = "beside peer spdl (TIFF folder). wellread was slower in every round beside peer spdl (TIFF folder)."
    assert f"No verdict in the first epoch {said}" in text


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
    # A result by rules of before has no figures.
    before = page.put(text, {**written, "facts": {**result()["facts"], "rules": 1}})
    assert "5.00 (5.00–5.00)" not in before and "wrote five levels" in before
    # What the result is not of stays.
    assert "\nold\n" in text
    written["writing"]["rounds"] = 3
    with pytest.raises(ValueError, match="writing: 3 rounds"):
        page.put(text, written)


def test_the_plan_has_the_large_fields_first_and_leaves_out_what_was_not_asked_for(modules, monkeypatch):
    compare = modules.compare
    monkeypatch.setattr(compare, "ANNBATCH_PYTHON", None)
    assert list(compare.KINDS)[0] == "1080" and compare.KINDS["20k"].images >= 20_000
    assert all(kind.later >= 1 for kind in compare.KINDS.values())
    peers = {row["peer"] for row in compare.rows_of(compare.KINDS["1k"])}
    assert {"ram-cache-0", "ram-cache-2", "zarr-python", "tensorstore", "tensorstore-batches", "duckdb"} <= peers
    # Each way of zarr-python, and bare pixels for who unpacks nested lists.
    ways = {"zarr-python-0", "zarr-array-0", "zarr-batches", "zarr-images", "tifffile-0", "pylance-bare"}
    assert {*ways, "vortex-bare"} <= peers
    page = modules.page
    assert not any(page.unequal(row) for kind in compare.KINDS.values() for row in compare.rows_of(kind))
    assert not any(name.startswith("annbatch") for name in peers)
    assert {row["peer"] for row in compare.rows_of(compare.KINDS["1k"], ["duckdb"])} == {"duckdb"}
    # What the large set lacks cannot be asked for; what is only slow there can.
    large = compare.KINDS["20k"]
    assert not {"zarr-python", "ram-cache-0"} & {row["peer"] for row in compare.rows_of(large)}
    rows = compare.rows_of(large, ["zarr-python", "ram-cache-0"])
    assert {row["peer"] for row in rows} == {"zarr-python"}
    assert set(modules.peers.LOADERS) >= {name for _, names in compare.ROWS.values() for name in names}
    assert compare.arguments([]).rounds >= modules.judge.MIN_ROUNDS


def test_both_sides_write_as_many_images_with_the_same_codec(modules, tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    numcodecs = pytest.importorskip("numcodecs")
    pytest.importorskip("ome_zarr")
    pytest.importorskip("vortex")
    monkeypatch.syspath_prepend(HERE)
    sets, writes = importlib.import_module("sets"), importlib.import_module("writes")
    try:
        images = [("a", np.arange(64 * 64, dtype=np.uint16).reshape(1, 1, 1, 64, 64))]
        sets.write_with_library("ome-zarr", tmp_path, images)
        group = zarr.open_group(str(tmp_path / "ome-zarr" / "a.zarr"), mode="r")
        (level,) = group.attrs.asdict()["ome"]["multiscales"][0]["datasets"]
        array = group[level["path"]]
        assert array.chunks == array.shape == (1, 1, 1, 64, 64) and (array[:] == images[0][1]).all()
        assert [codec.to_dict()["configuration"] for codec in array.compressors] == [{"level": 1, "checksum": True}]
        sets.write_zarr(tmp_path, images)
        group = zarr.open_group(str(tmp_path / "a.zarr"), mode="r")
        (level,) = group.attrs.asdict()["multiscales"][0]["datasets"]
        array = group[level["path"]]
        # As docs/peers-method.md says it: a chunk for each image, and the codec that zarr-python takes by itself.
        own = zarr.create_array(str(tmp_path / "own"), shape=(2, 2), dtype="uint16", zarr_format=2).compressors
        assert array.chunks == array.shape and array.compressors == own == (numcodecs.Zstd(level=0),)
        assert set(writes.CODECS) <= set(writes.FORMATS)
    finally:
        for name in ("sets", "writes"):
            sys.modules.pop(name, None)


def test_the_command_is_said_without_folders_of_the_machine(modules):
    words = ["--out", "/a/b", "--rounds", "6", "--wellread=/c/d", "--real", "/e/jump", "--only", "duckdb,spdl"]
    assert modules.compare.command(words) == "compare.py --rounds 6 --real jump --only duckdb,spdl"
    assert modules.compare.command([]) == "compare.py"
