"""Several models on one array: which adder tree with configurable tail lets each of them have its own EP.

The hardware is one array of NPE multipliers whose trees have `tree_inputs` leaves; CAT-n sets EP to `tree_inputs`,
`/2`, ... `/n`, and VP to NPE // EP, of which a model uses min(Hw, VP) (column-wise LSTM patent: EP of 16, 32 and 64
need CAT-4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lstmsim.search.result import CatChoice, Point, Refused

__all__ = ["best_tree", "cat_choices", "reachable"]

#: EP -> the point of one model with the widest VP, or why there is none.
AtEp = Callable[[int], Point | Refused]


def reachable(tree_inputs: int, cat: int) -> tuple[int, ...]:
    """The EPs of an adder tree with CAT-`cat`, the largest first.

    >>> reachable(64, 4), reachable(24, 16)
    ((64, 32, 16), (24, 12, 6, 3))
    """
    shifts = range(cat.bit_length())
    return tuple(tree_inputs >> shift for shift in shifts if tree_inputs % (1 << shift) == 0)


def best_tree(cat: int, trees: Sequence[int], models: Sequence[AtEp]) -> CatChoice | None:
    """The tree with the fewest cycles, all models' single runs added up, each at its best reachable EP; None if there
    is none on which every model runs.

    >>> cycles = ({16: 9, 32: 12}, {16: 30, 32: 20})
    >>> models = [lambda ep, own=own: Point(ep, 4, "", own[ep], 0, 0) for own in cycles]
    >>> best_tree(1, (16, 32), models).tree_inputs, best_tree(2, (32,), models).eps
    (32, (16, 32))
    """
    found = []
    for tree in trees:
        points = [_best(at, reachable(tree, cat)) for at in models]
        own = [each for each in points if each is not None]
        if len(own) == len(models):
            eps = tuple(each.ep for each in own)
            found.append(CatChoice(cat, tree, eps, sum(each.cycles for each in own)))
    return min(found, key=lambda each: (each.cycles, each.tree_inputs), default=None)


def cat_choices(eps: Sequence[int], models: Sequence[AtEp]) -> tuple[CatChoice | None, tuple[CatChoice, ...]]:
    """The least CAT-n whose tree has every model's choice (None if there is no such tree), and the best tree of every
    CAT up to it; `eps`: the choices, in the order of the models.

    >>> at = lambda ep: Point(ep, 4, "", 100 - ep, 0, 0)
    >>> sufficient, every = cat_choices([16, 64], [at, at])
    >>> sufficient.cat, [each.cat for each in every]
    (4, [1, 2, 4])
    >>> cat_choices([24, 32], [at, at])[0] is None
    True
    """
    most = max(eps)
    trees = sorted({ep << shift for ep in eps for shift in range(most.bit_length()) if ep << shift <= most})
    every = []
    for cat in _cats(most):
        enough = set(eps) <= set(reachable(most, cat))
        # every smaller tree leaves a choice out
        choice = best_tree(cat, [most] if enough else trees, models)
        if choice is not None:
            every.append(choice)
        if enough:
            return choice, tuple(every)
    return None, tuple(every)


def _cats(most: int) -> Iterator[int]:
    """CAT-1, CAT-2, ... as long as a tree of that many inputs can be cut so often."""
    return (1 << power for power in range(most.bit_length()))


def _best(at: AtEp, eps: Sequence[int]) -> Point | None:
    points = [each for each in map(at, eps) if isinstance(each, Point)]
    return min(points, key=lambda each: each.key, default=None)
