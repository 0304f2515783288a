"""Operations, what they wait for, their rows in the flat form, and packed bodies (a word for each operation and need).

A program has hundreds of thousands of these, so they are named tuples: they are made in a quarter of the time that a
frozen dataclass takes. A target that writes rows (`lstmsim.program.body_writer`) makes none of them. One that writes
millions in bulk writes packed bodies: rows of `operations` and `needs` are then prototypes, which many words share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.program.flat import FLAT_TABLES, WIDTHS, FlatProgram
from lstmsim.program.stall_reasons import CAUSES


class Dependence(NamedTuple):
    """The rule `start >= (start of the last issue of operation) + delay`.

    operation: place of the other operation in its body.
    delay: cycles, at least 1.
    cause: the name of a wait for it, one of `lstmsim.program.stall_reasons.CAUSES`.
    lag: in the same body, how many iterations earlier the other operation is; the first `lag` iterations do not wait.
        With lag 0 the other operation comes earlier in the body.
    phase: number of the earlier phase that has the other operation; None for the same body.
    mirrored: in an earlier phase, whether the iteration of the other operation is `repeat - 1 - iteration`; else it is
        the same iteration. So iteration 0 with a mirrored need waits for the last iteration of the earlier phase. If
        the earlier phase has no such iteration, there is no wait.
    barrier: whether `operation` is the number of a barrier of the body (`Phase.first_barrier`); the rule is then
        `start >= (cycle at which the barrier opens) + delay`. The number may be negative: a barrier of an iteration or
        phase before. There is no wait for a barrier before barrier 0 of the program.
    """

    operation: int
    delay: int
    cause: str = "hazard"
    lag: int = 0
    phase: int | None = None
    mirrored: bool = False
    barrier: bool = False


class Operation(NamedTuple):
    """Some issues in a row of the same kind.

    unit: number of the unit.
    cycles: length of each issue.
    count: how many issues. 0: none; such an operation is the last one of its stream, in the last phase, which does not
        repeat. It only waits, for at least one operation of its body (and nothing else), nothing waits for it, and the
        task does not finish before it has waited. What it waited for is a row of `halts` in the trace.
    needs: what the first issue waits for.
    frame: 1: the first issue also waits (cause `input`) for the task's input frame; n > 1: for n - 1 cycles after the
        frame; 0: it does not.
    takes: place of the task's buffer of which the first issue takes a slot; None for none.
    frees: place of the task's buffer of which a slot is free again at the end of the last issue; None for none.
    result_cycles: cycles from the start of the last issue until its results are there; the task finishes when all
        results are there.
    work: useful multiply-accumulates of one issue.
    label: name for people.
    place: layer, direction, row block, first column group; for people.
    ahead: how many steps after the iteration's own step the frame is (a vector that is loaded for the next step).
    member: which of the task's cores runs the operation.
    extra: column of the phase's `extra_cycles`; the operation then has one issue. None: it is as long in every
        iteration.
    arrives: barrier of the body (`Phase.first_barrier`) where it arrives at the end of its last issue; None for none.
    inference: of a batch, which of its inferences it works for.
    """

    unit: int
    cycles: int = 1
    count: int = 1  # type: ignore[assignment]  # in place of the method of tuples
    needs: tuple[Dependence, ...] = ()
    frame: int = 0
    takes: int | None = None
    frees: int | None = None
    result_cycles: int = 1
    work: int = 0
    label: str = ""
    place: tuple[int, ...] = ()
    ahead: int = 0
    member: int = 0
    extra: int | None = None
    arrives: int | None = None
    inference: int = 0


#: Label and place of an operation, for people.
Name = tuple[str, tuple[int, ...]]

#: Names of causes of waiting -> their numbers in the flat form.
CAUSE_NUMBERS = {name: number for number, name in enumerate(CAUSES)}
_OPERATION_WIDTH, _NEED_WIDTH = WIDTHS["operations"], WIDTHS["needs"]


class Rows(NamedTuple):
    """The rows of a body, shape (numbers,) each. `first_need` is counted from the first need of the body."""

    operations: NDArray[np.int64]
    needs: NDArray[np.int64]

    @property
    def size(self) -> int:
        """How many operations the body has."""
        return len(self.operations) // _OPERATION_WIDTH


def rows_of(operations: Sequence[Operation]) -> Rows:
    """The rows of operations."""
    numbers: list[int] = []
    needs: list[int] = []
    for each in operations:
        numbers += (each.unit, each.cycles, each.count, each.frame)
        numbers += (-1 if each.takes is None else each.takes, -1 if each.frees is None else each.frees)
        numbers += (each.result_cycles, each.work, len(needs) // _NEED_WIDTH, len(each.needs))
        numbers += (each.ahead, each.member, -1 if each.extra is None else each.extra)
        numbers += (-1 if each.arrives is None else each.arrives, each.inference)
        for need in each.needs:
            phase = -1 if need.phase is None else need.phase
            lag = need.lag if need.phase is None else 0
            needs += (need.operation, need.delay, CAUSE_NUMBERS[need.cause], lag, phase, need.mirrored, need.barrier)
    return Rows(np.array(numbers, dtype=np.int64), np.array(needs, dtype=np.int64))


def operations_of(rows: Rows, names: Iterable[Name]) -> tuple[Operation, ...]:
    """The operations that rows stand for, with their names; the rows must be there (`lstmsim.program.flatten`)."""
    needs = tuple(
        Dependence(operation, delay, CAUSES[cause], lag, some(phase), bool(mirrored), bool(barrier))
        for operation, delay, cause, lag, phase, mirrored, barrier in rows.needs.reshape(-1, _NEED_WIDTH).tolist()
    )
    operations = []
    for row, (label, place) in zip(rows.operations.reshape(-1, _OPERATION_WIDTH).tolist(), names, strict=True):
        unit, cycles, count, frame, takes, frees, result_cycles, work, first, own, *others = row
        ahead, member, extra, arrives, inference = others
        operations.append(
            Operation(
                unit=unit,
                cycles=cycles,
                count=count,
                needs=needs[first : first + own],
                frame=frame,
                takes=some(takes),
                frees=some(frees),
                result_cycles=result_cycles,
                work=work,
                label=label,
                place=place,
                ahead=ahead,
                member=member,
                extra=some(extra),
                arrives=some(arrives),
                inference=inference,
            )
        )
    return tuple(operations)


def some(number: int) -> int | None:
    """A number, or None for the -1 that stands for none."""
    return None if number == -1 else number


#: Most needs of an operation of a packed body.
MOST_NEEDS = 255
_SHIFT, _HALF = 32, 2**31
_OPERATION, _NEED = FLAT_TABLES["operations"], FLAT_TABLES["needs"]
Ints = NDArray[np.int64]
#: One number, or many.
Whole = TypeVar("Whole", int, NDArray[np.int64])


def operation_word(row: Whole, needs: Whole | int) -> Whole:
    """The word of an operation, or those of many: its row of `operations`, and how many words of needs follow."""
    return row * (MOST_NEEDS + 1) + needs


def need_word(row: Whole, operation: Whole | int) -> Whole:
    """The word of a need, or those of many: its row of `needs`, and the other operation or barrier of the body."""
    return (row << _SHIFT) + _HALF + operation


def unpacked(flat: FlatProgram, body: int) -> tuple[Rows, Ints]:
    """The rows of a packed body, written out, and the prototype of each operation (a row of `operations`)."""
    words, places = _words(flat, body)
    prototypes, counts = words[places] >> 8, words[places] & MOST_NEEDS
    operations = flat.table("operations")[prototypes]
    operations[:, _OPERATION.place("first_need")] = np.cumsum(counts) - counts
    operations[:, _OPERATION.place("needs")] = counts
    others = np.delete(words, places)
    needs = flat.table("needs")[others >> _SHIFT]
    needs[:, _NEED.place("operation")] = _others(others)
    return Rows(operations.ravel(), needs.ravel()), prototypes


def check_packed(flat: FlatProgram) -> None:
    """Raise `ProgramError` for the first packed body whose words name what is not there, or what it cannot have.

    A packed body has no buffers and no extra cycles, and waits for barriers and earlier operations of its iteration.
    """
    for body in np.flatnonzero(flat.column("bodies", "first_word") >= 0).tolist():
        first, own = flat.column("bodies", "first_operation")[body], flat.column("bodies", "operations")[body]
        if first != -1:
            raise ProgramError(f"table bodies, row {body}: first_operation is {first}, not -1, but the body is packed")
        words, places = _words(flat, body)
        if len(places) != own:
            raise ProgramError(f"table bodies, row {body}: operations is {own}, but its words have {len(places)}")
        _check_words(flat, int(flat.column("bodies", "first_word")[body]), words, places)


def _words(flat: FlatProgram, body: int) -> tuple[Ints, Ints]:
    """The words of a packed body, and which of them are operations."""
    first, count = (int(flat.column("bodies", name)[body]) for name in ("first_word", "words"))
    words = flat.column("words", "word")[first : first + count]
    places, at, needs = [], 0, (words & MOST_NEEDS).tolist()
    while at < count:
        places.append(at)
        at += 1 + needs[at]
    if at > count:
        word = words[places[-1]]
        raise ProgramError(f"table words, row {first + places[-1]}: word is {word}, and its needs go beyond the body")
    return words, np.array(places, dtype=np.int64)


def _check_words(flat: FlatProgram, first: int, words: Ints, places: Ints) -> None:
    def refuse(wrong: NDArray[np.bool_], at: Ints, text: str) -> None:
        if wrong.any():
            place = int(at[np.argmax(wrong)])
            raise ProgramError(f"table words, row {first + place}: word is {words[place]}, {text}")

    rows = words[places] >> 8
    refuse((rows < 0) | (rows >= len(flat.table("operations"))), places, "of an operation that does not exist")
    for column in ("takes", "frees", "extra"):
        refuse(flat.column("operations", column)[rows] != -1, places, f"of an operation with {column}")
    own = np.repeat(np.arange(len(places)), words[places] & MOST_NEEDS)
    at = np.delete(np.arange(len(words)), places)
    rows = words[at] >> _SHIFT
    refuse((rows < 0) | (rows >= len(flat.table("needs"))), at, "of a need that does not exist")
    refuse(flat.column("needs", "phase")[rows] != -1, at, "of a need with a phase")
    refuse(flat.column("needs", "lag")[rows] != 0, at, "of a need with a lag")
    operations = _others(words[at])
    late = (flat.column("needs", "barrier")[rows] == 0) & ((operations < 0) | (operations >= own))
    refuse(late, at, "of a need of an operation that comes no earlier")


def _others(words: Ints) -> Ints:
    """What stands in place of the `operation` of needs."""
    numbers: Ints = (words & (2**_SHIFT - 1)) - _HALF
    return numbers
