"""The bodies of a variant as records of the tables (`engines.fast.layout`), kept for the next program that has them.

Addresses within these records count from the first record of their kind; `tables` moves them to where they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lstmsim.engines.fast import layout as at
from lstmsim.program.cycles import CAUSES
from lstmsim.program.kept import Kept
from lstmsim.program.program import Body, Operation

__all__ = ["LaidDown", "LaidPhase", "laid_down"]

#: Numbers in all the records that are kept: some tens of MB.
MOST_NUMBERS = 2_000_000


class LaidPhase(NamedTuple):
    """What the tables say of a phase beside its repeats, and what a thread remembers of each of its iterations.

    stride, lag, reach, cross, framed: as in the record of a phase (`layout.STRIDE` and those after it).
    frees: how many operations free a slot of a buffer.
    """

    stride: int
    lag: int
    reach: int
    cross: int
    framed: int
    frees: int


class LaidDown(NamedTuple):
    """The records of the bodies of a variant.

    bodies: those themselves.
    phases: one for each body.
    stream, address, operation, need: the records of each kind, one after the other.
    """

    bodies: tuple[Body, ...]
    phases: tuple[LaidPhase, ...]
    stream: list[int]
    address: list[int]
    operation: list[int]
    need: list[int]

    @property
    def numbers(self) -> int:
        """How many numbers the records have."""
        return sum(map(len, self[2:]))


_KEPT: Kept[LaidDown] = Kept(MOST_NUMBERS, lambda laid: laid.numbers)


def laid_down(bodies: tuple[Body, ...], members: int, units: int) -> LaidDown:
    """The records of the bodies of a variant, one body for each of its phases.

    bodies: told apart by identity, because comparing them takes longer than all the rest.
    members: on how many cores a task of the variant runs at once.
    units: the most that any core of the program has.
    """
    return _KEPT.of((*map(id, bodies), members, units), lambda: _made(bodies, members, units))


class _Waited:
    """What a variant's operations wait for, per phase: the operations whose starts somebody waits for and their slots,
    the longest delay with which somebody does, and the longest with which later phases do."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self.slots: list[dict[int, int]] = [{} for _ in bodies]
        self.echoes: list[dict[int, int]] = [{} for _ in bodies]
        self.crossing = [0] * len(bodies)
        for number, body in enumerate(bodies):
            for operation in body.operations:
                for need in operation.needs:
                    source, delay = number if need.phase is None else need.phase, need.delay
                    slots, echoes = self.slots[source], self.echoes[source]
                    slots.setdefault(need.operation, len(slots))
                    if delay > echoes.get(need.operation, 0):
                        echoes[need.operation] = delay
                    if need.phase is not None and delay > self.crossing[source]:
                        self.crossing[source] = delay


def _made(bodies: tuple[Body, ...], members: int, units: int) -> LaidDown:
    waited, phases = _Waited(bodies), []
    laid = LaidDown(bodies, (), [], [], [], [])
    for number, body in enumerate(bodies):
        operations = body.operations
        own = [need for each in operations for need in each.needs if need.phase is None]
        phases.append(
            LaidPhase(
                stride=len(waited.slots[number]),
                lag=max((need.lag for need in own), default=0),
                reach=max((need.delay for need in own), default=0),
                cross=waited.crossing[number],
                framed=int(any(each.frame for each in operations)),
                frees=sum(each.frees is not None for each in operations),
            )
        )
        _streams(laid, operations, members, units)
        for index, each in enumerate(operations):
            echo = max(each.result_cycles, waited.echoes[number].get(index, 0))
            _operation(laid, each, index, number, waited.slots, echo)
    return laid._replace(phases=tuple(phases))


def _streams(laid: LaidDown, operations: tuple[Operation, ...], members: int, units: int) -> None:
    """Which of a body's operations, whose records come next, run on which unit of which member."""
    first = len(laid.operation)
    streams: list[list[int]] = [[] for _ in range(members * units)]
    for index, each in enumerate(operations):
        # a variant for a kind of core that the task does not use may speak of more
        if each.member < members and each.unit < units:
            streams[each.member * units + each.unit].append(first + index * at.T_OP_SIZE)
    for stream in streams:
        laid.stream.extend((len(laid.address), len(stream)))
        laid.address.extend(stream)


def _operation(
    laid: LaidDown, each: Operation, index: int, number: int, slots: Sequence[dict[int, int]], echo: int
) -> None:
    """One operation and its needs."""
    takes = -1 if each.takes is None else each.takes
    frees = -1 if each.frees is None else each.frees
    laid.operation.extend(
        (
            *(each.cycles, each.count, int(each.frame), takes, frees, each.result_cycles),
            *(slots[number].get(index, -1), each.work, len(laid.need), len(each.needs), index),
            *(each.ahead, echo),
        )
    )
    for need in each.needs:
        source = number if need.phase is None else need.phase
        mode = 0 if need.phase is None else 2 if need.mirrored else 1
        laid.need.extend((source, slots[source][need.operation], need.lag, mode, need.delay, CAUSES.index(need.cause)))
