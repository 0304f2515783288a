"""A program as one flat sequence of whole numbers, and the state of a run as another (see `lstmsim.engines.layout`)."""

from __future__ import annotations

from collections import defaultdict

from lstmsim.engines import layout as at
from lstmsim.program.program import CAUSES, Operation, Phase, Program

__all__ = ["state_of", "tables_of"]

_POLICIES = {"coarse": at.COARSE, "fine": at.FINE, "fifo": at.FIFO}


def _watched(phases: tuple[Phase, ...]) -> list[dict[int, int]]:
    """Per phase the operations whose starts somebody waits for, and their slots."""
    found: list[dict[int, int]] = [{} for _ in phases]
    for number, phase in enumerate(phases):
        for operation in phase.body.operations:
            for need in operation.needs:
                own = found[number if need.phase is None else need.phase]
                own.setdefault(need.operation, len(own))
    return found


def _crossing(phases: tuple[Phase, ...]) -> list[int]:
    """Per phase the longest delay with which later phases wait for it."""
    found = [0] * len(phases)
    for phase in phases:
        for operation in phase.body.operations:
            for need in operation.needs:
                if need.phase is not None:
                    found[need.phase] = max(found[need.phase], need.delay)
    return found


class _Builder:
    """Collects records of each kind; what a record refers to by address is known at the end (`tables_of`)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.units = max((len(core.units) for core in program.cores), default=1)
        self.kinds = 1 + max((core.kind for core in program.cores), default=0)
        self.buffers = max((len(each) for task in program.tasks for _, each in task.buffers), default=0)
        self.parts: defaultdict[str, list[int]] = defaultdict(list)
        self.pools: list[tuple[int, int]] = []
        self.most_phases = 1

    def variants(self) -> None:
        """Tasks and their variants; bodies, phases and buffers that tasks share are laid down once."""
        used = {core.kind for core in self.program.cores}
        known: dict[tuple[int, int], int] = {}
        parts = self.parts
        for task in self.program.tasks:
            own = [-1] * self.kinds
            for kind, phases in task.variants:
                slots = task.slots(kind)
                if kind not in used:
                    continue
                key = (id(phases), id(slots))
                if key not in known:
                    known[key] = len(known)
                    self.most_phases = max(self.most_phases, len(phases))
                    parts["variant"] += [len(parts["phase"]) // at.T_PHASE_SIZE, len(phases), len(parts["buffer"])]
                    for index in range(self.buffers):
                        buffer = slots[index] if index < len(slots) else None
                        parts["buffer"] += [buffer.slots, CAUSES.index(buffer.cause)] if buffer else [0, 0]
                    self.phases(phases)
                own[kind] = known[key]
            parts["variant_of"] += own

    def phases(self, phases: tuple[Phase, ...]) -> None:
        """All phases of a variant, and how much a thread has to remember for it."""
        slots, crossing, parts = _watched(phases), _crossing(phases), self.parts
        starts = frees = 0
        for number, phase in enumerate(phases):
            operations = phase.body.operations
            own = [need for each in operations for need in each.needs if need.phase is None]
            stride = len(slots[number])
            parts["phase"] += [phase.repeat, int(phase.mirrored), stride, max((need.lag for need in own), default=0)]
            parts["phase"] += [max((need.delay for need in own), default=0), crossing[number]]
            parts["phase"] += [int(any(each.frame for each in operations)), phase.step(0)]
            starts += 2 * stride * phase.repeat
            frees += phase.repeat * sum(each.frees is not None for each in operations)
            first = len(parts["operation"])
            for unit in range(self.units):
                stream = [first + i * at.T_OP_SIZE for i, each in enumerate(operations) if each.unit == unit]
                parts["stream"] += [len(parts["address"]), len(stream)]
                parts["address"] += stream
            for index, each in enumerate(operations):
                self.operation(each, index, number, slots)
        self.pools.append((starts, frees))

    def operation(self, each: Operation, index: int, number: int, slots: list[dict[int, int]]) -> None:
        """One operation and its needs."""
        takes = -1 if each.takes is None else each.takes
        frees = -1 if each.frees is None else each.frees
        needs = self.parts["need"]
        self.parts["operation"] += [each.cycles, each.count, int(each.frame), takes, frees, each.result_cycles]
        self.parts["operation"] += [slots[number].get(index, -1), each.work, len(needs), len(each.needs), index]
        self.parts["operation"].append(each.ahead)
        for need in each.needs:
            source = number if need.phase is None else need.phase
            mode = 0 if need.phase is None else 2 if need.mirrored else 1
            needs += [source, slots[source][need.operation], need.lag, mode, need.delay, CAUSES.index(need.cause)]

    def cores(self) -> None:
        """Cores and their units."""
        contexts = 0
        for core in self.program.cores:
            self.parts["core"] += [core.kind, contexts, core.contexts, len(core.units), core.accounted]
            contexts += core.contexts
            for unit in core.units:
                self.parts["unit"] += [_POLICIES[unit.policy], unit.switch_cycles]
            self.parts["unit"] += [0, 0] * (self.units - len(core.units))

    def tasks(self) -> tuple[int, int]:
        """Tasks, grouped by the cores that they may use, and in what order they come; returns how many groups there
        are, and how many tasks that come after no other."""
        tasks, parts = self.program.tasks, self.parts
        groups: dict[tuple[int, ...], int] = {}
        members: defaultdict[int, int] = defaultdict(int)
        followers: defaultdict[int, list[int]] = defaultdict(list)
        for number, task in enumerate(tasks):
            members[groups.setdefault(task.cores, len(groups))] += 1
            if task.after is not None:
                followers[task.after].append(number)
        for number, task in enumerate(tasks):
            own = followers.get(number, [])
            parts["task"] += [task.release, task.frame_interval, task.key, int(task.key_from_arrival)]
            parts["task"] += [groups[task.cores], len(parts["follow"]), len(own)]
            parts["follow"] += own
        for cores, group in groups.items():
            first = len(parts["group_core"])
            parts["group_core"] += sorted(cores)
            parts["group"] += [first, first + len(cores), members[group]]
        free = [number for number, task in enumerate(tasks) if task.after is None]
        parts["arrival"] += sorted(free, key=lambda number: (tasks[number].release, number))
        return len(groups), len(free)


def tables_of(program: Program) -> tuple[list[int], list[tuple[int, int]]]:
    """The tables of a program; and per variant how many numbers a thread needs for its starts and its frees."""
    builder = _Builder(program)
    builder.variants()
    builder.cores()
    groups, arrivals = builder.tasks()
    parts = builder.parts
    order = [*("core", "unit", "task", "variant_of", "group", "variant", "phase", "stream", "buffer")]
    order += ["arrival", "address", "operation", "need", "group_core", "follow"]
    base, end = {}, at.T_HEAD
    for name in order:
        base[name] = end
        end += len(parts[name])
    _relocate(parts["group"], at.T_GROUP_SIZE, dict.fromkeys((at.CORE0, at.CORE_END), base["group_core"]))
    _relocate(parts["task"], at.T_TASK_SIZE, {at.FOLLOW0: base["follow"]})
    _relocate(parts["variant"], at.T_VARIANT_SIZE, {at.BUFFER0: base["buffer"]})
    _relocate(parts["stream"], at.T_STREAM_SIZE, {at.FIRST: base["address"]})
    _relocate(parts["address"], 1, {0: base["operation"]})
    _relocate(parts["operation"], at.T_OP_SIZE, {at.NEED0: base["need"]})
    longest = max(parts["phase"][:: at.T_PHASE_SIZE], default=1)
    head = [len(program.cores), builder.units, builder.most_phases, builder.buffers, builder.kinds]
    head += [len(program.tasks), groups, longest, *(base[name] for name in order[:10]), arrivals]
    return head + [number for name in order for number in parts[name]], builder.pools


def _relocate(part: list[int], size: int, fields: dict[int, int]) -> None:
    """Turn places within a part into addresses."""
    for field, base in fields.items():
        part[field::size] = [base + each for each in part[field::size]]


def state_of(
    tables: list[int], pools: list[tuple[int, int]], *, keep: bool, skipping: bool, room: int
) -> tuple[list[int], int]:
    """The state before the first cycle, and how many zeros follow it (what threads remember and marked states).

    `keep`: record a trace, `room` rows at first; `skipping`: skip periods.
    """
    cores, units, phases, buffers = tables[: at.N_BUFFERS + 1]
    contexts = sum(tables[tables[at.T_CORE] + at.CONTEXTS :: at.T_CORE_SIZE][:cores])
    starts, frees = (max((pool[which] for pool in pools), default=0) for which in (0, 1))
    mark_rooms = _mark_rooms(tables)
    sizes = {
        at.S_GROUP: tables[at.N_GROUPS] * at.S_GROUP_SIZE,
        at.S_CORE: cores * at.S_CORE_SIZE,
        at.S_UNIT: cores * units * at.S_UNIT_SIZE,
        at.S_CONTEXT: contexts * at.S_CONTEXT_SIZE,
        at.S_STREAM: contexts * units * at.S_STREAM_SIZE,
        at.S_PHASE: contexts * phases * at.S_PHASE_SIZE,
        at.S_BUFFER: contexts * buffers * at.S_BUFFER_SIZE,
        at.S_TASKS: tables[at.N_TASKS] * at.TASK_SIZE,
        at.S_COMING: (tables[at.N_TASKS] - tables[at.N_ARRIVALS]) * at.HEAP_SIZE,
    }
    base, end = {}, at.S_HEAD
    for name, size in sizes.items():
        base[name] = end
        end += size
    waiting = end
    marks = end + tables[at.N_TASKS] * at.HEAP_SIZE
    pool = marks + 2 * sum(mark_rooms)
    state = [0] * end
    state[at.KEEP], state[at.SKIPPING], state[at.ROOM] = int(keep), int(skipping), room
    for name, address in base.items():
        state[name] = address
    for group in range(tables[at.N_GROUPS]):
        state[base[at.S_GROUP] + group * at.S_GROUP_SIZE + at.WAITING] = waiting
        waiting += tables[tables[at.T_GROUP] + group * at.T_GROUP_SIZE + at.MEMBERS] * at.HEAP_SIZE
    for core in range(cores):
        k = base[at.S_CORE] + core * at.S_CORE_SIZE
        state[k + at.MARK], state[k + at.MARK_ROOM], state[k + at.ANCHOR] = marks, mark_rooms[core], -1
        marks += 2 * mark_rooms[core]
        for unit in range(units):
            state[base[at.S_UNIT] + (core * units + unit) * at.S_UNIT_SIZE + at.ROW] = -1
    for context in range(contexts):
        x = base[at.S_CONTEXT] + context * at.S_CONTEXT_SIZE
        state[x + at.TASK], state[x + at.FINISH] = -1, at.NEVER
        state[x + at.POOL] = pool + context * (starts + frees * buffers)
        for index in range(buffers):
            b = base[at.S_BUFFER] + (context * buffers + index) * at.S_BUFFER_SIZE
            state[b + at.FREE_CYCLES] = state[x + at.POOL] + starts + frees * index
        for unit in range(units):
            state[base[at.S_STREAM] + (context * units + unit) * at.S_STREAM_SIZE + at.READY] = at.NEVER
    return state, pool - end + contexts * (starts + frees * buffers)


def _mark_rooms(tables: list[int]) -> list[int]:
    """Numbers that the description of each core's state needs at most."""
    cores, units, _, buffers = tables[: at.N_BUFFERS + 1]
    first, last = tables[at.T_PHASE], tables[at.T_STREAM]
    strides = max(tables[first + at.STRIDE : last : at.T_PHASE_SIZE], default=0)
    lags = max(tables[first + at.LAG : last : at.T_PHASE_SIZE], default=0)
    thread = 2 + at.S_STREAM_SIZE * units + (2 * at.LAG_LIMIT + lags + 1) * strides + buffers * (1 + units)
    counts = tables[tables[at.T_CORE] + at.CONTEXTS :: at.T_CORE_SIZE][:cores]
    return [3 * units + 1 + count * thread for count in counts]
