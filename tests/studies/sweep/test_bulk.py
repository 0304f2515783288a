"""Points in bulk: the outcomes of points one by one, to the last bit; what is unusual is left to the others."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from lstmsim.engines.fast import points as native
from lstmsim.studies.sweep import bulk
from lstmsim.studies.sweep.bulk import Bulk, Chunk
from lstmsim.studies.sweep.evaluate import Rows, outcome_of, rows_of
from lstmsim.studies.sweep.resolve import Resolver
from lstmsim.studies.sweep.run import prepare
from lstmsim.studies.sweep.run import sweep as run_sweep
from tests.strategies import examples
from tests.studies.sweep.specs import HIDDEN, spec, table

pytestmark = pytest.mark.needs_core


def drawn_spec(chance: random.Random) -> dict[str, Any]:
    """A sweep over a chip of one or two cores and up to four jobs."""
    core = {"npe": 4096, "ep": 8, "vp": 128, "tail_width": chance.choice([3, 16, 64])}
    core |= {"thread_policy": chance.choice(["coarse", "fine"]), "block_order": chance.choice(["row", "row", "column"])}
    core |= {
        "accumulator_banks": chance.choice([2, 16]) if core["block_order"] == "row" else 64,
        "switch_cycles": chance.choice([0, 3]),
    }
    cores = [core, {**core, "ep": 16, "vp": 64}][: chance.choice([1, 1, 2])]
    order = chance.choice(["layer", "step"])
    layers = [{"cell": chance.choice(["lstm", "gru", "lstm-layernorm"]), "hidden": 40, "input": 24}]
    layers += [{"cell": "lstm", "hidden": 24, "input": 40}] * chance.randint(0, 1)
    jobs: list[dict[str, Any]] = [
        {"model": {"name": "m", "layers": layers, "layer_order": order}, "steps": 7, "count": chance.randint(1, 3)},
        {"model": "lstm-256", "steps": 2, "arrival": 900},
    ]
    if chance.random() < 0.4:
        jobs[1] |= {"queue_limit": 0}
    rate = chance.choice([260, 187.3])
    scenario: dict[str, Any] = {"chip": {"kind": "column-npu", "frequency_mhz": rate, "cores": cores}, "jobs": jobs}
    scenario["dispatch"] = chance.choice(["fcfs", "sjf"])
    axes = {
        "ep": {"path": "chip.cores.0.ep", "values": [1, 4, 8, 32]},
        "vp": {"path": "chip.cores.0.vp", "expression": "4096 // ep // 2"},
        "threads": {"path": "chip.cores.0.threads", "values": [1, 2, True]},
        "hidden": {"path": HIDDEN[0], "values": [chance.randint(1, 90), 40]} if len(layers) == 1 else None,
        "steps": {"path": "jobs.0.steps", "values": [1, chance.randint(2, 40)]},
        "late": {"path": "jobs.1.arrival", "values": [0, 1500]},
    }
    return {"scenario": scenario, "axes": {name: axis for name, axis in axes.items() if axis}}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(max(examples(3) // 40, 3)))
def test_outcomes_are_those_of_points_one_by_one(seed: int) -> None:
    setup = prepare(drawn_spec(random.Random(seed)))
    rest: list[int] = []
    rows = Bulk(Resolver(setup)).computed(range(len(setup.sweep)), rest)
    assert len(rows.points) + len(rest) == len(setup.sweep)
    one = Resolver(setup)
    alone = rows_of(outcome_of(one, point) for point, *_ in rows.points)
    # as texts: numbers of other types are others
    assert (repr(rows.results), repr(rows.points)) == (repr(alone.results), repr(alone.points))
    # only what cannot be simulated is left, as truth values in place of numbers
    assert {outcome_of(one, point).status for point in rest} == {"infeasible"}
    assert sum(setup.sweep.values(point)["threads"] is True for point in rest) == len(setup.sweep) // 3


def unlike_spec(chance: random.Random) -> dict[str, Any]:
    """A sweep over chips of two or three unlike cores, some of which cannot run a model of the jobs."""
    cores = [
        {"npe": 16 * chance.choice([1, 2]) * (ep := chance.choice([4, 8])), "ep": ep, "vp": 8}
        | {"threads": chance.choice([1, 2]), "tail_width": chance.choice([3, 16])}
        for _ in range(chance.randint(2, 3))
    ]
    layers = [{"cell": chance.choice(["lstm", "gru"]), "hidden": chance.randint(2, 50), "input": chance.randint(2, 40)}]
    jobs: list[dict[str, Any]] = [
        {"model": {"layers": layers}, "steps": chance.randint(1, 5), "count": chance.randint(1, 3)},
        {"model": "lstm-256", "steps": 1, "arrival": chance.choice([0, 900])},
    ][: chance.randint(1, 2)]
    if chance.random() < 0.5:
        jobs[-1] |= {"core": chance.randrange(len(cores))}
    axes = {
        "vp": {"path": "chip.cores.0.vp", "values": chance.sample([2, 3, 4, 8, 16], 4)},
        "other": {"path": "chip.cores.1.vp", "values": chance.sample([1, 2, 3, 4, 8, 16], 4)},
        "steps": {"path": "jobs.0.steps", "values": [2, chance.randint(3, 20)]},
        "hidden": {"path": HIDDEN[0], "values": [chance.randint(1, 60), 12]},
    }
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": cores}
    return {"scenario": {"chip": chip, "jobs": jobs}, "axes": axes}


@pytest.mark.parametrize("seed", range(max(examples(3) // 40, 3)))
def test_unlike_cores_give_the_outcomes_of_points_one_by_one(seed: int) -> None:
    setup = prepare(unlike_spec(random.Random(seed)))
    rest: list[int] = []
    rows = Bulk(Resolver(setup)).computed(range(len(setup.sweep)), rest)
    assert sorted([*rest, *(point for point, *_ in rows.points)]) == list(range(len(setup.sweep)))
    one = Resolver(setup)
    alone = rows_of(outcome_of(one, point) for point, *_ in rows.points)
    assert (repr(rows.results), repr(rows.points)) == (repr(alone.results), repr(alone.points))


@pytest.mark.slow
def test_a_table_is_the_same_in_bulk_and_one_by_one(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bulk, "possible", False)
    run_sweep(spec(), tmp_path, jobs=1)
    assert table(tmp_path) == table(whole)


def test_chunks_are_smaller_where_points_take_long(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "MOST_EVENTS", 2_000)
    monkeypatch.setattr(bulk, "CHUNK", 32)
    sizes = []
    chunk = Bulk.chunk
    monkeypatch.setattr(Bulk, "chunk", lambda self, *given: sizes.append(len(given[0])) or chunk(self, *given))
    run_sweep(spec(), tmp_path, jobs=1)
    assert sizes[0] == 32 > min(sizes)
    assert table(tmp_path) == table(whole)


@pytest.mark.slow
def test_points_that_fail_together_are_computed_alone(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Chunk, "_run", lambda _: 1 // 0)
    run_sweep(spec(), tmp_path, jobs=2)
    assert table(tmp_path) == table(whole)


def test_other_machines_and_jobs_over_several_cores_are_left_to_others() -> None:
    row = {"chip": "intel-npu-rtl", "jobs": [{"model": "lstm-256", "steps": 2}]}
    split = {"chip": "column-npu-4x16k", "jobs": [{"model": "lstm-256", "steps": 2, "split": "rows"}]}
    for scenario in (row, split):
        setup = prepare({"scenario": scenario, "axes": {"n": {"path": "jobs.0.count", "values": [2, 3]}}})
        rest: list[int] = []
        assert Bulk(Resolver(setup)).computed([0, 1], rest) == Rows([], [], [])
        assert rest == [0, 1]


def test_a_core_that_cannot_run_a_model_keeps_no_job_from_the_core_of_another_point() -> None:
    """The first point has a core with fewer rows than the cell has gates; the others have two cores for each job."""
    cores = [{"npe": 1600, "ep": 8, "vp": 120}, {"npe": 1024, "ep": 8, "vp": 24}]
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": cores}
    jobs = [{"model": {"layers": [{"cell": "lstm", "hidden": 44, "input": 2}]}, "steps": 3, "count": 2}]
    values = [3, 120, 60]
    axes = {"vp": {"path": "chip.cores.0.vp", "values": values}}
    setup = prepare({"scenario": {"chip": chip, "jobs": jobs}, "axes": axes})
    rest: list[int] = []
    rows = Bulk(Resolver(setup)).computed(range(3), rest)
    alone = {point: outcome_of(Resolver(setup), point).numbers for point in range(3)}
    assert len(set(alone.values())) == 3
    found = dict(zip([point for point, *_ in rows.points], [tuple(each[2:-1]) for each in rows.results], strict=True))
    # the point with the weak core is left to the others
    assert (sorted(found), rest) == ([1, 2], [0])
    assert all(found[point] == alone[point] for point in found)


def test_unlike_cores_that_have_one_body_at_the_first_point_have_their_own_at_the_others() -> None:
    cores = [{"npe": 256, "ep": 8, "vp": 8}, {"npe": 128, "ep": 8, "vp": 8}]
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": cores}
    jobs = [{"model": {"layers": [{"cell": "lstm", "hidden": 38, "input": 19}]}, "steps": 2, "count": 3}]
    axes = {"vp": {"path": "chip.cores.1.vp", "values": [8, 16, 4]}}
    setup = prepare({"scenario": {"chip": chip, "jobs": jobs}, "axes": axes})
    rest: list[int] = []
    rows = Bulk(Resolver(setup)).computed(range(3), rest)
    assert not rest
    alone = rows_of(outcome_of(Resolver(setup), point) for point in range(3))
    assert len({row[2] for row in alone.results}) > 1
    assert rows.results == alone.results
