"""From the flat form of a program back to a Program."""

from __future__ import annotations

from typing import Any

from lstmsim.base.errors import ProgramError
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import LINKS, FlatNames, check_rows, default_names
from lstmsim.program.operations import Rows, operations_of, some, unpacked
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import (
    POOL_POLICIES,
    Body,
    Buffer,
    Core,
    Moldable,
    Phase,
    Pool,
    Program,
    TabledProgram,
    Task,
    Unit,
    WeightSet,
)
from lstmsim.program.stall_reasons import CAUSES

#: Most objects that a Program is made of: some GB. Rows of a flat program may be shared, so a small file can name many.
MOST_PARTS = 10_000_000
_POLICIES = tuple(POLICIES)


def program_of(flat: FlatProgram, names: FlatNames | None = None) -> Program:
    """The Program that a flat program stands for; names: what the tables do not hold, None: plain names.

    What can be said in two ways is said in the shorter one: no first step where it is the implied one, no gang
    where no place has any, no buffers for a kind of core without any. Packed bodies are written out.

    `ProgramError` if rows are missing, if the names are not for these tables, or if there are too many parts. Whether
    the Program keeps the rules is asked by `lstmsim.program.validate`.
    """
    check_rows(flat)
    columns, repeats = flat.column("phases", "extras"), flat.column("phases", "repeat")
    parts = (
        len(flat.table("tasks"))
        + int((columns * repeats).sum())
        + sum(int(flat.column(link.table, link.count).sum()) for link in LINKS if link.count)
    )
    if parts > MOST_PARTS:
        raise ProgramError(f"the flat program stands for {parts:,} parts, at most {MOST_PARTS:,} are made into objects")
    if names is None:
        names = default_names(flat)
    else:
        names.check(flat)
    reader = _Reader(flat, names)
    barriers = tuple(flat.column("barriers", "arrivals").tolist())
    rows = flat.table("pools").tolist()
    pools = tuple(Pool(most, wait, POOL_POLICIES[policy], bool(ragged)) for most, wait, policy, ragged in rows)
    return Program(reader.cores(), tuple(reader.tasks()), barriers, pools)


def tabled(flat: FlatProgram, names: FlatNames) -> TabledProgram:
    """A program that an engine runs as its tables; cores and tasks are made, and errors come, when asked for."""
    return TabledProgram(flat, names, program_of)


