"""The Lightning adapter of `wellread tasks`, on a small repository: what it measures, and what it says on failure.

Long because tests share one repository and one run, which fixtures of this file make once.
"""

import csv
import importlib
import json
import shutil
import statistics
import sys
import time
from types import ModuleType, SimpleNamespace

import pytest
import torch
from tasks_process import SOURCES

MODEL = """
import sys
import torch
from lightning.pytorch import LightningModule


class Net(LightningModule):
    def __init__(self, width: int = 4, lr: float = 0.1, fails: str = "", layers: dict | None = None):
        super().__init__()
        self.save_hyperparameters(ignore="layers")
        self.first, self.last = torch.nn.Linear(8, width), torch.nn.Linear(width, 1)

    def forward(self, x):
        return self.last(self.first(x))

    def training_step(self, batch, index):
        if self.current_epoch == 1 and index == 1 and self.hparams.fails == "raise":
            raise FloatingPointError("the user's own")
        if self.current_epoch == 1 and index == 1 and self.hparams.fails == "memory":
            raise MemoryError("no room for 8 x 4")
        if self.hparams.fails == "exit":
            sys.exit(0)
        loss = torch.nn.functional.mse_loss(self(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        self.log("not_finite", torch.tensor(float("nan")))
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", torch.nn.functional.mse_loss(self(batch[0]), batch[1]))

    def predict_step(self, batch, _):
        return self(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.hparams.lr)


class Other:
    pass
"""
DATA = """
import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, TensorDataset


class Data(LightningDataModule):
    def __init__(self, batch_size: int = 4, images: int = 24, root: str = ""):
        super().__init__()
        self.batch_size, self.images = batch_size, images

    def setup(self, stage):
        x = torch.randn(self.images, 8)
        self.rows = TensorDataset(x, x.sum(1, keepdim=True))

    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=self.batch_size)

    val_dataloader = predict_dataloader = train_dataloader


class Bare(LightningDataModule):
    def __init__(self, needed, loader_batch=4):
        super().__init__()
"""
EXPERIMENT = """
model:
  class_path: net.model.Net
  init_args: {width: 6}
data:
  class_path: net.data.Data
trainer:
  max_epochs: 1
  enable_checkpointing: false
  logger: false
"""
BOTH = "net.model:Net,net.data:Data"
# How long a module takes to import, seconds.
SLOW = 2
PARTS = (
    "imports", "configuration", "data_setup", "model_initialization", "checkpoint_loading", "sanity_check",
    "full_training", "full_prediction",
)  # fmt: skip
BATCH = ("batch_loading", "batch_to_device", "batch_forward", "batch_postprocess")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("branch")
    experiments = root / "configs" / "experiment" / "small"
    experiments.mkdir(parents=True)
    (root / "net").mkdir()
    files = {
        "net/__init__.py": "",
        "net/model.py": MODEL,
        "net/data.py": DATA,
        "net/plain.py": "",
        "net/slow.py": f"import time\n\ntime.sleep({SLOW})\n\nfrom net.model import Net  # noqa: F401\n",
        "broken.py": "import no_such_thing\n",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    (experiments / "segmentation.yaml").write_text(EXPERIMENT)
    (experiments / "bare.yaml").write_text(EXPERIMENT.replace("net.data.Data", "net.data.Bare"))
    (experiments / "wrong.yaml").write_text("model: {class_path: net.model.Net, width: 3}\n")
    (experiments / "torn.yaml").write_text("model: {class_path: [\n")
    return root


@pytest.fixture(scope="module")
def run(tasks, repository):
    return lambda experiment=BOTH, **told: tasks.run("lightning", repository, experiment, **told)


@pytest.fixture(scope="module")
def trained(run):
    return run(max_epochs=3, batch_size=8, overrides=["model.width=5", "trainer.log_every_n_steps=1"])


def seconds(ran, name):
    return ran.phases[name]["elapsed_seconds"]


def test_training_is_measured_whole(trained):
    assert trained.code == 0 and not trained.errors, trained.log
    total = seconds(trained, "total_training")
    assert 0 < sum(seconds(trained, name) for name in PARTS if name in trained.phases and name != "imports") <= total
    assert list(trained.phases)[-1] == "total_training"
    first = [seconds(trained, f"first_{name}") for name in BATCH]
    assert 0 < sum(first) <= seconds(trained, "first_epoch") <= seconds(trained, "full_training")
    assert all(phase["peak_memory_mb"] > 50 for phase in trained.phases.values())
    # One line for each phase: what comes in parts is added up before.
    assert len(trained.phases) == sum("phase" in line for line in trained.lines)
    assert "checkpoint_loading" not in trained.phases and "test" not in trained.phases


def test_all_batches_and_epochs_are_kept_with_the_first_epoch_as_warm_up(trained):
    taken = {name: trained.samples(name) for name in (*BATCH, "batch_step")}
    assert {name: (len(values), warm_up) for name, (values, warm_up) in taken.items()} == dict.fromkeys(taken, (9, 3))
    forward, after, step = (taken[name][0] for name in ("batch_forward", "batch_postprocess", "batch_step"))
    assert all(f + a <= s for f, a, s in zip(forward, after, step, strict=True))
    epochs, warm_up = trained.samples("epoch")
    assert (len(epochs), warm_up) == (3, 1)
    whole = sum(sum(values) for name, (values, _) in taken.items() if name in ("batch_loading", "batch_step"))
    assert whole <= sum(epochs) <= seconds(trained, "full_training")


def test_what_is_known_of_the_run_is_told(trained):
    info = trained.info
    assert (info["num_batches"], info["num_samples"], info["batch_size"]) == (3, 24, 8)
    assert (info["ranks"], info["device"], info["run"]) == (1, "cpu", "fit")
    # 8 x 5 + 5 and 5 + 1: the override reached the model.
    assert info["parameters"] == 51
    assert info["versions"]["torch"] == torch.__version__
    assert info["num_train_batches"] == 3 and info["peak_host_rss_mb"] > 50
    # One pass is the median epoch after the first, as in every adapter.
    one_pass = statistics.median(trained.samples("epoch")[0][1:])
    assert info["throughput_samples_per_sec"] == pytest.approx(24 / one_pass)
    assert info["avg_time_per_batch"] == pytest.approx(one_pass / 3)
    assert trained.metrics["not_finite"] is None and trained.metrics["train_loss"] > 0
    with open(trained.artifacts["loss_curve"]) as file:
        rows = list(csv.DictReader(file))
    assert [(row["epoch"], row["step"]) for row in rows] == [("0", "3"), ("1", "6"), ("2", "9")]
    assert float(rows[2]["train_loss"]) < float(rows[0]["train_loss"])
    assert float(rows[2]["val_loss"]) == pytest.approx(trained.metrics["val_loss"], rel=1e-6)
    assert rows[0]["val_dice"] == ""


def test_steps_that_end_within_an_epoch_do_not_make_it_a_pass(run):
    """Steps end two batches into a pass of three, or one batch into the second pass."""
    ran = run(batch_size=8, overrides=["trainer.max_steps=2"])
    ((epoch,), _) = ran.samples("epoch")
    # No epoch follows: the first batch alone is warm-up.
    assert (len(ran.samples("batch_step")[0]), ran.samples("batch_step")[1]) == (2, 1)
    assert (ran.info["num_batches"], ran.info["num_samples"]) == (2, 16)
    assert ran.info["avg_time_per_batch"] == pytest.approx(epoch / 2)
    ran = run(batch_size=8, overrides=["trainer.max_steps=4"])
    ((epoch,), _) = ran.samples("epoch")
    assert (len(ran.samples("batch_step")[0]), ran.samples("batch_step")[1]) == (4, 3)
    assert (ran.info["num_batches"], ran.info["num_samples"]) == (3, 24)
    assert ran.info["throughput_samples_per_sec"] == pytest.approx(24 / epoch)


def test_inference_loads_the_checkpoint_and_runs_every_batch(run, trained):
    checkpoint = str(next(trained.output.rglob("*.ckpt")))
    ran = run(
        mode="inference", checkpoint_path=checkpoint, batch_size=5, data_path="where", overrides=["model.width=5"]
    )
    assert ran.code == 0, ran.log
    assert list(ran.phases)[-1] == "total_inference" and ran.info["run"] == "predict"
    assert not {"first_epoch", "full_training", "sanity_check"}.intersection(ran.phases)
    assert seconds(ran, "checkpoint_loading") > 0 and seconds(ran, "full_prediction") > 0
    assert sum(seconds(ran, name) for name in PARTS if name in ran.phases) <= seconds(ran, "total_inference")
    assert [len(ran.samples(name)[0]) for name in (*BATCH, "batch_step", "epoch")] == [5] * 5 + [0]
    # There is no second pass: the first batch alone is warm-up.
    assert ran.samples("batch_forward")[1] == 1
    assert (ran.info["num_batches"], ran.info["num_samples"]) == (5, 24)
    other = run(mode="inference", checkpoint_path=checkpoint)
    assert "size mismatch" in other.failed("RuntimeError")


@pytest.mark.skipif(torch.cuda.is_available(), reason="with GPUs, ddp has a process for each")
def test_ddp_in_two_processes_reports_once(run):
    ran = run(trainer="ddp", max_epochs=1, batch_size=4)
    assert ran.code == 0, ran.log
    assert (ran.info["ranks"], ran.info["strategy"], ran.info["num_batches"]) == (2, "DDPStrategy", 3)
    # Each rank has half of the images; the throughput is that of both.
    ((epoch,), _) = ran.samples("epoch")
    assert ran.info["num_samples"] == 24
    assert ran.info["throughput_samples_per_sec"] == pytest.approx(24 / epoch)
    assert ran.info["avg_time_per_batch"] == pytest.approx(epoch / 3)
    assert len(ran.phases) == sum("phase" in line for line in ran.lines)
    assert len(ran.samples("batch_step")[0]) == 3
    assert list(ran.phases)[-1] == "total_training" and ran.metrics["train_loss"] > 0


def test_an_experiment_of_a_file_with_overrides(run):
    ran = run("small/segmentation")
    assert ran.code == 0, ran.log
    # Sizes and epochs are the file's: no column says otherwise.
    assert ran.info["parameters"] == 61 and ran.info["batch_size"] == 4
    assert len(ran.samples("epoch")[0]) == 1
    assert not list(ran.output.rglob("*.ckpt"))
    ran = run("small/segmentation", overrides=["model.init_args.width=2", "data.images=8", "trainer.max_epochs=2"])
    assert (ran.info["parameters"], ran.info["num_batches"], len(ran.samples("epoch")[0])) == (21, 2, 2)


def test_the_example_learns(tasks, tmp_path):
    worktree = shutil.copytree(SOURCES.parents[2] / "examples" / "tasks_lightning", tmp_path / "example")
    ran = tasks.run("lightning", worktree, "cells", max_epochs=3, batch_size=8)
    assert ran.code == 0, ran.log
    with open(ran.artifacts["loss_curve"]) as file:
        rows = list(csv.DictReader(file))
    assert float(rows[2]["train_loss"]) < float(rows[0]["train_loss"]) and 0 <= float(rows[2]["val_dice"]) <= 1


@pytest.mark.parametrize(
    ("told", "parts"),
    [
        ({"experiment": "net.modle:Net"}, ["no module 'net.modle'", "package.module:Class"]),
        ({"experiment": "net.model:Nett"}, ["no class 'Nett'", "Net"]),
        ({"experiment": "net.model:Other"}, ["net.model:Other is no LightningModule"]),
        ({"experiment": "net.model:Net,a:B,c:D"}, ["is not package.module:ModelClass,package.module:DataClass"]),
        ({"experiment": "broken:Net"}, ["no_such_thing", "in imports, at broken.py line 1"]),
        ({"experiment": "small/segmentatoin"}, ["no experiment 'small/segmentatoin'", "small/segmentation"]),
        ({"experiment": "../../../etc/passwd"}, ["no experiment"]),
        ({"experiment": "small/wrong"}, ["small/wrong.yaml", "class_path and init_args", "it has width"]),
        ({"experiment": "small/torn"}, ["small/torn.yaml is no YAML"]),
        ({"experiment": "small/bare"}, ["net.data.Bare needs needed", "data.needed=…"]),
        ({"experiment": "small/bare", "batch_size": 4}, ["Bare has no parameter batch_size", "loader_batch"]),
        (
            {
                "experiment": "small/bare",
                "mode": "inference",
                "checkpoint_path": __file__,
                "overrides": ["data.needed=1"],
            },
            ["predict_dataloader"],
        ),
        ({"experiment": "small/bare", "data_path": "x"}, ["data_path", "loader_batch, needed"]),
        ({"overrides": ["model.widht=3"]}, ["override 'model.widht=3'", "Net has no parameter 'widht'", "width"]),
        ({"overrides": ["trainer.max_epoch=3"]}, ["no argument 'max_epoch'", "nearest: max_epochs"]),
        ({"overrides": ["lr=3"]}, ["must begin with model., data., trainer."]),
        ({"overrides": ["model.lr"]}, ["is not key=value"]),
        ({"overrides": ["data.images=0"], "max_epochs": 1}, ["no batch came from the data"]),
        ({"mode": "inference"}, ["needs a checkpoint_path"]),
        ({"checkpoint_path": "/nowhere/last.ckpt"}, ["/nowhere/last.ckpt is not there"]),
        ({"mode": "guess"}, ["mode must be one of train, inference"]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(run, told, parts):
    ran = run(**told)
    assert "\n" not in ran.failed(*parts)
    # It is on the terminal, too, which is the log.
    assert ran.errors[0] in ran.log


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there(run):
    run(trainer="gpu").failed("trainer gpu", "finds no CUDA device")


def test_a_crash_half_way_keeps_what_was_measured(run):
    ran = run(max_epochs=3, overrides=["model.fails=raise"])
    ran.failed("FloatingPointError: the user's own", "in full_training", "at net/model.py line")
    assert {"first_epoch", "full_training", "total_training", "model_initialization"} <= set(ran.phases)
    assert len(ran.samples("batch_step")[0]) == 7
    assert ran.metrics is None
    assert "Traceback" in ran.log


def test_a_program_that_ends_itself_has_not_succeeded(run):
    run(max_epochs=1, overrides=["model.fails=exit"]).failed("the program ended itself: exit code 0")


def test_memory_that_is_not_to_be_had_is_told_with_what_helps(run):
    hint = "; a smaller batch_size needs less memory (in full_training, at net/model.py line"
    run(max_epochs=2, overrides=["model.fails=memory"]).failed(f"MemoryError: no room for 8 x 4{hint}")


# Without processes, within this one.


@pytest.fixture
def package(monkeypatch, tmp_path):
    """The package as the program unpacks it."""
    (tmp_path / "_wellread_tasks").symlink_to(SOURCES)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    yield lambda name: importlib.import_module(f"_wellread_tasks.{name}")
    for name in [name for name in sys.modules if name.startswith("_wellread_tasks")]:
        del sys.modules[name]


def context_of(package, repository, tmp_path):
    task = package("task")
    told = task.Task("train", BOTH, "cpu", repository.resolve(), tmp_path)
    return task.Context(told, package("phases").Report())


def test_the_branchs_modules_are_the_ones_that_run(package, repository, tmp_path, monkeypatch):
    elsewhere = tmp_path / "installed"
    (elsewhere / "net").mkdir(parents=True)
    (elsewhere / "net" / "__init__.py").write_text("")
    sys.path.insert(0, str(elsewhere))
    for name in ("net", "net.plain"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    context = context_of(package, repository, tmp_path)
    module = context.load("net.plain")
    assert module.__file__ == str(repository.resolve() / "net" / "plain.py")
    other = ModuleType("net")
    other.__file__ = str(elsewhere / "net" / "__init__.py")
    monkeypatch.setitem(sys.modules, "net", other)
    with pytest.raises(package("settings").TaskError, match="though the branch has it, too"):
        context.load("net")
    # A module that the branch does not have is the environment's.
    assert context.load("json").__name__ == "json"
    for name in ("net", "net.plain"):
        sys.modules.pop(name, None)


def test_the_device_is_waited_for_before_the_clock_is_read(package, monkeypatch):
    phases = package("phases")
    order = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: order.append(str(device)))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 3e6)
    # The clock of this module alone: threads of other libraries look at theirs meanwhile.
    clock = SimpleNamespace(perf_counter=lambda: order.append("clock") or float(len(order)))
    monkeypatch.setattr(phases, "time", clock)
    meter = phases.Meter()
    timers = phases.Phases(meter)
    with timers.during("before"):
        pass
    assert order == ["clock", "clock"] and "peak_gpu_memory_mb" not in timers.done["before"]
    order.clear()
    meter.use(torch.device("cuda", 1))
    with timers.during("after"):
        pass
    assert order == ["cuda:1", "clock", "cuda:1", "clock"]
    assert timers.done["after"]["peak_gpu_memory_mb"] == 3.0


@pytest.mark.parametrize(
    ("error", "helps"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."), True),
        (OSError(12, "Cannot allocate memory"), True),
        (RuntimeError("a shape of memory"), False),
    ],
)
def test_which_errors_are_of_memory(package, error, helps):
    sentence = package("task")._sentence(error, None)
    assert sentence.endswith("; a smaller batch_size needs less memory") == helps, sentence


def test_lines_hold_what_json_holds_and_rank_0_alone_writes(package, tmp_path, monkeypatch):
    phases = package("phases")
    path = tmp_path / "phases.jsonl"
    monkeypatch.setenv("WELLREAD_PHASES", str(path))
    report = phases.Report()
    report.final_metrics({"dice": torch.tensor(0.5), "loss": float("inf")})
    report.samples("batch_step", [1.0] * 25_000, 12_000)
    lines = path.read_text().splitlines()
    assert lines[0] == '{"final_metrics": {"dice": 0.5, "loss": null}}'
    assert [line.endswith(f'"warm_up": {n}}}') for line, n in zip(lines[1:], (12_000, 2_000, 0), strict=True)]
    other = phases.Report(rank=1)
    other.info(ranks=2)
    assert len(path.read_text().splitlines()) == 4
    other.error("no memory")
    assert path.read_text().splitlines()[4] == '{"error": "rank 1: no memory"}'
    monkeypatch.delenv("WELLREAD_PHASES")
    report.error("nobody hears it")
    assert len(path.read_text().splitlines()) == 5


def test_warm_up_is_the_first_epoch_or_the_first_batches(package, tmp_path, monkeypatch):
    steps, phases = package("steps"), package("phases")
    path = tmp_path / "phases.jsonl"
    monkeypatch.setenv("WELLREAD_PHASES", str(path))
    for on_cuda, follows, batches, expected in [
        (False, True, 5, 5), (False, False, 5, 1), (True, False, 5, 3), (True, False, 2, 2), (False, False, 0, None),
    ]:  # fmt: skip
        path.unlink(missing_ok=True)
        series = steps.Steps()
        for _ in range(batches):
            series.add("batch_step", 0.5)
        series.settle(on_cuda, follows)
        series.tell(phases.Report())
        series.add("batch_step", 0.5)
        series.tell(phases.Report())
        lines = path.read_text().splitlines()
        warm_up = [json.loads(line)["warm_up"] for line in lines]
        assert max(warm_up) == (expected or 0), (on_cuda, follows, batches)


def test_names_that_resemble_another(package):
    settings = package("settings")
    known = ["data.batch_size", "data.num_workers", "trainer.max_epochs", "model.lr", "a", "b", "c", "d"]
    assert settings.nearest("data.batchsize", known).startswith("nearest: data.batch_size")
    assert settings.nearest("max_epoch", known).startswith("nearest: trainer.max_epochs")
    assert settings.nearest("x", []) == "there are none" and settings.nearest("x", ["y"]) == "there is only y"
    assert settings.keys({"a": {"b": [1, {"c": 2}]}}) == ["a", "a.b", "a.b.0", "a.b.1", "a.b.1.c"]
    for text in ("=1", "x", "+=2", "+~x=1", ""):
        with pytest.raises(settings.TaskError, match="is not key=value"):
            settings.split_override(text)
    assert settings.split_override("++a.b=c=d") == ("++", "a.b", "c=d")
    assert settings.split_override("~a") == ("~", "a", None)


def test_one_batch_has_a_throughput_too(run):
    ran = run(max_epochs=1, overrides=["trainer.limit_train_batches=1"])
    assert ran.code == 0, ran.log
    info, (epochs, _) = ran.info, ran.samples("epoch")
    assert info["num_batches"] == info["num_train_batches"] == len(epochs) == 1
    assert info["avg_time_per_batch"] == pytest.approx(epochs[0])
    assert info["throughput_samples_per_sec"] == pytest.approx(info["num_samples"] / epochs[0])


def test_imports_are_no_part_of_the_total(package):
    phases = package("phases")
    clock = iter([0.0, 1.0, 1.0, 8.0, 8.0, 9.5])
    meter = phases.Meter()
    meter.now = lambda: next(clock)
    timers = phases.Phases(meter)
    timers.begin("total")
    with timers.apart("imports"):
        pass
    timers.end("total")
    assert timers.done["imports"]["elapsed_seconds"] == 7.0
    assert timers.done["total"]["elapsed_seconds"] == 2.5


def test_a_library_that_is_slow_to_import_is_no_part_of_a_runs_total(run):
    """Imports and the total are apart, so that both together are no longer than the process."""
    began = time.perf_counter()
    ran = run("net.slow:Net,net.data:Data", max_epochs=1)
    whole = time.perf_counter() - began
    assert ran.code == 0, ran.log
    assert seconds(ran, "imports") >= SLOW
    assert seconds(ran, "imports") + seconds(ran, "total_training") <= whole


def test_the_peak_is_the_devices_where_there_is_one(package):
    phases = package("phases")
    timers = phases.Phases(phases.Meter())
    timers.add("full", {"elapsed_seconds": 1.0, "memory_delta_mb": 2.0, "peak_memory_mb": 900.0})
    assert timers.grouped()["full"]["peak_memory_mb"] == timers.grouped()["full"]["peak_host_memory_mb"] == 900.0
    timers.done["full"]["peak_gpu_memory_mb"] = 40.0
    shown = timers.grouped()["full"]
    assert (shown["peak_memory_mb"], shown["peak_host_memory_mb"]) == (40.0, 900.0)
