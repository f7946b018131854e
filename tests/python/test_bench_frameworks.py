"""`wellread bench --framework pytorch,jax`: one report, pixels compared, what is missing or fails told.

Long because programs of users are written out here, each beside its test.
"""

import subprocess
import sys
import time

import numpy as np
import pytest
from bench_worker import DATASET, SMALL, of

pytest.importorskip("torch")
pytest.importorskip("jax")


def test_frameworks_stand_beside_rust_in_one_report(bench):
    what = ["dataset", "dataloader", "loop", "conversion"]
    tables, summary, out = bench(
        what, "--framework", "rust,pytorch,jax", "--formats", "parquet,tiff",
        "--loaders", "upstream-cache,tifffile", *DATASET, "--samples", 4, "--batch-sizes", 4,
        "--workers", 1, "--steps", 2, "--batch-size", 4, "--mode", "train",
    )  # fmt: skip
    for name in what:
        measured = of(tables[name], status="ok")
        assert all(row["verified"] for row in measured), name
        others = {"dataset", "dataloader", "loop"} & {name}
        assert {row["framework"] for row in measured} == {"rust" if others else "candle", "pytorch", "jax"}
        assert (out / f"{name}.png").stat().st_size > 10_000
    for framework in ("pytorch", "jax"):
        loaders = {(row["format"], row["loader"]) for row in of(tables["dataloader"], framework=framework)}
        assert loaders == {("parquet", "upstream-cache"), ("tiff", "tifffile")}
        for row in of(tables["dataloader"], framework=framework):
            assert row["num_samples"] == 6 and row["samples_per_sec"] > 0 and row["peak_rss_mb"] > 50
            # The first batch is no item: of two, one is left.
            assert row["first_batch_s"] > 0 and row["epoch_s"] > 0
            # Where most batches are there when they are asked for, their median tells nothing and is left out.
            assert row["p50_s"] is None or 0 < row["p50_s"] <= row["epoch_s"]
        for row in of(tables["loop"], framework=framework):
            assert 0 <= row["data_wait_fraction"] <= 1 and np.isfinite(row["loss"]) and row["first_step_s"] > 0
    pixels = 24 * 20 * 4
    copied = {(row["framework"], row["path"]): row["copied_bytes"] for row in of(tables["conversion"], format="tiff")}
    for path in ("zero_copy", "dlpack", "float_of_float32"):
        assert copied["pytorch", path] == 0, path
    # XLA takes memory that begins as that of wellread's batches does.
    assert copied["jax", "dlpack"] == 0
    said = {(row["framework"], row["path"]): row["copied"] for row in of(tables["conversion"], format="tiff")}
    assert (said["jax", "dlpack"], said["jax", "copy"]) == ("never", "always")
    for path in (("pytorch", "copy"), ("pytorch", "float_of_stored"), ("jax", "copy"), ("jax", "float_of_stored")):
        assert copied[path] == pixels, path
    import torch

    if not torch.cuda.is_available():
        missing = of(tables["conversion"], framework="pytorch", path="pinned")
        assert missing[0]["status"] == "unavailable" and "CUDA" in missing[0]["reason"]
    assert summary["frameworks"]["pytorch"]["versions"]["torch"] == torch.__version__
    assert all(0 < summary["frameworks"][name]["clock_overhead_ns"] < 1e5 for name in ("pytorch", "jax"))
    assert "pytorch" in (out / "report.html").read_text()


def test_copies_to_a_device_are_timed_where_there_is_one():
    from _wellread_bench.frameworks.base import copy_rate
    from _wellread_bench.frameworks.jax import Jax
    from _wellread_bench.frameworks.pytorch import PyTorch

    copies = []
    # Ten copies of a sleep that takes no less than asked for.
    assert 0 < copy_rate(lambda: (time.sleep(0.002), copies.append(1)), size=1000) <= 1000 / 0.002 * 1.05
    assert len(copies) == 10
    for framework in (PyTorch(1, 9), Jax(1, 9)):
        rate = framework.host_to_device()
        assert (rate is None) == ("cpu" in str(framework.device).lower())
        assert rate is None or rate > 1e8


