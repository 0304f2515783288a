"""Tasks that wait in their groups are admitted, in turn."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.contents import has_room, holds
from lstmsim.engines.fast.heap import before, pop, push, remove
from lstmsim.engines.fast.layout import (
    AFFINE,
    ASIDE,
    ASIDE_FIRST,
    BLOCKED,
    COMING,
    CONTENT,
    CONTEXTS,
    HEAP_SIZE,
    KEEP,
    KEPT,
    LATER,
    LEAVING,
    LOOKED,
    LOOSE,
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
    S_COMING,
    S_CORE,
    S_CORE_SIZE,
    S_ENTRY,
    S_GROUP,
    S_GROUP_SIZE,
    S_LEAVING,
    S_LEAVING_ENTRY,
    S_TASKS,
    SEAT0,
    SEATS,
    SEATS_THERE,
    SEEN,
    SHARED,
    SPREADS,
    SWITCH_SIZE,
    SWITCHES,
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
from lstmsim.engines.fast.pausing import ask
from lstmsim.engines.fast.seating import place
from lstmsim.engines.fast.spreading import spread

__all__ = ["admit"]


def best_place(T: Any, S: Any, group: int, trait: int) -> int:
    """Where a task of a group is admitted now: the record of the place, -1 if there is none.

    Threads are only taken in a pass, so the first places that have none are not looked at again in it.
    """
    q, r = S[S_GROUP] + group * S_GROUP_SIZE, T[T_GROUP] + group * T_GROUP_SIZE
    if S[q + LOOKED] != S[PASS]:
        S[q + LOOKED], S[q + SEEN] = S[PASS], 0
    content = T[trait + CONTENT]
    best, lacks, least = -1, 1, NEVER
    for index in range(S[q + SEEN], T[r + PLACES]):
        p = T[r + PLACE0] + index * T_PLACE_SIZE
        able, missing, occupied = True, 0, 0
        for seat in range(T[p + SEATS]):
            a = T[p + SEAT0] + seat * T_SEAT_SIZE
            k, f = S[S_CORE] + T[a] * S_CORE_SIZE, T[T_CORE] + T[a] * T_CORE_SIZE
            if S[k + OCCUPIED] + T[a + SEATS_THERE] > T[f + CONTEXTS] or S[k + KEPT] == S[PASS]:
                able = False
                if S[q + SEEN] == index:
                    S[q + SEEN] += 1
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
            if missing == 0 and occupied == 0:
                # no place behind it can be better
                break
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
        pop(S, S[q + WAITING], S[q + WAITERS], S[S_ENTRY])
        if S[q + ASIDE] > 0:
            hole = S[q + WAITING] + (S[q + WAITERS] - 1) * HEAP_SIZE
            for field in range(HEAP_SIZE):
                S[hole + field] = S[hole + S[q + ASIDE] * HEAP_SIZE + field]
    S[q + WAITERS] -= 1


def hold_back(T: Any, S: Any, R: Any, group: int, now: int, asking: bool) -> None:
    """The first task of a group finds no place: perhaps it asks another to pause; it keeps those behind it off."""
    q, r = S[S_GROUP] + group * S_GROUP_SIZE, T[T_GROUP] + group * T_GROUP_SIZE
    head = S[q + WAITING]
    if asking and T[T[T[T_TASK] + S[head + 2] * T_TASK_SIZE + TRAIT] + PREEMPTS] > 0:
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
        pop(S, head, S[q + WAITERS], S[S_ENTRY])
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
                    push(S, S[q + WAITING], S[q + WAITERS], S[S_ENTRY], S[entry], S[entry + 1], S[entry + 2])
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
    place(T, S, W, p, T[p + SEATS], task, S[e + TURN], came, now, phase, iteration)


def start(T: Any, S: Any, W: Any, r: int, p: int, task: int, rank: int, came: int, now: int) -> None:
    """Admit a task of a group that waits no more, at a place that it has found (p) or on several of its cores."""
    S[S[S_TASKS] + task * TASK_SIZE + 2] = now
    members = T[p + SEATS]
    if T[T[T[T_TASK] + task * T_TASK_SIZE + TRAIT] + SPREADS] > 0:
        members = spread(T, S, r, task)
        if members > 1:
            p = T[r + PLACE0] + T[r + PLACES] * T_PLACE_SIZE
    place(T, S, W, p, members, task, rank, came, now, 0, 0)


def admit(T: Any, S: Any, R: Any, W: Any, now: int) -> None:
    """Place whoever finds a place, in the order of rank, arrival and position; who finds none keeps others off.

    Tasks that may use the same places are a group: where its first finds none, none of them does. Nobody asks another
    to pause while more tasks come in this very cycle, in another `round`.
    """
    S[PASS] += 1
    asking = S[COMING] == 0 or S[S[S_COMING]] > now
    loose = False
    group = first_in_turn(T, S)
    while group >= 0:
        r = T[T_GROUP] + group * T_GROUP_SIZE
        entry = S[S[S_GROUP] + group * S_GROUP_SIZE + WAITING]
        rank, came, task = S[entry], S[entry + 1], S[entry + 2]
        trait = T[T[T_TASK] + task * T_TASK_SIZE + TRAIT]
        p = best_place(T, S, group, trait)
        if p < 0:
            hold_back(T, S, R, group, now, asking)
            loose = loose or T[r + LOOSE] > 0
        else:
            take_out(T, S, group)
            if group >= T[N_QUEUES]:
                go_on(T, S, W, p, entry, now)
            else:
                if T[trait + PATIENCE] >= 0:
                    remove(S, S[S_LEAVING], S[LEAVING], S[S_LEAVING_ENTRY], task)
                    S[LEAVING] -= 1
                start(T, S, W, r, p, task, rank, came, now)
        group = first_in_turn(T, S)
    if loose:
        bring_back(T, S)
