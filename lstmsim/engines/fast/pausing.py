"""Running tasks are asked to pause for others, stop at a boundary of iterations, and wait to go on."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.heap import before
from lstmsim.engines.fast.layout import (
    ASKED,
    AT_CORE,
    CAME,
    CLEAR_AT,
    CONTENT,
    CONTEXT0,
    CONTEXTS,
    COUNT,
    ENDED,
    ENTERED,
    ENTRY_ITERATION,
    ENTRY_PHASE,
    FINISH,
    FIRST0,
    FIRST_END,
    ISSUE_SIZE,
    ITERATION,
    KEEP,
    KEPT,
    LATER,
    LEAD,
    LEFT,
    LENGTH,
    LOOK,
    N_CAUSES,
    N_QUEUES,
    NEXT,
    OFFSET,
    OPEN,
    OPERATION,
    PASS,
    PAUSED_AT,
    PAUSED_CONTEXT,
    PAUSED_ITERATION,
    PAUSED_PHASE,
    PHASE,
    PHASE0,
    PHASES,
    PHASES_AT,
    POSITION,
    RANK,
    REPEAT,
    ROWS,
    ROWS_AT,
    S_CONTEXT,
    S_CONTEXT_SIZE,
    S_CORE,
    S_CORE_SIZE,
    S_GROUP,
    S_GROUP_SIZE,
    S_PAUSED,
    S_PAUSED_SIZE,
    S_PHASE_SIZE,
    S_STREAM_SIZE,
    SKIPPED,
    SPREADS,
    STOP_ITERATION,
    STOP_PHASE,
    T_CORE,
    T_CORE_SIZE,
    T_PHASE_SIZE,
    T_TASK,
    T_TASK_SIZE,
    TASK,
    TRAIT,
    TURN,
    UNITS,
    UNTIL,
    VARIANT,
    WAITERS,
    WAITING,
)
from lstmsim.engines.fast.naming import account
from lstmsim.engines.fast.streams import close, passed, stream_table

__all__ = ["ask", "pause"]


def movable(T: Any, S: Any, x: int) -> bool:
    """Whether a thread may be asked to pause at all."""
    trait = T[T[T_TASK] + S[x + TASK] * T_TASK_SIZE + TRAIT]
    return bool(S[x + ASKED] == 0 and S[x + NEXT] < 0 and T[trait + CONTENT] < 0 and T[trait + SPREADS] == 0)


def rather(S: Any, x: int, found: int) -> bool:
    """Whether a thread is asked rather than one on a lower core or thread (-1: none)."""
    if found < 0 or S[x + RANK] != S[found + RANK]:
        return bool(found < 0 or S[x + RANK] > S[found + RANK])
    return bool(S[x + ENTERED] >= S[found + ENTERED])


def victim(T: Any, S: Any, r: int, rank: int) -> int:
    """Which thread on the cores of a group is asked to make room for a task of that rank (-1: none, or one is about to
    pause already)."""
    found = -1
    for a in range(T[r + FIRST0], T[r + FIRST_END]):
        if S[S[S_CORE] + T[a] * S_CORE_SIZE + KEPT] == S[PASS]:
            continue
        f = T[T_CORE] + T[a] * T_CORE_SIZE
        for c in range(T[f + CONTEXT0], T[f + CONTEXT0] + T[f + CONTEXTS]):
            x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
            if S[x + TASK] >= 0 and S[x + LEAD] == x:
                if S[x + ASKED] == 1:
                    return -1
                if S[x + RANK] > rank and movable(T, S, x) and rather(S, x, found):
                    found = x
    return found


def note_boundary(T: Any, S: Any, x: int, u: int) -> None:
    """Move the boundary at which a thread stops behind the last iteration in which a stream has issued."""
    s = S[x + ROWS_AT] + u * S_STREAM_SIZE
    phase, iteration = S[s + PHASE], 0
    if S[s + LEFT] > 0 and (S[s + POSITION] > 0 or S[s + LEFT] < T[S[s + OPERATION] + COUNT]):
        iteration = S[s + ITERATION] + 1
    elif S[s + LEFT] > 0 and S[s + ITERATION] > 0:
        iteration = S[s + ITERATION]
    else:
        # it has issued nothing in this phase: the last one in which it has something to do
        phase -= 1
        while phase >= S[x + ENTRY_PHASE] and T[stream_table(T, S, x, phase, u) + LENGTH] == 0:
            phase -= 1
        if phase < S[x + ENTRY_PHASE]:
            return
        phase += 1
    if iteration > 0:
        iteration += S[S[x + PHASES_AT] + phase * S_PHASE_SIZE + SKIPPED]
        if iteration == T[T[S[x + VARIANT] + PHASE0] + phase * T_PHASE_SIZE + REPEAT]:
            phase += 1
            iteration = 0
    if phase > S[x + STOP_PHASE] or (phase == S[x + STOP_PHASE] and iteration > S[x + STOP_ITERATION]):
        S[x + STOP_PHASE], S[x + STOP_ITERATION] = phase, iteration


def ask(T: Any, S: Any, R: Any, r: int, rank: int, now: int) -> None:
    """Ask one of the running tasks on the cores of a group to pause, if any can be asked. Where that one will just
    finish, another may be asked in the next cycle."""
    x = victim(T, S, r, rank)
    if x < 0:
        return
    core = S[x + AT_CORE]
    k = S[S_CORE] + core * S_CORE_SIZE
    units = T[T[T_CORE] + core * T_CORE_SIZE + UNITS]
    S[x + STOP_PHASE], S[x + STOP_ITERATION] = S[x + ENTRY_PHASE], S[x + ENTRY_ITERATION]
    for u in range(units):
        note_boundary(T, S, x, u)
    S[x + ASKED] = 1
    if S[x + STOP_PHASE] == T[S[x + VARIANT] + PHASES]:
        S[x + ASKED], S[LOOK] = 2, now + 1
    account(T, S, core, now - S[k + OFFSET])
    for u in range(units):
        s = S[x + ROWS_AT] + u * S_STREAM_SIZE
        if S[s + LEFT] > 0 and passed(S, x, s):
            if S[KEEP] > 0 and S[s + ENDED] < now - S[k + OFFSET]:
                note_halt(T, S, R, x, u, now - S[k + OFFSET])
            close(S, x, s)
    if S[x + ASKED] == 1 and S[x + OPEN] == 0:
        S[x + FINISH] = max(S[x + CLEAR_AT], now + 1 - S[k + OFFSET])


def note_halt(T: Any, S: Any, R: Any, x: int, u: int, now: int) -> None:
    """Write down, as a row of the trace without issues, what held an operation back that is put off."""
    core, s, row = S[x + AT_CORE], S[x + ROWS_AT] + u * S_STREAM_SIZE, S[ROWS] * ISSUE_SIZE
    S[ROWS] += 1
    context = (x - S[S_CONTEXT]) // S_CONTEXT_SIZE - T[T[T_CORE] + core * T_CORE_SIZE + CONTEXT0]
    R[row], R[row + 1], R[row + 2], R[row + 3], R[row + 4] = now, core, u, context, S[x + TASK]
    R[row + 5], R[row + 6], R[row + 7], R[row + 8], R[row + 9] = 0, 0, 0, 0, 0
    for cause in range(N_CAUSES):
        R[row + 10 + cause] = min(S[s + UNTIL + cause], now)


def pause(T: Any, S: Any, x: int, core: int, thread: int, now: int) -> None:
    """A task that has stopped begins to wait for a thread of its core, in its place among those that do."""
    task = S[x + TASK]
    e = S[S_PAUSED] + task * S_PAUSED_SIZE
    S[e + TURN], S[e + TURN + 1], S[e + TURN + 2] = S[x + RANK], S[x + CAME], task
    S[e + PAUSED_PHASE], S[e + PAUSED_ITERATION] = S[x + STOP_PHASE], S[x + STOP_ITERATION]
    S[e + PAUSED_CONTEXT], S[e + PAUSED_AT] = thread, now
    q = S[S_GROUP] + (T[N_QUEUES] + core) * S_GROUP_SIZE
    place, later = q + WAITING, S[q + WAITING] if S[q + WAITERS] > 0 else -1
    while later >= 0 and before(S, later + TURN, e + TURN):
        place, later = later + LATER, S[later + LATER]
    S[place] = e
    S[e + LATER] = later
    S[q + WAITERS] += 1
