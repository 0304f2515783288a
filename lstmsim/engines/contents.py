"""What lies in the memories of cores: whether a task finds there what it needs, or room for it."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.layout import (
    CAPACITY,
    N_CONTENTS,
    NEVER,
    S_HELD,
    S_HELD_SIZE,
    STAMP,
    STAMPS,
    T_CONTENT,
    T_CORE,
    T_CORE_SIZE,
    USERS,
)

__all__ = ["enter", "has_room", "holds", "let_go"]


def holds(T: Any, S: Any, core: int, content: int) -> bool:
    """Whether a core has what a task needs, or no memory that matters."""
    if T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY] < 0:
        return True
    return bool(S[S[S_HELD] + (core * T[N_CONTENTS] + content) * S_HELD_SIZE + STAMP] > 0)


def has_room(T: Any, S: Any, core: int, content: int) -> bool:
    """Whether it is there or fits beside what running tasks use."""
    if holds(T, S, core, content):
        return True
    h = S[S_HELD] + core * T[N_CONTENTS] * S_HELD_SIZE
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


def enter(T: Any, S: Any, core: int, content: int) -> None:
    """A task that needs it begins on the core."""
    if T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY] >= 0:
        h = S[S_HELD] + (core * T[N_CONTENTS] + content) * S_HELD_SIZE
        if S[h + STAMP] == 0:
            make_room(T, S, core, T[T[T_CONTENT] + content])
        S[h + USERS] += 1
        S[STAMPS] += 1
        S[h + STAMP] = S[STAMPS]


def let_go(T: Any, S: Any, core: int, content: int) -> None:
    """A task that needed it has finished on the core."""
    if T[T[T_CORE] + core * T_CORE_SIZE + CAPACITY] >= 0:
        h = S[S_HELD] + (core * T[N_CONTENTS] + content) * S_HELD_SIZE
        S[h + USERS] -= 1
        S[STAMPS] += 1
        S[h + STAMP] = S[STAMPS]
