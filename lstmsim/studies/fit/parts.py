"""What the cores of a chip are built of, asked of its machine."""

from __future__ import annotations

from lstmsim.base.errors import InputError
from lstmsim.machines.hardware import Hardware
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Chip

__all__ = ["NO_PARTS", "hardware_of"]

#: The error for machines that do not say what they are built of.
NO_PARTS = "a chip of kind '{kind}' has no parts that could be counted"


def hardware_of(chip: Chip) -> Hardware:
    """Give what the chip's machine says of its cores; `InputError` if that machine has no parts that could be counted.

    >>> from lstmsim.files.scenario.scenario_file import load_chip
    >>> chip = load_chip("column-npu-16k")
    >>> hardware_of(chip).multipliers(chip.cores[0])
    16384
    """
    hardware = target_of(chip.kind).hardware()
    if hardware is None:
        raise InputError(NO_PARTS.format(kind=chip.kind))
    return hardware
