"""Which groups of columns a step sends, and the values that its products see (docs/delta_columns.md).

The sums of a step telescope: they are those of the values last sent, in place of the values of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.numerics.arithmetic import Arithmetic, Array
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.fixed_point import VectorFormat
from lstmsim.model.numerics.golden import NetworkRun, run_network
from lstmsim.model.numerics.jobs import OwnNumbers

Flags = NDArray[np.bool_]


class Rule(NamedTuple):
    """When a group of columns is sent.

    x, h: least change of one of its elements, in the units of the numbers.
    group: elements of a group.
    """

    x: float
    h: float
    group: int


def grouped(changed: Flags, group: int) -> Flags:
    """Which groups of `group` elements have a change, from which elements changed.

    >>> grouped(np.array([False, False, True, False, False]), 2).tolist()
    [False, True, False]
    """
    padded = np.zeros(-(-len(changed) // group) * group, np.bool_)
    padded[: len(changed)] = changed
    return np.asarray(padded.reshape(-1, group).any(axis=1))


def least_change(arithmetic: Arithmetic, vector: str, threshold: float) -> Array:
    """The least change of an element that is sent, as the arithmetic holds numbers: one for all, or for each element.

    In fixed point at least 1 if the threshold is above 0: an element that has not changed at all is not sent.
    """
    if not isinstance(arithmetic, FixedArithmetic):
        return np.asarray(threshold)
    held = arithmetic.formats[vector]
    assert isinstance(held, VectorFormat), "products read vectors"
    steps = np.rint(threshold / np.asarray(held.scale)).astype(np.int64)
    return np.maximum(steps, 1) if threshold > 0 else np.zeros_like(steps)


@dataclass(eq=False)
class LastSent:
    """The values that a layer has sent last, and what each of its steps sends.

    arithmetic: of the layer.
    rule: when a group is sent.
    last: the vector whose last group every step sends, the last of its order.
    sent: for each step so far, by vector, which groups it sends.
    """

    arithmetic: Arithmetic
    rule: Rule
    last: str
    sent: list[dict[str, Flags]] = field(default_factory=list)
    _values: dict[str, Array] = field(default_factory=dict)

    def step(self, vectors: dict[str, Array]) -> dict[str, Array]:
        """What the products of the next step see in place of its vectors; decides what the step sends."""
        flags: dict[str, Flags] = {}
        for name, values in vectors.items():
            before = self._values.get(name, np.zeros_like(values))
            least = least_change(self.arithmetic, name, getattr(self.rule, name))
            flags[name] = grouped(np.abs(values - before) >= least, self.rule.group)
            if name == self.last:
                flags[name][-1] = True
            elements = np.repeat(flags[name], self.rule.group)[: len(values)]
            self._values[name] = np.where(elements, values, before)
        self.sent.append(flags)
        return dict(self._values)


def last_sent(arithmetic: Sequence[Sequence[Arithmetic]], rules: Rule, *, by_step: bool) -> list[LastSent]:
    """The memory of each layer of a network, empty. by_step: the order of layers (`layer_order: step`)."""
    made = []
    for number, (own, *_) in enumerate(arithmetic):
        vectors = own.layer.cell.stages[0].vectors
        last = "x" if "h" not in vectors or (by_step and number) else "h"
        made.append(LastSent(own, rules, last))
    return made


def sent_run(numbers: OwnNumbers, rule: Rule, *, by_step: bool) -> tuple[NetworkRun, list[LastSent]]:
    """Run a job with the values that were sent last in place of its vectors; what it computes, and what it sends.

    The run is kept. A job that begins with the last states of another job takes those of that job's run of this kind.
    """
    key = (numbers.index, rule)
    if key not in numbers.every.runs:
        own = numbers.job
        before = None
        if own.follows is not None:
            before, _ = sent_run(replace(numbers, index=own.follows), rule, by_step=by_step)
        senders = last_sent(own.arithmetic, rule, by_step=by_step)
        run = run_network(own.arithmetic, own.after(before), senders=[each.step for each in senders])
        numbers.every.runs[key] = run, senders
    made: tuple[NetworkRun, list[LastSent]] = numbers.every.runs[key]
    return made
