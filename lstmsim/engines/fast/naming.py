"""Names for the cycles of a core's accounted unit, as the loop of the fast engine comes past them.

The rules are those of `lstmsim.metrics.accounts`, which reads them off a trace.
"""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.layout import (
    ACCOUNTED,
    CONTEXT0,
    CONTEXTS,
    COUNTED,
    DRAIN,
    IDLE,
    LEFT,
    N_CAUSES,
    N_UNITS,
    NAME_OF_CAUSE,
    NAMED,
    READY,
    S_CONTEXT,
    S_CONTEXT_SIZE,
    S_CORE,
    S_CORE_SIZE,
    S_STREAM,
    S_STREAM_SIZE,
    T_CORE,
    T_CORE_SIZE,
    TASK,
    UNTIL,
)

__all__ = ["account", "take"]


def name_of(T: Any, S: Any, core: int, now: int) -> int:
    """The name of a cycle in which nothing issues, the strongest of its threads'."""
    f = T[T_CORE] + core * T_CORE_SIZE
    name = IDLE
    for c in range(T[f + CONTEXT0], T[f + CONTEXT0] + T[f + CONTEXTS]):
        if S[S[S_CONTEXT] + c * S_CONTEXT_SIZE + TASK] >= 0:
            s = S[S_STREAM] + (c * T[N_UNITS] + T[f + ACCOUNTED]) * S_STREAM_SIZE
            if S[s + LEFT] == 0:
                name = min(name, DRAIN)
            elif S[s + READY] > now:
                for cause in range(N_CAUSES):
                    if now < S[s + UNTIL + cause]:
                        name = min(name, NAME_OF_CAUSE[cause])
                        break
    return name


def next_change(T: Any, S: Any, core: int, now: int, upto: int) -> int:
    """The first cycle after `now` at which one of the causes stops to hold a thread back, at most `upto`."""
    f = T[T_CORE] + core * T_CORE_SIZE
    for c in range(T[f + CONTEXT0], T[f + CONTEXT0] + T[f + CONTEXTS]):
        s = S[S_STREAM] + (c * T[N_UNITS] + T[f + ACCOUNTED]) * S_STREAM_SIZE
        if S[S[S_CONTEXT] + c * S_CONTEXT_SIZE + TASK] >= 0 and S[s + READY] > now and S[s + LEFT] > 0:
            for cause in range(N_CAUSES):
                if S[s + UNTIL + cause] > now:
                    upto = min(upto, S[s + UNTIL + cause])
    return upto


def account(T: Any, S: Any, core: int, upto: int) -> None:
    """Name the core's cycles from the last named one up to `upto`, in which nothing issued."""
    k = S[S_CORE] + core * S_CORE_SIZE
    now = S[k + NAMED]
    while now < upto:
        end = next_change(T, S, core, now, upto)
        S[k + COUNTED + name_of(T, S, core, now)] += end - now
        now = end
    S[k + NAMED] = max(S[k + NAMED], upto)


def take(T: Any, S: Any, core: int, u: int, now: int, cycles: int, name: int) -> None:
    """The accounted unit is busy or switching from `now` on."""
    if u == T[T[T_CORE] + core * T_CORE_SIZE + ACCOUNTED]:
        account(T, S, core, now)
        k = S[S_CORE] + core * S_CORE_SIZE
        S[k + COUNTED + name] += cycles
        S[k + NAMED] = now + cycles
