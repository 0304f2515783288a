"""Fronts and knees against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.studies.sweep.table import front, knee, marks

COSTS = st.integers(1, 5).flatmap(lambda width: st.lists(st.tuples(*[st.integers(0, 4)] * width), max_size=40))


def beats(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


@pytest.mark.slow
@settings(derandomize=True, max_examples=100, deadline=None)
@given(COSTS)
def test_the_front_is_what_nothing_beats(costs: list[tuple[int, ...]]) -> None:
    assert front(costs).tolist() == [not any(beats(other, own) for other in costs) for own in costs]


def test_what_lacks_a_number_is_on_no_front_and_beats_nothing() -> None:
    assert front([[1, np.nan], [2, 5], [np.nan, 0], [3, 6]]).tolist() == [False, True, False, False]
    assert front([[np.nan]]).tolist() == [False]


@pytest.mark.parametrize("width", [2, 3, 4])
def test_many_points_that_are_all_on_the_front(width: int) -> None:
    table = np.random.default_rng(0).random((5_000, width))
    table[:, -1] = -table[:, :-1].sum(axis=1)
    assert front(table).all()


@pytest.mark.slow
@settings(derandomize=True, max_examples=50, deadline=None)
@given(COSTS, st.randoms(use_true_random=False))
def test_groups_do_not_know_each_other(costs: list[tuple[int, ...]], chance: object) -> None:
    groups = [chance.choice("ab") for _ in costs]  # type: ignore[attr-defined]
    on_front, knees = marks(costs, groups)
    assert not (knees & ~on_front).any()
    for group in "ab":
        own = [number for number, each in enumerate(groups) if each == group]
        alone = front([costs[number] for number in own])
        assert on_front[own].tolist() == alone.tolist()
        assert knees[own].sum() <= 1


@settings(derandomize=True, max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=20))
def test_the_knee_is_farthest_below_the_line_between_the_ends(points: list[tuple[int, int]]) -> None:
    x, y = (np.array(each, dtype=float) for each in zip(*points, strict=True))
    chosen = knee(x, y)
    on = sorted({point for point in points if not any(beats(other, point) for other in points)})
    (x0, y0), (x1, y1) = on[0], on[-1]

    def below(point: tuple[float, float]) -> float:
        return 0.0 if x1 == x0 else 1 - (point[0] - x0) / (x1 - x0) - (point[1] - y1) / (y0 - y1)

    deepest = max(below(point) for point in on)
    if chosen is None:
        assert deepest < 1e-9
    else:
        assert points[chosen] in on
        assert abs(below(points[chosen]) - deepest) < 1e-9
