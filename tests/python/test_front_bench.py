"""The first picture of README.md (`make bench-front`): what it says of a result, and that loaders are compared."""

import contextlib
import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
FOLDERS = ("peers", "plates", "front")
LOADERS = {
    "wellread tiff": ("tiff", "wellread", None),
    "tifffile": ("tiff", "tifffile, torch DataLoader", "wellread tiff"),
    "wellread lance": ("lance", "wellread, OME-Arrow", None),
    "pylance": ("pylance", "pylance take, a column of bytes", "wellread lance"),
    "litdata": ("litdata", "LitData StreamingDataLoader", None),
}
NUMBER = 100


@contextlib.contextmanager
def names_of_benches():
    """Modules of benches, whose names are for their own folders only."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        for folder in FOLDERS:
            patch.syspath_prepend(BENCHES / folder)
        yield
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(BENCHES):
                sys.modules.pop(name)


@pytest.fixture(scope="module")
def modules():
    with names_of_benches():
        names = ("front_page", "front_picture")
        yield type("Modules", (), {name: importlib.import_module(name) for name in names})


def runs(first, later, rounds=6):
    """Rounds that differ by a hundredth, with these images a second in first and later epochs."""
    return [
        {"round": r, "rows": NUMBER, "memory_mb": 1.0, "epochs_s": [NUMBER / first / (1 + r / 100), NUMBER / later]}
        for r in range(1, rounds + 1)
    ]


def result(rounds=6, **changed):
    """wellread has four times the rate of tifffile, half of that of pylance in later epochs."""
    rates = {"wellread tiff": (100, 200), "tifffile": (25, 50), "wellread lance": (100, 100), "pylance": (50, 200),
             "litdata": (70, 80)}  # fmt: skip
    measured = {name: runs(*pair, rounds) for name, pair in rates.items()} | changed
    rows = [
        {"name": name, "files": f, "about": about, "beside": beside} for name, (f, about, beside) in LOADERS.items()
    ]
    front = {"rows": rows, "bytes": {"tiff": 1_500_000_000}, "runs": measured, "copy": [{"gb_per_s": 10.0}],
             "twins": [{"of": "wellread tiff", **one} for one in measured["wellread tiff"]]}  # fmt: skip
    facts = {"command": "front.py", "commit": "abc", "date": "2026-01-02", "machine": "2 processors (a < b)"}
    facts |= {"threads": 2, "rounds": rounds, "rules": 2, "sites": 192, "size": 1080, "batch": 16, "level": 3}
    return {"facts": {**facts, "versions": {"Python": "3"}}, "front": front}


def test_the_table_has_rates_intervals_and_ratios_beside_wellread_on_such_files(modules):
    lines = [line for line in modules.front_page.section(result()).splitlines() if line.startswith("| ")]
    tiff, lance = "TIFF, a file for each channel", "Lance"
    assert lines[1:] == [
        f"| {tiff} | wellread | 104 (101–106) | 200 (200–200) |  |  | 1.00 |",
        f"| {tiff} | tifffile, torch DataLoader | 25.9 (25.3–26.4) | 50.0 (50.0–50.0) | 4.00 (4.00–4.00) "
        "| 4.00 (4.00–4.00) | 1.00 |",
        f"| {lance} | wellread, OME-Arrow | 104 (101–106) | 100 (100–100) |  |  | 1.00 |",
        f"| {lance} | pylance take, a column of bytes | 51.8 (50.7–52.8) | 200 (200–200) | 2.00 (2.00–2.00) "
        "| 0.50 (0.50–0.50) | 1.00 |",
        "| LitData's shards | LitData StreamingDataLoader | 72.4 (71.0–74.0) | 80.0 (80.0–80.0) |  |  | 1.00 |",
    ]
    head = "| files | loader | first epoch, images/s | later epochs: the second one, images/s | ratio, first "
    assert lines[0] == f"{head}| ratio, later | memory, MB |"


def in_two_ways(first, later):
    """A result in which tifffile without workers has these rates."""
    one = result(**{"tifffile-0": runs(first, later)})
    one["front"]["rows"][1]["way"] = "2 workers"
    one["front"]["rows"].insert(2, {**one["front"]["rows"][1], "name": "tifffile-0", "way": "0 workers"})
    return one


@pytest.mark.parametrize(
    ("first", "later", "way", "shown"),
    [
        # With 2 workers it has 25 and 50.
        (20, 40, "2 workers", ("25.9 (25.3–26.4)", "50.0 (50.0–50.0)")),
        (50, 100, "0 workers", ("51.8 (50.7–52.8)", "100 (100–100)")),
        (50, 40, "first epoch: 0 workers; later: 2 workers", ("51.8 (50.7–52.8)", "50.0 (50.0–50.0)")),
        (20, 100, "first epoch: 2 workers; later: 0 workers", ("25.9 (25.3–26.4)", "100 (100–100)")),
    ],
)
def test_the_picture_has_the_faster_way_of_use_and_the_table_has_all(modules, first, later, way, shown):
    one = in_two_ways(first, later)
    said = f"tifffile, torch DataLoader ({way}) {shown[0]} in the first epoch, {shown[1]} in later ones"
    assert said in modules.front_page.alternative(one) and said in modules.front_page.readme(one)
    ways = "2 workers or 0 workers"
    svg = modules.front_picture.svg(one)
    assert f" A bar has the fastest of these ways: {ways}. " in modules.front_page.readme(one)
    assert f"({ways}: for each loader and epoch the fastest)" in svg
    # In the picture each has a line of its own.
    assert svg.count(">tifffile, torch DataLoader<") == 1
    assert [svg.count(f">{part}<") for part in way.split("; ")] == [1] * len(way.split("; "))
    text = modules.front_page.section(one)
    for each in ("2 workers", "0 workers"):
        assert text.count(f"| tifffile, torch DataLoader ({each}) |") == 1
    assert f"The picture has the faster way of use:\n\n* tifffile, torch DataLoader ({way})\n" in text


def test_a_way_of_use_that_failed_is_not_the_faster_one(modules):
    one = in_two_ways(50, 100)
    one["front"]["runs"]["tifffile-0"] = [{"round": 0, "error": "ValueError: other pixels"}]
    assert "tifffile, torch DataLoader (2 workers) 25.9" in modules.front_page.alternative(one)
    text = modules.front_page.section(one)
    assert "| tifffile, torch DataLoader (0 workers) | not measured: ValueError: other pixels |" in text


def test_the_caption_names_the_ways_that_a_result_has(modules):
    assert modules.front_page.faster_way(result()) == ""
    one = result()
    rows = one["front"]["rows"]
    for way in ("torch DataLoader, 2 workers", "torch DataLoader, 0 workers", "batches by 2 threads"):
        rows.append({**rows[1], "way": way})
    rows += [{**rows[4], "way": way} for way in ("2 workers", "0 workers")]
    said = "2 workers, 0 workers or batches by 2 threads"
    assert modules.front_page.ways(one) == said
    assert modules.front_page.faster_way(one) == f" ({said}: for each loader and epoch the fastest)"


def test_both_ways_of_torch_s_loader_are_measured(modules):
    """`modules` has the folders of the benchmark's modules on the path."""
    pytest.importorskip("torch")
    with names_of_benches():
        spec = importlib.util.spec_from_file_location("front_bench", BENCHES / "front.py")
        front = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(front)
        workers = {name: one[1] for name, one in importlib.import_module("plate_loaders").LOADERS.items()}
    for name, (_, _, _, way) in front.LOADERS.items():
        if way:
            assert way.endswith("threads" if workers[name] is None else f"{workers[name]} workers"), name
    assert {"tifffile", "tifffile-0", "zarr-python", "zarr-python-0"} <= set(front.arguments([]).only)


