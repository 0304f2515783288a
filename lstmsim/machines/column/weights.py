"""Weights that a core cannot hold: row blocks that stay, row blocks that are streamed, models that are loaded anew.

A weight is read once in a step, so the useful multiply-accumulates of a row block are its weights. Tiles wait for the
transfer of their row block (cause `weights`). If a model replaces another one, its first tiles wait until all of its
blocks that stay have been loaded (cause `reload`). Rules: docs/timing.md, section 10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lstmsim.base.records import record
from lstmsim.machines.column.memory import TURN_CYCLES, Memory
from lstmsim.machines.column.tiles import ARRAY
from lstmsim.program.program import Body, Dependence, Operation, Phase

__all__ = ["Block", "Blocks", "Transfers", "blocks_of", "reserve", "streamed", "with_transfers"]

#: A row block of a program: phase, member, and layer, direction, row block, stage.
Block = tuple[int, int, tuple[int, ...]]
#: Weights of each row block, in the order of the program.
Blocks = Mapping[Block, int]


def _block(phase: int, operation: Operation) -> Block:
    layer, direction, block, _, stage = operation.place
    return phase, operation.member, (layer, direction, block, stage)


def blocks_of(phases: Sequence[Phase]) -> Blocks:
    """The row blocks of phases without transfers, and how many weights they have."""
    weights: defaultdict[Block, int] = defaultdict(int)
    for number, phase in enumerate(phases):
        for operation in phase.body.operations:
            if operation.unit == ARRAY:
                weights[_block(number, operation)] += operation.work * operation.count
    return weights


def reserve(blocks: Blocks, memory: Memory) -> int:
    """How many weights a member keeps room for: row blocks on their way, and the block in use."""
    return memory.prefetch_blocks * max(blocks.values())


def streamed(blocks: Blocks, capacity: int, memory: Memory) -> frozenset[Block]:
    """The row blocks of each member that do not fit beside the blocks before them; empty if all fit.

    capacity: room on each member, in weights.
    """
    left: dict[int, int] = {}
    out: set[Block] = set()
    for member in dict.fromkeys(member for _, member, _ in blocks):
        total = sum(weights for block, weights in blocks.items() if block[1] == member)
        left[member] = capacity if total <= capacity else capacity - reserve(blocks, memory)
    for block, weights in blocks.items():
        if weights <= left[block[1]]:
            left[block[1]] -= weights
        else:
            out.add(block)
    return frozenset(out)


@record
class Transfers:
    """The transfers of weights to a task's cores.

    memory: the memory.
    frequency_mhz: clock of the chip.
    weight_bits: bits of a weight.
    member: which of the task's cores is the memory.
    first_buffer: number of the first weight buffer; each member has one.
    """

    memory: Memory
    frequency_mhz: float
    weight_bits: int
    member: int
    first_buffer: int

    def operations(self, weights: int, label: str, place: tuple[int, ...], takes: int | None) -> Iterator[Operation]:
        """Yield the operations that transfer `weights` weights, in turns. Tiles wait for the last operation."""
        cycles = self.memory.transfer_cycles(weights * self.weight_bits, self.frequency_mhz)
        turns, last = divmod(cycles - 1, TURN_CYCLES)
        if turns:
            yield Operation(
                0,
                TURN_CYCLES,
                turns,
                takes=takes,
                result_cycles=TURN_CYCLES,
                label=label,
                place=place,
                member=self.member,
            )
        yield Operation(
            0,
            last + 1,
            takes=None if turns else takes,
            result_cycles=last + 1 + self.memory.latency_cycles,
            label=label,
            place=place,
            member=self.member,
        )

    def need(self, last: Operation, index: int, cause: str, phase: int | None = None) -> Dependence:
        """The wait for a transfer whose last operation stands at `index`."""
        return Dependence(index, last.cycles + self.memory.latency_cycles, cause, phase=phase)


def with_transfers(
    phases: Sequence[Phase], blocks: Blocks, out: frozenset[Block], transfers: Transfers
) -> tuple[Phase, ...]:
    """Put transfers into phases: a first phase that loads the weights that stay, and transfers of streamed blocks.

    phases: the phases without transfers.
    blocks: their row blocks.
    out: the row blocks that are streamed.
    transfers: how weights get to the cores.
    """
    kept = sum(weights for block, weights in blocks.items() if block not in out)
    loading = list(transfers.operations(kept, "load weights", (), None)) if kept else []
    # also where nothing stays: the same on every kind of core
    first = [Phase(Body(tuple(loading)), 1)]
    heads = [_head(number, blocks, out, transfers) for number in range(len(phases))]
    shifts = [len(operations) for operations, _ in heads]
    met: set[int] = set()
    lowered = list(first)
    for number, phase in enumerate(phases):
        body = list(phase.body.operations)
        for index, operation in enumerate(body):
            needs = tuple(_shifted(need, number, shifts, len(first)) for need in operation.needs)
            if operation.unit == ARRAY and loading and operation.member not in met:
                met.add(operation.member)
                needs = (*needs, transfers.need(loading[-1], len(loading) - 1, "reload", phase=0))
            body[index] = operation._replace(needs=needs)
        _wait_for_streams(body, number, heads[number], transfers)
        lowered.append(replace(phase, body=Body((*heads[number][0], *body))))
    return tuple(lowered)


#: Transfers at the head of a body, and for each row block the index of its last one.
Head = tuple[list[Operation], dict[Block, int]]


def _head(number: int, blocks: Blocks, out: frozenset[Block], transfers: Transfers) -> Head:
    operations: list[Operation] = []
    ends: dict[Block, int] = {}
    for block, weights in blocks.items():
        if block[0] == number and block in out:
            place = (*block[2][:3], 0, block[2][3])
            operations += transfers.operations(weights, "stream weights", place, transfers.first_buffer + block[1])
            ends[block] = len(operations) - 1
    return operations, ends


def _shifted(need: Dependence, number: int, shifts: Sequence[int], first: int) -> Dependence:
    source = number if need.phase is None else need.phase
    phase = None if need.phase is None else need.phase + first
    return need._replace(operation=need.operation + shifts[source], phase=phase)


def _wait_for_streams(body: list[Operation], number: int, head: Head, transfers: Transfers) -> None:
    """Let the first tiles of a streamed row block wait for its transfer, and the last tiles give its room back."""
    operations, ends = head
    places: defaultdict[Block, list[int]] = defaultdict(list)
    for index, operation in enumerate(body):
        if operation.unit == ARRAY:
            places[_block(number, operation)].append(index)
    for block, end in ends.items():
        first, last = places[block][0], places[block][-1]
        wait = transfers.need(operations[end], end, "weights")
        body[first] = body[first]._replace(needs=(*body[first].needs, wait))
        body[last] = body[last]._replace(frees=transfers.first_buffer + block[1])
