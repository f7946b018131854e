"""Epochs of batches, read and transformed by threads outside of Python.

Long because the one class here takes fifty options, and its docs explain each of them.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from . import _check, _choices, _native, _nodes, _options, _parts, _ranks, _refused, _targets, _wrapped
from ._iteration import B_co
from ._loader_base import LoaderBase
from ._signature import ELSEWHERE, telling
from ._types import (
    ArrayChoices,
    As,
    DictChoices,
    Dtype,
    Filter,
    Flip,
    Illumination,
    LabelledChoices,
    LoaderChoices,
    Normalize,
    OnError,
    Order,
    Pairing,
    Paths,
    Rows,
    Scale,
    Shard,
    Size,
    TargetKind,
    Transform,
    Turns,
    Uneven,
    Views,
    Weights,
)
from .dataset import Dataset
from .errors import Error

if TYPE_CHECKING:
    import jax
    import torch
    from numpy.typing import NDArray
    from typing_extensions import Unpack

__all__ = ["DataLoader"]


class DataLoader(LoaderBase[B_co]):
    """Delivers a set of images in batches, epoch after epoch.

    Threads decode, crop, scale and batch outside of the interpreter's lock, straight into the memory that the arrays
    show. The memory goes back to the loader when its last view is gone. You may keep batches, slice them, change them
    in place, and use them after the loader. The same seed gives the same batches, to the bit, with any number of
    workers.

    Args:
        dataset: a :class:`Dataset`, or the path of one, or a list of paths.
        batch_size: images per batch.
        shuffle: every row once, in a random order that differs from epoch to epoch. It contradicts ``weights``.
        seed: seed of the order and of all random draws: a whole number from 0 to 2**64 - 1.
        num_workers: threads that read ahead. 0 reads each batch when it is asked for. The default is one per core,
            eight at most.
        as_: the library whose arrays batches are: "numpy", "torch" or "jax"; "batch" gives :class:`wellread.Batch`.
        dtype: "float32", "float16", "bfloat16" or "stored" (uint16 stays uint16). float16 ends at 65504: unscaled
            pixels beyond that are infinite.
        scale: "unit" takes the range of the stored type to [0, 1]. Images stored as floats keep their values: their
            type has no range. A number multiplies the values. (low, high) takes a range of stored values to [0, 1].
            It is one for all channels, or lists of one per delivered channel, in the order of ``channels``. None
            leaves values as they are. "device" gives the values of "unit", but moves the stored type and scales on
            the device (torch and JAX). "auto" is "unit", and None with dtype="stored".
        percentiles: (low, high) from 0 to 100: scales each channel of each image to [0, 1] by its percentiles. NaN
            and infinite values do not count; infinite ones are clipped to 0 and 1.
        normalize: (mean, std) of the scaled values: numbers, or lists of one per delivered channel, in the order of
            ``channels``. "image" takes each channel of each image by its own. Or a file of ``wellread stats --out``;
            with ``--by Metadata_Plate`` it takes each image by the numbers of its plate. The numbers of a file go by
            the names of channels, if both have names. A name that the file lacks is an error, and images whose
            channels are in another order follow the first.
        channels: indices or names of the channels to take, in this order. The loader looks a name up in each image,
            which may have its channels in another order. An image that lacks the name is an error.
        crop, random_crop: (height, width) or one number: the centre, or a random part.
        crop_square: the square in the middle whose side is this share of the shorter side, from 0 to 1.
        random_resized_crop: (height, width): a part of 8 to 100 % of the area, with sides of 3:4 to 4:3, resized.
        flip: probability, or (left to right, top to bottom), or "both" or True for one half each. "horizontal" and
            "vertical" are one half of that alone.
        turns: "none", "half" (0 or 180 degrees), "quarter", or "fitting" (quarter where the images are square).
        rotate: rotation by a random angle up to so many degrees either way, bilinear, the edge mirrored.
        resize: (height, width) of all planes; ``resize_filter`` is "area" (the default), "bilinear" or "antialias".
        max_projection: reduces depth to its maximum.
        brightness, contrast, gamma: random changes of intensity, 0 for none; ``per_channel`` draws anew for each.
        photon_noise, gaussian_noise: random noise, in units of scaled values.
        channel_dropout: probability of each channel of becoming 0.
        illumination: file of the flat field, or (flat, dark), that corrects images. A pattern such as
            "illum/{Metadata_Plate}/{Metadata_Plate}_Illum{channel}.npy" names one for each plate and channel. It
            takes names of columns, ``{channel}`` for the channel's name, and ``{channel:1}`` for its number from 1.
            Or a dictionary of these by the names of channels, ``{"DNA": "dna.npy", "ER": "er.npy"}``, in any order.
        crops_per_image: the number of crops of each image, one after the other in a batch, from one read.
        targets: a second set, or its path or paths: masks, another stain. Batches are (pixels, targets). Crops,
            flips, turns, rotations and sizes are those of the image; changes of intensity are the image's alone. The
            loader finds the target of an image by its name, or by the numbers in the names if both sets have the same
            ones. It goes by order if the sets are as large and names agree in part (:attr:`pairing`). Numbers that
            contradict the order are an error.
        target_kind: "labels" takes the nearest pixel where targets are resized or rotated, and delivers them as
            stored; "image" treats them as images. By default whole numbers are labels.
        target_channels, target_dtype, target_scale: as ``channels``, ``dtype`` and ``scale``, of targets; labels are
            not scaled.
        pairing: "order" takes targets in their order, whatever they are called; "names" by names and numbers alone.
        views: the number of views of each row, each with draws of its own, from one read: batches are tuples of
            arrays. Or a list of recipes, or a dictionary of recipes or (how many, recipe) by name. A recipe is a
            dictionary of choices that replace the loader's, such as ``{"random_resized_crop": 96, "scale_range":
            (0.05, 0.4)}``. ``scale_range`` and ``ratio_range`` are for recipes alone: the share of the image's area
            and the proportion of ``random_resized_crop``. With targets each view has its own.
        order: "sequential", "shuffle", "block" (nearly random, few places at a time), "grouped" (rows of a group
            together), "weighted" or "balanced" (classes in equal shares).
        by: for "grouped" and "balanced": a column, a tuple of columns, or a list of one key per row of the dataset.
            A row without a value is of no class, and an error for "balanced". For "block": the groups that are
            blocks, if they differ in size; for :meth:`wellread.Dataset.cells` those of an image unless said
            otherwise.
        weights: for "weighted": one number per row of the dataset. A row may come several times or never.
        block: for "block": (rows of a block, blocks that are mixed); the second alone where blocks are groups.
        images_per_epoch: for "weighted" and "balanced"; the default is the number of rows, also those of weight 0.
        rows: only these rows of the dataset, in this order if the order is sequential. They are numbers, of which
            negative ones count from the end, or one truth value per row. ``sampler`` is the same under torch's name,
            and excludes shuffle=True as there. The loader asks a sampler for its rows once, when it is made: every
            epoch has those.
        shard: this process's part of the images, if several processes divide them. "auto" finds the rank and the
            number of ranks at each iteration anew. It asks torch.distributed or jax.distributed where one is
            initialised, then ``RANK`` and ``WORLD_SIZE``, then the step that Slurm's srun started; else it takes all
            images. (rank, world_size), or a process group of torch, names the part. False, or None, delivers all
            images to every process. With a ``sampler`` that divides rows itself (torch's DistributedSampler) "auto"
            divides no further. "local" finds the ranks as "auto" does, and gives each node a part of the set:
            neighbouring rows, which its ranks divide among them. The disk cache of a node then holds that part only.
            "local" needs shuffle=True, order="block", or neither ``order`` nor ``shuffle``.
        rank, world_size: the same as shard=(rank, world_size); with shard="local", the ranks.
        nodes, node: for shard="local": the number of nodes, and which of them this process is on. By default the
            loader takes them from ``LOCAL_WORLD_SIZE`` and ``GROUP_RANK`` or ``NODE_RANK``, which launchers set, or
            from ``SLURM_NNODES`` and ``SLURM_NODEID``. Ranks are numbered node by node, equally many on each; a
            contradiction is an error.
        reshard_every: for shard="local": the number of epochs after which nodes get other parts; 0 for never.
        uneven: "drop" leaves out images that do not divide among the ranks, "pad" repeats some images.
        drop_last: leaves out a last batch that is not full.
        prefetch: batches read ahead at most; the default is twice the number of workers, and 4 at least.
        memory: bytes that the loader holds at most, or "2GiB".
        on_error: "raise", or "skip" to leave out images that cannot be read (:attr:`skipped`). After an error the
            iteration can continue with the next batch, without the other images of the one that failed. "skip" also
            leaves out images of another shape or type than the first, and of a group that the statistics of
            ``normalize`` lack. An illumination file that cannot be read is an error in any case. The loader leaves
            out a batch that loses all its images. With several ranks, which must have equally many batches, that
            is an error.
        labels: a column of the dataset, or an array of one value per row, which is copied: batches are
            (pixels, labels). A UserWarning tells of a pandas Series whose index has the images in another order.
            Labels of texts are a list, unless ``classes`` makes numbers of them. For torch and JAX, dates, times and
            durations are lists too. Masked values of a NumPy array are missing, as nulls of a column are.
        classes: True makes labels the numbers (int64) of their classes. The classes are the sorted different values
            of all rows of the dataset, whichever rows ``rows`` takes. A list names the classes in their order.
            :attr:`classes` has them, :attr:`class_to_idx` their numbers.
        columns: several columns: batches are (pixels, {name: values}).
        features: columns of numbers, or a pattern of their names such as "Cells_*", or several. Batches are (pixels,
            features), a float32 array (N, number of columns) with NaN for missing values. A column of texts that fits
            is a TypeError. :attr:`feature_names` are its columns.
        indices: batches have the dataset's row of each image (int64).
        as_dict: batches are dictionaries of their parts, {"pixels": …, "labels": …}. Otherwise a batch of several
            parts is a tuple of those that were asked for: (pixels, targets, labels, columns, features, indices).
        keys: the names of the parts in the dictionary of a batch, as in {"pixels": "image", "labels":
            "class"}. Or it is one name per part in their order, such as ("image", "mask").
        transform: a callable for each image (an array of the chosen library, without the batch's axis): torchvision,
            MONAI, your own. The loader stacks its results, so it must return arrays of one shape. It runs in the
            thread that iterates. With ``device`` it is given images on that device, and the loader moves its results
            there. With a sharding of JAX it is given images before the loader divides them. With targets it is given
            (image, target) and returns both, or a dictionary by the first two of ``keys``. With views it is given one
            image of each.
        batch_transform: a callable for each batch, which it is given as it would be delivered: pixels alone, the
            tuple of the parts, or the dictionary. The loader delivers its result as it is. So MixUp and CutMix mix
            pixels and labels. It runs last, in the thread that iterates, where ``device`` has moved the batch.
        pin_memory: decodes into page-locked memory (torch with CUDA), for copies that do not wait.
        device: the target of batches: a torch device, to which the next batch moves while this one is used. With JAX
            it is a device or a ``jax.sharding.Sharding``. A sharding divides every batch into equal parts, also the
            last one of an epoch. ``drop_last=True`` leaves that out. Other batches are a ChoiceError. Labels,
            columns, features and indices that are arrays move with their images.
        epoch: the epoch that the first iteration runs.

    Raises:
        TypeError, ValueError: an argument of a wrong type, or one that makes no sense or does not fit the images. The
            message names it.
        KeyError: there is no such column.
        wellread.Error: the set cannot be read.

    A batch of N images has the shape (N, C, Y, X). It is (N, T, C, Z, Y, X) where images have more than one time
    point or depth. Iterations are ordinary iterators: several may run at once, and leaving one early stops its
    threads. Ctrl-C works while waiting for a batch. :meth:`state_dict` and :meth:`load_state_dict` resume in the
    middle of an epoch. ``with`` closes a loader (:meth:`close`).

    Type checkers see a loader by the type of its batches: ``DataLoader[torch.Tensor]``,
    ``DataLoader[tuple[torch.Tensor, Any]]`` with labels alone, ``DataLoader[dict[str, Any]]``, and
    ``DataLoader[Any]`` of other parts.
    """

    @overload
    def __init__(
        self: DataLoader[NDArray[Any]],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["numpy"] = "numpy",
        **choices: Unpack[ArrayChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[NDArray[Any], Any]],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["numpy"] = "numpy",
        **choices: Unpack[LabelledChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[torch.Tensor],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["torch"],
        **choices: Unpack[ArrayChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[torch.Tensor, Any]],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["torch"],
        **choices: Unpack[LabelledChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[jax.Array],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"],
        **choices: Unpack[ArrayChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[jax.Array, Any]],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"],
        **choices: Unpack[LabelledChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[_native.Batch],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["batch"],
        **choices: Unpack[ArrayChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[_native.Batch, Any]],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["batch"],
        **choices: Unpack[LabelledChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[dict[str, Any]],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: As = "numpy",
        **choices: Unpack[DictChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: As = "numpy",
        **choices: Unpack[LoaderChoices],
    ) -> None: ...
    @telling("DataLoader", ELSEWHERE)
    def __init__(
        self,
        dataset: Dataset | Paths,
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
        targets: Dataset | Paths | None = None,
        target_kind: TargetKind | None = None,
        target_channels: Sequence[int] | Sequence[str] | None = None,
        target_dtype: Dtype | None = None,
        target_scale: Scale = "auto",
        pairing: Pairing | None = None,
        views: Views = None,
        order: Order | None = None,
        by: str | Sequence[Any] | None = None,
        weights: Weights | None = None,
        block: int | Sequence[int] | None = None,
        images_per_epoch: int | None = None,
        rows: Rows | None = None,
        sampler: Rows | None = None,
        shard: Shard = "auto",
        rank: int | None = None,
        world_size: int | None = None,
        nodes: int | None = None,
        node: int | None = None,
        reshard_every: int = 0,
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
        self._arguments = _choices.copied({k: v for k, v in locals().items() if k not in ("self", "dataset")})
        dataset, self._owns_dataset = _opened("dataset", dataset)
        self._dataset = dataset
        self._owns_targets = False
        if targets is not None:
            targets, self._owns_targets = _opened("targets", targets)
        self._targets = self._arguments["targets"] = targets
        asked = _choices.checked(self._arguments, dataset)
        numbers, order_kind = asked.native["rows"], asked.native["order"]["kind"]
        _options.tell_drawn_once(asked.rows, self._arguments[asked.rows], numbers, order_kind)
        _options.tell_mixed(dataset, numbers, asked.native["transform"])
        _options.tell_scaled_masks(dataset, asked.native["transform"], asked.scales_later)
        about_targets = asked.native["targets"]
        # What the channel of a label image is called says nothing of its labels.
        if targets is not None and about_targets["kind"] == "image":
            _options.tell_mixed(targets, None, about_targets, "target_channels")
        self._as, self._named, self._by_node = asked.library, asked.named, asked.by_node
        self._pins, self._scales_later = asked.pins, asked.scales_later
        self._inherited = None
        if self._by_node is None:
            self._arguments |= {"shard": self._named or "auto", "rank": None, "world_size": None}
        choices, wanted = asked.native, asked.views
        self._lender = None
        if self._pins:
            from . import _device

            self._lender = _device.Lender()
            choices["lent"] = self._lender.native
        # Ranks that are found are those of the first iteration: what is wrong with them is told there.
        ranks = self._named or _ranks.ALONE
        self._choices = choices | {"rank": ranks[0], "world_size": ranks[1]}
        if self._by_node is not None:
            # Ranks that are not known yet may be on any nodes.
            self._choices["nodes"] = 1 if self._named is None else _nodes.now(self._by_node, ranks)
        self._made = {(ranks[0], ranks[1]): self._new(self._choices)}
        _options.check_lists(self._arguments, self._built)
        if self._scales_later and self._built.has_mask:
            raise ValueError('scale="device" would scale the mask of cells too: scale on the host, or leave it out')
        self._device = asked.device
        if self._as == "jax" and self._device is not None:
            # Processes of JAX are known here: there are no devices before them.
            self._check_device(self._native)
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
        self._arrangement = None
        if wanted is not None or targets is not None:
            dtypes = [dtype for _, dtype in self._built.arrays]
            self._arrangement = _targets.Arrangement(dtypes, wanted, targets is not None, names)
            self._compose = self._arrangement.composer(names) or self._compose
        self._beside = beside if beside.parts else None
        self._classes, self._features = beside.classes, beside.given.get("features")
        self._keep(asked.rows, choices, beside.given | ({} if keys is None else {"keys": names}))
        if views is not None:
            # Lists and dictionaries of the caller.
            self._arguments["views"] = copy.deepcopy(self._arguments["views"])
        self._finishes_first = False
        if transform is not None and self._device is not None:
            from . import _device

            self._finishes_first = _device.divides(self._as, self._device)
        self._finish = self._finisher(transform)
        self._on_batch = None
        if batch_transform is not None:
            from . import _user

            self._on_batch = _user.on_batch(batch_transform)
        self._running = weakref.WeakSet()
        self._ended = self._latest = self._resumed = None
        self._start = self._built.epoch, None

    if not TYPE_CHECKING:
        # Type checkers know that it has no index.
        def __getitem__(self, index):
            raise TypeError(
                "a loader has no index: for batch in loader iterates it, and next(iter(loader)) is its first batch. "
                "loader.dataset[0] reads the image of row 0 as it is stored"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        epoch = self.epoch
        # As iterating this one anew: the place of an iteration goes by state_dict(), one that was loaded comes next.
        state = self.state_dict() if self._start[1] is not None else None
        inherited = None
        if self._named is None:
            inherited = _ranks.to_hand_on(self._inherited)
        arguments = self._arguments
        if self._as == "jax" and self._device is not None:
            from . import _carried

            arguments = arguments | {"device": _carried.Carried(self._device)}
        return _rebuilt, (self._dataset, arguments, epoch, state, inherited)


def _opened(name: str, given: Any) -> tuple[Dataset, bool]:
    """The set, and whether it was opened here: by its path, or a list of paths."""
    if isinstance(given, Dataset):
        return given, False
    _wrapped.check_is_path(name, given, takes_rows=name == "dataset")
    return Dataset(_check.paths(name, given)), True


def _rebuilt(
    dataset: Dataset,
    arguments: dict[str, Any],
    epoch: int,
    state: dict[str, Any] | None,
    inherited: _ranks.Inherited | None,
) -> DataLoader[Any]:
    if arguments["as_"] == "jax" and arguments["device"] is not None:
        arguments = arguments | {"device": arguments["device"].device}
    try:
        loader: DataLoader[Any] = DataLoader(dataset, **arguments)
    except Error as error:
        if not _refused.is_starting():
            raise
        return cast("DataLoader[Any]", _refused.Refused(error))
    loader._inherited = inherited
    loader.set_epoch(epoch)
    if state is not None:
        loader.load_state_dict(state)
    return loader
