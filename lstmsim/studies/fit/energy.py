"""Operations of a job, counted from the cell graph, and their energy in an ASIC: compare, do not quote."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.assembly import OperationClasses
from lstmsim.machines.hardware import Hardware
from lstmsim.model.cell import REDUCTIONS
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.scenario import Chip
from lstmsim.report.results import Result
from lstmsim.studies.fit.needs import hardware_of


@dataclass(frozen=True)
class Operations:
    """Counts of one job, over all inferences of its batch. Padding is not counted."""

    steps: int  # time steps of each inference
    macs: int  # multiply-accumulates, each of which reads a weight
    weight_sharing: int  # inferences that share each such read
    vector_reads: int  # vector_reads, vector_writes: elements of vectors
    vector_writes: int
    sums: int  # sums that leave the array
    state_reads: int  # state_reads, state_writes: elements of states other than h
    state_writes: int
    tail: Mapping[str, int] = field(hash=False)  # element-wise operations by their class (`Hardware.energies`)


def operations(hardware: Hardware, core: Any, model: Model, steps: int, batch: int = 1) -> Operations:
    """Count what a batch of inferences of a model takes on a core; `InputError` if the core cannot run it, or for no
    steps.
    """
    if steps < 1:
        raise InputError(Mistake("steps", f"must be at least 1, got {steps}"))
    reason = core.refusal(model)
    if reason:
        raise InputError(Mistake(f"model {model.name}", reason))
    tail: Counter[str] = Counter()
    for layer in model.layers:
        tail.update(_tail(layer, hardware.energies))
    all_steps = steps * batch
    layers = [(layer, layer.directions * all_steps) for layer in model.layers]
    states = sum(times * layer.width(each) for layer, times in layers for each in layer.cell.states if each != "h")
    return Operations(
        steps,
        macs=model.macs_per_step * all_steps,
        weight_sharing=hardware.weight_sharing(core),
        vector_reads=sum(times * hardware.vector_reads(core, layer) for layer, times in layers),
        vector_writes=sum(times * _vector_writes(layer) for layer, times in layers),
        sums=sum(
            times * len(stage.sums) * layer.units(stage.rows) for layer, times in layers for stage in layer.cell.stages
        ),
        state_reads=states,
        state_writes=states,
        tail={name: all_steps * count for name, count in sorted(tail.items())},
    )


def _tail(layer: Layer, classes: OperationClasses) -> Counter[str]:
    """Element-wise operations of one step, both directions; a mean adds its elements, a mean square multiplies them
    too.
    """
    counts: Counter[str] = Counter()
    for node in layer.cell.nodes:
        if node.operation in REDUCTIONS:
            elements = sum(layer.width(each) for each in node.sources)
            counts[classes.of_operation("add")] += elements
            if node.operation == "mean_square":
                counts[classes.of_operation("multiply")] += elements
        else:
            counts[classes.of_operation(node.operation)] += layer.width(node.name)
    return Counter({name: layer.directions * count for name, count in counts.items()})


def _vector_writes(layer: Layer) -> int:
    """Elements of x as it comes in, and of every quantised vector as it is made."""
    made = [node.name for node in layer.cell.nodes if node.operation == "quantize"]
    return layer.width("x") + sum(layer.width(name) for name in made)


#: Classes of operations for which no table has an energy; they are counted in `left_out`.
WITHOUT_ENERGY = ("divide",)

RELATIVE = "relative: energies of an ASIC in another process; only ratios between rows of one table mean something"


@dataclass(frozen=True)
class EnergyTable:
    """Energies in pJ of operations.

    Widths that the table does not have are read off the straight line through its two ends, both axes logarithmic: an
    assumption, because the table has no others. A memory takes the entry of the next larger one.
    """

    name: str  # of the table
    add_pj: Mapping[int, float] = field(hash=False)  # add_pj, multiply_pj: by width in bits
    multiply_pj: Mapping[int, float] = field(hash=False)
    access_pj: Mapping[int, float] = field(hash=False)  # of an access to a memory, by the memory's bytes
    access_bits: int = 64  # bits of such an access
    source: str = ""  # where the energies are from

    def add(self, bits: int) -> float:
        """Give the pJ of an addition."""
        return _on_line(self.add_pj, bits)

    def multiply(self, first_bits: int, second_bits: int) -> float:
        """Give the pJ of a multiplication; unequal widths count as their geometric mean."""
        return _on_line(self.multiply_pj, math.sqrt(first_bits * second_bits))

    def access(self, bits: float, memory_bytes: int) -> float:
        """Give the pJ to read or write that many bits of a memory."""
        sizes = sorted(self.access_pj)
        size = next((each for each in sizes if each >= memory_bytes), sizes[-1])
        return self.access_pj[size] * bits / self.access_bits


def _on_line(known: Mapping[int, float], bits: float) -> float:
    """The energy at a width, on the straight line through the table's ends."""
    low, high = min(known), max(known)
    if low == high:
        return known[low]
    slope = math.log(known[high] / known[low]) / math.log(high / low)
    return known[low] * math.exp(slope * math.log(bits / low))


