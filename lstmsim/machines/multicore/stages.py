"""From the stages of a run to the operations of a Program (docs/multicore.md, section 7).

A step is an operation on the core of its thread, and after it one on each memory where it has lines. Cycles that the
core has only because of lines of memory are no part of the operation: what comes next on the core waits for them, as it
waits for the memories, so accounts find all of it under one stall reason. After the steps of a stage stands the
barrier: one cycle of a hidden unit of the first core, which waits for all of them. A barrier that takes no time is no
operation, because a dependence takes a cycle at least: whatever comes then waits for all of them itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from lstmsim.base.records import record
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.lines.space import Stage, TimedStep
from lstmsim.program.body_writer import NONE, BodyWriter
from lstmsim.program.operations import CAUSE_NUMBERS
from lstmsim.program.program import Core, Phase, Unit

#: Units of a core, and the only unit of a memory.
CORE, SYNC, MEMORY = 0, 1, 0

_CONTENTION = CAUSE_NUMBERS["contention"]
_MEMORY = CAUSE_NUMBERS["memory"]
_BARRIER = CAUSE_NUMBERS["barrier"]


class _End(NamedTuple):
    """Something that has to be over when a step or a barrier ends.

    operation: its index in the body.
    cycles: from its start until it is over.
    thread: whose it is; `NONE`: a barrier.
    own: whether it is the end of an operation on the core of the thread, where operations follow each other anyway.
    """

    operation: int
    cycles: int
    thread: int = NONE
    own: bool = False


_Ends = list[_End]


@record
class Block:
    """Stages that repeat: the time steps of a recurrent job that have equal traffic, or a product alone.

    stages: one after the other, with a barrier after each.
    repeat: how often.
    first_step: time step of the first time.
    mirrored: whether time steps descend.
    """

    stages: tuple[Stage, ...]
    repeat: int = 1
    first_step: int = 0
    mirrored: bool = False


class _Before(NamedTuple):
    """A stage for which another one waits.

    ends: its last things; with a barrier, the barrier alone.
    last: of each thread the ends of its last step.
    lag, phase: where it is, as of a `Dependence`. An earlier phase is meant with its last iteration.
    """

    ends: _Ends
    last: Mapping[int, _Ends]
    lag: int = 0
    phase: int = NONE


def place_of(chip: MulticoreCpu, first: int, threads: int) -> tuple[int, ...]:
    """The cores of a Program that a run on `threads` cores takes: the cores, then of each memory its thread of each."""
    memories = (len(chip.cores) + domain for domain in range(chip.domains) for _ in range(threads))
    return (*range(first, first + threads), *memories)


def cores_of(chip: MulticoreCpu, kinds: Sequence[int] | None = None) -> tuple[Core, ...]:
    """The cores of a Program: those of the chip, each of its kind (None: all are of kind 0), then its memories."""
    kinds = kinds or (0,) * len(chip.cores)
    units = (Unit("core", "fifo"), Unit("sync", "fifo", pipeline="barrier", shown=False))
    memory = Core(max(kinds) + 1, (Unit("memory", "fifo"),), len(chip.cores), None, shared=True, mirrors=True)
    return (*(Core(kind, units) for kind in kinds), *(memory,) * chip.domains)


def phases_of(chip: MulticoreCpu, blocks: Sequence[Block], first: int = 0) -> tuple[Phase, ...]:
    """The phases of a run whose thread 0 is on core `first`, one for each block."""
    phases: list[Phase] = []
    waits: list[_Before] = []
    for number, block in enumerate(blocks):
        if block.repeat > 1:
            # where the last stage ends does not depend on what the first one waits for
            waits.append(_write(chip, BodyWriter(), block.stages, (), first)._replace(lag=1))
        rows = BodyWriter()
        last = _write(chip, rows, block.stages, waits, first)
        phases.append(Phase(rows.body(), block.repeat, block.mirrored, block.first_step))
        waits = [last._replace(phase=number)]
    return tuple(phases)


def in_order(stage: Stage) -> Iterator[tuple[int, int, TimedStep]]:
    """The steps of a stage with their threads and numbers: a step comes after the one that it waits for."""
    written = [0] * len(stage.steps)
    left = sum(map(len, stage.steps))
    while left:
        before = left
        for thread, steps in enumerate(stage.steps):
            number = written[thread]
            if number < len(steps):
                after = steps[number].after
                if after is None or written[after[0]] > after[1]:
                    yield thread, number, steps[number]
                    written[thread] += 1
                    left -= 1
        if left == before:
            raise ValueError("steps wait for each other in a circle")


def memory_parts(chip: MulticoreCpu, core: int, step: TimedStep) -> Iterator[tuple[int, int, int]]:
    """Of each memory that a step asks: its number, how long it is busy, and when the lines are there."""
    for domain, lines in enumerate(step.lines):
        if lines:
            busy = lines * chip.memory_cycles_per_line
            far = chip.remote_latency if domain != chip.domain(core) else 0
            yield domain, busy, busy + chip.memory_latency + far


def _write(
    chip: MulticoreCpu, rows: BodyWriter, stages: Sequence[Stage], before: Sequence[_Before], first: int
) -> _Before:
    """Write stages, of which the first one waits for those before it; returns what the next stage has to wait for."""
    for stage in stages:
        ends: dict[tuple[int, int], _Ends] = {}
        last: dict[int, _Ends] = {}
        threads = len(stage.steps)
        for thread, number, step in in_order(stage):
            for each in before if number == 0 else ():
                _wait(rows, each, thread)
            for end in last.get(thread, []):
                if not end.own:
                    rows.need(None, end.operation, end.cycles, cause=_MEMORY)
            for end in ends[step.after] if step.after else ():
                rows.need(None, end.operation, end.cycles + chip.handover_cycles, cause=_CONTENTION)
            parts = list(memory_parts(chip, first + thread, step))
            ends[thread, number] = last[thread] = _write_step(
                rows, step, parts, thread, threads, stage.frames and number == 0
            )
        barrier = chip.barrier(threads)
        every = list(chain.from_iterable(last.values()))
        if barrier:
            for end in every:
                rows.need(None, end.operation, end.cycles, cause=_BARRIER)
            every = [_End(rows.size, barrier)]
            # it belongs to the layer of the steps before it
            rows.operation(SYNC, "barrier", step.place, result_cycles=barrier)
        before = [_Before(every, last)]
    return before[0]


def _write_step(
    rows: BodyWriter, step: TimedStep, parts: Sequence[tuple[int, int, int]], thread: int, threads: int, frame: bool
) -> _Ends:
    """Write the operations of a step; returns what has to be over when it ends."""
    core, cycles = rows.size, step.cycles - step.of_memory
    ends = [_End(core, step.cycles, thread, own=not step.of_memory)]
    rows.operation(
        CORE, step.label, step.place, cycles, frame=frame, result_cycles=step.cycles, work=step.work, member=thread
    )
    for domain, busy, there in parts:
        rows.need(None, core, 1, cause=_MEMORY)
        ends.append(_End(rows.size, there, thread))
        member = threads + domain * threads + thread
        rows.operation(MEMORY, f"lines of memory {domain}", step.place, busy, result_cycles=there, member=member)
    return ends


def _wait(rows: BodyWriter, before: _Before, thread: int) -> None:
    """Let the first step of a thread wait for a stage before it: for its own lines first, then for the others."""
    own = [(end, _MEMORY) for end in before.last.get(thread, []) if not end.own]
    for end, cause in (*own, *((end, _BARRIER) for end in before.ends if end.thread != thread)):
        rows.need(None, end.operation, end.cycles, before.lag, before.phase, before.phase != NONE, cause)
