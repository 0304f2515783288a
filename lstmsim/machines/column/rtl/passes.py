"""The arithmetic of every pass that a generated NPU does: one for each model, whatever jobs it has."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.jobs import JobNumbers

__all__ = ["Pass", "passes_of"]

#: Model, layer and direction.
Pass = tuple[int, int, int]


def passes_of(design: Design, numbers: Mapping[int, JobNumbers]) -> dict[Pass, FixedArithmetic]:
    """Give the arithmetic of each pass of each model.

    design: the design.
    numbers: of every job, by its place in the scenario.

    `InputError` if jobs of one model have different weights, for a core holds a model once.
    """
    passes: dict[Pass, FixedArithmetic] = {}
    mistakes = []
    for job in design.jobs:
        different = False
        for layer, both in enumerate(numbers[job.index].arithmetic):
            for direction, own in enumerate(both):
                assert isinstance(own, FixedArithmetic)
                held = passes.setdefault((job.model, layer, direction), own)
                different |= held.weights is not own.weights
        if different:
            model = design.models[job.model]
            text = f"must be those of the earlier jobs of model {model!r}, which the RTL holds once"
            mistakes.append(Mistake(f"job {job.name}: weights", text))
    if mistakes:
        raise InputError(mistakes)
    return passes
