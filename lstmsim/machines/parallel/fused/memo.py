"""What warps have evaluated: the place of an instruction by the node and the elements that its lanes had."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.writing.streams import Warps

__all__ = ["MISSING", "NOTHING", "Memo", "Scene", "Table"]

Ints = NDArray[np.int64]
Places = NDArray[np.int32]
#: In place of the place of an instruction: none is needed; nobody knows of any.
NOTHING, MISSING = -1, -2
#: Tables of so many turns are put together before they are searched.
_PARTS = 8
#: Odd numbers, by which lanes and warps are told apart in a key.
_FACTORS = np.random.default_rng(18).integers(1, 1 << 63, 66, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


class Scene:
    """The warps and lanes that do the same at once.

    warps: the warps.
    on: shape (n, lanes); which lanes take part; True: all.
    """

    def __init__(self, warps: Warps, on: NDArray[np.bool_] | bool) -> None:
        self.warps = warps
        self.on = on if on is True or not np.all(on) else True

    def part(self, mask: NDArray[np.bool_]) -> Scene:
        """The warps of a mask, shape (n,)."""
        return Scene(self.warps.part(mask), True if self.on is True else np.asarray(self.on)[mask])


class Table:
    """The elements of a node that warps need.

    scene: whose.
    elements: shape (n, lanes); 0 where a lane is off.
    """

    def __init__(self, scene: Scene, elements: Ints) -> None:
        self.scene = scene
        self.elements = elements

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Shape (n,); one number for a warp and its elements. Different ones are equal by a chance of 2^-64 only."""
        elements = self.elements.astype(np.uint64) + np.uint64(1)
        if self.scene.on is not True:
            elements = elements * self.scene.on
        # sums and products of 64 bits, whatever is above them falls off
        rows: NDArray[np.uint64] = (elements * _FACTORS[: elements.shape[1]]).sum(axis=1, dtype=np.uint64)
        mixed: NDArray[np.uint64] = (rows ^ (rows >> np.uint64(29))) * _FACTORS[-1] + self._warps
        return mixed

    @property
    def _warps(self) -> NDArray[np.uint64]:
        numbers: NDArray[np.uint64] = self.scene.warps.numbers.astype(np.uint64) * _FACTORS[-2]
        return numbers

    def part(self, scene: Scene, mask: NDArray[np.bool_]) -> Table:
        """The rows of a mask, shape (n,), which are `scene`."""
        return self if scene.warps is self.scene.warps else Table(scene, self.elements[mask])


class Memo:
    """Where warps have which values."""

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[NDArray[np.uint64], Places]]] = {}

    def places(self, node: int, table: Table) -> Places:
        """Shape (n,); the place of the instruction that gave a node's elements, `NOTHING` or `MISSING`.

        node: its number.
        table: the elements of each warp.
        """
        result = np.full(len(table.elements), MISSING, np.int32)
        for keys, places in self._known.get(node, ()):
            at = np.searchsorted(keys, table.keys)
            at[at == len(keys)] = 0
            hit = keys[at] == table.keys
            result[hit] = places[at[hit]]
        return result

    def add(self, node: int, table: Table, places: Places) -> None:
        """Remember where the elements of a node are, which nobody has known of before.

        node: its number.
        table: the elements of each warp.
        places: shape (n,); of the instructions.
        """
        parts = self._known.setdefault(node, [])
        if len(parts) == _PARTS:
            keys = np.concatenate([each for each, _ in parts])
            before = np.concatenate([each for _, each in parts])
            order = np.argsort(keys)
            parts[:] = [(keys[order], before[order])]
        order = np.argsort(table.keys)
        parts.append((table.keys[order], places[order]))

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()
