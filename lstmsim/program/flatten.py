"""From a Program to its flat form (`lstmsim.program.flat`), its names, and the check that rows which are named exist.

The fast engine's core checks more (`lstmsim/engines/fast/core/check*.cpp`), for itself and before it runs. This check
is for what Python reads of a flat program that comes from a file or from somebody's own tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.base.records import record
from lstmsim.program.flat import FLAT_TABLES, WIDTHS, FlatProgram, check_limits, joined, refuse_row
from lstmsim.program.operations import CAUSE_NUMBERS, Operation, check_packed
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import POOL_POLICIES, Body, Buffer, Phase, Program, TabledProgram, Task, Variant, WeightSet
from lstmsim.program.stall_reasons import CAUSES, CYCLE_NAMES

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
_COMMON = attrgetter("cores", "gang", "weight_set", "affine", "preempts", "queue_limit", "patience", "pool")
#: What a task has of its own that may be none: another task, and barriers.
_LINKS = attrgetter("after", "behind", "starts", "ends", "until")


class Writer:
    """Collects the rows of each table. What tasks share by identity is written once.

    Objects that it has seen must live as long as it does, because it knows them by their `id`.

    rows: for each table its numbers, row after row; those of `operations` and `needs` stand apart, an array for a body.
    bodies: `id` of a body -> its row; groups: places -> their row of `groups`.
    weight_sets: (key, 0), or (None, size) for room of a task's own -> row.
    phases: `id` of a tuple of phases -> the row of the first one, and how many.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {name: [] for name in FLAT_TABLES}
        self.operations: list[NDArray[np.int64]] = []
        self.needs: list[NDArray[np.int64]] = []
        self.operation_count = self.need_count = 0
        self.bodies: dict[int, int] = {}
        self.groups: dict[tuple[tuple[int, ...], ...], int] = {}
        self.weight_sets: dict[tuple[int | None, int], int] = {}
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
            size = len(operations) // _OPERATION_WIDTH
            self.rows["bodies"] += (self.operation_count, size, -1, 0)
            self.operations.append(operations)
            self.needs.append(needs)
            self.operation_count += size
            self.need_count += len(needs) // _NEED_WIDTH
        return number

    def variant(self, kind: int, members: int, phases: tuple[Phase, ...], buffers: tuple[Buffer, ...]) -> None:
        """Write a variant of a task."""
        place = self.phases.get(id(phases))
        if place is None:
            place = self.phases[id(phases)] = (self.size("phases"), len(phases))
            rows, extras = self.rows["phases"], self.rows["extras"]
            for phase in phases:
                step = phase.first_step
                if step is None:
                    # as `Phase.step` says
                    step = phase.repeat - 1 if phase.mirrored else 0
                rows += (self.body(phase.body), phase.repeat, phase.mirrored, step)
                rows += (len(extras), len(phase.extra_cycles), phase.first_barrier, phase.barriers)
                for column in phase.extra_cycles:
                    extras += column
        self.rows["variants"] += (kind, members, *place, self.size("buffers"), len(buffers))
        for buffer in buffers:
            self.rows["buffers"] += (buffer.slots, CAUSE_NUMBERS[buffer.cause])

    def variants(self, every: Sequence[Variant], moldable: int, sized: int = 0) -> tuple[int, int, int, int]:
        """Write the variants of a task; the last `moldable` of them are on several cores, `sized` before in batches.

        Gives the first row and the count for kinds of cores, and for several cores.
        """
        first, kinds = self.size("variants"), len(every) - moldable - sized
        for one in every:
            self.variant(*one)
        return first, kinds, first + kinds + sized, moldable

    def group(self, places: tuple[tuple[int, ...], ...]) -> int:
        """The row of a task's places, which are written when they come for the first time."""
        number = self.groups.get(places)
        if number is None:
            number = self.groups[places] = len(self.groups)
            self.rows["groups"] += (self.size("places"), len(places))
            for place in places:
                self.rows["places"] += (self.size("thread_slots"), len(place))
                self.rows["thread_slots"] += place
        return number

    def weight_set(self, weight_set: WeightSet | None) -> tuple[int, int]:
        """The row of a weight set, and how many phases load it; (-1, 0) for none."""
        if weight_set is None:
            return -1, 0
        key = weight_set.key
        # room of its own has no key, and tasks that need equal room share a row
        known: tuple[int | None, int] = (key, weight_set.size if key is None else 0)
        number = self.weight_sets.get(known)
        if number is None:
            number = self.weight_sets[known] = len(self.weight_sets)
            self.rows["weight_sets"] += (-1 if key is None else key, weight_set.size)
        return number, weight_set.loading

    def profile(self, task: Task, places: tuple[tuple[int, ...], ...], variants: tuple[int, int, int, int]) -> None:
        """Write what a task has in common with others."""
        limits = [-1 if each is None else each for each in (task.queue_limit, task.patience)]
        self.rows["profiles"] += (self.group(places), *self.weight_set(task.weight_set), task.affine, task.preempts)
        self.rows["profiles"] += (
            *limits,
            *variants,
            -1 if task.pool is None else task.pool,
            len(task.sizes),
            task.length,
        )

    def tasks(self, tasks: Sequence[Task]) -> None:
        """Write all tasks of a program, in their order. Tasks that are alike have one profile."""
        variants: dict[tuple[int, ...], tuple[int, int, int, int]] = {}
        profiles: dict[tuple[object, ...], int] = {}
        rows = self.rows["tasks"]
        last: tuple[object, ...] | None = None
        profile = -1
        for task in tasks:
            same = (id(task.variants), id(task.buffers), id(task.moldable), id(task.gang), id(task.sizes), task.length)
            key = (same, *_COMMON(task))
            # most tasks are like the one before them
            if key != last:
                last = key
                known = len(profiles)
                profile = profiles.setdefault(key, known)
                if profile == known:
                    places = task.places
                    if same not in variants:
                        sized = sum(map(len, task.sizes))
                        variants[same] = self.variants(task.all_variants, len(task.moldable), sized)
                    self.profile(task, places, variants[same])
            rows += (profile, task.release, task.frame_interval, task.key, task.key_from_arrival)
            rows += [-1 if each is None else each for each in _LINKS(task)]
        if any(task.session is not None for task in tasks):
            for task in tasks:
                self.rows["sessions"] += (-1 if task.session is None else task.session, task.move_cycles)

    def cores(self, program: Program) -> None:
        """Write cores, their units, and what their memories hold.

        The tasks must have been written before: weight sets that no task needs do not matter, and are left out.
        """
        for core in program.cores:
            held = [self.weight_sets[key, 0] for key in core.held if (key, 0) in self.weight_sets]
            self.rows["cores"] += (core.kind, core.contexts, self.size("units"), len(core.units))
            self.rows["cores"] += [-1 if each is None else each for each in (core.accounted, core.capacity)]
            self.rows["cores"] += (core.shared, core.mirrors)
            self.rows["cores"] += (self.size("held"), len(held))
            self.rows["held"] += held
            for unit in core.units:
                self.rows["units"] += (_POLICIES[unit.policy], unit.switch_cycles, unit.instances)


