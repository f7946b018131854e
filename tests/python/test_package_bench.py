"""wellread.bench: upstream's Python API of inference benchmarks, on real frameworks."""

import json
import re
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

bench = pytest.importorskip("wellread.bench", reason="the package is not importable")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A cache of its own: not weights that an earlier run, or one beside it, has left in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """One small configuration, measured once."""
    pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    folder = tmp_path_factory.mktemp("raw")
    config = bench.BenchmarkConfig(
        framework="pytorch",
        model_name="resnet50",
        batch_sizes=[1, 2],
        warmup_iterations=1,
        measurement_iterations=2,
        input_shape=(3, 64, 64),
        csv_output_dir=folder,
        verbose=False,
        threads=1,
    )
    return folder, bench.run_inference_benchmark(config)


def test_results_are_those_of_the_file(measured):
    folder, results = measured
    assert [row["batch_size"] for row in results] == [1, 2]
    for row in results:
        assert row["framework"] == "pytorch" and row["status"] == "ok"
        assert 0 < row["latency_min_ms"] <= row["latency_p50_ms"] <= row["latency_max_ms"]
        # Two passes each: the median lies between them, and so do images over wall time, roughly.
        assert row["throughput_ips"] > 0 and row["memory_mb"] > 0
    (file,) = folder.glob("benchmark_results_*.csv")
    rows = bench.BenchmarkLogger(folder, file.name).rows()
    assert [float(row["latency_p50_ms"]) for row in rows] == [row["latency_p50_ms"] for row in results]
    assert list(rows[0])[:3] == ["framework", "model", "device"]


def test_results_as_a_table(measured):
    pandas = pytest.importorskip("pandas")
    folder, results = measured
    (file,) = folder.glob("benchmark_results_*.csv")
    table = bench.BenchmarkLogger(output_dir=folder, filename=file.name).read_results()
    assert isinstance(table, pandas.DataFrame)
    chosen = table[(table["framework"] == "pytorch") & (table["model"] == "resnet50")]
    assert chosen["latency_p50_ms"].tolist() == pytest.approx([row["latency_p50_ms"] for row in results])


def test_frameworks_compute_the_same(tmp_path):
    pytest.importorskip("torchvision")
    options = {"input_shape": (3, 64, 64), "csv_output_dir": tmp_path}
    found = bench.compare_models(["resnet50"], ["pytorch", "candle"], **options)
    assert found["agree"] and 0 <= found["max_difference"] < 1e-4
    assert {row["framework"] for row in found["results"]} == {"pytorch", "candle"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"framework": "caffe"}, "caffe"),
        ({"model_name": "alexnet"}, "alexnet"),
        ({"dtype": "int4"}, "int4"),
        ({"batch_sizes": [0]}, "batch-sizes"),
        ({"csv_output_dir": "/dev/null/raw"}, "/dev/null/raw"),
        ({"data_source": "/nowhere/images"}, "/nowhere/images"),
        ({"framework": "candle", "device_prefer": "tpu"}, "tpu"),
    ],
)
def test_what_cannot_be_measured_is_told(tmp_path, change, text):
    given = {"framework": "candle", "batch_sizes": [1], "csv_output_dir": tmp_path, "verbose": False}
    given |= {"input_shape": (3, 64, 64), "measurement_iterations": 1, "warmup_iterations": 0, **change}
    with pytest.raises(bench.BenchmarkError) as error:
        bench.run_inference_benchmark(bench.BenchmarkConfig(**given))
    assert text in str(error.value)


def test_progress_is_printed_as_upstream_does(tmp_path, capsys):
    """Every printed figure is the one of the results, and the last lines say how many there are and where."""
    rows = bench.run_benchmark_suite(
        "resnet50", "candle", [1, 2], input_shape=(3, 32, 32), measurement_iterations=2, warmup_iterations=0,
        csv_output_dir=tmp_path,
    )  # fmt: skip
    said = capsys.readouterr().out
    assert [row["batch_size"] for row in rows] == [1, 2] and all(row["status"] == "ok" for row in rows)
    assert f"Type: {rows[0]['device_type'].upper()}" in said and "Available: True" in said
    opening, *blocks = said.split("Benchmarking batch size: ")
    assert "Latency" not in opening and len(blocks) == len(rows)
    for block, row in zip(blocks, rows, strict=True):
        assert int(block.split()[0]) == row["batch_size"]
        (p50,) = re.findall(r"^  Latency \(p50\): (.*)ms$", block, re.M)
        (rate,) = re.findall(r"^  Throughput: (.*) images/sec \(median of rounds\)$", block, re.M)
        (memory,) = re.findall(r"^  Memory: (.*) MB$", block, re.M)
        # As many digits as are printed.
        assert float(p50) == pytest.approx(row["latency_p50_ms"], abs=0.00051) and float(p50) > 0
        assert float(rate) == pytest.approx(row["throughput_ips"], abs=0.0051) and float(rate) > 0
        assert float(memory) == pytest.approx(row["memory_mb"], abs=0.0051) and float(memory) > 0
    assert "Benchmark Suite Complete" in said and f"Total configurations: {len(rows)}\n" in said
    (place,) = re.findall(r"^Results saved to: (.*)$", said, re.M)
    (file,) = tmp_path.glob("benchmark_results_*.csv")
    assert Path(place) == file
    written = bench.BenchmarkLogger(tmp_path, file.name).rows()
    assert [float(row["latency_p50_ms"]) for row in written] == [row["latency_p50_ms"] for row in rows]


def test_nothing_is_printed_where_that_is_asked_for(tmp_path, capsys):
    rows = bench.run_benchmark_suite(
        "resnet50", "candle", [1], input_shape=(3, 32, 32), measurement_iterations=1, warmup_iterations=0,
        csv_output_dir=tmp_path, verbose=False,
    )  # fmt: skip
    assert len(rows) == 1 and capsys.readouterr().out == ""


