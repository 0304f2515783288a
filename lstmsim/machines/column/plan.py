"""The plan of where jobs of a column-wise NPU run: cores taken together, contents of weight memories.

A content is the weights of a model on a core (of its share, if the job is split). If all contents that jobs may want on
a core fit together, on every core, they are there from the start and cost nothing. Otherwise a `memory` beside the chip
decides. Without it, a core keeps the first contents that fit, and jobs with other contents run elsewhere or not at all.
With it, contents take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.assembly import Footprint, Phases, Variants
from lstmsim.machines.column.members import Members
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.weights import Transfers, blocks_of, reserve, streamed, with_transfers
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, distinct_jobs
from lstmsim.program.program import Buffer, Content, Core, Unit

__all__ = ["Plan"]


@record
class _Demand:
    """The demand of a job for weights.

    model, split: its model, and how it is split.
    places: where it runs.
    room: how much of a core's memory it takes if the model has to be streamed; None if its weights fit.
    """

    model: Model
    split: str
    places: tuple[tuple[int, ...], ...]
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
    members: Members = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", Members(self.chip, any(job.split for job in self.jobs)))

    @cached_property
    def kinds(self) -> dict[ColumnCore, int]:
        """Numbers of the kinds of cores."""
        return {core: kind for kind, core in enumerate(dict.fromkeys(self.chip.cores))}

    def demand(self, job: Job) -> _Demand:
        """The demand of a job.

        With a memory beside the chip, its places are those that can hold its weights. If there are none, they are the
        places with the most room.
        """
        # with auto a core must hold the whole model, as if it were not split
        every = _Demand(job.model, "" if job.split == "auto" else job.split, self.members.places(job))
        rooms = [self._capacity(place) for place in every.places]
        if self.chip.memory is None or not rooms:
            return every
        weights = self.weights(every)
        fits = [room is None or room >= weights for room in rooms]
        most = None if any(fits) else max(room for room in rooms if room is not None)
        chosen = fits if most is None else [room == most for room in rooms]
        return replace(
            every, places=tuple(place for place, one in zip(every.places, chosen, strict=True) if one), room=most
        )

    @cached_property
    def demands(self) -> dict[tuple[object, ...], _Demand]:
        """The demands of all jobs by content, in the order of the jobs. Equal demands have their places together."""
        demands: dict[tuple[object, ...], _Demand] = {}
        for job in distinct_jobs(self.jobs):
            each = self.demand(job)
            places = (*demands[each.key].places, *each.places) if each.key in demands else each.places
            demands[each.key] = replace(each, places=tuple(dict.fromkeys(places)))
        return demands

    def weights(self, demand: _Demand) -> int:
        """Weights on the core of a place that has the most."""
        return self.members.weights(demand.model, demand.split, demand.places[0])

    def _capacity(self, cores: Sequence[int]) -> int | None:
        """The least capacity of some cores."""
        limits = [self.chip.cores[each].weight_capacity for each in cores]
        return min((each for each in limits if each is not None), default=None)

    @cached_property
    def tight(self) -> bool:
        """Whether some core cannot hold all contents that jobs may want there."""
        wanted = [0] * len(self.chip.cores)
        for demand in self.demands.values():
            for core in {core for place in demand.places for core in place}:
                wanted[core] += self.weights(demand)
        limits = [core.weight_capacity for core in self.chip.cores]
        return any(limit is not None and total > limit for total, limit in zip(wanted, limits, strict=True))

    @cached_property
    def held(self) -> list[list[tuple[object, ...]]]:
        """For each core the contents at the start: the first that fit, in the order of the jobs."""
        left = [core.weight_capacity for core in self.chip.cores]
        held: list[list[tuple[object, ...]]] = [[] for _ in left]
        for key, demand in self.demands.items():
            size = self.size(demand)
            for place in demand.places:
                rooms = [room for room in (left[core] for core in place) if room is not None]
                if all(room >= size for room in rooms):
                    for core in place:
                        room = left[core]
                        if key not in held[core]:
                            held[core].append(key)
                            left[core] = None if room is None else room - size
        return held

    def size(self, demand: _Demand) -> int:
        """How many weights of a core's memory the content takes; all of the memory if the model has to be streamed."""
        return self.weights(demand) if demand.room is None else demand.room

    def footprint(self, job: Job) -> Footprint:
        """The footprint of a job: where it runs, its phases there, and what must be in the memories."""
        demand = self.demand(job)
        memory = self.chip.memory
        if not self.tight:
            return self._made(job, demand.places, None)
        if job.split == "auto" and memory is not None:
            text = "auto needs weights that stay on all of its cores, and here they take turns or are streamed"
            raise InputError(Mistake(f"job {job.name}: split", text))
        if memory is None:
            there = [place for place in demand.places if all(demand.key in self.held[core] for core in place)]
            if not there or (job.split == "auto" and len(there) < len(demand.places)):
                raise InputError(Mistake(f"job {job.name}", self._no_room(demand)))
            return self._made(job, tuple(there), None)
        if job.preempts and not job.split:
            text = "jobs stop others only where all weights stay on the chip, and here they take turns"
            raise InputError(Mistake(f"job {job.name}: preemption", text))
        content = Content(list(self.demands).index(demand.key), self.size(demand))
        return self._made(job, demand.places, content)

    def _made(self, job: Job, places: tuple[tuple[int, ...], ...], content: Content | None) -> Footprint:
        members = len(places[0])
        kinds = {self.kinds[self.chip.cores[place[0]]]: self.chip.cores[place[0]] for place in places}
        variants: list[tuple[int, Phases]] = []
        for kind, core in kinds.items():
            phases = self.members.phases(job, core, places[0])
            if content is not None:
                phases = self._transferred(job, core, phases, content.size, places[0])
            variants.append((kind, phases))
        buffers = tuple((kind, self._buffers(core, members, content)) for kind, core in kinds.items())
        beside = () if content is None else (len(self.chip.cores),)
        partners = tuple((*place[1:], *beside) for place in places)
        cores = tuple(place[0] for place in places)
        wide = self.members.wide(job, places, lambda count: self._buffers(self.chip.cores[cores[0]], count, None))
        return Footprint(_sorted(variants), buffers, cores, partners if any(partners) else (), content, wide)

    def _transferred(self, job: Job, core: ColumnCore, phases: Phases, room: int, place: Sequence[int]) -> Phases:
        """Phases with their transfers. The first phase loads the weights that stay."""
        memory, members = self.chip.memory, len(place)
        assert memory is not None
        # what does not fit is streamed, and threads of one core have equal parts of its memory
        weights = self.members.weights(job.model, job.split, place)
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

    def _buffers(self, core: ColumnCore, members: int, content: Content | None) -> tuple[Buffer, ...]:
        """Accumulator banks of each member, and room for the row blocks that each streams."""
        banks = (Buffer("accumulator bank", core.accumulator_banks),) * members
        memory = self.chip.memory
        if content is None or memory is None:
            return banks
        return (*banks, *(Buffer("weight block", memory.prefetch_blocks, "weights"),) * members)

    @property
    def machine(self) -> tuple[Core, ...]:
        """The cores of the Program: those of the chip and, if weights take turns, the memory."""
        shown = self.members.units
        loading = self.tight and self.chip.memory is not None
        numbers = {key: number for number, key in enumerate(self.demands)}
        cores = []
        for index, core in enumerate(self.chip.cores):
            # what comes first in the scenario is wanted first, so it goes last
            held = tuple(numbers[key] for key in reversed(self.held[index])) if loading else ()
            capacity = core.weight_capacity if loading else None
            kind = self.kinds[core]
            cores.append(Core(kind, shown(core), core.threads, 0, capacity, held if capacity is not None else ()))
        if loading:
            threads = sum(core.threads for core in self.chip.cores)
            cores.append(Core(len(self.kinds), (Unit("memory", "fine"),), threads, shared=True))
        return tuple(cores)


def _sorted(variants: list[tuple[int, Phases]]) -> Variants:
    return tuple(sorted(variants, key=lambda pair: pair[0]))


def _kib(weights: int, core: ColumnCore) -> str:
    return f"{weights * core.weight_bits / 8192:,.2f}".rstrip("0").rstrip(".")
