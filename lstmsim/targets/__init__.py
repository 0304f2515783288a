"""Machines: each a frozen description and one pure function that lowers jobs to a Program.

A new target is a module with `lower(chip, jobs) -> Program`, a description that fits `workload.scenario.Chip`,
and a line in `TARGETS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from lstmsim.program.program import Program
from lstmsim.targets.assembly import AnyCore
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Chip, Job

__all__ = ["TARGETS", "lower", "operations_per_step"]

#: Module that lowers each kind of chip.
TARGETS = {"column-npu": "lstmsim.targets.column_lowering", "row-npu": "lstmsim.targets.row_lowering"}


def lower(chip: Chip, jobs: Sequence[Job], *, templates: bool = False) -> Program:
    """The Program of these jobs on that chip; cores and tasks in the order of the chip's cores and of the jobs.

    `templates`: the jobs stand for some that come later; each has to be small enough, but not all together.

    >>> from lstmsim.targets.column_npu import ColumnCore, ColumnNpu
    >>> len(lower(ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16),)), []).cores)
    1
    """
    program: Program = import_module(TARGETS[chip.kind]).lower(chip, jobs, templates)
    return program


def operations_per_step(kind: str, model: Model, core: AnyCore, batch: int) -> int:
    """A bound on the operations that one step of a model in a batch lowers to on a core of that kind of chip.

    >>> from lstmsim.targets.column_npu import ColumnCore
    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer
    >>> model = Model("m", (Layer(cell("lstm"), 512, 512),))
    >>> operations_per_step("column-npu", model, ColumnCore(npe=65536, ep=32, vp=2048), 1)
    37
    """
    count: int = import_module(TARGETS[kind]).operations_per_step(model, core, batch)
    return count