def test_the_picture_has_a_bar_whisker_and_figure_for_each_loader_and_phase(modules):
    text = modules.front_picture.svg(result())
    root = ElementTree.fromstring(text)
    spaces = {"s": "http://www.w3.org/2000/svg"}
    bars = [one for one in root.findall("s:rect", spaces) if one.get("height") == "15"]
    kinds = [one.get("class") for one in bars]
    assert kinds == ["ours first", "ours later", "first", "later"] * 2 + ["first", "later"]
    widths = [float(one.get("width")) for one in bars]
    # Widths are rates: 200 images/s of wellread on TIFF beside 50 of tifffile.
    assert widths[1] == pytest.approx(4 * widths[3], abs=0.2) and max(widths) == widths[1]
    said = [one.text for one in root.findall("s:text", spaces)]
    assert said.count("4.00 (4.00–4.00)") == 2 and said.count("0.50 (0.50–0.50)") == 1
    caption = " ".join(said[-4:])
    for part in (
        "192 generated images of 5 channels, 1080 x 1080 uint16",
        "Zstandard level 3",
        "2 processors (a < b)",
        "6 rounds",
    ):
        assert part in caption
    assert text == modules.front_picture.svg(json.loads(json.dumps(result())))
    # Those behind bars; nothing reaches into the column of ratios.
    behind = [
        one for one in root.findall("s:text", spaces) if one.get("class") == "ink" and not one.get("text-anchor")
    ]
    figures = [one for one in behind if one.get("font-size") == "12"]
    assert [one.text for one in figures][:4] == ["104", "200", "25.9", "50.0"] and len(figures) == len(bars)
    assert max(float(one.get("x")) for one in figures) < 780


