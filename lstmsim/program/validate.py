"""Refuses programs that break the rules, before an engine sees them; words for what a thread waits for."""

from __future__ import annotations

from collections.abc import Iterator

from lstmsim.errors import ProgramError
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import CAUSES, Core, Dependence, Operation, Phase, Program, Task

__all__ = ["describe_wait", "validate"]


def validate(program: Program) -> None:
    """Raise `ProgramError` naming every rule that the program breaks; return None if it breaks none.

    >>> from lstmsim.program.program import Unit
    >>> validate(Program((Core(0, (Unit("array", "sleepy"),)),), ()))
    Traceback (most recent call last):
    ...
    lstmsim.errors.ProgramError: core 0, unit array: no policy called 'sleepy'
    """
    faults = [fault for index, core in enumerate(program.cores) for fault in _core(index, core)]
    seen: set[tuple[int, int, int]] = set()
    for number, task in enumerate(program.tasks):
        faults.extend(f"task {task.name}: {fault}" for fault in _task(number, task, program.cores))
        for kind, phases in task.variants:
            # bodies are shared between tasks; each is looked at once per set of buffers
            key = (id(phases), id(task.slots(kind)), kind)
            if key not in seen:
                seen.add(key)
                units = [len(core.units) for core in program.cores if core.kind == kind]
                faults.extend(f"task {task.name}: {fault}" for fault in _phases(task, kind, phases, units))
    if faults:
        raise ProgramError("\n".join(faults))


def _core(index: int, core: Core) -> Iterator[str]:
    if core.contexts < 1:
        yield f"core {index}: needs at least one context"
    if not 0 <= core.accounted < len(core.units):
        yield f"core {index}: accounted unit {core.accounted} does not exist"
    for unit in core.units:
        if unit.policy not in POLICIES:
            yield f"core {index}, unit {unit.name}: no policy called {unit.policy!r}"
        if unit.switch_cycles < 0:
            yield f"core {index}, unit {unit.name}: switch_cycles {unit.switch_cycles} < 0"


def _task(number: int, task: Task, cores: tuple[Core, ...]) -> Iterator[str]:
    if task.after is not None and not 0 <= task.after < number:
        yield f"comes after task {task.after}, which is not an earlier one"
    if not task.cores:
        yield "may run on no core"
    if task.release < 0 or task.frame_interval < 0:
        yield "release and frame_interval must not be negative"
    kinds = [kind for kind, _ in task.variants]
    for index in task.cores:
        if not 0 <= index < len(cores):
            yield f"core {index} does not exist"
        elif cores[index].kind not in kinds:
            yield f"has no variant for core {index} of kind {cores[index].kind}"


def _phases(task: Task, kind: int, phases: tuple[Phase, ...], units: list[int]) -> Iterator[str]:
    if not phases:
        yield f"kind {kind}: has no phases"
    if any(buffer.slots < 1 or buffer.cause not in CAUSES for buffer in task.slots(kind)):
        yield f"kind {kind}: a buffer needs at least one slot and a known cause"
    users: dict[tuple[str, int], set[int]] = {}
    for number, phase in enumerate(phases):
        if phase.repeat < 1 or not phase.body.operations:
            yield f"kind {kind}, phase {number}: must repeat at least once and hold an operation"
        for index, operation in enumerate(phase.body.operations):
            where = f"kind {kind}, phase {number}, operation {index}"
            for fault in _operation(operation, min(units, default=operation.unit + 1), len(task.slots(kind))):
                yield f"{where}: {fault}"
            for need in operation.needs:
                for fault in _dependence(need, index, number, phases):
                    yield f"{where}: {fault}"
            for use, buffer in (("taken", operation.takes), ("freed", operation.frees)):
                if buffer is not None:
                    users.setdefault((use, buffer), set()).add(operation.unit)
    for (use, buffer), on in users.items():
        if len(on) > 1:
            yield f"kind {kind}: buffer {buffer} is {use} by more than one unit, so its slots have no order"


def _operation(operation: Operation, units: int, buffers: int) -> Iterator[str]:
    if not 0 <= operation.unit < units:
        yield f"unit {operation.unit} does not exist"
    if operation.cycles < 1 or operation.count < 1:
        yield "cycles and count must be at least 1"
    if operation.result_cycles < operation.cycles:
        yield f"result_cycles {operation.result_cycles} < cycles {operation.cycles}"
    for buffer in (operation.takes, operation.frees):
        if buffer is not None and not 0 <= buffer < buffers:
            yield f"buffer {buffer} does not exist"


def _dependence(need: Dependence, index: int, number: int, phases: tuple[Phase, ...]) -> Iterator[str]:
    if need.delay < 1:
        yield f"delay {need.delay} < 1: nothing takes effect in the cycle in which it issues"
    if need.cause not in CAUSES:
        yield f"no cause called {need.cause!r}"
    source = number if need.phase is None else need.phase
    if not 0 <= source <= number or (need.phase is not None and source == number):
        yield f"phase {need.phase} is not an earlier one"
        return
    if not 0 <= need.operation < len(phases[source].body.operations):
        yield f"depends on operation {need.operation}, which does not exist"
    elif need.phase is None and (need.lag < 0 or (need.lag == 0 and need.operation >= index)):
        yield f"depends on operation {need.operation} with lag {need.lag}, which comes no earlier"


def describe_wait(task: Task, operation: Operation, lacking: str) -> str:
    """A sentence for a deadlock: which task waits with which operation for what."""
    return f"task {task.name}: {operation.label or 'operation'} on unit {operation.unit} waits for {lacking}"
