"""The callback of a task's process: the phases of one kind of run, within a total that the process ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .callback import PhaseTimer
from .curve import Curve
from .phases import Phases, Report
from .settings import TaskError


class TaskTimer(PhaseTimer):
    """Measures the run that is the task's; others, such as a test after training, are a phase of their name.

    Args:
        only: the run that is the task's: "fit", "test" or "predict".
        phases: those of the process, whose total is under way.
        report: where they are told.
        curve: where the loss curve goes.

    A strategy that spawns processes gives each a copy of it: the copy of rank 0 then reports.
    """

    def __init__(self, only: str, phases: Phases, report: Report, curve: Path):
        super().__init__()
        self._report, self._phases, self._meter = report, phases, phases.meter
        self._only, self._curve = only, Curve(curve)
        #: Whether the trainer has run to its end with this callback, in this process.
        self.ran = False
        #: Whether it was copied to other processes.
        self.copied = False

    def check(self) -> None:
        """Raises:
        TaskError: the run is over and nothing was done in it.
        """
        if not self.copied and not self._steps.batches:
            raise TaskError("no batch came from the data: they are empty, or what limits the Trainer leaves none")

    def __getstate__(self) -> dict[str, Any]:
        self.copied = True
        return {**self.__dict__, "copied": False}

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        stage = str(getattr(stage, "value", stage))
        # Of a spawned process, which no variable of the environment gives a rank.
        self._report.rank = trainer.global_rank
        if stage == self._only and not self.ran:
            super().setup(trainer, pl_module, stage)
        elif stage != "validate":
            self._phases.begin(stage)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        super().teardown(trainer, pl_module, stage)
        self._phases.end(str(getattr(stage, "value", stage)))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._phases.fails(exception)
        super().on_exception(trainer, pl_module, exception)

    def _add_to_curve(self, trainer: Any) -> None:
        if self._epoch is not None and trainer.is_global_zero:
            new = not self._curve.path.exists()
            added = self._curve.row(self._epoch, trainer.global_step, trainer.callback_metrics, self._validated)
            if added and new:
                self._report.artifact("loss_curve", self._curve.path)

    def _finish(self, trainer: Any, error: str | None) -> None:
        self._stop(trainer)
        self._report.info(
            **self._about(trainer),
            **{f"peak_{name}": value for name, value in self._meter.peaks(self._pss).items()},
            device=str(trainer.strategy.root_device),
            strategy=type(trainer.strategy).__name__,
            ranks=trainer.world_size,
            precision=str(trainer.precision),
        )
        self._stage = None
        self.ran = error is None
