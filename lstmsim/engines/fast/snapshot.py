"""A core's whole state relative to now as a row of numbers: equal rows behave equally (`engines.fast.periods`)."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.layout import (
    ACCOUNTED,
    ACTIVE,
    CONTEXT0,
    CONTEXTS,
    EPOCH,
    FIFO,
    FINISH,
    FREE_AT,
    FREE_CYCLES,
    FREED,
    FRESH,
    ITERATION,
    LAG,
    LAG_LIMIT,
    LEFT,
    N_BUFFERS,
    N_CAUSES,
    N_PHASES,
    N_UNITS,
    NAMED,
    NEVER,
    NOW,
    PHASE,
    PHASE0,
    PHASES,
    POLICY,
    POSITION,
    REACH,
    READY,
    REPEAT,
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
    S_UNIT,
    S_UNIT_SIZE,
    STARTS,
    STRIDE,
    T_CORE,
    T_CORE_SIZE,
    T_PHASE_SIZE,
    T_UNIT,
    T_UNIT_SIZE,
    TAKEN,
    TASK,
    UNITS,
    UNTIL,
    VARIANT,
)

__all__ = ["describe", "too_far_apart"]


def describe_units(T: Any, S: Any, core: int, at: int) -> int:
    """Write from address `at` what the core's units are doing, relative to now; returns where it ends."""
    k = S[S_CORE] + core * S_CORE_SIZE
    for u in range(T[T[T_CORE] + core * T_CORE_SIZE + UNITS]):
        v = S[S_UNIT] + (core * T[N_UNITS] + u) * S_UNIT_SIZE
        S[at] = S[v + ACTIVE]
        S[at + 1] = S[v + FRESH]
        S[at + 2] = max(S[v + FREE_AT] - S[k + NOW], 0)
        at += 3
    S[at] = S[k + NAMED] - S[k + NOW]
    return at + 1


def describe_thread(T: Any, S: Any, core: int, c: int, at: int) -> int:
    """Write where a thread's streams stand and what still holds them back, relative to now."""
    f = T[T_CORE] + core * T_CORE_SIZE
    now = S[S[S_CORE] + core * S_CORE_SIZE + NOW]
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    first = S[S_STREAM] + c * T[N_UNITS] * S_STREAM_SIZE
    own = S[first + T[f + ACCOUNTED] * S_STREAM_SIZE + ITERATION]
    S[at] = S[x + TASK]
    S[at + 1] = S[x + FINISH] if S[x + FINISH] >= NEVER else S[x + FINISH] - now
    at += 2
    for u in range(T[f + UNITS]):
        s = first + u * S_STREAM_SIZE
        ready = S[s + READY]
        if ready < NEVER:
            ready -= now
            # how long a thread has been ready matters only where the first come is the first served
            if T[T[T_UNIT] + (core * T[N_UNITS] + u) * T_UNIT_SIZE + POLICY] != FIFO:
                ready = max(ready, 0)
        S[at] = S[s + PHASE]
        S[at + 1] = S[s + POSITION]
        S[at + 2] = S[s + LEFT]
        S[at + 3] = S[s + ITERATION] - own
        S[at + 4] = ready
        at += 5
        # what is ready is held back by nothing
        if S[s + READY] > now:
            for cause in range(N_CAUSES):
                until = S[s + UNTIL + cause]
                S[at] = until if until >= NEVER else max(until - now, 0)
                at += 1
    return at


def describe_results(T: Any, S: Any, core: int, c: int, at: int) -> int:
    """Write which starts the thread remembers that somebody may still wait for, and its buffers, relative to now."""
    now = S[S[S_CORE] + core * S_CORE_SIZE + NOW]
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    s = S[S_STREAM] + (c * T[N_UNITS] + T[T[T_CORE] + core * T_CORE_SIZE + ACCOUNTED]) * S_STREAM_SIZE
    phase = S[s + PHASE]
    if phase < T[S[x + VARIANT] + PHASES]:
        g = T[S[x + VARIANT] + PHASE0] + phase * T_PHASE_SIZE
        p = S[S_PHASE] + (c * T[N_PHASES] + phase) * S_PHASE_SIZE
        # streams of the thread may be ahead of its array as well as behind it
        lowest = highest = S[s + ITERATION]
        for u in range(T[T[T_CORE] + core * T_CORE_SIZE + UNITS]):
            d = S[S_STREAM] + (c * T[N_UNITS] + u) * S_STREAM_SIZE
            if S[d + LEFT] > 0:
                lowest = min(lowest, S[d + ITERATION])
                highest = max(highest, S[d + ITERATION])
        for iteration in range(lowest - T[g + LAG], highest + 1):
            for slot in range(T[g + STRIDE]):
                S[at] = NEVER
                if 0 <= iteration < T[g + REPEAT]:
                    place = S[p + STARTS] + 2 * (iteration * T[g + STRIDE] + slot)
                    if S[place] == S[x + EPOCH] + iteration:
                        S[at] = max(S[place + 1] - now, -T[g + REACH])
                at += 1
    for index in range(T[N_BUFFERS]):
        b = S[S_BUFFER] + (c * T[N_BUFFERS] + index) * S_BUFFER_SIZE
        S[at] = S[b + TAKEN] - S[b + FREED]
        at += 1
        # a slot that is free by now does not matter any more, and only operations under way free one later
        for back in range(min(S[b + FREED], T[N_UNITS])):
            S[at] = max(S[S[b + FREE_CYCLES] + S[b + FREED] - 1 - back] - now, 0)
            at += 1
    return at


def describe(T: Any, S: Any, core: int, at: int) -> int:
    """Write the core's whole state relative to now from address `at` on; returns where it ends."""
    f = T[T_CORE] + core * T_CORE_SIZE
    at = describe_units(T, S, core, at)
    for c in range(T[f + CONTEXT0], T[f + CONTEXT0] + T[f + CONTEXTS]):
        if S[S[S_CONTEXT] + c * S_CONTEXT_SIZE + TASK] >= 0:
            at = describe_thread(T, S, core, c, at)
            at = describe_results(T, S, core, c, at)
    return at


def too_far_apart(T: Any, S: Any, core: int) -> bool:
    """Whether a stream of a thread is further from its array than the description reaches, or still looks back to
    before the first iteration."""
    f = T[T_CORE] + core * T_CORE_SIZE
    for c in range(T[f + CONTEXT0], T[f + CONTEXT0] + T[f + CONTEXTS]):
        x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
        if S[x + TASK] >= 0:
            first = S[S_STREAM] + c * T[N_UNITS] * S_STREAM_SIZE
            own = S[first + T[f + ACCOUNTED] * S_STREAM_SIZE + ITERATION]
            for u in range(T[f + UNITS]):
                s = first + u * S_STREAM_SIZE
                if S[s + LEFT] > 0:
                    g = T[S[x + VARIANT] + PHASE0] + S[s + PHASE] * T_PHASE_SIZE
                    if abs(S[s + ITERATION] - own) > LAG_LIMIT or S[s + ITERATION] < T[g + LAG]:
                        return True
    return False
