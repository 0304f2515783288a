"""How a unit chooses among the threads of its core: pure functions, one for each name.

The reference engine calls them. The core of the fast engine makes the same choices (`choose`).

Each policy has three arguments:

active: the active thread.
fresh: whether the unit has just switched to that thread, which has not issued yet.
ready: for each thread the cycle from which its next operation may issue; None if it may not issue now.

It returns the chosen thread, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

__all__ = ["POLICIES", "coarse", "fifo", "fine"]

Policy = Callable[[int, bool, Sequence[int | None]], int | None]


def coarse(active: int, fresh: bool, ready: Sequence[int | None]) -> int | None:
    """Choose as coarse-grained multithreading: the active thread, else the next thread in ring order that may issue.

    Source: column-wise LSTM patent, switching of threads on a data hazard.

    >>> coarse(1, False, [0, 5, 0]), coarse(1, False, [0, None, 0]), coarse(1, False, [None, None, None])
    (1, 2, None)
    """
    count = len(ready)
    for thread in chain(range(active, count), range(active)):
        if ready[thread] is not None:
            return thread
    return None


def fine(active: int, fresh: bool, ready: Sequence[int | None]) -> int | None:
    """Choose as fine-grained multithreading: in each cycle the next thread in ring order, the active thread last.

    A thread to which the unit has just switched goes first until it has issued. Otherwise a unit with a switch cost
    would switch for ever.

    >>> fine(1, False, [0, 5, 0]), fine(1, True, [0, 5, 0]), fine(1, False, [None, 5, None])
    (2, 1, 1)
    """
    if fresh:
        return coarse(active, fresh, ready)
    count = len(ready)
    for thread in chain(range(active + 1, count), range(active + 1)):
        if ready[thread] is not None:
            return thread
    return None


def fifo(active: int, fresh: bool, ready: Sequence[int | None]) -> int | None:
    """Choose as first come, first served: the operation that could start first; of equal ones the lowest thread.

    >>> fifo(0, False, [7, 3, None]), fifo(0, False, [3, 3])
    (1, 0)
    """
    waiting = [(cycle, thread) for thread, cycle in enumerate(ready) if cycle is not None]
    return min(waiting)[1] if waiting else None


#: Name -> policy.
POLICIES: Mapping[str, Policy] = {"coarse": coarse, "fine": fine, "fifo": fifo}