class _Reader:
    """Makes an object of each row. What rows share, objects share, so that the same flat program follows from them."""

    def __init__(self, flat: FlatProgram, names: FlatNames) -> None:
        self.flat, self.names = flat, names
        self.rows_of: dict[str, list[list[int]]] = {}
        self.bodies = self._bodies()
        self.phase_rows = tuple(
            Phase(
                self.bodies[body],
                repeat,
                bool(mirrored),
                None if first == (repeat - 1 if mirrored else 0) else first,
                self._columns(first_extra, columns, repeat),
                first_barrier,
                barriers,
            )
            for body, repeat, mirrored, first, first_extra, columns, first_barrier, barriers in self.rows("phases")
        )
        self.buffer_rows = tuple(
            Buffer(name, slots, CAUSES[cause])
            for name, (slots, cause) in zip(names.buffers, self.rows("buffers"), strict=True)
        )
        self.phases: dict[tuple[int, int], tuple[Phase, ...]] = {}
        self.known_sizes: dict[tuple[int, ...], tuple[tuple[tuple[int, tuple[Phase, ...]], ...], ...]] = {}
        self.known_variants: dict[tuple[int, ...], dict[str, Any]] = {}
        self.groups = [self._places(*each) for each in self.rows("groups")]

    def _columns(self, first: int, columns: int, repeat: int) -> tuple[tuple[int, ...], ...]:
        """The extra cycles of a phase."""
        cycles = [cycles for (cycles,) in self.rows("extras")[first : first + columns * repeat]]
        return tuple(tuple(cycles[at : at + repeat]) for at in range(0, columns * repeat, repeat))

    def rows(self, table: str) -> list[list[int]]:
        """The rows of a table as lists."""
        if table not in self.rows_of:
            self.rows_of[table] = self.flat.table(table).tolist()
        return self.rows_of[table]

    def _bodies(self) -> list[Body]:
        rows = Rows(self.flat.table("operations").ravel(), self.flat.table("needs").ravel())
        operations = operations_of(rows, self.names.operations)
        return [
            Body(operations[first : first + count]) if word == -1 else self._written_out(number)
            for number, (first, count, word, _) in enumerate(self.rows("bodies"))
        ]

    def _written_out(self, body: int) -> Body:
        """A packed body."""
        rows, prototypes = unpacked(self.flat, body)
        return Body(operations_of(rows, [self.names.operations[each] for each in prototypes.tolist()]))

    def _places(self, first: int, count: int) -> dict[str, Any]:
        """Cores and gang of a group of places."""
        thread_slots = [core for (core,) in self.rows("thread_slots")]
        places = [tuple(thread_slots[at : at + n]) for at, n in self.rows("places")[first : first + count]]
        gang = tuple(place[1:] for place in places)
        return {"cores": tuple(place[0] for place in places), "gang": gang if any(gang) else ()}

    def _variant(self, row: int) -> tuple[int, int, tuple[Phase, ...], tuple[Buffer, ...]]:
        """Kind, members, phases and buffers of a variant."""
        kind, members, first, count, first_buffer, buffers = self.rows("variants")[row]
        phases = self.phases.setdefault((first, count), self.phase_rows[first : first + count])
        return kind, members, phases, self.buffer_rows[first_buffer : first_buffer + buffers]

    def _variants(self, first: int, count: int, first_moldable: int, moldables: int) -> dict[str, Any]:
        """How a task runs on kinds of cores, and on several cores."""
        key = (first, count, first_moldable, moldables)
        if key not in self.known_variants:
            own = [self._variant(row) for row in range(first, first + count)]
            moldable = [self._variant(row) for row in range(first_moldable, first_moldable + moldables)]
            self.known_variants[key] = {
                "variants": tuple((kind, phases) for kind, _, phases, _ in own),
                "buffers": tuple((kind, buffers) for kind, _, _, buffers in own if buffers),
                "moldable": tuple(Moldable(members, phases, buffers) for _, members, phases, buffers in moldable),
            }
        return self.known_variants[key]

    def _profile(self, row: list[int]) -> dict[str, Any]:
        """What tasks of a profile have in common."""
        group, weight_set, loading, affine, preempts, queue_limit, patience, *variants = row
        key, size = self.rows("weight_sets")[weight_set] if weight_set >= 0 else (0, 0)
        needed = WeightSet(some(key), size, loading) if weight_set >= 0 else None
        own = {"weight_set": needed, "affine": bool(affine), "preempts": bool(preempts)}
        limits = {"queue_limit": some(queue_limit), "patience": some(patience)}
        first, count, first_moldable, moldables, pool, sizes, length = variants
        pooled = {"pool": some(pool), "sizes": self._sizes(first, count, sizes), "length": length}
        moldable = self._variants(first, count, first_moldable, moldables)
        return {**self.groups[group], **own, **limits, **pooled, **moldable}

    def _sizes(self, first: int, count: int, sizes: int) -> tuple[tuple[tuple[int, tuple[Phase, ...]], ...], ...]:
        """The variants in batches of 2, 3, ..., which follow those of the task alone."""
        key = (first, count, sizes)
        if key not in self.known_sizes:
            rows = [range(first + count * size, first + count * (size + 1)) for size in range(1, sizes + 1)]
            each = [[self._variant(row) for row in own] for own in rows]
            self.known_sizes[key] = tuple(tuple((kind, phases) for kind, _, phases, _ in own) for own in each)
        return self.known_sizes[key]

    def tasks(self) -> list[Task]:
        profiles = [self._profile(row) for row in self.rows("profiles")]
        sessions = self.rows("sessions") or [[-1, 0]] * len(self.names.tasks)
        return [
            Task(
                name=name,
                release=release,
                frame_interval=frame_interval,
                key=key,
                key_from_arrival=bool(key_from_arrival),
                after=some(after),
                behind=some(behind),
                starts=some(starts),
                ends=some(ends),
                until=some(until),
                session=some(session),
                move_cycles=move,
                **profiles[profile],
            )
            for name, (session, move), (
                profile,
                release,
                frame_interval,
                key,
                key_from_arrival,
                after,
                behind,
                starts,
                ends,
                until,
            ) in zip(self.names.tasks, sessions, self.rows("tasks"), strict=True)
        ]

    def cores(self) -> tuple[Core, ...]:
        units = tuple(
            Unit(name, _POLICIES[policy], switch_cycles, shown, pipeline, instances)
            for (name, shown, pipeline), (policy, switch_cycles, instances) in zip(
                self.names.units, self.rows("units"), strict=True
            )
        )
        cores = []
        for row, held in zip(self.rows("cores"), self.names.held, strict=True):
            kind, contexts, first, count, accounted, capacity, shared, mirrors, _, _ = row
            own, room = units[first : first + count], some(capacity)
            cores.append(Core(kind, own, contexts, some(accounted), room, held, bool(shared), bool(mirrors)))
        return tuple(cores)
