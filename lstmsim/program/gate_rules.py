"""The check of a program's gates: they exist, those who wait for them may, and no more come than they count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lstmsim.program.operations import Dependence
from lstmsim.program.program import Phase, Program, Task

__all__ = ["gate_faults", "need_faults"]


def gate_faults(program: Program) -> Iterator[str]:
    """Yield what is wrong with the gates of a program, in sentences.

    program: in which everything else is right.

    >>> from lstmsim.program.program import *
    >>> core, phases = Core(0, (Unit("array", "coarse"),)), (Phase(Body((Operation(0),)), 1),)
    >>> list(gate_faults(Program((core,), (Task("t", ((0, phases),), (), (0,), starts=3),), gates=(1,))))
    ['task t: starts at gate 3, of 1']
    """
    for number, arrivals in enumerate(program.gates):
        if arrivals < 1:
            yield f"gate {number}: opens after {arrivals} arrivals, which must be at least 1"
    faults = list(_tasks(program))
    yield from faults
    if program.gates and not faults:
        yield from _arrivals(program)


def need_faults(need: Dependence) -> Iterator[str]:
    """Yield what is wrong with a dependence on a gate, but for the gate's number.

    >>> list(need_faults(Dependence(0, 1, lag=2, gate=True)))
    ['waits for a gate, so it has no lag, no phase and is not mirrored']
    """
    if need.lag or need.phase is not None or need.mirrored:
        yield "waits for a gate, so it has no lag, no phase and is not mirrored"


def _tasks(program: Program) -> Iterator[str]:
    preempting = any(task.preempts for task in program.tasks)
    if preempting and program.gates:
        yield "a task preempts others, so there are no gates"
    seen: set[int] = set()
    for task in program.tasks:
        for name, gate in (("comes behind", task.behind), ("starts at", task.starts), ("ends at", task.ends)):
            if gate is not None and not 0 <= gate < len(program.gates):
                yield f"task {task.name}: {name} gate {gate}, of {len(program.gates)}"
        if task.until is not None and not 0 <= task.until < len(program.gates):
            yield f"task {task.name}: lasts until gate {task.until}, of {len(program.gates)}"
        if task.until is not None and task.content is not None and task.content.key is not None:
            yield f"task {task.name}: lasts until a gate has opened, so it has no content but room of its own"
        if task.behind is not None and task.after is not None:
            yield f"task {task.name}: comes behind a gate and after a task"
        if preempting and not all(any(phase.body.size for phase in phases) for phases in _ways(task)):
            yield f"task {task.name}: has no operation, and a task preempts others"
        for phases in _ways(task):
            if id(phases) in seen:
                continue
            seen.add(id(phases))
            for number, phase in enumerate(phases):
                yield from (f"task {task.name}: phase {number}: {fault}" for fault in _phase(phase, len(program.gates)))


def _ways(task: Task) -> Iterator[tuple[Phase, ...]]:
    """The phases of a task on each kind of cores, and on several of its cores."""
    yield from (phases for _, phases in task.variants)
    yield from (each.phases for each in task.wide)


def _phase(phase: Phase, gates: int) -> Iterator[str]:
    if phase.gates < 0 or not 0 <= phase.first_gate <= gates:
        yield f"first_gate {phase.first_gate} must be 0 to {gates}, and gates {phase.gates} not negative"
        return
    last = phase.repeat - 1
    for index, operation in enumerate(phase.body.operations):
        arrives = operation.arrives
        if arrives is not None and not (arrives >= 0 and phase.gate(last, arrives) < gates):
            yield f"operation {index}: arrives at gate {arrives}, at last {phase.gate(last, arrives)}, of {gates}"
        for need in operation.needs:
            if need.gate and phase.gate(last, need.operation) >= gates:
                told = f"{need.operation}, at last {phase.gate(last, need.operation)}, of {gates}"
                yield f"operation {index}: waits for gate {told}"


def _arrivals(program: Program) -> Iterator[str]:
    """Count all who may come to each gate."""
    coming: Counter[int] = Counter()
    known: dict[int, Counter[int]] = {}
    for task in program.tasks:
        coming.update(gate for gate in (task.starts, task.ends) if gate is not None)
        most: Counter[int] = Counter()
        for phases in _ways(task):
            if id(phases) not in known:
                known[id(phases)] = _arrivals_of(phases)
            # a task runs in one of its ways
            most |= known[id(phases)]
        coming.update(most)
    for gate, count in sorted(coming.items()):
        if count > program.gates[gate]:
            yield f"gate {gate}: {count} may arrive, and it opens when {program.gates[gate]} have"


def _arrivals_of(phases: tuple[Phase, ...]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for phase in phases:
        for operation in phase.body.operations:
            if operation.arrives is None:
                continue
            if phase.gates == 0:
                counts[phase.gate(0, operation.arrives)] += phase.repeat
            else:
                counts.update(phase.gate(iteration, operation.arrives) for iteration in range(phase.repeat))
    return counts