def test_a_logger_keeps_one_whole_file(tmp_path):
    logger = bench.BenchmarkLogger(tmp_path / "new", "mine.csv")
    with pytest.raises(FileNotFoundError):
        logger.rows()
    logger.log({"model": "a, b", "latency_p50_ms": 1.5})
    logger.log({"model": "c", "latency_p50_ms": 2.5})
    assert logger.rows() == [
        {"model": "a, b", "latency_p50_ms": "1.5"},
        {"model": "c", "latency_p50_ms": "2.5"},
    ]
    with pytest.raises(ValueError, match="device"):
        logger.log({"model": "c", "device": "cpu"})
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine.csv"]


def test_synthetic_batches_are_the_same_for_a_seed():
    loader = bench.create_dataloader(batch_size=4, input_shape=(3, 8, 8), as_="numpy", batches=3, seed=7)
    first, second = list(loader), list(loader)
    assert len(loader) == len(first) == 3
    assert all(batch.shape == (4, 3, 8, 8) and batch.dtype == np.float32 for batch in first)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])
    with pytest.raises(TypeError, match="shuffle"):
        bench.create_dataloader(shuffle=True)
    with pytest.raises(ValueError, match="as_"):
        bench.create_dataloader(as_="mxnet")


def test_stored_images_are_prepared_as_models_expect(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    image = np.full((300, 280), 51, np.uint8)
    for i in range(3):
        tifffile.imwrite(tmp_path / f"{i}.tiff", image)
    loader = bench.create_dataloader(tmp_path, batch_size=3, input_shape=(3, 32, 32), as_="numpy")
    (batch,) = list(loader)
    assert batch.shape == (3, 3, 32, 32)
    for channel in range(3):
        wanted = (0.2 - bench.MEAN[channel]) / bench.DEVIATION[channel]
        assert np.allclose(batch[:, channel], wanted, atol=1e-5)
    with pytest.raises(TypeError, match="batches"):
        bench.create_dataloader(tmp_path, batches=2)
    for name in "abcdefgh":
        tifffile.imwrite(tmp_path / f"{name}.tiff", image)
    import wellread

    # The seed was left out: every seed gave one order.
    orders = [bench.create_dataloader(tmp_path, shuffle=True, seed=seed).rows(0) for seed in (7, 8)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) == list(range(11))
    assert orders[0] == wellread.DataLoader(tmp_path, shuffle=True, seed=7, as_="numpy").rows(0)
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    tifffile.imwrite(pairs / "0.tiff", np.zeros((2, 30, 28), np.uint8), metadata={"axes": "CYX"})
    with pytest.raises(ValueError, match="channels"):
        bench.create_dataloader(pairs)


class Card:
    """A CUDA device that stands in for one: its allocator's cache and the peak that torch keeps."""

    def __init__(self, there=True):
        self.there, self.cached, self.allocated, self.peak = there, 700, 100, 900

    def is_available(self):
        return self.there

    def empty_cache(self):
        self.cached = 0

    def reset_peak_memory_stats(self):
        self.peak = self.allocated


def test_peaks_of_memory_are_set_back(monkeypatch):
    """Unused memory is given back first; then the peak is what is allocated."""
    card = Card()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=card))
    bench.reset_memory_stats()
    assert (card.cached, card.allocated, card.peak) == (0, 100, 100)
    # A torch without a device has nothing to set back.
    none = Card(there=False)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=none))
    bench.reset_memory_stats()
    assert (none.cached, none.peak) == (700, 900)


def test_what_python_no_longer_uses_is_freed_before(monkeypatch):
    """A cycle that holds memory is collected, so that the allocator can give it back."""

    class Held:
        pass

    held = Held()
    held.itself = held
    gone = weakref.ref(held)
    del held
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    bench.reset_memory_stats()
    assert gone() is None


def test_torch_is_left_alone_unless_it_is_there(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    bench.reset_memory_stats()
    assert "torch" not in sys.modules


def test_a_command_that_fails_beside_results_is_a_warning(monkeypatch, tmp_path):
    """The exit code says that not all was measured, and the rows of what was are there."""
    results = tmp_path / "benchmark_results_1.csv"
    row = {"framework": "pytorch", "status": "ok", "reason": None}
    results.with_suffix(".json").write_text(json.dumps({"records": [{"row": row}]}))
    said = [f"{bench.SAVED}{results}", "error: nothing was measured of jax: jax cannot be imported"]
    code = f"import sys; print({said[0]!r}); print({said[1]!r}, file=sys.stderr); sys.exit(1)"
    # Python in place of the program: `-c CODE` in place of `infer`, and the arguments after it are not read.
    monkeypatch.setattr(bench, "program", lambda: sys.executable)
    start = bench.subprocess.Popen
    monkeypatch.setattr(bench.subprocess, "Popen", lambda command, **how: start([command[0], "-c", code], **how))
    with pytest.warns(UserWarning, match="ended with code 1: error: nothing was measured of jax"):
        assert bench.run_benchmark_suite(verbose=False, csv_output_dir=tmp_path) == [row]


def test_defaults_are_upstreams():
    config = bench.BenchmarkConfig()
    assert json.loads(json.dumps([*config.batch_sizes])) == [1, 8, 32, 128]
    assert (config.framework, config.model_name, config.dtype) == ("pytorch", "resnet50", "float32")
    assert (config.warmup_iterations, config.measurement_iterations) == (10, 50)
    assert (config.data_source, config.csv_output_dir, config.verbose) == ("synthetic", "results/raw", True)
    assert config.device_prefer is None and config.input_shape is None
