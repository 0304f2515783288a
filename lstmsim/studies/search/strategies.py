"""The patent's greedy search (EP doubles from 1, VP = min(Hw, NPE // EP)), and the best of all (EP, VP) with a proof.

Why the walk ends where it does, and which pairs there are: docs/decisions/search_and_sweeps.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from lstmsim.studies.sweep.ahead import Ahead

#: The walk ends at the first EP that takes more cycles than (1 + this) times the best so far.
TOLERANCE = 0.20


def walk(limits: Limits, npe: int, score: Score, any_ep: bool = False, tolerance: float = TOLERANCE) -> Walk:
    """Walk up from EP = 1 to the first EP that takes too many cycles, and choose the best."""
    path: list[Point] = []
    refused: list[Refused] = []
    _expect(score, ((ep, widest_vp(limits, npe, ep)[0]) for ep in doublings(limits, npe) if ep < 2 * limits.width))
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
                more = f"{100 * (answer.cycles / best.cycles - 1):.1f} % more cycles than EP {best.ep}"
                stopped = f"EP {ep} takes {more}; up to {100 * tolerance:.0f} % more are walked over"
                break
        else:
            refused.append(answer)
            if path:
                stopped = f"EP {ep} cannot be simulated: {answer.reason}"
                break
    if not path:
        reason = refused[0].reason if refused else "there is no EP"
        raise InputError(f"no (EP, VP) of {npe} multipliers can be simulated; (1, {refused[0].vp}): {reason}")
    at = _best(path).ep
    eps = between(limits, npe, at // 2, 2 * at) if any_ep else ()
    finer = [(ep, widest_vp(limits, npe, ep)[0]) for ep in eps]
    _expect(score, finer)
    refined = [score(*pair) for pair in finer]
    others = [each for each in refined if isinstance(each, Point)]
    refused += [each for each in refined if isinstance(each, Refused)]
    return Walk(tuple(path), tuple(others), tuple(refused), _best([*path, *others]), stopped)


def _expect(score: Score, pairs: Iterable[tuple[int, int]]) -> None:
    """Say which pairs will be asked for next, so that other processes may begin with them."""
    if isinstance(score, Ahead):
        score.expect(pairs)


def _best(points: Iterable[Point]) -> Point:
    return min(points, key=lambda each: each.key)


#: Most pairs that are simulated after the useful ones: half a minute for a small job, minutes for several. With powers
#: of two for EP some thousands were enough for every proof that was tried.
MOST = 50_000


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
    """Find the optimum of all pairs, or the best of the useful ones and `most` others; `InputError` if none can run."""
    eps, starts = _eps(limits, npe, any_ep), vp_starts(limits)
    vps = {ep: different_vps(starts, widest_vp(limits, npe, ep)[0]) for ep in eps}
    tried = _Tried(score, least)
    widest = [(ep, vps[ep][0]) for ep in eps if ep & (ep - 1) == 0]
    _expect(score, widest)
    for pair in widest:
        tried.add(*pair)
    if not tried.points:
        raise InputError(f"no (EP, VP) of {npe} multipliers can be simulated")
    # The likely pairs come first, for a good pair excludes more of the others.
    useful = {ep: [vp for vp in useful_vps(limits, npe, ep) if vp in vps[ep]] for ep in eps}
    _expect(score, tried.hopeful(useful))
    for ep in eps:
        _try(tried, ep, useful[ep], inf)
    budget, excluded = len(tried.answers) + most, 0
    promising = sorted(eps, key=tried.promise)
    _expect(score, tried.hopeful({ep: vps[ep] for ep in promising}))
    for ep in promising:
        left = [vp for vp in vps[ep] if (ep, vp) not in tried.answers]
        before = len(tried.answers)
        excluded += _try(tried, ep, left, budget)
        skip(len(left) - (len(tried.answers) - before))
    pairs = sum(map(len, vps.values()))
    proven = len(tried.answers) + excluded == pairs and not tried.gap()
    return Exhaustive(tried.points, len(tried.answers) - tried.points, tried.best, pairs, excluded, proven)


def _try(tried: _Tried, ep: int, vps: Sequence[int], budget: float) -> int:
    """Try the VPs of an EP, the widest first, that may be better than the best; count the VPs that cannot be."""
    excluded = 0
    for number, vp in enumerate(vps):
        if (ep, vp) in tried.answers:
            continue
        bound = tried.least(ep, vp)
        if bound > tried.best.cycles:
            return excluded + len(vps) - number
        if (bound, ep, vp) > tried.best.key:
            excluded += 1
        elif len(tried.answers) < budget:
            tried.add(ep, vp)
        else:
            break
    return excluded


class _Tried:
    """The pairs that were tried, and the best of them."""

    best: Point

    def __init__(self, score: Score, least: Least) -> None:
        self.score, self.least = score, least
        self.answers: dict[tuple[int, int], Point | Refused] = {}
        self.by_ep: dict[int, Point] = {}
        self.points = 0

    def add(self, ep: int, vp: int) -> None:
        """Simulate a pair and note the answer."""
        answer = self.answers[ep, vp] = self.score(ep, vp)
        if isinstance(answer, Point):
            self.points += 1
            self.by_ep[ep] = _best([self.by_ep.get(ep, answer), answer])
            self.best = _best([self.best, answer]) if self.points > 1 else answer

    def promise(self, ep: int) -> tuple[bool, float, int]:
        """The sorting key of an EP: its best cycles so far, EPs without a simulated pair last."""
        return ep not in self.by_ep, self.by_ep.get(ep, self.best).cycles, ep

    def hopeful(self, vps: Mapping[int, Sequence[int]]) -> Iterator[tuple[int, int]]:
        """Give the pairs that are not excluded when each is taken, in the order in which `_try` comes to them."""
        for ep, own in vps.items():
            for vp in own:
                bound = self.least(ep, vp)
                if bound > self.best.cycles:
                    break
                if (bound, ep, vp) <= self.best.key:
                    yield ep, vp

    def gap(self) -> bool:
        """Whether a pair that was too large to be simulated may be better than the best."""
        refused = [each for each in self.answers.values() if isinstance(each, Refused) and each.too_large]
        return any((self.least(each.ep, each.vp), each.ep, each.vp) < self.best.key for each in refused)


def count_pairs(limits: Limits, npe: int, any_ep: bool = False) -> int:
    """Count the (EP, VP) of which no two make the same tiles."""
    starts = vp_starts(limits)
    return sum(len(different_vps(starts, widest_vp(limits, npe, ep)[0])) for ep in _eps(limits, npe, any_ep))


def _eps(limits: Limits, npe: int, any_ep: bool) -> tuple[int, ...]:
    return every_ep(limits, npe) if any_ep else doublings(limits, npe)
