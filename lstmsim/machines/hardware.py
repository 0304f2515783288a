"""The part of the contract about hardware: what a machine's cores are built of, to be counted on a device.

All machines share some assumptions, because they are choices of a design. Every core holds the weights of all models,
so that each job may run on each core. Small memories are of logic where the device's table says what that takes; else
sums are in registers, and everything else is in block memory, even if it is shallow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from lstmsim.machines.assembly import OperationClasses
from lstmsim.model.cell import Cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.scenario import Job

if TYPE_CHECKING:
    from collections import Counter

    from lstmsim.model.numerics.fixed import Multiplier


#: Class of energies -> operations, for a tail with an adder, a multiplier, a divider and tables.
ENERGY_CLASSES = {
    "activation": "sigmoid tanh exp log_sigmoid rsqrt",
    "elementwise_multiply": "multiply",
    "elementwise_add": "add subtract maximum minimum relu",
    "divide": "divide",
    "quantize": "quantize",
}


@dataclass(frozen=True)
class Demand:
    """A demand for memory."""

    name: str  # what the memories hold
    bits: int  # bits of all memories together, with padding
    read_bits: int  # bits that are read in a cycle from all memories together, in one access of each
    memories: int = 1  # how many equal memories with addresses of their own
    writes: int = 0  # accesses in a cycle that write, in addition to those that read
    reads: int = 1  # accesses in a cycle that read, each with an address of its own
    instant: bool = False  # whether a word is read in the cycle of its address, which block memory cannot do
    # delay lines of a part's registers that hold what was read: cycles behind the memory's own register, bits
    behind: tuple[tuple[int, int], ...] = ()
    written: int = 0  # bits of a word that are written at once; 0: the whole word

    @property
    def width(self) -> int:
        """Bits that are read of one of its memories in one access."""
        return -(-self.read_bits // self.memories)

    @property
    def words(self) -> int:
        """Words of one of its memories.

        >>> Demand("weights", bits=640, read_bits=64, memories=2).words
        10
        """
        return -(-self.bits // max(1, self.memories * self.width))


@dataclass(frozen=True)
class TailLanes:
    """The multipliers after a core's array."""

    lanes: int  # how many units or elements enter in a cycle
    each: Counter[Multiplier]  # multipliers of every lane
    once: Counter[Multiplier]  # multipliers that the core has once


@dataclass(frozen=True)
class Part:
    """A part of a core, without its multipliers."""

    name: str  # what it is
    adders: int = 0  # bits of its adders
    gates: int = 0  # functions of four inputs without its adders
    registers: int = 0  # bits of its registers, those in memories left out
    memories: tuple[Demand, ...] = ()  # its memories
    # of the registers: delay lines that nothing reads in between, each with its cycles and bits
    delays: tuple[tuple[int, int], ...] = ()
    beside: int = 0  # of the registers: those at an operand or a product of a multiplier, which its block may hold
    choices: int = 0  # two-way choices of bits where words are chosen from many that are no constants


@dataclass(frozen=True)
class Stored:
    """What the jobs of a chip need in addition to its models."""

    # the most time steps of a job, by the name of its model; 1 for those that are left out
    steps: Mapping[str, int] = field(default_factory=dict)
    # frames that lie in memories of the chip, by the name of the model; those left out are the host's
    frames: Mapping[str, int] = field(default_factory=dict)
    jobs: int = 1  # how many jobs the chip is made for
    kinds: int = 1  # how many of them differ in model or steps
    inferences: int = 1  # the most that run together on a context, whose vectors and states are there as often
    # bits of a job's row in a table that the host writes, from which each thread chooses; 0: jobs are constants
    row_bits: int = 0
    parts: tuple[Part, ...] = ()  # what the chip has once beside its cores

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> Stored:
        """What a scenario's jobs need, with their frames in the host's memory.

        >>> from lstmsim.model.cells import cell
        >>> model = Model("m", (Layer(cell("rnn"), 4, 4),))
        >>> Stored.of([Job("a", model, 3), Job("b", model, 5)]).steps
        {'m': 5}
        """
        steps: dict[str, int] = {}
        for job in jobs:
            steps[job.model.name] = max(steps.get(job.model.name, 1), job.steps)
        sizes = (job.batching.max_batch_size if job.batching else job.batch for job in jobs)
        return cls(steps, inferences=max(sizes, default=1))


