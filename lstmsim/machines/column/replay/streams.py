"""Weights of one job that come from the memory beside the chip while it runs: loaded once, or again in every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.memory import Memory
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.replay.cut import Cut
from lstmsim.machines.column.replay.work import Place
from lstmsim.machines.column.shape import StageShape, pass_shapes
from lstmsim.model.scenario import Job
from lstmsim.program.program import Operation, Phase

__all__ = ["Streams", "streamed_block", "streams_of"]

#: A row block of a member: member, layer, direction, stage, block.
Block = tuple[int, int, int, int, int]


@dataclass(eq=False)
class _Transfer:
    """The transfer of the weights of a row block.

    cycles: cycles that the memory has spent on the transfer.
    ready: cycle from which on the weights can be used; -1: they are not complete.
    tiles: tiles that have used the weights.
    """

    cycles: int = 0
    ready: int = -1
    tiles: int = 0


@dataclass(eq=False)
class Streams:
    """The weights of one job that come from the memory.

    who: the job in words.
    memory: the memory.
    cycles: for each streamed row block, the cycles of its transfer.
    groups: for each streamed row block, the tiles that use its weights.
    loading: cycles of the transfer of all other weights; 0: they lie on the core already, or there are none.
    loaded: cycles spent on that transfer so far.
    ready: cycle from which on the loaded weights can be used.
    held: the transfers that take a place in a buffer, by row block and step.
    freed: for each member, cycles at which places in its buffer are free again.
    """

    who: str
    memory: Memory
    cycles: Mapping[Block, int]
    groups: Mapping[Block, int]
    loading: int
    loaded: int = 0
    ready: int = 0
    held: dict[tuple[Block, int], _Transfer] = field(default_factory=dict)
    freed: dict[int, list[int]] = field(default_factory=dict)

    def load(self, start: int, cycles: int) -> None:
        """Transfer weights that stay on the core; `ReplayError` if they are there already."""
        self.loaded += cycles
        self.ready = start + cycles + self.memory.latency_cycles
        if self.loaded > self.loading:
            raise ReplayError(f"{self.who} at cycle {start} loads weights that are there already")

    def stream(self, block: Block, step: int, start: int, cycles: int) -> None:
        """Transfer weights of a row block for one step.

        `ReplayError` if there is no free place, or the transfer takes more cycles than its weights need.
        """
        who = f"{self.who}: the transfer of {_text(block, step)} at cycle {start}"
        member, key = block[0], (block, step)
        if key not in self.held:
            self.freed[member] = [each for each in self.freed.get(member, ()) if each > start]
            held = len(self.freed[member]) + sum(each[0] == member for each, _ in self.held)
            if held >= self.memory.prefetch_blocks:
                raise ReplayError(f"{who} finds no free place ({held} row blocks are held)")
            self.held[key] = _Transfer()
        transfer = self.held[key]
        transfer.cycles += cycles
        if transfer.cycles > self.cycles[block]:
            raise ReplayError(f"{who} takes {transfer.cycles} cycles, its weights {self.cycles[block]}")
        if transfer.cycles == self.cycles[block]:
            transfer.ready = start + cycles + self.memory.latency_cycles

    def tile(self, member: int, place: Place, cycle: int) -> None:
        """Use the weights of a row block for one tile; `ReplayError` if they are not there at `cycle`."""
        who = f"{self.who}: the tile of {place} at cycle {cycle}"
        if self.loaded < self.loading:
            raise ReplayError(f"{who} comes before the model's weights are loaded")
        if cycle < self.ready:
            raise ReplayError(f"{who} comes before the model's weights, which are there from cycle {self.ready}")
        block = (member, place.layer, place.direction, place.stage, place.block)
        if block not in self.cycles:
            return
        transfer = self.held.get((block, place.step))
        if transfer is None or transfer.ready < 0:
            raise ReplayError(f"{who} comes before its weights have been transferred")
        if cycle < transfer.ready:
            raise ReplayError(f"{who} comes before its weights, which are there from cycle {transfer.ready}")
        transfer.tiles += 1
        if transfer.tiles == self.groups[block]:
            del self.held[block, place.step]
            self.freed.setdefault(member, []).append(cycle + 1)


def _text(block: Block, step: int) -> str:
    member, layer, direction, stage, number = block
    return f"{Place(layer, direction, step, stage, number)} of member {member}"


def streamed_block(operations: Sequence[Operation], index: int, members: int) -> Block:
    """Give the row block whose weights an operation transfers.

    operations: operations of a body. The first operation of each transfer takes a place in the member's buffer.
    index: number of the operation.
    members: members of the job.
    """
    layer, direction, block, _, stage = operations[index].place
    takes = operations[index].takes
    if takes is None:
        takes = operations[index - 1].takes
    assert takes is not None, "the first operation of a transfer takes a place"
    return takes - members, layer, direction, stage, block


def streams_of(job: Job, chip: ColumnNpu, cut: Cut, phases: Sequence[Phase], warm: bool) -> Streams:
    """Give the transfers of a job before the first of them.

    cut: the cut of the job over its members.
    phases: the phases of the job, which say which row blocks are streamed.
    warm: whether the weights that are not streamed lie on the cores already.
    `ReplayError` if a core cannot hold the weights that stay there and the places for streamed weights.
    """
    core, memory = chip.cores[cut.cores[0]], chip.memory
    assert memory is not None, "weights come from a memory"
    out = {
        streamed_block(phase.body.operations, index, len(cut.cores))
        for phase in phases
        for index, each in enumerate(phase.body.operations)
        if each.label == "stream weights"
    }
    shapes = dict(_blocks(cut, core))
    weights = {block: _weights(shape, block[4]) for block, shape in shapes.items()}
    for each in dict.fromkeys(cut.cores):
        kept = 0
        for member in (number for number, on in enumerate(cut.cores) if on == each):
            own = {block: size for block, size in weights.items() if block[0] == member}
            kept += sum(size for block, size in own.items() if block not in out)
            kept += memory.prefetch_blocks * max((own[block] for block in out if block[0] == member), default=0)
        capacity = chip.cores[each].weight_capacity
        if capacity is not None and kept > capacity:
            raise ReplayError(f"job {job.name} keeps {kept} weights on core {each}, which holds {capacity}")

    def cycles(size: int) -> int:
        return memory.transfer_cycles(size * core.weight_bits, chip.frequency_mhz)

    kept = sum(size for block, size in weights.items() if block not in out)
    groups = {block: sum(map(shapes[block].groups, shapes[block].stage.vectors)) for block in out}
    loading = cycles(kept) if kept and not warm else 0
    return Streams(f"job {job.name}", memory, {block: cycles(weights[block]) for block in out}, groups, loading)


def _blocks(cut: Cut, core: ColumnCore) -> list[tuple[Block, StageShape]]:
    """List every row block of every member, with the shape of its stage."""
    return [
        ((member, number, direction, stage, block), shape)
        for number, layer in enumerate(cut.model.layers)
        for member in cut.members[number]
        for stage, shape in enumerate(pass_shapes(layer, core, *cut.share(member)))
        for direction in range(layer.directions)
        for block in range(len(shape.blocks))
    ]


def _weights(shape: StageShape, block: int) -> int:
    """Count the weights of a row block, without padding."""
    columns = sum(shape.layer.width(vector) for vector in shape.stage.vectors)
    return len(shape.stage.gates) * shape.blocks[block] * columns
