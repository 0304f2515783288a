"""The cursors of a thread: which operation comes next on each unit, and until when what holds it back.

When a cursor moves on, the end of each of its waits is computed at once from start cycles already known; a wait for
something that has not started is looked at again whenever its thread issues.
"""

from __future__ import annotations

from typing import Any

from lstmsim.engines.layout import (
    ACCOUNTED,
    ADMITTED,
    AHEAD,
    ANCHOR,
    BUFFER0,
    BUFFER_CAUSE,
    C_INPUT,
    CAME,
    CAUSE,
    COUNT,
    CROSS,
    CYCLES,
    DELAY,
    DONE_AT,
    EPOCH,
    FINISH,
    FIRST,
    FIRST_STEP,
    FRAME,
    FRAME_BOUND,
    FREE_CYCLES,
    FREED,
    FREES,
    INTERVAL,
    ITERATION,
    LEFT,
    LENGTH,
    MIRRORED,
    MODE,
    N_BUFFERS,
    N_CAUSES,
    N_PHASES,
    N_UNITS,
    NEED0,
    NEED_LAG,
    NEED_SLOT,
    NEEDS,
    NEVER,
    NOW,
    OFFSET,
    OPEN,
    PHASE,
    PHASE0,
    PHASES,
    POSITION,
    READY,
    REPEAT,
    RESULT,
    S_BUFFER,
    S_BUFFER_SIZE,
    S_CONTEXT,
    S_CONTEXT_SIZE,
    S_CORE,
    S_CORE_SIZE,
    S_PHASE,
    S_PHASE_SIZE,
    S_STREAM,
    S_STREAM_SIZE,
    SETTLED,
    SKIPPED,
    SKIPPED_FROM,
    SKIPPED_TO,
    SLOT,
    SLOTS,
    SOURCE,
    STARTS,
    STRIDE,
    T_BUFFER_SIZE,
    T_CORE,
    T_CORE_SIZE,
    T_NEED_SIZE,
    T_PHASE,
    T_PHASE_SIZE,
    T_STREAM,
    T_STREAM_SIZE,
    T_TASK,
    T_TASK_SIZE,
    TAKEN,
    TAKES,
    TASK,
    UNTIL,
    VARIANT,
    WRAPPED,
)
from lstmsim.engines.periods import forget_mark

__all__ = ["complete", "operation_of", "resolve", "settle"]


def phase_table(T: Any, S: Any, x: int, phase: int) -> int:
    """Address of the record of a thread's phase (x: the thread's)."""
    address: int = T[T_PHASE] + (T[S[x + VARIANT] + PHASE0] + phase) * T_PHASE_SIZE
    return address


def stream_table(T: Any, S: Any, x: int, phase: int, u: int) -> int:
    """Address of the record of a thread's phase on a unit."""
    address: int = T[T_STREAM] + ((T[S[x + VARIANT] + PHASE0] + phase) * T[N_UNITS] + u) * T_STREAM_SIZE
    return address


def operation_of(T: Any, S: Any, x: int, s: int, u: int) -> int:
    """Address of the operation under a cursor (s: the stream's record)."""
    address: int = T[T[stream_table(T, S, x, S[s + PHASE], u) + FIRST] + S[s + POSITION]]
    return address


def start_of(S: Any, x: int, p: int, stride: int, slot: int, at: int) -> int:
    """When an operation started, by the count of iterations that were not skipped; `NEVER` if it has not."""
    place = S[p + STARTS] + 2 * (at * stride + slot)
    if S[place] != S[x + EPOCH] + at:
        return NEVER
    started: int = S[place + 1]
    return started


def earlier_start(S: Any, x: int, p: int, stride: int, slot: int, at: int) -> int:
    """The same in an earlier phase, by the true iteration: -1 where that was skipped, which is long ago."""
    if at >= S[p + SKIPPED_FROM]:
        if at < S[p + SKIPPED_TO]:
            return -1
        at -= S[p + SKIPPED]
    return start_of(S, x, p, stride, slot, at)


def end_of_need(T: Any, S: Any, c: int, x: int, s: int, n: int) -> int:
    """Until when one need holds the operation under a cursor back; 0: it does not, `NEVER`: not known yet."""
    phase = S[s + PHASE]
    first = S[S_PHASE] + c * T[N_PHASES] * S_PHASE_SIZE
    p = first + phase * S_PHASE_SIZE
    if T[n + MODE] == 0:
        at = S[s + ITERATION] - T[n + NEED_LAG]
        if at + S[p + SKIPPED] < 0:
            return 0
        start = start_of(S, x, p, T[phase_table(T, S, x, phase) + STRIDE], T[n + NEED_SLOT], at)
    else:
        source = phase_table(T, S, x, T[n + SOURCE])
        at = S[s + ITERATION] + S[p + SKIPPED]
        if T[n + MODE] == 2:
            at = T[source + REPEAT] - 1 - at
        if at < 0 or at >= T[source + REPEAT]:
            return 0
        start = earlier_start(S, x, first + T[n + SOURCE] * S_PHASE_SIZE, T[source + STRIDE], T[n + NEED_SLOT], at)
    if start < 0:
        return 0
    end: int = NEVER if start == NEVER else start + T[n + DELAY]
    return end


def end_of_frame(T: Any, S: Any, k: int, c: int, x: int, s: int, ahead: int) -> int:
    """The cycle at which the frame `ahead` of the cursor's step is there (k: the core's record)."""
    g = phase_table(T, S, x, S[s + PHASE])
    p = S[S_PHASE] + (c * T[N_PHASES] + S[s + PHASE]) * S_PHASE_SIZE
    step = S[s + ITERATION] + S[p + SKIPPED] + ahead
    if T[g + MIRRORED] > 0:
        step = -step
    step += T[g + FIRST_STEP]
    interval = T[T[T_TASK] + S[x + TASK] * T_TASK_SIZE + INTERVAL]
    frame: int = S[x + CAME] + step * interval - S[k + OFFSET]
    if frame > S[k + NOW]:
        S[k + FRAME_BOUND] = 1
    return frame


