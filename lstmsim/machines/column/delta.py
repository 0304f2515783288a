"""Delta columns (docs/delta_columns.md): which groups of columns a step sends, and the phases of a job that sends them.

Tiles of a step depend on numbers, so each step of each layer has operations of its own. No number is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.assembly import Phases
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.passes import Group, Share, Source, Tiles, Wait, column_groups, wanted
from lstmsim.machines.column.phases import kept_phases, operations_per_step, what_is_read
from lstmsim.machines.column.shape import TAIL, StageShape, issue_order, pass_shapes
from lstmsim.model.draws import changed
from lstmsim.model.model import Model
from lstmsim.model.numerics.delta import Flags, Rule, grouped, sent_run
from lstmsim.model.numerics.jobs import OwnNumbers
from lstmsim.model.scenario import Density, Job, distinct_jobs, no_data
from lstmsim.program.body_writer import NONE, BodyWriter, Home
from lstmsim.program.program import Phase


class Sent(NamedTuple):
    """What one step of a layer sends: for each group of columns of x and of h, whether it is sent."""

    x: Flags
    h: Flags


#: `sent[layer][step]`.
AllSent = Sequence[Sequence[Sent]]


#: Most operations of a job with delta columns: each step of each layer has operations of its own, which are held.
MOST_HELD = 2_000_000


def rule_of(core: ColumnCore) -> Rule:
    """When a core with delta columns sends a group."""
    assert core.delta is not None
    return Rule(core.delta.x, core.delta.h, core.delta_group)


def sent_by(job: Job, core: ColumnCore) -> AllSent:
    """What a job sends on a core with delta columns; `InputError` if nothing says it."""
    if job.density is not None:
        return sent_at_random(job.model, job.steps, core.delta_group, job.density)
    if not isinstance(job.numbers, OwnNumbers):
        raise InputError(Mistake(f"job {job.name}", no_data(job)))
    _, senders = sent_run(job.numbers, rule_of(core), by_step=job.model.layer_order == "step")
    nothing = np.zeros(0, np.bool_)
    return [[Sent(each["x"], each.get("h", nothing)) for each in own.sent] for own in senders]


def left_out(chip: ColumnNpu, jobs: Iterable[Job]) -> float | None:
    """The share of the groups that jobs do not send; the last group of a step's order is always sent."""
    sent = total = 0
    for job in jobs:
        core = chip.cores[job.allowed(len(chip.cores))[0]]
        if core.delta is None:
            continue
        for number, steps in enumerate(sent_by(job, core)):
            forced = (job.model.layer_order == "step" and number > 0) or not len(steps[0].h)
            for x, h in steps:
                last = x if forced else h
                sent += int(x.sum() + h.sum()) + (not last[-1])
                total += len(x) + len(h)
    return 1 - sent / total if total else None


def delta_phases(job: Job, core: ColumnCore) -> Phases:
    """The phases of a job on a core with delta columns: the same object for equal arguments."""
    key = (what_is_read(job.model, core), core.delta, job.steps, job.density, job.numbers)
    return kept_phases(key, 0, lambda: _phases(job, core), repeats=False)


def _phases(job: Job, core: ColumnCore) -> Phases:
    most = operations_per_step(job.model.layers, core) * job.steps
    if most > MOST_HELD:
        text = f"takes up to {most:,} operations of its own with delta columns, more than {MOST_HELD:,}"
        raise InputError(Mistake(f"job {job.name}: steps", f"{text}: fewer steps show the same rhythm"))
    return sent_phases(job.model, core, sent_by(job, core))


def mistakes_of_jobs(chip: ColumnNpu, jobs: Iterable[Job]) -> list[Mistake]:
    """What jobs ask for that cores with delta columns do not have."""
    if all(core.delta is None for core in chip.cores):
        return []
    mistakes = []
    for job in distinct_jobs(jobs):
        own = [chip.cores[each] for each in job.allowed(len(chip.cores))]
        where = f"job {job.name}"
        if all(core.delta is None for core in own):
            continue
        if len({(core.delta is None, core.delta and rule_of(core)) for core in own}) > 1:
            text = "may use cores that differ in `delta`, and its numbers would depend on its core: name some (`cores`)"
            mistakes.append(Mistake(where, text))
        if job.settled(len(chip.cores)).split:
            mistakes.append(Mistake(f"{where}: split", "cores with `delta` do not split jobs: leave it out"))
        if job.batch > 1:
            text = "a batch would need the kept sums of each of its inferences: no batches with `delta`"
            mistakes.append(Mistake(f"{where}: batch", text))
        if job.preempts:
            text = "a job that is stopped would take its kept sums with it: no preemption with `delta`"
            mistakes.append(Mistake(f"{where}: preemption", text))
    if any(core.delta and core.weight_kib is not None for core in chip.cores):
        text = "weights that take turns or are streamed beside `delta` are not built: leave it out"
        mistakes.append(Mistake(f"chip {chip.name}: weight_kib", text))
    return mistakes


