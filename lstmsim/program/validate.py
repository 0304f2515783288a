"""The check of a program before an engine runs it: tasks, phases, operations, barriers; and words for deadlocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lstmsim.base.errors import ProgramError
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import MAX_SPREAD, POOL_POLICIES, Buffer, Core, Phase, Program, Task
from lstmsim.program.stall_reasons import CAUSES


def barrier_faults(program: Program) -> Iterator[str]:
    """Yield what is wrong with the barriers of a program, in sentences."""
    for number, arrivals in enumerate(program.barriers):
        if arrivals < 1:
            yield f"barrier {number}: opens after {arrivals} arrivals, which must be at least 1"
    faults = list(_tasks(program))
    yield from faults
    if program.barriers and not faults:
        yield from _arrivals(program)


def need_faults(need: Dependence) -> Iterator[str]:
    """Yield what is wrong with a dependence on a barrier, but for the number of the barrier."""
    if need.lag or need.phase is not None or need.mirrored:
        yield "waits for a barrier, so it has no lag, no phase and is not mirrored"


def _tasks(program: Program) -> Iterator[str]:
    preempting = any(task.preempts for task in program.tasks)
    if preempting and program.barriers:
        yield "a task preempts others, so there are no barriers"
    seen: set[int] = set()
    for task in program.tasks:
        for name, barrier in (("comes behind", task.behind), ("starts at", task.starts), ("ends at", task.ends)):
            if barrier is not None and not 0 <= barrier < len(program.barriers):
                yield f"task {task.name}: {name} barrier {barrier}, of {len(program.barriers)}"
        if task.until is not None and not 0 <= task.until < len(program.barriers):
            yield f"task {task.name}: lasts until barrier {task.until}, of {len(program.barriers)}"
        if task.until is not None and task.weight_set is not None and task.weight_set.key is not None:
            yield f"task {task.name}: lasts until a barrier has opened, so it has no weight set but room of its own"
        if task.behind is not None and task.after is not None:
            yield f"task {task.name}: comes behind a barrier and after a task"
        if preempting and not all(any(phase.body.size for phase in phases) for _, _, phases, _ in task.all_variants):
            yield f"task {task.name}: has no operation, and a task preempts others"
        for _, _, phases, _ in task.all_variants:
            if id(phases) in seen:
                continue
            seen.add(id(phases))
            for number, phase in enumerate(phases):
                yield from (
                    f"task {task.name}: phase {number}: {fault}" for fault in _phase(phase, len(program.barriers))
                )


def _phase(phase: Phase, barriers: int) -> Iterator[str]:
    if phase.barriers < 0 or not 0 <= phase.first_barrier <= barriers:
        yield f"first_barrier {phase.first_barrier} must be 0 to {barriers}, and barriers {phase.barriers} not negative"
        return
    last = phase.repeat - 1
    for index, operation in enumerate(phase.body.operations):
        arrives = operation.arrives
        if arrives is not None and not (arrives >= 0 and phase.barrier(last, arrives) < barriers):
            reported = f"{arrives}, at last {phase.barrier(last, arrives)}, of {barriers}"
            yield f"operation {index}: arrives at barrier {reported}"
        for need in operation.needs:
            if need.barrier and phase.barrier(last, need.operation) >= barriers:
                reported = f"{need.operation}, at last {phase.barrier(last, need.operation)}, of {barriers}"
                yield f"operation {index}: waits for barrier {reported}"


def _arrivals(program: Program) -> Iterator[str]:
    """Count all who may come to each barrier."""
    coming: Counter[int] = Counter()
    known: dict[int, Counter[int]] = {}
    for task in program.tasks:
        coming.update(barrier for barrier in (task.starts, task.ends) if barrier is not None)
        most: Counter[int] = Counter()
        for _, _, phases, _ in task.all_variants:
            if id(phases) not in known:
                known[id(phases)] = _arrivals_of(phases)
            # a task runs as one of its variants
            most |= known[id(phases)]
        coming.update(most)
    for barrier, count in sorted(coming.items()):
        if count > program.barriers[barrier]:
            yield f"barrier {barrier}: {count} may arrive, and it opens when {program.barriers[barrier]} have"


def _arrivals_of(phases: tuple[Phase, ...]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for phase in phases:
        for operation in phase.body.operations:
            if operation.arrives is None:
                continue
            if phase.barriers == 0:
                counts[phase.barrier(0, operation.arrives)] += phase.repeat
            else:
                counts.update(phase.barrier(iteration, operation.arrives) for iteration in range(phase.repeat))
    return counts


def quiet_faults(phases: tuple[Phase, ...], number: int, index: int) -> Iterator[str]:
    """Yield what is wrong with an operation of no issue."""
    phase = phases[number]
    operations = phase.body.operations
    operation = operations[index]
    if number < len(phases) - 1 or phase.repeat > 1:
        yield "has no issue, so its phase must be the last one and not repeat"
    if any((each.member, each.unit) == (operation.member, operation.unit) for each in operations[index + 1 :]):
        yield "has no issue, so no operation of its stream may follow"
    alone = operation.frame, operation.takes is not None, operation.frees is not None, operation.arrives is not None
    if not operation.needs or any(need.barrier or need.phase is not None for need in operation.needs) or any(alone):
        yield "has no issue, so it must wait for operations of its body and for nothing else"
    if any(need.operation == index and not need.barrier for each in operations for need in each.needs):
        yield "has no issue, so no operation may wait for it"


def validate(program: Program) -> None:
    """Check that a program keeps all rules; `ProgramError` that names every broken rule.

    What a timeline asks of the names of units is no rule of a program: see `lstmsim.program.unit_names`.

    >>> from lstmsim.program.program import Unit
    >>> validate(Program((Core(0, (Unit("array", "sleepy"),)),), ()))
    Traceback (most recent call last):
    ...
    lstmsim.base.errors.ProgramError: core 0, unit array: no policy called 'sleepy'
    """
    faults = [fault for index, core in enumerate(program.cores) for fault in _core(index, core)]
    faults += _weight_sets(program)
    needed = sum(core.contexts for core in program.cores if not core.shared)
    beside = {index for task in program.tasks for others in set(task.gang) for index in others}
    for index, core in enumerate(program.cores):
        # tasks that run on nothing else may wait for its threads as for those of any core
        if core.shared and index in beside and core.contexts < needed:
            faults.append(f"core {index}: is shared by {needed} threads and has {core.contexts}")
        if core.mirrors and not (core.shared and core.contexts == needed):
            reported = f"has {core.contexts}" if core.shared else "is not shared"
            faults.append(
                f"core {index}: its threads stand for all {needed} of cores that are not shared, and it {reported}"
            )
    seen: set[tuple[object, ...]] = set()
    for number, task in enumerate(program.tasks):
        faults.extend(f"task {task.name}: {fault}" for fault in _task(number, task))
        # many tasks are alike: the parts that they share are checked once
        shared = (task.variants, task.buffers, task.moldable, task.cores, task.gang, task.weight_set)
        alike = tuple(map(id, shared))
        if alike in seen:
            continue
        seen.add(alike)
        faults.extend(f"task {task.name}: {fault}" for fault in _places(task, program.cores))
        for kind, phases in task.variants:
            # bodies are also checked once, for each set of buffers
            key = (id(phases), id(task.slots(kind)), kind, *alike[3:])
            if key not in seen:
                seen.add(key)
                units = _units_of_members(task, kind, program.cores)
                faults.extend(
                    f"task {task.name}: {fault}" for fault in _phases(task, kind, phases, task.slots(kind), units)
                )
        faults.extend(f"task {task.name}: {fault}" for fault in _moldable(task, program.cores))
    faults += _pools(program)
    faults += _sessions(program)
    faults += barrier_faults(program) if not faults else ()
    if faults:
        raise ProgramError("\n".join(faults))


def _pools(program: Program) -> Iterator[str]:
    for number, pool in enumerate(program.pools):
        if pool.most < 1 or pool.wait < 0 or pool.policy not in POOL_POLICIES:
            yield f"pool {number}: takes {pool.most} tasks, waits {pool.wait} cycles by policy {pool.policy!r}"
    for task in program.tasks:
        if task.pool is None:
            continue
        if not 0 <= task.pool < len(program.pools):
            yield f"task {task.name}: waits in pool {task.pool}, of {len(program.pools)}"
        elif task.in_rounds(program.pools):
            if task.length < 1:
                yield f"task {task.name}: goes on step by step and has {task.length} steps"
            if task.gang or task.weight_set or task.starts is not None or task.until is not None:
                yield f"task {task.name}: goes on step by step, so it has no gang, no weight set and no barriers"


def _sessions(program: Program) -> Iterator[str]:
    """Yield what is wrong with tasks whose states may have to be moved."""
    preempting = any(task.preempts for task in program.tasks)
    for task in program.tasks:
        if task.session is None:
            if task.move_cycles:
                yield f"task {task.name}: moves states for {task.move_cycles} cycles and belongs to no session"
            continue
        if not 0 <= task.session < len(program.tasks) or task.move_cycles < 0:
            text = f"is in session {task.session} of {len(program.tasks)}, and moves take {task.move_cycles} cycles"
            yield f"task {task.name}: {text}"
        if preempting or task.pool is not None or task.moldable:
            yield f"task {task.name}: has a session, so it waits in no pool and is not moldable, and no task preempts"


def _core(index: int, core: Core) -> Iterator[str]:
    if core.contexts < 1:
        yield f"core {index}: needs at least one context"
    if core.accounted is not None and not 0 <= core.accounted < len(core.units):
        yield f"core {index}: accounted unit {core.accounted} does not exist"
    if len(set(core.held)) < len(core.held):
        yield f"core {index}: holds a weight set twice, {core.held}"
    if core.capacity is not None and core.capacity < 0:
        yield f"core {index}: capacity {core.capacity} < 0"
    for unit in core.units:
        if unit.policy not in POLICIES:
            yield f"core {index}, unit {unit.name}: no policy called {unit.policy!r}"
        if unit.switch_cycles < 0:
            yield f"core {index}, unit {unit.name}: switch_cycles {unit.switch_cycles} < 0"
        if unit.instances < 1:
            yield f"core {index}, unit {unit.name}: instances {unit.instances} < 1"


def _task(number: int, task: Task) -> Iterator[str]:
    """Yield what is wrong with the task's own numbers."""
    if task.after is not None and not 0 <= task.after < number:
        yield f"comes after task {task.after}, which is not an earlier one"
    if task.release < 0 or task.frame_interval < 0:
        yield "release and frame_interval must not be negative"
    if (task.queue_limit or 0) < 0 or (task.patience or 0) < 0:
        yield "queue_limit and patience must not be negative"
    if (task.gang or task.weight_set) and task.preempts:
        yield "preempts, which a task with gang or weight set cannot"


