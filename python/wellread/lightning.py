"""Lightning: a DataModule over :class:`wellread.DataLoader`, and a callback that says where the time goes.

Works with ``lightning`` and with the older package ``pytorch_lightning``, whichever the program has imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import _check, _memory, _phases
from .dataset import Dataset
from .torch import _ORDER, DataLoader

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    import pytorch_lightning as pl
else:
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl

__all__ = ["PhaseTimer", "WellreadDataModule"]

_PARTS = ("train", "val", "test")


class PhaseTimer(pl.Callback):
    """Measures the phases of ``fit``, ``test`` or ``predict``, and writes them as JSON.

    Args:
        path: the JSON file to write when the run ends, also when it fails; None for :attr:`results` alone. Only rank
            0 writes it.

    :attr:`results` has ``success``, ``error``, ``timestamp``, ``device``, ``memory_of`` (whose memory the phases are
    told of: "host", or the CUDA device) and ``metrics``, by the names that ``wellread tasks`` uses:

    - ``total_training``: from the first :meth:`phase`, or from the start of the trainer, to its end;
    - ``model_initialization``: ``setup`` and ``configure_model`` of the module, checkpoints, moving it to the device;
    - ``data_setup``: ``setup`` of a :class:`WellreadDataModule`, making the loaders, starting their threads;
    - ``batch_breakdown``: of the first batch, the wait for it (``first_batch_loading``), ``first_batch_to_device``,
      ``first_batch_forward`` (``training_step``) and ``first_batch_postprocess`` (backward pass and optimizer);
    - ``epoch_breakdown`` (training only): ``first_epoch``, and two of these as ``data_loading_first_batch`` and
      ``model_forward_first_batch``;
    - ``full_training``: all epochs;
    - ``dataset_info``: batches of an epoch, images of a batch, and throughput and time per batch after the first;
    - ``steady_state``: all steps but the first: ``step_seconds`` and ``data_wait_seconds`` (mean, p50, p95) and
      ``data_wait_fraction``. A step is from asking for its batch to its end, without validation;
    - ``peak_memory``: of this process (RSS), of it and its children (PSS, seen at ends of epochs), and of CUDA;
    - ``final_metrics``: what the module logged last.

    Each timer has ``elapsed_seconds``, ``memory_delta_mb`` and ``peak_memory_mb`` (MiB; the peak of the process or
    device so far, at the timer's end). Under ``test`` and ``predict`` the names are ``total_inference``,
    ``full_prediction`` and ``inference_info``. A CUDA device is waited for before each reading of the clock, which
    includes the end of every step: some 10 microseconds each.

    What happens outside of the trainer is measured with :meth:`phase`::

        timer = PhaseTimer("phases.json")
        with timer.phase("model_initialization"):
            model = Net()
        Trainer(callbacks=[timer]).fit(model, data)

    If the environment variable ``WELLREAD_PHASES_FILE`` names a file, each phase is appended to it as a line of JSON
    when it ends.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        super().__init__()
        self._path = None if path is None else Path(path)
        self.results: dict[str, Any] = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._meter = _phases.Meter()
        self._phases = _phases.Phases(self._meter)
        self._stage: str | None = None
        self._profiler: Any = None
        self._batch_began: float | None = None
        self._batch_wait = 0.0
        self._first = True
        self._steps, self._waits = array("d"), array("d")
        self._images, self._batch_size = 0, 0
        self._pss: float | None = None

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures what is done within, under a name of the results such as "model_initialization", "data_setup" or
        "checkpoint_loading", or one of your own. What is measured twice is added up."""
        self._phases.begin("total")
        self._phases.begin(_check.text("name", name))
        try:
            yield
        finally:
            self._phases.end(name)

    # The trainer tells of its phases by hooks, and of those within a batch by its profiler alone.

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage not in ("fit", "test", "predict"):
            return
        # An enumeration, whose text differs between versions.
        self._stage = str(getattr(stage, "value", stage))
        self._phases.rank = trainer.global_rank
        self._meter.use(trainer.strategy.root_device)
        self._phases.begin("total")
        made = getattr(trainer.datamodule, "setup_timer", None)
        if made:
            self._phases.add("data_setup", made)
        self._phases.begin("model_initialization")
        self._profiler = trainer.profiler
        trainer.profiler = _Tap(trainer.profiler, self._heard)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin_data()

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("data_setup")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.begin("data_setup")

    def _begin_data(self) -> None:
        self._phases.end("model_initialization")
        self._phases.begin("data_setup")

    def _begin_loop(self, *_: Any) -> None:
        self._phases.end("model_initialization")
        self._phases.end("data_setup")
        self._phases.begin("full")
        self._phases.begin("first_epoch")

    on_train_start = on_test_start = on_predict_start = _begin_loop

    def _end_epoch(self, *_: Any) -> None:
        self._phases.end("first_epoch")
        proportional = _memory.proportional_mb()
        if proportional is not None:
            self._pss = max(proportional, self._pss or 0.0)

    on_train_epoch_end = on_test_epoch_end = on_predict_epoch_end = _end_epoch

    def _heard(self, action: str, begins: bool) -> None:
        """An action of the trainer's profiler."""
        if self._stage == "fit":
            asked, step, loaders = "].train_dataloader_next", ".training_step", ".train_dataloader"
        else:
            asked, step, loaders = f"].{self._stage}_next", f".{self._stage}_step", f".{self._stage}_dataloader"
        if action.endswith(asked):
            if begins:
                self._batch_began = self._meter.now()
                if self._first:
                    self._phases.begin("first_batch_loading")
            else:
                self._batch_wait = self._meter.now() - (self._batch_began or 0.0)
                self._phases.end("first_batch_loading")
        elif self._batch_began is None:
            if action.endswith(loaders) and begins and self._stage != "fit":
                self._begin_data()
        elif self._first:
            if action.endswith(".batch_to_device"):
                (self._phases.begin if begins else self._phases.end)("first_batch_to_device")
            elif action.startswith("[Strategy]") and action.endswith(step):
                (self._phases.begin if begins else self._phases.end)("first_batch_forward")
                if not begins:
                    self._phases.begin("first_batch_postprocess")

    def _end_batch(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        now = self._meter.now()
        images = _images_of(batch)
        if self._first:
            self._phases.end("first_batch_postprocess")
            self._first, self._batch_size = False, images
        elif self._batch_began is not None:
            self._steps.append(now - self._batch_began)
            self._waits.append(self._batch_wait)
            self._images += images
        self._batch_began = None

    on_train_batch_end = on_test_batch_end = on_predict_batch_end = _end_batch

    def _end_loop(self, *_: Any) -> None:
        self._phases.end("full")

    on_train_end = on_test_end = on_predict_end = _end_loop

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if self._stage is not None:
            self._finish(trainer, None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self._stage is not None:
            self._finish(trainer, f"{type(exception).__name__}: {exception}")

    def _finish(self, trainer: Any, error: str | None) -> None:
        trainer.profiler = self._profiler
        for name in ("first_epoch", "full", "total"):
            self._phases.end(name)
        fit = self._stage == "fit"
        timers = self._phases.grouped()
        for name, called in (("total", "total_training" if fit else "total_inference"),
                             ("full", "full_training" if fit else "full_prediction")):  # fmt: skip
            if name in timers:
                timers[called] = timers.pop(name)
        if not fit:
            timers.pop("epoch_breakdown", None)
        seconds = sum(self._steps)
        batches = trainer.num_training_batches if fit else len(self._steps) + (not self._first)
        timers["dataset_info" if fit else "inference_info"] = {
            # Infinite where a loader has no length.
            "num_batches": batches if batches != float("inf") else None,
            "batch_size": self._batch_size,
            "throughput_samples_per_sec": self._images / seconds if seconds else None,
            "avg_time_per_batch": seconds / len(self._steps) if seconds else None,
        }
        timers["steady_state"] = {
            "steps": len(self._steps),
            "step_seconds": _summary(self._steps),
            "data_wait_seconds": _summary(self._waits),
            "data_wait_fraction": sum(self._waits) / seconds if seconds else None,
        }
        timers["peak_memory"] = self._meter.peaks(self._pss)
        timers["final_metrics"] = {name: float(value) for name, value in trainer.callback_metrics.items()}
        self.results = {
            "success": error is None,
            "error": error,
            "timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "device": str(trainer.strategy.root_device),
            "memory_of": self._meter.memory_of,
            "metrics": timers,
        }
        if self._path is not None and trainer.is_global_zero:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(self.results, indent=1) + "\n")
        self._begin_anew()


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
        return batch.shape[0] if batch.shape else 1
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    return next((_images_of(part) for part in parts), 0)


def _summary(seconds: array) -> dict[str, float] | None:
    if not seconds:
        return None
    import numpy

    p50, p95 = numpy.percentile(seconds, (50, 95))
    return {"mean": float(numpy.mean(seconds)), "p50": float(p50), "p95": float(p95)}


class WellreadDataModule(pl.LightningDataModule):
    """Loaders for training, validation and test of one set of images, as tensors.

    Args:
        dataset: a :class:`wellread.Dataset`, or the path of one.
        batch_size: images per batch.
        split: shares of training, validation and test, which add up to 1. Each image's part follows from a hash of
            its name alone, so it stays the same when images are added or put into another order or format.
        split_by: a column of the dataset, such as a plate or a donor, whose rows are kept together; or a list of one
            key per row of the dataset.
        split_seed: draws another split.
        train, val, test: the rows of each part, instead of a split; a part that is not named is empty.
        labels: a column of the dataset, or an array of one value per row: batches are (pixels, labels).
        train_choices: choices of :class:`wellread.DataLoader` for training alone, such as ``{"flip": True}``.
        choices: its choices for all parts, such as ``crop`` or ``num_workers``. Those of the order, such as
            ``weights`` or ``drop_last``, are for training alone.

    Training is shuffled anew in every epoch, in the same way whatever the number of workers. All ranks get equally
    many batches: of training by leaving out what does not divide, of validation and test with every image exactly
    once (their batches get another size where that is needed for it).

    A checkpoint holds where training is, to the batch. The run that goes on may have another number of workers or
    ranks, or another batch size.

    Raises:
        TypeError: choices of the order that are not in `train_choices`.
        ValueError: shares that are none, a part for training that is empty, fewer rows than ranks.
    """

    def __init__(
        self,
        dataset: Dataset | str | os.PathLike[str],
        batch_size: int = 16,
        *,
        split: Sequence[float] = (0.8, 0.1, 0.1),
        split_by: str | Sequence[Any] | None = None,
        split_seed: int = 0,
        train: Sequence[int] | None = None,
        val: Sequence[int] | None = None,
        test: Sequence[int] | None = None,
        labels: Any = None,
        train_choices: dict[str, Any] | None = None,
        **choices: Any,
    ):
        super().__init__()
        self._source = dataset
        self._batch_size = _check.whole("batch_size", batch_size, 1)
        self._shares = [
            _check.real(f"split[{i}]", share, 0, 1) for i, share in enumerate(_check.several("split", split))
        ]
        if len(self._shares) != 3 or abs(sum(self._shares) - 1) > 1e-6:
            raise ValueError("split must be three shares (training, validation, test) that add up to 1")
        self._split_by, self._split_seed = split_by, _check.whole("split_seed", split_seed)
        self._given = {
            part: None if rows is None else _check.wholes(part, rows)
            for part, rows in zip(_PARTS, (train, val, test), strict=True)
        }
        of_order = sorted(_ORDER.intersection(choices))
        if of_order:
            raise TypeError(f"{', '.join(of_order)}: choices of the order belong in train_choices")
        self._train_choices = dict(train_choices or {})
        self._choices = {**choices, "labels": labels}
        self._rows: dict[str, list[int]] | None = None
        self._train: DataLoader | None = None
        self._state: dict[str, Any] | None = None
        #: How long :meth:`setup` took, for :class:`PhaseTimer`.
        self.setup_timer: dict[str, float | None] | None = None

    def setup(self, stage: str) -> None:
        """Opens the set and splits it, once."""
        if self._rows is not None:
            return
        phases = _phases.Phases(_phases.Meter())
        phases.begin("setup")
        if not isinstance(self._source, Dataset):
            self._source = Dataset(self._source)
        if any(rows is not None for rows in self._given.values()):
            self._rows = {part: rows or [] for part, rows in self._given.items()}
        else:
            self._rows = self._split(self._source)
        phases.end("setup")
        self.setup_timer = phases.done["setup"]

    def _split(self, dataset: Dataset) -> dict[str, list[int]]:
        count, by = len(dataset), self._split_by
        if by is None:
            keys = [dataset.name(row) for row in range(count)]
        else:
            keys = dataset.column(by).tolist() if isinstance(by, str) else _check.several("split_by", by)
            if len(keys) != count:
                raise ValueError(f"split_by must be a column or one key per row: {len(keys)} for {count} images")
        ends = [self._shares[0], self._shares[0] + self._shares[1]]
        salt = self._split_seed.to_bytes(8, "little")
        parts: dict[str, list[int]] = {part: [] for part in _PARTS}
        for row, key in enumerate(keys):
            digest = hashlib.blake2b(str(key).encode(), digest_size=8, salt=salt).digest()
            at = int.from_bytes(digest, "little") / 2**64
            parts[_PARTS[sum(at >= end for end in ends)]].append(row)
        return parts

    @property
    def dataset(self) -> Dataset:
        """The set of images, once :meth:`setup` has run."""
        self.setup("")
        return self._source

    def rows(self, part: str) -> list[int]:
        """The dataset's rows of "train", "val" or "test"."""
        self.setup("")
        return list(self._rows[_check.word("part", part, _PARTS)])

    def train_dataloader(self) -> DataLoader:
        """The loader of the epochs from the trainer's current one on."""
        rows = self.rows("train")
        if not rows:
            raise ValueError(
                "no image is in the part for training: give it a greater share, or split_by= where images are alike "
                "in name"
            )
        rank, ranks = self._ranks()
        choices = {"shuffle": True, "rank": rank, "world_size": ranks, **self._choices, **self._train_choices}
        if any(name in choices and choices[name] is not None for name in ("order", "weights")):
            choices["shuffle"] = False
        self._train = DataLoader(self.dataset, self._batch_size, rows=rows, **choices)
        self._train.set_epoch(0 if self.trainer is None else self.trainer.current_epoch)
        if self._state is not None:
            self._train.load_state_dict(self._state)
            self._state = None
        return self._train

    def val_dataloader(self) -> DataLoader | list:
        """The loader of validation: every image once, in order."""
        return self._exact("val")

    def test_dataloader(self) -> DataLoader | list:
        """The loader of test: every image once, in order."""
        return self._exact("test")

    def predict_dataloader(self) -> DataLoader | list:
        """The loader of :meth:`test_dataloader`."""
        return self._exact("test")

    def _exact(self, part: str) -> DataLoader | list:
        rows = self.rows(part)
        if not rows:
            return []
        rank, ranks = self._ranks()
        if len(rows) < ranks:
            raise ValueError(f"{len(rows)} images are in the part {part!r}, fewer than the {ranks} ranks")
        # Ranks whose numbers of batches differ would wait for each other for ever where a model synchronises.
        batch_size = _equal_batches(self._batch_size, len(rows) // ranks, len(rows) % ranks != 0)
        mine = rows[rank::ranks]
        return DataLoader(self.dataset, batch_size, rows=mine, rank=0, world_size=1, **self._choices)

    def _ranks(self) -> tuple[int, int]:
        trainer = self.trainer
        return (0, 1) if trainer is None else (trainer.global_rank, trainer.world_size)

    def state_dict(self) -> dict[str, Any]:
        """Where training is, for the checkpoint."""
        return {} if self._train is None else {"train": self._train.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a checkpoint with the next :meth:`train_dataloader`."""
        self._state = state_dict.get("train")


def _equal_batches(batch_size: int, rows: int, some_have_more: bool) -> int:
    """The batch size nearest below that makes as many batches of `rows` as of one more; above where none does."""
    if not some_have_more or rows % batch_size:
        return batch_size
    sizes = [*range(batch_size - 1, 1, -1), *range(batch_size + 1, batch_size + 1 + rows)]
    return next(size for size in sizes if rows % size)
