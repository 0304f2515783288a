"""The loop of the fast engine, from event to event, on two flat sequences (`lstmsim.engines.fast.layout`).

Every function here and in the modules below it runs as it stands on Python lists, and compiled on arrays
(`lstmsim.engines.fast.compiled`): only loops, indices and whole numbers; nothing is allocated.

Clock rules (see `lstmsim.program.program`), and how they are kept here:

1. A core has a clock of its own, some offset behind the machine's; skipping whole periods moves the offset alone.
2. Between two admissions a core depends on nothing but itself. `drive` lets each core go on to its last event before
   the next arrival (or end of a patience) and before its next finish; what is due then takes effect, tasks are
   admitted, and so on. Where tasks have several cores or contents, or may be paused, all cores go on event by event
   together (`horizon`).
3. Waits are computed when a cursor moves on (`streams`). Delays are at least 1, so nothing issued now changes a choice
   made now, and each free unit chooses once a cycle.
4. A unit chooses as the policies of `lstmsim.program.policy` do (`issuing`).
5. If no core has an event and tasks are unfinished, the program is stuck.
"""

from __future__ import annotations

from typing import Any

from lstmsim.engines.fast.admission import admit
from lstmsim.engines.fast.arriving import arrive, give_up, next_look
from lstmsim.engines.fast.issuing import turn
from lstmsim.engines.fast.layout import (
    ARRIVED,
    BUDGET,
    COMES,
    COMING,
    CONTEXT0,
    CONTEXTS,
    FINISH,
    FINISHED,
    FREE_AT,
    KEEP,
    LINKED,
    LOOK,
    MARGIN,
    MORE,
    N_ARRIVALS,
    N_CORES,
    N_TASKS,
    N_UNITS,
    NEVER,
    NOW,
    OCCUPIED,
    OFFSET,
    READY,
    ROOM,
    ROWS,
    S_CONTEXT,
    S_CONTEXT_SIZE,
    S_CORE,
    S_CORE_SIZE,
    S_STREAM,
    S_STREAM_SIZE,
    S_UNIT,
    S_UNIT_SIZE,
    SKIPPING,
    SWITCHES,
    T_CORE,
    T_CORE_SIZE,
    UNITS,
    WRAPPED,
)
from lstmsim.engines.fast.periods import look_for_period
from lstmsim.engines.fast.seating import leave

__all__ = ["DONE", "HUNGRY", "PAUSED", "STUCK", "drive"]

#: Why `drive` came back: all tasks are finished, there is no room or no budget to go on, nothing can start, or it wants
#: to know which task comes next.
DONE, PAUSED, STUCK, HUNGRY = 0, 1, 2, 3


def next_event(T: Any, S: Any, core: int) -> int:
    """The cycle, on the core's clock, at which a unit of the core can do something next."""
    f = T[T_CORE] + core * T_CORE_SIZE
    step = T[N_UNITS] * S_STREAM_SIZE
    soonest: int = NEVER
    for u in range(T[f + UNITS]):
        place = S[S_STREAM] + (T[f + CONTEXT0] * T[N_UNITS] + u) * S_STREAM_SIZE + READY
        ready = S[place]
        for _ in range(T[f + CONTEXTS] - 1):
            place += step
            if S[place] < ready:
                ready = S[place]
        free = S[S[S_UNIT] + (core * T[N_UNITS] + u) * S_UNIT_SIZE + FREE_AT]
        if ready < free:
            ready = free if ready < NEVER else NEVER
        if ready < soonest:
            soonest = ready
    now: int = S[S[S_CORE] + core * S_CORE_SIZE + NOW]
    return max(soonest, now)


def first_finish(T: Any, S: Any, core: int) -> int:
    """The cycle, on the core's clock, at which its next task finishes, as far as is known."""
    f = T[T_CORE] + core * T_CORE_SIZE
    soonest = NEVER
    for c in range(T[f + CONTEXT0], T[f + CONTEXT0] + T[f + CONTEXTS]):
        soonest = min(soonest, S[S[S_CONTEXT] + c * S_CONTEXT_SIZE + FINISH])
    return soonest