def flat_of(program: Program) -> FlatProgram:
    """The flat form of a program that keeps all rules (`lstmsim.program.validate`).

    `ProgramError` if a number does not fit into 64 bits.
    """
    if isinstance(program, TabledProgram):
        return program.flat
    writer = Writer()
    try:
        writer.tasks(program.tasks)
        writer.cores(program)
        writer.rows["barriers"] += program.barriers
        for pool in program.pools:
            writer.rows["pools"] += (pool.most, pool.wait, POOL_POLICIES.index(pool.policy), pool.ragged)
        tables: dict[str, Sequence[int] | NDArray[np.int64]] = {**writer.rows, **CYCLE_TABLES}
        tables["operations"], tables["needs"] = _one(writer.operations), _one(writer.needs)
        return joined(tables)
    except OverflowError:
        raise ProgramError("a number of the program does not fit into 64 bits") from None


def _one(arrays: list[NDArray[np.int64]]) -> Sequence[int] | NDArray[np.int64]:
    """The numbers of all arrays."""
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else ()


#: Most weight sets in all memories together. The core of the fast engine takes no more, either.
_MOST_HELD = 2**24


@record
class FlatNames:
    """What people read of a flat program, for each row of its tables.

    units: the name, whether timelines show it, and the name of the way of its results; operations: label and place.
    held: for each core, keys of all weight sets in its memory at the start; the tables have those that some task needs.
    chip, frequency_mhz, unit: the machine, its clock (1,000 MHz is an assumption, because timelines write a cycle as a
        nanosecond), and what people call the accounted unit of a core.
    """

    tasks: tuple[str, ...]
    units: tuple[tuple[str, bool, str], ...]
    buffers: tuple[str, ...]
    operations: tuple[tuple[str, tuple[int, ...]], ...]
    held: tuple[tuple[int, ...], ...]
    chip: str = "program"
    frequency_mhz: float = 1000.0
    unit: str = "array"

    def check(self, flat: FlatProgram) -> None:
        """Raise `ProgramError` unless these are names for this flat program."""
        for table in ("tasks", "units", "buffers", "operations"):
            names, rows = len(getattr(self, table)), len(flat.table(table))
            if names != rows:
                raise ProgramError(f"there are names for {names} rows of table {table}, which has {rows}")
        held = held_by_tables(flat)
        if len(self.held) != len(held):
            raise ProgramError(f"there are weight sets for {len(self.held)} cores, and the program has {len(held)}")
        known = set(flat.column("weight_sets", "key").tolist())
        for core, (said, keys) in enumerate(zip(self.held, held, strict=True)):
            if tuple(key for key in said if key in known) != keys:
                raise ProgramError(f"core {core}: holds weight sets {keys} by its tables, and {said} by its names")