def _places(task: Task, cores: tuple[Core, ...]) -> Iterator[str]:
    """Yield what is wrong with the cores that a task may take."""
    if not task.cores:
        yield "may run on no core"
    if task.gang and len(task.gang) != len(task.cores):
        yield f"has gang for {len(task.gang)} of its {len(task.cores)} cores"
        return
    for place in task.places if task.gang else ():
        for index in dict.fromkeys(place):
            if 0 <= index < len(cores) and place.count(index) > cores[index].contexts:
                yield f"needs {place.count(index)} threads of core {index}, which has {cores[index].contexts}"
            if not 0 <= index < len(cores) and index not in task.cores:
                yield f"core {index} does not exist"
        if all(0 <= index < len(cores) for index in place):
            yield from _mirrored(place, cores)
    kinds = {kind for kind, _ in task.variants}
    if len(kinds) < len(task.variants):
        yield "has two variants for one kind of core"
    for index in task.cores:
        if not 0 <= index < len(cores):
            yield f"core {index} does not exist"
        elif cores[index].kind not in kinds:
            yield f"has no variant for core {index} of kind {cores[index].kind}"


def _mirrored(place: tuple[int, ...], cores: tuple[Core, ...]) -> Iterator[str]:
    """Yield what is wrong with members of a place whose threads stand for those of other members."""
    own = 0
    taken: dict[int, int] = {}
    for index in place:
        own += not cores[index].shared
        taken[index] = taken.get(index, 0) + 1
        if cores[index].mirrors and taken[index] > own:
            yield f"takes thread {taken[index]} of core {index}, and {own} before it for which that could stand"
            return


