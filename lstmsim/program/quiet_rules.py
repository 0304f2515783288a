"""The rules of operations of no issue (`Operation.count` 0), which only wait."""

from __future__ import annotations

from collections.abc import Iterator

from lstmsim.program.program import Phase

__all__ = ["quiet_faults"]


def quiet_faults(phases: tuple[Phase, ...], number: int, index: int) -> Iterator[str]:
    """Yield what is wrong with an operation of no issue.

    phases: of its task.
    number: its phase.
    index: its place in the body.

    >>> from lstmsim.program.program import Body, Dependence, Operation
    >>> body = Body((Operation(0), Operation(1, count=0, needs=(Dependence(0, 5),))))
    >>> [*quiet_faults((Phase(body, 1),), 0, 1)], [*quiet_faults((Phase(body, 2),), 0, 1)]
    ([], ['has no issue, so its phase must be the last one and not repeat'])
    """
    phase = phases[number]
    operations = phase.body.operations
    operation = operations[index]
    if number < len(phases) - 1 or phase.repeat > 1:
        yield "has no issue, so its phase must be the last one and not repeat"
    if any((each.member, each.unit) == (operation.member, operation.unit) for each in operations[index + 1 :]):
        yield "has no issue, so no operation of its stream may follow"
    alone = operation.frame, operation.takes is not None, operation.frees is not None, operation.arrives is not None
    if not operation.needs or any(need.gate or need.phase is not None for need in operation.needs) or any(alone):
        yield "has no issue, so it must wait for operations of its body and for nothing else"
    if any(need.operation == index and not need.gate for each in operations for need in each.needs):
        yield "has no issue, so no operation may wait for it"
