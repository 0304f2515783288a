"""Tasks arrive, enter contexts, and leave them."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.heap import before, pop, push
from lstmsim.engines.layout import (
    ADMITTED,
    ARRIVED,
    CAME,
    COMING,
    CONTEXT0,
    CONTEXTS,
    CORE0,
    CORE_END,
    DONE_AT,
    ENTERED,
    EPOCH,
    FINISH,
    FINISHED,
    FOLLOW0,
    FOLLOWS,
    FREED,
    GROUP,
    ITERATION,
    KEY,
    KEY_FROM_ARRIVAL,
    KIND,
    LEFT,
    N_ARRIVALS,
    N_BUFFERS,
    N_GROUPS,
    N_KINDS,
    N_LONGEST,
    N_PHASES,
    N_UNITS,
    NEVER,
    NOW,
    OCCUPIED,
    OFFSET,
    OPEN,
    PHASE,
    PHASE0,
    PHASES,
    POOL,
    POSITION,
    READY,
    RELEASE,
    REPEAT,
    S_BUFFER,
    S_BUFFER_SIZE,
    S_COMING,
    S_CONTEXT,
    S_CONTEXT_SIZE,
    S_CORE,
    S_CORE_SIZE,
    S_GROUP,
    S_GROUP_SIZE,
    S_PHASE,
    S_PHASE_SIZE,
    S_STREAM,
    S_STREAM_SIZE,
    S_TASKS,
    SETTLED,
    SKIPPED,
    SKIPPED_FROM,
    SKIPPED_TO,
    STARTS,
    STRIDE,
    T_ARRIVAL,
    T_CORE,
    T_CORE_SIZE,
    T_GROUP,
    T_GROUP_SIZE,
    T_PHASE,
    T_PHASE_SIZE,
    T_TASK,
    T_TASK_SIZE,
    T_VARIANT,
    T_VARIANT_OF,
    T_VARIANT_SIZE,
    TAKEN,
    TASK,
    TASK_SIZE,
    UNITS,
    VARIANT,
    WAITERS,
    WAITING,
)
from lstmsim.engines.naming import account
from lstmsim.engines.periods import forget_mark
from lstmsim.engines.streams import resolve, settle

__all__ = ["admit", "arrive", "leave", "next_arrival"]


def place(T: Any, S: Any, core: int, c: int, task: int, now: int) -> None:
    """Start a task on a free context at `now` on the core's clock."""
    k, f = S[S_CORE] + core * S_CORE_SIZE, T[T_CORE] + core * T_CORE_SIZE
    account(T, S, core, now)
    S[k + NOW] = now
    x = S[S_CONTEXT] + c * S_CONTEXT_SIZE
    number = T[T[T_VARIANT_OF] + task * T[N_KINDS] + T[f + KIND]]
    variant = T[T_VARIANT] + number * T_VARIANT_SIZE
    S[x + TASK], S[x + VARIANT], S[x + ENTERED] = task, variant, now + S[k + OFFSET]
    S[x + ADMITTED], S[x + FINISH], S[x + DONE_AT], S[x + OPEN] = now, NEVER, 0, T[f + UNITS]
    S[x + EPOCH] += T[N_LONGEST] + 2
    starts = S[x + POOL]
    for phase in range(T[variant + PHASES]):
        p = S[S_PHASE] + (c * T[N_PHASES] + phase) * S_PHASE_SIZE
        g = T[T_PHASE] + (T[variant + PHASE0] + phase) * T_PHASE_SIZE
        S[p + STARTS], S[p + SKIPPED], S[p + SETTLED] = starts, 0, 0
        S[p + SKIPPED_FROM], S[p + SKIPPED_TO] = NEVER, NEVER
        starts += 2 * T[g + REPEAT] * T[g + STRIDE]
    for index in range(T[N_BUFFERS]):
        b = S[S_BUFFER] + (c * T[N_BUFFERS] + index) * S_BUFFER_SIZE
        S[b + TAKEN], S[b + FREED] = 0, 0
    for u in range(T[f + UNITS]):
        s = S[S_STREAM] + (c * T[N_UNITS] + u) * S_STREAM_SIZE
        S[s + PHASE], S[s + ITERATION], S[s + POSITION], S[s + LEFT], S[s + READY] = 0, 0, 0, 0, NEVER
    for u in range(T[f + UNITS]):
        if settle(T, S, x, S[S_STREAM] + (c * T[N_UNITS] + u) * S_STREAM_SIZE, u):
            resolve(T, S, core, c, u)
    forget_mark(T, S, core)


