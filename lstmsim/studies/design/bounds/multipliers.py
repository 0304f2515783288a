"""Multiplier blocks of all points of a box at once: what `lstmsim fit` counts, without its other resources."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from lstmsim.machines.bounds import Column
from lstmsim.machines.registry import capability
from lstmsim.model.model import Precision
from lstmsim.model.numerics.fixed import Multiplier
from lstmsim.studies.design.space import Box
from lstmsim.studies.fit.device import Device
from lstmsim.studies.fit.needs import hardware_of


def multiplier_blocks(box: Box, device: Device) -> Column | None:
    """Count the multiplier blocks that each point needs at least; None where the machine gives no columns.

    Where a packing is not known, nothing is counted.
    """
    machine: Any = capability(box.scenario.chip.kind, "bounds")
    if machine is None:
        return None
    hardware, precision = hardware_of(box.scenario.chip), box.scenario.precision
    cells = list(dict.fromkeys(layer.cell for job in box.scenario.jobs for layer in job.model.layers))
    total: Column = np.asarray(0)
    tails: dict[Multiplier, Column] = {}
    for entry, count in zip(box.entries, box.counts, strict=True):
        core = machine.read(entry)
        total = total + count * _array(hardware, core, precision, device)
        tail = hardware.tail(core, cells, precision)
        for each in tail.each | tail.once:
            own = tail.lanes * tail.each[each] + tail.once[each]
            tails[each] = tails.get(each, 0) + count * _independent(each, own, device)
    return total + sum(tails.values(), np.asarray(0))


def _array(hardware: Any, core: Any, precision: Precision, device: Device) -> Column:
    """Blocks of an array. Which packing it has depends on how many products have an operand in common."""
    number, (weight, vector) = np.asarray(hardware.multipliers(core)), hardware.meets(core)
    most = max(packing.group for packing in device.packings)
    weight, vector = np.broadcast_arrays(np.minimum(weight, most), np.minimum(vector, most))
    pairs = np.broadcast_to(weight * (most + 1) + vector, np.broadcast_shapes(weight.shape, number.shape))
    blocks = np.zeros(pairs.shape, np.int64)
    for pair in np.unique(pairs).tolist():
        packing = device.packing(precision.weight_bits, precision.vector_bits, *divmod(pair, most + 1))
        if packing is not None:
            blocks = np.where(pairs == pair, -(-number // packing.products), blocks)
    return blocks


def _independent(multiplier: Multiplier, count: Column, device: Device) -> Column:
    """Blocks for so many independent multipliers, in the packing that takes the fewest."""
    able = [each for each in device.packings if each.independent]
    needs = [-(-np.asarray(count) * each.pieces(*multiplier.widths) // each.products) for each in able]
    return reduce(np.minimum, needs) if needs else np.asarray(0)
