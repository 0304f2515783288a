"""Measures whether jobs that never stall keep the other threads of coarse-grained cores out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.traffic.latencies import sum_of
from lstmsim.traffic.tenants import Rows

__all__ = ["Coarse", "Sharing"]

Ints = NDArray[np.int64]

#: Ratios are summed in units of 2^-20: whole numbers, so that no grouping of requests changes the sum.
_UNIT = 2**20
#: How many jobs that never stall are looked back at on each core.
_REMEMBERED = 4096
#: No more remarks than this.
_SAID = 4


@record
class Coarse:
    """A coarse-grained core that has several threads.

    threads: how many.
    remedy: what would let them share the core's main unit, a sentence without a full stop; empty if nothing would.
    """

    threads: int
    remedy: str = ""


class Sharing:
    """Measures how much longer requests take on cores where threads share a unit, and which jobs that is due to.

    A job that never stalls keeps a coarse-grained unit from its first tile to its end: for about as long as it takes
    alone, right before it finishes. So a request was kept out, at least, in those cycles of all other such jobs that
    ended in its time.

    coarse: the coarse-grained cores that have several threads, by number.

    >>> sharing = Sharing({0: Coarse(2)})
    >>> columns = [np.array(each) for each in ([0, 0], [0, 0], [900, 1000], [9000, 9000], [1, 1], [900, 100])]
    >>> sharing.take(np.array([0, 1]), Rows(*columns, np.array([0, 0]), np.array([0, 1]), np.array([0, 0])))
    >>> sharing.remarks(["long", "short"])[0]
    'long never stalls: on core 0, whose 2 threads are coarse-grained, it keeps the others out while it runs. ...'
    """

    def __init__(self, coarse: Mapping[int, Coarse]) -> None:
        self.coarse = dict(coarse)
        #: By core: finishes, cycles alone and tenants of the last jobs that never stall.
        self._past = {core: np.zeros((3, 0), dtype=np.int64) for core in self.coarse}
        #: By core: for how long each tenant's jobs that never stall have had the unit.
        self._held = {core: Counter[int]() for core in self.coarse}
        #: By tenant and core: the number of requests, and sums over them: service time / cycles alone; cycles beyond
        #: those alone; of the cycles beyond, those in which the request was kept out.
        self._sums: dict[tuple[int, int], Ints] = {}

    def take(self, places: Ints, rows: Rows) -> None:
        """Count these requests.

        places: places of their tenants, shape [requests].
        rows: the requests.
        """
        for core in self.coarse:
            own = np.flatnonzero((rows.core == core) & (rows.servers > 0) & (rows.alone > 0))
            if len(own):
                self._take(core, places[own], rows.of(own))

    def _take(self, core: int, places: Ints, rows: Rows) -> None:
        """Count requests of one core."""
        keeps = rows.stalls == 0
        more = np.stack([rows.finish[keeps], rows.alone[keeps], places[keeps]])
        past = np.concatenate([self._past[core], more], axis=1)
        service = rows.finish - rows.start - rows.paused
        longer = np.maximum(service - rows.alone, 0)
        ratio = np.rint(service / rows.alone * _UNIT).astype(np.int64)
        for place in np.unique(places).tolist():
            own = places == place
            held = np.minimum(_kept_out(past, place, rows.start[own], rows.finish[own]), longer[own])
            sums = [int(own.sum()), sum_of(ratio[own]), sum_of(longer[own]), sum_of(held)]
            self._sums[place, core] = self._sums.get((place, core), np.zeros(4, dtype=object)) + np.array(sums, object)
            self._held[core][place] += sum_of(rows.alone[own & keeps])
        self._past[core] = past[:, -_REMEMBERED:]

    def remarks(self, names: Sequence[str]) -> tuple[str, ...]:
        """Give a sentence or two for each core where jobs that never stall hold up another tenant.

        That is said where a tenant takes longer from its start to its finish than equal shares of the unit could
        explain (more than 2 and more than the core's threads times as long as alone), and at least half of that while
        jobs of others that never stall had the unit. Only the worst cases are named.

        names: of the tenants, by place.
        """
        worst: dict[int, tuple[float, int, int]] = {}
        for (place, core), (number, ratios, longer, held) in self._sums.items():
            ratio = ratios / _UNIT / number
            if ratio <= max(2, self.coarse[core].threads) or 2 * held < longer:
                continue
            keeper = max((each for each in self._held[core].items() if each[0] != place), key=lambda each: each[1])[0]
            worst[keeper] = max(worst.get(keeper, (0.0, 0, 0)), (ratio, -core, -place))
        ranked = sorted(worst.items(), key=lambda each: (-each[1][0], each[0]))[:_SAID]
        return tuple(
            self._sentence(names[keeper], names[-place], ratio, -core) for keeper, (ratio, core, place) in ranked
        )

    def _sentence(self, name: str, other: str, ratio: float, core: int) -> str:
        coarse = self.coarse[core]
        remedy = f"; {coarse.remedy}" if coarse.remedy else ""
        return (
            f"{name} never stalls: on core {core}, whose {coarse.threads} threads are coarse-grained, it keeps the "
            f"others out while it runs. There {other} takes {ratio:.3g} times as long from its start to its finish as "
            f"alone, mostly because of such jobs{remedy}."
        )


def _kept_out(past: Ints, place: int, start: Ints, finish: Ints) -> Ints:
    """In how many cycles from its start to its finish each request waited for jobs of others that never stall."""
    ends, alone, whose = past
    cycles = np.where(whose == place, 0, alone)
    until = np.searchsorted(ends, finish, side="left")
    since = np.maximum(np.searchsorted(ends, start, side="right"), until - _REMEMBERED)
    sums = np.concatenate([[0], np.cumsum(cycles)])
    total: Ints = np.where(until > since, sums[until] - sums[np.minimum(since, until)], 0)
    # The first of these jobs may have begun before the request started.
    first = np.minimum(since, max(0, len(ends) - 1))
    before = np.maximum(cycles[first] - (ends[first] - start), 0) if len(ends) else 0
    return total - np.where(until > since, before, 0)
