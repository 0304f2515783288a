"""Where jobs of a column-wise NPU run: cores taken together, resident and streamed weights (docs/timing.md, 10).

A weight set is the weights of a model on a core (of its share, if the job is split). If all weight sets that jobs may
want on a core fit together, on every core, they are there from the start and cost nothing. Otherwise an external
`memory` decides. Without it, a core keeps the first weight sets that fit, and jobs with others run elsewhere or not
at all.
With it, weight sets take turns: if a model replaces another one, its first tiles wait until all of its blocks that stay
have been loaded (cause `reload`), and tiles of other row blocks wait for the transfer of their block (cause `weights`).
A weight is read once in a step, so the useful multiply-accumulates of a row block are its weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.assembly import Footprint, Phases
from lstmsim.machines.column.npu import TURN_CYCLES, ColumnCore, ColumnNpu, Memory
from lstmsim.machines.column.phases import (
    model_phases,
    own_units,
    share_weights,
    split_phases,
    split_refusal,
    spreads_over,
)
from lstmsim.machines.column.shape import ARRAY
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, distinct_jobs
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Moldable, Phase, Unit, WeightSet

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
            # the members of a batch read the same weights
            if operation.unit == ARRAY and not operation.inference:
                weights[_block(number, operation)] += operation.work * operation.count
    return weights


def reserve(blocks: Blocks, memory: Memory) -> int:
    """How many weights a member keeps room for: row blocks on their way, and the block in use."""
    return memory.prefetch_blocks * max(blocks.values())


def streamed(blocks: Blocks, capacity: int, memory: Memory) -> frozenset[Block]:
    """The row blocks of each member that do not fit in addition to the blocks before them; empty if all fit.

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
    """The transfers of weights to a task's cores."""

    memory: Memory
    frequency_mhz: float  # clock of the chip
    weight_bits: int  # bits of a weight
    member: int  # which of the task's cores is the memory
    first_buffer: int  # number of the first weight buffer; each member has one

    def operations(self, weights: int, label: str, place: tuple[int, ...], takes: int | None) -> Iterator[Operation]:
        """Yield the operations that transfer `weights` weights, in turns. Tiles wait for the last operation."""
        cycles = self.memory.transfer_cycles(weights * self.weight_bits, self.frequency_mhz)
        turns, last = divmod(cycles - 1, TURN_CYCLES)
        common: dict[str, Any] = {"label": label, "place": place, "member": self.member}
        if turns:
            yield Operation(0, TURN_CYCLES, turns, takes=takes, result_cycles=TURN_CYCLES, **common)
            takes = None
        yield Operation(0, last + 1, takes=takes, result_cycles=last + 1 + self.memory.latency_cycles, **common)

    def need(self, last: Operation, index: int, cause: str, phase: int | None = None) -> Dependence:
        """The wait for a transfer whose last operation stands at `index`."""
        return Dependence(index, last.cycles + self.memory.latency_cycles, cause, phase=phase)


def with_transfers(
    phases: Sequence[Phase], blocks: Blocks, out: frozenset[Block], transfers: Transfers
) -> tuple[Phase, ...]:
    """Put transfers into phases: a first phase that loads the weights that stay, and transfers of streamed blocks."""
    kept = sum(weights for block, weights in blocks.items() if block not in out)
    loading = list(transfers.operations(kept, "load weights", (), None)) if kept else []
    heads = [_head(number, blocks, out, transfers) for number in range(len(phases))]
    shifts = [len(operations) for operations, _ in heads]
    met: set[int] = set()
    # also where nothing stays: the same on every kind of core
    lowered = [Phase(Body(tuple(loading)), 1)]
    for number, phase in enumerate(phases):
        body = list(phase.body.operations)
        for index, operation in enumerate(body):
            needs = tuple(_shifted(need, number, shifts) for need in operation.needs)
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


def _shifted(need: Dependence, number: int, shifts: Sequence[int]) -> Dependence:
    """The same need behind the phase that loads, and behind the head of each body."""
    if need.phase is None:
        return need._replace(operation=need.operation + shifts[number])
    return need._replace(operation=need.operation + shifts[need.phase], phase=need.phase + 1)


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


