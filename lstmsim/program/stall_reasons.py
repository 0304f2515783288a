"""The names of cycles: one record for each, and the orders that files and engines keep.

Each cycle of a core's accounted unit (the PE array) has exactly one name. A span of a thread may bear one more name
(`ready`). The looks and words of the names are in `lstmsim.analysis.stall_words`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from lstmsim.base.records import record

#: What happens in a cycle of a name. `work`: something issues. `switch`: the unit changes threads. `wait`: an operation
#: lacks something (a cause). `turn`: an operation lacks nothing and waits for its turn. `rest`: no operation is left
#: that could wait.
Kind = Literal["work", "switch", "wait", "turn", "rest"]


@record
class CycleName:
    """One name of cycles.

    name: the name itself, as reports, tables and traces have it.
    kind: what happens in such a cycle (`Kind`).
    span: number among the states of a timeline. Colours in files depend on it; a new name takes the next number.
    cause: for a `wait`, its place in the order in which a thread asks what it lacks (0 first); None for other kinds.
    everywhere: whether every machine has this name. A machine lists the other names that it has.
    before_work: whether a job has such a wait only before its first issue.
    of_cores: whether a cycle of a core can bear the name, or only a span of a thread.
    """

    name: str
    kind: Kind
    span: int
    cause: int | None = None
    everywhere: bool = True
    before_work: bool = False
    of_cores: bool = True


#: All names, in the order in which a core looks for the name of a cycle.
CYCLES = (
    CycleName("busy", "work", 0),
    CycleName("switch", "switch", 1),
    CycleName("hazard", "wait", 2, cause=1),
    CycleName("backpressure", "wait", 4, cause=3),
    CycleName("input", "wait", 3, cause=2),
    CycleName("dispatch", "wait", 5, cause=0, everywhere=False),
    CycleName("reload", "wait", 9, cause=4, everywhere=False, before_work=True),
    CycleName("weights", "wait", 10, cause=5, everywhere=False),
    CycleName("memory", "wait", 11, cause=6, everywhere=False),
    CycleName("contention", "wait", 15, cause=7, everywhere=False),
    CycleName("barrier", "wait", 12, cause=8, everywhere=False),
    CycleName("dependence", "wait", 13, cause=9, everywhere=False),
    CycleName("start", "wait", 14, cause=10, everywhere=False),
    CycleName("activation", "wait", 16, cause=11, everywhere=False),
    CycleName("scan", "wait", 17, cause=12, everywhere=False),
    CycleName("drain", "rest", 6),
    CycleName("ready", "turn", 8, of_cores=False),
    CycleName("idle", "rest", 7),
)


def names_of(*kinds: Kind, cycles: Iterable[CycleName] = CYCLES) -> tuple[str, ...]:
    """The names of these kinds, in the order of `cycles` (all names by default)."""
    return tuple(each.name for each in cycles if each.kind in kinds)


#: The names that a core's cycles can have, in the order in which a core looks for the name of a cycle.
CYCLE_NAMES = tuple(each.name for each in CYCLES if each.of_cores)

#: The names that cycles of every machine can have, in the same order.
MACHINE_NAMES = tuple(each.name for each in CYCLES if each.of_cores and each.everywhere)

#: Why a thread waits, the strongest cause first. A thread that lacks several things waits for the first of them.
CAUSES = names_of("wait", cycles=sorted(CYCLES, key=lambda each: each.cause or 0))

#: The states that a span of a timeline can have. The number of a state is its place here.
SPAN_NAMES = tuple(each.name for each in sorted(CYCLES, key=lambda each: each.span))
