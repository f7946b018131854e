"""The verdict on two loaders that were measured in turns: the rules of `wellread bench`, for Python.

The unit is the process: each round gives one value a side, and a ratio is of the two values of one round. The
estimate is the median of the rounds' ratios; its interval that of `wellread_measure::intervals` for medians
(Hettmansperger and Sheather). Fewer than six rounds have no interval and no verdict. A difference within that of
the same loader, run twice in a round, is no verdict either
(docs/decisions/0009-when-a-format-is-called-fastest.md).
"""

import itertools
import math
import statistics
from dataclasses import dataclass

MIN_ROUNDS = 6
TAIL = 0.025


def lower_end(n, tail=TAIL):
    """Where in `n` sorted values, counted from 0, the lower end of the median's interval stands."""
    below, rank = 0.0, 0
    while rank < n and below + math.comb(n, rank) / 2**n <= tail:
        below += math.comb(n, rank) / 2**n
        rank += 1
    if rank == 0:
        return 0.0
    short, over = tail - below, below + math.comb(n, rank) / 2**n - tail
    return rank - 1 + 1 / (1 + rank * over / ((n - rank) * short)) if short else float(rank - 1)


def at(ordered, place):
    """The value at a place between two sorted values."""
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def interval(values):
    """The 95 % interval of the median; None of fewer than six values."""
    if len(values) < MIN_ROUNDS:
        return None
    ordered, end = sorted(values), lower_end(len(values))
    return at(ordered, end), at(ordered, len(values) - 1 - end)


def in_turn(names, rng):
    """The loaders that run twice, one in each round: in random order, again and again."""
    return itertools.cycle(rng.sample(names, len(names)))


def noise_floor(*twins):
    """How far the same loader may lie from itself, as a share: of each list of ratios (a run by its twin) the far end
    of the median's interval, of these the largest. None where no list has six."""
    ends = [interval(ratios) for ratios in twins]
    return max((max(high, 1 / low) - 1 for low, high in filter(None, ends)), default=None)


@dataclass(frozen=True)
class Judgement:
    """How many times as fast as the peer wellread is, and whether that may be said."""

    estimate: float
    low: float | None
    high: float | None
    refused: str | None
    """Why there is no verdict."""
    rounds: int = 0
    lost: int = 0
    """Rounds in which the peer was faster."""

    @property
    def clear(self):
        return self.refused is None


def judge(peer, ours, floor):
    """The judgement on the seconds of each round, the peer's and wellread's in the same order, and the noise floor as
    a share."""
    if len(peer) != len(ours):
        raise ValueError(f"{len(peer)} rounds of the peer, {len(ours)} of wellread: they are paired")
    ratios = [a / b for a, b in zip(peer, ours, strict=True)]
    estimate, ends = statistics.median(ratios), interval(ratios)
    low, high = ends or (None, None)
    if ends is None:
        refused = f"{len(ratios)} of the {MIN_ROUNDS} rounds that a verdict needs"
    elif floor is None:
        refused = "nothing was run twice, so the noise is unknown"
    elif low <= 1 <= high:
        refused = "the interval holds 1"
    elif low <= 1 + floor and high >= 1 / (1 + floor):
        refused = f"the interval reaches into the noise floor of {floor:.0%}"
    else:
        refused = None
    return Judgement(estimate, low, high, refused, len(ratios), sum(ratio < 1 for ratio in ratios))
