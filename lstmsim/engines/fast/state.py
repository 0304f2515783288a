"""The state of a run before its first cycle as one flat sequence of whole numbers (see `engines.fast.layout`)."""

from __future__ import annotations

from lstmsim.engines.fast import layout as at
from lstmsim.program.program import Program

__all__ = ["state_of"]


def state_of(
    program: Program, tables: list[int], pools: list[tuple[int, int]], *, keep: bool, skipping: bool, room: int
) -> tuple[list[int], int]:
    """The state before the first cycle, and how many zeros follow it (what threads remember and marked states).

    `keep`: record a trace, `room` rows at first; `skipping`: skip periods.
    """
    cores, units, phases, buffers = tables[: at.N_BUFFERS + 1]
    tasks, groups, queues = tables[at.N_TASKS], tables[at.N_GROUPS], tables[at.N_QUEUES]
    contexts = sum(core.contexts for core in program.cores)
    mark_rooms = _mark_rooms(tables)
    patient = tasks if any(task.patience is not None for task in program.tasks) else 0
    sizes = {
        at.S_GROUP: groups * at.S_GROUP_SIZE,
        at.S_CORE: cores * at.S_CORE_SIZE,
        at.S_UNIT: cores * units * at.S_UNIT_SIZE,
        at.S_CONTEXT: contexts * at.S_CONTEXT_SIZE,
        at.S_STREAM: contexts * units * at.S_STREAM_SIZE,
        at.S_PHASE: contexts * phases * at.S_PHASE_SIZE,
        at.S_BUFFER: contexts * buffers * at.S_BUFFER_SIZE,
        at.S_TASKS: tasks * at.TASK_SIZE,
        at.S_COMING: (tasks - tables[at.N_ARRIVALS]) * at.HEAP_SIZE,
        at.S_HELD: cores * tables[at.N_CONTENTS] * at.S_HELD_SIZE,
        at.S_PAUSED: tasks * at.S_PAUSED_SIZE if groups > queues else 0,
        at.S_LEAVING: patient * at.HEAP_SIZE,
        at.S_ENTRY: tasks,
        at.S_LEAVING_ENTRY: patient,
    }
    base, end = {}, at.S_HEAD
    for name, size in sizes.items():
        base[name] = end
        end += size
    waiting = end
    state = [0] * end
    state[at.KEEP], state[at.SKIPPING], state[at.ROOM] = int(keep), int(skipping and not tables[at.ENTWINED]), room
    state[at.LOOK] = at.NEVER
    for name, address in base.items():
        state[name] = address
    for group in range(groups):
        state[base[at.S_GROUP] + group * at.S_GROUP_SIZE + at.WAITING] = waiting
        waiting += tables[tables[at.T_GROUP] + group * at.T_GROUP_SIZE + at.MEMBERS] * at.HEAP_SIZE
    marks = waiting
    for core in range(cores):
        k = base[at.S_CORE] + core * at.S_CORE_SIZE
        state[k + at.MARK], state[k + at.MARK_ROOM], state[k + at.ANCHOR] = marks, mark_rooms[core], -1
        marks += 2 * mark_rooms[core]
        for unit in range(units):
            state[base[at.S_UNIT] + (core * units + unit) * at.S_UNIT_SIZE + at.ROW] = -1
    _hold(program, tables, state)
    return state, marks + _contexts(program, tables, pools, state, marks) - end


def _contexts(program: Program, tables: list[int], pools: list[tuple[int, int]], state: list[int], pool: int) -> int:
    """Prepare the threads; returns how many numbers they have for what they remember."""
    units, _, buffers = tables[at.N_UNITS : at.N_BUFFERS + 1]
    starts, frees = (max((each[which] for each in pools), default=0) for which in (0, 1))
    groups = tables[tables[at.T_GROUP] : tables[at.T_VARIANT]]
    ends = zip(groups[at.FIRST0 :: at.T_GROUP_SIZE], groups[at.FIRST_END :: at.T_GROUP_SIZE], strict=True)
    leading = {core for first, end in ends for core in tables[first:end]}
    context, size = 0, 0
    for number, core in enumerate(program.cores):
        for _ in range(core.contexts):
            x = state[at.S_CONTEXT] + context * at.S_CONTEXT_SIZE
            state[x + at.TASK], state[x + at.FINISH], state[x + at.AT_CORE] = -1, at.NEVER, number
            state[x + at.POOL] = pool + size
            for index in range(buffers):
                b = state[at.S_BUFFER] + (context * buffers + index) * at.S_BUFFER_SIZE
                state[b + at.FREE_CYCLES] = state[x + at.POOL] + starts + frees * index
            state[x + at.ROWS_AT] = state[at.S_STREAM] + context * units * at.S_STREAM_SIZE
            for unit in range(units):
                state[state[x + at.ROWS_AT] + unit * at.S_STREAM_SIZE + at.READY] = at.NEVER
            # only the first of a task's threads remembers
            size += (starts + frees * buffers) if number in leading else 0
            context += 1
    return size


def _hold(program: Program, tables: list[int], state: list[int]) -> None:
    """What lies in memories at the start."""
    numbers: dict[int, int] = {}
    for task in program.tasks if any(core.held for core in program.cores) else ():
        if task.content is not None:
            numbers.setdefault(task.content.key, len(numbers))
    for core, each in enumerate(program.cores):
        for key in each.held:
            if key in numbers:
                state[at.STAMPS] += 1
                h = state[at.S_HELD] + (core * tables[at.N_CONTENTS] + numbers[key]) * at.S_HELD_SIZE
                state[h + at.STAMP] = state[at.STAMPS]


def _mark_rooms(tables: list[int]) -> list[int]:
    """Numbers that the description of each core's state needs at most."""
    cores, units, _, buffers = tables[: at.N_BUFFERS + 1]
    first, last = tables[at.T_PHASE], tables[at.T_STREAM]
    strides = max(tables[first + at.STRIDE : last : at.T_PHASE_SIZE], default=0)
    lags = max(tables[first + at.LAG : last : at.T_PHASE_SIZE], default=0)
    thread = 2 + at.S_STREAM_SIZE * units + (2 * at.LAG_LIMIT + lags + 1) * strides + buffers * (1 + units)
    counts = tables[tables[at.T_CORE] + at.CONTEXTS :: at.T_CORE_SIZE][:cores]
    return [3 * units + 1 + count * thread for count in counts]
