"""How a unit chooses among the threads of its core: pure functions, one for each name.

The reference engine calls them. The core of the fast engine makes the same choices (`choose`).

Each policy has three arguments:

active: the active thread.
fresh: whether the unit has just switched to that thread, which has not issued yet.
ready: thread -> the cycle from which its next operation may issue, for each thread that may issue now.

It returns the chosen thread, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Policy = Callable[[int, bool, Mapping[int, int]], int | None]


def coarse(active: int, fresh: bool, ready: Mapping[int, int]) -> int | None:
    """Choose as coarse-grained multithreading: the active thread, else the next thread in ring order that may issue.

    Source: column-wise LSTM patent, switching of threads on a data hazard.

    >>> coarse(1, False, {0: 0, 1: 5, 2: 0}), coarse(1, False, {0: 0, 2: 0}), coarse(1, False, {})
    (1, 2, None)
    """
    return min(ready, key=lambda thread: (thread < active, thread), default=None)


def fine(active: int, fresh: bool, ready: Mapping[int, int]) -> int | None:
    """Choose as fine-grained multithreading: in each cycle the next thread in ring order, the active thread last.

    A thread to which the unit has just switched goes first until it has issued. Otherwise a unit with a switch cost
    would switch for ever.

    >>> fine(1, False, {0: 0, 1: 5, 2: 0}), fine(1, True, {0: 0, 1: 5, 2: 0}), fine(1, False, {1: 5})
    (2, 1, 1)
    """
    if fresh:
        return coarse(active, fresh, ready)
    return min(ready, key=lambda thread: (thread <= active, thread), default=None)


def fifo(active: int, fresh: bool, ready: Mapping[int, int]) -> int | None:
    """Choose as first come, first served: the operation that could start first; of equal ones the lowest thread.

    >>> fifo(0, False, {0: 7, 1: 3}), fifo(0, False, {0: 3, 1: 3})
    (1, 0)
    """
    return min(ready, key=lambda thread: (ready[thread], thread), default=None)


#: Name -> policy.
POLICIES: Mapping[str, Policy] = {"coarse": coarse, "fine": fine, "fifo": fifo}