def _moldable(task: Task, cores: tuple[Core, ...]) -> Iterator[str]:
    """Yield what is wrong with a task that may take several of its cores at once."""
    if not task.moldable or not all(0 <= each < len(cores) for each in task.cores):
        return
    if task.gang or task.weight_set or task.preempts:
        yield "is moldable, so it has no gang and no weight set and does not preempt"
        return
    own = [cores[each] for each in task.cores]
    kinds = sorted({each.kind for each in own})
    if len(set(task.cores)) < len(task.cores) or len(kinds) > 1 or any(each.shared for each in own):
        yield f"is moldable, so its cores must be different ones of one kind and not shared, got {task.cores}"
    if len(own) > MAX_SPREAD:
        yield f"is moldable and has {len(own)} cores, at most {MAX_SPREAD}"
    counts = [each.members for each in task.moldable]
    if counts != sorted(set(counts)) or not 2 <= counts[0] <= counts[-1] <= len(own):
        yield f"is moldable over {counts} cores, which must grow from 2 on and not exceed its {len(own)}"
        return
    units = min(len(each.units) for each in own)
    for each in task.moldable:
        for fault in _phases(task, kinds[0], each.phases, each.buffers, [units] * each.members):
            yield f"over {each.members} cores, {fault}"


def _weight_sets(program: Program) -> Iterator[str]:
    sizes: dict[int, int] = {}
    for task in program.tasks:
        weight_set = task.weight_set
        if weight_set is None:
            continue
        name = "room of its own" if weight_set.key is None else f"weight set {weight_set.key}"
        if weight_set.size < 0:
            yield f"task {task.name}: {name} has size {weight_set.size} < 0"
        if weight_set.key is None:
            if weight_set.loading or task.affine:
                yield f"task {task.name}: {name} is not loaded, and no place holds it: loading is 0, and affine False"
        elif weight_set.key == -1:
            yield f"task {task.name}: weight set -1 has the number that stands for none"
        elif sizes.setdefault(weight_set.key, weight_set.size) != weight_set.size:
            yield f"task {task.name}: {name} has size {weight_set.size} and {sizes[weight_set.key]}"
        for place in task.places:
            rooms = [program.cores[each].capacity for each in place if 0 <= each < len(program.cores)]
            if any(room is not None and room < weight_set.size for room in rooms):
                yield f"task {task.name}: {name} of size {weight_set.size} does not fit on cores {place}"
    for index, core in enumerate(program.cores):
        if core.capacity is not None and sum(sizes.get(key, 0) for key in core.held) > core.capacity:
            yield f"core {index}: holds more than its capacity {core.capacity}"


