"""The best of all (EP, VP), with a proof where there is one.

Which pairs there are: EP a power of two (or any whole number), VP a unit of every stage or more, EP x VP at most NPE.
Cycles depend on VP only through the row blocks that it makes of each stage, so that one VP for each set of row blocks
stands for all (`candidates.different_vps`). A pair whose tiles alone take longer than the best pair so far cannot be
better (`lstmsim.studies.search.bound`). All other pairs are simulated. If they are too many, or one of them is too
large to be simulated, the result is the best of the pairs tried, and says that it is not proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from lstmsim.base.errors import InputError
from lstmsim.studies.search.bound import Least
from lstmsim.studies.search.candidates import (
    Limits,
    different_vps,
    doublings,
    every_ep,
    useful_vps,
    vp_starts,
    widest_vp,
)
from lstmsim.studies.search.result import Exhaustive, Point, Refused
from lstmsim.studies.search.score import Score

__all__ = ["MOST", "all_pairs", "best_of_all", "best_of_every", "count_pairs"]

#: Most pairs that are simulated beside the useful ones: half a minute for one small job, minutes for several. With
#: powers of two for EP some thousands were enough for every proof that was tried.
MOST = 50_000

Pair = tuple[int, int]


def all_pairs(limits: Limits, npe: int, any_ep: bool = False) -> tuple[Pair, ...]:
    """List every useful (EP, VP).

    any_ep: whether EPs that are no powers of two count too.

    >>> all_pairs(Limits(((4, 100),), (100,)), npe=64)
    ((1, 64), (1, 60), (2, 32), (4, 16), (8, 8), (16, 4))
    """
    return tuple((ep, vp) for ep in _eps(limits, npe, any_ep) for vp in useful_vps(limits, npe, ep))


def best_of_all(limits: Limits, npe: int, score: Score, any_ep: bool = False) -> Exhaustive:
    """Find the best of all useful pairs, which is mostly the optimum; `InputError` if none can be simulated.

    score: simulates a pair.
    any_ep: whether EPs that are no powers of two are tried too.

    >>> score = lambda ep, vp: Point(ep, vp, "", cycles=100 - vp % 61, utilization=0, hazard=0)
    >>> best_of_all(Limits(((4, 100),), (100,)), 64, score).optimum.vp
    60
    """
    tried = _Tried(score)
    for ep, vp in all_pairs(limits, npe, any_ep):
        tried.add(ep, vp)
    tried.need_one(npe)
    return Exhaustive(*tried.counts, tried.best, pairs=len(tried.answers), excluded=0, proven=False)


def best_of_every(
    limits: Limits,
    npe: int,
    score: Score,
    least: Least,
    any_ep: bool = False,
    *,
    most: int = MOST,
    skip: Callable[[int], None] = lambda pairs: None,
) -> Exhaustive:
    """Find the optimum of all pairs, or the best of the useful pairs and `most` others.

    score: simulates a pair.
    least: the cycles that a pair takes at least.
    any_ep: whether EPs that are no powers of two are tried too.
    most: how many pairs beside the useful ones may be tried.
    skip: is called with numbers of pairs that need no simulation.
    `InputError` if no pair can be simulated.

    >>> score = lambda ep, vp: Point(ep, vp, "", cycles=100 - (vp == 48), utilization=0, hazard=0)
    >>> search = best_of_every(Limits(((4, 100),), (100,)), 64, score, lambda ep, vp: 2000 // vp)
    >>> search.optimum.vp, search.pairs, search.simulated, search.excluded, search.proven
    (48, 31, 17, 14, True)
    """
    eps, starts = _eps(limits, npe, any_ep), vp_starts(limits)
    vps = {ep: different_vps(starts, widest_vp(limits, npe, ep)[0]) for ep in eps}
    tried = _Tried(score)
    for ep in (each for each in eps if each & (each - 1) == 0):
        tried.add(ep, vps[ep][0])
    tried.need_one(npe)
    # The likely pairs come first, for a good pair excludes more of the others.
    for ep in eps:
        _try(tried, ep, [vp for vp in useful_vps(limits, npe, ep) if vp in vps[ep]], least, inf)
    room, excluded = len(tried.answers) + most, 0
    for ep in sorted(eps, key=tried.promise):
        left = [vp for vp in vps[ep] if (ep, vp) not in tried.answers]
        before = len(tried.answers)
        excluded += _try(tried, ep, left, least, room)
        skip(len(left) - (len(tried.answers) - before))
    pairs = sum(map(len, vps.values()))
    proven = len(tried.answers) + excluded == pairs and not tried.gap(least)
    return Exhaustive(*tried.counts, tried.best, pairs, excluded, proven)


def _try(tried: _Tried, ep: int, vps: Sequence[int], least: Least, room: float) -> int:
    """Try the VPs of an EP, the widest first, that may be better than the best; count the VPs that cannot be."""
    excluded = 0
    for number, vp in enumerate(vps):
        if (ep, vp) in tried.answers:
            continue
        bound = least(ep, vp)
        if bound > tried.best.cycles:
            return excluded + len(vps) - number
        if (bound, ep, vp) > tried.best.key:
            excluded += 1
        elif len(tried.answers) < room:
            tried.add(ep, vp)
        else:
            break
    return excluded


class _Tried:
    """The pairs that were tried, and the best of them."""

    best: Point

    def __init__(self, score: Score) -> None:
        self.score = score
        self.answers: dict[Pair, Point | Refused] = {}
        self.by_ep: dict[int, Point] = {}
        self.points = 0

    def add(self, ep: int, vp: int) -> None:
        """Simulate a pair and note the answer."""
        answer = self.answers[ep, vp] = self.score(ep, vp)
        if isinstance(answer, Point):
            self.points += 1
            self.by_ep[ep] = min(self.by_ep.get(ep, answer), answer, key=lambda each: each.key)
            self.best = min(self.best, answer, key=lambda each: each.key) if self.points > 1 else answer

    def need_one(self, npe: int) -> None:
        """`InputError` if no pair could be simulated."""
        if not self.points:
            raise InputError(f"no (EP, VP) of {npe} multipliers can be simulated")

    @property
    def counts(self) -> tuple[int, int]:
        """Pairs simulated, and pairs refused."""
        return self.points, len(self.answers) - self.points

    def promise(self, ep: int) -> tuple[bool, float, int]:
        """The sorting key of an EP: its best cycles so far, EPs without a simulated pair last."""
        return ep not in self.by_ep, self.by_ep.get(ep, self.best).cycles, ep

    def gap(self, least: Least) -> bool:
        """Whether a pair that was too large to be simulated may be better than the best."""
        refused = [each for each in self.answers.values() if isinstance(each, Refused) and each.too_large]
        return any((least(each.ep, each.vp), each.ep, each.vp) < self.best.key for each in refused)


def count_pairs(limits: Limits, npe: int, any_ep: bool = False) -> int:
    """Count the (EP, VP) of which no two make the same tiles.

    >>> count_pairs(Limits(((4, 100),), (100,)), npe=64)
    31
    """
    starts = vp_starts(limits)
    return sum(len(different_vps(starts, widest_vp(limits, npe, ep)[0])) for ep in _eps(limits, npe, any_ep))


def _eps(limits: Limits, npe: int, any_ep: bool) -> tuple[int, ...]:
    return every_ep(limits, npe) if any_ep else doublings(limits, npe)
