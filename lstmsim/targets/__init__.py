"""Machines: each a frozen description and one pure function that lowers jobs to a Program.

A new target is a module with `lower(chip, jobs) -> Program`, a description that fits `workload.scenario.Chip`,
and a line in `TARGETS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from lstmsim.program.program import Program
from lstmsim.workload.scenario import Chip, Job

__all__ = ["TARGETS", "lower"]

#: Module that lowers each kind of chip.
TARGETS = {"column-npu": "lstmsim.targets.column_lowering", "row-npu": "lstmsim.targets.row_lowering"}


def lower(chip: Chip, jobs: Sequence[Job]) -> Program:
    """The Program of these jobs on that chip; cores and tasks in the order of the chip's cores and of the jobs.

    >>> from lstmsim.targets.column_npu import ColumnCore, ColumnNpu
    >>> len(lower(ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16),)), []).cores)
    1
    """
    program: Program = import_module(TARGETS[chip.kind]).lower(chip, jobs)
    return program
