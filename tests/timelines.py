"""Timelines to test with: hand-made, random, and as an engine would make them but of any size."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from lstmsim.analysis.timeline import STATES, Row, Timeline
from tests.strategies import BOOLEANS, CHARACTERS, among, whole

COLUMNS = ("row", "start", "end", "state", "job", "layer", "step")
BUSY = STATES.index("busy")

Span = tuple[int, int, int, int, int, int, int]


def timeline_from(
    spans: list[Span],
    rows: tuple[Row, ...],
    jobs: tuple[str, ...],
    makespan: int,
    chip: str = "test",
    mhz: float = 260.0,
) -> Timeline:
    """A timeline of (row, start, end, state, job, layer, step) tuples, in any order."""
    table = np.array(sorted(spans), dtype=np.int64).reshape(-1, 7)
    kinds = (np.int32, np.int64, np.int64, np.int8, np.int32, np.int32, np.int32)
    columns = {name: table[:, at].astype(kind) for at, (name, kind) in enumerate(zip(COLUMNS, kinds, strict=True))}
    return Timeline(chip, mhz, makespan, rows, jobs, **columns)


def assert_equal(one: Timeline, other: Timeline) -> None:
    """Every fact and every column, types included."""
    for name in ("chip", "frequency_mhz", "makespan_cycles", "window", "rows", "jobs", "groups"):
        assert getattr(one, name) == getattr(other, name)
    for name in COLUMNS:
        assert getattr(one, name).dtype == getattr(other, name).dtype
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def small(memory: bool = False) -> Timeline:
    """Two jobs on a core with two threads: a little of everything; `memory`: also of what not all machines have."""
    rows = (Row(0, "array"), Row(0, "thread", 0), Row(0, "thread", 1), Row(0, "tail"))
    state = {name: number for number, name in enumerate(STATES)}
    spans = [
        (0, 0, 40, state["busy"], 0, 0, 0),
        (0, 40, 44, state["switch"], -1, -1, -1),
        (0, 44, 80, state["busy"], 1, 0, 0),
        (0, 80, 95, state["hazard"], -1, -1, -1),
        (0, 95, 120, state["busy"], 0, 0, 1),
        (0, 120, 130, state["drain"], -1, -1, -1),
        (0, 130, 140, state["idle"], -1, -1, -1),
        (1, 0, 40, state["busy"], 0, 0, 0),
        (1, 40, 95, state["hazard"], 0, 0, 1),
        (1, 95, 120, state["busy"], 0, 0, 1),
        (1, 120, 130, state["drain"], 0, -1, -1),
        (2, 0, 44, state["ready"], 1, 0, 0),
        (2, 44, 80, state["busy"], 1, 0, 0),
        (2, 80, 110, state["backpressure"], 1, 0, 1),
        (2, 110, 125, state["input"], 1, 0, 1),
        (2, 125, 130, state["dispatch"], 1, 0, 1),
        (3, 50, 54, state["busy"], 0, 0, 0),
        (3, 100, 104, state["busy"], 1, 0, 0),
    ]
    if memory:
        rows += (Row(1, "memory"),)
        spans += [(4, 5, 60, state["busy"], 1, 0, 1), (4, 70, 90, state["busy"], 0, -1, -1)]
        spans += [(2, 130, 134, state["reload"], 1, 0, 1), (2, 134, 140, state["weights"], 1, 0, 1)]
        others = (
            (130, 132, "memory"),
            (132, 133, "contention"),
            (133, 134, "barrier"),
            (134, 137, "dependence"),
            (137, 138, "start"),
            (138, 139, "activation"),
            (139, 140, "scan"),
        )
        spans += [(1, start, end, state[name], 0, 0, 2) for start, end, name in others]
    return timeline_from(spans, rows, ("lstm-512 #0", "lstm-512 #1"), 140, "column-npu-64k")


def busy_machine(cores: int = 1, threads: int = 2, jobs: int = 4, spans: int = 60, seed: int = 0) -> Timeline:
    """Arrays that are busy most of the time, with `spans` spans each; threads and tails follow them."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 30, size=(cores, spans))
    makespan = int(lengths.sum(axis=1).max())
    table: list[Span] = []
    rows: list[Row] = []
    for core in range(cores):
        first = len(rows)
        rows += [Row(core, "array"), *(Row(core, "thread", index) for index in range(threads)), Row(core, "tail")]
        now = 0
        for number, length in enumerate(lengths[core].tolist()):
            job = (number // 7 * cores + core) % jobs
            state = BUSY if random.random() < 0.6 else int(random.integers(1, 6))
            busy = state == BUSY
            table.append(
                (first, now, now + length, state, job if busy else -1, 0 if busy else -1, number if busy else -1)
            )
            table.append((first + 1 + job % threads, now, now + length, BUSY if busy else 2, job, 0, number))
            if busy:
                table.append((first + threads + 1, now, now + 1, BUSY, job, 0, number))
            now += length
        if now < makespan:
            table.append((first, now, makespan, STATES.index("idle"), -1, -1, -1))
    names = tuple(f"lstm-{256 << number % 3} #{number}" for number in range(jobs))
    return timeline_from(table, tuple(rows), names, makespan, "column-npu-64k")


NAMES = st.text(CHARACTERS, max_size=12)
_JOBS = st.lists(NAMES, max_size=4)
_KEYS = st.lists(st.tuples(whole(0, 3), among("array", "thread", "tail", "mfu0"), whole(0, 2)), max_size=5)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Any legal timeline: gaps and empty rows (but for arrays), odd and equal names, long times."""
    makespan = draw(among(1, 7, 100, 10**6, 2**50))
    # Only threads have several rows of their kind on a core.
    named = {Row(core, kind, index if kind == "thread" else 0) for core, kind, index in draw(_KEYS)}
    rows = draw(st.permutations(sorted({*named, Row(0, "array")}, key=lambda row: row.name)))
    jobs = tuple(draw(_JOBS))
    spans: list[Span] = []
    for row in range(len(rows)):
        cuts = draw(st.sets(whole(0, makespan), max_size=8))
        complete = rows[row].kind == "array"
        for start, end in pairwise(sorted(cuts | {0, makespan} if complete else cuts)):
            if complete or draw(BOOLEANS):
                state = draw(whole(0, len(STATES) - 1))
                numbers = [draw(whole(-1, limit)) for limit in (len(jobs) - 1, 5, 2000)]
                spans.append((row, start, end, state, numbers[0], numbers[1], numbers[2]))
    mhz = draw(among(260.0, 0.1, 1e3 / 3))
    return timeline_from(spans, tuple(rows), jobs, makespan, draw(NAMES), mhz)


def periodic(steps: int = 108, step: int = 70, busy: int = 31, layers: int = 1) -> Timeline:
    """A machine that is busy for so many cycles of each time step; further layers do the same a step later."""
    spans = [
        (0, (at + layer) * step + layer * busy, (at + layer) * step + (layer + 1) * busy, BUSY, 0, layer, at)
        for at in range(steps)
        for layer in range(layers)
    ]
    return timeline_from(
        sorted(spans, key=lambda each: each[1]), (Row(0, "array"),), ("a",), (steps + layers - 1) * step
    )
