"""The figures of `wellread bench` are right: every one is computed again, by NumPy, from the times of the same run.

Upstream's documents name these figures; `docs/upstream.md` and `docs/upstream-models.md` say where each is.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACKS = ("dataset", "dataloader", "loop", "conversion", "storage")
# What the columns of an item's times begin with.
PREFIX = {"dataset": "", "dataloader": "", "loop": "step_", "conversion": "torch_", "storage": "item_"}
IMAGES, HEIGHT, WIDTH, SAMPLES, STEPS, BATCH, RANDOM = 120, 24, 20, 110, 24, 4, 10
ONCE = [
    "--size", f"{HEIGHT}x{WIDTH}", "--framework", "rust", "--no-cold", "--time-budget", 600,
    "--transform", "none,normalize", "--cache", "none", "--batch-size", BATCH, "--random-images", RANDOM,
]  # fmt: skip


class Run:
    """A finished run: its tables, the times of each row, its summary."""

    def __init__(self, out):
        self.out = out
        self.summary = json.loads((out / "summary.json").read_text())
        self.tables = {name: pq.read_table(out / f"{name}.parquet").to_pylist() for name in TRACKS}
        self.times = {}
        for name in TRACKS:
            for one in pq.read_table(out / "samples" / f"{name}.parquet").to_pylist():
                one.pop("position")
                seconds = np.array(one.pop("seconds"))
                key = name, *sorted((k, v) for k, v in one.items() if v is not None)
                assert key not in self.times, "a configuration has its times once"
                self.times[key] = one, seconds

    def rows(self, name):
        """Each measured row of a table with the times of its items."""
        found = []
        for one, seconds in (kept for key, kept in self.times.items() if key[0] == name):
            (row,) = [row for row in self.tables[name] if all(row[k] == v for k, v in one.items())]
            found.append((row, seconds))
        # Each operation of storage that takes single images has such times, every row of the others.
        assert name == "storage" or len(found) == len([r for r in self.tables[name] if r["status"] == "ok"])
        assert found
        return found


@pytest.fixture(scope="module")
def run(wellread, tmp_path_factory):
    """All tracks, two formats, two rounds."""
    out = tmp_path_factory.mktemp("values") / "results"
    wellread(
        "bench", "all", *ONCE, "--images", IMAGES, "--formats", "tiff,parquet", "--repeats", 2, "--samples", SAMPLES,
        "--access", "random,sequential", "--batch-sizes", "4,16", "--workers", "0,2", "--steps", STEPS, "--out", out,
    )  # fmt: skip
    return Run(out)


def printed(*args):
    """The text that the command prints for people."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True, encoding="utf-8", timeout=3600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def close(found, wanted):
    # Times are written as they were measured; sums of them are taken in another order.
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", TRACKS)
def test_percentiles_and_means_are_those_of_the_times(run, name):
    for row, seconds in run.rows(name):
        at = PREFIX[name]
        found = {key: row.get(f"{at}{key}_s") for key in ("mean", "std", "p50", "p95", "p99", "min", "max")}
        close(found["mean"], seconds.mean())
        close(found["std"], seconds.std(ddof=1))
        close(found["p50"], np.percentile(seconds, 50))
        assert (found["min"], found["max"]) == (seconds.min(), seconds.max())
        for key, share, enough in (("p95", 95, 20), ("p99", 99, 100)):
            if len(seconds) < enough:
                assert found[key] is None, f"{len(seconds)} times have no {key}"
            else:
                close(found[key], np.percentile(seconds, share))
        known = [found[key] for key in ("min", "p50", "p95", "p99", "max") if found[key] is not None]
        assert known == sorted(known) and known[0] > 0


def test_single_images_rates_are_images_by_time(run):
    for row, seconds in run.rows("dataset"):
        assert row["num_samples"] == len(seconds) == SAMPLES and row["p99_s"] is not None
        close(row["samples_per_sec"], SAMPLES / seconds.sum())
        assert row["open_s"] > 0
        close(row["first_epoch_images_per_s"], SAMPLES / (row["open_s"] + seconds.sum()))
    found = {(row["access"], row["transform"]) for row in run.tables["dataset"]}
    assert found == {
        (access, transform) for access in ("random", "sequential") for transform in ("none", "normalize")
    }
    for row in run.tables["dataset"]:
        # Sequential order is the order of the files; a shuffle mixes as much as one can.
        if row["access"] == "sequential":
            close(row["rank_correlation"], 1)
        else:
            close(row["mixing"], 1)
            assert abs(row["rank_correlation"]) < 0.5


