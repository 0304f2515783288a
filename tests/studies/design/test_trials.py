"""Designs that Optuna chooses, held against a walk over all of them."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.design import space
from lstmsim.studies.design.result import Design
from tests.studies.design.test_resumed import AXES, SCENARIO, C

#: More designs than are bounded.
HUGE: dict[str, list[Any]] = {
    C + "ep": [4, 8, 16],
    C + "npe": list(range(4096, 8192)),
    C + "threads": [1, 2, 3, 4],
    C + "tail_width": list(range(1, 129)),
    C + "latency.add": list(range(1, 201)),
    C + "vp": [None],
}


def chosen(**more: Any) -> Design:
    return lstmsim.design(SCENARIO, "none", **{"axes": AXES, "trials": 20, "jobs": 1, **more})


def total(found: Design) -> int:
    labels = found.infeasible, found.does_not_fit, found.pruned
    return sum(sum(each.values()) for each in labels) + found.simulated


def test_the_gap_is_to_a_bound_of_all_designs() -> None:
    pytest.importorskip("optuna")
    found, whole = chosen(), lstmsim.design(SCENARIO, "none", axes=AXES, jobs=1)
    own, best = found.best[0].objective[0], whole.best[0].objective[0]
    assert own >= best
    assert found.gap is not None
    assert own * (1 - found.gap) <= best
    assert found.proven == (found.gap == 0)
    assert total(found) + found.left == found.space == 108
    assert found.simulated <= 20
    assert "Optuna chose" in found.to_text()
    # what was chosen depends on no number of processes, and a chip that all were asked about is proven
    assert chosen(jobs=2) == found
    every = chosen(axes={C + "ep": [8, 16]}, trials=40)
    assert (every.proven, every.simulated, every.left) == (True, 2, 0)


def test_a_space_that_is_too_large_has_no_gap() -> None:
    pytest.importorskip("optuna")
    found = chosen(axes=HUGE, trials=3)
    assert (found.space, found.gap, found.proven) == (3 * 4096 * 4 * 128 * 200, None, False)
    assert total(found) + found.left == found.space
    assert "is not known: more than 1,000,000,000 designs" in found.to_text()
    assert "of the others nothing is known" in " ".join(found.to_text().split())
    with pytest.raises(InputError, match="at most 10,000,000 are possible: name fewer values, or let --trials"):
        lstmsim.design(SCENARIO, "none", axes=HUGE)


def test_boxes_of_few_points_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lstmsim.design(SCENARIO, "none", axes=AXES, jobs=1)
    monkeypatch.setattr(space, "_LARGEST", 10)
    assert lstmsim.design(SCENARIO, "none", axes=AXES, jobs=1) == whole


def test_what_is_missing_or_does_not_go_together_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="trials: does not go with most"):
        chosen(most=3)
    with pytest.raises(InputError, match="several objectives"):
        chosen(minimise=["cycles", "npe"])
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"pip install 'lstmsim\[optuna\]'"):
        chosen()
