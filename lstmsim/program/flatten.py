"""From a Program to its flat form (`lstmsim.program.flat`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.program.body import Body
from lstmsim.program.flat import FLAT_TABLES, WIDTHS, FlatProgram, joined
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import Buffer, Content, Phase, Program, Task
from lstmsim.program.rows import CAUSE_NUMBERS
from lstmsim.program.stall_reasons import CAUSES, CYCLE_NAMES
from lstmsim.program.tabled import TabledProgram

__all__ = ["CYCLE_TABLES", "Writer", "flat_of"]

_POLICIES = {name: number for number, name in enumerate(POLICIES)}
#: The tables that name cycles. All programs of this version have the same.
CYCLE_TABLES: Mapping[str, tuple[int, ...]] = {
    "head": (
        len(CYCLE_NAMES),
        *(CYCLE_NAMES.index(name) for name in ("busy", "switch", "drain", "idle")),
        CAUSES.index("input"),
    ),
    "causes": tuple(CYCLE_NAMES.index(cause) for cause in CAUSES),
}
_FIRST_NEED = FLAT_TABLES["operations"].place("first_need")
_OPERATION_WIDTH, _NEED_WIDTH = FLAT_TABLES["operations"].width, FLAT_TABLES["needs"].width
#: What a profile has of a task beside its phases and buffers.
_COMMON = attrgetter("cores", "partners", "content", "affine", "preempts", "queue_limit", "patience")
#: What a task has of its own that may be none: another task, and gates.
_LINKS = attrgetter("after", "behind", "starts", "ends", "until")


class Writer:
    """Collects the rows of each table. What tasks share by identity is written once.

    Objects that it has seen must live as long as it does, because it knows them by their `id`.

    rows: for each table its numbers, row after row; those of `operations` and `needs` stand apart, as arrays.
    operations, needs: for each body the numbers of its rows.
    operation_count, need_count: how many rows these have.
    bodies: `id` of a body -> its row.
    groups: places -> their row of `groups`.
    contents: (key, 0), or (None, size) for room of a task's own -> row.
    phases: `id` of a tuple of phases -> the row of the first one, and how many.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {name: [] for name in FLAT_TABLES}
        self.operations: list[NDArray[np.int64]] = []
        self.needs: list[NDArray[np.int64]] = []
        self.operation_count = self.need_count = 0
        self.bodies: dict[int, int] = {}
        self.groups: dict[tuple[tuple[int, ...], ...], int] = {}
        self.contents: dict[tuple[int | None, int], int] = {}
        self.phases: dict[int, tuple[int, int]] = {}

    def size(self, table: str) -> int:
        """How many rows a table has so far."""
        return len(self.rows[table]) // WIDTHS[table]

    def body(self, body: Body) -> int:
        """The row of a body, which is written when it comes for the first time."""
        number = self.bodies.get(id(body))
        if number is None:
            number = self.bodies[id(body)] = len(self.bodies)
            operations, needs = body.rows
            if self.need_count:
                operations = operations.copy()
                operations[_FIRST_NEED::_OPERATION_WIDTH] += self.need_count
            self.rows["bodies"] += (self.operation_count, body.size, -1, 0)
            self.operations.append(operations)
            self.needs.append(needs)
            self.operation_count += body.size
            self.need_count += len(needs) // _NEED_WIDTH
        return number

    def variant(self, kind: int, members: int, phases: tuple[Phase, ...], buffers: tuple[Buffer, ...]) -> None:
        """Write a variant.

        kind: of the first core of its places.
        members: how many cores it takes.
        phases, buffers: what a task does on these cores, and with which buffers.
        """
        place = self.phases.get(id(phases))
        if place is None:
            place = self.phases[id(phases)] = (self.size("phases"), len(phases))
            for phase in phases:
                self.rows["phases"] += (self.body(phase.body), phase.repeat, phase.mirrored, phase.step(0))
                self.rows["phases"] += (self.size("extras"), len(phase.extra_cycles), phase.first_gate, phase.gates)
                for column in phase.extra_cycles:
                    self.rows["extras"] += column
        self.rows["variants"] += (kind, members, *place, self.size("buffers"), len(buffers))
        for buffer in buffers:
            self.rows["buffers"] += (buffer.slots, CAUSE_NUMBERS[buffer.cause])

    def variants_of(self, task: Task) -> tuple[int, int, int, int]:
        """Write the variants of a task.

        Gives the row of the first one for a kind of cores, and how many there are; then the same of those that take
        several of the task's cores at once.
        """
        members = 1 + max(map(len, task.partners)) if task.partners else 1
        first = self.size("variants")
        for kind, phases in task.variants:
            self.variant(kind, members, phases, task.slots(kind))
        for wide in task.wide:
            self.variant(0, wide.members, wide.phases, wide.buffers)
        return first, len(task.variants), first + len(task.variants), len(task.wide)

    def group(self, task: Task) -> int:
        """The row of a task's places, which are written when they come for the first time."""
        places = task.places
        number = self.groups.get(places)
        if number is None:
            number = self.groups[places] = len(self.groups)
            self.rows["groups"] += (self.size("places"), len(places))
            for place in places:
                self.rows["places"] += (self.size("seats"), len(place))
                self.rows["seats"] += place
        return number

    def content(self, content: Content | None) -> tuple[int, int]:
        """The row of a content, and how many phases load it; (-1, 0) for none."""
        if content is None:
            return -1, 0
        key = content.key
        # room of its own has no key, and tasks that need equal room share a row
        known: tuple[int | None, int] = (key, content.size if key is None else 0)
        number = self.contents.get(known)
        if number is None:
            number = self.contents[known] = len(self.contents)
            self.rows["contents"] += (-1 if key is None else key, content.size)
        return number, content.loading

    def profile(self, task: Task, variants: tuple[int, int, int, int]) -> None:
        """Write what a task has in common with others.

        variants: as of `variants_of`.
        """
        limits = (-1 if each is None else each for each in (task.queue_limit, task.patience))
        self.rows["profiles"] += (self.group(task), *self.content(task.content), task.affine, task.preempts)
        self.rows["profiles"] += (*limits, *variants)

    def tasks(self, tasks: Sequence[Task]) -> None:
        """Write all tasks of a program, in their order. Tasks that are alike have one profile."""
        variants: dict[tuple[int, int, int, int], tuple[int, int, int, int]] = {}
        profiles: dict[tuple[object, ...], int] = {}
        rows = self.rows["tasks"]
        last: tuple[object, ...] | None = None
        profile = -1
        for task in tasks:
            same = (id(task.variants), id(task.buffers), id(task.wide), id(task.partners))
            key = (same, *_COMMON(task))
            # most tasks are like the one before them
            if key != last:
                last = key
                if key not in profiles:
                    if same not in variants:
                        variants[same] = self.variants_of(task)
                    profiles[key] = len(profiles)
                    self.profile(task, variants[same])
                profile = profiles[key]
            rows += (profile, task.release, task.frame_interval, task.key, task.key_from_arrival)
            rows += (-1 if each is None else each for each in _LINKS(task))

    def cores(self, program: Program) -> None:
        """Write cores, their units, and what their memories hold.

        The tasks must have been written before: contents that no task needs do not matter, and are left out.
        """
        for core in program.cores:
            held = [self.contents[key, 0] for key in core.held if (key, 0) in self.contents]
            self.rows["cores"] += (core.kind, core.contexts, self.size("units"), len(core.units))
            self.rows["cores"] += (-1 if each is None else each for each in (core.accounted, core.capacity))
            self.rows["cores"] += (core.shared, core.mirrors)
            self.rows["cores"] += (self.size("held"), len(held))
            self.rows["held"] += held
            for unit in core.units:
                self.rows["units"] += (_POLICIES[unit.policy], unit.switch_cycles, unit.ways)


