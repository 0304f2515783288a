"""A product alone: how it becomes a program, and what its run came to."""

from __future__ import annotations

import numpy as np

from lstmsim.machines.gemm import Division, GemmFigures, GemmWork
from lstmsim.machines.multicore.execution.steps import steps_of
from lstmsim.machines.multicore.execution.timed import compute_of
from lstmsim.machines.multicore.execution.traced import traced
from lstmsim.machines.multicore.lowering.product import program_of
from lstmsim.machines.multicore.lowering.waits import step_times, waits_of
from lstmsim.machines.multicore.machine import Machine
from lstmsim.program.trace import Trace

__all__ = ["figures_of", "lowered"]

#: Name of the only task of a product.
_NAME = "product"


def lowered(machine: Machine, division: Division, caches: str = "cold") -> GemmWork:
    """A product with its traffic and its program.

    machine: with as many cores as there are threads.
    division: any cut of the product.
    caches: one of `lstmsim.machines.gemm.CACHES`.
    `InputError` as of `lstmsim.machines.multicore.execution.traced.traced`.
    """
    made = traced(machine, division, caches)
    return GemmWork(made.division, program_of(machine, made.stage, _NAME), made.counts, made)


def figures_of(machine: Machine, work: GemmWork, trace: Trace) -> GemmFigures:
    """What the run of a product came to.

    machine, work: as `lowered` had and made it.
    trace: of the run of its program.
    """
    cut, times = work.division.cut, step_times(work.program, trace)
    finish = np.zeros(cut.threads, np.int64)
    np.maximum.at(finish, times.thread, times.end)
    steps = [step for steps in steps_of(machine, work.division) for step in steps]
    buffered = cut.threads * cut.mb * cut.nb * machine.element_bytes if work.division.buffer else 0
    return GemmFigures(
        makespan=trace.makespan_cycles,
        finish=tuple(finish.tolist()),
        waits=waits_of(times),
        counts=work.counts,
        compute=int(compute_of(machine, steps).sum()),
        of_memory=int(times.of_memory.sum()),
        buffer_bytes=buffered,
    )
