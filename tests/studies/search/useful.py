"""The best of the useful pairs alone, which is mostly the optimum."""

from __future__ import annotations

from lstmsim.studies.search.array import Limits, Score, doublings, every_ep, useful_vps
from lstmsim.studies.search.result import Point


def all_pairs(limits: Limits, npe: int, any_ep: bool = False) -> tuple[tuple[int, int], ...]:
    """List every useful (EP, VP)."""
    eps = every_ep(limits, npe) if any_ep else doublings(limits, npe)
    return tuple((ep, vp) for ep in eps for vp in useful_vps(limits, npe, ep))


def best_of_all(limits: Limits, npe: int, score: Score, any_ep: bool = False) -> Point:
    """Find the best of all useful pairs."""
    answers = (score(ep, vp) for ep, vp in all_pairs(limits, npe, any_ep))
    return min((each for each in answers if isinstance(each, Point)), key=lambda each: each.key)
