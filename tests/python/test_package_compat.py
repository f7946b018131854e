"""wellread.compat: programs that upstream's documents print, after one line is changed, and upstream's functions."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import wellread as wr
import wellread.bench
from own_process import HANGS
from wellread.compat import pytorch_benchmark as upstream

DOCUMENTS = (
    "cytodl-benchmarks.md",
    "dataloader-optimization.md",
    "inference-guide.md",
    "pytorch-benchmark.md",
    "track4-quick-reference.md",
)
IMPORT = re.compile(r"^from ((?:bench|utils)\.\w+|pytorch_benchmark) import", re.M)
NAMES = re.compile(r"BenchmarkConfig|BenchmarkLogger|run_inference_benchmark|run_benchmark_suite|create_dataloader")


@pytest.fixture
def programs(shared):
    """The blocks of Python in upstream's documents that use its modules."""
    folder = shared.parent / "upstream"
    if not folder.is_dir():
        pytest.skip("upstream's documents are not beside the clone")
    found = []
    for document in DOCUMENTS:
        blocks = re.findall(r"^```python\n(.*?)^```", (folder / document).read_text(), re.M | re.S)
        found += [block for block in blocks if IMPORT.search(block) or NAMES.search(block)]
    return found


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Fewer passes than the documents', in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arguments, asked = wellread.bench._arguments, []

    def fewer(config, frameworks, models):
        asked.append((list(frameworks), list(models), list(config.batch_sizes)))
        few = {"--iterations": 2, "--warmup": 1, "--batch-sizes": 1}
        kept = [given for given in arguments(config, frameworks, models) if given.partition("=")[0] not in few]
        return [*kept, *(f"{name}={value}" for name, value in few.items())]

    monkeypatch.setattr(wellread.bench, "_arguments", fewer)
    return asked


def test_the_documents_programs_run_after_one_line_is_changed(programs, quick, capsys):
    pytest.importorskip("torchvision")
    pytest.importorskip("pandas")
    changed = [IMPORT.sub(r"from wellread.compat.\1 import", program) for program in programs]
    lines = [
        (before, after)
        for old, new in zip(programs, changed, strict=True)
        for before, after in zip(old.splitlines(), new.splitlines(), strict=True)
        if before != after
    ]
    # Four of the programs import something, by one line each.
    assert len(programs) == 6 and len(lines) == 4
    names = {}
    single, reading, deep, data, device, precision = changed
    exec(single, names)
    assert quick == [
        (["pytorch"], ["resnet50"], [1, 8, 32, 128]),
        (["pytorch", "jax"], ["resnet50", "vit_b_16"], [1, 8, 32, 128]),
    ]
    results, every = names["results"], names["all_results"]
    assert [(row["framework"], row["model"], row["batch_size"]) for row in results] == [("pytorch", "resnet50", 1)]
    assert {(row["framework"], row["model"]) for row in every} == {
        (framework, model) for framework in ("pytorch", "jax") for model in ("resnet50", "vit_b_16")
    }
    for row in [*results, *every]:
        assert row["status"] == "ok", row["reason"]
        assert 0 < row["latency_min_ms"] <= row["latency_p50_ms"] <= row["latency_max_ms"]
        assert row["throughput_ips"] > 0 and row["memory_mb"] > 0

    # The file that the document reads is one of these.
    written = sorted(Path("results/raw").glob("*.csv"))
    shutil.copyfile(written[-1], "results/raw/benchmark_results_20250101_120000.csv")
    exec(reading, names)
    kept = [row for row in every if (row["framework"], row["model"]) == ("pytorch", "resnet50")]
    assert len(names["df"]) == 4
    assert names["pytorch_resnet"]["latency_p50_ms"].tolist() == pytest.approx([kept[0]["latency_p50_ms"]])

    capsys.readouterr()
    exec(deep, names)
    (row,) = names["results"]
    line = f"Batch 1: {row['latency_p50_ms']:.2f}ms, {row['throughput_ips']:.1f} img/s"
    assert capsys.readouterr().out.splitlines()[-1] == line

    for program, field, value in (
        (data, "data_source", "data/imagenet100"),
        (device, "device_prefer", "cuda"),
        (precision, "dtype", "float16"),
    ):
        exec(program, names)
        config = names["config"]
        assert getattr(config, field) == value and isinstance(config, wellread.bench.BenchmarkConfig)
    assert names["create_dataloader"] is wellread.bench.create_dataloader


