"""All useful (EP, VP), simulated one by one: the true optimum.

Left out is what does not win: VPs other than those of `candidates.useful_vps`, and, among EPs that are no powers of
two, those beyond the longest vector. (x and h are padded apart, so a tile never holds parts of both.)
"""

from __future__ import annotations

from lstmsim.errors import InputError
from lstmsim.search.candidates import Limits, doublings, every_ep, useful_vps
from lstmsim.search.result import Exhaustive, Point
from lstmsim.search.score import Score

__all__ = ["all_pairs", "best_of_all"]


def all_pairs(limits: Limits, npe: int, any_ep: bool = False) -> tuple[tuple[int, int], ...]:
    """Every useful (EP, VP).

    >>> all_pairs(Limits(((4, 100),), (100,)), npe=64)
    ((1, 64), (1, 60), (2, 32), (4, 16), (8, 8), (16, 4))
    """
    eps = every_ep(limits, npe) if any_ep else doublings(limits, npe)
    return tuple((ep, vp) for ep in eps for vp in useful_vps(limits, npe, ep))


def best_of_all(limits: Limits, npe: int, score: Score, any_ep: bool = False) -> Exhaustive:
    """The best of all useful pairs; `InputError` if none can be simulated.

    >>> score = lambda ep, vp: Point(ep, vp, "", cycles=100 - vp % 61, utilization=0, hazard=0)
    >>> best_of_all(Limits(((4, 100),), (100,)), 64, score).optimum.vp
    60
    """
    found = [score(ep, vp) for ep, vp in all_pairs(limits, npe, any_ep)]
    points = [each for each in found if isinstance(each, Point)]
    if not points:
        raise InputError(f"no (EP, VP) of {npe} multipliers can be simulated")
    return Exhaustive(len(points), len(found) - len(points), min(points, key=lambda each: each.key))
