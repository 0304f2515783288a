"""Tasks take threads and leave them."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.contents import fill, let_go, loaded, to_load
from lstmsim.engines.fast.heap import push
from lstmsim.engines.fast.layout import (
    ADMITTED,
    ASKED,
    AT_CORE,
    BUFFERS_AT,
    CAME,
    CLEAR_AT,
    COMING,
    CONTENT,
    CONTEXT0,
    CONTEXTS,
    DONE_AT,
    ENDED,
    ENTERED,
    ENTRY_ITERATION,
    ENTRY_PHASE,
    EPOCH,
    EPOCHS,
    FINISH,
    FINISHED,
    FOLLOW0,
    FOLLOWS,
    FREED,
    ITERATION,
    KEEP,
    LEAD,
    LEFT,
    LOADED,
    LOADING,
    LOADS,
    N_BUFFERS,
    N_LONGEST,
    N_PHASES,
    N_UNITS,
    NEVER,
    NEXT,
    NOW,
    OCCUPIED,
    OFFSET,
    OPEN,
    PHASE,
    PHASE0,
    PHASES,
    PHASES_AT,
    POOL,
    POSITION,
    RANK,
    READY,
    RELEASE,
    REPEAT,
    ROWS_AT,
    S_BUFFER,
    S_BUFFER_SIZE,
    S_COMING,
    S_CONTEXT,
    S_CONTEXT_SIZE,
    S_CORE,
    S_CORE_SIZE,
    S_ENTRY,
    S_PHASE,
    S_PHASE_SIZE,
    S_STREAM_SIZE,
    S_TASKS,
    SEAT0,
    SEAT_ROW,
    SETTLED,
    SKIPPED,
    SKIPPED_FROM,
    SKIPPED_TO,
    STARTS,
    STOP_PHASE,
    STREAM0,
    STREAMS_AT,
    STRIDE,
    SWITCH_SIZE,
    SWITCHES,
    T_CORE,
    T_CORE_SIZE,
    T_PHASE_SIZE,
    T_SEAT_SIZE,
    T_STREAM_SIZE,
    T_TASK,
    T_TASK_SIZE,
    TAKEN,
    TASK,
    TASK_SIZE,
    TRAIT,
    UNITS,
    VARIANT,
)
from lstmsim.engines.fast.naming import account
from lstmsim.engines.fast.pausing import pause
from lstmsim.engines.fast.periods import forget_mark
from lstmsim.engines.fast.spreading import note_taken, variant_at
from lstmsim.engines.fast.streams import resolve, settle

__all__ = ["leave", "place"]


def sit(T: Any, S: Any, core: int, now: int) -> int:
    """Take the lowest free thread of a core; returns where its record is."""
    k, f = S[S_CORE] + core * S_CORE_SIZE, T[T_CORE] + core * T_CORE_SIZE
    x = S[S_CONTEXT] + T[f + CONTEXT0] * S_CONTEXT_SIZE
    while S[x + TASK] >= 0:
        x += S_CONTEXT_SIZE
    account(T, S, core, now - S[k + OFFSET])
    S[k + NOW] = now - S[k + OFFSET]
    S[k + OCCUPIED] += 1
    S[x + ENTERED], S[x + ADMITTED] = now, S[k + NOW]
    return int(x)


def prepare(T: Any, S: Any, x: int, variant: int, phase: int, iteration: int) -> None:
    """Records of a thread's phases and buffers: what lies before its boundary counts as done long ago."""
    c = (x - S[S_CONTEXT]) // S_CONTEXT_SIZE
    p = S[S_PHASE] + c * T[N_PHASES] * S_PHASE_SIZE
    S[x + PHASES_AT] = p
    starts = S[x + POOL]
    g = T[variant + PHASE0]
    for number in range(T[variant + PHASES]):
        S[p + STARTS], S[p + SKIPPED], S[p + SETTLED] = starts, 0, 0
        S[p + SKIPPED_FROM], S[p + SKIPPED_TO] = NEVER, NEVER
        if number < phase:
            S[p + SKIPPED_FROM] = 0
        elif number == phase and iteration > 0:
            S[p + SKIPPED], S[p + SKIPPED_FROM], S[p + SKIPPED_TO] = iteration, 0, iteration
        starts += 2 * T[g + REPEAT] * T[g + STRIDE]
        p += S_PHASE_SIZE
        g += T_PHASE_SIZE
    b = S[S_BUFFER] + c * T[N_BUFFERS] * S_BUFFER_SIZE
    S[x + BUFFERS_AT] = b
    for _ in range(T[N_BUFFERS]):
        S[b + TAKEN], S[b + FREED] = 0, 0
        b += S_BUFFER_SIZE
    S[EPOCHS] += T[N_LONGEST] + 2
    S[x + FINISH], S[x + DONE_AT], S[x + CLEAR_AT], S[x + OPEN] = NEVER, 0, 0, 0
    S[x + ENTRY_PHASE], S[x + ENTRY_ITERATION], S[x + ASKED] = phase, iteration, 0


def begin(T: Any, S: Any, lead: int, phase: int) -> None:
    """Put the cursors of all of a task's threads on their first operations."""
    x = lead
    while x >= 0:
        core = S[x + AT_CORE]
        units = T[T[T_CORE] + core * T_CORE_SIZE + UNITS]
        S[lead + OPEN] += units
        s = S[x + ROWS_AT]
        for u in range(units):
            S[s + PHASE], S[s + ITERATION], S[s + POSITION], S[s + LEFT], S[s + READY] = phase, 0, 0, 0, NEVER
            S[s + ENDED] = S[x + ADMITTED]
            if settle(T, S, x, s, u):
                resolve(T, S, x, s)
            s += S_STREAM_SIZE
        forget_mark(T, S, core)
        x = S[x + NEXT]


