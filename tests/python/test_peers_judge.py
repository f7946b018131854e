"""The judge of comparisons with peers (`make bench-peers`): its intervals, its noise floor, and what it may say."""

import importlib
import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parents[2] / "benches" / "peers"


@pytest.fixture(scope="module")
def judge():
    """A module of benches/peers, whose name is for its own folder only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HERE)
        yield importlib.import_module("judge")
        sys.modules.pop("judge")


def test_intervals_are_those_of_wellread_measure(judge):
    # crates/wellread-measure/src/intervals/ranks.rs
    assert judge.lower_end(6) == pytest.approx(0.357_142_857, abs=1e-9)
    assert judge.lower_end(6, 7 / 64) == pytest.approx(1)
    assert judge.lower_end(5) == 0
    # Half a hundred standard deviations of the normal distribution from the middle.
    assert judge.lower_end(901) == pytest.approx(450.5 - 1.959_964 * math.sqrt(901) / 2, abs=1)
    low, high = judge.interval([60, 10, 50, 20, 40, 30])
    assert (low, high) == (pytest.approx(13.571_428_57), pytest.approx(56.428_571_43))
    assert judge.interval([1, 2, 3, 4, 5]) is None


def test_six_values_of_two_modes_have_less_coverage(judge):
    # What docs/method.md says of a machine with a fast and a slow state.
    rng = np.random.default_rng(1)

    def draw(n):
        return np.exp(0.03 * rng.normal(size=n)) * np.where(rng.random(n) < 0.5, 1, 2)

    truth = np.median(draw(1_000_001))
    ends = [judge.interval(draw(6).tolist()) for _ in range(2000)]
    assert np.mean([low <= truth <= high for low, high in ends]) == pytest.approx(0.87, abs=0.02)


def test_the_noise_floor_is_the_far_end_of_the_worst_twin(judge):
    assert judge.noise_floor([1.0] * 6) == 0
    # As far down as 1 / 0.8 is up.
    assert judge.noise_floor([1.0] * 6, [0.8] * 6) == pytest.approx(0.25)
    assert judge.noise_floor([1.1] * 6, [1.0] * 6) == pytest.approx(0.1)
    # Too few ratios have no interval, so nothing is known.
    assert judge.noise_floor([1.0] * 5) is None
    assert judge.noise_floor() is None


@pytest.mark.parametrize(
    ("peer", "floor", "said"),
    [
        ([3.0] * 5, 0.0, "5 of the 6 rounds that a verdict needs"),
        ([3.0] * 6, None, "nothing was run twice, so the noise is unknown"),
        ([0.9, 0.9, 0.9, 1.1, 1.1, 1.1], 0.0, "the interval holds 1"),
        ([1.2] * 6, 0.25, "the interval reaches into the noise floor of 25%"),
        ([0.9] * 6, 0.25, "the interval reaches into the noise floor of 25%"),
        # One end beyond the floor is not enough.
        ([1.1, 1.1, 1.6, 1.6, 1.6, 1.6], 0.25, "the interval reaches into the noise floor of 25%"),
        ([1.3] * 6, 0.25, None),
        ([0.7] * 6, 0.25, None),
    ],
)
def test_what_may_be_said(judge, peer, floor, said):
    one = judge.judge(peer, [1.0] * len(peer), floor)
    assert one.refused == said
    assert one.clear == (said is None)
    assert (one.rounds, one.lost) == (len(peer), sum(value < 1 for value in peer))
    assert (one.low is None) == (len(peer) < judge.MIN_ROUNDS)


def test_a_ratio_is_the_median_of_the_rounds_ratios(judge):
    # A machine that slows down by half falls on both: ratios are of rounds, not of medians.
    ours = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    one = judge.judge([2.0, 2.0, 3.0, 6.0, 6.0, 8.0], ours, 0.0)
    assert one.estimate == 3.0
    assert one.low == pytest.approx(2.0) and one.high == pytest.approx(4.0 - 0.357_142_857)
    with pytest.raises(ValueError, match="paired"):
        judge.judge([1.0] * 6, [1.0] * 5, 0.0)


def test_loaders_run_twice_in_turn(judge):
    names = ["a", "b", "c"]
    turns = judge.in_turn(names, random.Random(1))
    said = [next(turns) for _ in range(7)]
    assert sorted(said[:3]) == names and said[3:6] == said[:3] and said[6] == said[0]
    assert names == ["a", "b", "c"]