def _units_of_members(task: Task, kind: int, cores: tuple[Core, ...]) -> list[int]:
    """For each member of a task the least number of units of its core, over places whose first core is of `kind`."""
    known = [place for place in task.places if all(0 <= each < len(cores) for each in place)]
    places = [place for place in known if cores[place[0]].kind == kind]
    if len({len(place) for place in places}) > 1:
        places = [place[: min(map(len, places))] for place in places]
    return [min(len(cores[each].units) for each in members) for members in zip(*places, strict=True)]


def _phases(
    task: Task, kind: int, phases: tuple[Phase, ...], slots: tuple[Buffer, ...], units: list[int]
) -> Iterator[str]:
    if not phases:
        yield f"kind {kind}: has no phases"
    elif task.weight_set is not None and not 0 <= task.weight_set.loading < len(phases):
        yield f"kind {kind}: all of its phases are for loading"
    if any(buffer.slots < 1 or buffer.cause not in CAUSES for buffer in slots):
        yield f"kind {kind}: a buffer needs at least one slot and a known cause"
    users: dict[tuple[str, int], set[tuple[int, int]]] = {}
    for number, phase in enumerate(phases):
        # on one kind of core there may be nothing to load
        loading = task.weight_set is not None and number < task.weight_set.loading
        # and a task of a single phase may have nothing to do
        if phase.repeat < 1 or not (phase.body.operations or loading or len(phases) == 1):
            yield f"kind {kind}, phase {number}: must repeat at least once and hold an operation"
        if any(len(column) != phase.repeat or min(column) < 0 for column in phase.extra_cycles):
            yield f"kind {kind}, phase {number}: extra_cycles must have a number from 0 on for each iteration"
        for index, operation in enumerate(phase.body.operations):
            where = f"kind {kind}, phase {number}, operation {index}"
            for fault in _operation(operation, units, len(slots), len(phase.extra_cycles)):
                yield f"{where}: {fault}"
            if operation.count == 0:
                for fault in quiet_faults(phases, number, index):
                    yield f"{where}: {fault}"
            for need in operation.needs:
                for fault in _dependence(need, index, number, phases):
                    yield f"{where}: {fault}"
            for use, buffer in (("taken", operation.takes), ("freed", operation.frees)):
                if buffer is not None:
                    users.setdefault((use, buffer), set()).add((operation.member, operation.unit))
    for (use, buffer), on in users.items():
        if len(on) > 1:
            yield f"kind {kind}: buffer {buffer} is {use} by more than one unit, so its slots have no order"