# Of each format the loader of this package, its datasets in torch's, and everybody else's reader.
LOADERS = {
    "parquet": {"upstream-cache", "float-cache", "pyarrow", "as-py"},
    "lance": {"lance"},
    "vortex": {"vortex"},
    "duckdb": {"duckdb"},
    "tiff": {"tifffile"},
    "ome-zarr": {"zarr"},
    "ome-arrow-dataset": {"ome-arrow"},
    "image-folder": {"pillow"},
}


def test_every_loader_of_every_format_delivers_the_same_pixels(bench, wellread):
    built = {entry["name"] for entry in wellread("doctor")["formats"]}
    formats = [name for name in LOADERS if name in built]
    tables, _, _ = bench(
        ["dataloader"], "--framework", "rust,pytorch", "--formats", ",".join(formats),
        "--batch-sizes", 3, "--workers", 0, "--no-cold",
    )  # fmt: skip
    rows = tables["dataloader"]
    assert all(row["verified"] and row["status"] == "ok" for row in rows), rows
    for name in formats:
        found = {row["loader"] for row in of(rows, framework="pytorch", format=name)}
        assert found == LOADERS[name] | {"wellread", "wellread-dataset"}, name
        (rust,) = of(rows, framework="rust", format=name)
        assert rust["limit_kernel_per_s"] > 0 and rust["limit_read_per_s"] > 0
        named = (
            ("widening and scaling", "reading and decoding") if rust["share_of_limit"] <= 1 else ("limit not valid",)
        )
        assert rust["bound_by"] in named and rust["share_of_limit"] > 0
        (ours,) = of(rows, framework="pytorch", format=name, loader="wellread")
        assert ours["samples_per_sec"] > 0 and ours["first_batch_s"] > 0
        # DuckDB's own threads are not counted where it reads itself.
        assert ours["bytes_read_per_used"] is not None or name == "duckdb"


def test_a_loader_that_is_kept_has_one_first_epoch(bench):
    tables, _, _ = bench(
        ["dataloader"], "--framework", "rust,pytorch", "--formats", "tiff", "--loaders", "wellread,tifffile",
        "--batch-sizes", 3, "--workers", 0, "--keep-open", "--repeats", 2,
    )  # fmt: skip
    rows = tables["dataloader"]
    assert all(row["verified"] and row["status"] == "ok" for row in rows), rows
    for framework, loader in (("rust", "wellread"), ("pytorch", "wellread"), ("pytorch", "tifffile")):
        found = of(rows, framework=framework, loader=loader)
        (first,) = {row["first_epoch_images_per_s"] for row in found}
        assert len(found) == 2 and first > 0
        # It has opening in it, and comes before what is measured.
        assert all(row["num_samples"] / first > row["first_batch_s"] > 0 for row in found)


OPENS = """
import sys
sys.path.insert(0, {bench!r})
from _wellread_bench import frameworks, peers
from _wellread_bench.tracks import dataloader

framework = frameworks.create("pytorch", 2, 1)
about = [peers.describe(entry, "pytorch") for entry in peers.of_formats(["tiff"]) if entry.name == {loader!r}]
assert about[0]["unavailable"] is None, about
before = set(sys.modules)
request = dict(reader={loader!r}, format="tiff", path={path!r}, crop=None, scale=None, dtype=None, files=None,
               seed=1, batch_size=2, workers=0)
batches = dataloader.Batches(framework, request)
batches.shuffle(0)
assert len(list(batches)) == 2
names = ("wellread", "pyarrow", "tifffile", "torch.utils")
print(sorted(name for name in set(sys.modules) - before if name.startswith(names)))
"""