def resolve(T: Any, S: Any, core: int, c: int, u: int) -> None:
    """Compute when the operation under a cursor may issue, and until when each cause holds it back."""
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    s = S[S_STREAM] + (c * T[N_UNITS] + u) * S_STREAM_SIZE
    o = operation_of(T, S, x, s, u)
    for cause in range(N_CAUSES):
        S[s + UNTIL + cause] = 0
    for k in range(T[o + NEEDS]):
        n = T[o + NEED0] + k * T_NEED_SIZE
        place = s + UNTIL + T[n + CAUSE]
        S[place] = max(S[place], end_of_need(T, S, c, x, s, n))
    if T[o + FRAME] > 0:
        frame = end_of_frame(T, S, S[S_CORE] + core * S_CORE_SIZE, c, x, s, T[o + AHEAD])
        S[s + UNTIL + C_INPUT] = max(S[s + UNTIL + C_INPUT], frame)
    if T[o + TAKES] >= 0:
        b = S[S_BUFFER] + (c * T[N_BUFFERS] + T[o + TAKES]) * S_BUFFER_SIZE
        d = T[S[x + VARIANT] + BUFFER0] + T[o + TAKES] * T_BUFFER_SIZE
        turn = S[b + TAKEN] - T[d + SLOTS]
        if turn >= 0:
            place = s + UNTIL + T[d + BUFFER_CAUSE]
            S[place] = max(S[place], S[S[b + FREE_CYCLES] + turn] if turn < S[b + FREED] else NEVER)
    ready = S[x + ADMITTED]
    for cause in range(N_CAUSES):
        ready = max(ready, S[s + UNTIL + cause])
    S[s + READY] = min(ready, NEVER)


def settle(T: Any, S: Any, x: int, s: int, u: int) -> bool:
    """Put a cursor on an operation, past phases without any on the unit; False at the end of the stream."""
    while S[s + PHASE] < T[S[x + VARIANT] + PHASES]:
        if T[stream_table(T, S, x, S[s + PHASE], u) + LENGTH] > 0:
            S[s + LEFT] = T[operation_of(T, S, x, s, u) + COUNT]
            return True
        S[s + PHASE] += 1
    S[x + OPEN] -= 1
    S[s + READY] = NEVER
    S[s + LEFT] = 0
    return False


def move_on(T: Any, S: Any, core: int, c: int, u: int) -> bool:
    """Move a cursor past an operation whose last issue is done; False at the end of the stream."""
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    s = S[S_STREAM] + (c * T[N_UNITS] + u) * S_STREAM_SIZE
    phase = S[s + PHASE]
    S[s + POSITION] += 1
    if S[s + POSITION] == T[stream_table(T, S, x, phase, u) + LENGTH]:
        S[s + POSITION] = 0
        S[s + ITERATION] += 1
        k = S[S_CORE] + core * S_CORE_SIZE
        if c == S[k + ANCHOR] and u == T[T[T_CORE] + core * T_CORE_SIZE + ACCOUNTED]:
            S[k + WRAPPED] = 1
        p = S[S_PHASE] + (c * T[N_PHASES] + phase) * S_PHASE_SIZE
        if S[s + ITERATION] + S[p + SKIPPED] == T[phase_table(T, S, x, phase) + REPEAT]:
            S[s + ITERATION] = 0
            S[s + PHASE] += 1
            more = settle(T, S, x, s, u)
            forget_mark(T, S, core)
            return more
    S[s + LEFT] = T[operation_of(T, S, x, s, u) + COUNT]
    return True


def note_start(T: Any, S: Any, c: int, x: int, s: int, slot: int, start: int) -> None:
    """Remember the start of an operation that somebody waits for."""
    p = S[S_PHASE] + (c * T[N_PHASES] + S[s + PHASE]) * S_PHASE_SIZE
    g = phase_table(T, S, x, S[s + PHASE])
    place = S[p + STARTS] + 2 * (S[s + ITERATION] * T[g + STRIDE] + slot)
    S[place] = S[x + EPOCH] + S[s + ITERATION]
    S[place + 1] = start
    if T[g + CROSS] > 0:
        S[p + SETTLED] = max(S[p + SETTLED], start + T[g + CROSS])


def complete(T: Any, S: Any, core: int, c: int, u: int, start: int) -> None:
    """The last issue of an operation is at `start`: move on, and look again at whoever waited for it."""
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    first = S[S_STREAM] + c * T[N_UNITS] * S_STREAM_SIZE
    s = first + u * S_STREAM_SIZE
    o = operation_of(T, S, x, s, u)
    if T[o + SLOT] >= 0:
        note_start(T, S, c, x, s, T[o + SLOT], start)
    if T[o + FREES] >= 0:
        b = S[S_BUFFER] + (c * T[N_BUFFERS] + T[o + FREES]) * S_BUFFER_SIZE
        S[S[b + FREE_CYCLES] + S[b + FREED]] = start + T[o + CYCLES]
        S[b + FREED] += 1
    S[x + DONE_AT] = max(S[x + DONE_AT], start + T[o + RESULT])
    if move_on(T, S, core, c, u):
        resolve(T, S, core, c, u)
    for other in range(T[N_UNITS]):
        d = first + other * S_STREAM_SIZE
        if other != u and S[d + LEFT] > 0 and S[d + READY] == NEVER:
            resolve(T, S, core, c, other)
    if S[x + OPEN] == 0:
        S[x + FINISH] = S[x + DONE_AT]
