"""Exact skipping: when a core's state relative to now repeats, whole periods are skipped at once.

The state at the anchor's change of iteration is compared with a marked one, which moves on after 1, 2, 4 ... changes
(Brent 1980), so a period of any length and of several interleaved threads is found. Equal states behave equally as
long as nothing from outside interferes: no task comes or leaves, no phase ends, and frames either hold nothing back or
come with the period. A skip moves the core's clock, its counters, and how many iterations are left; nothing else
changes, because all other times are relative to the clock.
"""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.layout import (
    ACCOUNTED,
    ANCHOR,
    CONTEXT0,
    CONTEXTS,
    COUNTED,
    CROSS,
    FRAME_BOUND,
    FRAMED,
    INTERVAL,
    ISSUED,
    ITERATION,
    LAG,
    LEFT,
    MARK,
    MARK_COUNTED,
    MARK_ISSUED,
    MARK_ITERATION,
    MARK_LENGTH,
    MARK_NOW,
    MARK_POWER,
    MARK_ROOM,
    MARK_STEPS,
    MARK_VALID,
    MARK_WORKED,
    MIRRORED,
    N_PHASES,
    N_UNITS,
    NAMES,
    NEVER,
    NOW,
    OFFSET,
    PHASE,
    PHASE0,
    REPEAT,
    ROWS_AT,
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
    T_CORE,
    T_CORE_SIZE,
    T_PHASE_SIZE,
    T_TASK,
    T_TASK_SIZE,
    TASK,
    UNITS,
    VARIANT,
    WORKED,
    WRAPPED,
)
from lstmsim.engines.fast.snapshot import describe, too_far_apart

__all__ = ["forget_mark", "look_for_period"]


def forget_mark(T: Any, S: Any, core: int) -> None:
    """Begin anew: the set of tasks or phases has changed. The anchor is the first thread with work for the array."""
    k = S[S_CORE] + core * S_CORE_SIZE
    S[k + MARK_VALID], S[k + MARK_POWER], S[k + MARK_STEPS], S[k + WRAPPED], S[k + ANCHOR] = 0, 1, 0, 0, -1
    f = T[T_CORE] + core * T_CORE_SIZE
    for back in range(T[f + CONTEXTS]):
        c = T[f + CONTEXT0] + T[f + CONTEXTS] - 1 - back
        x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
        if S[x + TASK] >= 0 and S[S[x + ROWS_AT] + T[f + ACCOUNTED] * S_STREAM_SIZE + LEFT] > 0:
            S[k + ANCHOR] = x


def look_for_period(T: Any, S: Any, core: int, stop: int) -> None:
    """At a change of iteration: skip periods if the state is the marked one, else perhaps mark it."""
    if too_far_apart(T, S, core):
        return
    k = S[S_CORE] + core * S_CORE_SIZE
    reference = S[k + MARK]
    current = reference + S[k + MARK_ROOM]
    length = describe(T, S, core, current) - current
    same = S[k + MARK_VALID] > 0 and S[k + MARK_LENGTH] == length
    place = 0
    while same and place < length:
        same = S[reference + place] == S[current + place]
        place += 1
    if same:
        skip(T, S, core, stop)
        return
    S[k + MARK_STEPS] += 1
    if S[k + MARK_STEPS] >= S[k + MARK_POWER]:
        S[k + MARK_POWER] *= 2
        S[k + MARK_STEPS] = 0
        S[k + MARK_VALID] = 1
        S[k + MARK_LENGTH] = length
        for place in range(length):
            S[reference + place] = S[current + place]
        remember(T, S, core)


def remember(T: Any, S: Any, core: int) -> None:
    """Note what is counted from the marked state on."""
    k, f = S[S_CORE] + core * S_CORE_SIZE, T[T_CORE] + core * T_CORE_SIZE
    S[k + MARK_NOW] = S[k + NOW]
    S[k + FRAME_BOUND] = 0
    for name in range(NAMES):
        S[k + MARK_COUNTED + name] = S[k + COUNTED + name]
    S[k + MARK_WORKED] = S[k + WORKED]
    S[k + MARK_ISSUED] = S[k + ISSUED]
    for c in range(T[f + CONTEXT0], T[f + CONTEXT0] + T[f + CONTEXTS]):
        s = S[S_STREAM] + (c * T[N_UNITS] + T[f + ACCOUNTED]) * S_STREAM_SIZE
        S[S[S_CONTEXT] + c * S_CONTEXT_SIZE + MARK_ITERATION] = S[s + ITERATION]


