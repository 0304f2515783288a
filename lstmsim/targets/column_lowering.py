"""Lowers jobs on a column-wise NPU to a Program: the timing contract of the chip, in one place.

An array operation is a run of tiles that wait for the same things (one cycle a tile), a tail operation is one
row block. A group's elements are waited for once, by the first row block that reads them: the array is in order, so
when a later block reads the same group it has been visible for long. h becomes visible in unit order, so the last
unit of a group speaks for the whole group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lstmsim.errors import InputError, Mistake
from lstmsim.program.program import Body, Buffer, Core, Dependence, Operation, Phase, Program, Task, Unit
from lstmsim.targets.column_npu import ColumnCore, ColumnNpu
from lstmsim.workload.model import Layer, Model
from lstmsim.workload.scenario import Job

__all__ = ["ARRAY", "MAX_OPERATIONS", "TAIL", "lower", "operations_per_step"]

ARRAY, TAIL = 0, 1

#: Most operations that a scenario may lower to; at about 250 bytes each a run of this size needs over 1 GB.
MAX_OPERATIONS = 5_000_000


@dataclass(frozen=True)
class _Shape:
    """One pass (a layer in one direction) cut into row blocks and column groups for a core."""

    layer: Layer
    core: ColumnCore

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Hidden units of each row block; the last one may be partial."""
        units = self.core.units_per_block(self.layer.cell)
        full, rest = divmod(self.layer.hidden, units)
        return (units,) * full + ((rest,) if rest else ())

    @cached_property
    def tail_latency(self) -> int:
        """From a unit's turn in the tail until its h is visible; at least 1, since nothing is visible as it starts."""
        latency = self.core.latency
        return max(1, latency.tail_cycles(self.layer.cell) + latency.writeback)

    def visible(self, unit: int) -> tuple[int, int]:
        """(row block, cycles from that block's start in the tail) after which a hidden unit is visible."""
        block, place = divmod(unit, self.core.units_per_block(self.layer.cell))
        return block, place // self.core.tail_width + self.tail_latency


@dataclass(frozen=True)
class _Source:
    """Where a vector comes from: the row blocks of a pass, as seen from the body that reads it.

    `first_tail` is the index of the pass's first tail operation in its body; `lag`, `phase` and `mirrored` are
    those of the dependence.
    """

    shape: _Shape
    first_tail: int
    lag: int = 0
    phase: int | None = None
    mirrored: bool = False

    def need(self, unit: int) -> Dependence:
        block, delay = self.shape.visible(unit)
        return Dependence(self.first_tail + block, delay, "hazard", self.lag, self.phase, self.mirrored)


@dataclass(frozen=True)
class _Group:
    """`count` column groups in a row that wait for the same: useful columns of each, dependences, frame, index."""

    columns: int
    needs: tuple[Dependence, ...]
    frame: bool
    index: int
    count: int = 1


