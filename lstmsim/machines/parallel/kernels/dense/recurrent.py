"""Recurrent layers: in every step a product and what follows it, in kernels of their own or in a persistent one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.parallel.cells import GATES
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import Kernel, Memory, Run
from lstmsim.machines.parallel.kernels.csr.rows import addressable
from lstmsim.machines.parallel.kernels.dense.cell import SHAPE, CellPhase, Gru, GruNew, GruReset, Lstm, Rnn, RnnRelu
from lstmsim.machines.parallel.kernels.dense.gemm import gemm_partials, gemm_phases
from lstmsim.machines.parallel.kernels.dense.gemv import Gemv
from lstmsim.machines.parallel.kernels.dense.phases import (
    Phase,
    blocks_of,
    persistent_kernel,
    persistent_shape,
    phase_kernel,
)
from lstmsim.machines.parallel.kernels.dense.sections import Sections
from lstmsim.machines.parallel.kernels.dense.tiles import Tile
from lstmsim.machines.parallel.kernels.made import Made
from lstmsim.machines.parallel.kernels.options import bad_choice, bad_number, refuse
from lstmsim.machines.parallel.residency import residency

__all__ = ["CELLS", "RecurrentSizes", "recurrent_layer"]

#: Cells that there are kernels for.
CELLS = tuple(GATES)


@record
class RecurrentSizes:
    """What a recurrent layer runs on.

    hidden: units.
    input: elements of x.
    batch: sequences side by side.
    steps: time steps.
    cell: one of `CELLS`.

    InputError if a value does not fit.
    """

    hidden: int
    input: int
    batch: int
    steps: int
    cell: str = "lstm"

    def __post_init__(self) -> None:
        numbers = {"H": self.hidden, "X": self.input, "N": self.batch, "steps": self.steps}
        refuse([*(bad_number(name, value) for name, value in numbers.items()), bad_choice("cell", self.cell, CELLS)])


@dataclass(frozen=True)
class _Product:
    """A product of a step.

    names: arrays of weights, inputs and sums.
    sections: rows of the weights, and which of their columns are not all zero.
    bias: array of the biases, one for each row.
    """

    names: tuple[str, str, str]
    sections: Sections
    bias: str

    @property
    def rows(self) -> int:
        """Rows of the weights."""
        return sum(count for count, _, _ in self.sections)


def recurrent_layer(
    sizes: RecurrentSizes, tile: Tile | None, split: int, device: Device, persistent: bool = False
) -> Made:
    """The kernels of all steps of a layer, over arrays that are declared once. Timing only: no numbers are computed.

    sizes: of the layer.
    tile: of the product; not used (and may be None) for one sequence, which runs as matrix times vector.
    split: slices of the product, 0 for the rule.
    device: the device that they are written for.
    persistent: whether all steps are one kernel with grid barriers.

    InputError if sizes or tile do not fit, or not all blocks of a persistent kernel are there at once.
    """
    if sizes.batch > 1 and tile is None:
        raise InputError(Mistake("tile", "is missing; a product for several sequences has one"))
    steps = _steps(sizes, device.warp)
    columns = sizes.input + sizes.hidden
    memory = _memory(sizes, steps)
    phases: list[Phase] = []
    partial = 0
    for each in steps:
        if isinstance(each, CellPhase):
            phases.append(each)
        elif sizes.batch == 1 or tile is None:
            phases.append(Gemv(device.warp, each.names, each.sections, columns))
        else:
            shape = (each.rows, columns, sizes.batch)
            phases += gemm_phases(device, each.names, shape, tile, split, each.sections)
            partial = max(partial, gemm_partials(shape, tile, split, device))
    if partial:
        memory.append(Memory("partial", partial))
    declared = addressable(tuple(memory), device.element_bytes)
    arrays = {each.name: place for place, each in enumerate(declared)}
    kernels: tuple[Kernel, ...]
    if persistent:
        _check_room(sizes, phases, device)
        kernels = (persistent_kernel(sizes.cell, phases * sizes.steps, device, arrays),)
    else:
        kernels = tuple(phase_kernel(each, device, arrays) for each in phases) * sizes.steps
    products = [each for each in steps if isinstance(each, _Product)]
    useful = sum(count * (high - low) for each in products for count, low, high in each.sections)
    return Made(Run(declared, kernels), None, {"macs": useful * sizes.batch * sizes.steps})


def _check_room(sizes: RecurrentSizes, phases: Sequence[Phase], device: Device) -> None:
    """`InputError` if blocks would wait at a grid barrier for others that have no room until these end."""
    shape = persistent_shape(sizes.cell, phases)
    blocks, resident = blocks_of(shape, phases), residency(shape, device)
    if blocks > resident * device.sms:
        layer = f"a layer {sizes.cell} of {sizes.hidden:,} units with batch {sizes.batch}"
        room = f"the chip has room for {resident * device.sms:,} at once ({resident} on each of {device.sms} SMs)"
        text = (
            f"persistent runs {layer} as {blocks:,} thread blocks that wait for each other at grid barriers, and {room}"
        )
        raise InputError(Mistake("chip.recurrent", f"{text}: 'kernels' runs it"))


def _steps(sizes: RecurrentSizes, lanes: int) -> list[_Product | CellPhase]:
    """The products and cell phases of a step, in order."""
    x, h = sizes.input, sizes.hidden
    both = x + h
    phase = (SHAPE, lanes, h * sizes.batch, sizes.batch)
    first = ("W", "xh", "gates")
    if sizes.cell == "lstm":
        return [_Product(first, ((4 * h, 0, both),), "bias"), Lstm(*phase)]
    if sizes.cell == "gru":
        # the sum of n over x and that over h stay apart: each has rows of its own, with zeros under the other's columns
        return [_Product(first, ((2 * h, 0, both), (h, 0, x), (h, x, both)), "bias"), Gru(*phase)]
    if sizes.cell == "gru-lbr0":
        gates = _Product(first, ((2 * h, 0, both),), "bias")
        new = _Product(("Wn", "xrh", "new"), ((h, 0, both),), "bias_new")
        return [gates, GruReset(*phase), new, GruNew(*phase)]
    return [_Product(first, ((h, 0, both),), "bias"), (Rnn if sizes.cell == "rnn" else RnnRelu)(*phase)]


def _memory(sizes: RecurrentSizes, steps: list[_Product | CellPhase]) -> list[Memory]:
    """The arrays of a layer."""
    columns, state = sizes.input + sizes.hidden, sizes.hidden * sizes.batch
    memory = []
    for each in steps:
        if isinstance(each, CellPhase):
            continue
        weights, inputs, sums = each.names
        memory += [Memory(weights, each.rows * columns), Memory(inputs, columns * sizes.batch)]
        memory += [Memory(sums, each.rows * sizes.batch), Memory(each.bias, each.rows)]
    memory += [Memory("c", state)] if sizes.cell == "lstm" else []
    memory += [Memory("rh", state)] if sizes.cell == "gru-lbr0" else []
    return [*memory, Memory("h", state)]
