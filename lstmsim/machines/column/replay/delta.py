"""Delta columns where a trace is executed: what was sent last, sums that stay (docs/delta_columns.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.delta import rule_of
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.shape import StageShape, issue_order
from lstmsim.model.numerics.arithmetic import Arithmetic, Array
from lstmsim.model.numerics.delta import grouped, least_change


@dataclass(eq=False)
class Differences:
    """What a job on a core with delta columns keeps from step to step.

    core: the core.
    by_step: the order of layers of the model (`layer_order: step`).
    _sums: by layer and row block, the sums of its last step, to which tiles may still be added.
    _last: by layer and vector, the values that were sent last.
    _before: by layer and vector, for each step so far the values that were sent last before it.
    """

    core: ColumnCore
    by_step: bool
    _sums: dict[tuple[int, int], list[Array]] = field(default_factory=dict)
    _last: dict[tuple[int, str], Array] = field(default_factory=dict)
    _before: dict[tuple[int, str], list[Array]] = field(default_factory=dict)

    def begun(self, layer: int, block: int, empty: list[Array]) -> list[Array]:
        """The sums with which a row block begins: those of the step before; `empty` in the first step."""
        sums = self._sums[layer, block] = [each.copy() for each in self._sums.get((layer, block), empty)]
        return sums

    def of(self, layer: int, step: int, vector: str, columns: slice, values: Array, width: int) -> Array:
        """The changes of some elements of a vector since they were sent last, which sends them."""
        before = self._sent_before(layer, step, vector, values, width)
        self._last[layer, vector][columns] = values
        changes: Array = values - before[columns]
        return changes

    def _sent_before(self, layer: int, step: int, vector: str, values: Array, width: int) -> Array:
        last = self._last.setdefault((layer, vector), np.zeros(width, values.dtype))
        known = self._before.setdefault((layer, vector), [])
        # a step of which nothing was sent, and which was not checked yet, began like the next one
        known += [last.copy()] * (step + 1 - len(known))
        return known[step]

    def check(
        self,
        shape: StageShape,
        layer: int,
        step: int,
        added: Collection[int],
        read: Callable[[str], Array],
        arithmetic: Arithmetic,
        who: str,
    ) -> None:
        """`ReplayError` if a row block has other column groups added up than those that its step sends.

        added: the groups; read: gives the values of a vector in this step; who: the reader, for the error.
        """
        expected: set[int] = set()
        rule, per = rule_of(self.core), self.core.delta_group // self.core.ep
        vectors = list(issue_order(shape.stage, self.by_step and layer > 0))
        for vector in vectors:
            values = read(vector)
            before = self._sent_before(layer, step, vector, values, len(values))
            changed = np.abs(values - before) >= least_change(arithmetic, vector, getattr(rule, vector))
            flags = grouped(changed, rule.group)
            flags[-1] |= vector == vectors[-1]
            first = shape.first_group(vector)
            expected |= {first + number for number in range(shape.groups(vector)) if flags[number // per]}
        if expected != set(added):
            wrong = min(expected ^ set(added))
            how = "is added up, but has not changed enough" if wrong in added else "is left out, but has changed"
            raise ReplayError(f"{who}: column group {wrong} {how}")
