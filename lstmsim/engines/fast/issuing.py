"""What a unit of a core does in a cycle: choose a thread, switch to it, or issue from it.

The choice is that of the policies of `lstmsim.program.policy`. Where a unit could not choose otherwise (any policy but
`fine`, or a single context), all issues of an operation are taken in one go.
"""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.layout import (
    ACTIVE,
    BUFFERS_AT,
    BUSY,
    CONTEXT0,
    CONTEXTS,
    COUNT,
    CYCLES,
    ENDED,
    FIFO,
    FINE,
    FREE_AT,
    FRESH,
    INDEX,
    ISSUE_SIZE,
    ISSUED,
    ITERATION,
    KEEP,
    LAST,
    LEFT,
    N_CAUSES,
    N_UNITS,
    NEVER,
    OFFSET,
    OPERATION,
    PHASE,
    PHASES_AT,
    POLICY,
    READY,
    ROW,
    ROW_END,
    ROWS,
    S_BUFFER_SIZE,
    S_CONTEXT,
    S_CONTEXT_SIZE,
    S_CORE,
    S_CORE_SIZE,
    S_PHASE_SIZE,
    S_STREAM,
    S_STREAM_SIZE,
    S_UNIT,
    S_UNIT_SIZE,
    SKIPPED,
    SWITCH,
    SWITCH_CYCLES,
    SWITCH_SIZE,
    SWITCHES,
    T_CORE,
    T_CORE_SIZE,
    T_UNIT,
    T_UNIT_SIZE,
    TAKEN,
    TAKES,
    TASK,
    UNTIL,
    WORK,
    WORKED,
)
from lstmsim.engines.fast.naming import take
from lstmsim.engines.fast.streams import complete

__all__ = ["turn"]


def choose(T: Any, S: Any, core: int, u: int, now: int) -> int:
    """Which of its threads the unit turns to, or -1."""
    f = T[T_CORE] + core * T_CORE_SIZE
    v = S[S_UNIT] + (core * T[N_UNITS] + u) * S_UNIT_SIZE
    count = T[f + CONTEXTS]
    first = S[S_STREAM] + (T[f + CONTEXT0] * T[N_UNITS] + u) * S_STREAM_SIZE + READY
    step = T[N_UNITS] * S_STREAM_SIZE
    policy: int = T[T[T_UNIT] + (core * T[N_UNITS] + u) * T_UNIT_SIZE + POLICY]
    if policy == FIFO:
        best, found = NEVER, -1
        for thread in range(count):
            ready = S[first + thread * step]
            if ready <= now and ready < best:
                best, found = ready, thread
        return found
    turned: int = S[v + ACTIVE]
    if policy == FINE and S[v + FRESH] == 0:
        turned += 1
    for _ in range(count):
        if turned >= count:
            turned -= count
        if S[first + turned * step] <= now:
            return turned
        turned += 1
    return -1


def record(T: Any, S: Any, R: Any, core: int, c: int, u: int, now: int, issues: int, first: bool) -> None:
    """A row of the trace, or more issues in the last row of the unit if nothing came between."""
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    s = S[S_STREAM] + (c * T[N_UNITS] + u) * S_STREAM_SIZE
    v = S[S_UNIT] + (core * T[N_UNITS] + u) * S_UNIT_SIZE
    o = S[s + OPERATION]
    iteration = S[s + ITERATION] + S[S[x + PHASES_AT] + S[s + PHASE] * S_PHASE_SIZE + SKIPPED]
    row = S[v + ROW]
    same = row >= 0 and S[v + ROW_END] == now and R[row + 4] == S[x + TASK] and R[row + 5] == S[s + PHASE]
    if same and R[row + 6] == iteration and R[row + 7] == T[o + INDEX]:
        R[row + 8] += issues
        S[v + ROW_END] = now + issues * T[o + CYCLES]
        return
    row = S[ROWS] * ISSUE_SIZE
    S[ROWS] += 1
    S[v + ROW] = row
    S[v + ROW_END] = now + issues * T[o + CYCLES]
    offset = S[S[S_CORE] + core * S_CORE_SIZE + OFFSET]
    R[row], R[row + 1], R[row + 2] = now + offset, core, u
    R[row + 3] = c - T[T[T_CORE] + core * T_CORE_SIZE + CONTEXT0]
    R[row + 4], R[row + 5], R[row + 6], R[row + 7] = S[x + TASK], S[s + PHASE], iteration, T[o + INDEX]
    R[row + 8], R[row + 9] = issues, T[o + CYCLES]
    for cause in range(N_CAUSES):
        until = S[s + UNTIL + cause] if first else 0
        R[row + 10 + cause] = until + offset if until > 0 else 0


def issue(T: Any, S: Any, R: Any, core: int, thread: int, u: int, now: int) -> int:
    """Issue once, or all that is left of the operation; returns how long the unit is taken."""
    k, f = S[S_CORE] + core * S_CORE_SIZE, T[T_CORE] + core * T_CORE_SIZE
    c = T[f + CONTEXT0] + thread
    s = S[S_STREAM] + (c * T[N_UNITS] + u) * S_STREAM_SIZE
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    o = S[s + OPERATION]
    cycles = T[o + CYCLES]
    first = S[s + LEFT] == T[o + COUNT]
    issues = S[s + LEFT]
    if T[T[T_UNIT] + (core * T[N_UNITS] + u) * T_UNIT_SIZE + POLICY] == FINE and T[f + CONTEXTS] > 1:
        issues = 1
    if S[KEEP] > 0:
        record(T, S, R, core, c, u, now, issues, first)
    take(T, S, core, u, now, issues * cycles, BUSY)
    S[k + WORKED] += issues * T[o + WORK]
    S[k + ISSUED] += issues
    start = now + (issues - 1) * cycles
    S[k + LAST] = max(S[k + LAST], start)
    if first and T[o + TAKES] >= 0:
        S[S[x + BUFFERS_AT] + T[o + TAKES] * S_BUFFER_SIZE + TAKEN] += 1
    S[s + ENDED] = now + issues * cycles
    S[s + LEFT] -= issues
    if S[s + LEFT] == 0:
        complete(T, S, core, x, s, u, start)
    taken: int = issues * cycles
    return taken


def turn(T: Any, S: Any, R: Any, W: Any, core: int, u: int, now: int) -> None:
    """Let a free unit choose among the threads of its core, once."""
    chosen = choose(T, S, core, u, now)
    if chosen < 0:
        return
    v = S[S_UNIT] + (core * T[N_UNITS] + u) * S_UNIT_SIZE
    before = S[v + ACTIVE]
    taken = T[T[T_UNIT] + (core * T[N_UNITS] + u) * T_UNIT_SIZE + SWITCH_CYCLES]
    S[v + ACTIVE] = chosen
    if chosen != before and taken > 0:
        S[v + FRESH] = 1
        take(T, S, core, u, now, taken, SWITCH)
        if S[KEEP] > 0:
            row = S[SWITCHES] * SWITCH_SIZE
            S[SWITCHES] += 1
            W[row], W[row + 1], W[row + 2] = now + S[S[S_CORE] + core * S_CORE_SIZE + OFFSET], core, u
            W[row + 3], W[row + 4], W[row + 5] = taken, before, chosen
    else:
        S[v + FRESH] = 0
        taken = issue(T, S, R, core, chosen, u, now)
    S[v + FREE_AT] = now + taken
