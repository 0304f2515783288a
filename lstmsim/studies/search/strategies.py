"""The patent's greedy search: EP doubles from 1, VP = min(Hw, NPE // EP), the fewest cycles win.

Source: column-wise LSTM patent (greedy search from EP = 1 under VP <= Hw and VP <= NPE / EP for the fewest cycles with
the latency hidden). It does not say when to stop. To stop at the first EP that is no better is wrong: row blocks that
divide badly at one EP make its cycles tie or rise, and the next EP is better (LSTM of 1536, NPE 65536: EP 8 has 1 row
block, EP 16 has 2, the second half empty, and ties, EP 32 has 3 full ones and is better). So the walk goes on over
ties and over every EP that takes at most `TOLERANCE` more cycles than the best so far, and ends at the first EP that
takes more.

Why that number: `benchmarks/greedy_regret.py` compares rules on random pairs of array and model. Without a tolerance
the walk comes within 1 % of the optimum for two pairs in three, with 2 % for 98 in 100. From 5 % on it misses only an
optimum that no doubling of EP with the widest VP reaches. To look ahead by a fixed number of doublings instead is worse
(two: 91 in 100, three: 98). Random stacks of layers with random latencies and tail units are rougher: there 5 % was
enough for 99.3 of 100, 10 % for 99.7, 20 % for 99.9. Cycles rise fast soon beyond the optimum, so 20 % costs one
simulation more than 2 % does.

The best of all (EP, VP), with a proof where there is one.

Which pairs there are: EP a power of two (or any whole number), VP a unit of every stage or more, EP x VP at most NPE.
Cycles depend on VP only through the row blocks that it makes of each stage, so that one VP for each set of row blocks
stands for all (`candidates.different_vps`). A pair whose tiles alone take longer than the best pair so far cannot be
better (`lstmsim.studies.search.array`). All other pairs are simulated. If they are too many, or one of them is too
large to be simulated, the result is the best of the pairs tried, and says that it is not proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from lstmsim.base.errors import InputError
from lstmsim.studies.search.array import (
    Least,
    Limits,
    Score,
    between,
    different_vps,
    doublings,
    every_ep,
    useful_vps,
    vp_starts,
    widest_vp,
)
from lstmsim.studies.search.result import Exhaustive, Point, Refused, Walk

#: The walk ends at the first EP that takes more cycles than (1 + this) times the best so far.
TOLERANCE = 0.20


def walk(limits: Limits, npe: int, score: Score, any_ep: bool = False, tolerance: float = TOLERANCE) -> Walk:
    """Walk up from EP = 1 to the first EP that takes too many cycles, and choose the best."""
    path: list[Point] = []
    refused: list[Refused] = []
    stopped = f"EP {2 * doublings(limits, npe)[-1]} would leave fewer than {limits.gates} rows, which one unit needs"
    for ep in doublings(limits, npe):
        if path and ep >= 2 * limits.width:
            stopped = f"EP {ep // 2} holds the longest vector ({limits.width}); a wider one saves no column group"
            break
        answer = score(ep, widest_vp(limits, npe, ep)[0])
        if isinstance(answer, Point):
            path.append(answer)
            best = _best(path)
            if answer.cycles > best.cycles * (1 + tolerance):
                stopped = _too_slow(answer, best, tolerance)
                break
        else:
            refused.append(answer)
            if path:
                stopped = f"EP {ep} cannot be simulated: {answer.reason}"
                break
    if not path:
        reason = refused[0].reason if refused else "there is no EP"
        raise InputError(f"no (EP, VP) of {npe} multipliers can be simulated; (1, {refused[0].vp}): {reason}")
    refined = _refine(limits, npe, score, _best(path)) if any_ep else []
    others = [each for each in refined if isinstance(each, Point)]
    refused += [each for each in refined if isinstance(each, Refused)]
    return Walk(tuple(path), tuple(others), tuple(refused), _best([*path, *others]), stopped)


def _best(points: list[Point]) -> Point:
    return min(points, key=lambda each: each.key)


def _too_slow(point: Point, best: Point, tolerance: float) -> str:
    more = f"{100 * (point.cycles / best.cycles - 1):.1f} % more cycles than EP {best.ep}"
    return f"EP {point.ep} takes {more}; up to {100 * tolerance:.0f} % more are walked over"


def _refine(limits: Limits, npe: int, score: Score, best: Point) -> list[Point | Refused]:
    """Try the EPs around the best one that are no powers of two."""
    eps = between(limits, npe, best.ep // 2, 2 * best.ep)
    return [score(ep, widest_vp(limits, npe, ep)[0]) for ep in eps]


#: Most pairs that are simulated beside the useful ones: half a minute for one small job, minutes for several. With
#: powers of two for EP some thousands were enough for every proof that was tried.
MOST = 50_000

Pair = tuple[int, int]


def all_pairs(limits: Limits, npe: int, any_ep: bool = False) -> tuple[Pair, ...]:
    """List every useful (EP, VP)."""
    return tuple((ep, vp) for ep in _eps(limits, npe, any_ep) for vp in useful_vps(limits, npe, ep))


def best_of_all(limits: Limits, npe: int, score: Score, any_ep: bool = False) -> Exhaustive:
    """Find the best of all useful pairs, which is mostly the optimum; `InputError` if none can be simulated."""
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
    """Find the optimum of all pairs, or the best of the useful pairs and `most` others."""
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
    """Count the (EP, VP) of which no two make the same tiles."""
    starts = vp_starts(limits)
    return sum(len(different_vps(starts, widest_vp(limits, npe, ep)[0])) for ep in _eps(limits, npe, any_ep))


def _eps(limits: Limits, npe: int, any_ep: bool) -> tuple[int, ...]:
    return every_ep(limits, npe) if any_ep else doublings(limits, npe)
