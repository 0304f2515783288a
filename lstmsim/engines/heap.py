"""Heaps in the flat state: entries of three numbers, the smallest first."""

from __future__ import annotations

from typing import Any

from lstmsim.engines.layout import HEAP_SIZE

__all__ = ["pop", "push"]


def before(S: Any, a: int, b: int) -> bool:
    """Whether the entry at address a comes before the one at b."""
    for place in range(HEAP_SIZE):
        if S[a + place] != S[b + place]:
            return bool(S[a + place] < S[b + place])
    return False


def swap(S: Any, a: int, b: int) -> None:
    """Exchange two entries."""
    for place in range(HEAP_SIZE):
        S[a + place], S[b + place] = S[b + place], S[a + place]


def push(S: Any, heap: int, count: int, first: int, second: int, third: int) -> None:
    """Add an entry to the heap of `count` entries that begins at address `heap`."""
    at = count
    entry = heap + at * HEAP_SIZE
    S[entry], S[entry + 1], S[entry + 2] = first, second, third
    while at > 0:
        above = (at - 1) // 2
        if not before(S, heap + at * HEAP_SIZE, heap + above * HEAP_SIZE):
            return
        swap(S, heap + at * HEAP_SIZE, heap + above * HEAP_SIZE)
        at = above


def pop(S: Any, heap: int, count: int) -> None:
    """Take the first entry away from a heap of `count` entries."""
    last = count - 1
    swap(S, heap, heap + last * HEAP_SIZE)
    at = 0
    while 2 * at + 1 < last:
        below = 2 * at + 1
        if below + 1 < last and before(S, heap + (below + 1) * HEAP_SIZE, heap + below * HEAP_SIZE):
            below += 1
        if not before(S, heap + below * HEAP_SIZE, heap + at * HEAP_SIZE):
            return
        swap(S, heap + at * HEAP_SIZE, heap + below * HEAP_SIZE)
        at = below
