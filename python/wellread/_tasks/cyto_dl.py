"""The CytoDL adapter: an experiment of the branch, composed by Hydra and run by the branch's own CytoDLModel.

configs/*.yaml ─▶ Composer (the row of the table, by keys that the composed config has) ─▶ cfg
  ─▶ CytoDLModel.train | predict, with a TaskTimer among its callbacks and timers around what it makes
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from collections.abc import Callable, Iterator
from typing import Any

from .hydra_config import Composer
from .task import Context

# The callback of this process, which the config's callbacks name by `_target_`.
_timer: Any = None


def timer() -> Any:
    """The callback, for Hydra."""
    return _timer


def run(context: Context) -> None:
    """Runs the task.

    Raises:
        TaskError: what the task asks for cannot be done with this branch.
    """
    global _timer
    task, during = context.task, context.phases.during
    # What `root_dir` is, for configs that are composed before CytoDL has looked for it.
    os.environ["PROJECT_ROOT"] = str(task.worktree)
    with context.phases.apart("imports"):
        context.load("cyto_dl")
        api = context.load("cyto_dl.api")
        import lightning.pytorch
        import torch

        from .timer import TaskTimer
    with during("configuration"):
        composer = Composer(task)
        cfg = composer.compose(cuda=torch.cuda.device_count() if torch.cuda.is_available() else 0)
        kind = "fit" if task.trains else "test" if cfg.get("test") else "predict"
        _timer = context.timer = TaskTimer(kind, context.phases, context.report, task.output_dir / "loss_curve.csv")
        composer.add_callback(f"{__name__}.timer")
        model = api.CytoDLModel()
        model.load_config_from_dict(cfg)
    context.report.info(
        adapter="cyto-dl",
        run=kind,
        set=composer.said,
        versions={
            "python": platform.python_version(),
            "torch": torch.__version__,
            "lightning": lightning.pytorch.__version__,
        },
    )
    seen: set[str] = set()
    with _observed(context, str(cfg.model.get("_target_")), seen):
        metrics, objects, *_ = model.train() if task.trains else model.predict()
    if objects["trainer"].interrupted:
        raise KeyboardInterrupt("the trainer was interrupted")
    context.timer.check()
    missing = {"model_initialization", "data_setup"} - seen
    context.report.info(
        parameters=sum(parameter.numel() for parameter in objects["model"].parameters()),
        **({"not_measured": sorted(missing)} if missing else {}),
    )
    context.report.final_metrics(dict(metrics))


@contextlib.contextmanager
def _observed(context: Context, model_target: str, seen: set[str]) -> Iterator[None]:
    """Times what CytoDL makes, by the functions that its `train` and `evaluate` call; as they were, afterwards."""
    import cyto_dl.utils
    import hydra.utils

    def target_is_model(cfg: Any = None, *_: Any, **__: Any) -> bool:
        get = getattr(cfg, "get", None)
        return get is not None and get("_target_") == model_target

    def always(*_: Any, **__: Any) -> bool:
        return True

    def has_checkpoint(_: Any, load_params: Any) -> bool:
        return bool(load_params.get("ckpt_path"))

    watched: tuple[tuple[Any, str, str, Callable[..., bool]], ...] = (
        (hydra.utils, "instantiate", "model_initialization", target_is_model),
        (cyto_dl.utils, "create_dataloader", "data_setup", always),
        (cyto_dl.utils, "load_checkpoint", "checkpoint_loading", has_checkpoint),
    )
    kept = [(place, name, getattr(place, name)) for place, name, *_ in watched if hasattr(place, name)]
    for place, name, phase, concerns in watched:
        if hasattr(place, name):
            setattr(place, name, _timed(context, getattr(place, name), phase, concerns, seen))
    try:
        yield
    finally:
        for place, name, original in kept:
            setattr(place, name, original)


def _timed(
    context: Context, function: Callable[..., Any], phase: str, concerns: Callable[..., bool], seen: set[str]
) -> Callable[..., Any]:
    @functools.wraps(function)
    def timed(*args: Any, **named: Any) -> Any:
        # Within itself it is called again for parts of what it makes.
        if context.phases.is_open(phase) or not concerns(*args, **named):
            return function(*args, **named)
        seen.add(phase)
        with context.phases.during(phase):
            return function(*args, **named)

    return timed