def run(script, folder, code=0):
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_imports_may_stay_as_they_are(tmp_path):
    (tmp_path / "utils.py").write_text("own = 3\n")
    script = """
import sys
import wellread.compat.install
from bench.runner import BenchmarkConfig, run_benchmark_suite, run_inference_benchmark
from utils.data import create_dataloader
from utils.logging import BenchmarkLogger
import bench.runner, utils, wellread.bench
assert BenchmarkConfig is wellread.bench.BenchmarkConfig
assert bench.runner.run_benchmark_suite is wellread.bench.run_benchmark_suite
assert utils.logging.BenchmarkLogger is BenchmarkLogger and "torch" not in sys.modules
print(getattr(utils, "own", None), len(create_dataloader(batches=3)))
"""
    assert run(script, tmp_path) == "3 3\n"
    os.remove(tmp_path / "utils.py")
    assert run(script, tmp_path) == "None 3\n"
    later = "import wellread.compat.install, pytorch_benchmark as p; print(p.N_ROWS, p.OMEArrowDataset.__module__)"
    assert run(later, tmp_path) == "1000 wellread.compat.pytorch_benchmark\n"
    # Upstream's own checkout.
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/runner.py").write_text("")
    said = run(script, tmp_path, code=1)
    assert "ImportError: there is another bench.runner in" in said and "import wellread.compat.bench.runner" in said


def test_the_runner_is_a_command(tmp_path):
    said = subprocess.run(
        [sys.executable, "-m", "wellread.compat.bench.runner", "--framework", "caffe"],
        cwd=tmp_path, capture_output=True, text=True, timeout=HANGS,
    )  # fmt: skip
    assert said.returncode == 2 and "caffe" in said.stderr


