"""Random pairs of runs on all machines: every row adds up, sides exchange, every number is the report's."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import lstmsim
from lstmsim.analysis.report import Report
from lstmsim.studies.diff.result import Diff, Pair
from tests.strategies import examples

#: Chips, and what may be changed of each.
COLUMN = (
    *("threads=1", "threads=3", "threads=4", "ep=8", "npe=8192", "tail_width=16", "thread_policy=fine", "count=2"),
    *("latency.add=2", "latency.writeback=7", "switch_cycles=3", "accumulator_banks=4"),
)
CHANGES = {
    "column-npu-16k": [f"chip.cores.0.{each}" for each in COLUMN] + ["chip.frequency_mhz=300"],
    "column-npu-4x16k": ["chip.cores.0.threads=1", "chip.cores.0.ep=8", "chip.frequency_mhz=200"],
    "intel-npu-rtl": ["chip.frequency_mhz=300"],
    "brainwave-s10": ["chip.frequency_mhz=300"],
    "epyc-7742": ["chip.frequency_mhz=2000"],
    "edge": ["chip.frequency_mhz=1000", "chip.launch=3000"],
    "v100": ["chip.frequency_mhz=1000"],
    "edgedrnn-8": [
        "chip.cores.0.pe=4",
        "chip.cores.0.fifo=4",
        "chip.cores.0.memory.latency=20",
        "jobs.0.density.h=0.8",
    ],
    "delta": [
        *("chip.cores.0.ep=2", "chip.cores.0.latency.delta=9", "chip.cores.0.threads=1", "jobs.0.density.h=0.9"),
        "chip.cores.0.delta.group=16",
    ],
}
#: A chip that leaves out columns that have not changed.
DELTA = {"kind": "column-npu", "frequency_mhz": 250, "cores": [{"npe": 512, "ep": 4, "threads": 2, "delta": {}}]}
OF_JOBS = ("jobs.0.steps=4", "jobs.0.arrival=50", "dispatch=sjf", "jobs.0.queue_limit=0", "jobs.0.patience=10")
SMALL = [{"layers": [{"cell": cell, "hidden": size, "input": size}]} for cell in ("lstm", "gru") for size in (32, 64)]
GRU = {"layers": [{"cell": "gru", "hidden": 48, "input": 16}, {"cell": "gru", "hidden": 48, "input": 48}]}
GRU |= {"layer_order": "step"}
TWO = {
    "layers": [
        {"cell": "lstm", "hidden": 64, "input": 64, "bidirectional": True},
        {"cell": "gru", "hidden": 48, "input": 128},
    ]
}


def scenario(draw: random.Random, chip: str) -> dict[str, Any]:
    large, drawn = chip in ("v100", "edge", "epyc-7742"), chip in ("edgedrnn-8", "delta")
    models = [GRU] if chip == "edgedrnn-8" else SMALL if large or drawn else [*SMALL, TWO, "lstm-256"]
    jobs: list[dict[str, Any]] = [
        {
            "model": draw.choice(models),
            "steps": draw.randint(1, 2 if large else 6),
            "arrival": draw.choice([0, 0, 0, 30, 200]),
        }
        for _ in range(draw.choice([1, 2] if large else [1, 2, 3, 5]))
    ]
    for job in jobs if drawn else ():
        job["density"] = {"x": draw.choice([0.1, 0.7]), "h": draw.choice([0.05, 0.5]), "seed": draw.randint(1, 9)}
    if chip == "intel-npu-rtl" and draw.random() < 0.3:
        jobs[0]["batch"] = draw.choice([2, 4])
    return {"chip": DELTA if chip == "delta" else chip, "jobs": jobs}


def runs(draw: random.Random, chip: str) -> tuple[lstmsim.Run, lstmsim.Run] | None:
    """Two runs; None where a change is not for the machine."""
    one = scenario(draw, chip)
    other, changes = one, draw.sample([*CHANGES[chip], *OF_JOBS], draw.choice([1, 1, 2]))
    if draw.random() < 0.25:
        other, changes = scenario(draw, draw.choice(["column-npu-16k", "intel-npu-rtl", chip])), []
    try:
        return lstmsim.run(one), lstmsim.run(other, overrides=changes)
    except lstmsim.InputError:
        return None


def column(pairs: Sequence[Pair], side: int) -> int:
    return sum(pair[side] or 0 for pair in pairs)


def check_side(found: Diff, side: int, report: Report) -> None:
    """Rows add up, and have the numbers of the report."""
    makespan = found.makespan_cycles[side]
    assert makespan == report.makespan_cycles
    assert found.ms[side] == makespan / report.frequency_mhz / 1000
    assert column([row.cycles for row in found.path], side) == makespan
    cores = [row for row in found.cores if row.ways[side] is not None]
    assert [row.core for row in cores] == [core.index for core in report.cores]
    for row, core in zip(cores, report.cores, strict=True):
        assert column([*row.cycles.values()], side) == (row.ways[side] or 0) * makespan
        assert column([*row.multiplier_cycles.values()], side) == core.peak * makespan
        assert {name: row.cycles[name][side] for name in core.cycles} == core.cycles
        assert {name: row.multiplier_cycles[name][side] for name in core.pe_cycles} == core.pe_cycles
    jobs = {row.numbers[side]: row for row in found.jobs if row.numbers[side] is not None}
    assert len(jobs) == len(report.jobs) + len(report.rejected)
    assert all(jobs[each.number].latency_cycles[side] is None for each in report.rejected)
    for job in report.jobs:
        row = jobs[job.number]
        assert row.latency_cycles[side] == job.latency == column([*row.cycles.values()], side)
        assert all((pair[side] or 0) >= 0 for pair in row.cycles.values())


def turned(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return pair[1], pair[0]


def check_exchanged(found: Diff, back: Diff) -> None:
    assert back.makespan_cycles == turned(found.makespan_cycles)
    assert (back.clock_ms, back.cycles_ms) == (-found.clock_ms, -found.cycles_ms)
    assert found.clock_ms + found.cycles_ms == pytest.approx(found.ms[1] - found.ms[0], abs=1e-12)
    assert {row.key: turned(row.values) for row in found.changed} == {row.key: row.values for row in back.changed}
    paths = [{(row.what, row.why): row.cycles for row in each.path} for each in (found, back)]
    assert {key: turned(pair) for key, pair in paths[0].items()} == paths[1]
    for one, other in zip(found.cores, back.cores, strict=True):
        assert (other.core, other.ways) == (one.core, turned(one.ways))
        assert other.cycles == {name: turned(pair) for name, pair in one.cycles.items()}
    jobs = {turned(row.numbers): row for row in found.jobs}
    for row in back.jobs:
        assert row.latency_cycles == turned(jobs[row.numbers].latency_cycles)
        assert row.cycles == {name: turned(pair) for name, pair in jobs[row.numbers].cycles.items()}
    assert {"faster": "slower", "slower": "faster"}.get(found.verdict, found.verdict) == back.verdict
    one, other = found.parts_at, back.parts_at
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert (one.cycle, one.core, one.a, one.b) == (other.cycle, other.core, other.b, other.a)
    if found.lag is not None:
        assert back.lag is not None
        assert (back.lag.cycles, back.lag.behind, back.lag.step) == (
            -found.lag.cycles,
            -found.lag.behind,
            found.lag.step,
        )


def check_same(found: Diff) -> None:
    """Nothing differs."""
    assert found.verdict == "same"
    assert (found.changed, found.parts_at, found.lag, found.clock_ms, found.cycles_ms) == ((), None, None, 0.0, 0.0)
    rows = [row.cycles for row in found.path] + [row.latency_cycles for row in found.jobs]
    rows += [pair for core in found.cores for pair in (*core.cycles.values(), *core.multiplier_cycles.values())]
    assert all(pair[0] == pair[1] for pair in rows)


def check_pairs(count: int, chips: Sequence[str], seed: int) -> Counter[str]:
    draw, done = random.Random(seed), Counter[str]()
    while done.total() < count:
        chip = chips[done.total() % len(chips)]
        both = runs(draw, chip)
        if both is None:
            continue
        found = lstmsim.diff(*both)
        for side, each in enumerate(both):
            check_side(found, side, each.report)
        check_exchanged(found, lstmsim.diff(both[1], both[0]))
        check_same(lstmsim.diff(both[0], both[0]))
        assert found.to_text()
        done[chip] += 1
    return done


@pytest.mark.slow
def test_random_pairs_add_up() -> None:
    check_pairs(12, ["column-npu-16k", "intel-npu-rtl", "column-npu-4x16k", "brainwave-s10", "edgedrnn-8", "delta"], 1)


@pytest.mark.needs_core
@pytest.mark.parametrize("chip", ["epyc-7742", pytest.param("edge", marks=pytest.mark.long)])
def test_a_pair_of_a_large_machine_adds_up(chip: str) -> None:
    check_pairs(1, [chip], 2)


def test_runs_of_batches_add_up() -> None:
    batching = {"max_batch_size": 2, "max_wait_cycles": 10}
    base = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2, "count": 3, "batching": batching}]}
    both = lstmsim.run(base), lstmsim.run(base, overrides=["chip.cores.0.ep=8"])
    found = lstmsim.diff(*both)
    for side, each in enumerate(both):
        check_side(found, side, each.report)
    check_exchanged(found, lstmsim.diff(both[1], both[0]))


@pytest.mark.long
def test_many_random_pairs_add_up() -> None:
    check_pairs(examples(500), [*CHANGES, "column-npu-16k", "column-npu-16k"], 3)
