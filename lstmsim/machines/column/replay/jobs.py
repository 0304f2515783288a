"""A whole job under way: its members, the vectors that go from core to core, and weights that come while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.npu import Memory as ChipMemory
from lstmsim.machines.column.replay.delta import Differences
from lstmsim.machines.column.replay.work import Cut, Member, PeArray, Place
from lstmsim.machines.column.shape import StageShape, pass_shapes
from lstmsim.machines.structural import NEVER, Memory
from lstmsim.model.cell import segments
from lstmsim.model.numerics.arithmetic import Array
from lstmsim.model.numerics.golden import NetworkRun, PassRun, initial_states
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.numerics.weights import Stimulus
from lstmsim.model.scenario import Job
from lstmsim.program.operations import Operation
from lstmsim.program.program import Phase

#: A row block of a member: member, layer, direction, stage, block.
Block = tuple[int, int, int, int, int]


@dataclass(eq=False)
class _Transfer:
    """The transfer of the weights of a row block."""

    cycles: int = 0  # cycles that the memory has spent on the transfer
    ready: int = -1  # cycle from which on the weights can be used; -1: they are not complete
    tiles: int = 0  # tiles that have used the weights


@dataclass(eq=False)
class Streams:
    """The weights of one job, or of the members of a batch together, that come from the memory."""

    who: str  # the job in words
    memory: ChipMemory
    cycles: Mapping[Block, int]  # for each streamed row block, the cycles of its transfer
    groups: Mapping[Block, int]  # for each streamed row block, the tiles that use its weights
    loading: int  # cycles of the transfer of all other weights; 0: they lie on the core already, or there are none
    loaded: int = 0  # cycles spent on that transfer so far
    ready: int = 0  # cycle from which on the loaded weights can be used
    # the transfers that take a place in a buffer, by row block and step
    held: dict[tuple[Block, int], _Transfer] = field(default_factory=dict)
    # for each member, cycles at which places in its buffer are free again
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
    """Give the row block whose weights an operation transfers."""
    layer, direction, block, _, stage = operations[index].place
    takes = operations[index].takes
    if takes is None:
        takes = operations[index - 1].takes
    assert takes is not None, "the first operation of a transfer takes a place"
    return takes - members, layer, direction, stage, block


def streams_of(job: Job, chip: ColumnNpu, cut: Cut, phases: Sequence[Phase], *, warm: bool, batch: int) -> Streams:
    """Give the transfers of a job, or of a batch of so many, before the first of them."""
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
    groups = {block: batch * sum(map(shapes[block].groups, shapes[block].stage.vectors)) for block in out}
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


def _port(device: int) -> int:
    """The number of a device's link among the cores that see vectors."""
    return -1 - device