#: 45 nm, 0.9 V. DRAM (1.3 to 2.6 nJ) is left out: the weights of both machines stay on the chip.
HOROWITZ_2014 = EnergyTable(
    "Horowitz 2014",
    add_pj={8: 0.03, 32: 0.1},
    multiply_pj={8: 0.2, 32: 3.1},
    access_pj={8 * 1024: 10.0, 32 * 1024: 20.0, 1024 * 1024: 100.0},
    source="Horowitz, Computing's Energy Problem (and what we can do about it), ISSCC 2014, "
    "doi 10.1109/ISSCC.2014.6757323: 45 nm at 0.9 V",
)


@dataclass(frozen=True)
class Energy(Result, forms="lstmsim.studies.fit.report"):
    """Energy of one job.

    model, steps: what each of its inferences runs.
    parts: pJ by name.
    operations: what was counted.
    table: the energies.
    left_out: operations by name for which the table has no energy.
    label: what the numbers can be used for.
    batch: inferences of the job.
    """

    model: str
    steps: int
    parts: Mapping[str, float] = field(hash=False)
    operations: Operations
    table: EnergyTable
    left_out: Mapping[str, int] = field(hash=False)
    label: str = RELATIVE
    batch: int = 1

    @property
    def total_nj(self) -> float:
        """The sum of the parts in nJ."""
        return sum(self.parts.values()) / 1000


def energy(
    chip: Chip,
    model: Model,
    steps: int,
    precision: Precision,
    table: EnergyTable = HOROWITZ_2014,
    *,
    core: int = 0,
    batch: int = 1,
    block_bytes: int = 8192,
) -> Energy:
    """Give the energy of one job on one core of a chip, relative.

    Divisions have no energy in the table: they are counted in `left_out`.
    """
    if not 0 <= core < len(chip.cores):
        raise InputError(Mistake(f"chip {chip.name}: core", f"must be 0 to {len(chip.cores) - 1}, got {core}"))
    hardware = hardware_of(chip)
    count = operations(hardware, chip.cores[core], model, steps, batch)

    def access(bits: float) -> float:
        return table.access(bits, block_bytes)

    each = _of_tail(precision, table, access)
    sums = precision.accumulator_bits
    unknown = sorted(count.tail.keys() - each.keys() - {*WITHOUT_ENERGY})
    if unknown:
        text = f"{table.name} has no energy for operations of class {unknown[0]!r}, so the tail's cannot be given"
        raise InputError(Mistake(f"model {model.name}", text))
    parts = {
        "multiply": count.macs * table.multiply(precision.weight_bits, precision.vector_bits),
        "accumulate": count.macs * table.add(sums),
        "weight reads": access(precision.weight_bits * count.macs / count.weight_sharing),
        "vectors": access(precision.vector_bits * (count.vector_reads + count.vector_writes)),
        "sums": count.sums * (table.add(sums) + table.multiply(sums, precision.multiplier_bits)),
        "tail": sum(number * each[name] for name, number in count.tail.items() if name in each),
        "states": access(precision.state_bits * (count.state_reads + count.state_writes)),
    }
    left_out = {name: number for name, number in count.tail.items() if name in WITHOUT_ENERGY}
    missing = hardware.not_in_energy(chip)
    label = f"{RELATIVE}; {missing}" if missing else RELATIVE
    return Energy(model.name, steps, parts, count, table, left_out, label, batch)


def _of_tail(precision: Precision, table: EnergyTable, access: Callable[[float], float]) -> dict[str, float]:
    """The energy of one operation of the tail, by its class."""
    tail, linear = precision.tail_bits, precision.activation == "linear"
    line = table.multiply(tail, tail) + table.add(tail) if linear else 0.0
    return {
        "elementwise_add": table.add(tail),
        "elementwise_multiply": table.multiply(tail, tail),
        # Rounding is an addition; a linear activation reads a slope and an offset, a table one value.
        "quantize": table.add(tail),
        "activation": access(tail * (2 if linear else 1)) + line,
    }