@pytest.mark.parametrize("loader", ["wellread", "wellread-dataset", "tifffile"])
def test_the_first_epoch_of_a_process_imports_nothing(tmp_path, loader):
    tifffile = pytest.importorskip("tifffile")
    import _wellread_bench

    for k in range(4):
        tifffile.imwrite(tmp_path / f"{k}.tiff", np.full((4, 5), k, np.uint8))
    (bench,) = _wellread_bench.__path__
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "_wellread_bench").symlink_to(bench)
    code = OPENS.format(bench=str(folder), loader=loader, path=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_readers_that_hand_over_arrow_arrays_import_pyarrow_before_the_clock():
    from _wellread_bench.peers import READERS

    engines = [entry for entry in READERS if entry.where.startswith("engines:")]
    assert len(engines) == 4
    assert all("pyarrow" in dict(entry.packages) for entry in engines)


def test_a_reader_that_cannot_be_imported_for_a_framework_leaves_the_others(monkeypatch):
    from _wellread_bench import peers
    from _wellread_bench.peers import own

    def broken(framework):
        raise ImportError(f"another {framework}")

    monkeypatch.setattr(own.Images, "import_for", staticmethod(broken))
    found = peers.describe(peers.find("wellread", "tiff"), "pytorch")
    said = "wellread cannot be imported for pytorch (another pytorch); pip install . (in a clone of wellread)"
    assert (found["name"], found["unavailable"]) == ("wellread", said)
    # All that is missing is told at once.
    needs = tuple((f"no_such_{name}", f"pip install {name}") for name in ("engine", "arrow"))
    found = peers.describe(peers.Reader("other", ("tiff",), "own:Loader", needs, "of two packages"), "pytorch")
    assert found["unavailable"].split("; ")[1::2] == ["pip install engine", "pip install arrow"]


def test_single_images_are_normalised_as_in_rust(bench):
    tables, _, _ = bench(
        ["dataset"], "--framework", "rust,pytorch,jax", "--formats", "tiff", "--loaders", "wellread,tifffile",
        "--access", "random", "--transform", "none,normalize,augment", "--cache", "none", "--samples", 4,
    )  # fmt: skip
    rows = tables["dataset"]
    assert all(row["verified"] and row["status"] == "ok" for row in rows)
    presets = {key: {row["transform"] for row in of(rows, framework=key)} for key in ("rust", "pytorch", "jax")}
    # Augmentations are each library's own.
    assert presets == {"rust": {"none", "normalize", "augment"}} | dict.fromkeys(
        ("pytorch", "jax"), {"none", "normalize"}
    )
    assert {row["loader"] for row in of(rows, framework="jax", transform="normalize")} == {"wellread", "tifffile"}


def test_measured_arrays_begin_where_batches_do():
    from _wellread_bench.images import aligned

    for width in range(1, 40):
        pixels = np.arange(3 * width, dtype=np.uint16).reshape(1, 3, width)
        for dtype in (np.float32, np.uint16):
            copy = aligned(pixels, dtype)
            assert copy.ctypes.data % 64 == 0 and copy.dtype == dtype and copy.flags.c_contiguous
            assert copy.flags.writeable and (copy == pixels).all()


@pytest.mark.parametrize("name", ["small-cnn", "linear-probe", None])
def test_models_learn_alike_in_rust_pytorch_and_jax(bench, name):
    # Every batch is the whole set, so the order of the images does not matter.
    given = ["--model", name] if name else []
    tables, _, out = bench(
        ["loop"], "--formats", "tiff", "--mode", "train", "--steps", 3, "--batch-size", 6, "--seed", 9, *given
    )
    name = name or "linear-probe"
    rust = tables["loop"][0]["loss"]
    assert tables["loop"][0]["model"] == name
    from _wellread_bench.frameworks.jax import Jax
    from _wellread_bench.frameworks.pytorch import PyTorch
    from _wellread_bench.images import Finish
    from _wellread_bench.peers.folders import Tifffile

    reader = Tifffile(out / "data" / "tiff", Finish())
    batch = np.stack([reader[row] for row in range(len(reader))])
    for framework in (PyTorch(2, 9), Jax(2, 9)):
        model = framework.model(name, list(batch.shape), 9)
        # Warm-up and its A/A twin take 1 + 2 steps each, a measured turn and its twin 1 + 3 each, in either order.
        losses = [model.step(framework.host(batch), "train") for _ in range(14)]
        assert losses[13] < losses[9] < losses[0]
        assert rust == pytest.approx(losses[9], rel=1e-5) or rust == pytest.approx(losses[13], rel=1e-5)


def test_zarr_python_opens_each_array_once(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    from _wellread_bench.images import Finish
    from _wellread_bench.peers.folders import ZarrPython

    scales = {"axes": [{"name": "y"}, {"name": "x"}], "datasets": [{"path": "0"}]}
    for k in range(3):
        group = zarr.open_group(str(tmp_path / f"{k}.zarr"), mode="w")
        group.attrs["ome"] = {"multiscales": [scales]}
        group.create_array("0", shape=(4, 5), chunks=(4, 5), dtype="uint8")[:] = k
    opened, open_array = [], zarr.open_array

    def counted(path, **more):
        opened.append(path[-8:])
        return open_array(path, **more)

    monkeypatch.setattr(zarr, "open_array", counted)
    monkeypatch.setattr(ZarrPython, "opened_with_set", 2)
    reader = ZarrPython(tmp_path, Finish())
    assert opened == ["0.zarr/0", "1.zarr/0"], "with the set, outside of an epoch's clock"
    for _ in range(2):
        assert [reader.native(k).max() for k in range(3)] == [0, 1, 2]
    assert opened == ["0.zarr/0", "1.zarr/0", "2.zarr/0"]


@pytest.mark.parametrize("size", [(8, 8), (23, 50), (3, 5)])
def test_the_linear_probe_computes_the_same_in_pytorch_and_jax(size):
    from _wellread_bench.frameworks.jax import Jax
    from _wellread_bench.frameworks.pytorch import PyTorch

    batch = np.random.default_rng(2).random((4, 3, *size), np.float32)
    losses = []
    for framework in (PyTorch(1, 5), Jax(1, 5)):
        model = framework.model("linear-probe", list(batch.shape), 5)
        losses.append([model.step(framework.host(batch), "train") for _ in range(5)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and losses[0][4] < losses[0][0]


def test_a_light_model_leaves_pixels_alone_between_steps():
    # Looking at a batch's pixels takes longer than such a step, and the loader would read on meanwhile.
    from _wellread_bench.checks import Checker

    assert len(Checker(None, False, 50, 7).chosen) == 2
    assert Checker(None, True, 50, 7).chosen == set(range(50))


def test_crop_and_factor_are_those_of_the_loader(bench):
    tables, _, _ = bench(
        ["dataloader"], "--framework", "pytorch", "--formats", "parquet,ome-zarr", "--channels", 2, "--depth", 2,
        "--loaders", "pyarrow,as-py,zarr", "--batch-sizes", 3, "--workers", 0, "--crop", "9x8", "--scale", "0.25",
    )  # fmt: skip
    rows = tables["dataloader"]
    assert {row["loader"] for row in rows} == {"pyarrow", "as-py", "zarr"}
    assert all(row["status"] == "ok" and row["verified"] for row in rows)


def test_a_worker_that_dies_or_hangs_takes_nobody_with_it(bench, stub):
    stub("tifffile", "import os\nprint('this is printed', flush=True)\ndef TiffFile(path):\n    os._exit(3)\n")
    stub("zarr", "import time\ndef open_group(*_, **__):\n    time.sleep(600)\n")
    tables, _, out = bench(
        ["dataset"], "--framework", "pytorch", "--formats", "tiff,ome-zarr,parquet",
        "--loaders", "tifffile,zarr,pyarrow", *DATASET, "--turn-limit", 20,
    )  # fmt: skip
    (dead,) = of(tables["dataset"], loader="tifffile")
    assert dead["status"] == "unavailable" and "ended (exit status: 3)" in dead["reason"]
    (hung,) = of(tables["dataset"], loader="zarr")
    assert hung["status"] == "unavailable" and "no answer within 20 s" in hung["reason"]
    (alive,) = of(tables["dataset"], loader="pyarrow")
    assert alive["status"] == "ok" and alive["verified"]
    # Nothing read these formats; the reasons are beside them.
    report = (out / "report.html").read_text()
    assert "Not measured: tiff, ome-zarr" in report and "ended (exit status: 3)" in report


def test_pixels_that_differ_are_found(bench, stub):
    stub("tifffile", TIFFFILE_OF_ONES)
    summary = bench(
        ["dataset"], "--framework", "pytorch", "--formats", "tiff", "--loaders", "tifffile", *DATASET, code=1,
    )  # fmt: skip
    assert summary["verified"] is False


TIFFFILE_OF_ONES = """
import numpy as np
class TiffFile:
    def __init__(self, path): self.series = [self]; self.axes = "YX"
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def asarray(self): return np.ones((24, 20), np.uint16)
"""


def test_a_framework_that_is_missing_is_said(bench, stub, tmp_path):
    import pyarrow.parquet as pq

    stub("torch", "raise ImportError('there is no torch here')")
    said = bench(["dataset"], "--framework", "pytorch", "--formats", "tiff", code=1)
    assert "there is no torch here" in said and "pip install torch" in said and "--python" in said
    # The other one is measured and saved, and the exit code says that one is missing.
    summary = bench(
        ["dataset"], "--framework", "pytorch,jax", "--formats", "tiff", "--loaders", "tifffile", *DATASET, code=1
    )
    assert "pip install torch" in summary["frameworks"]["pytorch"]["unavailable"]
    rows = pq.read_table(tmp_path / "results" / "dataset.parquet").to_pylist()
    (missing,) = of(rows, framework="pytorch")
    assert missing["status"] == "unavailable" and "pip install torch" in missing["reason"]
    assert of(rows, framework="jax")[0]["verified"]
    # So do processes of their own.
    few = ["--formats", "tiff", *DATASET, "--processes", 2]
    summary = bench(["dataset"], "--framework", "rust,pytorch", *few, code=1)
    assert summary["configuration"]["processes"] == 2
    rows = pq.read_table(tmp_path / "results" / "dataset.parquet").to_pylist()
    assert [row["run"] for row in of(rows, framework="rust", status="ok")] == [0, 1]


def test_what_makes_no_sense_is_refused(wellread, tmp_path):
    def refused(code, *args):
        return wellread("bench", *args, "--out", tmp_path / "r", code=code)

    assert "WELLREAD_PYTHON" in refused(1, "dataset", "--framework", "jax", "--python", "no-such-python")
    assert "rust, pytorch, jax" in refused(2, "dataset", "--framework", "tensorflow")
    assert "add --framework" in refused(2, "loop", "--model", "python:a:B")
    assert "python:package.module:Class" in refused(2, "loop", "--framework", "jax", "--model", "python:a")
    assert "storage" in refused(1, "storage", "--framework", "pytorch")
    unknown = refused(1, "dataset", "--framework", "jax", "--loaders", "nobody", "--python", sys.executable)
    assert "nobody" in unknown and "upstream-cache" in unknown


MODELS = """
import torch
class Fine(torch.nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.layer = torch.nn.Conv2d(in_channels, 3, 1)
    def forward(self, x):
        return self.layer(x)
class Short(Fine):
    def forward(self, x):
        return super().forward(x)[:1]
class Wants(Fine):
    def __init__(self, width):
        super().__init__(1)
NoModule = dict
"""


def test_a_model_of_the_users_own_runs(bench, stub):
    stub("mymodels", MODELS)
    tables, _, _ = bench(
        ["loop"], "--framework", "pytorch,rust", "--formats", "tiff", "--loaders", "tifffile", "--steps", 2,
        "--batch-size", 3, "--model", "python:mymodels:Fine",
    )  # fmt: skip
    for row in of(tables["loop"], framework="pytorch"):
        assert row["status"] == "ok" and row["verified"] and row["model"] == "python:mymodels:Fine"
        assert row["steps"] == 2
    assert "Python only" in of(tables["loop"], framework="rust")[0]["reason"]


def test_a_step_of_the_loop_waits_for_its_batch_and_for_no_work_of_the_benchmark():
    from _wellread_bench.tracks import loop

    asked = []

    class Batches:
        def shuffle(self, epoch):
            asked.append(("epoch", epoch))

        def __len__(self):
            return 2

        def __iter__(self):
            return iter("ab")

        def rows_later(self, k):
            return lambda: asked.append(("rows", k)) or [k]

    steps, delivered = loop.Endless(Batches(), 5), []
    for epoch in (5, 6):
        for _ in range(2):
            steps.between_steps()
            # The next epoch was chosen before its first batch is asked for.
            assert asked[-1] == ("epoch", epoch)
            delivered.append(next(steps))
    assert [batch for batch, _ in delivered] == ["a", "b", "a", "b"]
    assert asked == [("epoch", 5), ("epoch", 6)]
    assert [rows() for _, rows in delivered] == [[0], [1], [0], [1]]


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_model_of_the_users_own_is_waited_for_on_its_device(device):
    from types import SimpleNamespace

    from _wellread_bench.inference.callable import Callable

    waited = []
    named = {name: SimpleNamespace(synchronize=lambda *_, n=name: waited.append(n)) for name in ("cuda", "mps")}
    session = Callable.__new__(Callable)
    session.torch, session.device = SimpleNamespace(**named), SimpleNamespace(type=device)
    session.wait()
    assert waited == [device]


def test_models_that_cannot_be_used_say_why(stub, tmp_path, monkeypatch):
    import torch
    from _wellread_bench.frameworks.pytorch import PyTorch
    from _wellread_bench.models import ModelError, create_torch

    stub("mymodels", MODELS)
    stub("raising", "1 / 0")
    stub("leaving", "import sys\nsys.exit(7)")
    stub("wanting", "import surely_not_installed")
    monkeypatch.syspath_prepend(tmp_path / "stubs")
    for name, said in {
        "mymodels:Missing": "has no class Missing; it has Fine, Short, Wants",
        "mymodels:Wants": "making it raised TypeError",
        "mymodels:NoModule": "is a dict, not a torch.nn.Module",
        "raising:A": "importing raising raised ZeroDivisionError",
        "leaving:A": "importing leaving raised SystemExit",
        "wanting:A": "wanting needs surely_not_installed",
        "nowhere.at.all:A": "there is no module nowhere",
    }.items():
        with pytest.raises(ModelError) as caught:
            create_torch(f"python:{name}", [2, 1, 24, 20], 1, PyTorch(1, 1))
        assert said in str(caught.value), name
    short = create_torch("python:mymodels:Short", [2, 1, 24, 20], 1, PyTorch(1, 1))
    with pytest.raises(ModelError, match=r"returned shape \(1, 3, 24, 20\) for a batch of 2"):
        short.step(torch.zeros(2, 1, 24, 20), "train")


def test_a_model_that_is_not_there_ends_the_run(bench):
    said = bench(["loop"], "--framework", "pytorch", "--formats", "tiff", "--model", "python:nowhere:Net", code=1)
    assert "there is no module nowhere" in said and "PYTHONPATH" in said


def test_flax_modules_train(stub, tmp_path, monkeypatch):
    pytest.importorskip("flax")
    import jax.numpy as jnp
    from _wellread_bench.frameworks.jax import Jax
    from _wellread_bench.models import ModelError

    stub("flaxmodels", FLAX)
    monkeypatch.syspath_prepend(tmp_path / "stubs")
    images = jnp.asarray(np.random.default_rng(1).random((4, 2, 8, 9), np.float32))
    for name in ("Linen", "Nnx"):
        model = Jax(1, 1).model(f"python:flaxmodels:{name}", list(images.shape), 1)
        losses = [model.step(images, "train") for _ in range(20)]
        assert losses[-1] < losses[0], name
        assert model.step(images, "inference") is None
    with pytest.raises(ModelError, match="--framework pytorch"):
        stub("mymodels", MODELS)
        Jax(1, 1).model("python:mymodels:Fine", list(images.shape), 1)


FLAX = """
from flax import linen, nnx
class Linen(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(5)(linen.Conv(4, (3, 3))(x).mean((1, 2)))
class Nnx(nnx.Module):
    def __init__(self, in_channels, rngs):
        self.layer = nnx.Linear(in_channels, 5, rngs=rngs)
    def __call__(self, x):
        return self.layer(x.mean((1, 2)))
"""


def means_of_channels(path):
    """An ONNX file with one layer, for batches of any size."""
    import onnx
    from onnx import helper

    number = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["pixels"], ["means"])],
        "means",
        [helper.make_tensor_value_info("pixels", number, ["n", "c", "y", "x"])],
        [helper.make_tensor_value_info("means", number, ["n", "c", 1, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return str(path)


@pytest.mark.parametrize(
    ("framework", "model"), [("jax", "Linen"), ("jax", "Nnx"), ("jax", "onnx"), ("pytorch", "onnx")]
)
def test_flax_modules_and_onnx_files_run_from_the_command(bench, stub, tmp_path, framework, model):
    pytest.importorskip("flax")
    pytest.importorskip("onnx")
    stub("flaxmodels", FLAX)
    is_onnx = model == "onnx"
    name = means_of_channels(tmp_path / "means.onnx") if is_onnx else f"python:flaxmodels:{model}"
    mode = "inference" if is_onnx else "train"
    arguments = [
        "--framework", framework, "--formats", "tiff", "--loaders", "tifffile", "--steps", 2, "--batch-size", 3,
        "--mode", mode, "--model", name,
    ]  # fmt: skip
    tables, _, _ = bench(["loop"], *arguments)
    rows = of(tables["loop"], framework=framework)
    assert rows and {(row["status"], row["mode"], row["model"]) for row in rows} == {("ok", mode, name)}
    # Of six images in batches of three: opening, the first batch and a step are in the first epoch.
    assert all(6 / row["first_epoch_images_per_s"] > row["first_batch_s"] + row["step_min_s"] for row in rows)


def test_doctor_says_which_frameworks_there_are(wellread):
    import jax
    import torch

    # It gives a Python ten seconds to answer, which on a busy machine may be too few, but not again and again.
    asked = (wellread("doctor", "--python", sys.executable) for _ in range(5))
    document = next((said for said in asked if said["python"]), None)
    assert document, "no answer, five times"
    found = document["python"]
    assert document["python_program"] == sys.executable and "program" not in found
    assert found["torch"] == torch.__version__.split("+")[0] or found["torch"] == torch.__version__
    assert found["jax"] == jax.__version__


def test_one_thread_is_in_the_singular():
    from _wellread_bench.words import counted

    assert [counted(n, "thread") for n in (0, 1, 2)] == ["0 threads", "1 thread", "2 threads"]


def test_a_python_without_numpy_says_what_to_do_and_says_it_once(wellread, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    what = ("dataloader", "--framework", "pytorch,jax", "--formats", "tiff", *SMALL)
    said = wellread("bench", *what, "--python", bare, "--out", tmp_path / "results", code=1)
    assert said.count("this Python has no NumPy; pip install numpy for it") == 1, said
    assert str(bare) in said and "Traceback" not in said
