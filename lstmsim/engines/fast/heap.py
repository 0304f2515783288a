"""Heaps in the flat state: entries of three numbers, the smallest first; the third is a task.

`where` is the address of a table with the address of each task's entry, so that a task can leave from the middle.
"""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.layout import HEAP_SIZE

__all__ = ["before", "pop", "push", "remove"]


def before(S: Any, a: int, b: int) -> bool:
    """Whether the entry at address a comes before the one at b."""
    for place in range(HEAP_SIZE):
        if S[a + place] != S[b + place]:
            return bool(S[a + place] < S[b + place])
    return False


def swap(S: Any, a: int, b: int, where: int) -> None:
    """Exchange two entries."""
    for place in range(HEAP_SIZE):
        S[a + place], S[b + place] = S[b + place], S[a + place]
    S[where + S[a + 2]], S[where + S[b + 2]] = a, b


def rise(S: Any, heap: int, at: int, where: int) -> None:
    """Move an entry up to where it belongs."""
    while at > 0:
        above = (at - 1) // 2
        if not before(S, heap + at * HEAP_SIZE, heap + above * HEAP_SIZE):
            return
        swap(S, heap + at * HEAP_SIZE, heap + above * HEAP_SIZE, where)
        at = above


def sink(S: Any, heap: int, count: int, at: int, where: int) -> None:
    """Move an entry of a heap of `count` down to where it belongs."""
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and before(S, heap + (below + 1) * HEAP_SIZE, heap + below * HEAP_SIZE):
            below += 1
        if not before(S, heap + below * HEAP_SIZE, heap + at * HEAP_SIZE):
            return
        swap(S, heap + at * HEAP_SIZE, heap + below * HEAP_SIZE, where)
        at = below


def push(S: Any, heap: int, count: int, where: int, first: int, second: int, task: int) -> None:
    """Add an entry to the heap of `count` entries that begins at address `heap`."""
    entry = heap + count * HEAP_SIZE
    S[entry], S[entry + 1], S[entry + 2] = first, second, task
    S[where + task] = entry
    rise(S, heap, count, where)


def pop(S: Any, heap: int, count: int, where: int) -> None:
    """Take the first entry away from a heap of `count` entries; it lies right behind the others then."""
    swap(S, heap, heap + (count - 1) * HEAP_SIZE, where)
    sink(S, heap, count - 1, 0, where)


def remove(S: Any, heap: int, count: int, where: int, task: int) -> None:
    """Take the entry of a task away from a heap of `count` entries; it lies right behind the others then."""
    entry, last = S[where + task], heap + (count - 1) * HEAP_SIZE
    swap(S, entry, last, where)
    if entry != last:
        at = (entry - heap) // HEAP_SIZE
        rise(S, heap, at, where)
        sink(S, heap, count - 1, at, where)
