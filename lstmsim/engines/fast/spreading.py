"""Tasks that take all free ones of their cores if nobody else waits for them: on how many, how, and which (`Wide`)."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.layout import (
    ASIDE,
    CONTEXTS,
    FIRST0,
    FIRST_END,
    GROUP,
    KIND,
    N_GROUPS,
    N_KINDS,
    N_WIDE,
    OCCUPIED,
    OWN0,
    OWN_END,
    PLACE0,
    PLACES,
    S_CORE,
    S_CORE_SIZE,
    S_GROUP,
    S_GROUP_SIZE,
    S_TASKS,
    SEAT0,
    SPREADS,
    T_CORE,
    T_CORE_SIZE,
    T_GROUP,
    T_GROUP_SIZE,
    T_PLACE_SIZE,
    T_SEAT_SIZE,
    T_TASK,
    T_TASK_SIZE,
    T_VARIANT,
    T_VARIANT_OF,
    T_VARIANT_SIZE,
    TASK_SIZE,
    TRAIT,
    WAITERS,
)

__all__ = ["note_taken", "spread", "variant_at"]


def others_wait(T: Any, S: Any, r: int) -> bool:
    """Whether a task waits (that is in a group still) that could use one of the cores of a group (r: its record)."""
    for group in range(T[N_GROUPS]):
        q, o = S[S_GROUP] + group * S_GROUP_SIZE, T[T_GROUP] + group * T_GROUP_SIZE
        if S[q + WAITERS] + S[q + ASIDE] > 0:
            for a in range(T[o + OWN0], T[o + OWN_END]):
                for b in range(T[r + OWN0], T[r + OWN_END]):
                    if T[a] == T[b]:
                        return True
    return False


def spread(T: Any, S: Any, r: int, task: int) -> int:
    """How many of its cores a task of a group, which has found a place and waits no more, takes at once."""
    if others_wait(T, S, r):
        return 1
    members: int = 0
    for a in range(T[r + FIRST0], T[r + FIRST_END]):
        if S[S[S_CORE] + T[a] * S_CORE_SIZE + OCCUPIED] < T[T[T_CORE] + T[a] * T_CORE_SIZE + CONTEXTS]:
            members += 1
    members = min(members, T[N_WIDE] + 1)
    wide = T[T_VARIANT_OF] + (task + 1) * T[N_KINDS] - T[N_WIDE] - 2
    while members > 1 and T[wide + members] < 0:
        members -= 1
    return max(members, 1)


def variant_at(T: Any, p: int, members: int, task: int) -> int:
    """The variant of a task at a place, on so many of its cores."""
    kind = T[T[T_CORE] + T[T[p + SEAT0]] * T_CORE_SIZE + KIND]
    trait = T[T[T_TASK] + task * T_TASK_SIZE + TRAIT]
    if members > 1 and T[trait + SPREADS] > 0:
        kind = T[N_KINDS] - T[N_WIDE] + members - 2
    variant: int = T[T_VARIANT] + T[T[T_VARIANT_OF] + task * T[N_KINDS] + kind] * T_VARIANT_SIZE
    return variant


def note_taken(T: Any, S: Any, task: int, core: int) -> None:
    """Write down which of its cores a task that spreads takes."""
    trait = T[T[T_TASK] + task * T_TASK_SIZE + TRAIT]
    if T[trait + SPREADS] > 0:
        r = T[T_GROUP] + T[trait + GROUP] * T_GROUP_SIZE
        a = T[T[r + PLACE0] + T[r + PLACES] * T_PLACE_SIZE + SEAT0]
        bit = 1
        while T[a] != core:
            a += T_SEAT_SIZE
            bit *= 2
        S[S[S_TASKS] + task * TASK_SIZE + 6] += bit
