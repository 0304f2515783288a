"""One split job, cycle by cycle (section 9): members as threads, what each core sees, a link for each core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from lstmsim.machines.column.npu import ColumnCore, Exchange
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
    """A row block's elements of one vector on their way to the link: their visible cycles on their own core."""

    key: Key
    name: str
    units: range
    visible: list[int]


class Member(Thread):
    """A thread with a part of the job: its own tiles and turns, and what it has to send."""

    def __init__(self, job: Job, core: ColumnCore, member: int, members: int) -> None:
        super().__init__(member, job, job.arrival, core)
        self.member, self.members = member, members
        self.tiles, self.turns = list(self.own_tiles()), list(self.own_turns())
        self.targets: dict[tuple[int, str], list[Seen]] = {}
        self.sendings: list[Sending] = []
        self.sent = 0
        self.through = 0  # the tail, and the link

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
        found = [
            Sending(turn.key, name, turn.units, [self.visible[turn.key, name, unit] for unit in turn.units])
            for name in written
            if self.targets[turn.key[0], name]
        ]
        self.sendings += sorted(found, key=lambda each: (each.visible[0], each.name))
        return taken

    @property
    def over(self) -> bool:
        done = self.issued == len(self.tiles) and self.turned == len(self.turns)
        return done and self.sent == len(self.sendings)


@dataclass
class SplitCore(OracleCore):
    """A core with a link. `sender`: whose block is on it."""

    exchange: Exchange = field(default_factory=Exchange)
    sender: Member | None = None
    gone: int = 0  # elements of that block that have left
    issued: list[tuple[int, int]] = field(default_factory=list)

    def link(self, now: int) -> None:
        """Section 9.5, element by element: those of the block that are there leave, no more than fit."""
        if self.sender is None:
            waiting = []
            for number, each in enumerate(self.threads):
                if isinstance(each, Member) and each.sent < len(each.sendings):
                    waiting.append((each.sendings[each.sent].visible[0], number, each))
            come, _, first = min(waiting, key=lambda each: each[:2], default=(NEVER, 0, None))
            if first is None or come > now:
                return
            self.sender, self.gone = first, 0
        member, sending = self.sender, self.sender.sendings[self.sender.sent]
        there = sum(at <= now for at in sending.visible) - self.gone
        leaving = min(there, self.exchange.width, self.core.tail_width)
        at = now + max(1, self.exchange.latency_cycles)
        for unit in sending.units[self.gone : self.gone + leaving]:
            for seen in member.targets[sending.key[0], sending.name]:
                seen[sending.key, sending.name, unit] = at
                member.through = max(member.through, at)
        self.gone += leaving
        if self.gone == len(sending.units):
            member.sent += 1
            self.sender = None

    def step(self, now: int) -> str:
        name = super().step(now)
        self.names[name] = self.names.get(name, 0) + 1
        if name == "busy":
            self.issued.append((now, self.active))
        return name


def connected(members: Sequence[Member], place: Sequence[int]) -> dict[int, Seen]:
    """What each core of a job sees, and who of its members sends what to which of them."""
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
                others = readers.get((number, node.name), set()) - {on}
                member.targets[number, node.name] = [seen[other] for other in others]
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
    members = [Member(job, core, number, len(place)) for number in range(len(place))]
    cores = {on: SplitCore(core, [], exchange=exchange) for on in place}
    for member, on in zip(members, place, strict=True):
        cores[on].threads.append(member)
    for each in cores.values():
        each.threads += [None] * (core.threads - len(each.threads))
    seen = connected(members, place)
    now, finish = job.arrival, NEVER
    while now < finish:
        for each in cores.values():
            each.tail(now)
        for each in cores.values():
            each.link(now)
            each.step(now)
        now += 1
        if finish == NEVER:
            finish = finish_of(members, seen)
    return finish, cores
