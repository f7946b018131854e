"""Items of a batch for :func:`wellread.torch.collate`: what it knows of them, and whether they make a batch."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from .errors import ChoiceError


class Rows(list[Any]):
    """Items of a batch, one by one, for :func:`wellread.torch.collate`. Where one request has read them, ``whole`` is
    the batch. ``listed`` says whether labels are a list in it, and is None where that is not known. ``rows`` are the
    rows of the dataset."""

    def __init__(
        self, items: list[Any], whole: Any, listed: bool | None = False, rows: Sequence[int] | None = None
    ) -> None:
        super().__init__(items)
        self._made = tuple(items)
        self.whole: Any = whole
        self.listed = listed
        self._rows = rows

    def are_whole(self) -> bool:
        """Whether the batch is that of the items. A subclass of the dataset may have put others in their place."""
        return self.whole is not None and len(self) == len(self._made) and all(map(operator.is_, self, self._made))

    def called(self, item: int) -> str:
        """An item in words: its row of the dataset, unless there are other items than there were."""
        if self._rows is None or len(self) != len(self._rows):
            return f"item {item}"
        return f"row {self._rows[item]}"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def check_sizes(items: Sequence[Any], images: Sequence[Any]) -> None:
    """Refuses images of unlike sizes, of which no batch can be made. `items` are what they come from.

    Raises:
        ChoiceError: the first two of unlike sizes, and what makes them alike.
    """
    if not all(isinstance(image, torch.Tensor) for image in images):
        return
    other = next((i for i, image in enumerate(images) if image.shape != images[0].shape), None)
    if other is None:
        return
    shown = [
        f"{items.called(i) if isinstance(items, Rows) else f'item {i}'} is {tuple(images[i].shape)}"
        for i in (other, 0)
    ]
    raise ChoiceError(
        f"images of a batch must be of one size: {shown[0]}, and {shown[1]}. Give wellread.torch.Dataset a "
        "transform= that makes them so, such as a crop; or take wellread.DataLoader() with crop= or resize="
    )
