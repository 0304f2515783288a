"""Designs against exhaustive simulation: the best, the front, the labels; and every bound against the truth."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

import lstmsim
from lstmsim.studies.design.bounds.jobs import bounded, percentile_of
from lstmsim.studies.design.bounds.multipliers import multiplier_blocks
from lstmsim.studies.design.judge import Judge
from lstmsim.studies.design.result import Design
from lstmsim.studies.design.space import Box, Broken, space_of
from lstmsim.studies.fit.device import device
from lstmsim.studies.sweep.columns import NUMBERS
from tests.studies.design.spaces import axes, every, scenario

OBJECTIVES = (
    *(["cycles"], ["ms"], ["p50_ms"], ["p99_ms"], ["energy_j"]),
    *(["cycles", "npe"], ["p95_ms", "energy_j"], ["npe", "p50_ms", "cycles"], ["cycles", "share"]),
)
COLUMNS = {50: "latency_ms_p50", 99: "latency_ms_p99", 100: "latency_ms_max"}
MAKESPAN, P95 = NUMBERS.index("makespan_cycles"), NUMBERS.index("latency_ms_p95")


def add_up(found: Design) -> int:
    return sum(
        [
            *(sum(each.values()) for each in (found.infeasible, found.does_not_fit, found.pruned)),
            found.simulated,
            found.left,
        ]
    )


def compared(seed: int, most: int, least: int = 0) -> tuple[int, int]:
    """Compare one random space; give its designs and those that were simulated."""
    rng = random.Random(seed)
    base = scenario(rng)
    space_axes, minimise = axes(rng, base, most, least), rng.choice(OBJECTIVES)
    where = rng.choice(["none", "cyclone-v-se-a6", "arria-10-gx-1150"])
    where = "arria-10-gx-1150" if "share" in minimise else where
    percentile, allow = rng.choice(list(COLUMNS)), rng.random() < 0.5
    bound = rng.choice([None, None, 0.002, 0.05, 0.5])
    try:
        found = lstmsim.design(
            *(base, where),
            axes=space_axes,
            minimise=minimise,
            bound_ms=bound,
            percentile=percentile,
            allow_cannot_tell=allow,
            until=1,
            jobs=1,
        )
    except lstmsim.InputError as error:
        # a base that no design mends: it is refused with the place
        refused = str(error)
        found = None
    if found is None:
        assert any(each in refused for each in ("job", "chip")), refused
        return 0, 0
    space = space_of(base, space_axes, [])
    judge = Judge(None if where == "none" else device(where), allow)
    column = COLUMNS[percentile] if bound is not None else ""
    truth = every(space, minimise, judge, column, bound or 0.0)
    expected = truth.front()
    if len(minimise) == 1:
        assert found.equal == len(expected)
        expected = expected[:10]
        assert found.gap == (0.0 if expected else None)
    assert [each.point for each in found.best] == expected, seed
    assert [each.objective for each in found.best] == [truth.values[point] for point in expected]
    assert found.proven
    assert add_up(found) == found.space == space.size
    broken = sum(outcome.status == "infeasible" for outcome in truth.outcomes)
    # a rule that only the whole scenario tells may stand behind a bound
    assert sum(found.infeasible.values()) <= broken
    for rival in found.rivals:
        own = dict(found.best[0].values) | {rival.key: rival.value}
        point = next(each for each in range(space.size) if space.values(each) == own)
        assert truth.values[point] == (rival.objective,)
    return space.size, found.simulated


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize("seed", range(7))
def test_the_result_equals_exhaustive_simulation(seed: int) -> None:
    compared(seed, 120)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_the_result_equals_exhaustive_simulation_of_more_designs(seed: int) -> None:
    compared(seed, 5000, 1500)


def bounds_of(seed: int, most: int) -> Counter[str]:
    """Compare the bounds of a random space with the truth; count points, and how often a bound is the truth."""
    rng = random.Random(seed)
    base = scenario(rng)
    counts: Counter[str] = Counter()
    try:
        space = space_of(base, axes(rng, base, most), [])
    except lstmsim.InputError:
        return counts
    there = device("arria-10-gx-1150")
    truth = every(space, ["cycles"], Judge(None))
    for box in space.boxes():
        points = box.points
        if isinstance(box, Broken):
            assert all(truth.outcomes[point].status == "infeasible" for point in points)
            continue
        own = bounded(box)
        assert own is not None
        for rule, wrong in own.broken.items():
            for point in points[np.broadcast_to(wrong, points.shape)].tolist():
                assert truth.outcomes[point].status == "infeasible", (seed, rule, point)
        done = np.array([truth.outcomes[point].numbers is not None for point in points.tolist()])
        blocks = np.broadcast_to(multiplier_blocks(box, there), points.shape)
        for name, least in own.makespan.items():
            for place in np.flatnonzero(done).tolist():
                numbers = truth.outcomes[points[place]].numbers
                assert np.broadcast_to(least, points.shape)[place] <= numbers[MAKESPAN], (seed, name, points[place])
                counts[name] += int(np.broadcast_to(least, points.shape)[place] == numbers[MAKESPAN])
        waits = np.broadcast_to(percentile_of(own, 95), points.shape)
        for place in np.flatnonzero(done).tolist():
            numbers, one = truth.outcomes[points[place]].numbers, truth.scenarios[points[place]]
            counts["points"] += 1
            assert waits[place] / one.chip.frequency_mhz / 1000 * (1 - 1e-12) <= numbers[P95], (seed, points[place])
            assert np.broadcast_to(own.peak, points.shape)[place] == sum(each.peak for each in one.chip.core_figures)
            fit = Judge(there).fit(one) if counts["fits"] < 40 else None
            if fit is not None:
                counts["fits"] += 1
                assert blocks[place] == fit.multipliers.need
    return counts


@pytest.mark.slow
def test_a_row_wise_npu_equals_exhaustive_simulation() -> None:
    jobs = [{"model": "lstm-256", "steps": 6, "count": 2}, {"model": "gru-512", "steps": 4, "arrival": 900, "batch": 4}]
    base = {"chip": "intel-npu-rtl", "jobs": jobs}
    keys = {"tiles": [1, 3, 7], "engines": [10, 40], "lanes": [8, 40], "vectors": [1, 3], "vector_lanes": [20, 40]}
    space_axes = {f"chip.cores.0.{key}": values for key, values in keys.items()}
    found = lstmsim.design(base, "none", axes=space_axes, jobs=1)
    truth = every(space_of(base, space_axes, []), ["cycles"], Judge(None))
    assert [each.point for each in found.best] == truth.front()[:10]
    assert [each.objective for each in found.best] == [truth.values[each.point] for each in found.best]
    assert (found.proven, found.bounded, add_up(found)) == (True, True, 48)
    assert sum(found.pruned.values()) > 10
    multipliers = every(space_of(base, space_axes, []), ["npe"], Judge(None)).values
    for box in space_of(base, space_axes, []).boxes():
        assert isinstance(box, Box)
        own = bounded(box)
        assert own is not None
        assert [(each,) for each in own.peak.tolist()] == [multipliers[point] for point in box.points]


def test_members_of_batches_share_the_thread_of_the_batch() -> None:
    batching = {"max_batch_size": 4, "max_wait_cycles": 500}
    jobs = [{"model": "lstm-256", "steps": 6, "count": 8, "batching": batching}]
    space_axes = {"chip.cores.0.threads": [1, 2], "chip.cores.0.ep": [4, 16], "chip.cores.0.tail_width": [16, 64]}
    base = {"chip": "column-npu-16k", "jobs": jobs}
    found = lstmsim.design(base, "none", axes=space_axes, jobs=1)
    truth = every(space_of(base, space_axes, []), ["cycles"], Judge(None))
    assert [each.point for each in found.best] == truth.front()[:10]
    # eight jobs that ran one by one would hold the thread for longer than two batches of four do
    (box,) = space_of(base, {"chip.cores.0.threads": [1]}, []).boxes()
    assert isinstance(box, Box)
    own = bounded(box)
    assert own is not None
    assert own.makespan["contexts"] < 8 * own.makespan["recurrence"]


def test_cores_whose_cycles_depend_on_data_are_refused_in_words() -> None:
    chip = {"kind": "column-npu", "frequency_mhz": 250, "cores": [{"npe": 512, "ep": 4, "delta": {}}]}
    jobs = [{"model": "lstm-256", "steps": 3, "density": {"x": 0.1, "h": 0.1, "seed": 1}}]
    with pytest.raises(lstmsim.InputError, match="skipped columns depend on data"):
        lstmsim.design({"chip": chip, "jobs": jobs}, "none", axes={"chip.cores.0.ep": [2, 4]}, jobs=1)


@pytest.mark.slow
def test_no_bound_is_above_the_truth() -> None:
    counts = sum((bounds_of(seed, 40) for seed in range(1018, 1026)), Counter())
    assert counts["points"] > 50
    assert counts["fits"] > 10
    # a bound that is never met could be anything
    assert counts["recurrence"] > 5


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2000, 2100))
def test_no_bound_is_above_the_truth_on_more_points(seed: int) -> None:
    bounds_of(seed, 300)