def advance(T: Any, S: Any, R: Any, W: Any, core: int, stop: int) -> bool:
    """Go on to the core's last event before cycle `stop` of the machine and before any finish; False if the trace has
    no room for another row or the budget of events is used up."""
    k = S[S_CORE] + core * S_CORE_SIZE
    units = T[T[T_CORE] + core * T_CORE_SIZE + UNITS]
    while True:
        if S[BUDGET] <= 0 or (S[KEEP] > 0 and max(S[ROWS], S[SWITCHES]) + units > S[ROOM]):
            return False
        S[BUDGET] -= units
        if S[k + WRAPPED] > 0:
            S[k + WRAPPED] = 0
            if S[SKIPPING] > 0:
                look_for_period(T, S, core, min(stop - S[k + OFFSET], first_finish(T, S, core)))
        now = next_event(T, S, core)
        if now >= stop - S[k + OFFSET] or now >= first_finish(T, S, core):
            return True
        S[k + NOW] = now
        for u in range(units):
            if S[S[S_UNIT] + (core * T[N_UNITS] + u) * S_UNIT_SIZE + FREE_AT] <= now:
                turn(T, S, R, W, core, u, now)


def horizon(T: Any, S: Any, look: int) -> int:
    """Up to where all cores may go on their own, on the machine's clock: the next `look` at tasks that wait or, where a
    finish on one core may bring a task to another, the first cycle in which a core could finish one. No core goes on
    past a cycle in which another does something that it may depend on."""
    if T[LINKED] == 0 or T[N_CORES] == 1:
        return look
    soonest = look
    for core in range(T[N_CORES]):
        k = S[S_CORE] + core * S_CORE_SIZE
        if S[k + OCCUPIED] > 0:
            # what issues next has its results a cycle later at the earliest
            event = next_event(T, S, core)
            S[k + COMES] = event + S[k + OFFSET]
            finish = min(first_finish(T, S, core), event + 1)
            if finish < NEVER:
                soonest = min(soonest, finish + S[k + OFFSET])
    return soonest


def drive(T: Any, S: Any, R: Any, W: Any) -> int:
    """Run all tasks: `DONE`, `STUCK`, or `PAUSED` or `HUNGRY`, after which it goes on where it stopped.

    `R` and `W` take the rows of the trace's issues and switches.
    """
    cores = range(T[N_CORES])
    while True:
        if S[MORE] > 0 and S[ARRIVED] == T[N_ARRIVALS]:
            return HUNGRY
        look = next_look(T, S)
        upto = horizon(T, S, look)
        now = look
        for core in cores:
            k = S[S_CORE] + core * S_CORE_SIZE
            if S[k + OCCUPIED] > 0:
                if S[k + COMES] < upto and not advance(T, S, R, W, core, upto):
                    return PAUSED
                finish = first_finish(T, S, core)
                if finish < NEVER:
                    now = min(now, finish + S[k + OFFSET])
        if now > upto:
            continue
        if now >= NEVER:
            return DONE if S[FINISHED] == T[N_TASKS] else STUCK
        if S[KEEP] > 0 and T[MARGIN] > 0 and max(S[ROWS], S[SWITCHES]) + T[MARGIN] > S[ROOM]:
            return PAUSED
        changed = S[LOOK] <= now
        for core in cores:
            k = S[S_CORE] + core * S_CORE_SIZE
            if S[k + OCCUPIED] > 0 and leave(T, S, core, now - S[k + OFFSET]):
                changed = True
        if give_up(T, S, now):
            changed = True
        if arrive(T, S, now, 0):
            changed = True
        if changed:
            S[LOOK] = NEVER
            admit(T, S, R, W, now)
            # those who follow one that found its queue full in this very cycle
            round = 1
            while S[COMING] > 0 and arrive(T, S, now, round):
                admit(T, S, R, W, now)
                round += 1
