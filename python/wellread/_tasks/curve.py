"""The loss curve of a training run, by what its module logs: a row per epoch."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COLUMNS = ("epoch", "step", "train_loss", "val_loss", "val_dice")
_OF_TRAINING = ("train", "training", "fit")
_OF_VALIDATION = ("val", "valid", "validation")


class Curve:
    """Appends rows to a CSV file: `epoch,step,train_loss,val_loss,val_dice`, empty where nothing was logged."""

    def __init__(self, path: Path):
        self.path = path

    def row(self, epoch: int, step: int, metrics: Mapping[str, Any], validated: bool) -> bool:
        """Adds an epoch, counted from 0, and its last step; says whether there was a loss to add.

        Values that validation logs count only in an epoch that was `validated`: the trainer keeps them longer.
        """
        train = _find(metrics, _OF_TRAINING, "loss")
        if train is None:
            train = metrics.get("loss")
        val = _find(metrics, _OF_VALIDATION, "loss") if validated else None
        dice = _find(metrics, _OF_VALIDATION, "dice") if validated else None
        if train is None and val is None:
            return False
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(_COLUMNS)
            writer.writerow([epoch, step, *("" if v is None else f"{float(v):.9g}" for v in (train, val, dice))])
        return True


def _find(metrics: Mapping[str, Any], stages: tuple[str, ...], what: str) -> Any:
    """A stage's quantity under one of the usual names; its mean over the epoch before its last value."""
    for stage in stages:
        for between in "/_.":
            for name in (f"{stage}{between}{what}_epoch", f"{stage}{between}{what}"):
                if name in metrics:
                    return metrics[name]
    return None
