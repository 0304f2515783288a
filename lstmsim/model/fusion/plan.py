"""What a plan says: groups, owners, stages, kernels; and the numbers of a device that plans need (section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import hashed_once, record
from lstmsim.model.fusion.graph import Graph

#: When a result is split over blocks: as published, or only where that is worth its grid barrier.
SPLIT_RULES = ("paper", "costed")

#: Bytes of a value on the device: everything is float32.
VALUE_BYTES = 4

#: Registers and bytes of shared memory are given to blocks in pieces of this size.
PIECE = 256

#: The most registers that a thread can name.
_MOST_REGISTERS = 255


def up(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


@hashed_once
@record
class FusionDevice:
    """What plans ask of a device, and the settings of the pass.

    sms: how many streaming multiprocessors.
    warp, max_warps, max_blocks, registers, shared_bytes: lanes of a warp; warp slots, block slots, registers and bytes
        of shared memory of an SM.
    shared_limit: bytes of shared memory of a block (CUDA C Programming Guide, compute capability 7.0: static limit).
    block_threads: threads of a block; split_length: longest row that one block takes (both AStitch, ASPLOS'22).
    assumed_registers: of a thread, until the launch is known (AStitch).
    element_threads: threads of a block without reduce; assumption, because it is the usual size.
    split_rule: one of `SPLIT_RULES`.
    turn_cycles: of a load from DRAM; grid_cycles: of a grid barrier (docs/parallel_device.md); both for `costed`.
    register_elements: elements that a thread keeps; assumption, because 32 registers hold about eight values of each
        of two operands and the addresses.
    """

    sms: int = 80
    warp: int = 32
    max_warps: int = 64
    max_blocks: int = 32
    registers: int = 65536
    shared_bytes: int = 98304
    shared_limit: int = 49152
    block_threads: int = 1024
    element_threads: int = 256
    assumed_registers: int = 32
    split_length: int = 1024
    split_rule: str = "paper"
    turn_cycles: int = 400
    grid_cycles: int = 3830
    register_elements: int = 8

    def resident(self, threads: int, shared: int) -> int:
        """How many blocks of so many threads and bytes of shared memory are on an SM at once."""
        warps = up(threads, self.warp)
        room = [
            self.max_blocks,
            self.max_warps // warps,
            self.registers // (warps * up(self.assumed_registers * self.warp, PIECE) * PIECE),
        ]
        return min(room + ([self.shared_bytes // (up(shared, PIECE) * PIECE)] if shared else []))

    def wave(self, threads: int, shared: int) -> int:
        """How many blocks are on the device at once; arguments as of `resident`."""
        return self.resident(threads, shared) * self.sms

    def launch_registers(self, threads: int, shared: int) -> int:
        """Registers of a thread: what an SM has for all threads that are on it; docs/fusion.md, section 7.5."""
        # where no block fits, a plan is tried anew, and the machine refuses other kernels
        warps = max(1, self.resident(threads, shared)) * up(threads, self.warp)
        return min(_MOST_REGISTERS, self.registers // (warps * self.warp) // 8 * 8)


Ints = NDArray[np.int32]

#: Where a value lies for the stages that read it; `OUTPUT`: no stage of the kernel reads it.
REGISTER, SHARED, GLOBAL, OUTPUT = "register", "shared", "global", "output"
SCHEMES = (REGISTER, SHARED, GLOBAL, OUTPUT)

#: Kinds of groups, by their backbone: a reduce along the last axes, along others, or no reduce.
ROW, COLUMN, ELEMENT = "row", "column", "element"

#: Ways to cut a sub-graph into kernels: one for each operation, two like those of compilers, and the pass.
MODES = ("op", "xla", "tvm", "stitch")


@dataclass(frozen=True, eq=False)
class Owners:
    """Block and thread that own each element of a tensor. Tensors that are owned alike share the arrays."""

    block: Ints
    thread: Ints


@record
class ThreadMapping:
    """Which threads compute a group.

    kind: `pack`, `split`, `column`, `element` or `adapted`; blocks, threads: of the grid, and of a block.
    lanes, per_block, tasks: threads of a row, rows side by side in a block, tiles of a block one after the other.
    pieces, piece: how many blocks share one result, and how many elements each has.
    """

    kind: str
    blocks: int
    threads: int
    lanes: int
    per_block: int
    tasks: int
    pieces: int
    piece: int


@record
class Group:
    """Operations through which indices travel, and who leads them. Operations are numbers of nodes, ascending.

    backbone, sub_backbones: the operation that chooses the threads, and its other candidates.
    rows, length: results of the backbone, and elements for each.
    mapping: who computes it; None until the group is mapped.
    """

    members: tuple[int, ...]
    backbone: int
    sub_backbones: tuple[int, ...]
    kind: str
    rows: int
    length: int
    mapping: ThreadMapping | None = None


@dataclass(frozen=True, eq=False)
class Stage:
    """A candidate that a kernel computes and stores. What is inlined between candidates is evaluated by those who read.

    node: its number.
    scheme: one of `SCHEMES`.
    written: whether it goes to device memory (outputs, `GLOBAL`, partials).
    work: who evaluates which element: of a reduce its operand's elements, else those of the result.
    owners: who owns the elements of the result.
    partials: 0, or the most blocks that one result is split over; then who reads it combines partials.
    grid_barrier: whether all blocks meet before it.
    buffer: number of its buffer in shared memory; -1: it has none.
    bytes: of shared memory that it asks for.
    """

    node: int
    scheme: str
    written: bool
    work: Owners
    owners: Owners
    partials: int = 0
    grid_barrier: bool = False
    buffer: int = -1
    bytes: int = 0


@dataclass(frozen=True, eq=False)
class PlannedKernel:
    """One kernel.

    name: of the kernel.
    subgraph: number of the sub-graph that it is of.
    stages: in order.
    inlined: operations that are no stage: whoever needs an element of one evaluates it.
    blocks, threads: of the grid, and of a block.
    shared_bytes: of a block, with scratch.
    shared_bytes_before_reuse: the same if no buffer were used twice.
    buffers: bytes of each buffer.
    scratch: bytes of shared memory that reduces need besides the buffers.
    registers: of a thread.
    wave: blocks that are on the device at once.
    end_barrier: whether all blocks meet at the end, and owners combine partials.
    register_elements: elements that a thread keeps: as of the device that it is planned for.
    """

    name: str
    subgraph: int
    stages: tuple[Stage, ...]
    inlined: frozenset[int]
    blocks: int
    threads: int
    shared_bytes: int
    shared_bytes_before_reuse: int
    buffers: tuple[int, ...]
    scratch: int
    registers: int
    wave: int
    end_barrier: bool = False
    register_elements: int = FusionDevice.register_elements

    @property
    def grid_barriers(self) -> int:
        """How often all blocks meet."""
        return sum(each.grid_barrier for each in self.stages) + self.end_barrier

    def ends(self, graph: Graph) -> frozenset[int]:
        """Where its expressions end: its stages, and all that it reads from outside; graph: what it is of."""
        return frozenset(range(len(graph.nodes))) - self.inlined

    @cached_property
    def stage_of(self) -> Mapping[int, Stage]:
        """The stage of each candidate by its number."""
        return {each.node: each for each in self.stages}


@record
class Decision:
    """Something that the pass decided on a node (of an edge: its reader), in a few words, and why.

    about: `edge`, `candidate`, `group`, `mapping`, `scheme`, `barrier`, `buffer`, `overflow`, `wave`.
    """

    about: str
    node: str
    chosen: str
    because: str


@record
class Refused:
    """An edge (operand, reader) over which two clusters were not joined.

    path: numbers of nodes outside both clusters, by which the edge would have closed a cycle.
    """

    operand: int
    reader: int
    path: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class PlannedSubgraph:
    """The plan of a sub-graph: nodes, groups by first operation, and the one kernel that it becomes.

    free: operations of no group, which are evaluated where they are read.
    overflowed: candidates that left shared memory because it was too small, in the order in which they did.
    decisions: why all this is so.
    """

    nodes: tuple[int, ...]
    groups: tuple[Group, ...]
    free: tuple[int, ...]
    kernel: PlannedKernel
    overflowed: tuple[int, ...] = ()
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True, eq=False)
class FusionPlan:
    """A graph with the plans of all its sub-graphs by first operation, and edges that would have closed a cycle."""

    graph: Graph
    subgraphs: tuple[PlannedSubgraph, ...]
    refused: tuple[Refused, ...] = ()
