"""Bounds on the operations of a time step of a job. Its products are planned for them, and no line is traced."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.machines.assembly import PerStep
from lstmsim.machines.multicore.chip import CpuCore, machine_of
from lstmsim.machines.multicore.execution.steps import steps_of
from lstmsim.machines.multicore.jobs.arrays import divisions_of
from lstmsim.machines.multicore.jobs.program import places_for, twin
from lstmsim.machines.multicore.jobs.traced import TRACED
from lstmsim.machines.multicore.machine import Machine
from lstmsim.model.model import Model

__all__ = ["operations_per_step", "per_step"]


def operations_per_step(machine: Machine, model: Model, batch: int, threads: int) -> PerStep:
    """Bounds on the operations of one step of a job.

    machine: where it runs.
    model: the network.
    batch: how many sequences it has.
    threads: on how many cores it runs.
    """
    each = 0
    for layer in model.layers:
        steps = threads
        for division in divisions_of(machine, layer, batch, threads):
            steps += sum(map(len, steps_of(machine, division)))
        each += layer.directions * (steps * (1 + machine.domains) + 2)
    ways = len({twin(machine, first, threads) for first in places_for(machine, threads)})
    return PerStep(each, each * ways * TRACED)


def per_step(cores: Sequence[CpuCore], model: Model, batch: int = 1, split: str = "", members: int = 1) -> PerStep:
    """Bounds on the operations of one step of a job; arguments as for `lstmsim.machines.target.Target.per_step`.

    What cores share does not stand in them. It is taken as in a chip that says nothing about it; when jobs are lowered,
    it is known, and they are counted again.
    """
    return operations_per_step(machine_of({}, cores[0], members), model, batch, members)
