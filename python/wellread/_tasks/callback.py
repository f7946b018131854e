"""The phases of a Lightning trainer: by its hooks, and those within a batch by the actions of its profiler.

Long because one callback has to hear all hooks between which a phase lies.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import statistics
from array import array
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import framework, memory, phases
from .steps import Steps

if TYPE_CHECKING:
    import lightning.pytorch as pl
else:
    pl = framework.choose()

# What a strategy loads checkpoints by.
_LOADING = ("load_checkpoint", "load_model_state_dict", "load_optimizer_state_dict")
# Parts of a batch that a begin and an end are heard of.
_HEARD = ("batch_loading", "batch_to_device", "batch_forward")


class PhaseTimer(pl.Callback):
    """Measures the phases of ``fit``, ``test`` or ``predict``, and writes them as JSON.

    Args:
        path: the JSON file to write when a run ends, also when it fails; None for :attr:`results` alone. Only rank
            0 writes it.

    :attr:`results` has ``run`` ("fit", "test" or "predict"), ``success``, ``error``, ``timestamp``, ``device`` and
    ``metrics``, of the last run. Runs before it, such as ``fit`` before ``test``, are in the list ``earlier_runs``,
    the first one first. It is there if there were any. The names in ``metrics`` are those of ``wellread tasks``:

    - ``total_training``: from the first :meth:`phase`, or from the start of the trainer, to its end;
    - ``model_initialization``: ``setup`` and ``configure_model`` of the module, moving it to the device;
    - ``checkpoint_loading``: reading a checkpoint, and giving its states to module and optimizers;
    - ``data_setup``: ``setup`` of a :class:`WellreadDataModule`, making the loaders, starting their workers;
    - ``batch_breakdown``: of the first batch, the wait for it (``first_batch_loading``), ``first_batch_to_device``,
      ``first_batch_forward`` (``training_step``) and ``first_batch_postprocess``. The last has the backward pass,
      the optimizer and the other callbacks at its end;
    - ``epoch_breakdown`` (training only): ``first_epoch``, and two of these as ``data_loading_first_batch`` and
      ``model_forward_first_batch``;
    - ``full_training``: all epochs;
    - ``sanity_check``: the batches that Lightning validates before it trains;
    - ``dataset_info``: batches of an epoch (``num_batches``, ``num_train_batches``), images of a batch, and images of
      the longest epoch in all ranks. It also has throughput and time per batch of one pass over the data. The pass is
      the median epoch after the first, without validation, or the first if it is the only one. Under ``test`` and
      ``predict`` it is the whole run;
    - ``steady_state``: all steps but the first: ``step_seconds`` and ``data_wait_seconds`` (mean, p50, and p95
      from 20 steps on) and ``data_wait_fraction``. A step is from asking for its batch to its end, without
      validation;
    - ``peak_memory``: of this process (RSS), of it and its children (PSS, seen at ends of epochs), and of CUDA;
    - ``final_metrics``: what the module logged last.

    Each timer has ``elapsed_seconds``, the host's ``memory_delta_mb``, and ``peak_memory_mb``. That is the peak so
    far, at the timer's end, in MB, of CUDA where the module is on it, else of the host. The host's is
    ``peak_host_memory_mb`` in any case. Under ``test`` and ``predict`` the names
    are ``total_inference``, ``full_prediction`` and ``inference_info``. The callback waits for a CUDA
    device before each reading of the clock, several times in a step. Each wait takes some 10 microseconds, and no
    step begins before the one before it has ended.

    :meth:`phase` measures work outside of the trainer::

        timer = PhaseTimer("phases.json")
        with timer.phase("model_initialization"):
            model = Net()
        Trainer(callbacks=[timer]).fit(model, data)

    If the environment variable ``WELLREAD_PHASES`` names a file, the callback appends lines of JSON to it, as under
    ``wellread tasks``. It adds a phase when that ends, and the seconds of every batch and epoch when an epoch ends.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        super().__init__()
        self._path = None if path is None else Path(path)
        self.results: dict[str, Any] = {}
        self._earlier: list[dict[str, Any]] = []
        self._report = phases.Report(phases.rank_of_process())
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._meter = phases.Meter()
        self._phases = phases.Phases(self._meter, self._report)
        self._stage: str | None = None
        self._profiler: Any = None
        self._steps = Steps()
        self._whole = array("d")
        self._asked: float | None = None
        # When things began, and what the parts of the current batch took.
        self._moments: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._first = True
        self._images, self._images_of_epoch, self._batch_size = 0, 0, 0
        # Batches and images before the epoch that is under way, and batches of the longest epoch.
        self._before, self._batches_of_epoch = (0, 0), 0
        self._epoch: int | None = None
        self._validated = False
        self._pss: float | None = None

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures what is done within, under a name of the results such as "model_initialization", "data_setup" or
        "checkpoint_loading", or one of your own. Two measurements of one phase are added up.
        """
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {name!r}")
        self._phases.begin("total")
        with self._phases.during(name):
            yield

    # Whole runs.

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        # An enumeration, whose text differs between versions.
        stage = str(getattr(stage, "value", stage))
        if stage not in ("fit", "test", "predict"):
            return
        self._stage = stage
        self._report.rank = trainer.global_rank
        self._phases.names = (
            {"total": "total_training", "full": "full_training"}
            if stage == "fit"
            else {"total": "total_inference", "full": "full_prediction"}
        )
        self._meter.use(trainer.strategy.root_device)
        self._phases.begin("total")
        made = getattr(trainer.datamodule, "setup_timer", None)
        if made:
            self._phases.add("data_setup", made)
        self._phases.begin("model_initialization")
        self._profiler = trainer.profiler
        trainer.profiler = _Tap(trainer.profiler, self._heard)
        for name in _LOADING:
            if hasattr(trainer.strategy, name):
                setattr(trainer.strategy, name, self._timed(getattr(trainer.strategy, name)))

    def _timed(self, load: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(load)
        def loading(*args: Any, **named: Any) -> Any:
            around = [name for name in ("model_initialization", "data_setup") if self._phases.is_open(name)]
            for name in around:
                self._phases.end(name)
            self._phases.begin("checkpoint_loading")
            try:
                return load(*args, **named)
            finally:
                self._phases.end("checkpoint_loading")
                for name in around:
                    self._phases.begin(name)

        return loading

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        if self._stage is not None:
            self._begin_data()

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        if self._stage is not None:
            self._phases.end("data_setup")
            self._phases.begin("sanity_check")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        if self._stage is not None:
            self._phases.end("sanity_check")
            self._phases.begin("data_setup")

    def _begin_data(self) -> None:
        self._phases.end("model_initialization")
        self._phases.begin("data_setup")

    def _begin_loop(self) -> None:
        if self._stage is None:
            return
        self._phases.end("model_initialization")
        self._phases.end("data_setup")
        self._phases.tell()
        self._phases.begin("full")

    def on_test_start(self, *_: Any) -> None:
        self._begin_loop()

    def on_predict_start(self, *_: Any) -> None:
        self._begin_loop()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin_loop()
        if self._stage is not None:
            self._phases.begin("first_epoch")

    # Epochs.

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if self._stage is None:
            return
        self._add_to_curve(trainer)
        self._epoch, self._validated = trainer.current_epoch, False
        self._moments["epoch"] = self._meter.now()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self._stage is not None and not trainer.sanity_checking:
            self._moments["validation"] = self._meter.now()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._validated = not trainer.sanity_checking
        # Validation is no part of the epoch that it lies in.
        began = self._moments.pop("validation", None)
        if began is not None and "epoch" in self._moments:
            self._moments["epoch"] += self._meter.now() - began

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self._stage is None:
            return
        seconds = self._meter.now() - self._moments.pop("epoch", self._meter.now())
        stopped = trainer.should_stop or 0 < (trainer.max_steps or 0) <= trainer.global_step
        batches, images = self._steps.batches - self._before[0], self._images - self._before[1]
        self._before = self._steps.batches, self._images
        # What is cut short, by `max_steps` for instance, is no pass over the data, unless there is no whole one.
        if not stopped or batches >= self._batches_of_epoch:
            self._steps.add("epoch", seconds)
        # A run that goes on from the middle of an epoch begins with a short one.
        if batches > self._batches_of_epoch:
            self._batches_of_epoch, self._images_of_epoch = batches, images
        last = stopped or (trainer.max_epochs or 0) == trainer.current_epoch + 1
        self._end_epoch(epoch_follows=not last)

    def _end_pass(self) -> None:
        if self._stage is not None:
            self._end_epoch(epoch_follows=False)

    def on_test_epoch_end(self, *_: Any) -> None:
        self._end_pass()

    def on_predict_epoch_end(self, *_: Any) -> None:
        self._end_pass()

    def _end_epoch(self, epoch_follows: bool) -> None:
        self._phases.end("first_epoch")
        self._images_of_epoch = self._images_of_epoch or self._images
        self._steps.settle(self._meter.on_cuda, epoch_follows)
        self._steps.tell(self._report)
        proportional = memory.proportional_mb()
        if proportional is not None:
            self._pss = max(proportional, self._pss or 0.0)

    def _add_to_curve(self, trainer: Any) -> None:
        """An epoch that has ended. For whoever keeps a curve."""

    # Batches.

    def _heard(self, action: str, begins: bool) -> None:
        """An action of the trainer's profiler."""
        if self._stage == "fit":
            asked, step, loaders = "].train_dataloader_next", ".training_step", ".train_dataloader"
        else:
            asked, step, loaders = f"].{self._stage}_next", f".{self._stage}_step", f".{self._stage}_dataloader"
        if action.endswith(asked):
            if begins:
                # In an epoch's first batch, this includes the start of the workers.
                self._asked = self._moments.pop("epoch_begun", None) or self._meter.now()
                if self._first:
                    self._phases.begin("first_batch_loading")
            else:
                self._mark("batch_loading", self._asked)
                self._first_batch("first_batch_loading", False)
        elif action.startswith("[LightningModule]") and action.endswith(".on_train_epoch_start"):
            if not begins:
                self._moments["epoch_begun"] = self._meter.now()
        elif self._asked is None:
            if action.endswith(loaders) and begins and self._stage != "fit":
                self._begin_data()
        elif action.endswith(".batch_to_device"):
            self._around("batch_to_device", begins)
        elif action.startswith("[Strategy]") and action.endswith(step):
            self._around("batch_forward", begins)
            if not begins:
                self._moments["after_forward"] = self._meter.now()
                self._first_batch("first_batch_postprocess", True)

    def _around(self, name: str, begins: bool) -> None:
        if begins:
            self._moments[name] = self._meter.now()
        elif name in self._moments:
            self._mark(name, self._moments[name])
        self._first_batch(f"first_{name}", begins)

    def _first_batch(self, name: str, begins: bool) -> None:
        if self._first:
            (self._phases.begin if begins else self._phases.end)(name)

    def _mark(self, name: str, since: float | None) -> None:
        """Keeps what a part of this batch took, until the batch is whole."""
        if since is not None:
            self._took[name] = self._took.get(name, 0.0) + self._meter.now() - since

    def _end_batch(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        if self._stage is None or self._asked is None:
            return
        now = self._meter.now()
        images = _images_of(batch)
        if "after_forward" in self._moments:
            for name in _HEARD:
                self._steps.add(name, self._took.get(name, 0.0))
            self._steps.add("batch_postprocess", now - self._moments["after_forward"])
            self._steps.add("batch_step", now - self._moments["batch_forward"])
        if self._first:
            self._phases.end("first_batch_postprocess")
            self._first, self._batch_size = False, images
        else:
            self._whole.append(now - self._asked)
        self._images += images
        self._asked = None
        self._took.clear()
        for name in ("batch_to_device", "batch_forward", "after_forward"):
            self._moments.pop(name, None)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        self._end_batch(trainer, pl_module, outputs, batch)

    def on_test_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        self._end_batch(trainer, pl_module, outputs, batch)

    def on_predict_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        self._end_batch(trainer, pl_module, outputs, batch)

    # The end.

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self._stage is not None:
            self._phases.end("full")
            self._add_to_curve(trainer)
            self._epoch = None

    def _end_loop(self) -> None:
        if self._stage is not None:
            self._phases.end("full")

    def on_test_end(self, *_: Any) -> None:
        self._end_loop()

    def on_predict_end(self, *_: Any) -> None:
        self._end_loop()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if self._stage is not None:
            self._finish(trainer, None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self._stage is not None:
            self._finish(trainer, f"{type(exception).__name__}: {exception}")

    def _stop(self, trainer: Any) -> None:
        """Lets go of the trainer, and reports what was measured."""
        trainer.profiler = self._profiler
        for name in _LOADING:
            vars(trainer.strategy).pop(name, None)
        for name in ("first_epoch", "full"):
            self._phases.end(name)
        self._phases.tell()
        self._steps.settle(self._meter.on_cuda, epoch_follows=False)
        self._steps.tell(self._report)

    def _finish(self, trainer: Any, error: str | None) -> None:
        self._stop(trainer)
        self._phases.end("total")
        fit = self._stage == "fit"
        info = self._about(trainer)
        self._report.info(**info)
        final = {name: float(value) for name, value in trainer.callback_metrics.items()}
        self._report.final_metrics(final)
        seconds, waits = sum(self._whole), self._steps.seconds["batch_loading"][1:]
        timers = self._phases.grouped()
        if not fit:
            # The first batch of what has no epochs is in `batch_breakdown` alone.
            timers.pop("epoch_breakdown", None)
        timers["dataset_info" if fit else "inference_info"] = info
        timers["steady_state"] = {
            "steps": len(self._whole),
            "step_seconds": _summary(self._whole),
            "data_wait_seconds": _summary(waits),
            "data_wait_fraction": sum(waits) / seconds if seconds else None,
        }
        timers["peak_memory"] = self._meter.peaks(self._pss)
        timers["final_metrics"] = final
        run = {
            "run": self._stage,
            "success": error is None,
            "error": error,
            "timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "device": str(trainer.strategy.root_device),
            "metrics": timers,
        }
        # One file has all runs of this callback: a test leaves the training before it there.
        self.results = {**run, "earlier_runs": list(self._earlier)} if self._earlier else run
        self._earlier.append(run)
        if self._path is not None and trainer.is_global_zero:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # A loss that is no number, as of a run that diverged, is null: JSON has no other word for it.
            self._path.write_text(json.dumps(phases.finite(self.results), indent=1, allow_nan=False) + "\n")
        self._begin_anew()

    def _about(self, trainer: Any) -> dict[str, Any]:
        """Sizes and throughput."""
        fit = self._stage == "fit"
        # Of an epoch as it was: `max_steps` may end the first one early, and a loader may have no length.
        batches = (self._batches_of_epoch or trainer.num_training_batches) if fit else self._steps.batches
        if batches == float("inf"):
            batches = self._steps.batches
        # Each rank has as many: the throughput is that of all.
        images = (self._images_of_epoch or self._images) * trainer.world_size
        seconds = self._seconds_of_pass()
        about = {
            "num_batches": batches,
            "num_samples": images,
            "batch_size": self._batch_size,
            "throughput_samples_per_sec": images / seconds if images and seconds else None,
            "avg_time_per_batch": seconds / batches if batches and seconds else None,
        }
        return {**about, "num_train_batches": batches} if fit else about

    def _seconds_of_pass(self) -> float | None:
        """One pass over the data, by the definition that all adapters of ``wellread tasks`` share.

        The median epoch after the first, the first one where it is the only one, and of inference all of it."""
        epochs = self._steps.seconds["epoch"]
        if epochs:
            return statistics.median(epochs[1:] or epochs)
        full = self._phases.done.get("full")
        return None if full is None else full["elapsed_seconds"]


class _Tap:
    """A trainer's profiler, whose actions are heard by somebody else too."""

    def __init__(self, profiler: Any, heard: Callable[[str, bool], None]):
        self._profiler, self._heard = profiler, heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._profiler, name)

    def start(self, action_name: str) -> None:
        self._profiler.start(action_name)
        self._heard(action_name, True)

    def stop(self, action_name: str) -> None:
        self._heard(action_name, False)
        self._profiler.stop(action_name)

    @contextlib.contextmanager
    def profile(self, action_name: str) -> Iterator[str]:
        self.start(action_name)
        try:
            yield action_name
        finally:
            self.stop(action_name)


def _images_of(batch: Any) -> int:
    """Images of a batch: the length of the first tensor in it."""
    if hasattr(batch, "shape"):
        return int(batch.shape[0]) if batch.shape else 1
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    return next((images for part in parts if (images := _images_of(part))), 0)


def _summary(seconds: array[float]) -> dict[str, float | None] | None:
    if not seconds:
        return None
    import numpy

    # Of fewer, the 95th percentile would be the maximum under another name.
    p95 = float(numpy.percentile(seconds, 95)) if len(seconds) >= 20 else None
    return {"mean": float(numpy.mean(seconds)), "p50": float(numpy.median(seconds)), "p95": p95}
