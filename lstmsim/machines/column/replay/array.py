"""The PE array with its adder trees and configurable tails, as a structure: each product goes through its adders.

An adder tree of `tree_inputs` leaves serves `tree_inputs / ep` rows at once: their products leave it after log2(ep)
levels. The adders of the levels above have nothing to add then, and hold the running sums. Source: column-wise LSTM
patent, configurable adder-tree tail (CAT).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ReplayError
from lstmsim.model.numerics.arithmetic import Array


def tree_levels(leaves: int) -> tuple[int, ...]:
    """Count the adders of each level of a tree, from the leaves to the root. An odd value passes to the next level."""
    levels = []
    while leaves > 1:
        levels.append(leaves // 2)
        leaves -= leaves // 2
    return tuple(levels)


@dataclass(frozen=True)
class PeArray:
    """Rows of multipliers under adder trees with configurable tails.

    ep: multipliers of a row.
    vp: rows.
    tree_inputs: leaves of each tree; None: `ep`.
    cat: rows that a configurable tail can serve at most.

    A tree is built of equal plain trees, as many as the configurable tail can serve. Its last levels join the plain
    trees pair by pair.

    >>> array = PeArray(ep=2, vp=6, tree_inputs=8, cat=4)
    >>> array.rows_per_tree, array.trees, array.levels, array.accumulators
    (4, 2, (4, 2, 1), ((3, 0), (1, 0), (1, 1), (2, 0)))
    """

    ep: int
    vp: int
    tree_inputs: int | None = None
    cat: int = 1

    @property
    def leaves(self) -> int:
        """Number of leaves of each tree."""
        return self.ep if self.tree_inputs is None else self.tree_inputs

    @property
    def rows_per_tree(self) -> int:
        """Number of rows that one tree serves at once."""
        return self.leaves // self.ep

    @property
    def trees(self) -> int:
        """Number of trees that the rows need."""
        return -(-self.vp // self.rows_per_tree)

    @cached_property
    def plain_trees(self) -> int:
        """Number of plain trees in one tree, a power of two: the most rows that the tree can be set to serve."""
        return min(self.cat, self.leaves & -self.leaves)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Number of adders of each level of one tree, from the leaves to the root."""
        plain = tuple(self.plain_trees * each for each in tree_levels(self.leaves // self.plain_trees))
        return plain + tree_levels(self.plain_trees)

    @property
    def registers(self) -> int:
        """Registers of one tree that can hold a running sum: one for each adder, and the accumulator at the root."""
        return sum(self.levels) + 1

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """For each row of a tree the register of its running sum; registers are numbered level by level."""
        first = np.concatenate([[0], np.cumsum(self.levels)]).astype(np.int64)
        return np.array([first[level] + adder for level, adder in self.accumulators], dtype=np.int64)

    @cached_property
    def accumulators(self) -> tuple[tuple[int, int], ...]:
        """For each row of a tree the place of its running sum, as (level, adder).

        The places are the root's accumulator, then adders of the configurable levels above the level on which the
        rows' own sums are complete. `ReplayError` if a tree has too few places for its rows.
        """
        joined = self.plain_trees // self.rows_per_tree if self.plain_trees % self.rows_per_tree == 0 else 0
        first = len(self.levels) - len(tree_levels(self.plain_trees)) + len(tree_levels(joined or self.plain_trees))
        free = [(level, each) for level in range(first, len(self.levels)) for each in range(self.levels[level])]
        places = ((len(self.levels), 0), *free)
        if self.leaves % self.ep or len(places) < self.rows_per_tree:
            raise ReplayError(f"CAT-{self.cat} on {self.leaves} leaves has no room for {self.rows_per_tree} sums")
        return places[: self.rows_per_tree]

    def products(self, weights: Array, elements: Array) -> Array:
        """Multiply weights [vp, ep] by elements [ep].

        The products have the shape [trees, leaves]; products of unused rows are 0.
        """
        rows = np.zeros((self.trees * self.rows_per_tree, self.ep), np.result_type(weights, elements))
        np.multiply(weights, elements, out=rows[: self.vp])
        return rows.reshape(self.trees, self.leaves)

    def partial_sums(self, products: Array) -> Array:
        """Sum up the products of each row, pair by pair through its own levels: [trees, rows of a tree]."""
        plain = self.leaves // self.plain_trees
        values = _summed(products.reshape(self.trees, self.plain_trees, plain))
        return _summed(values.reshape(self.trees, self.rows_per_tree, -1))

    def accumulate(self, held: Array, sums: Array, add: Callable[[Array, Array], Array]) -> None:
        """Add the sums of the rows to the running sums."""
        held[:, self.places] = add(held[:, self.places], sums)

    def rows(self, held: Array) -> Array:
        """Give the running sums by row, [vp]."""
        return held[:, self.places].reshape(-1)[: self.vp]


def _summed(values: Array) -> Array:
    """Sum up over the last axis, level by level through a plain tree."""
    for adders in tree_levels(values.shape[-1]):
        odd = values[..., 2 * adders :]
        values = np.concatenate([values[..., 0 : 2 * adders : 2] + values[..., 1 : 2 * adders : 2], odd], axis=-1)
    return values[..., 0]
