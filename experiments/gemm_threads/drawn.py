"""Random products, drawn in two ways, and products of random layers of RNNs."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from random import Random

from experiments.gemm_threads.study import Case

__all__ = ["CHOOSE", "DRAWS", "HELD_OUT", "RNN", "drawn", "drawn_of_rnns"]

#: The set on which the planner's parameters were chosen, and the one that had no part in it.
CHOOSE, HELD_OUT = "choose", "held-out"

#: Products of layers of RNNs, and the most multiply-accumulates of one: a step of an LSTM with 2,048 units.
RNN, MOST_OF_RNN = "rnn", 1 << 25

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


def drawn_of_rnns(count: int, name: str) -> list[Case]:
    """Steps, projections and gradients of so many random layers; every fourth one is on the small machine.

    Gates are 1, 3 or 4 times 32 to 2,048 units, so N goes up to 8,192. Half of all units and inputs are powers of two.
    name: of the set; another name gives other cases.

    >>> [(each.m, each.n, each.k, each.packed) for each in drawn_of_rnns(3, HELD_OUT)]
    [(77, 154, 96, 'each'), (416, 64, 46, 'once'), (147, 345, 64, 'once')]
    """
    source = Random(f"{RNN} {name}")
    cases: list[Case] = []
    while len(cases) < count:
        units, inputs = (_units(source) for _ in range(2))
        wide, batch = source.choice((1, 3, 4)) * units, source.choice((1, 1, 2, 4, 8, 16))
        moments = batch * _logarithmic(source, 8, 256)
        m, n, k, packed = source.choice(
            (
                (batch, wide, units + inputs, "once"),
                (moments, wide, inputs, "once"),
                (wide, units + inputs, moments, "each"),
            )
        )
        small = len(cases) % 4 == 3
        threads = source.choice((2, 3, 4) if small else range(4, 65))
        if m * n * k <= MOST_OF_RNN:
            cases.append(Case("xeon-gold-5122" if small else "epyc-7742", threads, m, n, k, packed))
    return cases


def _units(source: Random) -> int:
    """Units of a layer, or elements of its input."""
    return 1 << source.randint(5, 11) if source.random() < 0.5 else _logarithmic(source, 32, 2048)
