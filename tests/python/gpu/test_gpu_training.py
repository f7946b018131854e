"""`wellread tasks` and the examples of training on a GPU: what is measured, ranks, and memory that the card lacks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_tasks_lightning import repository, run  # noqa: F401

pytest.importorskip("lightning")

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "distributed"


@pytest.mark.parametrize("trainer", ["gpu", "ddp"])
def test_training_on_the_gpu_is_measured_with_its_memory(run, trainer):  # noqa: F811
    ran = run(trainer=trainer, max_epochs=3, batch_size=4, overrides=["model.width=512"])
    assert ran.code == 0 and not ran.errors, ran.log
    assert ran.info["device"].startswith("cuda"), ran.info
    for name in ("full_training", "total_training"):
        assert ran.phases[name]["peak_gpu_memory_mb"] > 0, ran.phases[name]
    steps, warm_up = ran.samples("batch_step")
    # Three epochs of six batches, the first of which is warm-up.
    assert len(steps) == 18 and warm_up == 6
    assert ran.metrics


def test_inference_on_the_gpu_is_measured(run):  # noqa: F811
    trained = run(trainer="gpu", max_epochs=1, overrides=["trainer.enable_checkpointing=true"])
    assert trained.code == 0, trained.log
    checkpoint = str(next(trained.output.rglob("*.ckpt")))
    ran = run(trainer="gpu", mode="inference", checkpoint_path=checkpoint)
    assert ran.code == 0 and not ran.errors, ran.log
    assert ran.phases["full_prediction"]["peak_gpu_memory_mb"] > 0


def test_memory_that_the_card_lacks_is_told_with_what_helps(run):  # noqa: F811
    wide = ["model.width=200000000000"]
    ran = run(trainer="gpu", max_epochs=1, overrides=wide)
    assert ran.code == 1 and "a smaller batch_size needs less memory" in ran.errors[0], ran.errors


def test_torchrun_trains_with_nccl(parquet, tmp_path):
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
            str(torch.cuda.device_count()), EXAMPLES / "train_torchrun.py", parquet, "--batch-size", "4",
            "--epochs", "3", "--checkpoint", tmp_path / "run.pt", "--written-rows", tmp_path,
        ],
        capture_output=True, text=True, timeout=900, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    losses = [float(line.split("loss ")[1]) for line in done.stdout.splitlines() if line.startswith("epoch ")]
    assert len(losses) == 3 and losses[-1] < losses[0]
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(torch.cuda.device_count())]
    for epoch in "012":
        assert sorted(row for rank in ranks for row in rank[epoch]) == list(range(40))


def test_lightning_trains_on_every_gpu(parquet, tmp_path):
    done = subprocess.run(
        [
            sys.executable, EXAMPLES / "train_lightning.py", parquet, "--devices", str(torch.cuda.device_count()),
            "--written-rows", tmp_path,
        ],
        capture_output=True, text=True, timeout=900, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(torch.cuda.device_count())]
    for epoch in ("0", "1"):
        assert sorted(row for rank in ranks for row in rank["seen"][epoch]) == sorted(ranks[0]["train"])
    # Some four fifths: whether an image is among them is drawn for each.
    assert 24 <= len(ranks[0]["train"]) < 40
