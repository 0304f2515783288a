"""Split jobs, cycle by cycle (section 9): members as threads, what each core sees, a link for each core and device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from lstmsim.machines.column.npu import ColumnCore, Devices, Exchange
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from tests.oracle.machine import OracleCore
from tests.oracle.schedule import schedule
from tests.oracle.thread import NEVER, Thread
from tests.oracle.tiles import Key, Tile, Turn, keys, vector

#: What a core can read: (key, name, unit) -> the cycle from which it can.
Seen = dict[tuple[Key, str, int], int]


def share(rows: int, member: int, members: int) -> range:
    """Section 9.2: the first `rows mod members` members have one more."""
    sizes = [rows // members + (1 if each < rows % members else 0) for each in range(members)]
    return range(sum(sizes[:member]), sum(sizes[: member + 1]))


def runs(model: Model, members: int) -> list[range]:
    """Section 9.3, by looking at every way to cut."""
    count = len(model.layers)
    found = []
    for cuts in combinations(range(1, count), members - 1):
        ends = [0, *cuts, count]
        cut = [range(first, end) for first, end in pairwise(ends)]
        macs = [sum(model.layers[number].macs_per_step for number in run) for run in cut]
        found.append((max(macs), sum(each**2 for each in macs), [-len(run) for run in cut], cut))
    return min(found, key=lambda each: each[:3])[3]


@dataclass
class Sending:
    """A row block's elements of one vector on their way to a link: the cycles from which they are there.

    targets: who can read them behind the link; onward: their way to the next link, which grows as they leave.
    """

    key: Key
    name: str
    units: range
    visible: list[int]
    targets: list[Seen]
    onward: Sending | None = None


@dataclass
class Queue:
    """What a member has to send over one link, in order, and how much of it has left."""

    sendings: list[Sending] = field(default_factory=list)
    sent: int = 0

    @property
    def empty(self) -> bool:
        return self.sent == len(self.sendings)


@dataclass
class Way:
    """A link. `width`: elements a cycle at most; `sender`: whose block is on it; `gone`: elements of it that left."""

    width: int
    latency: int
    sender: tuple[Member, Queue] | None = None
    gone: int = 0

    def step(self, now: int, waiting: Sequence[tuple[Member, Queue]]) -> None:
        """Section 9.5, element by element: those of the block that are there leave, no more than fit.

        waiting: members in the order in which ties are broken.
        """
        if self.sender is None:
            there = [each for each in waiting if not each[1].empty]
            first = min(there, key=lambda each: each[1].sendings[each[1].sent].visible[0], default=None)
            if first is None or first[1].sendings[first[1].sent].visible[0] > now:
                return
            self.sender, self.gone = first, 0
        member, queue = self.sender
        sending = queue.sendings[queue.sent]
        leaving = min(sum(at <= now for at in sending.visible) - self.gone, self.width)
        at = now + max(1, self.latency)
        for unit in sending.units[self.gone : self.gone + leaving]:
            for seen in sending.targets:
                seen[sending.key, sending.name, unit] = at
            member.through = max(member.through, at)
            if sending.onward is not None:
                if not sending.onward.visible:
                    member.crossing.sendings.append(sending.onward)
                sending.onward.visible.append(at)
        self.gone += leaving
        if self.gone == len(sending.units):
            queue.sent += 1
            self.sender = None


class Member(Thread):
    """A thread with a part of the job: its own tiles and turns, and what it has to send."""

    def __init__(self, job: Job, core: ColumnCore, member: int, members: int) -> None:
        super().__init__(member, job, job.arrival, core)
        self.member, self.members = member, members
        self.tiles, self.turns = list(self.own_tiles()), list(self.own_turns())
        # of each vector, what sees it beside its core: cores of its device, and of other devices
        self.targets: dict[tuple[int, str], tuple[list[Seen], list[Seen]]] = {}
        self.sending, self.crossing = Queue(), Queue()
        self.through = 0  # the tail, and the links

    def own_keys(self) -> Iterator[Key]:
        if self.job.split == "rows":
            yield from keys(self.job)
            return
        run = runs(self.job.model, self.members)[self.member]
        yield from ((number, 0, step) for step in range(self.job.steps) for number in run)

    def blocks(self, number: int, stage: int) -> list[range]:
        layer = self.job.model.layers[number]
        gates, units = len(layer.cell.stages[stage].gates), range(layer.units(layer.cell.stages[stage].rows))
        if self.job.split == "rows":
            units = share(len(units), self.member, self.members)
        size = self.core.vp // gates
        return [units[first : first + size] for first in range(0, len(units), size)]

    def h_first(self, number: int) -> bool:
        if self.job.split == "rows":
            return number > 0 and self.job.model.layer_order == "step"
        return number != runs(self.job.model, self.members)[self.member][0]

    def own_tiles(self) -> Iterator[Tile]:
        for key in self.own_keys():
            cell = self.job.model.layers[key[0]].cell
            for number, stage in enumerate(cell.stages):
                names = {each for gate in stage.gates for part in gate.sums for each in part.vectors}
                order = ["h", "x"] if self.h_first(key[0]) else ["x", "h"]
                order += [node.name for node in cell.nodes]
                groups = []
                for name in [each for each in order if each in names]:
                    elements = vector(self.job, key, name, self.core)
                    groups += [elements[at : at + self.core.ep] for at in range(0, len(elements), self.core.ep)]
                blocks = self.blocks(key[0], number)
                pairs = [(b, g) for b in range(len(blocks)) for g in range(len(groups))]
                if self.core.block_order == "column":
                    pairs.sort(key=lambda pair: (pair[1], pair[0]))
                for b, g in pairs:
                    macs = len(stage.gates) * len(blocks[b]) * len(groups[g])
                    yield Tile(groups[g], (key, number, b), g == 0, g == len(groups) - 1, macs)

    def own_turns(self) -> Iterator[Turn]:
        for key in self.own_keys():
            cell = self.job.model.layers[key[0]].cell
            for stage in range(len(cell.stages)):
                for segment in range(schedule(cell, self.core.latency).segments(stage)):
                    for number, units in enumerate(self.blocks(key[0], stage)):
                        yield Turn(key, stage, segment, number, units)

    def enter_tail(self, now: int) -> int:
        turn = self.turns[self.turned]
        taken = super().enter_tail(now)
        self.finish, self.through = NEVER, max(self.through, now + taken)
        written = self.plan(turn.key).written[turn.stage, turn.segment]
        found = []
        for name in written:
            near, far = self.targets[turn.key[0], name]
            visible = [self.visible[turn.key, name, unit] for unit in turn.units]
            onward = Sending(turn.key, name, turn.units, [], far) if far else None
            if near or far:
                found.append(Sending(turn.key, name, turn.units, visible, near, onward))
        self.sending.sendings += sorted(found, key=lambda each: (each.visible[0], each.name))
        return taken

    @property
    def over(self) -> bool:
        done = self.issued == len(self.tiles) and self.turned == len(self.turns)
        return done and self.sending.empty and self.crossing.empty


@dataclass
class SplitCore(OracleCore):
    """A core with a link to the other cores."""

    exchange: Exchange = field(default_factory=Exchange)
    issued: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.way = Way(min(self.exchange.width, self.core.tail_width), self.exchange.latency_cycles)

    @property
    def members(self) -> list[Member]:
        return [each for each in self.threads if isinstance(each, Member)]

    def link(self, now: int) -> None:
        self.way.step(now, [(each, each.sending) for each in self.members])

    def step(self, now: int) -> str:
        name = super().step(now)
        self.names[name] = self.names.get(name, 0) + 1
        if name == "busy":
            self.issued.append((now, self.active))
        return name


def connected(members: Sequence[Member], place: Sequence[int], device: Sequence[int] = ()) -> dict[int, Seen]:
    """What each core of a job sees, and who of its members sends what to which of them. `device`: of each core."""
    seen: dict[int, Seen] = {on: {} for on in place}
    readers: dict[tuple[int, str], set[int]] = {}
    for member, on in zip(members, place, strict=True):
        member.visible = seen[on]
        for tile in member.tiles:
            for kind, key, name, _ in tile.reads:
                if kind != "frame":
                    readers.setdefault((key[0], name), set()).add(on)
    for member, on in zip(members, place, strict=True):
        for number, layer in enumerate(member.job.model.layers):
            for node in layer.cell.nodes:
                others = sorted(readers.get((number, node.name), set()) - {on})
                far = {other for other in others if device and device[other] != device[on]}
                near = [seen[other] for other in others if other not in far]
                member.targets[number, node.name] = near, [seen[other] for other in sorted(far)]
    return seen


def finish_of(members: Sequence[Member], seen: dict[int, Seen]) -> int:
    """Section 9.8; `NEVER` while a member has something to do."""
    if not all(member.over for member in members):
        return NEVER
    outputs = [layer.cell.states["h"] for layer in members[0].job.model.layers]
    visible = [at for each in seen.values() for (key, name, _), at in each.items() if name == outputs[key[0]]]
    return max(*visible, *(member.through for member in members))


def simulate_split(
    job: Job, core: ColumnCore, place: Sequence[int], exchange: Exchange
) -> tuple[int, dict[int, SplitCore]]:
    """The finish of a job alone on its cores, and these with their cycles by name from its arrival on."""
    (finish,), cores = simulate_splits([(job, place)], core, (0,) * (max(place) + 1), exchange, Devices(count=1))
    return finish, {on: cores[on] for on in place}


def simulate_splits(
    jobs: Sequence[tuple[Job, Sequence[int]]],
    core: ColumnCore,
    device: Sequence[int],
    exchange: Exchange,
    link: Devices,
) -> tuple[list[int], list[SplitCore]]:
    """The finishes of jobs that find free threads on their cores, and the cores with their cycles by name.

    device: of each core of the chip. The first job comes first; the cycles begin with its arrival.
    """
    cores = [SplitCore(core, [None] * core.threads, exchange=exchange) for _ in device]
    width = min(link.width, exchange.width, core.tail_width)
    links = [Way(width, link.latency_cycles) for _ in range(max(device) + 1)]
    running: dict[int, tuple[list[Member], dict[int, Seen]]] = {}
    finish = [NEVER] * len(jobs)
    now = min(job.arrival for job, _ in jobs)
    while now < max(finish):
        for number in [each for each in running if finish[each] == now]:
            members, _ = running.pop(number)
            for on in cores:
                on.threads = [None if any(each is member for member in members) else each for each in on.threads]
        for number, (job, place) in enumerate(jobs):
            if job.arrival == now:
                members = [Member(job, core, each, len(place)) for each in range(len(place))]
                running[number] = members, connected(members, place, device)
                for member, each in zip(members, place, strict=True):
                    cores[each].threads[cores[each].threads.index(None)] = member
        for on in cores:
            on.tail(now)
        for on in cores:
            on.link(now)
        for number, way in enumerate(links):
            own = [on for on, each in zip(cores, device, strict=True) if each == number]
            way.step(now, [(each, each.crossing) for on in own for each in on.members])
        for on in cores:
            on.step(now)
        now += 1
        for number, (members, seen) in running.items():
            if finish[number] == NEVER:
                finish[number] = finish_of(members, seen)
    return finish, cores
