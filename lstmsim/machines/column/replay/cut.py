"""The cut of a job over its members: the units that each member has of each layer, and the cores that read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lstmsim.machines.column.shape import share_of
from lstmsim.machines.column.split import layer_runs
from lstmsim.model.model import Model

__all__ = ["Cut"]


@dataclass(frozen=True)
class Cut:
    """A model that is cut over members.

    model: the model.
    split: as in `Job`; empty: there is one member.
    cores: number of the core of each member.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> rows = Cut(Model("m", (Layer(cell("lstm"), 5, 4), Layer(cell("dense"), 3, 5))), "rows", (0, 1))
    >>> [rows.units(member, 5) for member in (0, 1)], [sorted(rows.receivers(layer, "h'")) for layer in (0, 1)]
    ([slice(0, 3, None), slice(3, 5, None)], [[0, 1], []])
    """

    model: Model
    split: str
    cores: tuple[int, ...]

    def share(self, member: int) -> tuple[int, int]:
        """Give the number of a member's share of its layers, and how many shares there are."""
        return (member, len(self.cores)) if self.split == "rows" else (0, 1)

    def units(self, member: int, width: int) -> slice:
        """Give the units of a member; `width`: units of all members."""
        share, shares = self.share(member)
        start = sum(share_of(width, each, shares) for each in range(share))
        return slice(start, start + share_of(width, share, shares))

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """For each layer the members that have units of it."""
        if self.split != "layers":
            return (tuple(range(len(self.cores))),) * len(self.model.layers)
        runs = layer_runs(self.model, len(self.cores))
        return tuple((member,) for member, run in enumerate(runs) for _ in run)

    def receivers(self, layer: int, node: str) -> frozenset[int]:
        """Give the cores on which products of the layer itself or of the layer above read a node's results."""
        cell = self.model.layers[layer].cell
        vectors = {vector for stage in cell.stages for vector in stage.vectors}
        members: set[int] = set()
        if node in vectors or (node == cell.output and "h" in vectors):
            members.update(self.members[layer])
        if node == cell.output and layer + 1 < len(self.model.layers):
            members.update(self.members[layer + 1])
        return frozenset(self.cores[each] for each in members)