def place(
    T: Any, S: Any, W: Any, p: int, members: int, task: int, rank: int, came: int, now: int, phase: int, step: int
) -> None:
    """Start a task at a place (p: its record), or let it go on, at iteration `step` of a phase. Where there are fewer
    members than seats, those with a free thread are taken."""
    variant = variant_at(T, p, members, task)
    trait = T[T[T_TASK] + task * T_TASK_SIZE + TRAIT]
    loads = 0
    if T[trait + CONTENT] >= 0:
        loads = to_load(T, variant, T[trait + LOADING])
        if fill(T, S, p, T[trait + CONTENT], loads):
            phase, loads = T[trait + LOADING], 0
    lead, last, streams = -1, -1, T[variant + STREAM0]
    a = T[p + SEAT0]
    for seat in range(members):
        while S[S[S_CORE] + T[a] * S_CORE_SIZE + OCCUPIED] == T[T[T_CORE] + T[a] * T_CORE_SIZE + CONTEXTS]:
            a += T_SEAT_SIZE
        x = sit(T, S, T[a], now)
        note_taken(T, S, task, T[a])
        a += T_SEAT_SIZE
        S[x + TASK], S[x + VARIANT], S[x + CAME], S[x + STREAMS_AT] = task, variant, came, streams
        S[x + NEXT], S[x + STOP_PHASE] = -1, NEVER
        streams += T[N_UNITS] * T_STREAM_SIZE
        if lead < 0:
            lead = x
            S[x + RANK] = rank
            prepare(T, S, x, variant, phase, step)
            S[x + LOADS], S[x + LOADED] = loads, 0
        else:
            S[last + NEXT] = x
            S[x + FINISH] = NEVER
            S[x + PHASES_AT], S[x + BUFFERS_AT] = S[lead + PHASES_AT], S[lead + BUFFERS_AT]
            note_seat(T, S, W, x, task, seat)
        S[x + LEAD], S[x + EPOCH] = lead, S[EPOCHS]
        last = x
    begin(T, S, lead, phase)


def note_seat(T: Any, S: Any, W: Any, x: int, task: int, member: int) -> None:
    """Write down which thread a task has beside its first."""
    if S[KEEP] > 0:
        row = S[SWITCHES] * SWITCH_SIZE
        S[SWITCHES] += 1
        first = T[T[T_CORE] + S[x + AT_CORE] * T_CORE_SIZE + CONTEXT0]
        context = (x - S[S_CONTEXT]) // S_CONTEXT_SIZE - first
        W[row], W[row + 1], W[row + 2], W[row + 3] = 0, SEAT_ROW, task, member
        W[row + 4], W[row + 5] = S[x + AT_CORE], context


def finish(T: Any, S: Any, x: int, core: int, thread: int, now: int) -> None:
    """A task is done: where and when it ran, and when those come that come after it."""
    task = S[x + TASK]
    row = S[S_TASKS] + task * TASK_SIZE
    S[row], S[row + 1], S[row + 3], S[row + 4] = core, thread, now, S[x + CAME]
    t = T[T_TASK] + task * T_TASK_SIZE
    for follower in range(T[t + FOLLOW0], T[t + FOLLOW0] + T[t + FOLLOWS]):
        release = now + T[T[T_TASK] + T[follower] * T_TASK_SIZE + RELEASE]
        push(S, S[S_COMING], S[COMING], S[S_ENTRY], release, 0, T[follower])
        S[COMING] += 1
    S[FINISHED] += 1
    content = T[T[t + TRAIT] + CONTENT]
    if content >= 0:
        member = x
        while member >= 0:
            other = x
            while S[other + AT_CORE] != S[member + AT_CORE]:
                other = S[other + NEXT]
            if other == member:
                let_go(T, S, S[member + AT_CORE], content)
            member = S[member + NEXT]


def free(T: Any, S: Any, lead: int, now: int) -> None:
    """All threads of a task are free."""
    x = lead
    while x >= 0:
        k = S[S_CORE] + S[x + AT_CORE] * S_CORE_SIZE
        account(T, S, S[x + AT_CORE], now - S[k + OFFSET])
        S[x + TASK], S[x + FINISH] = -1, NEVER
        S[k + OCCUPIED] -= 1
        S[k + NOW] = max(S[k + NOW], now - S[k + OFFSET])
        forget_mark(T, S, S[x + AT_CORE])
        x = S[x + NEXT]


def leave(T: Any, S: Any, core: int, now: int) -> bool:
    """Free the threads whose tasks finish or pause at `now` on the core's clock; True if there are any, or if a content
    has arrived."""
    offset, f = S[S[S_CORE] + core * S_CORE_SIZE + OFFSET], T[T_CORE] + core * T_CORE_SIZE
    freed = False
    for thread in range(T[f + CONTEXTS]):
        x = S[S_CONTEXT] + (T[f + CONTEXT0] + thread) * S_CONTEXT_SIZE
        if S[x + TASK] >= 0 and S[x + FINISH] == now and S[x + ASKED] == 3:
            loaded(T, S, x)
            freed = True
        if S[x + TASK] >= 0 and S[x + FINISH] == now:
            if S[x + ASKED] == 1:
                pause(T, S, x, core, thread, now + offset)
            else:
                finish(T, S, x, core, thread, now + offset)
            free(T, S, x, now + offset)
            freed = True
    return freed
