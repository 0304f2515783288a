"""The values that warps need, operands first; docs/fusion.md, section 10.1."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from lstmsim.machines.parallel.fused.homes import Homes
from lstmsim.machines.parallel.fused.memo import MISSING, NOTHING, Memo, Places, Table
from lstmsim.machines.parallel.writing.streams import Result
from lstmsim.model.fusion.graph import CONSTANT
from lstmsim.model.fusion.indexing import operand_elements
from lstmsim.model.fusion.operations import OPERATIONS
from lstmsim.model.fusion.plan import GLOBAL, SHARED

__all__ = ["Values"]

#: What a value of a node asks for: another node's elements. It is sent their places.
Asks = Generator[tuple[int, Table], Places, Places]


class Values:
    """What some warps evaluate, and what they know of before.

    homes: where values lie.
    """

    def __init__(self, homes: Homes) -> None:
        self.homes = homes
        self._kept, self._turn = Memo(), Memo()
        self._keeps = True
        self._stage = -1

    def begin(self, stage: int, keeps: bool) -> None:
        """Begin a stage.

        stage: number of its node.
        keeps: whether its values stay for later stages; else they are forgotten after each turn.
        """
        self._stage, self._keeps = stage, keeps

    def end_turn(self) -> None:
        """Forget what does not stay."""
        self._turn.clear()

    def of(self, node: int, table: Table) -> Result:
        """The instruction that gives the elements of a node, of each warp; those that are needed are written.

        node: its number.
        table: the elements of each warp.
        """
        # a deep expression is walked through with a stack of its own
        stack = [self._value(node, table)]
        answer: Places | None = None
        while stack:
            try:
                asked = stack[-1].send(answer) if answer is not None else next(stack[-1])
                stack.append(self._value(*asked))
                answer = None
            except StopIteration as done:
                stack.pop()
                answer = done.value
        assert answer is not None
        return Result(table.scene.warps.numbers, answer)

    def _value(self, node: int, table: Table) -> Asks:
        """The places of a node's elements; asks for its operands."""
        places = self._known(node, table)
        missing = places == MISSING
        if not missing.any():
            return places
        scene = table.scene.part(missing) if not missing.all() else table.scene
        part = table.part(scene, missing)
        made = yield from self._made(node, part)
        (self._kept if self._keeps else self._turn).add(node, part, made)
        places[missing] = made
        return places

    def _known(self, node: int, table: Table) -> Places:
        places = self._kept.places(node, table)
        if not self._keeps:
            turn = self._turn.places(node, table)
            places = np.where(turn == MISSING, places, turn)
        return places

    def _made(self, node: int, table: Table) -> Asks:
        homes, scene = self.homes, table.scene
        warps, on = scene.warps, scene.on
        stage = homes.kernel.stage_of.get(node)
        if stage is not None and node != self._stage:
            if stage.scheme == SHARED:
                return warps.lds(homes.shared[node][table.elements], on).places
            if stage.scheme != GLOBAL:
                return np.full(len(warps), NOTHING, np.int32)
            if stage.partials:
                return self.combined(node, stage.partials, table).places
            return warps.ldg(homes.arrays[node], table.elements, on).places
        if stage is None and node not in homes.kernel.inlined:
            return warps.ldg(homes.arrays[node], table.elements, on).places
        return (yield from self._evaluated(node, table))

    def combined(self, node: int, pieces: int, table: Table) -> Result:
        """The sum of the partials of a split reduce.

        node: its number.
        pieces: how many partials a result has.
        table: the results of each warp.
        """
        warps, on = table.scene.warps, table.scene.on
        total: Result | None = None
        for piece in range(pieces):
            loaded = warps.ldg(self.homes.partials[node], table.elements * pieces + piece, on)
            total = warps.fma(1, [loaded, total])
        assert total is not None
        return total

    def _evaluated(self, node: int, table: Table) -> Asks:
        graph, warps = self.homes.graph, table.scene.warps
        waits: list[Result] = []
        for operand in graph.operands[node]:
            if operand != CONSTANT:
                elements = operand_elements(graph, node, operand, table.elements)
                needed = table if elements is table.elements else Table(table.scene, elements)
                waits.append(Result(warps.numbers, (yield operand, needed)))
        operation = OPERATIONS.get(graph.nodes[node].op)
        if operation is None:
            return waits[0].places if waits else np.full(len(warps), NOTHING, np.int32)
        if operation.sfu:
            waits = [warps.sfu(operation.sfu, waits)]
        if operation.fma:
            waits = [warps.fma(operation.fma, waits)]
        return waits[0].places
