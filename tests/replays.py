"""What tests of replays have in common: numbers of jobs, changed traces, scenarios with all that jobs can ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from hypothesis import assume, reject
from hypothesis import strategies as st

from lstmsim import engines, machines
from lstmsim.analysis.replay import JobNumbers, replay
from lstmsim.base.errors import InputError
from lstmsim.machines.column.npu import ColumnNpu, Exchange, Memory
from lstmsim.machines.column.phases import split_refusal
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Model, Precision
from lstmsim.model.numerics.fixed import fixed_arithmetic
from lstmsim.model.numerics.golden import run_network
from lstmsim.model.numerics.weights import random_network, random_stimulus
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import ISSUES, Trace
from tests.strategies import BOOLEANS, among, cores_of_a_chip, models, whole


def run(scenario: Scenario, engine: str = "fast") -> tuple[Program, Trace]:
    program = machines.lower(scenario.chip, scenario.jobs)
    return program, engines.run(program, engine)


def fixed(scenario: Scenario) -> dict[int, JobNumbers]:
    """Fixed-point numbers, other ones for each job."""
    return {index: _numbers(job.model, job.steps, index) for index, job in enumerate(scenario.jobs)}


@lru_cache(maxsize=16)
def _numbers(model: Model, steps: int, seed: int) -> JobNumbers:
    """Tests change the trace of a scenario again and again, and its numbers never."""
    stimulus = random_stimulus(model, steps, seed)
    return JobNumbers(fixed_arithmetic(random_network(model, seed), stimulus, Precision()), stimulus)


def assert_golden(scenario: Scenario, program: Program, trace: Trace, leave_out: int | None = None) -> None:
    """Every job that was not turned away computes the bits of the golden model; one may be without numbers."""
    numbers = {index: own for index, own in fixed(scenario).items() if index != leave_out}
    golden = {index: run_network(own.arithmetic, own.stimulus) for index, own in numbers.items()}
    done = replay(scenario, program, trace, numbers)
    assert set(done) == {index for index in numbers if trace.task("core")[index] >= 0}
    for index, run_ in done.items():
        for found, wanted in zip(chain(*run_.passes), chain(*golden[index].passes), strict=True):
            assert np.array_equal(found.h, wanted.h)
            assert set(found.states) == set(wanted.states)
            assert all(np.array_equal(found.states[name], values) for name, values in wanted.states.items())


def column(name: str) -> int:
    return ISSUES.place(name)


def changed(trace: Trace, change: Callable[[np.ndarray], np.ndarray]) -> Trace:
    """The trace with other issues, in order again."""
    issues = change(trace.issues.copy())
    order = np.lexsort((issues[:, column("unit")], issues[:, column("core")], issues[:, column("start")]))
    return replace(trace, issues=issues[order])


def moved(trace: Trace, row: int, cycles: int) -> Trace:
    """The trace with one row at another time."""

    def change(issues: np.ndarray) -> np.ndarray:
        issues[row, column("start")] += cycles
        return issues

    return changed(trace, change)


def without(trace: Trace, row: int) -> Trace:
    return changed(trace, lambda issues: np.delete(issues, row, axis=0))


def waited(trace: Trace, cause: str) -> list[int]:
    """Rows that started in the very cycle in which a cause held them no longer."""
    until, start = trace.issue(f"{cause}_until"), trace.issue("start")
    return [int(row) for row in np.flatnonzero((until == start) & (start > 0))]


@st.composite
def wishes(draw: st.DrawFn, kind: str, number: int) -> dict[str, Any]:
    """How job number `number` waits."""
    if kind == "pauses":
        return {
            "preempts": draw(among(True, True, True, False)),
            "dispatch": "priority",
            "priority": number,
            "queue_limit": draw(among(None, None, None, None, 0)),
        }
    return {
        "dispatch": draw(among("fcfs", "sjf", "edf")),
        "deadline": draw(among(None, 50)),
        "after": draw(among(None, None, number - 1)) if number else None,
        "queue_limit": draw(among(None, None, 0, 1)),
        "patience": draw(among(None, None, 0, 40)),
        "affinity": draw(BOOLEANS),
    }


@st.composite
def crowds(draw: st.DrawFn, kind: str) -> Scenario:
    """Jobs that take turns: at `weights` in small memories, or at threads (`pauses`), some turned away, some split."""
    core = draw(cores_of_a_chip())
    count = draw(whole(1, 3 if kind == "weights" else 2))
    memory = None
    core = replace(core, threads=draw(whole(1, 2)))
    if kind == "weights":
        memory = Memory(draw(among(0.2, 2, 20)), draw(among(0, 5, 64)), draw(whole(1, 3)))
        bits = draw(among(4, 8, 16, 32, 64))
        memory = draw(among(memory, memory, memory, None))
        core = replace(core, weight_kib=draw(whole(1, 3)), weight_bits=bits)
    exchange = Exchange(draw(among(0, 1, 8, 30)), draw(among(1, 3, 64)))
    chip = ColumnNpu("chip", 260, (core,) * count, memory, exchange)
    pool = [draw(models(tuple(CELLS))) for _ in range(draw(whole(1, 3)))]
    jobs = []
    for number in range(draw(whole(2, 6))):
        model = draw(among(*pool))
        own = draw(wishes(kind, number))
        split = draw(among("", "", "rows", "layers")) if count > 1 else ""
        if split and split_refusal(model, core, split, count) is None:
            own |= {"split": split, "cores": tuple(range(count))}
        assume(own.get("split") or core.refusal(model) is None)
        arrival, interval = draw(among(0, 0, 1, 30, 90)), draw(among(0, 0, 7))
        # those who stop others come later than these
        arrival += 25 * number * (kind == "pauses")
        jobs.append(Job(f"j{number}", model, draw(whole(1, 4)), arrival, interval, **own))
    return Scenario(chip, tuple(jobs))


def legal(scenario: Scenario, engine: str) -> tuple[Program, Trace]:
    """The run of a scenario that hypothesis has drawn; those that are refused do not count."""
    try:
        return run(scenario, engine)
    except InputError:
        reject()
