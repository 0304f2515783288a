"""Operations and what they wait for.

A program has hundreds of thousands of these, so they are named tuples: they are made in a quarter of the time that a
frozen dataclass takes. A target that writes rows (`lstmsim.program.body_writer`) makes none of them.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Dependence", "Operation"]


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
    gate: whether `operation` is the number of a gate of the body (`Phase.first_gate`); the rule is then
        `start >= (cycle at which the gate opens) + delay`. The number may be negative: a gate of an iteration or phase
        before. There is no wait for a gate before gate 0 of the program.
    """

    operation: int
    delay: int
    cause: str = "hazard"
    lag: int = 0
    phase: int | None = None
    mirrored: bool = False
    gate: bool = False


class Operation(NamedTuple):
    """Some issues in a row of the same kind.

    unit: number of the unit.
    cycles: length of each issue.
    count: how many issues. 0: none; such an operation is the last one of its stream, in the last phase, which does not
        repeat. It only waits, for at least one operation of its body (and nothing else), nothing waits for it, and the
        task does not finish before it has waited. What it waited for is a row of `halts` in the trace.
    needs: what the first issue waits for.
    frame: whether the first issue also waits (cause `input`) for the task's input frame.
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
    arrives: gate of the body (`Phase.first_gate`) at which it arrives at the end of its last issue; None for none.
    """

    unit: int
    cycles: int = 1
    count: int = 1  # type: ignore[assignment]  # in place of the method of tuples
    needs: tuple[Dependence, ...] = ()
    frame: bool = False
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