def test_batches_rates_are_images_by_time_and_scaling_is_a_ratio_of_rows(run):
    measured = run.tables["dataloader"]
    for row, seconds in run.rows("dataloader"):
        assert row["num_samples"] == IMAGES and row["readers"] == row["workers"] + 1
        close(row["samples_per_sec"], IMAGES / row["epoch_s"])
        # Every epoch opens anew here.
        close(row["first_epoch_images_per_s"], IMAGES / (row["open_s"] + row["epoch_s"]))
        close(row["delivered_bytes_per_s"], row["samples_per_sec"] * HEIGHT * WIDTH * 4)
        # A turn is whole epochs, whose batches take no longer than they do.
        epochs, rest = divmod(len(seconds), -(-IMAGES // row["batch_size"]))
        assert rest == 0 and 1 <= epochs <= 50 and seconds.sum() <= epochs * row["epoch_s"] * (1 + 1e-9)
        assert 0 < row["open_s"] < row["first_batch_s"]
        same = ("format", "batch_size", "run")
        (base,) = [r for r in measured if r["workers"] == 0 and all(r[key] == row[key] for key in same)]
        threads = min(row["readers"], len(os.sched_getaffinity(0)))
        close(row["scaling_efficiency"], row["samples_per_sec"] / base["samples_per_sec"] / threads)
        limits = {"widening and scaling": row["limit_kernel_per_s"], "reading and decoding": row["limit_read_per_s"]}
        close(row["share_of_limit"], row["samples_per_sec"] / min(limits.values()))
        named = min(limits, key=limits.get) if row["share_of_limit"] <= 1 else "limit not valid"
        assert row["bound_by"] == named


def test_a_steps_parts_are_shares_of_its_time(run):
    assert {row["mode"] for row in run.tables["loop"]} == {"train", "inference"}
    # The light one, by whose speed formats differ, unless another is named.
    assert {row["model"] for row in run.tables["loop"]} == {"linear-probe"}
    for row, seconds in run.rows("loop"):
        assert len(seconds) == STEPS and row["step_p95_s"] is not None
        close(row["images_per_sec"], BATCH * STEPS / seconds.sum())
        waiting = row["data_wait_fraction"]
        assert 0 <= waiting <= 1
        close(row["accelerator_utilisation"], 1 - waiting)
        bounds = ((0.3, "loading is no bottleneck"), (0.5000001, "loading is significant but acceptable"))
        said = [text for bound, text in bounds if waiting < bound]
        assert row["advice"].startswith(said[0] if said else "loading is the bottleneck")
        marks = [text for least, text in ((0.9, "reaches 90 %"), (0.7, "reaches 70 %")) if 1 - waiting >= least]
        assert row["utilisation_mark"] == (marks or ["below 70 %"])[0]
        assert row["wait_p50_s"] < row["step_max_s"] and row["compute_p50_s"] < row["step_max_s"]
        close(row["wait_by_difference_fraction"], 1 - row["synthetic_step_s"] / row["step_mean_s"])
        close(row["wait_by_difference_cached_fraction"], 1 - row["synthetic_step_s"] / row["cached_step_s"])
        assert (row["loss"] is not None) == (row["mode"] == "train")
        # An epoch has more batches than there are steps.
        assert row.get("first_epoch_images_per_s") is None


def test_the_first_epoch_of_a_loop_has_opening_in_it(wellread, tmp_path):
    wellread(
        "bench", "loop", *ONCE, "--images", 2 * BATCH, "--formats", "tiff,parquet", "--repeats", 2, "--steps", 5,
        "--mode", "train", "--out", tmp_path,
    )  # fmt: skip
    rows = pq.read_table(tmp_path / "loop.parquet").to_pylist()
    assert len(rows) == 4
    for row in rows:
        # Two batches: the one before the steps, and the first of them.
        epoch_s = 2 * BATCH / row["first_epoch_images_per_s"]
        assert epoch_s > row["first_batch_s"] + row["step_min_s"]


def test_training_lowers_the_loss_from_round_to_round(wellread, tmp_path):
    # Every batch is the whole set, so that losses are of the same images.
    wellread(
        "bench", "loop", *ONCE, "--images", BATCH, "--formats", "tiff,parquet", "--repeats", 3, "--steps", 5,
        "--mode", "train", "--out", tmp_path,
    )  # fmt: skip
    rows = pq.read_table(tmp_path / "loop.parquet").to_pylist()
    for format in ("tiff", "parquet"):
        losses = [row["loss"] for row in rows if row["format"] == format]
        assert len(losses) == 3 and losses[0] > losses[1] > losses[2] > 0


def test_a_conversions_parts_add_up(run):
    for row, seconds in run.rows("conversion"):
        assert row["framework"] == "candle" and len(seconds) == SAMPLES
        close(row["torch_mean_s"], row["numpy_mean_s"] + row["conversion_mean_s"])
        close(row["conversion_overhead_pct"], 100 * row["conversion_mean_s"] / row["torch_mean_s"])
        close(row["numpy_samples_per_sec"], 1 / row["numpy_mean_s"])
        close(row["torch_samples_per_sec"], SAMPLES / seconds.sum())
        for part in ("numpy", "conversion"):
            known = [row[f"{part}_p50_s"], row[f"{part}_p95_s"], row[f"{part}_p99_s"]]
            assert None not in known and known == sorted(known)
        share = row["conversion_overhead_pct"]
        said = "negligible" if share < 10 else "measurable but acceptable" if share <= 30 else "significant"
        assert row["advice"].startswith(said)
        assert row["copied_bytes"] == (HEIGHT * WIDTH * 4 if row["path"] == "copy" else 0)


def test_sizes_are_those_of_the_files_and_rates_images_by_time(run):
    paths = {"parquet": [run.out / "data" / "images.parquet"], "tiff": list((run.out / "data" / "tiff").iterdir())}
    images = {"write": IMAGES, "read_all": IMAGES, "read_random": RANDOM, "read_files": IMAGES}
    for row in run.tables["storage"]:
        size = sum(path.stat().st_size for path in paths[row["format"]])
        if row["operation"] != "write":
            assert row["bytes_on_disk"] == size
            close(row["bits_per_pixel"], 8 * size / (IMAGES * HEIGHT * WIDTH))
        if row["operation"] in images and row["images_per_s"] is not None:
            close(row["images_per_s"], images[row["operation"]] / row["seconds"])
    assert {row["operation"] for row in run.tables["storage"]} >= set(images)


def test_aggregates_are_medians_of_the_rounds(run):
    checked = 0
    for name, columns in {
        "dataset": ("samples_per_sec", "open_s"),
        "dataloader": ("samples_per_sec", "first_batch_s"),
        "loop": ("images_per_sec", "data_wait_fraction"),
        "conversion": ("numpy_p50_s", "conversion_overhead_pct"),
    }.items():
        keys = [key for key in ("format", "access", "transform", "batch_size", "workers", "mode", "path")]
        for one in run.summary["aggregates"][name]:
            rows = [row for row in run.tables[name] if all(row[key] == one[key] for key in keys if key in one)]
            assert len(rows) == 2
            for column in columns:
                close(one[column]["value"], np.median([row[column] for row in rows]))
                assert one[column]["n"] == 2
                checked += 1
    assert checked > 20


def test_the_checksum_is_of_the_pixels_alone(run, wellread, tmp_path):
    assert run.summary["verified"] is True
    few = ["--repeats", 1, "--samples", 4, "--access", "random", "--batch-sizes", 4, "--workers", 0]

    def checksum(images, *more):
        out = tmp_path / "-".join(more).strip("-")
        wellread("bench", "dataset", *ONCE, "--images", images, *few, "--out", out, *more)
        # What was not asked for is left out.
        assert [path.stem for path in out.glob("*.parquet")] == ["dataset"]
        return json.loads((out / "summary.json").read_text())["pixel_checksum"]

    # Other formats, as many images: the same; another seed: others.
    assert checksum(IMAGES, "--formats", "ome-zarr") == run.summary["pixel_checksum"]
    assert checksum(IMAGES, "--seed", "7", "--formats", "tiff") != run.summary["pixel_checksum"]


def test_conversions_are_printed_by_format_and_path(tmp_path):
    """Track 4 is printed as a line for each format and path; its figures are the medians of the file."""
    few = ["--images", 6, "--formats", "tiff,parquet", "--repeats", 2, "--samples", 4, "--out", tmp_path]
    said = printed("bench", "conversion", *ONCE, *few)
    rows = pq.read_table(tmp_path / "conversion.parquet").to_pylist()
    scale = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
    for format in ("tiff", "parquet"):
        for path, bytes_ in (("copy", HEIGHT * WIDTH * 4), ("zero_copy", 0)):
            runs = [row for row in rows if (row["format"], row["path"]) == (format, path)]
            (line,) = re.findall(rf"^ +{format} +{path} +(.*)$", said, re.M)
            cells = re.findall(r"([\d.,]+)\s(ns|µs|ms|s|%|B|kB)", line)
            columns = ("numpy_p50_s", "conversion_p50_s", "torch_p50_s")
            for (number, unit), column in zip(cells[:3], columns, strict=True):
                # Three digits are printed.
                wanted = np.median([row[column] for row in runs])
                assert float(number.replace(",", "")) * scale[unit] == pytest.approx(wanted, rel=6e-3), (line, column)
            # Of a percentage two decimals or three digits.
            overhead = np.median([row["conversion_overhead_pct"] for row in runs])
            assert float(cells[3][0]) == pytest.approx(overhead, rel=6e-3, abs=6e-3), line
            copied = float(cells[4][0].replace(",", "")) * {"B": 1, "kB": 1000}[cells[4][1]]
            assert copied == pytest.approx(bytes_, rel=6e-3)


# The panels that upstream's four figures have.
PANELS = {
    "dataset": ("Latency of one image", "Throughput"),
    "dataloader": ("Throughput", "Time until the first batch is there", "Scaling efficiency"),
    "loop": ("Where a step’s time goes", "Share of the time spent waiting", "Throughput"),
    "conversion": ("Time from stored pixels to a tensor", "Conversion as share of the total"),
}


def test_figures_show_what_upstreams_show(run):
    for name, panels in PANELS.items():
        svg = " ".join(re.sub("<[^>]*>", " ", (run.out / f"{name}.svg").read_text()).split())
        for text in (*panels, "tiff", "parquet"):
            assert text in svg, f"{name}: no {text!r}"


def test_every_format_has_a_colour_of_its_own(wellread):
    """The colours of the list are told apart by a test beside it."""
    source = (ROOT / "crates/wellread-report/src/chart/color.rs").read_text()
    coloured = re.findall(r'\("([\w-]+)", "#', source.split("const FORMATS")[1].split("];")[0])
    doctor = wellread("doctor", "--python", "no-such-python")
    formats = {format["name"] for kind in ("formats", "formats_missing") for format in doctor[kind]}
    assert len(coloured) == len(formats) and set(coloured) == formats


def test_what_it_was_measured_on_is_recorded(run):
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    assert run.summary["wellread"] == version
    recorded = json.dumps(run.summary["environment"])
    for text in (os.uname().release, os.uname().machine):
        assert text in recorded
    assert set(run.summary["engines"]) >= {"tiff", "parquet"}
    # The libraries' versions are those that the program was built with.
    locked = (ROOT / "Cargo.lock").read_text()
    said = run.summary["engines"]["parquet"]
    parquet = re.search(r'^name = "parquet"\nversion = "(.*)"$', locked, re.M).group(1)
    assert parquet in said, f"{said}: not {parquet}"


# `python src/benchmarks/pytorch_benchmark.py`: the constants at its top, as its document has them.
UPSTREAM = {
    "images": 1000,
    "size": "100x100",
    "samples": 100,
    "batch-sizes": [1, 4, 16],
    "workers": [0, 2, 4],
    "steps": 50,
    "batch-size": 16,
}


def test_the_defaults_and_the_recipe_are_upstreams(wellread, tmp_path):
    tomllib = pytest.importorskip("tomllib")
    recipe = tomllib.loads((ROOT / "recipes/upstream-tracks.toml").read_text())
    noise = next(run for run in recipe["run"] if run["name"] == "noise")
    assert {key: noise[key] for key in UPSTREAM} == UPSTREAM and noise["model"] == "small-cnn"
    assert noise["access"][:2] == ["sequential", "random"] and noise["transform"] == ["none", "normalize", "augment"]
    # Upstream's three repeats give no interval.
    assert noise["repeats"] == 10
    # What is not said is the same, seed 42 included.
    wellread("bench", "storage", "--formats", "tiff", "--repeats", 1, "--no-cold", "--out", tmp_path)
    asked = json.loads((tmp_path / "summary.json").read_text())["configuration"]
    source = asked["source"]["synthetic"]
    assert (source["images"], source["shape"], source["seed"], asked["seed"]) == (1000, [1, 1, 1, 100, 100], 42, 42)
    # But for Track 3's model, a light one.
    assert asked["model"] == "linear-probe"
    for key in ("samples", "batch-sizes", "workers", "steps", "batch-size"):
        assert asked[key.replace("-", "_")] == UPSTREAM[key], key


def test_seven_rounds_are_the_default(wellread, tmp_path):
    """As the help and the documents have it; a run that nothing is said to has seven of each configuration."""
    said = printed("bench", "dataset", "--help")
    documented = (ROOT / "docs/commands/bench.md").read_text()
    for text in (said, documented):
        option = text[text.index("--repeats <REPEATS>") :].split("\n\n      --")[0]
        assert "[default: 7]" in option, option
    wellread(
        "bench", "dataset", "--images", 4, "--size", "16x16", "--formats", "tiff", "--framework", "rust",
        "--samples", 2, "--access", "random", "--transform", "none", "--cache", "none",
        "--time-budget", 100_000, "--out", tmp_path,
    )  # fmt: skip
    assert json.loads((tmp_path / "summary.json").read_text())["configuration"]["repeats"] == 7
    rows = pq.read_table(tmp_path / "dataset.parquet").to_pylist()
    assert [row["run"] for row in rows] == list(range(7)) and {row["status"] for row in rows} == {"ok"}


@pytest.mark.parametrize(("height", "width"), [(32, 32), (256, 192)])
def test_images_have_the_size_that_is_asked_for(wellread, tmp_path, height, width):
    """`--size`: in the files, in the configuration, and in the bytes that each track delivers or converts."""
    tifffile = pytest.importorskip("tifffile")
    wellread(
        "bench", "dataset,dataloader,conversion", "--size", f"{height}x{width}", "--images", 4, "--formats", "tiff",
        "--framework", "rust", "--samples", 2, "--repeats", 1, "--batch-sizes", 2, "--workers", 0,
        "--access", "random", "--transform", "none", "--cache", "none", "--time-budget", 100_000, "--out", tmp_path,
    )  # fmt: skip
    summary = json.loads((tmp_path / "summary.json").read_text())
    shape = summary["configuration"]["source"]["synthetic"]["shape"]
    assert shape == [1, 1, 1, height, width] and f"1x1x1x{height}x{width}" in summary["images"]
    files = list((tmp_path / "data" / "tiff").iterdir())
    assert [tifffile.imread(file).shape for file in files] == [(height, width)] * 4
    bytes_ = height * width * 4
    (loaded,) = pq.read_table(tmp_path / "dataloader.parquet").to_pylist()
    close(loaded["delivered_bytes_per_s"] / loaded["samples_per_sec"], bytes_)
    converted = {row["path"]: row for row in pq.read_table(tmp_path / "conversion.parquet").to_pylist()}
    assert converted["copy"]["copied_bytes"] == bytes_
    # The share of these images, whatever it is.
    for row in converted.values():
        close(row["conversion_overhead_pct"], 100 * row["conversion_mean_s"] / row["torch_mean_s"])
        assert 0 < row["conversion_overhead_pct"] < 100
