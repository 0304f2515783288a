"""Random products, drawn in two ways."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from random import Random

from experiments.gemm_threads.study import Case

__all__ = ["CHOOSE", "DRAWS", "HELD_OUT", "drawn"]

#: The set on which the planner's parameters were chosen, and the one that had no part in it.
CHOOSE, HELD_OUT = "choose", "held-out"

#: Bounds of M, N and K, and the most multiply-accumulates of a product.
BOUNDS = ((1, 256), (16, 720), (16, 2048))
MOST_MACS = 1_500_000
#: Threads that can be cut in many ways.
MANY_WAYS = (4, 6, 8, 12, 16, 24, 32, 48, 64)

_Draw = Callable[[Random, int, int], int]


def _logarithmic(source: Random, low: int, high: int) -> int:
    return round(exp(source.uniform(log(low), log(high))))


def _uniform(source: Random, low: int, high: int) -> int:
    return source.randint(low, high)


#: How sizes are drawn, and from which numbers threads of the large machine are. `log`: every order of magnitude is as
#: likely as another; `uni`: every size is, as far as the product is not too large, and any number of threads.
DRAWS: dict[str, tuple[_Draw, tuple[int, ...]]] = {
    "log": (_logarithmic, MANY_WAYS),
    "uni": (_uniform, tuple(range(4, 65))),
}


def drawn(draw: str, count: int, name: str) -> list[Case]:
    """So many random cases; every second one is on the small machine.

    draw: a key of `DRAWS`.
    name: of the set; another name gives other cases.

    >>> drawn("log", 2, "choose") == drawn("log", 3, "choose")[:2], drawn("log", 2, "x") == drawn("log", 2, "y")
    (True, False)
    """
    source = Random(f"{draw} {name}")
    size, many = DRAWS[draw]
    cases: list[Case] = []
    while len(cases) < count:
        m, n, k = (size(source, *each) for each in BOUNDS)
        chip, threads = ("xeon-gold-5122", (2, 3, 4)) if len(cases) % 2 else ("epyc-7742", many)
        if m * n * k <= MOST_MACS:
            cases.append(Case(chip, source.choice(threads), m, n, k))
    return cases
