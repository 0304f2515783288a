"""The list of machines, with a line for each. No other file outside a machine's folder names a machine."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed
from lstmsim.machines.target import Target
from lstmsim.model.scenario import Chip

#: Kind of a chip -> module that fills in the contract as `TARGET`.
KINDS = {
    "column-npu": "lstmsim.machines.column.target",
    "row-npu": "lstmsim.machines.row.target",
    "parallel-device": "lstmsim.machines.parallel.target",
    "multicore": "lstmsim.machines.multicore.target",
    "edgedrnn": "lstmsim.machines.edgedrnn.target",
}


@cache
def target_of(kind: str) -> Target:
    """The machine of that kind; `InputError` if there is none.

    >>> target_of("column-npu").title
    'column-wise NPU'
    """
    if kind not in KINDS:
        raise InputError(f"there is no machine of kind {kind!r}; known are {', '.join(KINDS)}")
    target: Target = import_module(KINDS[kind]).TARGET
    return target


def capability(kind: str, name: str) -> Any:
    """What one study asks of one machine: the module of that name in the machine's folder, plain functions.

    None if the machine has none.

    >>> capability("column-npu", "array_search") is None, capability("row-npu", "array_search") is None
    (False, True)
    """
    target_of(kind)
    module = f"{KINDS[kind].rpartition('.')[0]}.{name}"
    return import_module(module) if find_spec(module) else None


def generated_of(chip: Chip) -> Any:
    """How the chip's machine is written as RTL, a module that `lstmsim.machines.rtl` describes; `InputError` if it is
    not.
    """
    found = capability(chip.kind, "generated")
    if found is None:
        written = [target_of(kind).title for kind in KINDS if capability(kind, "generated")]
        text = f"its machine, the {target_of(chip.kind).title}, cannot be written as RTL"
        raise InputError(Mistake(f"chip {chip.name}", f"{text}; machines that can: {listed(written, 'and')}"))
    return found
