"""What a generated NPU is built of: one frozen description with its control store, from which every file is written.

A **program** is what one model does on one core: one `StageRow` for each stage of each pass, in the order of layers,
directions and stages. A pass is a layer in one direction. A step of a pass is numbered in the order in which steps are
computed, from 0, also in a backward pass.

Of a job that is split over cores each member is a job to the core that it runs on, and each share of a model is a
program of its own: a `Part`.

Addresses are those of one thread's part of a memory where it says so; the part of thread t begins at t times the part's
size.
"""

from __future__ import annotations

from functools import cached_property

from lstmsim.base.records import record
from lstmsim.machines.column.npu import ColumnCore, Exchange, Memory
from lstmsim.model.cell import Cell
from lstmsim.model.model import Precision

#: How a sequence of vectors is kept: the last `two` steps (by the step's lowest bit), or `all` steps.
Kept = str

#: Where a column group is read from: `frame` (frame memory), `two` (a vector of which two steps are kept), `all_x`
#: (the layer below, of which all steps are kept), `all_h` (the own output of the step before, of which all are kept).
SourceKind = str


#: The most jobs and steps of a job, where jobs are a table that the host writes.
Capacity = tuple[int, int] | None


@record
class Need:
    """A wait of a column group: elements [begin, end) of its read must be visible, by one counter."""

    counter: int  # number of the counter, within the program
    begin: int  # begin, end: the elements of the read
    end: int
    flipped: bool  # whether the writing pass goes through time the other way, so that its step is steps - 1 - step
    member: int = 0  # which member of a split job writes these elements


@record
class ReadRow:
    """A vector that a stage reads, as a run of column groups."""

    vector: str  # its name in the cell (`x`, `h`, or a node)
    # what the log of events says in `of_x`: 1 for x, 0 for h, 2 and more for intermediate vectors, in their order
    code: int
    groups: int  # column groups
    elements: int  # its width; the last group may have fewer elements than `ep`
    source: SourceKind
    memory: int  # number of the vector memory in the core; -1 for frames
    # first element's address in the thread's part of that memory (step 0 of `two`; unused for `all_x`, `all_h`)
    base: int
    stride: int  # elements from one step to the next
    lag: int  # 1 if the vector is of the step before
    needs: tuple[Need, ...]  # counters that cover all elements; empty for frames
    # for each gate of the stage which of its sums takes the products; -1: none (its weights are zero)
    slots: tuple[int, ...]


@record
class WriteRow:
    """A vector that a segment writes."""

    node: str  # the `quantize` node
    slot: int  # number of the vector among those of its kind of cell; 0 is h
    memory: int  # number of the vector memory in the core
    counter: int  # number of its counter of visible steps and units, within the program
    kept: Kept
    base: int  # address of unit 0 (step 0 of `two`; for `all` see `JobRow.write_starts`), in the thread's part
    stride: int  # elements from one step to the next; negative for `all` in a backward pass
    visible_cycles: int  # from a unit's turn until it is visible, at least 1
    sent: bool = False  # whether another core reads it


@record
class Want:
    """A value that a later segment, or a segment that reads states without h, waits for."""

    segment: int  # number of the `SegmentRow` in the program that gives it
    cycles: int  # from the turn of the giving unit until the turn of the reading unit, at least
    lag: int  # 1 if it is of the step before
    reduced: bool  # whether it is one value for all units: the turn that counts is the last unit's


@record
class SegmentRow:
    """One go of the tail over all row blocks of a stage."""

    number: int  # number in the program
    stage_row: int  # number of its `StageRow` in the program
    index: int  # number in the stage; 0 comes from the array, all others from values of earlier segments
    lane_segment: int  # number among the segments of its kind of cell: the input of a lane
    writes: tuple[WriteRow, ...]  # vectors that it writes
    wants: tuple[Want, ...]  # what its blocks wait for in addition to the sums
    last: bool  # whether it is the last segment of the pass (its end is the end of the step)


