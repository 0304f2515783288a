"""The PE array with its adder trees and configurable tails, as a structure: which product goes through which adder.

An adder tree of `tree_inputs` leaves serves `tree_inputs / ep` rows at once: their products leave it after log2(ep)
levels, and adders of the levels above, which are not needed as adders then, hold the running sums. Source: column-wise
LSTM patent, configurable adder-tree tail (CAT).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.errors import ReplayError
from lstmsim.numerics.arithmetic import Array

__all__ = ["PeArray", "tree_levels"]


def tree_levels(leaves: int) -> tuple[int, ...]:
    """Adders of each level of a tree, from the leaves on; an odd value out passes to the next level.

    >>> tree_levels(8), tree_levels(5), tree_levels(1)
    ((4, 2, 1), (2, 1, 1), ())
    """
    levels = []
    while leaves > 1:
        levels.append(leaves // 2)
        leaves -= leaves // 2
    return tuple(levels)


@dataclass(frozen=True)
class PeArray:
    """`vp` rows of `ep` multipliers under adder trees of `tree_inputs` leaves (None: of `ep`) with CAT-`cat` tails.

    A tree is built of equal plain trees, as many as the configurable tail can serve, joined pair by pair in its last
    levels.

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
        """Leaves of each tree."""
        return self.ep if self.tree_inputs is None else self.tree_inputs

    @property
    def rows_per_tree(self) -> int:
        """Rows that one tree serves at once."""
        return self.leaves // self.ep

    @property
    def trees(self) -> int:
        """Trees that the rows need."""
        return -(-self.vp // self.rows_per_tree)

    @cached_property
    def plain_trees(self) -> int:
        """Plain trees in one tree, a power of two: the most rows that it can be set to serve."""
        return min(self.cat, self.leaves & -self.leaves)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Adders of each level of one tree, from the leaves to the root."""
        plain = tuple(self.plain_trees * each for each in tree_levels(self.leaves // self.plain_trees))
        return plain + tree_levels(self.plain_trees)

    @property
    def registers(self) -> int:
        """Registers of one tree that a running sum can sit in: one per adder, and the accumulator at the root."""
        return sum(self.levels) + 1

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """For each row of a tree the register of its running sum, levels one after another."""
        first = np.concatenate([[0], np.cumsum(self.levels)]).astype(np.int64)
        return np.array([first[level] + adder for level, adder in self.accumulators], dtype=np.int64)

    @cached_property
    def accumulators(self) -> tuple[tuple[int, int], ...]:
        """Where each row of a tree keeps its running sum, as (level, adder): the root's accumulator, then adders of the
        configurable levels above the one where the rows' own sums are complete."""
        joined = self.plain_trees // self.rows_per_tree if self.plain_trees % self.rows_per_tree == 0 else 0
        first = len(self.levels) - len(tree_levels(self.plain_trees)) + len(tree_levels(joined or self.plain_trees))
        free = [(level, each) for level in range(first, len(self.levels)) for each in range(self.levels[level])]
        places = ((len(self.levels), 0), *free)
        if self.leaves % self.ep or len(places) < self.rows_per_tree:
            raise ReplayError(f"CAT-{self.cat} on {self.leaves} leaves has no room for {self.rows_per_tree} sums")
        return places[: self.rows_per_tree]

    def products(self, weights: Array, elements: Array) -> Array:
        """What the multipliers give: [trees, leaves], from weights [vp, ep] and elements [ep]; unused rows are 0."""
        rows = np.zeros((self.trees * self.rows_per_tree, self.ep), np.result_type(weights, elements))
        np.multiply(weights, elements, out=rows[: self.vp])
        return rows.reshape(self.trees, self.leaves)

    def partial_sums(self, products: Array) -> Array:
        """What leaves the trees: [trees, rows of a tree], each row's sum after its own levels, pair by pair."""
        plain = self.leaves // self.plain_trees
        values = _summed(products.reshape(self.trees, self.plain_trees, plain))
        return _summed(values.reshape(self.trees, self.rows_per_tree, -1))

    def accumulate(self, held: Array, sums: Array, add: Callable[[Array, Array], Array]) -> None:
        """Add what leaves the trees to the running sums `held` [trees, registers], each in its own register."""
        held[:, self.places] = add(held[:, self.places], sums)

    def rows(self, held: Array) -> Array:
        """The running sums by row, [vp]."""
        return held[:, self.places].reshape(-1)[: self.vp]


def _summed(values: Array) -> Array:
    """Sums over the last axis, level by level through a plain tree."""
    for adders in tree_levels(values.shape[-1]):
        odd = values[..., 2 * adders :]
        values = np.concatenate([values[..., 0 : 2 * adders : 2] + values[..., 1 : 2 * adders : 2], odd], axis=-1)
    return values[..., 0]
