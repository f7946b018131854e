"""Lightning: a DataModule over :class:`wellread.DataLoader`, and a callback that times the phases of a run.

Works with ``lightning`` and with the older package ``pytorch_lightning``, whichever the program has imported.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _check, _ranks, _rows, _views, _wrapped
from ._signature import ELSEWHERE, nearest, showing, unexpected
from ._tasks import phases
from ._tasks.callback import PhaseTimer, pl
from ._types import ImageChoices, OrderChoices, Paths, Rows, TrainChoices
from .dataset import Dataset
from .errors import Error
from .torch import DataLoader

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["PhaseTimer", "WellreadDataModule"]

_PARTS = ("train", "val", "test")
# Choices that say which rows come when.
_ORDER = {"shuffle", *OrderChoices.__annotations__}
# Those of them that would say the rows, which a part has already, and what serves beside its rows.
_OF_ROWS = {"rows": "", "sampler": ', and train_choices={"weights": ...} draws them as a WeightedRandomSampler does'}
# Those of them that may say other rows in each epoch.
_OF_DRAWS = {"order", "by", "weights", "block", "images_per_epoch"}
# Choices of what stands beside images.
_BESIDE = {"labels", "classes", "columns", "features", "indices"}
# Choices that a loader takes at all.
_KNOWN = {"as_", *TrainChoices.__annotations__}


class WellreadDataModule(pl.LightningDataModule):
    """Loaders for training, validation and test of one set of images, as tensors.

    Args:
        dataset: a :class:`wellread.Dataset`, or the path of one, or a list of paths.
        batch_size: images per batch.
        split: shares of training, validation and test, which add up to 1. Each image's part follows from a hash of
            its name alone. So it stays the same when images are added to the folder or table, or put into another
            order or format. It changes where sets are combined and the name of a set comes before its images' names,
            with a UserWarning: give `split_by` there. The parts are those of :meth:`wellread.Dataset.split`. Images
            of one well, which are alike, then lie in several parts, and validation and test look too good. Give
            `split_by` where the set has such groups.
        split_by: a column of the dataset, such as a well or a donor, whose rows are kept together. Or it is a list
            of one key per row of the dataset.
        split_seed: draws another split.
        train, val, test: the rows of each part, instead of a split; a part that is not named is empty. They are
            numbers, of which negative ones count from the end, or one truth value per row. No row of training may be
            in another part.
        labels: a column of the dataset, or an array of one value per row: batches are (pixels, labels).
        train_choices: choices of :class:`wellread.DataLoader` for training alone, such as ``{"flip": True}``.
        choices: its choices for all parts, such as ``crop`` or ``num_workers``. Those of the order, such as
            ``weights`` or ``drop_last``, are for training alone.

    Training is shuffled anew in every epoch, in the same way whatever the number of workers. With ``overfit_batches``
    of the trainer it takes the first batches in the order of the set, the same in every epoch. All ranks get equally
    many batches. Training leaves out images that do not divide. Validation and test take every image exactly once, if
    need be in batches of another size. With ``on_error="skip"`` these are the images that can be read and are like
    the part's first. Where no image of a batch can be read, the rank's last batch comes in several parts.

    A checkpoint holds the position of training, to the batch. One of the end of an epoch goes on with the next, and
    epochs are numbered as the trainer's. A resumed run may have another number of workers or
    ranks, or another batch size.

    Raises:
        TypeError: choices of the order outside of `train_choices`, rows or a sampler, or choices that a loader does
            not have.
        ValueError: invalid shares, ``split_by`` beside rows of parts, or an ``as_`` that is not "torch". Also rows
            of training in another part, an empty part for training, or fewer rows than ranks.
    """

    @showing(ImageChoices, of=DataLoader.__init__)
    def __init__(
        self,
        dataset: Dataset | Paths,
        batch_size: int = 16,
        *,
        split: Sequence[float] = (0.8, 0.1, 0.1),
        split_by: str | Sequence[Any] | None = None,
        split_seed: int = 0,
        train: Rows | None = None,
        val: Rows | None = None,
        test: Rows | None = None,
        labels: Any = None,
        train_choices: TrainChoices | None = None,
        **choices: Unpack[ImageChoices],
    ) -> None:
        super().__init__()
        if not isinstance(dataset, Dataset):
            _wrapped.check_is_path("dataset", dataset)
        # A path until it is opened.
        self._source: Any = dataset
        self._batch_size = _check.whole("batch_size", batch_size, 1)
        self._shares = [
            _check.real(f"split[{i}]", share, 0, 1) for i, share in enumerate(_check.several("split", split))
        ]
        if len(self._shares) != 3 or abs(sum(self._shares) - 1) > 1e-6:
            raise ValueError("split must be three shares (training, validation, test) that add up to 1")
        self._split_by, self._split_seed = split_by, _check.whole("split_seed", split_seed)
        self._given = {
            part: None if rows is None else _rows.listed(part, rows)
            for part, rows in zip(_PARTS, (train, val, test), strict=True)
        }
        if split_by is not None and any(rows is not None for rows in self._given.values()):
            raise ValueError(
                "split_by keeps rows of a split together, and train=, val= and test= name the rows of parts: give "
                "one of both (Dataset.split(by=...) makes such parts)"
            )
        unknown = [name for name in choices if name not in _KNOWN]
        if unknown:
            own = inspect.signature(WellreadDataModule).parameters
            raise unexpected("WellreadDataModule", unknown[0], {*_KNOWN, *own}, ELSEWHERE)
        self._train_choices = dict(train_choices or {})
        for name, instead in _OF_ROWS.items():
            if name in choices or name in self._train_choices:
                raise TypeError(f"{name}: the rows of each part are those of train=, val= and test={instead}")
        of_order = sorted(_ORDER.intersection(choices))
        if of_order:
            raise TypeError(f"{', '.join(of_order)}: choices of the order belong in train_choices")
        unknown = [name for name in self._train_choices if name not in _KNOWN]
        if unknown:
            near = nearest(unknown[0], _KNOWN, "{!r}")
            raise TypeError(f"train_choices has {unknown[0]!r}, which wellread.DataLoader does not take{near}")
        for given in (dict(choices), self._train_choices):
            library = given.get("as_", "torch")
            if library != "torch":
                raise ValueError(f'as_ must be "torch" here, not {library!r}')
        self._choices = {**choices, "labels": labels}
        self._rows: dict[str, list[int]] | None = None
        self._train: DataLoader[Any] | None = None
        self._state: dict[str, Any] | None = None
        #: How long :meth:`setup` took, for :class:`PhaseTimer`.
        self.setup_timer: dict[str, float | None] | None = None

    def setup(self, stage: str) -> None:
        """Opens the set and splits it, once."""
        if self._rows is not None:
            return
        timer = phases.Phases(phases.Meter())
        timer.begin("setup")
        if not isinstance(self._source, Dataset):
            self._source = Dataset(self._source)
        if any(rows is not None for rows in self._given.values()):
            count = len(self._source)
            rows = {part: _rows.chosen(part, given or (), count) for part, given in self._given.items()}
            _check_parts(rows)
            self._rows = rows
        else:
            self._rows = self._split(self._source)
        timer.end("setup")
        self.setup_timer = timer.done["setup"]

    def _split(self, dataset: Dataset) -> dict[str, list[int]]:
        count, by = len(dataset), self._split_by
        if by is not None and not isinstance(by, str):
            by = _check.several("split_by", by)
            if len(by) != count:
                raise ValueError(f"split_by must be a column or one key per row: {len(by)} for {dataset._images()}")
        # A share of 0 is a part without rows. Thirds as 0.333333 are thirds: no row is in no part.
        total = sum(self._shares)
        scale = 1 if abs(total - 1) < 1e-9 else 1 / total
        named = [(part, share * scale) for part, share in zip(_PARTS, self._shares, strict=True) if share > 0]
        rows = dataset._split([share for _, share in named], "split_by", by, self._split_seed)
        _views.tell_of_split(dataset, [(repr(part), share) for part, share in named], rows, "split_by", by)
        found = {part: of for (part, _), of in zip(named, rows, strict=True)}
        return {part: found.get(part, []) for part in _PARTS}

    @property
    def dataset(self) -> Dataset:
        """The set of images, once :meth:`setup` has run."""
        self.setup("")
        return self._source

    def rows(self, part: str) -> list[int]:
        """The dataset's rows of "train", "val" or "test"."""
        self.setup("")
        assert self._rows is not None, "set-up splits the rows"
        return list(self._rows[_check.word("part", part, _PARTS)])

    def train_dataloader(self) -> DataLoader[Any]:
        """The loader of the epochs from the trainer's current one on."""
        rows = self.rows("train")
        if not rows:
            raise ValueError(
                "no image is in the part for training: give it a greater share, or split_by= where images are alike "
                "in name"
            )
        choices = {**self._choices, **self._train_choices}
        # What says another order is none of a shuffle, unless the user asks for one: the loader refuses both.
        choices.setdefault("shuffle", all(choices.get(name) is None for name in ("order", "weights")))
        if getattr(self.trainer, "overfit_batches", 0) > 0:
            choices = _same_in_each_epoch(choices)
        if self.trainer is not None and not {"shard", "rank", "world_size"}.intersection(choices):
            choices["shard"] = self._ranks()
        elif self.trainer is not None and choices.get("shard") == "local":
            rank, ranks = self._ranks()
            nodes = self.trainer.num_nodes
            choices = {"rank": rank, "world_size": ranks, "nodes": nodes, "node": self.trainer.node_rank, **choices}
        self._train = DataLoader(self.dataset, self._batch_size, rows=rows, **choices)
        self._train.set_epoch(0 if self.trainer is None else self.trainer.current_epoch)
        if self._state is not None:
            self._train.load_state_dict(self._state)
            self._state = None
        return self._train

    def val_dataloader(self) -> DataLoader[Any] | list[Any]:
        """The loader of validation: every image once, in order."""
        return self._exact("val")

    def test_dataloader(self) -> DataLoader[Any] | list[Any]:
        """The loader of test: every image once, in order."""
        return self._exact("test")

    def predict_dataloader(self) -> DataLoader[Any] | list[Any]:
        """The loader of :meth:`test_dataloader`."""
        return self._exact("test")

    def _exact(self, part: str) -> DataLoader[Any] | list[Any]:
        rows = self.rows(part)
        if not rows:
            return []
        rank, ranks = self._ranks()
        loader: type[DataLoader[Any]] = DataLoader
        if ranks > 1 and self._choices.get("on_error") == "skip":
            loader, rows = _EqualBatches, self._alike(part, rows)
        if len(rows) < ranks:
            raise ValueError(f"{len(rows)} images are in the part {part!r}, fewer than the {ranks} ranks")
        # Ranks whose numbers of batches differ would wait for each other for ever where a model synchronises.
        # That is a matter of rows, each of which becomes some images.
        crops = _check.whole("crops_per_image", self._choices.get("crops_per_image", 1), 1)
        batch_size = self._batch_size
        if batch_size % crops == 0:
            batch_size = crops * _equal_batches(batch_size // crops, len(rows) // ranks, len(rows) % ranks != 0)
        mine = rows[rank::ranks]
        return loader(self.dataset, batch_size, rows=mine, shard=False, **self._choices)

    def _alike(self, part: str, rows: list[int]) -> list[int]:
        """The rows whose images are like the first that can be read, the same on each rank. No pixels are read."""
        choices = {name: choice for name, choice in self._choices.items() if name not in _BESIDE}
        batch_size = choices.get("crops_per_image", 1)
        first: tuple[str, Any] | None = None
        # By shape and type of stored images.
        fit: dict[tuple[Any, ...], bool] = {}
        alike = []
        for row in rows:
            try:
                shape, dtype = self.dataset._native.info(row)
            except Error:
                continue
            kind = (dtype, *shape)
            if kind not in fit:
                try:
                    one = DataLoader(self.dataset, batch_size, rows=[row], shard=False, **choices)
                    made = dtype, one._built.arrays
                    first = first or made
                    fit[kind] = made == first
                except Error:
                    fit[kind] = False
            if fit[kind]:
                alike.append(row)
        if len(alike) < len(rows):
            logging.getLogger("wellread").warning(
                "%d of %d images of the part %r are left out: they cannot be read, or are not like the others",
                len(rows) - len(alike),
                len(rows),
                part,
            )
        # Where none is, the loader says why.
        return alike or rows

    def _ranks(self) -> tuple[int, int]:
        trainer = self.trainer
        return _ranks.now(None).ranks if trainer is None else (trainer.global_rank, trainer.world_size)

    def __repr__(self) -> str:
        parts = "not set up"
        if self._rows is not None:
            parts = ", ".join(f"{_check.counted(len(rows), 'row')} in {part!r}" for part, rows in self._rows.items())
        return f"wellread.lightning.WellreadDataModule({self._source!r}: {parts})"

    def __str__(self) -> str:
        # Lightning's own takes every loader but torch's for a list of loaders: it would read an epoch, and fail.
        return repr(self)

    def state_dict(self) -> dict[str, Any]:
        """The position of training, for the checkpoint."""
        if self._state is not None:
            # Loaded, and no loader has gone on from it yet: a checkpoint of a run that stops before that.
            return {"train": self._state}
        return {} if self._train is None else {"train": self._train.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a checkpoint with the next :meth:`train_dataloader`."""
        self._state = state_dict.get("train")


def _same_in_each_epoch(choices: dict[str, Any]) -> dict[str, Any]:
    """The choices for the rows in their order. Lightning itself changes the order of torch's loaders alone."""
    plain = {name: choice for name, choice in choices.items() if name not in _OF_DRAWS}
    # Weights may be an array, of which no comparison is a truth value.
    if choices.get("order") not in (None, "sequential") or choices.get("weights") is not None:
        logging.getLogger("wellread").warning(
            "overfit_batches takes the first batches in the order of the set: the order of train_choices is left out"
        )
    return {**plain, "shuffle": False}


def _check_parts(rows: dict[str, list[int]]) -> None:
    """Raises ValueError where rows of training are in another part, too: what is measured there would be too good."""
    train = set(rows["train"])
    for part in _PARTS[1:]:
        shared = train.intersection(rows[part])
        if shared:
            many = "1 row is" if len(shared) == 1 else f"{len(shared)} rows are"
            raise ValueError(
                f"{many} in both train and {part}, the first is row {min(shared)}: leave them out of one (split= or "
                "Dataset.split makes parts without shared rows)"
            )


class _EqualBatches(DataLoader[Any]):
    """The loader of one of several ranks, which deliver as many batches each. Where no image of a batch can be read,
    the last one comes in parts."""

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        count, held = 0, None
        for batch in super().__iter__():
            if count:
                yield held
            count, held = count + 1, batch
        missing = len(self) - count
        if missing <= 0:
            yield held
            return
        crops = self._arguments["crops_per_image"]
        rows = 0 if held is None or self._on_batch is not None else _images(held) // crops
        if rows <= missing:
            raise _ranks.wrong(
                f"{missing} of {len(self)} batches have no readable image, so this rank would have fewer than the "
                f"others and leave them waiting; the first: {self.skipped[0][1]}",
                "leave those rows out of the set, or take larger batches",
            )
        ends = [rows * part // (missing + 1) for part in range(missing + 2)]
        for start, end in zip(ends, ends[1:], strict=False):
            yield _cut(held, start, end, rows)


def _images(batch: Any) -> int:
    while isinstance(batch, (dict, tuple)):
        batch = next(iter(batch.values() if isinstance(batch, dict) else batch))
    return len(batch)


def _cut(batch: Any, start: int, end: int, rows: int) -> Any:
    """Rows `start` to `end` of a batch of so many rows, each of which is some images."""
    if isinstance(batch, dict):
        return {name: _cut(part, start, end, rows) for name, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_cut(part, start, end, rows) for part in batch)
    each = len(batch) // rows
    return batch[start * each : end * each]


def _equal_batches(batch_size: int, rows: int, some_have_more: bool) -> int:
    """The batch size nearest below that makes as many batches of `rows` as of one more; above where none does."""
    if not some_have_more or rows % batch_size:
        return batch_size
    sizes = [*range(batch_size - 1, 1, -1), *range(batch_size + 1, batch_size + 1 + rows)]
    return next(size for size in sizes if rows % size)
