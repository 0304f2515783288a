"""The cursors of a thread: which operation comes next on each unit, and until when what holds it back.

When a cursor moves on, the end of each of its waits is computed at once from start cycles already known; a wait for
something that has not started is looked at again whenever its thread issues.
"""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.contents import load
from lstmsim.engines.fast.layout import (
    ACCOUNTED,
    ADMITTED,
    AHEAD,
    ANCHOR,
    ASKED,
    AT_CORE,
    BUFFER0,
    BUFFER_CAUSE,
    BUFFERS_AT,
    C_INPUT,
    CAME,
    CAUSE,
    CLEAR_AT,
    COUNT,
    CROSS,
    CYCLES,
    DELAY,
    DONE_AT,
    ECHO,
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
    LEAD,
    LEFT,
    LENGTH,
    LOADS,
    MIRRORED,
    MODE,
    N_CAUSES,
    N_UNITS,
    NEED0,
    NEED_LAG,
    NEED_SLOT,
    NEEDS,
    NEVER,
    NEXT,
    NOW,
    OFFSET,
    OPEN,
    OPERATION,
    PHASE,
    PHASE0,
    PHASES,
    PHASES_AT,
    POSITION,
    READY,
    REPEAT,
    RESULT,
    ROWS_AT,
    S_BUFFER_SIZE,
    S_CORE,
    S_CORE_SIZE,
    S_PHASE_SIZE,
    S_STREAM_SIZE,
    SETTLED,
    SKIPPED,
    SKIPPED_FROM,
    SKIPPED_TO,
    SLOT,
    SLOTS,
    SOURCE,
    STARTS,
    STOP_ITERATION,
    STOP_PHASE,
    STREAM_STEP,
    STREAMS_AT,
    STRIDE,
    T_BUFFER_SIZE,
    T_CORE,
    T_CORE_SIZE,
    T_NEED_SIZE,
    T_PHASE_SIZE,
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
from lstmsim.engines.fast.periods import forget_mark

__all__ = ["close", "complete", "passed", "resolve", "settle", "stream_table"]


def phase_table(T: Any, S: Any, x: int, phase: int) -> int:
    """Address of the record of a thread's phase (x: the thread's)."""
    address: int = T[S[x + VARIANT] + PHASE0] + phase * T_PHASE_SIZE
    return address


def stream_table(T: Any, S: Any, x: int, phase: int, u: int) -> int:
    """Address of the record of a thread's phase on a unit."""
    address: int = S[x + STREAMS_AT] + phase * T[S[x + VARIANT] + STREAM_STEP] + u * T_STREAM_SIZE
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


def end_of_need(T: Any, S: Any, x: int, s: int, n: int) -> int:
    """Until when one need holds the operation under a cursor back; 0: it does not, `NEVER`: not known yet."""
    phase = S[s + PHASE]
    p = S[x + PHASES_AT] + phase * S_PHASE_SIZE
    if T[n + MODE] == 0:
        at = S[s + ITERATION] - T[n + NEED_LAG]
        # before the first iteration, or before the one at which a paused task went on
        if at < 0:
            return 0
        start = start_of(S, x, p, T[phase_table(T, S, x, phase) + STRIDE], T[n + NEED_SLOT], at)
    else:
        source = phase_table(T, S, x, T[n + SOURCE])
        at = S[s + ITERATION] + S[p + SKIPPED]
        if T[n + MODE] == 2:
            at = T[source + REPEAT] - 1 - at
        if at < 0 or at >= T[source + REPEAT]:
            return 0
        p = S[x + PHASES_AT] + T[n + SOURCE] * S_PHASE_SIZE
        start = earlier_start(S, x, p, T[source + STRIDE], T[n + NEED_SLOT], at)
    if start < 0:
        return 0
    end: int = NEVER if start == NEVER else start + T[n + DELAY]
    return end


def end_of_frame(T: Any, S: Any, x: int, s: int, ahead: int) -> int:
    """The cycle at which the frame `ahead` of the cursor's step is there."""
    k = S[S_CORE] + S[x + AT_CORE] * S_CORE_SIZE
    g = phase_table(T, S, x, S[s + PHASE])
    step = S[s + ITERATION] + S[S[x + PHASES_AT] + S[s + PHASE] * S_PHASE_SIZE + SKIPPED] + ahead
    if T[g + MIRRORED] > 0:
        step = -step
    step += T[g + FIRST_STEP]
    interval = T[T[T_TASK] + S[x + TASK] * T_TASK_SIZE + INTERVAL]
    frame: int = S[x + CAME] + step * interval - S[k + OFFSET]
    if frame > S[k + NOW]:
        S[k + FRAME_BOUND] = 1
    return frame


def resolve(T: Any, S: Any, x: int, s: int) -> None:
    """Compute when the operation under a cursor may issue, and until when each cause holds it back."""
    o = S[s + OPERATION]
    ready = S[x + ADMITTED]
    for cause in range(N_CAUSES):
        S[s + UNTIL + cause] = 0
    for k in range(T[o + NEEDS]):
        n = T[o + NEED0] + k * T_NEED_SIZE
        end = end_of_need(T, S, x, s, n)
        place = s + UNTIL + T[n + CAUSE]
        S[place] = max(S[place], end)
        ready = max(ready, end)
    if T[o + FRAME] > 0:
        frame = end_of_frame(T, S, x, s, T[o + AHEAD])
        S[s + UNTIL + C_INPUT] = max(S[s + UNTIL + C_INPUT], frame)
        ready = max(ready, frame)
    if T[o + TAKES] >= 0:
        b = S[x + BUFFERS_AT] + T[o + TAKES] * S_BUFFER_SIZE
        d = T[S[x + VARIANT] + BUFFER0] + T[o + TAKES] * T_BUFFER_SIZE
        turn = S[b + TAKEN] - T[d + SLOTS]
        if turn >= 0:
            free = S[S[b + FREE_CYCLES] + turn] if turn < S[b + FREED] else NEVER
            place = s + UNTIL + T[d + BUFFER_CAUSE]
            S[place] = max(S[place], free)
            ready = max(ready, free)
    S[s + READY] = min(ready, NEVER)


def close(S: Any, x: int, s: int) -> None:
    """A cursor is at the end of its stream, or at the boundary at which its thread stops."""
    S[S[x + LEAD] + OPEN] -= 1
    S[s + READY] = NEVER
    S[s + LEFT] = 0


def passed(S: Any, x: int, s: int) -> bool:
    """Whether a cursor stands behind the boundary at which its thread stops."""
    if S[s + PHASE] != S[x + STOP_PHASE]:
        return bool(S[s + PHASE] > S[x + STOP_PHASE])
    skipped = S[S[x + PHASES_AT] + S[s + PHASE] * S_PHASE_SIZE + SKIPPED]
    return bool(S[s + ITERATION] + skipped >= S[x + STOP_ITERATION])


def settle(T: Any, S: Any, x: int, s: int, u: int) -> bool:
    """Put a cursor on an operation, past phases without any on the unit; False at the end of the stream."""
    while S[s + PHASE] < T[S[x + VARIANT] + PHASES]:
        table = stream_table(T, S, x, S[s + PHASE], u)
        if T[table + LENGTH] > 0:
            if S[s + PHASE] >= S[x + STOP_PHASE] and passed(S, x, s):
                break
            S[s + OPERATION] = T[T[table + FIRST]]
            S[s + LEFT] = T[S[s + OPERATION] + COUNT]
            return True
        S[s + PHASE] += 1
    close(S, x, s)
    return False


def move_on(T: Any, S: Any, core: int, x: int, s: int, u: int) -> bool:
    """Move a cursor past an operation whose last issue is done; False at the end of the stream."""
    phase = S[s + PHASE]
    table = stream_table(T, S, x, phase, u)
    S[s + POSITION] += 1
    if S[s + POSITION] == T[table + LENGTH]:
        S[s + POSITION] = 0
        S[s + ITERATION] += 1
        k = S[S_CORE] + core * S_CORE_SIZE
        if x == S[k + ANCHOR] and u == T[T[T_CORE] + core * T_CORE_SIZE + ACCOUNTED]:
            S[k + WRAPPED] = 1
        skipped = S[S[x + PHASES_AT] + phase * S_PHASE_SIZE + SKIPPED]
        if S[s + ITERATION] + skipped == T[phase_table(T, S, x, phase) + REPEAT]:
            S[s + ITERATION] = 0
            S[s + PHASE] += 1
            more = settle(T, S, x, s, u)
            forget_mark(T, S, core)
            return more
        if phase >= S[x + STOP_PHASE] and passed(S, x, s):
            close(S, x, s)
            return False
    S[s + OPERATION] = T[T[table + FIRST] + S[s + POSITION]]
    S[s + LEFT] = T[S[s + OPERATION] + COUNT]
    return True


def note_start(T: Any, S: Any, x: int, s: int, slot: int, start: int) -> None:
    """Remember the start of an operation that somebody waits for."""
    p = S[x + PHASES_AT] + S[s + PHASE] * S_PHASE_SIZE
    g = phase_table(T, S, x, S[s + PHASE])
    place = S[p + STARTS] + 2 * (S[s + ITERATION] * T[g + STRIDE] + slot)
    S[place] = S[x + EPOCH] + S[s + ITERATION]
    S[place + 1] = start
    if T[g + CROSS] > 0:
        S[p + SETTLED] = max(S[p + SETTLED], start + T[g + CROSS])


def complete(T: Any, S: Any, core: int, x: int, s: int, u: int, start: int) -> None:
    """The last issue of an operation is at `start`: move on, and look again at whoever waited for it."""
    o, lead = S[s + OPERATION], S[x + LEAD]
    if T[o + SLOT] >= 0:
        note_start(T, S, x, s, T[o + SLOT], start)
    if T[o + FREES] >= 0:
        b = S[x + BUFFERS_AT] + T[o + FREES] * S_BUFFER_SIZE
        S[S[b + FREE_CYCLES] + S[b + FREED]] = start + T[o + CYCLES]
        S[b + FREED] += 1
    S[lead + DONE_AT] = max(S[lead + DONE_AT], start + T[o + RESULT])
    S[lead + CLEAR_AT] = max(S[lead + CLEAR_AT], start + T[o + ECHO])
    if S[lead + LOADS] > 0:
        load(T, S, lead, S[s + PHASE], start + T[o + RESULT])
    if move_on(T, S, core, x, s, u):
        resolve(T, S, x, s)
    member = lead
    while member >= 0:
        first = S[member + ROWS_AT]
        for u in range(T[N_UNITS]):
            other = first + u * S_STREAM_SIZE
            if other != s and S[other + LEFT] > 0 and S[other + READY] == NEVER:
                resolve(T, S, member, other)
        member = S[member + NEXT]
    if S[lead + OPEN] == 0 and S[lead + ASKED] != 3:
        S[lead + FINISH] = S[lead + CLEAR_AT] if S[lead + ASKED] == 1 else S[lead + DONE_AT]