def test_the_alternative_text_has_every_rate(modules):
    said = modules.front_page.alternative(result())
    assert "tifffile, torch DataLoader 25.9 (25.3–26.4) in the first epoch, 50.0 (50.0–50.0) in later ones" in said
    assert "LitData's shards: LitData StreamingDataLoader 72.4 (71.0–74.0) in the first epoch" in said
    root = ElementTree.fromstring(modules.front_picture.svg(result()))
    assert root.find("{http://www.w3.org/2000/svg}desc").text == said
    lines = modules.front_page.readme(result())
    assert lines.startswith(f"![{said}](docs/images/loaders.svg)\n\n") and "Later epochs are the second one." in lines
    assert not set("[]") & set(said)


def test_bars_are_of_as_many_epochs_of_each_loader(modules):
    one = result()
    for run in one["front"]["runs"]["wellread tiff"]:
        run["epochs_s"] += [NUMBER / 1000] * 3
    assert modules.front_page.section(one) == modules.front_page.section(result())
    assert modules.front_page.alternative(one) == modules.front_page.alternative(result())


def test_a_loader_without_verdict_is_named(modules):
    said = "The run has no verdict on an epoch, or on both, beside tifffile. "
    assert said in modules.front_page.readme(result(tifffile=runs(100, 200)))
    assert "no verdict" not in modules.front_page.readme(result())
    two = modules.front_page.readme(result(tifffile=runs(100, 200), pylance=runs(100, 100)))
    assert " beside tifffile and pylance take. " in two


def test_a_loader_that_failed_has_no_bar_and_no_page_takes_it(modules):
    broken = result(pylance=[{"round": 0, "error": "ValueError: other pixels"}])
    assert (
        "| pylance take, a column of bytes | not measured: ValueError: other pixels |"
        in modules.front_page.section(broken)
    )
    assert ">not measured<" in modules.front_picture.svg(broken)
    assert modules.front_page.refused(broken).startswith("pylance: not measured in the 6 rounds")
    assert modules.front_page.refused(result(5)).startswith("wellread tiff, tifffile, ")
    assert modules.front_page.refused(result()) is None


def test_a_page_takes_it_between_its_markers(modules):
    book = (BENCHES.parent / "docs" / "peers-loaders.md").read_text()
    put = modules.front_page.put(book, result())
    assert modules.front_page.section(result()) in put and "There is no result yet" not in put
    assert put.split("<!-- front:begin -->")[0] == book.split("<!-- front:begin -->")[0]


