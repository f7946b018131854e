"""The CytoDL adapter of `wellread tasks`, on a small repository of CytoDL's shape: Hydra configs, an api, a train().

CytoDL itself is run by hand: docs/results/cyto-dl.md.
"""

import shutil

import pytest
import torch

UTILS = """
import hydra
from omegaconf import OmegaConf


def create_dataloader(data_cfg, data=None):
    return hydra.utils.instantiate(OmegaConf.to_container(data_cfg))


def load_checkpoint(model, load_params):
    return model, load_params


def instantiate_callbacks(cfg):
    return [hydra.utils.instantiate(one) for one in (cfg or {}).values()]
"""
API = """
import hydra
import lightning
from omegaconf import OmegaConf

from cyto_dl import utils


class CytoDLModel:
    def load_config_from_dict(self, cfg):
        self.cfg = cfg

    def _make(self):
        cfg = self.cfg
        OmegaConf.resolve(cfg)
        data = utils.create_dataloader(cfg.data)
        model = hydra.utils.instantiate(cfg.model, _recursive_=False)
        callbacks = utils.instantiate_callbacks(cfg.get("callbacks"))
        trainer = hydra.utils.instantiate(cfg.trainer, callbacks=callbacks, logger=False)
        model, load_params = utils.load_checkpoint(model, cfg.checkpoint)
        objects = {"cfg": cfg, "data": data, "model": model, "trainer": trainer}
        return trainer, model, data, load_params["ckpt_path"], objects

    def train(self):
        trainer, model, data, checkpoint, objects = self._make()
        trainer.fit(model, datamodule=data, ckpt_path=checkpoint)
        metrics = dict(trainer.callback_metrics)
        trainer.test(model, datamodule=data)
        return {**metrics, **trainer.callback_metrics}, objects

    def predict(self):
        trainer, model, data, checkpoint, objects = self._make()
        output = trainer.predict(model, dataloaders=data, ckpt_path=checkpoint)
        return trainer.callback_metrics, objects, output
"""
PARTS = """
import torch
from lightning import LightningDataModule, LightningModule
from torch.utils.data import DataLoader, TensorDataset


class Net(LightningModule):
    def __init__(self, lr, layers):
        super().__init__()
        assert layers[1]["width"] == 5
        self.layer, self.lr = torch.nn.Linear(8, 1), lr

    def training_step(self, batch, _):
        loss = (self.layer(batch[0]) ** 2).mean()
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val/loss", (self.layer(batch[0]) ** 2).mean())

    test_step = predict_step = validation_step

    def predict_step(self, batch, _):
        return self.layer(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


class Data(LightningDataModule):
    def __init__(self, path, batch_size, cache_dir=None):
        super().__init__()
        assert path == "some where/it's", path
        assert cache_dir.endswith("/cache"), cache_dir
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.randn(12, 8)), batch_size=self.batch_size)

    val_dataloader = test_dataloader = predict_dataloader = train_dataloader
"""
MAIN = """
defaults:
  - _self_
  - trainer: default.yaml
  - callbacks: null
  - experiment: null
seed: null
checkpoint: {ckpt_path: null}
paths: {output_dir: "${hydra:runtime.output_dir}", work_dir: "${hydra:runtime.cwd}"}
extras: {enforce_tags: true, print_config: true}
"""
EXPERIMENT = """
# @package _global_
defaults:
  - override /trainer: gpu.yaml
seed: 1
data:
  _target_: cyto_dl.parts.Data
  path: /nowhere
  cache_dir: ${paths.output_dir}/shared
  batch_size: 1
model:
  _target_: cyto_dl.parts.Net
  lr: 0.1
  layers:
    - {width: 3}
    - {width: 4}
"""
TRAINER = """
_target_: lightning.Trainer
accelerator: cpu
devices: 1
max_epochs: 100
enable_progress_bar: false
default_root_dir: ${paths.output_dir}
"""
# CytoDL's simulation of several devices.
DDP_SIM = """
defaults:
  - default.yaml
accelerator: cpu
devices: 2
strategy: ddp_spawn
"""
NAME = "im2im/segmentation"
PATH = {"data_path": "some where/it's"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("branch")
    files = {
        "cyto_dl/__init__.py": "", "cyto_dl/utils.py": UTILS, "cyto_dl/api.py": API, "cyto_dl/parts.py": PARTS,
        "configs/train.yaml": MAIN, "configs/eval.yaml": MAIN, "configs/callbacks/none.yaml": "{}",
        "configs/trainer/default.yaml": TRAINER, "configs/trainer/cpu.yaml": "defaults:\n  - default.yaml\n",
        "configs/trainer/gpu.yaml": "defaults:\n  - default.yaml\naccelerator: gpu\n",
        "configs/trainer/ddp_sim.yaml": DDP_SIM,
        f"configs/experiment/{NAME}.yaml": EXPERIMENT,
        "configs/experiment/other.yaml": EXPERIMENT.replace("  batch_size: 1", "  train: {batch_size: 1}"),
    }  # fmt: skip
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.lstrip())
    return root


@pytest.fixture(scope="module")
def run(tasks, repository):
    return lambda experiment=NAME, **told: tasks.run("cyto-dl", repository, experiment, **told)


@pytest.fixture(scope="module")
def trained(run):
    overrides = ["model.layers[1].width=5", "model.lr=1e-3", "+trainer.log_every_n_steps=1"]
    return run(max_epochs=2, batch_size=4, overrides=overrides, **PATH)