class Hardware(ABC):
    """The hardware of the cores of one kind of machine. Each method answers for one core.

    energies: the classes of the tail's operations for tables of energies: `elementwise_add`, `elementwise_multiply`,
        `quantize`, `activation`, or `divide`, for which such tables have nothing.
    """

    energies: ClassVar[OperationClasses]

    @abstractmethod
    def multipliers(self, core: Any) -> int:
        """Multipliers of the array."""

    @abstractmethod
    def meets(self, core: Any) -> tuple[int, int]:
        """How many elements of vectors a weight meets in a cycle, and how many weights an element of a vector meets.

        A device may use one multiplier block for products that have an operand in common.
        """

    @abstractmethod
    def tail(self, core: Any, cells: Sequence[Cell], precision: Precision) -> TailLanes:
        """The multipliers after the array of a core that can run all of these cells."""

    @abstractmethod
    def vector_reads(self, core: Any, layer: Layer) -> int:
        """Elements of vectors that one step of a layer reads, in one direction."""

    @abstractmethod
    def parts(
        self, core: Any, models: Sequence[Model], precision: Precision, summed: int, stored: Stored
    ) -> tuple[Part, ...]:
        """The parts of a core that can run all of these models, the array first.

        summed: products that leave a multiplier block as one sum.
        stored: what the jobs need in addition to the models.
        """

    def of_one_device(self, chip: Any) -> Any:
        """What of a chip is on one device (FPGA): all of it, but for chips of several devices."""
        return chip

    def not_counted(self, stored: Stored) -> str:
        """What neither multipliers nor logic count; stored: as for `parts`."""
        return (
            "control, the tail beside its multipliers, fifos, routing, dividers, square roots, "
            "and the memory of activation tables and scale factors"
        )

    def weight_sharing(self, core: Any) -> int:
        """How many inferences share each read of a weight; 1 without batching."""
        return 1

    def element_bits(self, core: Any, precision: Precision) -> int:
        """Bits of an element of a vector as a multiplier of the array takes it."""
        return precision.vector_bits

    def not_in_energy(self, chip: Any) -> str:
        """What the energy of this machine leaves out in addition to the usual, as the end of a sentence; or empty."""
        return ""


def layers_of(models: Iterable[Model]) -> list[Layer]:
    """All layers of some models."""
    return [layer for model in models for layer in model.layers]


def most_vector_elements(models: Sequence[Model]) -> int:
    """Elements of the vectors of a step of the largest model: x, and twice the vectors that a step reads and makes."""
    return max(sum(_vector_elements(layer) for layer in model.layers) for model in models)


def _vector_elements(layer: Layer) -> int:
    made = {vector for stage in layer.cell.stages for vector in stage.vectors} - {"x"}
    return layer.width("x") + 2 * layer.directions * sum(layer.width(vector) for vector in made)


def _constant_bits(layer: Layer, precision: Precision) -> int:
    """Bits of biases (one for each sum and unit) and parameters."""
    sums = sum(len(stage.sums) * layer.units(stage.rows) for stage in layer.cell.stages)
    parameters = sum(layer.width(each) for each in layer.cell.parameters)
    return layer.directions * (sums * precision.accumulator_bits + parameters * precision.tail_bits)


def tail_bits(models: Sequence[Model], precision: Precision, contexts: int) -> int:
    """Bits of the states of the largest model for each context, and of biases and parameters of all models."""
    states = max(
        sum(each.directions * each.width(state) for each in model.layers for state in each.cell.states if state != "h")
        for model in models
    )
    constants = sum(_constant_bits(layer, precision) for layer in layers_of(models))
    return contexts * states * precision.state_bits + constants


def chosen(bits: int, inputs: int) -> int:
    """Functions of four inputs that choose one of several words.

    >>> chosen(8, 1), chosen(8, 2), chosen(8, 3), chosen(8, 8)
    (0, 8, 16, 64)
    """
    return bits * (inputs - 1 if inputs < 4 else inputs)


def tree_bits(inputs: int, width: int, summed: int = 1, most: int = 64) -> int:
    """Bits of all adders of a tree. Each level is one bit wider than the level before.

    inputs: how many products the tree adds.
    width: bits of a product.
    summed: how many products a multiplier block adds itself.
    most: largest width of an adder.
    """
    leaves = -(-inputs // summed)
    width += (summed - 1).bit_length()
    bits = 0
    while leaves > 1:
        width = min(width + 1, most)
        bits += leaves // 2 * width
        leaves -= leaves // 2
    return bits