def test_the_runner_takes_upstreams_arguments(tmp_path, monkeypatch):
    """The command of the document's quick check, with a framework and images that are quick; what it prints is what
    it has written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said = subprocess.run(
        [
            sys.executable, "-m", "wellread.compat.bench.runner", "--framework", "candle", "--model", "resnet50",
            "--batch-sizes", "1", "4", "--iterations", "3", "--warmup", "1", "--input-shape", "3,32,32",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=HANGS,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    (file,) = (tmp_path / "results/raw").glob("*.csv")
    assert re.fullmatch(r"benchmark_results_\d{8}_\d{6}\.csv", file.name)
    rows = wellread.bench.BenchmarkLogger(file.parent, file.name).rows()
    assert [(row["batch_size"], row["latency_samples"], row["status"]) for row in rows] == [
        ("1", "3", "ok"), ("4", "3", "ok"),
    ]  # fmt: skip
    printed = [float(number) for number in re.findall(r"^  Latency \(p50\): (.*)ms$", said.stdout, re.M)]
    assert printed == pytest.approx([float(row["latency_p50_ms"]) for row in rows], abs=0.00051)
    for line in ("Total configurations: 2", f"Results saved to: {file.relative_to(tmp_path)}"):
        assert line in said.stdout.splitlines()


@pytest.fixture(scope="module")
def noise(wellread, tmp_path_factory):
    """Images as upstream makes them: eight bits of uniform noise."""
    folder = tmp_path_factory.mktemp("noise")
    options = ["--images", 12, "--size", "20x30", "--dtype", "uint8", "--kind", "noise", "--formats"]
    wellread("generate", folder, *options, "parquet,tiff,ome-zarr")
    return folder


@pytest.mark.parametrize(
    ("kind", "file"), [("parquet", "images.parquet"), ("tiff", "tiff"), ("ome_zarr", "ome-zarr")]
)
def test_datasets_deliver_upstreams_values(noise, kind, file):
    stored = wr.Dataset(noise / file)[:].astype(np.float32)
    dataset = upstream.OMEArrowDataset(noise / file, kind)
    assert len(dataset) == 12 and dataset[0].dtype == torch.float32
    assert np.array_equal(torch.stack([dataset[i] for i in range(12)]).numpy(), stored / 255)
    cropped = upstream.OMEArrowDataset(
        data_path=noise / file, format_type=kind, crop_size=(8, 10), transform=torch.neg
    )
    assert np.array_equal(cropped[3].numpy(), -stored[3][:, 6:14, 10:20] / 255)
    arrays = upstream.OMEArrowDatasetNumpy(noise / file, kind, transform=torch.neg)
    assert isinstance(arrays[2], np.ndarray) and np.array_equal(arrays[2], stored[2] / 255)
    assert np.array_equal(pickle.loads(pickle.dumps(arrays))[2], arrays[2])
    batches = torch.utils.data.DataLoader(dataset, batch_size=5)
    assert [len(batch) for batch in batches] == [5, 5, 2]
    assert upstream.SimpleEmbeddingModel(1, 7)(next(iter(batches))).shape == (5, 7)
    dataset._preload_pixels()
    assert dataset.images.cache_report["images"] == 12 and np.array_equal(dataset[4].numpy(), stored[4] / 255)


def test_other_types_are_scaled_by_their_range(parquet, tmp_path):
    import tifffile

    image = upstream.OMEArrowDataset(parquet)[1].numpy()
    assert np.array_equal(image, wr.Dataset(parquet)[1].astype(np.float32) / np.float32(65535))
    tifffile.imwrite(tmp_path / "dark.tiff", np.eye(4, dtype=np.uint8))
    assert upstream.OMEArrowDataset(tmp_path, "tiff")[0].tolist() == [np.eye(4).tolist()]
    with pytest.raises(ValueError, match="Unknown format: png"):
        upstream.OMEArrowDataset(tmp_path, "png")


def test_arrays_and_tensors_are_timed(noise):
    config = {"name": "Test", "type": "parquet", "path": noise / "images.parquet"}
    found = upstream.benchmark_numpy_vs_torch(config, num_samples=10, warmup=3)
    statistics = [
        f"{part}_{name}" for part in ("numpy", "conversion", "torch") for name in ("mean", "p50", "p95", "p99")
    ]
    rates = ["conversion_overhead_pct", "numpy_samples_per_sec", "torch_samples_per_sec"]
    assert list(found) == ["format", "num_samples", *statistics, *rates]
    assert (found["format"], found["num_samples"]) == ("Test", 10)
    assert found["torch_mean"] == pytest.approx(found["numpy_mean"] + found["conversion_mean"])
    assert found["conversion_overhead_pct"] == pytest.approx(100 * found["conversion_mean"] / found["torch_mean"])
    assert found["numpy_samples_per_sec"] == pytest.approx(1 / found["numpy_mean"])
    assert all(0 < found[f"{part}_p50"] <= found[f"{part}_p99"] for part in ("numpy", "conversion", "torch"))
    assert upstream.percentile_stats([1, 2, 3, 6]) == pytest.approx(
        {"mean": 3, "std": 3.5**0.5, "p50": 2.5, "p95": 5.55, "p99": 5.91, "min": 1, "max": 6}
    )


# By number: columns that upstream's tables have, and those that tell rows apart.
TRACKS = {
    1: (["mean", "p50", "samples_per_sec", "num_samples"], ["access_pattern", "transform"]),
    2: (["mean", "first_batch_time", "samples_per_sec"], ["batch_size", "num_workers"]),
    3: (["step_time_mean", "step_time_p50", "data_wait_fraction", "images_per_sec", "num_steps"], ["batch_size"]),
    4: (["numpy_p50", "conversion_p50", "torch_p50", "conversion_overhead_pct", "num_samples"], ["path"]),
}


def test_tracks_are_those_of_bench(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    small = {
        "N_ROWS": 12, "OME_SHAPE": (16, 20), "TRACK1_REPEATS": 1, "TRACK1_BENCHMARK_SAMPLES": 4, "TRACK2_REPEATS": 1,
        "TRACK2_BATCH_SIZES": [4], "TRACK2_NUM_WORKERS_OPTIONS": [0], "TRACK3_REPEATS": 1, "TRACK3_STEPS": 2,
        "TRACK3_BATCH_SIZE": 4,
    }  # fmt: skip
    for name, value in small.items():
        monkeypatch.setattr(upstream, name, value)
    assert upstream.get_available_formats() == []
    upstream.generate_and_write_data()
    # Upstream's script writes them whenever it is run.
    upstream.generate_and_write_data()
    formats = upstream.get_available_formats()
    assert {"Parquet", "TIFF", "OME-Zarr"} <= {found["name"] for found in formats}
    for found in formats:
        dataset = upstream.OMEArrowDataset(found["path"], found["type"])
        assert len(dataset) == 12 and dataset[0].shape == (1, 16, 20)
    tables = {}
    for number in TRACKS:
        with pytest.raises(FileNotFoundError, match=f"run_track{number}"):
            getattr(upstream, f"plot_track{number}_results")(None)
        run = getattr(upstream, f"run_track{number}")
        monkeypatch.setattr(upstream, f"run_track{number}", lambda n=number, run=run: tables.setdefault(n, run()))
    # What upstream's script does.
    upstream.main()
    for number, (columns, keys) in TRACKS.items():
        table = tables[number]
        assert {"Parquet", "TIFF", "OME-Zarr"} <= set(table["format"])
        assert not table.duplicated(["format", "run", *keys]).any() and {*columns, *keys} <= {*table.columns}
        assert (table[columns].to_numpy(float) >= 0).all() and len(table[columns].dropna()) == len(table)
        pandas.testing.assert_frame_equal(pandas.read_parquet(f"data/pytorch_benchmark_track{number}.parquet"), table)
        assert Path(f"images/pytorch_benchmark_track{number}.png").read_bytes()[:4] == b"\x89PNG"
    assert set(tables[1]["transform"]) == {"none", "normalize", "augment"}
    assert set(tables[1]["access_pattern"]) == {"sequential", "random"}
    summary = json.loads(Path("data/pytorch_benchmark_summary.json").read_text())
    assert list(summary) == ["track1", "track2", "track3", "track4"]
    for number, of in summary.items():
        images = of["configuration"]["source"]["synthetic"]
        assert (images["images"], images["shape"], images["seed"]) == (12, [1, 1, 1, 16, 20], 42), number
        assert of["verified"] is True and of["environment"]["cpu"]["logical"] > 0
    # A median of one run is that run's.
    for one in [one for one in summary["track2"]["aggregates"]["dataloader"] if "samples_per_sec" in one]:
        label = next(label for name, label, _ in upstream._FORMATS.values() if name == one["format"])
        ((rate,),) = tables[2].loc[tables[2]["format"] == label, ["samples_per_sec"]].to_numpy()
        assert one["samples_per_sec"]["value"] == pytest.approx(rate)


def test_modules_are_there_after_a_plain_import():
    """The migration page writes them so."""
    program = (
        "import sys, wellread\n"
        "print(wellread.bench.create_dataloader.__name__, {'torch', 'numpy'} & {*sys.modules})\n"
        "print(wellread.compat.pytorch_benchmark.OMEArrowDataset.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS)
    assert (done.returncode, done.stdout) == (0, "create_dataloader set()\nOMEArrowDataset\n"), done.stderr