def periods_for(T: Any, S: Any, core: int, c: int, period: int) -> int:
    """How many periods a thread can repeat what it did since the mark."""
    k, f = S[S_CORE] + core * S_CORE_SIZE, T[T_CORE] + core * T_CORE_SIZE
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    first = S[S_STREAM] + c * T[N_UNITS] * S_STREAM_SIZE
    s = first + T[f + ACCOUNTED] * S_STREAM_SIZE
    turns = S[s + ITERATION] - S[x + MARK_ITERATION]
    phase = S[s + PHASE]
    if turns <= 0:
        return NEVER if turns == 0 else 0
    lead = S[s + ITERATION]
    for u in range(T[f + UNITS]):
        if S[first + u * S_STREAM_SIZE + LEFT] > 0:
            if S[first + u * S_STREAM_SIZE + PHASE] != phase:
                return 0
            lead = max(lead, S[first + u * S_STREAM_SIZE + ITERATION])
    p = S[S_PHASE] + c * T[N_PHASES] * S_PHASE_SIZE
    for earlier in range(phase):
        if S[p + earlier * S_PHASE_SIZE + SETTLED] > S[k + NOW]:
            return 0
    g = T[S[x + VARIANT] + PHASE0] + phase * T_PHASE_SIZE
    if T[g + FRAMED] > 0:
        # frames that hold something back must come with the period, others must not come more slowly
        ahead = turns * T[T[T_TASK] + S[x + TASK] * T_TASK_SIZE + INTERVAL] - period
        if S[k + FRAME_BOUND] > 0 and (ahead != 0 or T[g + MIRRORED] > 0):
            return 0
        if ahead > 0 and T[g + MIRRORED] == 0:
            return 0
    # what later phases wait for must be long over when this one ends
    margin = 2 + T[g + LAG] + (T[g + CROSS] * turns + period - 1) // period
    left = T[g + REPEAT] - S[p + phase * S_PHASE_SIZE + SKIPPED] - lead
    fits: int = max((left - margin) // turns, 0)
    return fits


def skip(T: Any, S: Any, core: int, stop: int) -> None:
    """Skip as many periods as every thread can repeat before `stop` on the core's clock."""
    k, f = S[S_CORE] + core * S_CORE_SIZE, T[T_CORE] + core * T_CORE_SIZE
    period = S[k + NOW] - S[k + MARK_NOW]
    times = (stop - S[k + NOW] - 1) // period
    contexts = range(T[f + CONTEXT0], T[f + CONTEXT0] + T[f + CONTEXTS])
    for c in contexts:
        if S[S[S_CONTEXT] + c * S_CONTEXT_SIZE + TASK] >= 0:
            times = min(times, periods_for(T, S, core, c, period))
    if 0 < times < NEVER // period:
        S[k + OFFSET] += times * period
        for name in range(NAMES):
            S[k + COUNTED + name] += times * (S[k + COUNTED + name] - S[k + MARK_COUNTED + name])
        S[k + WORKED] += times * (S[k + WORKED] - S[k + MARK_WORKED])
        S[k + ISSUED] += times * (S[k + ISSUED] - S[k + MARK_ISSUED])
        for c in contexts:
            x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
            s = S[S_STREAM] + (c * T[N_UNITS] + T[f + ACCOUNTED]) * S_STREAM_SIZE
            turns = S[s + ITERATION] - S[x + MARK_ITERATION]
            if S[x + TASK] >= 0 and turns > 0:
                p = S[S_PHASE] + (c * T[N_PHASES] + S[s + PHASE]) * S_PHASE_SIZE
                S[p + SKIPPED_FROM] = min(S[p + SKIPPED_FROM], S[s + ITERATION] + S[p + SKIPPED])
                S[p + SKIPPED] += times * turns
                S[p + SKIPPED_TO] = S[s + ITERATION] + S[p + SKIPPED]
    forget_mark(T, S, core)