def _operation(operation: Operation, units: list[int], buffers: int, columns: int) -> Iterator[str]:
    # a task that may use no core of this kind may have a variant for it all the same
    if units and not 0 <= operation.member < len(units):
        yield f"member {operation.member} does not exist"
    elif units and not 0 <= operation.unit < units[operation.member]:
        yield f"unit {operation.unit} does not exist"
    if operation.cycles < 1 or operation.count < 0:
        yield "cycles must be at least 1, count at least 0"
    if operation.work < 0:
        yield f"work {operation.work} < 0"
    if operation.result_cycles < operation.cycles:
        yield f"result_cycles {operation.result_cycles} < cycles {operation.cycles}"
    if operation.extra is not None and not (0 <= operation.extra < columns and operation.count == 1):
        yield f"extra {operation.extra} needs a column of extra_cycles and a single issue"
    for buffer in (operation.takes, operation.frees):
        if buffer is not None and not 0 <= buffer < buffers:
            yield f"buffer {buffer} does not exist"


def _dependence(need: Dependence, index: int, number: int, phases: tuple[Phase, ...]) -> Iterator[str]:
    if need.delay < 1:
        yield f"delay {need.delay} < 1: nothing takes effect in the cycle in which it issues"
    if need.cause not in CAUSES:
        yield f"no cause called {need.cause!r}"
    if need.barrier:
        yield from need_faults(need)
        return
    source = number if need.phase is None else need.phase
    if not 0 <= source <= number or (need.phase is not None and source == number):
        yield f"phase {need.phase} is not an earlier one"
        return
    if not 0 <= need.operation < len(phases[source].body.operations):
        yield f"depends on operation {need.operation}, which does not exist"
    elif need.phase is None and (need.lag < 0 or (need.lag == 0 and need.operation >= index)):
        yield f"depends on operation {need.operation} with lag {need.lag}, which comes no earlier"


def describe_wait(task: Task, operation: Operation, lacking: str) -> str:
    """Say in a sentence, for a deadlock, which operation of which task waits for what."""
    return f"task {task.name}: {operation.label or 'operation'} on unit {operation.unit} waits for {lacking}"