class _Namer(Writer):
    """Writes the tables once more, to see which body and buffer has which rows."""

    def __init__(self) -> None:
        super().__init__()
        self.operation_rows: list[Operation] = []
        self.buffer_rows: list[Buffer] = []

    def body(self, body: Body) -> int:
        known = len(self.bodies)
        number = super().body(body)
        if number == known:
            self.operation_rows += body.operations
        return number

    def variant(self, kind: int, members: int, phases: tuple[Phase, ...], buffers: tuple[Buffer, ...]) -> None:
        super().variant(kind, members, phases, buffers)
        self.buffer_rows += buffers


def names_of(program: Program) -> FlatNames:
    """The names that belong to `flat_of(program)`."""
    if isinstance(program, TabledProgram):
        names: FlatNames = program.names
        return names
    namer = _Namer()
    namer.tasks(program.tasks)
    return FlatNames(
        tasks=tuple(task.name for task in program.tasks),
        units=tuple((each.name, each.shown, each.pipeline) for core in program.cores for each in core.units),
        buffers=tuple(each.name for each in namer.buffer_rows),
        operations=tuple((each.label, each.place) for each in namer.operation_rows),
        held=tuple(core.held for core in program.cores),
    )


def default_names(flat: FlatProgram) -> FlatNames:
    """Plain names for a flat program that has none: tasks `t0`, buffers `b0`, units of a core `u0`."""
    rows = np.arange(len(flat.table("units")))
    # a unit is counted from the last row before it with which the units of some core begin
    begins = np.union1d(flat.column("cores", "first_unit"), [0])
    numbers = rows - begins[np.searchsorted(begins, rows, "right") - 1]
    return FlatNames(
        tasks=tuple(f"t{number}" for number in range(len(flat.table("tasks")))),
        units=tuple((f"u{number}", True, "") for number in numbers.tolist()),
        buffers=tuple(f"b{number}" for number in range(len(flat.table("buffers")))),
        operations=(("", ()),) * len(flat.table("operations")),
        held=held_by_tables(flat),
    )


def held_by_tables(flat: FlatProgram) -> tuple[tuple[int, ...], ...]:
    """For each core the keys of the weight_sets that it holds at the start, as far as the tables know."""
    keys = flat.column("weight_sets", "key")[flat.column("held", "weight_set")].tolist()
    firsts, counts = flat.column("cores", "first_held"), flat.column("cores", "held")
    if counts.sum() > _MOST_HELD:
        raise ProgramError(f"cores hold {counts.sum():,} weight sets together, at most {_MOST_HELD:,}")
    spans = zip(firsts.tolist(), counts.tolist(), strict=True)
    return tuple(tuple(keys[first : first + count]) for first, count in spans)


@record
class Link:
    """A column that names rows of another table.

    count: the column that says how many rows in a row are meant; empty: it is one row.
    optional: whether -1 may stand in place of a row; with `count`, in place of the first of no rows.
    instead: a column of rows that a row has instead, unless -1 stands there; empty: none.
    """

    table: str
    column: str
    target: str
    count: str = ""
    optional: bool = False
    instead: str = ""


#: All of them but those that are read within a variant or a body, where the core checks them.
LINKS = (
    Link("cores", "first_unit", "units", "units"),
    Link("cores", "first_held", "held", "held"),
    Link("held", "weight_set", "weight_sets"),
    Link("groups", "first_place", "places", "places"),
    Link("places", "first_thread_slot", "thread_slots", "thread_slots"),
    Link("thread_slots", "core", "cores"),
    Link("profiles", "group", "groups"),
    Link("profiles", "weight_set", "weight_sets", optional=True),
    Link("profiles", "first_variant", "variants", "variants"),
    Link("profiles", "first_moldable", "variants", "moldables"),
    Link("profiles", "pool", "pools", optional=True),
    Link("variants", "first_phase", "phases", "phases"),
    Link("variants", "first_buffer", "buffers", "buffers"),
    Link("phases", "body", "bodies"),
    Link("buffers", "cause", "causes"),
    Link("bodies", "first_word", "words", "words", optional=True),
    Link("bodies", "first_operation", "operations", "operations", instead="first_word"),
    Link("operations", "first_need", "needs", "needs"),
    Link("needs", "cause", "causes"),
    Link("tasks", "profile", "profiles"),
    Link("tasks", "after", "tasks", optional=True),
    *(Link("tasks", column, "barriers", optional=True) for column in ("behind", "starts", "ends", "until")),
)

