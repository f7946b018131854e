"""Epochs of batches, read and transformed by threads outside of Python.

Long because the one class here takes fifty options, each of which is said.
"""

from __future__ import annotations

import copy
import json
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from . import _check, _native, _options, _parts, _ranks, _recipes, _rows, _targets
from ._iteration import B_co, Core, Iterator
from ._types import (
    As,
    Dtype,
    Filter,
    Flip,
    Illumination,
    LoaderChoices,
    Normalize,
    OnError,
    Order,
    Pairing,
    Path,
    PlainChoices,
    Scale,
    Shard,
    Size,
    TargetKind,
    Transform,
    Turns,
    Uneven,
    Views,
)
from .dataset import Dataset
from .errors import ChoiceError, Error

if TYPE_CHECKING:
    import jax
    import torch
    from numpy.typing import NDArray
    from typing_extensions import Self, Unpack

__all__ = ["DataLoader"]

_OfRanks = _native.Loader


class DataLoader(Generic[B_co]):
    """Delivers a set of images in batches, epoch after epoch.

    Threads decode, crop, scale and batch outside of the interpreter's lock, straight into the memory that the arrays
    show; it goes back to the loader when the last view of it is gone. Batches may be kept, sliced, changed in place
    and outlive the loader. The same seed gives the same batches, to the bit, whatever the number of workers.

    Args:
        dataset: a :class:`Dataset`, or the path of one.
        batch_size: images per batch.
        shuffle: every row once, in a random order that differs from epoch to epoch.
        seed: seed of the order and of all random draws: a whole number from 0 to 2**64 - 1.
        num_workers: threads that read ahead; 0 reads each batch when it is asked for; unless given, one per core,
            eight at most.
        as_: "numpy", "torch" or "jax": whose arrays batches are; "batch" for :class:`wellread.Batch`.
        dtype: "float32", "float16", "bfloat16" or "stored" (uint16 stays uint16).
        scale: "unit" takes the range of the stored type to [0, 1]; a number is multiplied by; (low, high) takes a
            range of stored values (one for all channels or lists of one per channel) to [0, 1]; None leaves values
            as they are; "device" delivers what "unit" would, but moves the stored type and scales it there (torch and
            JAX). "auto" is "unit", and None with dtype="stored".
        percentiles: (low, high) from 0 to 100: scales each channel of each image to [0, 1] by its percentiles. NaN
            and infinite values do not count; infinite ones are clipped to 0 and 1.
        normalize: (mean, std) of the scaled values, numbers or lists of one per channel; "image" for each channel of
            each image by its own; or the file that ``wellread stats --out`` wrote, with ``--by Metadata_Plate`` each
            image by the numbers of its plate. Those go by the names of channels where both have names; a name that
            the file lacks is an error, and images whose channels are in another order follow the first.
        channels: indices or names of the channels to take, in this order. A name is looked up in each image, which
            may have its channels in another order; one that lacks it is an error.
        crop, random_crop: (height, width) or one number: the centre, or a random part.
        crop_square: the square in the middle whose side is this share of the shorter side, from 0 to 1.
        random_resized_crop: (height, width): a part of random size and proportion, resized.
        flip: probability, or (left to right, top to bottom), or True for one half each, or "horizontal", "vertical".
        turns: "none", "half" (0 or 180 degrees), "quarter", or "fitting" (quarter where the images are square).
        rotate: rotation by a random angle up to so many degrees either way, bilinear, the edge mirrored.
        resize: (height, width) of all planes; ``resize_filter`` is "area" (unless given), "bilinear" or "antialias".
        max_projection: reduces depth to its maximum.
        brightness, contrast, gamma: random changes of intensity, 0 for none; ``per_channel`` draws anew for each.
        photon_noise, gaussian_noise: random noise, in units of scaled values.
        channel_dropout: probability of each channel of becoming 0.
        illumination: file of the flat field, or (flat, dark), that images are corrected by; a pattern such as
            "illum/{Metadata_Plate}/{Metadata_Plate}_Illum{channel}.npy" for one of each plate and channel: names of
            columns, ``{channel}`` for the channel's name, ``{channel:1}`` for its number from 1. Or a dictionary of
            these by the names of channels, ``{"DNA": "dna.npy", "ER": "er.npy"}``, in whichever order images have
            them.
        crops_per_image: so many crops of each image, one after the other in a batch, from one read.
        targets: a second set, or its path: masks, another stain. Batches are (pixels, targets). Crops, flips, turns,
            rotations and sizes are those of the image; changes of intensity are the image's alone. Which target is of
            which image is told by names, also by the numbers in them where both sets have the same ones, or by order
            where the sets are as large and names agree in part (:attr:`pairing`). Numbers that contradict the order
            are an error.
        target_kind: "labels" takes the nearest pixel where targets are resized or rotated, and delivers them as
            stored; "image" treats them as images. Unless given, whole numbers are labels.
        target_channels, target_dtype, target_scale: as ``channels``, ``dtype`` and ``scale``, of targets; labels are
            not scaled.
        pairing: "order" takes targets in their order, whatever they are called; "names" by names and numbers alone.
        views: so many views of each row, each with draws of its own, from one read: batches are tuples of arrays. Or
            a list of recipes, or a dictionary of recipes or (how many, recipe) by name: a recipe is a dictionary of
            choices that replace the loader's, such as ``{"random_resized_crop": 96, "scale_range": (0.05, 0.4)}``.
            With targets each view has its own.
        order: "sequential", "shuffle", "block" (nearly random, few places at a time), "grouped" (rows of a group
            together), "weighted" or "balanced" (classes in equal shares).
        by: for "grouped" and "balanced": a column, a tuple of columns, or a list of one key per row of the dataset.
            For "block": what a block is, where blocks differ in size; of cells (:meth:`wellread.Dataset.cells`) those
            of an image unless said otherwise.
        weights: for "weighted": one number per row of the dataset.
        block: for "block": (rows of a block, blocks that are mixed); the second alone where blocks are groups.
        images_per_epoch: for "weighted" and "balanced", unless as many as there are rows, also of weight 0.
        rows: only these rows of the dataset, in this order where the order is sequential: numbers, which count from
            the end where they are negative, or one truth value per row; ``sampler`` is the same under torch's name.
        shard: this process's part of the images, where several processes divide them. "auto" finds it when it is
            needed, at each iteration anew: the rank and number of ranks of torch.distributed or jax.distributed where
            one is initialised, else ``RANK`` and ``WORLD_SIZE``, else those of the step that Slurm's srun started,
            else all images. (rank, world_size), or a process group of torch, names it; False, or None, delivers all
            images to every process. With a ``sampler`` that divides rows itself (torch's DistributedSampler) "auto"
            divides no further.
        rank, world_size: the same as shard=(rank, world_size).
        uneven: "drop" leaves out what does not divide among the ranks, "pad" repeats some images.
        drop_last: leaves out a last batch that is not full.
        prefetch: batches read ahead at most; twice the number of workers, and 4 at least, unless given.
        memory: bytes that the loader holds at most, or "2GiB".
        on_error: "raise", or "skip" to leave out images that cannot be read (:attr:`skipped`). A batch of which none
            is left is not delivered; with several ranks, which must have equally many batches, it is an error.
        labels: a column of the dataset, or an array of one value per row, which is copied: batches are
            (pixels, labels). Of texts labels are a list, unless ``classes`` makes numbers of them.
        classes: True makes labels the numbers (int64) of their classes, which are the sorted different values of all
            rows of the dataset, whichever of them ``rows`` takes; a list says which classes there are, in their
            order. :attr:`classes` tells them, :attr:`class_to_idx` their numbers.
        columns: several columns: batches are (pixels, {name: values}).
        features: columns of numbers, or a pattern of their names such as "Cells_*", or several: batches are (pixels,
            features), a float32 array (N, number of columns) with NaN for what is missing. :attr:`feature_names` are
            its columns.
        indices: batches have the dataset's row of each image (int64).
        as_dict: batches are dictionaries of their parts, {"pixels": …, "labels": …}. Unless so, a batch of several
            parts is a tuple of those that were asked for: (pixels, targets, labels, columns, features, indices).
        keys: what the parts are called in the dictionary that a batch is: {"pixels": "image", "labels": "class"}, or
            one name per part in their order, such as ("image", "mask").
        transform: a callable for each image (an array of the chosen library, without the batch's axis), whose results
            are stacked, so it must return arrays of one shape: torchvision, MONAI, your own. Runs in the thread that
            iterates. With targets it is given (image, target) and returns both, or a dictionary by the first two of
            ``keys``; with views, one image of each.
        batch_transform: a callable for each batch, whose result is the batch.
        pin_memory: decodes into page-locked memory (torch with CUDA), for copies that do not wait.
        device: where batches are moved: a torch device, the next batch under way while this one is used, or a JAX
            one.
        epoch: the epoch that the first iteration runs.

    Raises:
        TypeError, ValueError: an argument of a wrong type, or one that makes no sense or does not fit the images; the
            message names it.
        KeyError: there is no such column.
        wellread.Error: the set cannot be read.

    A batch of N images has the shape (N, C, Y, X), or (N, T, C, Z, Y, X) where images have more than one time point
    or depth. Iterations are ordinary iterators: several may run at once, breaking off stops their threads. Ctrl-C is
    answered while waiting for a batch. :meth:`state_dict` and :meth:`load_state_dict` resume in the middle of an
    epoch. ``with`` closes a loader (:meth:`close`).

    To type checkers a loader is one of its batches: ``DataLoader[torch.Tensor]``, ``DataLoader[tuple[torch.Tensor,
    Any]]`` with labels alone, ``DataLoader[dict[str, Any]]``, and ``DataLoader[Any]`` of other parts.
    """

    @overload
    def __init__(
        self: DataLoader[NDArray[Any]],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["numpy"] = "numpy",
        labels: None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[NDArray[Any], Any]],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["numpy"] = "numpy",
        labels: Any,
        classes: bool | Sequence[Any] | None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[torch.Tensor],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["torch"],
        labels: None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[torch.Tensor, Any]],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["torch"],
        labels: Any,
        classes: bool | Sequence[Any] | None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[jax.Array],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"],
        labels: None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[jax.Array, Any]],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"],
        labels: Any,
        classes: bool | Sequence[Any] | None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[_native.Batch],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["batch"],
        labels: None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[_native.Batch, Any]],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["batch"],
        labels: Any,
        classes: bool | Sequence[Any] | None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[dict[str, Any]],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: As = "numpy",
        as_dict: Literal[True],
        labels: Any = None,
        classes: bool | Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        features: str | Sequence[str] | None = None,
        indices: bool = False,
        keys: Mapping[str, str] | Sequence[str] | None = None,
        batch_transform: Transform | None = None,
        **choices: Unpack[PlainChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: As = "numpy",
        **choices: Unpack[LoaderChoices],
    ) -> None: ...
    def __init__(
        self,
        dataset: Dataset | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        seed: int = 0,
        num_workers: int | None = None,
        as_: As = "numpy",
        dtype: Dtype = "float32",
        scale: Scale = "auto",
        percentiles: Sequence[float] | None = None,
        normalize: Normalize = None,
        channels: Sequence[int] | Sequence[str] | None = None,
        crop: Size | None = None,
        crop_square: float | None = None,
        random_crop: Size | None = None,
        random_resized_crop: Size | None = None,
        flip: Flip = False,
        turns: Turns = "none",
        rotate: float = 0.0,
        resize: Size | None = None,
        resize_filter: Filter | None = None,
        max_projection: bool = False,
        brightness: float = 0.0,
        contrast: float = 0.0,
        gamma: float = 0.0,
        per_channel: bool = False,
        photon_noise: float = 0.0,
        gaussian_noise: float = 0.0,
        channel_dropout: float = 0.0,
        illumination: Illumination | None = None,
        crops_per_image: int = 1,
        targets: Dataset | Path | None = None,
        target_kind: TargetKind | None = None,
        target_channels: Sequence[int] | Sequence[str] | None = None,
        target_dtype: Dtype | None = None,
        target_scale: Scale = "auto",
        pairing: Pairing | None = None,
        views: Views = None,
        order: Order | None = None,
        by: str | Sequence[Any] | None = None,
        weights: Iterable[float] | None = None,
        block: int | Sequence[int] | None = None,
        images_per_epoch: int | None = None,
        rows: Iterable[int] | None = None,
        sampler: Iterable[int] | None = None,
        shard: Shard = "auto",
        rank: int | None = None,
        world_size: int | None = None,
        uneven: Uneven = "drop",
        drop_last: bool = False,
        prefetch: int | None = None,
        memory: int | str | None = None,
        on_error: OnError = "raise",
        labels: Any = None,
        classes: bool | Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        features: str | Sequence[str] | None = None,
        indices: bool = False,
        as_dict: bool = False,
        keys: Mapping[str, str] | Sequence[str] | None = None,
        transform: Transform | None = None,
        batch_transform: Transform | None = None,
        pin_memory: bool = False,
        device: Any = None,
        epoch: int = 0,
    ) -> None:
        self._arguments = {k: v for k, v in locals().items() if k not in ("self", "dataset")}
        # A set that is opened here is closed with the loader.
        self._owns_dataset = isinstance(dataset, (str, os.PathLike))
        if isinstance(dataset, (str, os.PathLike)):
            dataset = Dataset(dataset)
        if not isinstance(dataset, Dataset):
            raise TypeError(f"dataset must be a wellread.Dataset or a path, not {type(dataset).__name__}")
        self._dataset = dataset
        self._owns_targets = isinstance(targets, (str, os.PathLike))
        if isinstance(targets, (str, os.PathLike)):
            targets = self._arguments["targets"] = Dataset(targets)
        if targets is not None and not isinstance(targets, Dataset):
            raise TypeError(f"targets must be a wellread.Dataset or a path, not {type(targets).__name__}")
        self._targets = targets
        self._as = _check.word("as_", as_, _options.AS)
        kind = _check.word("dtype", dtype, _options.DTYPES)
        scale, self._scales_later = _options.scale(scale, kind == "stored")
        if self._scales_later:
            if self._as not in ("torch", "jax"):
                raise ValueError('scale="device" needs as_="torch" or as_="jax"')
            if kind not in ("float32", "stored"):
                raise ValueError('scale="device" delivers float32: leave dtype out')
            _options.check_is_left('scale="device"', _options.COMPUTING, self._arguments)
            kind = "stored"
        if percentiles is not None:
            if isinstance(scale, (tuple, float)):
                raise ValueError("percentiles and scale exclude each other")
            scale = ("percentiles", *_check.pair("percentiles", percentiles, 0, 100))
        if sum(crop_ is not None for crop_ in (crop, crop_square, random_crop, random_resized_crop)) > 1:
            raise ValueError("only one of crop, crop_square, random_crop and random_resized_crop can be given")
        resized = _check.size("random_resized_crop", random_resized_crop)
        if resized and resize is not None:
            raise ValueError("random_resized_crop is a resize already: leave resize out")
        if resize_filter is not None and resize is None:
            raise ValueError("resize_filter belongs to resize")
        if rows is not None and sampler is not None:
            raise ValueError("rows and sampler are the same: give one of them")
        self._named = _ranks.given(shard, rank, world_size, sampler)
        if self._named is not None:
            # What is known already contradicts it at once.
            _ranks.now(self._named)
        self._inherited: _ranks.Inherited | None = None
        self._arguments |= {"shard": self._named or "auto", "rank": None, "world_size": None}
        if self._as == "batch" and (transform is not None or batch_transform is not None):
            raise ValueError('transform and batch_transform need arrays: as_ must not be "batch"')
        for name, call in (("transform", transform), ("batch_transform", batch_transform)):
            if call is not None and not callable(call):
                raise TypeError(f"{name} must be callable, not {type(call).__name__}")
        name = "rows" if sampler is None else "sampler"
        chosen = rows if sampler is None else sampler
        order_choice = _options.order(
            order,
            _check.truth("shuffle", shuffle),
            by,
            weights,
            block,
            images_per_epoch,
            dataset._native.are_cut(),
        )
        self._pins = _check.truth("pin_memory", pin_memory)
        if (self._pins or device is not None) and self._as not in ("torch", "jax"):
            raise ValueError(f'{"pin_memory" if self._pins else "device"} needs as_="torch", not {self._as!r}')
        if self._pins and self._as == "jax":
            raise ValueError('pin_memory needs as_="torch": JAX takes no page-locked memory of others')
        if device is not None:
            from . import _device

            device = _device.usable(self._as, device)
        choices: dict[str, Any] = {
            "batch_size": _check.whole("batch_size", batch_size, 1),
            "workers": _options.threads(num_workers),
            "prefetch": None if prefetch is None else _check.whole("prefetch", prefetch, 1, 2**20),
            "memory": _options.memory(memory),
            "lent": None,
            "seed": _check.whole("seed", seed, 0, 2**64 - 1),
            "epoch": _check.whole("epoch", epoch, 0, 2**64 - 2),
            "drop_last": _check.truth("drop_last", drop_last),
            "rank": 0,
            "world_size": 1,
            "uneven": _check.word("uneven", uneven, _options.UNEVEN),
            "skip": _check.word("on_error", on_error, _options.ON_ERROR) == "skip",
            "rows": None if chosen is None else _rows.chosen(name, chosen, len(dataset)),
            "crops_per_image": _check.whole("crops_per_image", crops_per_image, 1),
            "dtype": kind,
            "order": order_choice,
            "transform": {
                "project": _check.truth("max_projection", max_projection),
                **_options.named_channels(channels, dataset),
                "crop": _check.size("crop", crop),
                "crop_square": None if crop_square is None else _check.real("crop_square", crop_square, 0, 1),
                "random_crop": _check.size("random_crop", random_crop),
                "random_resized": ([0.08, 1.0], [3 / 4, 4 / 3]) if resized else None,
                "illumination": _options.fields(illumination),
                "flip": _options.flip(flip),
                "turns": _check.word("turns", turns, _options.TURNS),
                "resize": resized or _check.size("resize", resize),
                "resize_filter": "antialias"
                if resized
                else "area"
                if resize_filter is None
                else _check.word("resize_filter", resize_filter, _options.FILTERS),
                "rotate": _check.real("rotate", rotate, 0, 180),
                "scale": scale,
                "jitter": (
                    _check.real("brightness", brightness, 0, 1),
                    _check.real("contrast", contrast, 0, 1),
                    _check.real("gamma", gamma, 0),
                    _check.truth("per_channel", per_channel),
                ),
                "noise": (
                    _check.real("photon_noise", photon_noise, 0),
                    _check.real("gaussian_noise", gaussian_noise, 0),
                ),
                "normalize": _options.normalize(normalize),
                "channel_dropout": _check.real("channel_dropout", channel_dropout, 0, 1),
            },
        }
        *strengths, each = choices["transform"]["jitter"]
        if each and not any(strengths):
            raise ValueError("per_channel belongs to brightness, contrast and gamma: give one of them")
        wanted = None if views is None else _recipes.Views(views, choices["transform"])
        choices["views"], choices["recipes"] = (1, None) if wanted is None else (wanted.same, wanted.recipes)
        choices["targets"] = _targets.chosen(
            targets, target_kind, target_channels, target_dtype, target_scale, pairing, self._scales_later
        )
        self._lender = None
        if self._pins:
            from . import _device

            self._lender = _device.Lender()
            choices["lent"] = self._lender.native
        # Ranks that are found are those of the first iteration: what is wrong with them is told there.
        ranks = self._named or _ranks.ALONE
        self._choices = choices | {"rank": ranks[0], "world_size": ranks[1]}
        # The native loader, by its rank and number of ranks.
        self._made = {(ranks[0], ranks[1]): self._new(self._choices)}
        if self._scales_later and self._built.has_mask:
            raise ValueError('scale="device" would scale the mask of cells too: scale on the host, or leave it out')
        self._device = device
        self._dtype = self._built.dtype
        beside = _parts.Beside(
            dataset,
            self._as,
            choices["rows"],
            labels=labels,
            classes=classes,
            columns=columns,
            features=features,
            indices=indices,
        )
        of_images = ["pixels"] if targets is None else ["pixels", "targets"]
        names = _parts.names_of([*of_images, *beside.parts], as_dict, keys)
        self._compose = None if names is None else _parts.composer(names)
        self._arrangement: _targets.Arrangement | None = None
        if wanted is not None or targets is not None:
            dtypes = [dtype for _, dtype in self._built.arrays]
            self._arrangement = _targets.Arrangement(dtypes, wanted, targets is not None, names)
            self._compose = self._arrangement.composer(names) or self._compose
        self._beside = beside if beside.parts else None
        self._classes, self._features = beside.classes, beside.given.get("features")
        self._keep(name, choices, beside.given | ({} if keys is None else {"keys": names}))
        if views is not None:
            # Lists and dictionaries of the caller.
            self._arguments["views"] = copy.deepcopy(views)
        self._finish = self._finisher(transform, batch_transform)
        # The iterations that there are, which closing the loader ends.
        self._running: weakref.WeakSet[Iterator[B_co]] = weakref.WeakSet()
        # Where it was when it was closed, and what had been skipped.
        self._ended: tuple[dict[str, Any], list[tuple[int, str]]] | None = None
        # The iteration begun last, and one that a state was loaded for.
        self._latest: Core | None = None
        self._resumed: Iterator[B_co] | None = None
        self._resumed_from: str | None = None

    @property
    def _native(self) -> _OfRanks:
        """The native loader of this process's ranks, which may have changed since it was used last: a process group
        was started, or ended."""
        return self._of(self._found().ranks)

    def _found(self) -> _ranks.Found:
        """This process's ranks at this moment."""
        return _ranks.now(self._named, self._inherited)

    def _tell(self, found: _ranks.Found) -> None:
        """Logs what the user should know of these ranks. A shuffled epoch leaves out other images than the last."""
        _ranks.tell(found)
        choices = self._choices
        if choices["uneven"] == "drop" and choices["order"]["kind"] == "sequential":
            rows = choices["rows"]
            _ranks.tell_left_out(len(self._dataset if rows is None else rows), found)

    @property
    def _built(self) -> _OfRanks:
        """The native loader used last, for what is the same for all ranks."""
        for loader in self._made.values():
            return loader
        raise ChoiceError("this loader was closed: make a new one")

    def _new(self, choices: dict[str, Any]) -> _OfRanks:
        targets = None if self._targets is None else self._targets._native
        return _OfRanks(self._dataset._native, choices, targets)

    def _of(self, ranks: _ranks.Ranks) -> _OfRanks:
        made = self._made
        loader = made.get(ranks)
        if loader is None:
            epoch = self._built.epoch
            fresh = self._new(self._choices | {"rank": ranks[0], "world_size": ranks[1]})
            fresh.set_epoch(epoch)
            # Of several threads that come here at once, all take the first one's.
            loader = made.setdefault(ranks, fresh)
            self._made = {ranks: loader}
        return loader

    def _keep(self, rows: str, choices: dict[str, Any], beside: dict[str, Any]) -> None:
        """Takes what was checked, and the caller cannot change, in place of lists and arrays that were given."""
        kept = {rows: choices["rows"], "weights": choices["order"]["weights"], "by": choices["order"]["keys"]}
        kept |= beside
        self._arguments |= {name: value for name, value in kept.items() if value is not None}

    def _finisher(
        self, transform: Transform | None, batch_transform: Transform | None
    ) -> Callable[[Any, list[int]], Any] | None:
        """What happens to a batch, of these rows, after it is an array where it is to be: None for nothing."""
        steps: list[Callable[[Any, list[int]], Any]] = []
        if self._scales_later:
            from . import _device

            scaled = _device.scaler(self._as, *self._built.unit_scale)
            several = self._arrangement
            steps.append((lambda batch, _: scaled(batch)) if several is None else several.of_images(scaled))
        if self._arrangement is not None:
            steps.append(self._arrangement.arrange)
        if transform is not None or batch_transform is not None:
            from . import _user

            on_images = _user.on_images if self._arrangement is None else _user.on_samples
            if transform is not None:
                steps.append(on_images(transform, self._as))
            if batch_transform is not None:
                steps.append(_user.on_batch(batch_transform))
            if self._arrangement is not None:
                steps.append(self._arrangement.checked)
        if not steps:
            return None

        def finish(batch: Any, rows: list[int]) -> Any:
            for step in steps:
                batch = step(batch, rows)
            return batch

        return finish

    @property
    def dataset(self) -> Dataset:
        """What is loaded."""
        return self._dataset

    @property
    def batch_size(self) -> int:
        """Images per batch."""
        return self._arguments["batch_size"]

    @property
    def rows_per_batch(self) -> int:
        """Rows of the dataset in a batch: fewer than its images where each row becomes several crops."""
        return self._arguments["batch_size"] // self._arguments["crops_per_image"]

    @property
    def num_workers(self) -> int:
        """Threads that read ahead."""
        return self._built.workers

    @property
    def readers(self) -> int:
        """Threads that read while a batch is waited for: those of ``num_workers`` and, unless memory or very large
        images forbid it, the one that waits."""
        return self._built.readers

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of each image as delivered: (C, Y, X), or (T, C, Z, Y, X)."""
        t, c, z, y, x = self._built.image_shape
        return (c, y, x) if t == z == 1 else (t, c, z, y, x)

    @property
    def targets(self) -> Dataset | None:
        """What targets are read of; None without them."""
        return self._targets

    @property
    def pairing(self) -> str | None:
        """How targets were found for the images: by their "names", or by "order", the first of the first image and so
        on. None without targets."""
        return self._built.pairing

    @property
    def classes(self) -> list[Any] | None:
        """The classes whose numbers labels are, in their order; None where labels are as they were given."""
        return None if self._classes is None else list(self._classes.names)

    @property
    def class_to_idx(self) -> dict[Any, int] | None:
        """The number of each of :attr:`classes`."""
        return None if self._classes is None else dict(self._classes.index)

    @property
    def feature_names(self) -> list[str] | None:
        """The columns of the features that batches have; None where they have none."""
        return None if self._features is None else list(self._features)

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return not self._made

    def close(self) -> None:
        """Ends the loader's iterations and their threads, and closes the set where the loader has opened it. Batches
        stay; :meth:`state_dict` and :attr:`skipped` tell how far it came. What else is asked of a closed loader or of
        its iterations is an error (:class:`wellread.ChoiceError`). Closing again does nothing.
        """
        if not self._made:
            return
        try:
            self._ended = self.state_dict(), self.skipped
        except Error:  # Its iteration is of another process.
            self._ended = json.loads(self._built.state(self._built.epoch, 0)), []
        for iterator in list(self._running):
            iterator.stop()
        self._latest = self._resumed = None
        self._made = {}
        if self._owns_dataset:
            self._dataset.close()
        if self._owns_targets and self._targets is not None:
            self._targets.close()

    def __enter__(self) -> Self:
        _ = self._built
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def images(self) -> int:
        """Images of an epoch, of this rank: of the ranks of now, as :meth:`__len__` and :meth:`rows`."""
        return self._native.images

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration runs."""
        return self._built.epoch

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch that the next iteration runs. Iterations count up by themselves."""
        self._built.set_epoch(_check.whole("epoch", epoch, 0, 2**64 - 2))
        self._latest = self._resumed = None

    def rows(self, epoch: int) -> list[int]:
        """The dataset's rows in the order in which an epoch delivers them, to this rank."""
        return self._native.rows(_check.whole("epoch", epoch, 0, 2**64 - 2))

    @property
    def traffic(self) -> dict[str, int | float | None]:
        """Bytes read of files so far and bytes of stored pixels that went into batches, "read" and "used", and their
        ratio, "amplification": below 1 where pixels are compressed, None where nothing was counted."""
        read, used = self._built.traffic
        return {"read": read, "used": used, "amplification": read / used if read and used else None}

    @property
    def skipped(self) -> list[tuple[int, str]]:
        """With on_error="skip", row and error of the images left out by the iteration begun last: the first 1,000."""
        if self._ended is not None:
            return list(self._ended[1])
        return self._latest.skipped() if self._latest is not None else []

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[B_co]:
        found = self._found()
        self._tell(found)
        iterator, self._resumed = self._resumed, None
        if iterator is not None and iterator.core.loader is not self._of(found.ranks):
            # The state was loaded before the ranks were known.
            iterator.core.close(ended=False)
            iterator = Iterator(self, self._resumed_from)
        elif iterator is None:
            iterator = Iterator(self, None)
        self._latest = iterator.core
        return iterator

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration begun last is, after the batch delivered last, whatever was read ahead: a small
        dictionary that JSON and pickle can hold. Before the first iteration, and after the end of one, where the next
        begins.
        """
        if self._ended is not None:
            return dict(self._ended[0])
        core = self._resumed.core if self._resumed is not None else self._latest
        epoch, position = core.progress() if core is not None else (self._built.epoch, 0)
        return json.loads(self._built.state(epoch, position))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration go on where :meth:`state_dict` was taken, with exactly the images that were not
        yet delivered. The number of workers, the batch size, the transform and the number of ranks may be others.

        Raises:
            TypeError: no dictionary.
            ValueError: a state of other images, another order or seed, or none at all (a
                :class:`wellread.ChoiceError`).
        """
        if not isinstance(state_dict, dict):
            raise TypeError(f"state_dict must be a dict, not {type(state_dict).__name__}")
        try:
            text = json.dumps(state_dict)
        except (TypeError, ValueError, RecursionError):
            raise ValueError("state_dict must be what state_dict() returned") from None
        self._resumed, self._resumed_from = Iterator(self, text), text

    def __reduce__(self) -> tuple[Any, ...]:
        epoch = self._built.epoch
        # As iterating this one anew: the place of an iteration goes by state_dict(), one that was loaded comes next.
        state = self.state_dict() if self._resumed is not None else None
        inherited = None
        if self._named is None:
            inherited = _ranks.to_hand_on(self._inherited)
        return _rebuilt, (self._dataset, self._arguments, epoch, state, inherited)

    def __repr__(self) -> str:
        if not self._made:
            return f"wellread.DataLoader({self._dataset!r}: closed)"
        shape = " x ".join(map(str, self.image_shape))
        try:
            batches = len(self)
        except Error:
            # What is wrong with the ranks is told where images are asked for.
            batches = len(self._built)
        what = f"{batches} batches of {self.batch_size}, {shape} {self._dtype}"
        return f"wellread.DataLoader({self._dataset!r}: {what})"


def _rebuilt(
    dataset: Dataset,
    arguments: dict[str, Any],
    epoch: int,
    state: dict[str, Any] | None,
    inherited: _ranks.Inherited | None,
) -> DataLoader[Any]:
    loader: DataLoader[Any] = DataLoader(dataset, **arguments)
    loader._inherited = inherited
    loader.set_epoch(epoch)
    if state is not None:
        loader.load_state_dict(state)
    return loader
