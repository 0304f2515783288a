"""What lies in the memories of cores: whether a task finds there what it needs, or room for it."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.layout import (
    ASKED,
    AT_CORE,
    CAPACITY,
    CONTENT,
    DONE_AT,
    FINISH,
    FIRST_THERE,
    LENGTH,
    LOADED,
    LOADING,
    LOADS,
    N_CONTENTS,
    NEVER,
    NEXT,
    ON_WAY,
    OPEN,
    PHASE0,
    REPEAT,
    S_HELD,
    S_HELD_SIZE,
    SEAT0,
    SEATS,
    STAMP,
    STAMPS,
    STREAM0,
    STREAM_STEP,
    T_CONTENT,
    T_CORE,
    T_CORE_SIZE,
    T_PHASE_SIZE,
    T_SEAT_SIZE,
    T_STREAM_SIZE,
    T_TASK,
    T_TASK_SIZE,
    TASK,
    TRAIT,
    USERS,
)

__all__ = ["fill", "has_room", "holds", "let_go", "load", "loaded", "to_load"]


def holds(T: Any, S: Any, core: int, content: int) -> bool:
    """Whether a core has what a task needs, or no memory that matters."""
    if T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY] < 0:
        return True
    return bool(S[S[S_HELD] + (core * T[N_CONTENTS] + content) * S_HELD_SIZE + STAMP] > 0)


def has_room(T: Any, S: Any, core: int, content: int) -> bool:
    """Whether it is there (and not only on its way) or fits beside what running tasks use."""
    if T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY] < 0:
        return True
    h = S[S_HELD] + core * T[N_CONTENTS] * S_HELD_SIZE
    if S[h + content * S_HELD_SIZE + STAMP] > 0:
        return bool(S[h + content * S_HELD_SIZE + ON_WAY] == 0)
    used = T[T[T_CONTENT] + content]
    for other in range(T[N_CONTENTS]):
        if S[h + other * S_HELD_SIZE + USERS] > 0:
            used += T[T[T_CONTENT] + other]
    return bool(used <= T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY])


def make_room(T: Any, S: Any, core: int, size: int) -> None:
    """Drop what no running task uses, the least recently used first, until there is room for so much more."""
    h = S[S_HELD] + core * T[N_CONTENTS] * S_HELD_SIZE
    total = size
    for other in range(T[N_CONTENTS]):
        if S[h + other * S_HELD_SIZE + STAMP] > 0:
            total += T[T[T_CONTENT] + other]
    while total > T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY]:
        oldest, least = -1, NEVER
        for other in range(T[N_CONTENTS]):
            stamp = S[h + other * S_HELD_SIZE + STAMP]
            if 0 < stamp < least and S[h + other * S_HELD_SIZE + USERS] == 0:
                oldest, least = other, stamp
        S[h + oldest * S_HELD_SIZE + STAMP] = 0
        total -= T[T[T_CONTENT] + oldest]


def enter(T: Any, S: Any, core: int, content: int, loads: int) -> None:
    """A task that needs it begins on the core; it is on its way if the task has operations that load it."""
    if T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY] >= 0:
        h = S[S_HELD] + (core * T[N_CONTENTS] + content) * S_HELD_SIZE
        if S[h + STAMP] == 0:
            make_room(T, S, core, T[T[T_CONTENT] + content])
            S[h + ON_WAY] = 1 if loads > 0 else 0
        S[h + USERS] += 1
        S[STAMPS] += 1
        S[h + STAMP] = S[STAMPS]


def arrived(T: Any, S: Any, core: int, content: int) -> None:
    """All of it is on the core now."""
    if T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY] >= 0:
        S[S[S_HELD] + (core * T[N_CONTENTS] + content) * S_HELD_SIZE + ON_WAY] = 0


def let_go(T: Any, S: Any, core: int, content: int) -> None:
    """A task that needed it has finished on the core."""
    if T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY] >= 0:
        h = S[S_HELD] + (core * T[N_CONTENTS] + content) * S_HELD_SIZE
        S[h + USERS] -= 1
        S[STAMPS] += 1
        S[h + STAMP] = S[STAMPS]


def to_load(T: Any, variant: int, phases: int) -> int:
    """How many operations the first phases of a task have in all."""
    number = 0
    g, a = T[variant + PHASE0], T[variant + STREAM0]
    for _ in range(phases):
        end = a + T[variant + STREAM_STEP]
        while a < end:
            number += T[a + LENGTH] * T[g + REPEAT]
            a += T_STREAM_SIZE
        g += T_PHASE_SIZE
    return number


def fill(T: Any, S: Any, p: int, content: int, loads: int) -> bool:
    """A task with a content begins at a place: whether all of its cores hold that already, else it has so many
    operations that load it."""
    warm = True
    for seat in range(T[p + SEATS]):
        a = T[p + SEAT0] + seat * T_SEAT_SIZE
        warm = warm and holds(T, S, T[a], content)
    for seat in range(T[p + SEATS]):
        a = T[p + SEAT0] + seat * T_SEAT_SIZE
        if T[a + FIRST_THERE] > 0:
            enter(T, S, T[a], content, 0 if warm else loads)
    return warm


def loaded(T: Any, S: Any, lead: int) -> None:
    """All of a task's content is on its cores now."""
    content = T[T[T[T_TASK] + S[lead + TASK] * T_TASK_SIZE + TRAIT] + CONTENT]
    x = lead
    while x >= 0:
        arrived(T, S, S[x + AT_CORE], content)
        x = S[x + NEXT]
    S[lead + ASKED] = 0
    S[lead + FINISH] = S[lead + DONE_AT] if S[lead + OPEN] == 0 else NEVER


def load(T: Any, S: Any, lead: int, phase: int, there: int) -> None:
    """An operation has issued while a task's content is on its way; its results are `there`."""
    if phase < T[T[T[T_TASK] + S[lead + TASK] * T_TASK_SIZE + TRAIT] + LOADING]:
        S[lead + LOADED] = max(S[lead + LOADED], there)
        S[lead + LOADS] -= 1
        if S[lead + LOADS] == 0:
            S[lead + FINISH], S[lead + ASKED] = S[lead + LOADED], 3