def leave(T: Any, S: Any, core: int, now: int) -> bool:
    """Free the contexts whose tasks finish at `now` on the core's clock; True if there are any."""
    k, f = S[S_CORE] + core * S_CORE_SIZE, T[T_CORE] + core * T_CORE_SIZE
    freed = False
    for thread in range(T[f + CONTEXTS]):
        x = S[S_CONTEXT] + (T[f + CONTEXT0] + thread) * S_CONTEXT_SIZE
        if S[x + TASK] >= 0 and S[x + FINISH] == now:
            account(T, S, core, now)
            row = S[S_TASKS] + S[x + TASK] * TASK_SIZE
            finish = now + S[k + OFFSET]
            S[row], S[row + 1], S[row + 2], S[row + 3] = core, thread, S[x + ENTERED], finish
            S[row + 4] = S[x + CAME]
            t = T[T_TASK] + S[x + TASK] * T_TASK_SIZE
            for follower in range(T[t + FOLLOW0], T[t + FOLLOW0] + T[t + FOLLOWS]):
                release = finish + T[T[T_TASK] + T[follower] * T_TASK_SIZE + RELEASE]
                push(S, S[S_COMING], S[COMING], release, 0, T[follower])
                S[COMING] += 1
            S[x + TASK], S[x + FINISH] = -1, NEVER
            S[k + OCCUPIED] -= 1
            S[FINISHED] += 1
            freed = True
    if freed:
        S[k + NOW] = max(S[k + NOW], now)
        forget_mark(T, S, core)
    return freed


def best_core(T: Any, S: Any, r: int) -> int:
    """Among the cores of a group with a free context the least occupied, the lowest of equals; -1: none."""
    best, least = -1, NEVER
    for at in range(T[r + CORE0], T[r + CORE_END]):
        occupied = S[S[S_CORE] + T[at] * S_CORE_SIZE + OCCUPIED]
        if occupied < T[T[T_CORE] + T[at] * T_CORE_SIZE + CONTEXTS] and occupied < least:
            best, least = T[at], occupied
    return best


def admit(T: Any, S: Any, now: int) -> None:
    """Place every waiting task that finds a free context, in the order of key, arrival and position.

    Tasks that may use the same cores are a group: where its first cannot be placed, none of them can.
    """
    while True:
        chosen, where = -1, -1
        for group in range(T[N_GROUPS]):
            q = S[S_GROUP] + group * S_GROUP_SIZE
            if S[q + WAITERS] > 0 and (chosen < 0 or before(S, S[q + WAITING], S[chosen + WAITING])):
                core = best_core(T, S, T[T_GROUP] + group * T_GROUP_SIZE)
                if core >= 0:
                    chosen, where = q, core
        if where < 0:
            return
        entry = S[chosen + WAITING]
        came, task = S[entry + 1], S[entry + 2]
        pop(S, S[chosen + WAITING], S[chosen + WAITERS])
        S[chosen + WAITERS] -= 1
        S[S[S_CORE] + where * S_CORE_SIZE + OCCUPIED] += 1
        c = T[T[T_CORE] + where * T_CORE_SIZE + CONTEXT0]
        while S[S[S_CONTEXT] + c * S_CONTEXT_SIZE + TASK] >= 0:
            c += 1
        S[S[S_CONTEXT] + c * S_CONTEXT_SIZE + CAME] = came
        place(T, S, where, c, task, now - S[S[S_CORE] + where * S_CORE_SIZE + OFFSET])


def wait(T: Any, S: Any, task: int, now: int) -> None:
    """A task begins to wait in its group."""
    t = T[T_TASK] + task * T_TASK_SIZE
    q = S[S_GROUP] + T[t + GROUP] * S_GROUP_SIZE
    push(S, S[q + WAITING], S[q + WAITERS], T[t + KEY] + T[t + KEY_FROM_ARRIVAL] * now, now, task)
    S[q + WAITERS] += 1


def arrive(T: Any, S: Any, now: int) -> bool:
    """Tasks that come up to `now` begin to wait; True if there are any."""
    came = False
    while S[ARRIVED] < T[N_ARRIVALS]:
        task = T[T[T_ARRIVAL] + S[ARRIVED]]
        release = T[T[T_TASK] + task * T_TASK_SIZE + RELEASE]
        if release > now:
            break
        S[ARRIVED] += 1
        wait(T, S, task, release)
        came = True
    while S[COMING] > 0 and S[S[S_COMING]] <= now:
        release, task = S[S[S_COMING]], S[S[S_COMING] + 2]
        pop(S, S[S_COMING], S[COMING])
        S[COMING] -= 1
        wait(T, S, task, release)
        came = True
    return came


def next_arrival(T: Any, S: Any) -> int:
    """The cycle at which the next task comes, as far as is known."""
    soonest = NEVER
    if S[ARRIVED] < T[N_ARRIVALS]:
        soonest = T[T[T_TASK] + T[T[T_ARRIVAL] + S[ARRIVED]] * T_TASK_SIZE + RELEASE]
    if S[COMING] > 0:
        soonest = min(soonest, S[S[S_COMING]])
    return soonest
