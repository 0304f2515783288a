"""What tests of split jobs have in common: random ones, issues of a trace, phases and work of a program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Devices, Exchange
from lstmsim.machines.column.phases import split_refusal
from lstmsim.model.cell import Cell, stage_of
from lstmsim.model.cells import CELLS, graph
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from tests.strategies import BOOLEANS, among, cores_of_a_chip, models, whole

#: Cells that send more than one vector of a row block.
OWN_CELLS = (
    Cell(
        "the one later than the other",
        (stage_of("a[x h] b[x h]"), stage_of("n[x q r]")),
        graph("at sigmoid a; bt tanh b; p multiply at bt; q quantize p; r quantize at; s tanh n; h' quantize s"),
        {"h": "h'"},
    ),
    Cell(
        "both at once",
        (stage_of("a[x h] b[x h]"), stage_of("n[r q]")),
        graph("at sigmoid a; bt tanh b; r quantize at; q quantize bt; s tanh n; h' quantize s"),
        {"h": "h'"},
    ),
    Cell(
        "h before the second product",
        (stage_of("a[x h]"), stage_of("p[m]")),
        graph("at sigmoid a; ct multiply at c; h' quantize ct; m quantize at; pt tanh p; c' add pt c"),
        {"h": "h'", "c": "c'"},
    ),
)


@st.composite
def splits(draw: st.DrawFn) -> tuple[ColumnCore, Exchange, Job, tuple[int, ...]]:
    """A job that is split, and cores for it."""
    model = draw(models(tuple(CELLS)))
    if draw(BOOLEANS) and not any(layer.cell.projected for layer in model.layers):
        own = [draw(among(*OWN_CELLS)) if layer.cell.recurrent else layer.cell for layer in model.layers]
        layers = tuple(replace(layer, cell=cell) for layer, cell in zip(model.layers, own, strict=True))
        model = Model("m", layers, model.layer_order)
    split = draw(among("rows", "layers"))
    members = draw(whole(2, 4 if split == "rows" else max(2, min(3, len(model.layers)))))
    core = draw(cores_of_a_chip())
    assume(split_refusal(model, core, split, members) is None)
    place = tuple(draw(st.permutations(range(members))))
    if split == "layers":
        place = tuple(draw(st.lists(whole(0, 2), min_size=members, max_size=members)))
        assume(max(map(place.count, place)) <= core.threads)
    exchange = Exchange(draw(among(0, 1, 2, 8, 30)), draw(among(1, 2, 3, 7, 64)))
    arrival, interval = draw(among(0, 0, 13)), draw(among(0, 0, 7, 90))
    return core, exchange, Job("j", model, draw(whole(1, 4)), arrival, interval, place, split=split), place


@st.composite
def linked(draw: st.DrawFn) -> tuple[ColumnNpu, list[Job]]:
    """A chip of several devices, and jobs that are split over some of its cores, one to three of them at a time."""
    devices, each = draw(among((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)))
    core, exchange, first, _ = draw(splits())
    jobs = []
    for number in range(draw(among(1, 1, 2, 3))):
        job = first if number == 0 or draw(BOOLEANS) else draw(splits())[2]
        most = devices * each if job.split == "rows" else len(job.model.layers)
        members = draw(whole(2, max(2, min(4, most))))
        place = tuple(draw(st.permutations(range(devices * each)))[:members])
        if job.split == "layers":
            place = tuple(draw(st.lists(whole(0, devices * each - 1), min_size=members, max_size=members)))
        assume(split_refusal(job.model, core, job.split, members) is None)
        arrival = draw(among(0, 0, 1, 13, 60))
        jobs.append(replace(job, name=f"j{number}", cores=place, arrival=arrival, steps=min(job.steps, 3)))
    threads = max(sum((job.cores or ()).count(on) for job in jobs) for on in range(devices * each))
    core = replace(core, threads=max(core.threads, threads))
    links = Devices(draw(among(0, 1, 2, 9, 40)), draw(among(1, 2, 3, 7, 64)), devices)
    return ColumnNpu("c", 260, (core,) * (devices * each), None, exchange, devices=links), jobs


def issues(trace: Trace, core: int, unit: int) -> list[tuple[int, int]]:
    """Cycle and thread of every issue on a unit."""
    names = ("core", "unit", "start", "context", "count", "cycles")
    rows = zip(*(trace.issue(name).tolist() for name in names), strict=True)
    return sorted(
        (start + number * cycles, context)
        for on, which, start, context, count, cycles in rows
        if (on, which) == (core, unit)
        for number in range(count)
    )


def phases_of(program: Program) -> tuple[Any, ...]:
    return program.tasks[0].phases(program.cores[program.tasks[0].cores[0]].kind)


def work(program: Program) -> int:
    """Multiply-accumulates of a program's one task."""
    return sum(
        phase.repeat * operation.work * operation.count
        for phase in phases_of(program)
        for operation in phase.body.operations
    )