@record
class StageRow:
    """A stage of a pass on a core: the loop nest of its tiles, and where its constants are."""

    number: int  # number in the program; the log of events calls it pass
    layer: int  # layer, direction, stage: which it is
    direction: int
    stage: int
    kind: int  # number of its cell among the kinds of the core
    lane_pass: int  # number of the pass among all passes of that kind on the core: it selects formats and tables
    gates: int  # rows of the matrix for each unit
    units: int  # units of a full row block
    blocks: int  # row blocks
    last_units: int  # units of the last row block
    reads: tuple[ReadRow, ...]  # vectors in the order of their issue
    weight_base: int  # address of the first tile's word; a step's words follow each other in the order of issue
    constant_base: int  # address of the first turn's word of adapter constants
    # address of the first turn in state and parameter memories, in the thread's part (parameters: of the core). Turn i
    # of block b is at `turn_base + b * ceil(units / tail_width) + i`. The stages of a pass share it
    turn_base: int
    segments: tuple[SegmentRow, ...]  # its segments in order
    first_of_pass: int  # number of the first `StageRow` of its pass
    last_of_pass: bool  # whether the step of the pass ends with it
    backward: bool  # whether the pass goes from the last time step to the first
    first_unit: int = 0  # of a share: the number of its first unit in the stage

    @property
    def block_tiles(self) -> int:
        return sum(each.groups for each in self.reads)

    @property
    def tiles(self) -> int:
        return self.blocks * self.block_tiles

    def turns(self, tail_width: int) -> int:
        """Turns of all row blocks in the tail."""
        return (self.blocks - 1) * -(-self.units // tail_width) + -(-self.last_units // tail_width)

    @property
    def unit_count(self) -> int:
        return (self.blocks - 1) * self.units + self.last_units


@record
class JobRow:
    """A job on one core that it may run on; jobs are numbered in the order in which the host posts them."""

    # address of the word of its first step's first group that is read (of the last time step, if layer 0 begins
    # backward, is `frame_ends`)
    frame_start: int
    frame_end: int  # address of the first word of its last time step
    # for each `StageRow` of its program the address of element 0 of step 0's x, in the thread's part (`all_x`)
    x_starts: tuple[int, ...]
    write_starts: tuple[int, ...]  # likewise of unit 0 of step 0 of its h (`all`)
    # what is added to a turn's address (without the thread's part) to give the address of its initial states, or -1:
    # states begin with 0
    initial: int = -1
    # for each `StageRow` the frame address of the first group of h before step 0, or -1: 0
    h_starts: tuple[int, ...] = ()


@record
class Kind:
    """A kind of cell that a core has lanes for."""

    cell: Cell
    number: int  # its number on the core
    # the nodes that are written as vectors: h first, then intermediate vectors in the order of the stages
    outputs: tuple[str, ...]
    # (model, layer, direction) of each pass, in the order of `StageRow.lane_pass`
    passes: tuple[tuple[int, int, int], ...]
    memories: tuple[int, ...]  # number of each output's vector memory, in the order of `outputs`


@record
class VectorMemory:
    """A memory of vector elements with one write port of `tail_width` elements and one read port of `ep` elements."""

    number: int  # its number on the core
    kind: int  # the kind of cell that writes it
    slot: int  # number of the vector among the outputs of that kind
    elements: int  # size of the part of one thread


@record
class Part:
    """What a job does on a core: all of a model, or what a member of a split job has of it."""

    model: int  # number of the model
    split: str = ""  # `rows`: a share of the units of every stage; `layers`: a run of layers; empty: all
    member: int = 0
    members: int = 1
    # of `layers`, for each layer its member, and the number of that member's core among the job's cores
    owners: tuple[int, ...] = ()
    places: tuple[int, ...] = ()


@record
class Program:
    """What a part of a model does on a core."""

    model: int  # number of the part
    stages: tuple[StageRow, ...]  # its rows, in order
    counters: int  # how many counters of visible vectors it has
    # whether the passes take turns step by step (`layer_order: step`); else each pass does all its steps
    interleaved: bool
    # whether vectors lie by their time step, 2^`Design.step_shift` elements apart: those of split jobs
    timed: bool = False
    # for each row and row block the cycles of its transfer in every step; 0: its weights stay. Empty: all stay
    transfers: tuple[tuple[int, ...], ...] = ()

    @property
    def phases(self) -> tuple[tuple[StageRow, ...], ...]:
        """Rows whose steps go through all of them: all rows, or those of a pass."""
        if self.interleaved:
            return (self.stages,)
        firsts = dict.fromkeys(row.first_of_pass for row in self.stages)
        return tuple(tuple(row for row in self.stages if row.first_of_pass == first) for first in firsts)

    def streamed(self, row: StageRow, block: int) -> int:
        """The cycles of a row block's transfer in every step; 0: its weights stay."""
        return self.transfers[row.number][block] if self.transfers else 0

    @property
    def segments(self) -> tuple[SegmentRow, ...]:
        return tuple(each for row in self.stages for each in row.segments)


@record
class CorePlan:
    """A core."""

    number: int  # its number on the chip
    core: ColumnCore  # its description
    kinds: tuple[Kind, ...]  # the cells that run on it
    programs: tuple[Program | None, ...]  # one for each model; None where no job of the model may run on it
    memories: tuple[VectorMemory, ...]  # its vector memories
    # for each job of the design, in posting order; None where the job may not run on it
    jobs: tuple[JobRow | None, ...]
    rows: int  # multiplier rows that are built: the most that a row block of any cell takes
    weight_words: int  # weight_words, frame_words, constant_words: sizes of these memories in words
    frame_words: int
    constant_words: int
    turns: int  # turns of all passes of the largest program: the size of a thread's part of state memories
    initial_words: int = 0  # words of initial states

    @cached_property
    def stages(self) -> tuple[StageRow, ...]:
        """The rows of all programs that are there."""
        return tuple(row for program in self.programs if program is not None for row in program.stages)

    @cached_property
    def stored(self) -> tuple[int, int]:
        """Words of weights that stay, and the words of a slot for those that are streamed."""
        stays = slot = 0
        for program in self.programs:
            for row in program.stages if program is not None else ():
                for block in range(row.blocks):
                    if program is not None and program.streamed(row, block):
                        slot = max(slot, row.block_tiles)
                    else:
                        stays += row.block_tiles
        return stays, slot

    @cached_property
    def sums(self) -> int:
        """The most sums of a stage of any kind of cell: the adapters of a lane."""
        return max((len(stage.sums) for kind in self.kinds for stage in kind.cell.stages), default=1)

    @cached_property
    def slots(self) -> int:
        """The most sums that a gate keeps apart: the accumulators of a row of the array."""
        gates = (gate for kind in self.kinds for stage in kind.cell.stages for gate in stage.gates)
        return max((len(gate.sums) for gate in gates), default=1)

    @cached_property
    def tree_levels(self) -> int:
        return (self.core.ep - 1).bit_length()


@record
class Job:
    """A job, in the order in which the host posts jobs: by arrival, then by place in the scenario."""

    index: int  # its place in the scenario
    name: str
    model: int  # number of the part of a model that it does; without split jobs that of its model
    steps: int  # time steps
    arrival: int  # the first cycle in which it may be admitted
    frame_interval: int  # cycles between its frames
    cores: tuple[int, ...]  # the cores that it may run on, ascending
    queue: int  # number of its queue: jobs that may run on the same cores wait in one queue
    parent: int  # number of the job whose member it is: its own, but for members that nobody posts
    member: int = 0
    members: int = 1


@record
class Queue:
    """A queue of jobs."""

    split: str  # `` (its jobs run on one core), `fixed` (on all of `cores` at once), `auto`
    cores: tuple[int, ...]  # the cores that its jobs may use, in the order of members


@record
class Design:
    """The plan of all generated files."""

    name: str  # name of the scenario
    models: tuple[str, ...]  # names of the parts of models, by number; without split jobs those of the models
    cores: tuple[CorePlan, ...]
    jobs: tuple[Job, ...]  # the jobs in posting order, and behind them members of split jobs, which nobody posts
    precision: Precision  # widths of all numbers
    frequency_mhz: float  # clock of the chip
    posted: int  # how many jobs the host posts
    queues: tuple[Queue, ...]
    parts: tuple[Part, ...]
    exchange: Exchange
    step_shift: int = 0  # see `Program.timed`
    memory: Memory | None = None  # the memory from which weights are streamed; None: all weights stay
    # None: jobs are constants
    capacity: Capacity = None

    @property
    def job_places(self) -> int:
        """Jobs of which the hardware knows."""
        return self.capacity[0] if self.capacity else len(self.jobs)

    @property
    def most_steps(self) -> int:
        return self.capacity[1] if self.capacity else max(job.steps for job in self.jobs)

    @cached_property
    def table_jobs(self) -> tuple[Job, ...]:
        """The jobs, and behind them places of the table that nobody posts."""
        free = range(len(self.jobs), self.job_places)
        return (*self.jobs, *(Job(each, "", 0, 0, 0, 0, (), 0, each) for each in free))

    def job_rows(self, plan: CorePlan) -> tuple[JobRow | None, ...]:
        """What a core knows of these."""
        return plan.jobs + (None,) * (self.job_places - len(plan.jobs))

    @cached_property
    def programs(self) -> tuple[tuple[CorePlan, Program], ...]:
        """The programs that are there, each with its core, in the order of cores and models."""
        return tuple((plan, each) for plan in self.cores for each in plan.programs if each is not None)

    @cached_property
    def rows(self) -> tuple[StageRow, ...]:
        """The rows of all programs in that order; a row's index is its number in the signals."""
        return tuple(row for _, program in self.programs for row in program.stages)

    @property
    def split(self) -> bool:
        """Whether a job is split over cores."""
        return any(each.split for each in self.queues)

    @cached_property
    def _members(self) -> dict[tuple[int, int, int], int]:
        return {(job.parent, job.members, job.member): number for number, job in enumerate(self.jobs)}

    def member(self, job: int, members: int, member: int) -> Job:
        """What a member of a job is to its core, by the numbers of job and member."""
        return self.jobs[self._members[job, members, member]]

    def weight_words(self, plan: CorePlan) -> int:
        """Words of a core's weight memory."""
        if self.memory is None:
            return plan.weight_words
        stays, slot = plan.stored
        return stays + plan.core.threads * self.memory.prefetch_blocks * slot

    def homes(self, core: int) -> bool:
        """Whether a job may have several members on a core."""
        return any(each.split == "fixed" and each.cores.count(core) > 1 for each in self.queues)

    def rate(self, core: int) -> int:
        """Elements that the link of a core takes in a cycle."""
        return self.exchange.rate(self.cores[core].core.tail_width)
