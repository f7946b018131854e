"""The Lightning adapter: any LightningModule and LightningDataModule of a branch, run by Lightning's own Trainer.

Experiment ─▶ seed ─▶ data, model ─▶ Trainer with a TaskTimer ─▶ fit | predict | test
"""

from __future__ import annotations

import importlib
import platform
from typing import Any

from . import framework
from .experiment import Experiment
from .settings import TaskError
from .task import Context

# Processes of `ddp` where there is no CUDA device and nothing else is said.
_PROCESSES = 2


def run(context: Context) -> None:
    """Runs the task.

    Raises:
        TaskError: what the task asks for cannot be done.
    """
    task, during = context.task, context.phases.during
    with during("configuration"):
        experiment = Experiment.read(task)
        checkpoint = task.checkpoint(needed=not task.trains)
    with context.phases.apart("imports"):
        experiment.load(context)
        pl = _package(experiment)
        from .timer import TaskTimer
    with during("configuration"):
        experiment.apply(task, pl.Trainer)
        arguments = _trainer_arguments(context, experiment)
        pl.seed_everything(task.seed, workers=True)
    data = None
    with during("data_setup"):
        if experiment.data is not None:
            data = experiment.data.build(context)
    with during("model_initialization"):
        model = experiment.model.build(context)
    kind = "fit" if task.trains else _kind_of_inference(pl, model, data)
    timer = TaskTimer(kind, context.phases, context.report, task.output_dir / "loss_curve.csv")
    context.timer = timer
    with during("configuration"):
        own = arguments.pop("callbacks", None) or []
        # At the end, so that what the other callbacks do with a batch counts as its end.
        callbacks = [*(own if isinstance(own, list) else [own]), timer]
        trainer = pl.Trainer(**arguments, callbacks=callbacks)
    _describe(context, pl, model, kind)
    if kind == "fit":
        trainer.fit(model, datamodule=data, ckpt_path=checkpoint)
    elif kind == "predict":
        trainer.predict(model, datamodule=data, ckpt_path=checkpoint, return_predictions=False)
    else:
        trainer.test(model, datamodule=data, ckpt_path=checkpoint, verbose=False)
    if trainer.interrupted:
        raise KeyboardInterrupt("the trainer was interrupted")
    timer.check()
    context.report.final_metrics(trainer.callback_metrics)


def _package(experiment: Experiment) -> Any:
    """Lightning, in the one of its packages that the branch's classes are of."""
    found = {}
    for part, base in ((experiment.model, "LightningModule"), (experiment.data, "LightningDataModule")):
        if part is None:
            continue
        name = framework.of(part.kind)
        if name is None or not issubclass(part.kind, getattr(importlib.import_module(name), base)):
            raise TaskError(f"{part.path} is no {base} of lightning or pytorch_lightning")
        found[name] = part.path
    if len(found) > 1:
        told = " and ".join(f"{path} of {name}" for name, path in found.items())
        raise TaskError(f"{told}: a Trainer takes classes of one of these packages")
    name = next(iter(found))
    framework.use(name)
    return importlib.import_module(name)


def _trainer_arguments(context: Context, experiment: Experiment) -> dict[str, Any]:
    """Settings of the experiment, the task's trainer, and overrides last: they are in `experiment.trainer` by now."""
    import torch

    from .experiment import built

    task, said = context.task, experiment.trainer
    overridden = {text.partition("=")[0].strip() for text in task.overrides}
    cuda = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if task.trainer == "cpu":
        chosen: dict[str, Any] = {"accelerator": "cpu", "devices": 1, "strategy": "auto"}
    elif task.trainer == "gpu":
        if not cuda:
            raise TaskError(f"trainer gpu: torch {torch.__version__} finds no CUDA device; choose cpu")
        chosen = {"accelerator": "gpu", "devices": 1, "strategy": "auto"}
    else:
        chosen = {"accelerator": "gpu" if cuda else "cpu"}
        if said.get("devices") in (None, "auto"):
            chosen["devices"] = cuda or _PROCESSES
        if not str(said.get("strategy", "")).startswith("ddp"):
            chosen["strategy"] = "ddp"
    for name, value in chosen.items():
        if f"trainer.{name}" not in overridden:
            said[name] = value
    said.setdefault("default_root_dir", str(task.output_dir))
    # A bar of progress in a log file is of no use to anybody.
    said.setdefault("enable_progress_bar", False)
    return {name: built(context, value) for name, value in said.items()}


def _kind_of_inference(pl: Any, model: Any, data: Any) -> str:
    """How the classes can be run without training."""

    def has(name: str) -> bool:
        return any(
            thing is not None and getattr(type(thing), name) is not getattr(base, name, None)
            for thing, base in ((data, pl.LightningDataModule), (model, pl.LightningModule))
            if hasattr(type(thing), name)
        )

    if has("predict_dataloader"):
        return "predict"
    if has("test_dataloader") and has("test_step"):
        return "test"
    raise TaskError(
        "for inference, the data must have a predict_dataloader (and the model a predict_step or forward), or a "
        "test_dataloader (and the model a test_step)"
    )


def _describe(context: Context, pl: Any, model: Any, kind: str) -> None:
    import torch

    context.report.info(
        adapter="lightning",
        run=kind,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        versions={"python": platform.python_version(), "torch": torch.__version__, "lightning": pl.__version__},
    )
