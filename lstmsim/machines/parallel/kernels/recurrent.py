"""Recurrent layers: in every step a product and the cell's kernel, in kernels of their own or in a persistent one.

The arithmetic of cells is counted as docs/sparse_kernels.md does it for the LSTM: a bias is one `fma` for each sum, a
function one `sfu`, a multiplication alone or with the addition that follows it one `fma`; what may be issued together
is one instruction with a count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import must_be
from lstmsim.machines.parallel.device import GATES, ParallelDevice
from lstmsim.machines.parallel.kernel import Ints, Kernel, KernelShape, Made, Mask, Memory, Run, residency
from lstmsim.machines.parallel.kernels.dense import Sections, Tile, gemm_partials, product_phases
from lstmsim.machines.parallel.kernels.phases import (
    Phase,
    blocks_of,
    elements,
    persistent_kernel,
    persistent_shape,
    phase_kernel,
)
from lstmsim.machines.parallel.kernels.rows import addressable, check_sizes, numbered
from lstmsim.machines.parallel.writing.streams import Result, Warps

SHAPE = KernelShape("cell", 4, 32)


@dataclass(frozen=True)
class _Cell:
    """What the cells' texts know: units, and sequences. An element (unit, sequence) is unit * batch + sequence."""

    hidden: int
    batch: int

    def sums(
        self, warps: Warps, at: tuple[Ints, Mask], a: Result, which: range, gates: str = "gates", bias: str = "bias"
    ) -> list[Result]:
        """Load the sums of some gates, then their biases."""
        element, on = at
        sums = [warps.ldg(gates, gate * self.hidden * self.batch + element, on, [a]) for gate in which]
        return sums + [warps.ldg(bias, gate * self.hidden + element // self.batch, on, [a]) for gate in which]


def _lstm(cell: _Cell, warps: Warps, element: Ints, on: Mask) -> list[Result]:
    """c' = f c + i g, h = o tanh(c'), where i, f, o are sigmoids and g a tanh of sums with biases."""
    a = warps.alu(4)
    loads = cell.sums(warps, (element, on), a, range(4))
    c = warps.ldg("c", element, on, [a])
    gates = warps.sfu(4, [warps.fma(4, loads)])
    new = warps.fma(2, [gates, c])
    stores = [warps.stg("c", element, on, [new])]
    h = warps.fma(1, [warps.sfu(1, [new])])
    return [*stores, warps.stg("h", element, on, [h])]


def _gru(cell: _Cell, warps: Warps, element: Ints, on: Mask) -> list[Result]:
    """n = tanh(nx + r nh), h' = n + z (h - n), where r, z are sigmoids of sums; all four sums have biases."""
    a = warps.alu(4)
    loads = cell.sums(warps, (element, on), a, range(4))
    h = warps.ldg("h", element, on, [a])
    sums = warps.fma(4, loads)
    inner = warps.fma(1, [warps.sfu(2, [sums])])
    new = warps.fma(2, [warps.sfu(1, [inner]), h])
    return [warps.stg("h", element, on, [new])]


def _gru_reset(cell: _Cell, warps: Warps, element: Ints, on: Mask) -> list[Result]:
    """r h, where r is a sigmoid of its sum: what the second product of a GRU reads that resets before the product."""
    a = warps.alu(4)
    loads = cell.sums(warps, (element, on), a, range(1))
    h = warps.ldg("h", element, on, [a])
    r = warps.sfu(1, [warps.fma(1, loads)])
    return [warps.stg("rh", element, on, [warps.fma(1, [r, h])])]


def _gru_new(cell: _Cell, warps: Warps, element: Ints, on: Mask) -> list[Result]:
    """h' = n + z (h - n), where z is a sigmoid of the first product's sum and n a tanh of the second's."""
    a = warps.alu(4)
    z = cell.sums(warps, (element, on), a, range(1, 2))
    n = cell.sums(warps, (element, on), a, range(1), "new", "bias_new")
    h = warps.ldg("h", element, on, [a])
    both = warps.sfu(2, [warps.fma(2, z + n)])
    return [warps.stg("h", element, on, [warps.fma(2, [both, h])])]


def _rnn(cell: _Cell, warps: Warps, element: Ints, on: Mask) -> list[Result]:
    """h' = tanh of the sum with its bias."""
    total = warps.fma(1, cell.sums(warps, (element, on), warps.alu(4), range(1)))
    return [warps.stg("h", element, on, [warps.sfu(1, [total])])]


def _rnn_relu(cell: _Cell, warps: Warps, element: Ints, on: Mask) -> list[Result]:
    """h' = the sum with its bias, or 0 if that is negative: a selection, no function."""
    total = warps.fma(1, cell.sums(warps, (element, on), warps.alu(4), range(1)))
    return [warps.stg("h", element, on, [warps.alu(1, [total])])]


#: Cells that there are kernels for.
CELLS = tuple(GATES)


@record
class RecurrentSizes:
    """Units, elements of x, sequences side by side, time steps, and the cell: one of `CELLS`."""

    hidden: int
    input: int
    batch: int
    steps: int
    cell: str = "lstm"

    def __post_init__(self) -> None:
        check_sizes({"H": self.hidden, "X": self.input, "N": self.batch, "steps": self.steps})
        if self.cell not in CELLS:
            raise InputError(Mistake("cell", must_be(self.cell, CELLS)))


@dataclass(frozen=True)
class _Product:
    """A product of a step."""

    names: tuple[str, str, str]  # arrays of weights, inputs and sums
    sections: Sections  # rows of the weights, and which of their columns are not all zero
    bias: str  # array of the biases, one for each row

    @property
    def rows(self) -> int:
        """Rows of the weights."""
        return sum(count for count, _, _ in self.sections)


def recurrent_layer(
    sizes: RecurrentSizes, tile: Tile | None, split: int, device: ParallelDevice, persistent: bool = False
) -> Made:
    """The kernels of all steps of a layer, for timing; `InputError` if sizes, tile or persistent grid do not fit."""
    if sizes.batch > 1 and tile is None:
        raise InputError(Mistake("tile", "is missing; a product for several sequences has one"))
    steps = _steps(sizes, device.core.warp)
    columns = sizes.input + sizes.hidden
    memory = _memory(sizes, steps)
    phases: list[Phase] = []
    partial = 0
    for each in steps:
        if isinstance(each, Phase):
            phases.append(each)
            continue
        own = None if sizes.batch == 1 else tile
        phases += product_phases(device, each.names, each.sections, (columns, sizes.batch), own, split)
        if own is not None:
            partial = max(partial, gemm_partials((each.rows, columns, sizes.batch), own, split, device))
    if partial:
        memory.append(Memory("partial", partial))
    declared = addressable(tuple(memory), device.element_bytes)
    arrays = numbered(declared)
    kernels: tuple[Kernel, ...]
    if persistent:
        _check_room(sizes, phases, device)
        kernels = (persistent_kernel(sizes.cell, phases * sizes.steps, device, arrays),)
    else:
        kernels = tuple(phase_kernel(each, device, arrays) for each in phases) * sizes.steps
    products = [each for each in steps if isinstance(each, _Product)]
    useful = sum(count * (high - low) for each in products for count, low, high in each.sections)
    return Made(Run(declared, kernels), None, {"macs": useful * sizes.batch * sizes.steps})


def _check_room(sizes: RecurrentSizes, phases: Sequence[Phase], device: ParallelDevice) -> None:
    """`InputError` if blocks would wait at a grid barrier for others that cannot start until these end."""
    shape = persistent_shape(sizes.cell, phases)
    blocks, resident = blocks_of(shape, phases), residency(shape, device)
    if blocks > resident * device.sms:
        layer = f"a layer {sizes.cell} of {sizes.hidden:,} units with batch {sizes.batch}"
        room = f"the chip has room for {resident * device.sms:,} at once ({resident} on each of {device.sms} SMs)"
        text = (
            f"persistent runs {layer} as {blocks:,} thread blocks that wait for each other at grid barriers, and {room}"
        )
        raise InputError(Mistake("chip.recurrent", f"{text}: 'kernels' runs it"))


def _steps(sizes: RecurrentSizes, lanes: int) -> list[_Product | Phase]:
    """The products and cell phases of a step, in order."""
    x, h = sizes.input, sizes.hidden
    both = x + h
    cell = _Cell(h, sizes.batch)

    def after(text: Callable[[_Cell, Warps, Ints, Mask], list[Result]]) -> Phase:
        return elements(SHAPE, lanes, h * sizes.batch, partial(text, cell))

    first = ("W", "xh", "gates")
    if sizes.cell == "lstm":
        return [_Product(first, ((4 * h, 0, both),), "bias"), after(_lstm)]
    if sizes.cell == "gru":
        # the sum of n over x and that over h stay apart: each has rows of its own, with zeros under the other's columns
        return [_Product(first, ((2 * h, 0, both), (h, 0, x), (h, x, both)), "bias"), after(_gru)]
    if sizes.cell == "gru-lbr0":
        gates = _Product(first, ((2 * h, 0, both),), "bias")
        new = _Product(("Wn", "xrh", "new"), ((h, 0, both),), "bias_new")
        return [gates, after(_gru_reset), new, after(_gru_new)]
    return [_Product(first, ((h, 0, both),), "bias"), after(_rnn if sizes.cell == "rnn" else _rnn_relu)]


def _memory(sizes: RecurrentSizes, steps: list[_Product | Phase]) -> list[Memory]:
    """The arrays of a layer."""
    columns, state = sizes.input + sizes.hidden, sizes.hidden * sizes.batch
    memory = []
    for each in steps:
        if isinstance(each, Phase):
            continue
        weights, inputs, sums = each.names
        memory += [Memory(weights, each.rows * columns), Memory(inputs, columns * sizes.batch)]
        memory += [Memory(sums, each.rows * sizes.batch), Memory(each.bias, each.rows)]
    memory += [Memory("c", state)] if sizes.cell == "lstm" else []
    memory += [Memory("rh", state)] if sizes.cell == "gru-lbr0" else []
    return [*memory, Memory("h", state)]