def sent_at_random(model: Model, steps: int, group: int, density: Density) -> list[list[Sent]]:
    """What a job sends whose elements change at random (rule 9): by layer, by step; h only where products read it."""
    made = []
    for layer, (x, h) in zip(model.layers, changed(model, steps, density), strict=True):
        read = h if "h" in layer.cell.stages[0].vectors else h[:, :0]
        made.append([Sent(grouped(own, group), grouped(before, group)) for own, before in zip(x, read, strict=True)])
    return made


class _Before(NamedTuple):
    """A step of a layer that is written: the shape of its stage, where its tail operations begin, in which phase."""

    shape: StageShape
    tails: Home
    phase: int

    def h(self, phase: int) -> Source:
        """Its h, as operations of a phase read it."""
        where = NONE if phase == self.phase else self.phase
        return Source((Share(self.shape, self.shape.layer.cell.output, 0, self.tails),), phase=where)


def _late(wait: Wait, cycles: int) -> Wait:
    return wait._replace(read=wait.read._replace(cycles=wait.read.cycles + cycles))


def _sent_groups(shape: StageShape, sent: Sent, sources: Mapping[str, Source | None], x_last: bool) -> Iterator[Group]:
    """The column groups whose tiles a step issues, in their order, one by one, with what they wait for.

    A tile also waits for the elements of all groups since the tile before it: whether these are sent is not known
    before. The last group of the order is always sent.
    sources: by vector, what gives its elements. Without a source x is a frame, and h is there from the start.
    """
    late, per = shape.core.delta_cycles, shape.core.delta_group // shape.core.ep
    vectors = list(issue_order(shape.stage, x_last))
    waits: dict[str, Wait] = {}
    frame = 0
    for vector in vectors:
        source, flags = sources[vector], getattr(sent, vector).copy()
        flags[-1] |= vector == vectors[-1]
        runs = column_groups(shape, vector, source.read_on(0) if source else [], frame=not source and vector == "x")
        tiles = [run._replace(first=run.first + place, length=1) for run in runs for place in range(run.length)]
        for number, is_sent in enumerate(flags.tolist()):
            own = tiles[number * per : (number + 1) * per]
            # elements of a vector become visible in their order, so the last wait is enough
            if own[-1].waits:
                waits[vector] = _late(own[-1].waits[-1], late)
            frame = max(frame, (1 + late) * own[-1].frame)
            if is_sent:
                yield own[0]._replace(waits=tuple(waits.values()), frame=frame)
                yield from (each.plain() for each in own[1:])
                waits, frame = {}, 0


def _runs(groups: Iterable[Group]) -> Iterator[Group]:
    """Neighbours that wait for the same, or for nothing, as one run of tiles."""
    run: Group | None = None
    for group in groups:
        known = (group.waits, group.frame) in (((), 0), run and (run.waits, run.frame))
        if run and known and (run.columns, run.first + run.length) == (group.columns, group.first):
            run = run._replace(length=run.length + 1)
            continue
        if run:
            yield run
        run = group
    if run:
        yield run


def _write(
    rows: BodyWriter, layer: int, shape: StageShape, groups: Iterable[Group], phase: int, before: _Before | None
) -> _Before:
    """Write the tiles and tail operations of a step of a layer; before: its step before, if there is one."""
    core, cell = shape.core, shape.layer.cell
    ends = Tiles.of(shape, (layer, 0), list(_runs(groups))).write(rows)
    own = _Before(shape, Home(), phase)
    rows.begin(own.tails)
    for block, units in enumerate(shape.blocks):
        rows.need(None, ends[block], core.latency.mvm_cycles(core.ep))
        for want in wanted(cell, core.latency, core.tail_width, 0, 0):
            if before and want.cycles > 0:
                rows.need(before.tails, block, want.cycles, phase=before.phase)
        taken = -(-units // core.tail_width)
        after = shape.visible_cycles(cell.output)
        rows.operation(TAIL, "tail", (layer, 0, block, 0, 0, 0), cycles=taken, frees=0, result_cycles=taken - 1 + after)
    return own


def sent_phases(model: Model, core: ColumnCore, sent: AllSent) -> Phases:
    """The phases of a job that sends these groups: one for each step of each layer, or for each step of all layers."""
    shapes = [pass_shapes(layer, core)[0] for layer in model.layers]
    by_step, steps = model.layer_order == "step", len(sent[0])
    order = product(range(steps), range(len(shapes)))
    pairs = order if by_step else ((step, layer) for layer in range(len(shapes)) for step in range(steps))
    written: dict[tuple[int, int], _Before] = {}
    phases: list[Phase] = []
    rows = BodyWriter()
    for step, layer in pairs:
        number = len(phases)
        before, below = written.get((step - 1, layer)), written.get((step, layer - 1))
        sources = {"x": below.h(number) if below else None, "h": before.h(number) if before else None}
        groups = _sent_groups(shapes[layer], sent[layer][step], sources, x_last=by_step and layer > 0)
        written[step, layer] = _write(rows, layer, shapes[layer], groups, number, before)
        if not by_step or layer == len(shapes) - 1:
            phases.append(Phase(rows.body(), 1, first_step=step))
            rows = BodyWriter()
    return tuple(phases)