def flat_of(program: Program) -> FlatProgram:
    """The flat form of a program that keeps all rules (`lstmsim.program.validate`).

    `ProgramError` if a number does not fit into 64 bits.

    >>> from lstmsim.program.program import Core, Operation, Unit
    >>> body = Body((Operation(0, count=3),))
    >>> task = Task("t", ((0, (Phase(body, 2),)),), (), (0,))
    >>> flat = flat_of(Program((Core(0, (Unit("array", "coarse"),)),), (task, task)))
    >>> len(flat.table("tasks")), flat.column("operations", "count").tolist()
    (2, [3])
    """
    if isinstance(program, TabledProgram):
        return program.flat
    try:
        return _flattened(program)
    except OverflowError:
        raise ProgramError("a number of the program does not fit into 64 bits") from None


def _flattened(program: Program) -> FlatProgram:
    writer = Writer()
    writer.tasks(program.tasks)
    writer.cores(program)
    writer.rows["gates"] += program.gates
    tables: dict[str, Sequence[int] | NDArray[np.int64]] = {**writer.rows, **CYCLE_TABLES}
    tables["operations"], tables["needs"] = _one(writer.operations), _one(writer.needs)
    return joined(tables)


def _one(arrays: list[NDArray[np.int64]]) -> Sequence[int] | NDArray[np.int64]:
    """The numbers of all arrays."""
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else ()