@dataclass(eq=False)
class JobWork:
    """A job that is executed."""

    job: Job
    core: ColumnCore  # each of its cores, which are equal
    numbers: JobNumbers  # its weights, frames and arithmetic
    cut: Cut  # its cut over members
    chip: ColumnNpu  # the chip, with its exchange and links
    # the vectors as each core sees them, by the number of the core; and as the link of each device does (`_port`)
    views: dict[int, Memory]
    members: tuple[Member, ...]
    # the weights that come while the job runs; None: all weights are there from the start
    weights: Streams | None = None

    def begin(self, stimulus: Stimulus, cycle: int = 0) -> None:
        """Set the states before the first step to those of `stimulus`; they are there from `cycle` on."""
        for number, layer in enumerate(self.job.model.layers):
            for direction in range(layer.directions):
                # encoded once for all memories, because an arithmetic counts the values that saturate
                states = initial_states(self.numbers.arithmetic[number][direction], stimulus, number, direction)
                for name, values in states.items():
                    key, every = (number, direction, -1, name), slice(0, len(values))
                    for memory in (*self.views.values(), *(each.tail for each in self.members)):
                        memory.write(key, every, values, np.full(len(values), cycle, np.int64), len(values))
        for view in self.views.values():
            view.latest = 0

    def tile(self, member: int, place: Place, group: int, cycle: int) -> None:
        """Execute one tile on a member's array at `cycle`; `group`: column group of the stage's matrix."""
        own = self.members[member]
        if self.weights is not None:
            own.units(place)
            self.weights.tile(member, place, cycle)
        own.tile(place, group, cycle)

    def device_of(self, member: int) -> int:
        """The device of a member's core."""
        return self.chip.device_of(self.cut.cores[member])

    def send(self, member: int, place: Place, segment: int, number: int, cycle: int, *, linked: bool) -> int:
        """Send a vector of a row block over the exchange of a member, or over its device's link, from `cycle` on.

        The exchange reaches the cores of the member's device, and the link of the device; the link reaches the cores
        of other devices. Returns for how many cycles it is busy.
        """
        work, own, device = self.members[member], self.cut.cores[member], self.device_of(member)
        units, shape, what = work.units(place), work.shape(place), "link" if linked else "exchange"
        nodes, who = self._sent(member, place, segment, linked), f"{work.who}: the {what} of {place}"
        if number >= len(nodes):
            raise ReplayError(f"{who} at cycle {cycle} sends a vector that no member reads")
        name = "h" if nodes[number] == shape.layer.cell.output else nodes[number]
        way, rate = self.chip.exchange, self.chip.exchange.rate(self.core.tail_width)
        if linked:
            assert self.chip.devices is not None, "only such chips have links"
            way, rate = self.chip.devices, self.chip.devices.rate(rate)
        count = units.stop - units.start
        turns = cycle + np.arange(count, dtype=np.int64) // rate
        key = (place.layer, place.direction, place.step, name)
        values = self.views[_port(device) if linked else own].read(key, units, turns, who)
        since = turns + max(1, way.latency_cycles)
        for core, view in self.views.items():
            here = core == _port(device) or (core >= 0 and self.chip.device_of(core) == device)
            if core != own and (core >= 0 and not here if linked else here):
                view.write(key, units, values, since, shape.layer.width(name))
        return int(-(-count // rate))

    def _sent(self, member: int, place: Place, segment: int, linked: bool) -> list[str]:
        """Name the results of a segment that other cores, or other devices, read, in the order of their times."""
        shape, own = self.members[member].shape(place), self.cut.cores[member]
        device_of = self.chip.device_of
        beside = {core for core in self.cut.cores if core == own or (linked and device_of(core) == device_of(own))}
        nodes = [
            node.name
            for each in segments(shape.layer.cell)
            if (each.stage, each.index) == (place.stage, segment)
            for node in each.nodes
            if self.cut.receivers(place.layer, node.name) - beside
        ]
        return sorted(nodes, key=lambda name: (shape.visible_cycles(name), name))

    def rest(self, cycle: int) -> None:
        """Pause the job at `cycle`; `ReplayError` if an effect of its operations is still to come."""
        for each in self.members:
            each.rest(cycle)
        late = max(view.latest for view in self.views.values())
        if late > cycle:
            raise ReplayError(f"job {self.job.name} is paused at cycle {cycle}, before its results at {late}")
        for layer, direction, step in self._begun():
            h = self.views[self.cut.cores[0]].held.get((layer, direction, step, "h"))
            if h is None or np.any(h.since == NEVER):
                text = f"is paused at cycle {cycle} in the middle of layer {layer} step {step}"
                raise ReplayError(f"job {self.job.name} {text}")

    def _begun(self) -> set[tuple[int, int, int]]:
        """Give (layer, direction, step) of each step that has begun; with `layer_order: step`, of all layers of it."""
        begun = {(place.layer, place.direction, place.step) for each in self.members for place in each.done}
        if self.job.model.layer_order == "step":
            begun |= {(layer, 0, step) for _, _, step in begun for layer in range(len(self.job.model.layers))}
        return begun

    def result(self, finish: int) -> NetworkRun:
        """Give all h of the job; `ReplayError` if an h was never computed, or its readers cannot see it at `finish`."""
        passes = []
        for number, layer in enumerate(self.job.model.layers):
            both = []
            for direction in range(layer.directions):
                h = [self._h((number, direction, step, "h"), finish) for step in range(self.job.steps)]
                last = 0 if layer.backward(direction) else self.job.steps - 1
                states = {name: self._state((number, direction, last, name)) for name in layer.cell.states}
                both.append(PassRun(np.stack(h), states))
            passes.append(tuple(both))
        return NetworkRun(self.numbers.arithmetic, tuple(passes))

    def _h(self, key: tuple[int, int, int, str], finish: int) -> Array:
        layer, width = self.job.model.layers[key[0]], self.job.model.layers[key[0]].width("h")
        receivers, parts = self.cut.receivers(key[0], layer.cell.output), []
        for member in self.cut.members[key[0]]:
            units, own = self.cut.units(member, width), self.cut.cores[member]
            end = np.full(units.stop - units.start, finish, dtype=np.int64)
            for core in receivers - {own}:
                self.views[core].read(key, units, end, f"job {self.job.name}: the result on core {core}")
            parts.append(self.views[own].read(key, units, end, f"job {self.job.name}: the result"))
        return np.concatenate(parts)

    def _state(self, key: tuple[int, int, int, str]) -> Array:
        width, parts = self.job.model.layers[key[0]].width(key[3]), []
        for member in self.cut.members[key[0]]:
            units = self.cut.units(member, width)
            # the tail may go on with a state after the job's last h
            end = np.full(units.stop - units.start, NEVER - 1, dtype=np.int64)
            work = self.members[member]
            parts.append(work.tail.read(key, units, end, f"{work.who}: the state at the end"))
        return np.concatenate(parts)


def start(
    job: Job,
    chip: ColumnNpu,
    cores: Sequence[int],
    numbers: JobNumbers,
    array: PeArray,
    arrived: int,
    weights: Streams | None = None,
) -> JobWork:
    """A job before its first tile: only its frames and, unless it follows another job, its first states are there."""
    core, cut = chip.cores[cores[0]], Cut(job.model, job.split_over(len(cores)), tuple(cores))
    views = {each: Memory() for each in cores}
    delta = Differences(core, job.model.layer_order == "step") if core.delta else None
    members = tuple(
        Member(job, core, numbers, cut, member, array, views[on], delta=delta) for member, on in enumerate(cores)
    )
    frames = numbers.arithmetic[0][0].encode(numbers.stimulus.x)
    for step, frame in enumerate(frames):
        since = np.full(len(frame), arrived + step * job.frame_interval)
        for view in views.values():
            view.write((0, 0, step, "x"), slice(0, len(frame)), frame, since, len(frame))
    views |= {_port(chip.device_of(each)): Memory() for each in cores}
    work = JobWork(job, core, numbers, cut, chip, views, members, weights)
    if numbers.follows is None:
        work.begin(numbers.stimulus)
    return work
