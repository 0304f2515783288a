"""Whether jobs that never stall keep the other threads of coarse-grained cores out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.serving.tenants import Rows

__all__ = ["Sharing"]

Ints = NDArray[np.int64]

#: Ratios are summed in units of 2^-20: whole numbers, so that no grouping of requests changes the sum.
_UNIT = 2**20
#: More tenants than this that never stall are not named one by one.
_NAMED = 4


class Sharing:
    """Measures how much longer requests take on cores where threads share the array, and who never gives it up.

    `coarse`: the threads of each coarse-grained core that has several, by the core's number.

    >>> sharing = Sharing({0: 2})
    >>> columns = [np.array(each) for each in ([0, 0], [0, 0], [900, 1000], [9000, 9000], [1, 1], [900, 100])]
    >>> sharing.take(np.array([0, 1]), Rows(*columns, np.array([0, 0]), np.array([0, 1]), np.array([0, 0])))
    >>> sharing.remarks(["long", "short"])[0]
    'long never stalls: on core 0, whose 2 threads are coarse-grained, it keeps the others out while it runs. ...'
    """

    def __init__(self, coarse: Mapping[int, int]) -> None:
        self.coarse = dict(coarse)
        #: By tenant and core: requests, those that never stall, the sum of their service times / cycles alone.
        self._sums: dict[tuple[int, int], tuple[int, int, int]] = {}

    def take(self, places: Ints, rows: Rows) -> None:
        """Count these requests; `places` of their tenants, shape [requests]."""
        if not self.coarse:
            return
        shared = np.isin(rows.core, list(self.coarse)) & (rows.servers > 0) & (rows.alone > 0)
        places, rows = places[shared], rows.of(np.flatnonzero(shared))
        service = rows.finish - rows.start - rows.paused
        ratio = np.rint(service / np.maximum(rows.alone, 1) * _UNIT).astype(np.int64)
        pairs, group = np.unique(np.stack([places, rows.core]), axis=1, return_inverse=True)
        for number, (place, core) in enumerate(pairs.T.tolist()):
            own = group.ravel() == number
            more = int(own.sum()), int((rows.stalls[own] == 0).sum()), int(ratio[own].sum())
            before = self._sums.get((place, core), (0, 0, 0))
            self._sums[place, core] = before[0] + more[0], before[1] + more[1], before[2] + more[2]

    def remarks(self, names: Sequence[str]) -> tuple[str, ...]:
        """A sentence or two for each tenant that never stalls, where another one on the same core takes longer from its
        start to its finish than equal shares of the array could explain: more than 2 and more than the core's threads
        times as long as alone. `names` of the tenants, in their order."""
        said = []
        for place, name in enumerate(names):
            cores = [core for (who, core), sums in sorted(self._sums.items()) if who == place and sums[0] == sums[1]]
            worst = max((self._worst(core, place) for core in cores), default=(0.0, 0, 0))
            if worst[0]:
                said.append(self._sentence(name, names[worst[1]], worst[0], worst[2]))
        if len(said) > _NAMED:
            more = f"{len(said) - _NAMED} more tenants that never stall keep other threads out in the same way."
            said = [*said[:_NAMED], more]
        return tuple(said)

    def _worst(self, core: int, place: int) -> tuple[float, int, int]:
        """The largest ratio among the others on a core, whose it is, the core; 0 if it is no larger than fair."""
        others = [
            (sums[2] / _UNIT / sums[0], who, core)
            for (who, where), sums in sorted(self._sums.items())
            if where == core and who != place
        ]
        worst = max(others, default=(0.0, 0, core))
        return worst if worst[0] > max(2, self.coarse[core]) else (0.0, 0, core)

    def _sentence(self, name: str, other: str, ratio: float, core: int) -> str:
        threads = self.coarse[core]
        return (
            f"{name} never stalls: on core {core}, whose {threads} threads are coarse-grained, it keeps the others out "
            f"while it runs. There {other} takes {ratio:.3g} times as long from its start to its finish as alone; "
            f"`thread_policy: fine` shares the array among the threads."
        )