def places(chip: ColumnNpu, job: Job) -> tuple[tuple[int, ...], ...]:
    """The places where a job may run, each with the cores that it takes; `InputError` if it cannot be split."""
    cores = job.allowed(len(chip.cores))
    if not job.split:
        return tuple((each,) for each in sorted(set(cores)) if chip.cores[each].refusal(job.model) is None)
    mistake = _no_split(chip, job, cores)
    if mistake is not None:
        raise InputError(Mistake(f"job {job.name}: split", mistake))
    return tuple((each,) for each in cores) if job.split == "auto" else (cores,)


def devices_of(chip: ColumnNpu, place: Sequence[int]) -> tuple[int, ...]:
    """The device of each core of a place if they are on several; empty if they are all on one."""
    devices = tuple(map(chip.device_of, place))
    return devices if len(set(devices)) > 1 else ()


def _no_split(chip: ColumnNpu, job: Job, place: tuple[int, ...]) -> str | None:
    """Why a job cannot be split over these cores."""
    first = chip.cores[place[0]]
    unlike = [each for each in place if chip.cores[each] != first]
    if unlike:
        return f"the cores of a job that is split must be equal, and core {unlike[0]} is not like core {place[0]}"
    for core in dict.fromkeys(place):
        times = place.count(core)
        if times > 1 and job.split != "layers":
            return f"names core {core} twice; only a job split into layers takes several threads of a core"
        if times > chip.cores[core].threads:
            return f"takes {times} threads of core {core}, which has {chip.cores[core].threads}"
    if job.split == "auto" and devices_of(chip, place):
        return "auto takes the cores of one device, and these are on several: name them (`cores`)"
    return split_refusal(job.model, first, job.split, len(place))