def figures(root, *arguments):
    command = [sys.executable, root / "scripts" / "figures.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_page_the_picture_and_the_readme_are_those_of_the_result(modules, tmp_path):
    root = BENCHES.parent
    for folder in ("benches", "docs/results", "scripts"):
        shutil.copytree(root / folder, tmp_path / folder)
    (tmp_path / "docs" / "images").mkdir()
    pages = ("method", "peers", "peers-loaders", "peers-plates", "peers-remote", "peers-small", "speed", "trace",
             "transforms")  # fmt: skip
    for page in ("README.md", *(f"docs/{name}.md" for name in pages)):
        shutil.copy(root / page, tmp_path / page)
    readme, picture = tmp_path / "README.md", tmp_path / "docs" / "images" / "loaders.svg"
    if "<!-- front:begin -->" not in readme.read_text():
        readme.write_text("<!-- front:begin -->\n<!-- front:end -->\n" + readme.read_text())
    path = tmp_path / "front.json"
    path.write_text(json.dumps(result(5)))
    done = figures(tmp_path, "--take", path)
    assert done.returncode == 1 and "the 6 rounds that a page needs" in done.stderr
    path.write_text(json.dumps(result()))
    done = figures(tmp_path, "--take", path, "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    assert picture.read_text() == modules.front_picture.svg(result())
    assert modules.front_page.readme(result()) in readme.read_text()
    assert modules.front_page.section(result()) in (tmp_path / "docs" / "peers-loaders.md").read_text()
    picture.write_text(picture.read_text().replace(">25.9<", ">29.5<"))
    done = figures(tmp_path)
    assert done.returncode == 1 and "docs/images/loaders.svg: a picture is not that of docs/results" in done.stdout


def test_a_round_scale_has_few_steps(modules):
    assert [modules.front_picture.step(most) for most in (6, 7, 31, 600, 999)] == [1, 2, 10, 100, 200]


SIZE, SITES = 128, 4


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Sites in the files of each loader that is installed here, as `front.py` writes them."""
    pytest.importorskip("zarr")
    pytest.importorskip("lance")
    folder = tmp_path_factory.mktemp("front")
    with names_of_benches():
        loaders, front_sets = (importlib.import_module(name) for name in ("plate_loaders", "front_sets"))
        plate_runs, plate_sets, checks = (importlib.import_module(n) for n in ("plate_runs", "plate_sets", "checks"))
        rng = np.random.default_rng(5)
        sites = rng.integers(0, 60_000, (SITES, 5, SIZE, SIZE), dtype=np.uint16)
        yield type("Made", (), {
            "loaders": loaders, "front": front_sets, "runs": plate_runs, "plates": plate_sets, "folder": folder,
            "sites": sites, "sums": [checks.checksum(site) for site in sites],
        })  # fmt: skip


def of_sites(made, kind):
    """A plate of these sites, its files written anew as the benchmark writes them."""
    import tifffile
    import zarr

    folder = made.folder / kind
    (folder / "images").mkdir(parents=True)
    (folder / "about.json").write_text(json.dumps({"size": SIZE}))
    for i, site in enumerate(made.sites):
        if kind == "planes":
            path = folder / "images" / "plate.zarr" / "A" / "1" / str(i) / "0"
            array = zarr.create_array(path, shape=(1, 5, 1, SIZE, SIZE), chunks=(1, 1, 1, 64, 64), dtype="uint16",
                                      zarr_format=2)  # fmt: skip
            array[0, :, 0] = site
            made.plates.planes(str(path))
        for c, channel in enumerate(site if kind == "zstd" else ()):
            path = folder / "images" / f"r01c01f{i + 1:02}p01-ch{c + 1}.tiff"
            tifffile.imwrite(path, channel)
            made.plates.zstd(path)
    return made.plates.Plate(folder, kind)


def test_files_written_anew_have_the_same_pixels_and_one_codec(sets):
    import tifffile

    plate = of_sites(sets, "zstd")
    with tifffile.TiffFile(plate.sites()[2][3]) as file:
        (page,) = file.pages
        assert (page.compression, page.predictor, page.rowsperstrip) == (50000, 1, SIZE)
    assert (plate.read(plate.sites()[2]) == sets.sites[2]).all()
    plate = of_sites(sets, "planes")
    about = json.loads((Path(plate.sites()[1]) / ".zarray").read_text())
    assert about["compressor"]["id"] == "zstd" and about["compressor"]["level"] == sets.plates.LEVEL
    assert about["chunks"] == [1, 1, 1, SIZE, SIZE] and about["dimension_separator"] == "/"
    assert (plate.read(plate.sites()[1]) == sets.sites[1]).all()


def job(made, loader, path, plate):
    """Two epochs in batches of three, every batch compared."""
    np.save(made.folder / "whole.npy", np.array(made.sums, np.uint32))
    return made.runs.Job(loader, str(path), 3, 2, 0, plate, expected=str(made.folder / "whole.npy"),
                         orders=((2, 0, 3, 1), (1, 3, 0, 2)), checked=True)  # fmt: skip


@pytest.fixture(scope="module")
def written(sets):
    """Where the sets are."""
    found = {}
    for kind in ("zstd", "planes"):
        exists = (sets.folder / kind).exists()
        found[kind] = sets.plates.Plate(sets.folder / kind, kind) if exists else of_sites(sets, kind)
    sets.front.of_bytes(found["zstd"], sets.folder / "sites.lance")
    return found


# litdata and tensorstore are of the benchmark's own environment.
@pytest.mark.parametrize("loader", ["tifffile", "zarr-python", "tensorstore", "pylance", "litdata"])
def test_each_loader_delivers_the_pixels(sets, written, loader):
    pytest.importorskip({"zarr-python": "zarr", "pylance": "lance"}.get(loader, loader))
    kind = "planes" if loader in ("zarr-python", "tensorstore") else "zstd"
    path = written[kind].images
    if loader == "pylance":
        path = sets.folder / "sites.lance"
    elif loader == "litdata":
        path = sets.folder / "shards"
        if not path.exists():
            sets.front.shards(written["zstd"], path)
    one = job(sets, loader, path, written[kind])
    done = sets.runs.measure(one)
    assert (done["rows"], done["compared"], len(done["epochs_s"])) == (SITES, 2 * SITES, 2)
    # The same pixels in other places of the set are other pixels.
    sums = np.roll(np.array(sets.sums, np.uint32), 1)
    np.save(sets.folder / "whole.npy", sums)
    with pytest.raises(ValueError, match="with other pixels"):
        sets.runs.measure(one)


def test_the_result_and_its_picture_are_both_kept_or_neither():
    root = BENCHES.parent
    assert (root / "docs/results/front.json").exists() == (root / "docs/images/loaders.svg").exists()
    assert len(re.findall(r"<!-- front:(?:begin|end) -->", (root / "docs/peers-loaders.md").read_text())) == 2
