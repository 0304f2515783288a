"""Several models on one array: which adder tree with configurable tail lets each of them have its own EP.

The hardware is one array of NPE multipliers whose trees have `tree_inputs` leaves; CAT-n sets EP to `tree_inputs`,
`/2`, ... `/n`, and VP to NPE // EP, of which a model uses min(Hw, VP) (column-wise LSTM patent: EP of 16, 32 and 64
need CAT-4).

A larger CAT is worth its adders only if some model gains by it: among trees with equal sums of cycles the one with the
smallest CAT is sufficient, also where a model's own choice was another EP with as many cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from lstmsim.studies.search.result import CatChoice, Point, Refused

__all__ = ["best_tree", "cat_choices", "reachable", "trees_for"]

#: EP -> the point of one model with the widest VP, or why there is none.
AtEp = Callable[[int], Point | Refused]


def reachable(tree_inputs: int, cat: int) -> tuple[int, ...]:
    """List the EPs of an adder tree with CAT-`cat`, the largest first.

    >>> reachable(64, 4), reachable(24, 16)
    ((64, 32, 16), (24, 12, 6, 3))
    """
    shifts = range(cat.bit_length())
    return tuple(tree_inputs >> shift for shift in shifts if tree_inputs % (1 << shift) == 0)


def best_tree(cat: int, trees: Sequence[int], models: Sequence[AtEp]) -> CatChoice | None:
    """Find the tree on which the models take the fewest cycles in sum, each alone and at its best reachable EP.

    cat: n of CAT-n.
    trees: numbers of inputs to choose from.
    models: for each model its points by EP.
    None if there is no tree on which every model runs.

    >>> cycles = ({16: 9, 32: 12}, {16: 30, 32: 20})
    >>> models = [lambda ep, own=own: Point(ep, 4, "", own[ep], 0, 0) for own in cycles]
    >>> best_tree(1, (16, 32), models).tree_inputs, best_tree(2, (32,), models).eps
    (32, (16, 32))
    """
    choices = []
    for tree in trees:
        points = [_best(at, reachable(tree, cat)) for at in models]
        own = [each for each in points if each is not None]
        if len(own) == len(models):
            eps = tuple(each.ep for each in own)
            choices.append(CatChoice(cat, tree, eps, sum(each.cycles for each in own)))
    return min(choices, key=lambda each: (each.cycles, each.tree_inputs), default=None)


def trees_for(eps: Iterable[int], powers: Sequence[int]) -> tuple[int, ...]:
    """List the inputs of the trees to look at, ascending.

    These are all of `powers`, and the models' choices times powers of two up to the largest of `powers`. Where EPs are
    powers of two, no other tree has any of them.

    eps: the models' choices.
    powers: the powers of two that an EP can be.

    >>> trees_for([4, 6], (1, 2, 4, 8, 16))
    (1, 2, 4, 6, 8, 12, 16)
    """
    most = max(powers)
    return tuple(
        sorted(
            {*powers, *(ep << shift for ep in eps for shift in range(most.bit_length()) if ep << shift <= most), *eps}
        )
    )


def cat_choices(
    eps: Sequence[int], models: Sequence[AtEp], trees: Sequence[int]
) -> tuple[CatChoice | None, tuple[CatChoice, ...]]:
    """Find the least CAT-n with a tree on which the models take no more cycles in sum than with their own choices.

    eps: the choices, in the order of the models.
    models: for each model its points by EP.
    trees: numbers of inputs to choose from.
    Returns that choice (None if no tree is sufficient), and the best of `trees` for every CAT up to it.

    >>> at = lambda ep: Point(ep, 4, "", 100 - ep, 0, 0)
    >>> only_16 = lambda ep: Point(ep, 4, "", 84 + abs(ep - 16), 0, 0)
    >>> sufficient, every = cat_choices([16, 64], [only_16, at], [16, 32, 64])
    >>> sufficient.cat, [each.cat for each in every]
    (4, [1, 2, 4])
    >>> indifferent = lambda ep: Point(ep, 4, "", 84, 0, 0)
    >>> cat_choices([16, 64], [indifferent, at], [16, 32, 64])[0]
    CatChoice(cat=1, tree_inputs=64, eps=(64, 64), cycles=120)
    """
    own = [at(ep) for at, ep in zip(models, eps, strict=True)]
    enough = sum(each.cycles for each in own if isinstance(each, Point))
    every = []
    for cat in _cats(max(eps)):
        choice = best_tree(cat, trees, models)
        if choice is not None:
            every.append(choice)
            if choice.cycles <= enough:
                return choice, tuple(every)
    return None, tuple(every)


def _cats(most: int) -> Iterator[int]:
    """CAT-1, CAT-2, ... as long as a tree of that many inputs can be cut so often."""
    return (1 << power for power in range(most.bit_length()))


def _best(at: AtEp, eps: Sequence[int]) -> Point | None:
    """The best point of a model among some EPs; None if it runs at none of them."""
    points = [each for each in map(at, eps) if isinstance(each, Point)]
    return min(points, key=lambda each: each.key, default=None)
