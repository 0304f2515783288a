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
"""

from __future__ import annotations

from lstmsim.base.errors import InputError
from lstmsim.studies.search.candidates import Limits, between, doublings, widest_vp
from lstmsim.studies.search.result import Point, Refused, Walk
from lstmsim.studies.search.score import Score

__all__ = ["TOLERANCE", "walk"]

#: The walk ends at the first EP that takes more cycles than (1 + this) times the best so far.
TOLERANCE = 0.20


def walk(limits: Limits, npe: int, score: Score, any_ep: bool = False, tolerance: float = TOLERANCE) -> Walk:
    """Walk up from EP = 1 to the first EP that takes too many cycles, and choose the best.

    limits: what the models ask of the array.
    npe: the array's multipliers.
    score: simulates a pair.
    any_ep: whether other whole numbers between the neighbours of the best power of two are then tried too.
    tolerance: the share of cycles beyond the best at which the walk ends.
    `InputError` if no pair can be simulated.

    >>> def score(ep, vp):
    ...     return Point(ep, vp, "", cycles=[40, 20, 22, 19, 30, 5][ep.bit_length() - 1], utilization=0, hazard=0)
    >>> answer = walk(Limits(((4, 64),), (64,)), 4096, score)
    >>> [point.ep for point in answer.path], answer.chosen.ep
    ([1, 2, 4, 8, 16], 8)
    """
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