#: Columns that hold 0 or 1.
FLAGS = (
    ("cores", "shared"),
    ("cores", "mirrors"),
    ("profiles", "affine"),
    ("profiles", "preempts"),
    ("phases", "mirrored"),
    ("needs", "mirrored"),
    ("needs", "barrier"),
    ("tasks", "key_from_arrival"),
    ("pools", "ragged"),
)


def check_rows(flat: FlatProgram) -> None:
    """Raise `ProgramError` for the first row that names a row which does not exist.

    It also refuses numbers beyond their limits, phases without an iteration, flags that are neither 0 nor 1, unknown
    policies, places without a core, two weight sets with one key, words of packed bodies that name what is not there,
    and names of cycles that are not those of `lstmsim.program.stall_reasons`.
    """
    for name, rows in CYCLE_TABLES.items():
        if flat.table(name).ravel().tolist() != list(rows):
            raise ProgramError(f"table {name}: its names of cycles are not those of this version of lstmsim")
    for link in LINKS:
        _check_link(flat, link)
    _check_extras(flat)
    for table, column in FLAGS:
        values = flat.column(table, column)
        refuse_row(table, values, (values < 0) | (values > 1), f"{column} is {{}}, not 0 or 1")
    policies = flat.column("units", "policy")
    refuse_row("units", policies, (policies < 0) | (policies >= len(POLICIES)), f"policy is {{}}, of {len(POLICIES)}")
    policies = flat.column("pools", "policy")
    text = f"policy is {{}}, of {len(POOL_POLICIES)}"
    refuse_row("pools", policies, (policies < 0) | (policies >= len(POOL_POLICIES)), text)
    thread_slots = flat.column("places", "thread_slots")
    refuse_row("places", thread_slots, thread_slots < 1, "thread_slots is {}, not at least 1")
    keys = flat.column("weight_sets", "key")
    again = np.ones(len(keys), dtype=bool)
    again[np.unique(keys, return_index=True)[1]] = False
    refuse_row("weight_sets", keys, again & (keys != -1), "key is {}, and an earlier row has it too")
    tasks, sessions = len(flat.table("tasks")), flat.column("sessions", "session")
    if len(sessions) not in (0, tasks):
        raise ProgramError(f"table sessions: has {len(sessions)} rows, not none or one for each of {tasks} tasks")
    refuse_row("sessions", sessions, (sessions < -1) | (sessions >= tasks), f"session is {{}}, not -1 to {tasks - 1}")
    check_packed(flat)
    check_limits(flat)


def _check_link(flat: FlatProgram, link: Link) -> None:
    values, rows = flat.column(link.table, link.column), len(flat.table(link.target))
    if link.count:
        counts = flat.column(link.table, link.count)
        # in this order no difference can be too large for 64 bits
        wrong = (values < 0) | (counts < 0) | (values > rows) | (counts > rows - np.clip(values, 0, rows))
        if link.optional:
            wrong &= (values != -1) | (counts != 0)
        if link.instead:
            wrong &= flat.column(link.table, link.instead) == -1
        refuse_row(link.table, counts, counts < 0, f"{link.count} is {{}}, which is no number of rows")
        text = f"{link.column} is {{}}, and its rows do not lie among the {rows} of table {link.target}"
    else:
        wrong = (values < (-1 if link.optional else 0)) | (values >= rows)
        text = f"{link.column} is {{}}, and table {link.target} has {rows} rows"
    refuse_row(link.table, values, wrong, text)


def _check_extras(flat: FlatProgram) -> None:
    """Batches have variants for each size, and columns of a phase a row for each iteration."""
    firsts, columns, repeats = (flat.column("phases", name) for name in ("first_extra", "extras", "repeat"))
    rows = len(flat.table("variants"))
    first, count, sizes = (flat.column("profiles", name) for name in ("first_variant", "variants", "sizes"))
    wrong = (sizes < 0) | (sizes >= np.where(count > 0, (rows - first) // np.maximum(count, 1), 1))
    refuse_row("profiles", sizes, wrong, f"sizes is {{}}, and its rows do not lie among the {rows} of table variants")
    rows = len(flat.table("extras"))
    refuse_row("phases", repeats, repeats < 1, "repeat is {}, not at least 1")
    # as quotients, because products may be too large for 64 bits
    wrong = (columns < 0) | (columns > rows // repeats)
    refuse_row("phases", columns, wrong, f"extras is {{}}, and table extras has {rows} rows")
    wrong = (firsts < 0) | (firsts > rows - columns * repeats)
    refuse_row(
        "phases", firsts, wrong, f"first_extra is {{}}, and its rows do not lie among the {rows} of table extras"
    )