def _groups(length: int, ep: int, sources: Sequence[_Source], index: int) -> list[_Group]:
    """The column groups of a vector; no sources: a frame. Equal neighbours are joined."""
    joined: list[_Group] = []
    for first in range(0, length, ep) if sources else ():
        last = min(first + ep, length) - 1
        needs, offset = [], 0
        for source in sources:
            hidden = source.shape.layer.hidden
            if first < offset + hidden and last >= offset:
                needs.append(source.need(min(last - offset, hidden - 1)))
            offset += hidden
        group = _Group(last + 1 - first, tuple(needs), False, index + first // ep)
        if joined and (joined[-1].columns, joined[-1].needs) == (group.columns, group.needs):
            joined[-1] = replace(joined[-1], count=joined[-1].count + 1)
        else:
            joined.append(group)
    if not sources:
        full, rest = divmod(length, ep)
        joined = [_Group(ep, (), True, index, full)] if full else []
        joined += [_Group(rest, (), True, index + full)] if rest else []
    return joined


@dataclass(frozen=True)
class _Pass:
    """One pass to lower: its shape, where it stands, and its column groups in issue order."""

    shape: _Shape
    place: tuple[int, int]
    groups: tuple[_Group, ...]

    def tile(self, block: int, group: _Group, **changes: object) -> Operation:
        units = self.shape.blocks[block]
        work = len(self.shape.layer.cell.gates) * units * group.columns
        operation = Operation(ARRAY, count=group.count, work=work, label="mvm", place=(*self.place, block, group.index))
        return replace(operation, **changes)  # type: ignore[arg-type]

    def row_tiles(self) -> tuple[list[Operation], list[int]]:
        """Row block outer, column group inner; and for each block the place of its last tile in the list."""
        tiles: list[Operation] = []
        last = []
        later = _plain(self.groups)
        for block in range(len(self.shape.blocks)):
            for number, group in enumerate(later if block else self.groups):
                takes = 0 if number == 0 else None
                tiles.append(self.tile(block, group, needs=group.needs, frame=group.frame, takes=takes))
            last.append(len(tiles) - 1)
        return tiles, last

    def column_tiles(self) -> tuple[list[Operation], list[int]]:
        """Column group outer, row block inner; and for each block the place of its last tile in the list."""
        tiles: list[Operation] = []
        blocks = range(len(self.shape.blocks))
        singles = [replace(g, count=1, index=g.index + i) for g in self.groups for i in range(g.count)]
        for number, group in enumerate(singles):
            takes = 0 if number == 0 else None
            tiles.append(self.tile(0, group, needs=group.needs, frame=group.frame, takes=takes))
            bare = replace(group, needs=(), frame=False)
            if number in (0, len(singles) - 1):
                tiles.extend(self.tile(block, bare, takes=takes) for block in blocks[1:])
                continue
            equal = [block for block in blocks[1:] if self.shape.blocks[block] == self.shape.blocks[0]]
            if equal:
                tiles.append(self.tile(equal[0], replace(bare, count=len(equal))))
            tiles.extend(self.tile(block, bare) for block in blocks[1 + len(equal) :])
        return tiles, list(range(len(tiles) - len(blocks), len(tiles)))

    def operations(self, base: int) -> list[Operation]:
        """All operations of one step, tiles first; `base` is where they begin in the body."""
        core = self.shape.core
        tiles, last = self.row_tiles() if core.block_order == "row" else self.column_tiles()
        return tiles + [self.tail(block, base + place) for block, place in enumerate(last)]

    def tail(self, block: int, last_tile: int) -> Operation:
        core, units = self.shape.core, self.shape.blocks[block]
        return Operation(
            TAIL,
            cycles=-(-units // core.tail_width),
            needs=(Dependence(last_tile, core.latency.mvm_cycles(core.ep)),),
            frees=0,
            result_cycles=(units - 1) // core.tail_width + self.shape.tail_latency,
            label="tail",
            place=(*self.place, block, 0),
        )


def _plain(groups: Sequence[_Group]) -> list[_Group]:
    """The same groups without their waits, equal neighbours joined."""
    joined: list[_Group] = []
    for group in groups:
        if joined and joined[-1].columns == group.columns:
            joined[-1] = replace(joined[-1], count=joined[-1].count + group.count)
        else:
            joined.append(replace(group, needs=(), frame=False))
    return joined


def _pass(shape: _Shape, place: tuple[int, int], x: Sequence[_Source], base: int, x_last: bool) -> list[Operation]:
    """The operations of one pass. The place of its own tails depends on how many tiles it has, so it is built twice."""
    layer, core = shape.layer, shape.core
    first_tail = base
    for _ in range(2):
        own = (_Source(shape, first_tail, lag=1),)
        x_count = -(-layer.input // core.ep)
        x_groups = _groups(layer.input, core.ep, x, 0)
        h_groups = _groups(layer.hidden, core.ep, own, x_count) if layer.cell.recurrent else []
        groups = h_groups + x_groups if x_last else x_groups + h_groups
        operations = _Pass(shape, place, tuple(groups)).operations(base)
        first_tail = base + len(operations) - len(shape.blocks)
    return operations


def _layer_phases(model: Model, core: ColumnCore, steps: int) -> tuple[Phase, ...]:
    """`layer_order: layer`: one phase a pass, forward before backward."""
    phases: list[Phase] = []
    below: list[tuple[int, _Shape, int]] = []
    for number, layer in enumerate(model.layers):
        shape = _Shape(layer, core)
        done = []
        for direction in range(layer.directions):
            sources = [
                _Source(source, first_tail, phase=phase, mirrored=direction != other)
                for other, (phase, source, first_tail) in enumerate(below)
            ]
            operations = _pass(shape, (number, direction), sources, 0, x_last=False)
            done.append((len(phases), shape, len(operations) - len(shape.blocks)))
            phases.append(Phase(Body(tuple(operations)), steps, mirrored=direction == 1))
        below = done
    return tuple(phases)


def _step_phases(model: Model, core: ColumnCore, steps: int) -> tuple[Phase, ...]:
    """`layer_order: step`: one body with all layers; above the first, what is ready later (x) comes last."""
    operations: list[Operation] = []
    sources: list[_Source] = []
    for number, layer in enumerate(model.layers):
        shape = _Shape(layer, core)
        operations += _pass(shape, (number, 0), sources, len(operations), x_last=number > 0)
        sources = [_Source(shape, len(operations) - len(shape.blocks))]
    return (Phase(Body(tuple(operations)), steps),)


def operations_per_step(model: Model, core: ColumnCore) -> int:
    """A bound on the operations that one step of the model lowers to on that core, without making them."""
    total = 0
    for layer in model.layers:
        units = core.units_per_block(layer.cell)
        blocks = -(-layer.hidden // units)
        groups = -(-layer.input // core.ep) + (-(-layer.hidden // core.ep) if layer.cell.recurrent else 0)
        runs = groups + 5 * blocks if core.block_order == "row" else 3 * groups + 3 * blocks
        # a fine-grained core with several threads may have to record every tile on its own
        single = core.thread_policy == "fine" and core.threads > 1
        total += layer.directions * (blocks * groups if single else runs)
    return total


def _check_size(chip: ColumnNpu, jobs: Sequence[Job]) -> None:
    total = 0
    for index, job in enumerate(jobs):
        cores = chip.cores if job.core is None else (chip.cores[job.core],)
        most = max(operations_per_step(job.model, core) for core in cores if core.refusal(job.model) is None)
        total += most * job.steps
        if total > MAX_OPERATIONS:
            text = (
                f"too large: {job.steps:,} steps of up to {most:,} operations each bring the scenario to {total:,}; "
                f"at most {MAX_OPERATIONS:,} are simulated at once, so that a typo does not fill the memory"
            )
            raise InputError(Mistake(f"jobs.{index}.steps (job {job.name})", text))


def lower(chip: ColumnNpu, jobs: Sequence[Job]) -> Program:
    """The Program of these jobs on that chip; `InputError` if a job can run nowhere or the whole is too large.

    >>> from lstmsim.workload.cell import cell
    >>> model = Model("m", (Layer(cell("lstm"), 512, 512),))
    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=65536, ep=32, vp=2048),))
    >>> program = lower(chip, [Job("a", model, steps=20)])
    >>> sum(each.count for each in program.tasks[0].phases(0)[0].body.operations if each.unit == ARRAY)
    32
    """
    kinds = {core: kind for kind, core in enumerate(dict.fromkeys(chip.cores))}
    for job in jobs:
        chip.check(job)
    _check_size(chip, jobs)
    cache: dict[tuple[Model, int, ColumnCore], tuple[Phase, ...]] = {}
    buffers = tuple((kind, (Buffer("accumulator bank", core.accumulator_banks),)) for core, kind in kinds.items())
    tasks = []
    for job in jobs:
        variants = []
        for core, kind in kinds.items():
            if core.refusal(job.model) is None:
                key = (job.model, job.steps, core)
                if key not in cache:
                    order = _layer_phases if job.model.layer_order == "layer" else _step_phases
                    cache[key] = order(job.model, core, job.steps)
                variants.append((kind, cache[key]))
        allowed = range(len(chip.cores)) if job.core is None else (job.core,)
        able = tuple(index for index in allowed if chip.cores[index].refusal(job.model) is None)
        tasks.append(Task(job.name, tuple(variants), buffers, able, job.arrival, job.frame_interval))
    cores = tuple(Core(kinds[each], _units(each), each.threads, ARRAY) for each in chip.cores)
    return Program(cores, tuple(tasks))


def _units(core: ColumnCore) -> tuple[Unit, Unit]:
    return (Unit("array", core.thread_policy, core.switch_cycles), Unit("tail", "fifo"))
