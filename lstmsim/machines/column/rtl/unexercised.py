"""What a run of a generated NPU never did: of that its comparison shows nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lstmsim.machines.column.rtl.events import issued_rows
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.machines.column.tiles import ARRAY
from lstmsim.machines.rtl import Event
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.numerics.recorded import Values
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

__all__ = ["never_done", "never_seen_numbers"]

#: Names of cycles that not every run has, and what such a run does.
_NAMES = {
    "switch": "a switch of threads",
    "hazard": "a tile that waits for a vector (hazard)",
    "backpressure": "a tile that waits for an accumulator bank (backpressure)",
    "input": "a tile that waits for a frame (input)",
}


def never_done(design: Design, program: Program, trace: Trace, events: Sequence[Event]) -> Iterator[str]:
    """Yield what the control had never to do.

    design: what is built.
    program, trace: the lowered scenario and its run.
    events: of the run.
    """
    seen = {str(each.fields[0]) for each in events if each.kind == "C"}
    switching = any(plan.core.switch_cycles and plan.core.threads > 1 for plan in design.cores)
    yield from (text for name, text in _NAMES.items() if name not in seen and (name != "switch" or switching))
    admitted = {int(each.fields[1]): each.cycle for each in events if each.kind == "A"}
    if all(admitted[number] == job.arrival for number, job in enumerate(design.jobs)):
        yield "a job that waits for a context"
    if not _blocks_wait(design, program, trace):
        yield "a row block that waits for the tail"


def _blocks_wait(design: Design, program: Program, trace: Trace) -> bool:
    """Whether the tail was busy with another block when the sums of some block were there."""
    last: dict[tuple[object, ...], int] = {}
    rows = list(issued_rows(design, program, trace))
    for each in rows:
        if each.unit == ARRAY:
            layer, direction, block, _, stage = each.operation.place[:5]
            # a run of tiles is of one block, or of neighbouring ones in columns: then each tile is one of the last ones
            by_block = design.cores[each.core].core.block_order == "column"
            for ahead in range(each.issues):
                key = (each.job, each.step, layer, direction, block + (each.before + ahead) * by_block, stage)
                last[key] = max(last.get(key, 0), each.start + ahead)
    for each in rows:
        # later segments of a stage wait for values, not for sums
        if each.unit != ARRAY and each.operation.place[5] == 0:
            layer, direction, block, _, stage = each.operation.place[:5]
            core = design.cores[each.core].core
            there = last[each.job, each.step, layer, direction, block, stage] + core.latency.mvm_cycles(core.ep)
            if each.start > there:
                return True
    return False


def never_seen_numbers(numbers: Mapping[int, JobNumbers], values: Mapping[int, Values] | None) -> Iterator[str]:
    """Yield what no number came to.

    numbers: of every job, after their golden runs.
    values: all that was computed in these runs; None: it was not kept.
    """
    passes = [(job, *place, own) for job, each in numbers.items() for place, own in _passes(each)]
    arithmetic = [own for *_, own in passes]
    if not any(own.overflowed.total() for own in arithmetic):
        yield "a sum that wraps in its accumulator"
    kinds: dict[str, set[str]] = {
        "an adapted sum": set(),
        "a value of the tail": set(),
        "an element of a vector": set(),
    }
    for own in arithmetic:
        cell = own.layer.cell
        sums, vectors = {each.name for each in cell.sums}, {e.name for e in cell.nodes if e.operation == "quantize"}
        for name, count in own.saturated.items():
            if count and name != "x":
                kind = "an adapted sum" if name in sums else "an element of a vector" if name in vectors else None
                kinds[kind or "a value of the tail"].add(name)
    yield from (f"{kind} that saturates" for kind, names in kinds.items() if not names)
    if values is None:
        yield "(not looked at: arguments beyond the ends of their tables)"
        return
    sides = [
        _beyond(own, name, values[job][layer][direction])
        for job, layer, direction, own in passes
        for name in own.tables
    ]
    if sides and not any(below for below, _ in sides):
        yield "an argument below its table"
    if sides and not any(above for _, above in sides):
        yield "an argument above its table"


def _passes(job: JobNumbers) -> Iterator[tuple[tuple[int, int], FixedArithmetic]]:
    for layer, both in enumerate(job.arithmetic):
        for direction, own in enumerate(both):
            assert isinstance(own, FixedArithmetic)
            yield (layer, direction), own


def _beyond(own: FixedArithmetic, node: str, values: Mapping[str, np.ndarray]) -> tuple[bool, bool]:
    """Whether some argument of a table lies below its lower end, and above its upper end."""
    table = own.tables[node]
    (source,) = own.layer.cell.node(node).sources
    given = values.get(own.layer.cell.states.get(source, source))
    if given is None:
        return False, False
    lowest = -table.cells_below_zero * 2.0**-table.cells_per_one
    highest = lowest + own.precision.activation_entries * 2.0**-table.cells_per_one
    real = table.source.real(given)
    return bool((real < lowest).any()), bool((real > highest).any())
