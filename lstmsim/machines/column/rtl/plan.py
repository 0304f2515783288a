"""What a generated NPU is built of: one frozen description, from which every file is written."""

from __future__ import annotations

from functools import cached_property

from lstmsim.base.records import record
from lstmsim.machines.column.core import ColumnCore
from lstmsim.machines.column.rtl.rows import JobRow, StageRow
from lstmsim.model.cell import Cell
from lstmsim.model.precision import Precision

__all__ = ["CorePlan", "Design", "Job", "Kind", "Program", "VectorMemory"]


@record
class Kind:
    """A kind of cell that a core has lanes for.

    cell: the cell.
    number: its number on the core.
    outputs: the nodes that are written as vectors: h first, then intermediate vectors in the order of the stages.
    passes: (model, layer, direction) of each pass, in the order of `StageRow.lane_pass`.
    memories: number of each output's vector memory, in the order of `outputs`.
    """

    cell: Cell
    number: int
    outputs: tuple[str, ...]
    passes: tuple[tuple[int, int, int], ...]
    memories: tuple[int, ...]


@record
class VectorMemory:
    """A memory of vector elements with one write port of `tail_width` elements and one read port of `ep` elements.

    number: its number on the core.
    kind: the kind of cell that writes it.
    slot: number of the vector among the outputs of that kind.
    elements: size of the part of one thread.
    """

    number: int
    kind: int
    slot: int
    elements: int


@record
class Program:
    """What a model does on a core.

    model: number of the model.
    stages: its rows, in order.
    counters: how many counters of visible vectors it has.
    interleaved: whether the passes take turns step by step (`layer_order: step`); else each pass does all its steps.
    """

    model: int
    stages: tuple[StageRow, ...]
    counters: int
    interleaved: bool


@record
class CorePlan:
    """A core.

    number: its number on the chip.
    core: its description.
    kinds: the cells that run on it.
    programs: one for each model; None where no job of the model may run on it.
    memories: its vector memories.
    jobs: for each job of the design, in posting order; None where the job may not run on it.
    rows: multiplier rows that are built: the most that a row block of any cell takes.
    weight_words, frame_words, constant_words: sizes of these memories in words.
    turns: turns of all passes of the largest program: the size of a thread's part of state memories.
    initial_words: words of initial states.
    """

    number: int
    core: ColumnCore
    kinds: tuple[Kind, ...]
    programs: tuple[Program | None, ...]
    memories: tuple[VectorMemory, ...]
    jobs: tuple[JobRow | None, ...]
    rows: int
    weight_words: int
    frame_words: int
    constant_words: int
    turns: int
    initial_words: int = 0

    @cached_property
    def tree_levels(self) -> int:
        """Levels of an adder tree."""
        return (self.core.ep - 1).bit_length()


@record
class Job:
    """A job, in the order in which the host posts jobs: by arrival, then by place in the scenario.

    index: its place in the scenario.
    name: its name.
    model: number of its model.
    steps: time steps.
    arrival: the first cycle in which it may be admitted.
    frame_interval: cycles between its frames.
    cores: the cores that it may run on, ascending.
    queue: number of its queue: jobs that may run on the same cores wait in one queue.
    """

    index: int
    name: str
    model: int
    steps: int
    arrival: int
    frame_interval: int
    cores: tuple[int, ...]
    queue: int


@record
class Design:
    """All that is generated.

    name: name of the scenario.
    models: names of the models, by number.
    cores: the cores.
    jobs: the jobs in posting order.
    precision: widths of all numbers.
    frequency_mhz: clock of the chip.
    """

    name: str
    models: tuple[str, ...]
    cores: tuple[CorePlan, ...]
    jobs: tuple[Job, ...]
    precision: Precision
    frequency_mhz: float

    @property
    def queues(self) -> tuple[tuple[int, ...], ...]:
        """The cores of each queue, by its number."""
        return tuple(dict.fromkeys(each.cores for each in self.jobs))
