"""Tasks come and begin to wait in their groups, find their queue full, or give up."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.heap import pop, push, remove
from lstmsim.engines.fast.layout import (
    ARRIVED,
    COMING,
    CONTEXTS,
    FINISHED,
    FIRST0,
    FIRST_END,
    FOLLOW0,
    FOLLOWS,
    GROUP,
    KEY,
    KEY_FROM_ARRIVAL,
    LEAVING,
    LOOK,
    N_ARRIVALS,
    OCCUPIED,
    PATIENCE,
    QUEUE_LIMIT,
    RELEASE,
    S_COMING,
    S_CORE,
    S_CORE_SIZE,
    S_ENTRY,
    S_GROUP,
    S_GROUP_SIZE,
    S_LEAVING,
    S_LEAVING_ENTRY,
    S_TASKS,
    T_ARRIVAL,
    T_CORE,
    T_CORE_SIZE,
    T_GROUP,
    T_GROUP_SIZE,
    T_TASK,
    T_TASK_SIZE,
    TASK_SIZE,
    TRAIT,
    WAITERS,
    WAITING,
)

__all__ = ["arrive", "give_up", "next_look"]


def turn_away(T: Any, S: Any, task: int, came: int, now: int, round: int) -> None:
    """A task leaves without having run; those that follow it at once come in the next round of this cycle."""
    row = S[S_TASKS] + task * TASK_SIZE
    S[row], S[row + 1], S[row + 2], S[row + 3], S[row + 4] = -1, -1, now, -1, came
    S[FINISHED] += 1
    t = T[T_TASK] + task * T_TASK_SIZE
    for follower in range(T[t + FOLLOW0], T[t + FOLLOW0] + T[t + FOLLOWS]):
        release = T[T[T_TASK] + T[follower] * T_TASK_SIZE + RELEASE]
        push(S, S[S_COMING], S[COMING], S[S_ENTRY], now + release, 0 if release > 0 else round + 1, T[follower])
        S[COMING] += 1


def give_up(T: Any, S: Any, now: int) -> bool:
    """Those who have waited longer than their patience lets them leave; True if there are any. Who follows them at
    once comes with all others of this cycle."""
    left = False
    while S[LEAVING] > 0 and S[S[S_LEAVING]] <= now:
        task = S[S[S_LEAVING] + 2]
        pop(S, S[S_LEAVING], S[LEAVING], S[S_LEAVING_ENTRY])
        S[LEAVING] -= 1
        q = S[S_GROUP] + T[T[T[T_TASK] + task * T_TASK_SIZE + TRAIT] + GROUP] * S_GROUP_SIZE
        came = S[S[S[S_ENTRY] + task] + 1]
        remove(S, S[q + WAITING], S[q + WAITERS], S[S_ENTRY], task)
        S[q + WAITERS] -= 1
        turn_away(T, S, task, came, now, -1)
        left = True
    return left


def too_many_wait(T: Any, S: Any, group: int, limit: int) -> bool:
    """Whether a task that comes finds its queue full."""
    r = T[T_GROUP] + group * T_GROUP_SIZE
    before = S[S[S_GROUP] + group * S_GROUP_SIZE + WAITERS]
    for a in range(T[r + FIRST0], T[r + FIRST_END]):
        before -= T[T[T_CORE] + T[a] * T_CORE_SIZE + CONTEXTS] - S[S[S_CORE] + T[a] * S_CORE_SIZE + OCCUPIED]
    return bool(before >= limit)


def wait(T: Any, S: Any, task: int, now: int, round: int) -> None:
    """A task begins to wait in its group, or is turned away."""
    t = T[T_TASK] + task * T_TASK_SIZE
    group, limit = T[T[t + TRAIT] + GROUP], T[T[t + TRAIT] + QUEUE_LIMIT]
    if limit >= 0 and too_many_wait(T, S, group, limit):
        turn_away(T, S, task, now, now, round)
        return
    q = S[S_GROUP] + group * S_GROUP_SIZE
    push(S, S[q + WAITING], S[q + WAITERS], S[S_ENTRY], T[t + KEY] + T[t + KEY_FROM_ARRIVAL] * now, now, task)
    S[q + WAITERS] += 1
    patience = T[T[t + TRAIT] + PATIENCE]
    if patience >= 0:
        push(S, S[S_LEAVING], S[LEAVING], S[S_LEAVING_ENTRY], now + patience + 1, 0, task)
        S[LEAVING] += 1


def arrive(T: Any, S: Any, now: int, round: int) -> bool:
    """Tasks that come up to `now`, and in this round of that cycle, begin to wait; True if there are any."""
    came = False
    while S[ARRIVED] < T[N_ARRIVALS]:
        task = T[T[T_ARRIVAL] + S[ARRIVED]]
        release = T[T[T_TASK] + task * T_TASK_SIZE + RELEASE]
        if release > now:
            break
        S[ARRIVED] += 1
        wait(T, S, task, release, round)
        came = True
    while S[COMING] > 0 and S[S[S_COMING]] <= now and S[S[S_COMING] + 1] <= round:
        release, task = S[S[S_COMING]], S[S[S_COMING] + 2]
        pop(S, S[S_COMING], S[COMING], S[S_ENTRY])
        S[COMING] -= 1
        wait(T, S, task, release, round)
        came = True
    return came


def next_look(T: Any, S: Any) -> int:
    """When tasks that wait are looked at next, as far as is known: one comes or gives up, or it is LOOK."""
    soonest: int = S[LOOK]
    if S[LEAVING] > 0:
        soonest = min(soonest, S[S[S_LEAVING]])
    if S[ARRIVED] < T[N_ARRIVALS]:
        soonest = min(soonest, T[T[T_TASK] + T[T[T_ARRIVAL] + S[ARRIVED]] * T_TASK_SIZE + RELEASE])
    if S[COMING] > 0:
        soonest = min(soonest, S[S[S_COMING]])
    return soonest
