"""Tasks arrive, wait in their groups, and are admitted or turned away."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.contents import has_room, holds
from lstmsim.engines.heap import before, pop, push
from lstmsim.engines.layout import (
    AFFINE,
    ARRIVED,
    ASIDE,
    ASIDE_FIRST,
    BLOCKED,
    COMING,
    CONTENT,
    CONTEXTS,
    FINISHED,
    FIRST0,
    FIRST_END,
    FOLLOW0,
    FOLLOWS,
    GROUP,
    HEAP_SIZE,
    KEEP,
    KEPT,
    KEY,
    KEY_FROM_ARRIVAL,
    LATER,
    LOOSE,
    N_ARRIVALS,
    N_GROUPS,
    N_QUEUES,
    NEVER,
    OCCUPIED,
    OWN0,
    OWN_END,
    PASS,
    PATIENCE,
    PAUSE_ROW,
    PAUSED_AT,
    PAUSED_CONTEXT,
    PAUSED_ITERATION,
    PAUSED_PHASE,
    PLACE0,
    PLACES,
    PREEMPTS,
    QUEUE_LIMIT,
    RELEASE,
    S_COMING,
    S_CORE,
    S_CORE_SIZE,
    S_GROUP,
    S_GROUP_SIZE,
    S_TASKS,
    SEAT0,
    SEATS,
    SEATS_THERE,
    SHARED,
    SWITCH_SIZE,
    SWITCHES,
    T_ARRIVAL,
    T_CORE,
    T_CORE_SIZE,
    T_GROUP,
    T_GROUP_SIZE,
    T_PLACE_SIZE,
    T_SEAT_SIZE,
    T_TASK,
    T_TASK_SIZE,
    TASK_SIZE,
    TRAIT,
    TURN,
    WAITERS,
    WAITING,
)
from lstmsim.engines.pausing import ask
from lstmsim.engines.seating import place

__all__ = ["admit", "arrive", "next_arrival"]


def best_place(T: Any, S: Any, r: int, trait: int) -> int:
    """Where a task of a group is admitted now: the record of the place, -1 if there is none."""
    content = T[trait + CONTENT]
    best, lacks, least = -1, 1, NEVER
    for index in range(T[r + PLACES]):
        p = T[r + PLACE0] + index * T_PLACE_SIZE
        able, missing, occupied = True, 0, 0
        for seat in range(T[p + SEATS]):
            a = T[p + SEAT0] + seat * T_SEAT_SIZE
            k, f = S[S_CORE] + T[a] * S_CORE_SIZE, T[T_CORE] + T[a] * T_CORE_SIZE
            if S[k + OCCUPIED] + T[a + SEATS_THERE] > T[f + CONTEXTS] or S[k + KEPT] == S[PASS]:
                able = False
                break
            if content >= 0:
                if not has_room(T, S, T[a], content):
                    able = False
                    break
                if T[trait + AFFINE] > 0 and not holds(T, S, T[a], content):
                    missing = 1
            if T[f + SHARED] == 0:
                occupied += S[k + OCCUPIED]
        if able and (missing < lacks or (missing == lacks and occupied < least)):
            best, lacks, least = p, missing, occupied
    return best


def first_in_turn(T: Any, S: Any) -> int:
    """The group whose first task is looked at next; -1 if there is none any more in this pass."""
    found, first = -1, -1
    for group in range(T[N_GROUPS]):
        q = S[S_GROUP] + group * S_GROUP_SIZE
        if S[q + WAITERS] > 0 and S[q + BLOCKED] != S[PASS] and (first < 0 or before(S, S[q + WAITING], first)):
            found, first = group, S[q + WAITING]
    return found


def take_out(T: Any, S: Any, group: int) -> None:
    """The first task of a group waits no more; those set aside stay right behind the heap."""
    q = S[S_GROUP] + group * S_GROUP_SIZE
    if group >= T[N_QUEUES]:
        S[q + WAITING] = S[S[q + WAITING] + LATER]
    else:
        pop(S, S[q + WAITING], S[q + WAITERS])
        if S[q + ASIDE] > 0:
            hole = S[q + WAITING] + (S[q + WAITERS] - 1) * HEAP_SIZE
            for field in range(HEAP_SIZE):
                S[hole + field] = S[hole + S[q + ASIDE] * HEAP_SIZE + field]
    S[q + WAITERS] -= 1


def hold_back(T: Any, S: Any, R: Any, group: int, now: int) -> None:
    """The first task of a group finds no place: perhaps it asks another to pause; it keeps those behind it off."""
    q, r = S[S_GROUP] + group * S_GROUP_SIZE, T[T_GROUP] + group * T_GROUP_SIZE
    head = S[q + WAITING]
    if T[T[T[T_TASK] + S[head + 2] * T_TASK_SIZE + TRAIT] + PREEMPTS] > 0:
        ask(T, S, R, r, S[head], now)
    for a in range(T[r + OWN0], T[r + OWN_END]):
        S[S[S_CORE] + T[a] * S_CORE_SIZE + KEPT] = S[PASS]
    if T[r + LOOSE] == 0:
        S[q + BLOCKED] = S[PASS]
        return
    # those behind it may find a place for all that, on shared cores alone
    if group >= T[N_QUEUES]:
        if S[q + ASIDE] == 0:
            S[q + ASIDE_FIRST] = head
        S[q + WAITING] = S[head + LATER]
    else:
        pop(S, head, S[q + WAITERS])
    S[q + WAITERS] -= 1
    S[q + ASIDE] += 1


def bring_back(T: Any, S: Any) -> None:
    """Those who were set aside in a pass wait as before."""
    for group in range(T[N_GROUPS]):
        q = S[S_GROUP] + group * S_GROUP_SIZE
        if S[q + ASIDE] > 0:
            if group >= T[N_QUEUES]:
                S[q + WAITING] = S[q + ASIDE_FIRST]
                S[q + WAITERS] += S[q + ASIDE]
            else:
                for _ in range(S[q + ASIDE]):
                    entry = S[q + WAITING] + S[q + WAITERS] * HEAP_SIZE
                    push(S, S[q + WAITING], S[q + WAITERS], S[entry], S[entry + 1], S[entry + 2])
                    S[q + WAITERS] += 1
            S[q + ASIDE] = 0


def go_on(T: Any, S: Any, W: Any, p: int, e: int, now: int) -> None:
    """A paused task (e: its record) has a thread again."""
    task = S[e + TURN + 2]
    S[S[S_TASKS] + task * TASK_SIZE + 5] += 1
    if S[KEEP] > 0:
        row = S[SWITCHES] * SWITCH_SIZE
        S[SWITCHES] += 1
        W[row], W[row + 1], W[row + 2], W[row + 3] = now, PAUSE_ROW, task, T[T[p + SEAT0]]
        W[row + 4], W[row + 5] = S[e + PAUSED_CONTEXT], S[e + PAUSED_AT]
    came, phase, iteration = S[e + TURN + 1], S[e + PAUSED_PHASE], S[e + PAUSED_ITERATION]
    place(T, S, W, p, task, S[e + TURN], came, now, phase, iteration)


def admit(T: Any, S: Any, R: Any, W: Any, now: int, round: int) -> None:
    """Place whoever finds a place, in the order of rank, arrival and position; who finds none keeps others off.

    Tasks that may use the same places are a group: where its first finds none, none of them does.
    """
    S[PASS] += 1
    loose = False
    group = first_in_turn(T, S)
    while group >= 0:
        r = T[T_GROUP] + group * T_GROUP_SIZE
        entry = S[S[S_GROUP] + group * S_GROUP_SIZE + WAITING]
        rank, came, task = S[entry], S[entry + 1], S[entry + 2]
        trait = T[T[T_TASK] + task * T_TASK_SIZE + TRAIT]
        p = best_place(T, S, r, trait)
        if p < 0:
            hold_back(T, S, R, group, now)
            loose = loose or T[r + LOOSE] > 0
        else:
            take_out(T, S, group)
            if group >= T[N_QUEUES]:
                go_on(T, S, W, p, entry, now)
            elif 0 <= T[trait + PATIENCE] < now - came:
                turn_away(T, S, task, came, now, round)
            else:
                S[S[S_TASKS] + task * TASK_SIZE + 2] = now
                place(T, S, W, p, task, rank, came, now, 0, 0)
        group = first_in_turn(T, S)
    if loose:
        bring_back(T, S)


def turn_away(T: Any, S: Any, task: int, came: int, now: int, round: int) -> None:
    """A task leaves without having run; those that follow it at once come in the next round of this cycle."""
    row = S[S_TASKS] + task * TASK_SIZE
    S[row], S[row + 1], S[row + 2], S[row + 3], S[row + 4] = -1, -1, now, -1, came
    S[FINISHED] += 1
    t = T[T_TASK] + task * T_TASK_SIZE
    for follower in range(T[t + FOLLOW0], T[t + FOLLOW0] + T[t + FOLLOWS]):
        release = T[T[T_TASK] + T[follower] * T_TASK_SIZE + RELEASE]
        push(S, S[S_COMING], S[COMING], now + release, 0 if release > 0 else round + 1, T[follower])
        S[COMING] += 1


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
    push(S, S[q + WAITING], S[q + WAITERS], T[t + KEY] + T[t + KEY_FROM_ARRIVAL] * now, now, task)
    S[q + WAITERS] += 1


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
        pop(S, S[S_COMING], S[COMING])
        S[COMING] -= 1
        wait(T, S, task, release, round)
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