@record
class _Demand:
    """The demand of a job for weights."""

    model: Model  # model, split: its model, and how it is split
    split: str
    places: tuple[tuple[int, ...], ...]  # where it runs
    # how much of a core's memory it takes if the model has to be streamed; None if its weights fit
    room: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for jobs which share weights."""
        return (self.model, self.split, self.places[0] if self.split else None, self.room)


@record
class Plan:
    """The plan for all jobs of a chip together."""

    chip: ColumnNpu
    jobs: Sequence[Job]

    @cached_property
    def kinds(self) -> dict[ColumnCore, int]:
        return {core: kind for kind, core in enumerate(dict.fromkeys(self.chip.cores))}

    def demand(self, job: Job) -> _Demand:
        """The demand of a job.

        With an external memory, its places are those that can hold its weights. If there are none, they are the
        places with the most room.
        """
        # with auto a core must hold the whole model, as if it were not split
        every = _Demand(job.model, "" if job.split == "auto" else job.split, places(self.chip, job))
        if self.chip.memory is None or not every.places:
            return every
        rooms = {place: self._capacity(place) for place in every.places}
        weights, most = self.weights(every), max(rooms.values())
        if most >= weights:
            return replace(every, places=tuple(place for place in every.places if rooms[place] >= weights))
        return replace(every, places=tuple(place for place in every.places if rooms[place] == most), room=int(most))

    @cached_property
    def demands(self) -> dict[tuple[object, ...], _Demand]:
        """The demands of all jobs by weight set, in the order of the jobs. Equal demands have their places together."""
        demands: dict[tuple[object, ...], _Demand] = {}
        for job in distinct_jobs(self.jobs):
            each = self.demand(job)
            places = (*demands[each.key].places, *each.places) if each.key in demands else each.places
            demands[each.key] = replace(each, places=tuple(dict.fromkeys(places)))
        return demands

    def weights(self, demand: _Demand) -> int:
        """Weights on the core of a place that has the most."""
        return share_weights(demand.model, demand.split, demand.places[0])

    @cached_property
    def limits(self) -> list[float]:
        """How many weights each core holds; infinite for a core that holds any number."""
        return [inf if core.weight_capacity is None else core.weight_capacity for core in self.chip.cores]

    def _capacity(self, cores: Sequence[int]) -> float:
        """The least capacity of some cores."""
        return min(self.limits[each] for each in cores)

    @cached_property
    def tight(self) -> bool:
        """Whether some core cannot hold all weight sets that jobs may want there."""
        wanted = [0] * len(self.chip.cores)
        for demand in self.demands.values():
            for core in {core for place in demand.places for core in place}:
                wanted[core] += self.weights(demand)
        return any(total > limit for total, limit in zip(wanted, self.limits, strict=True))

    @cached_property
    def turns(self) -> bool:
        """Whether weight sets take turns on some core: not all that jobs may want there are there from the start."""
        wanted = [0] * len(self.chip.cores)
        for demand in self.demands.values():
            for core in {core for place in demand.places for core in place}:
                wanted[core] += self.size(demand)
        return any(total > limit for total, limit in zip(wanted, self.limits, strict=True))

    def streams(self, job: Job, core: int) -> Mapping[tuple[int, ...], tuple[int, int]]:
        """Row blocks that a job streams on a core: (layer, direction, block, stage) to (weights, transfer cycles)."""
        described, memory, demand = self.chip.cores[core], self.chip.memory, self.demand(job)
        if memory is None or not self.tight or demand.room is None:
            return {}
        blocks = blocks_of(self._phases(job, described, (core,)))
        out = streamed(blocks, demand.room, memory)
        cycles = [memory.transfer_cycles(blocks[each] * described.weight_bits, self.chip.frequency_mhz) for each in out]
        return {each[2]: (blocks[each], own) for each, own in zip(out, cycles, strict=True)}

    @cached_property
    def held(self) -> list[list[tuple[object, ...]]]:
        """For each core the weight sets at the start: the first that fit, in the order of the jobs."""
        left = list(self.limits)
        held: list[list[tuple[object, ...]]] = [[] for _ in left]
        for key, demand in self.demands.items():
            size = self.size(demand)
            for place in demand.places:
                if all(left[core] >= size for core in place):
                    for core in place:
                        if key not in held[core]:
                            held[core].append(key)
                            left[core] -= size
        return held

    def size(self, demand: _Demand) -> int:
        """How many weights of a core's memory a weight set takes; all of the memory if the model has to be streamed."""
        return self.weights(demand) if demand.room is None else demand.room

    def footprint(self, job: Job) -> Footprint:
        """The footprint of a job: where it runs, its phases there, and what must be in the memories."""
        demand = self.demand(job)
        if not self.tight:
            return self._made(job, demand.places, None)
        if self.chip.memory is None:
            there = [place for place in demand.places if all(demand.key in self.held[core] for core in place)]
            if not there or (job.split == "auto" and len(there) < len(demand.places)):
                raise InputError(Mistake(f"job {job.name}", self._no_room(demand)))
            return self._made(job, tuple(there), None)
        if job.split == "auto":
            text = "auto needs weights that stay on all of its cores, and here they take turns or are streamed"
            raise InputError(Mistake(f"job {job.name}: split", text))
        if job.preempts and not job.split:
            text = "jobs stop others only where all weights stay on the chip, and here they take turns"
            raise InputError(Mistake(f"job {job.name}: preemption", text))
        weight_set = WeightSet(list(self.demands).index(demand.key), self.size(demand))
        return self._made(job, demand.places, weight_set)

    def _made(self, job: Job, places: tuple[tuple[int, ...], ...], weight_set: WeightSet | None) -> Footprint:
        members = len(places[0])
        kinds = {self.kinds[self.chip.cores[place[0]]]: self.chip.cores[place[0]] for place in places}
        variants: list[tuple[int, Phases]] = []
        for kind, core in kinds.items():
            phases = self._phases(job, core, places[0])
            if weight_set is not None:
                phases = self._transferred(job, core, phases, weight_set.size, places[0])
            variants.append((kind, phases))
        buffers = tuple((kind, self._buffers(core, members, weight_set)) for kind, core in kinds.items())
        # the core of the Program behind those of the chip is its memory, or that of its links
        behind = len(self.chip.cores)
        memory = () if weight_set is None else (behind,)
        links = [(behind,) * len(devices_of(self.chip, place)) if job.split else () for place in places]
        gang = tuple((*place[1:], *own, *memory) for place, own in zip(places, links, strict=True))
        cores = tuple(place[0] for place in places)
        variants.sort(key=lambda pair: pair[0])
        moldable = self._moldable(job, places) if job.split == "auto" else ()
        return Footprint(tuple(variants), buffers, cores, gang if any(gang) else (), weight_set, moldable)

    def _phases(self, job: Job, core: ColumnCore, place: Sequence[int]) -> Phases:
        """The phases of a job on the cores of a place, all like `core`."""
        split = job.split_over(len(place))
        if split:
            devices, link = devices_of(self.chip, place), self.chip.devices
            return split_phases(job.model, core, job.steps, split, place, self.chip.exchange, devices, link)
        return model_phases(job.model, core, job.steps, job.batch)

    def _moldable(self, job: Job, places: Sequence[tuple[int, ...]]) -> tuple[Moldable, ...]:
        """How a job with `split: auto` runs on several of its places at once."""
        core = self.chip.cores[places[0][0]]
        return tuple(
            Moldable(
                members,
                self._phases(job, core, [place[0] for place in places[:members]]),
                self._buffers(core, members, None),
            )
            for members in spreads_over(job.model, core, len(places))
        )

    def _transferred(self, job: Job, core: ColumnCore, phases: Phases, room: int, place: Sequence[int]) -> Phases:
        """Phases with their transfers. The first phase loads the weights that stay."""
        memory, members = self.chip.memory, len(place)
        assert memory is not None
        # what does not fit is streamed, and threads of one core have equal parts of its memory
        weights = share_weights(job.model, job.split, place)
        sharing = max(map(place.count, place)) if weights > room else 1
        size = room // sharing
        blocks = blocks_of(phases)
        out = streamed(blocks, size, memory)
        if out:
            parts = f" ({_kib(size, core)} KiB for each of {sharing} threads)" if sharing > 1 else ""
            needs = f"its weights take {_kib(weights, core)} KiB, a core keeps {_kib(room, core)} KiB{parts}"
            if core.block_order == "column":
                text = f"{needs}; weights are streamed with block_order 'row' only"
                raise InputError(Mistake(f"job {job.name}", text))
            kept_free = reserve(blocks, memory)
            if kept_free > size:
                text = f"to stream the others, prefetch_blocks {memory.prefetch_blocks} row blocks must fit"
                need = f"{text}: {_kib(kept_free, core)} KiB"
                raise InputError(Mistake(f"job {job.name}", f"{needs}; {need}"))
        transfers = Transfers(memory, self.chip.frequency_mhz, core.weight_bits, members, members)
        return with_transfers(phases, blocks, out, transfers)

    def _no_room(self, demand: _Demand) -> str:
        core = demand.places[0][0]
        described = self.chip.cores[core]
        weights = self.weights(demand)
        used = sum(self.weights(self.demands[key]) for key in self.held[core])
        if weights > (described.weight_capacity or weights):
            there = f"core {core} holds {described.weight_kib:,} KiB"
        else:
            there = f"of the {described.weight_kib:,} KiB of core {core}, {_kib(used, described)} are taken"
        text = f"its weights take {_kib(weights, described)} KiB at {described.weight_bits} bits a weight, {there}"
        return f"{text}; a chip with `memory` could load them from there"

    def _buffers(self, core: ColumnCore, members: int, weight_set: WeightSet | None) -> tuple[Buffer, ...]:
        """Accumulator banks of each member, and room for the row blocks that each streams."""
        banks = (Buffer("accumulator bank", core.accumulator_banks),) * members
        memory = self.chip.memory
        if weight_set is None or memory is None:
            return banks
        return (*banks, *(Buffer("weight block", memory.prefetch_blocks, "weights"),) * members)

    @property
    def machine(self) -> tuple[Core, ...]:
        """The cores of the Program: those of the chip, and behind them the memory, if weights take turns, or the links.

        All links are units of one core. Its threads stand for those of the chip, in their order.
        """
        exchange = (Unit("exchange", "fifo"),) if any(job.split for job in self.jobs) else ()
        loading = self.tight and self.chip.memory is not None
        numbers = {key: number for number, key in enumerate(self.demands)}
        cores = []
        for index, core in enumerate(self.chip.cores):
            # what comes first in the scenario is wanted first, so it goes last
            capacity = core.weight_capacity if loading else None
            held = () if capacity is None else tuple(numbers[key] for key in reversed(self.held[index]))
            cores.append(Core(self.kinds[core], (*own_units(core), *exchange), core.threads, 0, capacity, held))
        threads, devices = sum(core.threads for core in self.chip.cores), self.chip.device_count
        if exchange and devices > 1:
            links = tuple(Unit(f"link{device}", "fifo") for device in range(devices))
            cores.append(Core(len(self.kinds), links, threads, None, shared=True, mirrors=True))
        if loading:
            cores.append(Core(len(self.kinds), (Unit("memory", "fine"),), threads, shared=True))
        return tuple(cores)


def _kib(weights: int, core: ColumnCore) -> str:
    return f"{weights * core.weight_bits / 8192:,.2f}".rstrip("0").rstrip(".")