def seconds(ran, *names):
    return sum(ran.phases[name]["elapsed_seconds"] for name in names)


def test_training_is_measured_within_the_branchs_own_api(trained):
    assert trained.code == 0, trained.log
    parts = [
        "configuration",
        "data_setup",
        "model_initialization",
        "sanity_check",
        "full_training",
        "test",
    ]
    assert 0 < seconds(trained, *parts) <= seconds(trained, "total_training")
    assert len(trained.phases) == sum("phase" in line for line in trained.lines)
    # There was no checkpoint to load.
    assert "checkpoint_loading" not in trained.phases and "not_measured" not in trained.info
    assert [len(trained.samples(name)[0]) for name in ("batch_loading", "batch_step", "epoch")] == [6, 6, 2]
    assert trained.info["parameters"] == 9 and trained.info["batch_size"] == 4
    assert {"train/loss", "val/loss"} <= set(trained.metrics)
    # By the keys of this branch; its own seed is not that of the task.
    assert {"trainer=cpu", "trainer.max_epochs=2", "data.batch_size=4", "seed=7"} <= set(trained.info["set"])
    with open(trained.artifacts["loss_curve"]) as file:
        assert len(file.read().splitlines()) == 3


def test_inference_from_a_checkpoint(run, trained):
    checkpoint = str(next(trained.output.rglob("*.ckpt")))
    ran = run(
        mode="inference", checkpoint_path=checkpoint, batch_size=3, overrides=["model.layers[1].width=5"], **PATH
    )
    assert ran.code == 0, ran.log
    assert ran.info["run"] == "predict" and len(ran.samples("batch_forward")[0]) == 4
    assert seconds(ran, "checkpoint_loading") > 0 and "full_prediction" in ran.phases
    parts = [
        "configuration",
        "data_setup",
        "model_initialization",
        "checkpoint_loading",
        "full_prediction",
    ]
    assert seconds(ran, *parts) <= seconds(ran, "total_inference")


@pytest.mark.parametrize(
    ("told", "parts"),
    [
        ({"experiment": "segmentation"}, ["no experiment 'segmentation'", NAME]),
        ({"overrides": ["data.batchsize=2"]}, ["no key 'data.batchsize'", "nearest: data.batch_size", "+data.b"]),
        ({"overrides": ["trainer.max_epoch=2"]}, ["no key 'trainer.max_epoch'", "nearest: trainer.max_epochs"]),
        ({"overrides": ["model.layers[2].width=2"]}, ["no key", "model.layers.1.width"]),
        ({"overrides": ["trainer=gpux"]}, ["configs/trainer has no 'gpux'", "gpu"]),
        ({"overrides": ["callbacks=nothing"]}, ["configs/callbacks has no 'nothing'", "none"]),
        ({"overrides": ["model.lr"]}, ["is not key=value"]),
        ({"overrides": ["model.lr='"]}, ["cannot be composed"]),
        ({"mode": "inference"}, ["needs a checkpoint_path"]),
        ({"mode": "inference", "checkpoint_path": "/nowhere.ckpt"}, ["/nowhere.ckpt is not there"]),
        ({"overrides": ["model.layers[1].width=6"]}, ["in model_initialization", "at cyto_dl/parts.py line"]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(run, told, parts):
    ran = run(**{**PATH, **told})
    assert "\n" not in ran.failed(*parts)


def test_a_branch_without_the_trainer_is_told(tasks, repository, tmp_path):
    worktree = shutil.copytree(repository, tmp_path / "branch")
    (worktree / "configs" / "trainer" / "ddp_sim.yaml").unlink()
    ran = tasks.run("cyto-dl", worktree, NAME, trainer="ddp", **PATH)
    ran.failed("no configs/trainer/ddp", "cpu, default, gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU, ddp is not simulated by processes")
def test_a_run_in_spawned_processes_is_measured_by_the_copy_of_the_callback(run):
    overrides = ["model.layers[1].width=5", "+trainer.log_every_n_steps=1"]
    ran = run(trainer="ddp", max_epochs=2, batch_size=2, overrides=overrides, **PATH)
    assert ran.code == 0 and not ran.errors, ran.log
    assert {"trainer=ddp_sim", "data.batch_size=2"} <= set(ran.info["set"])
    assert (ran.info["ranks"], ran.info["strategy"], ran.info["device"]) == (2, "DDPStrategy", "cpu")
    # Each rank has half of the twelve images, and rank 0 alone tells. The throughput is that of both.
    assert (ran.info["num_batches"], ran.info["num_samples"], ran.info["batch_size"]) == (3, 12, 2)
    rate, batch = (ran.info[name] for name in ("throughput_samples_per_sec", "avg_time_per_batch"))
    assert rate * batch == pytest.approx(12 / 3)
    assert [len(ran.samples(name)[0]) for name in ("batch_loading", "batch_step", "epoch")] == [6, 6, 2]
    assert len(ran.phases) == sum("phase" in line for line in ran.lines)
    assert {"first_epoch", "full_training", "model_initialization", "test"} <= set(ran.phases)
    assert list(ran.phases)[-1] == "total_training"
    assert 0 < seconds(ran, "first_epoch") <= seconds(ran, "full_training") <= seconds(ran, "total_training")


def test_a_batch_size_is_set_where_this_experiment_has_it(run):
    # Its data takes no `train`, so it fails; but what was set is known by then.
    ran = run("other", batch_size=3, **PATH)
    assert ran.code == 1 and "data.train.batch_size=3" in ran.info["set"]
