"""One job on a hardware thread: what of it is visible, which banks it holds, when its next turn may start."""

from __future__ import annotations

from lstmsim.machines.column.npu import ColumnCore
from lstmsim.model.cell import REDUCTIONS
from lstmsim.model.scenario import Job
from tests.oracle.schedule import Schedule, schedule
from tests.oracle.tiles import Key, Turn, before, tiles_of_job, turns_of_job

NEVER = 10**18


class Thread:
    def __init__(self, index: int, job: Job, start: int, core: ColumnCore) -> None:
        self.index, self.job, self.start, self.core = index, job, start, core
        self.tiles, self.turns = tiles_of_job(job, core), turns_of_job(job, core)
        self.issued, self.turned = 0, 0
        self.finish = NEVER
        self.visible: dict[tuple[Key, str, int], int] = {}
        self.arrivals: dict[tuple[Key, int, int], int] = {}  # of a block's sums at the tail
        self.banks: dict[tuple[Key, int, int], int] = {}  # cycle at which each is free, NEVER while held
        self.units: dict[tuple[Key, int, int, int], int] = {}  # key, stage, segment, unit -> the unit's turn
        self.scalars: dict[tuple[Key, str], int] = {}
        self.ready: int | None = None

    def plan(self, key: Key) -> Schedule:
        return schedule(self.job.model.layers[key[0]].cell, self.core.latency)

    def state(self, now: int) -> str:
        """Section 3.2: may the next tile issue, else why not."""
        if self.issued == len(self.tiles):
            return "drain"
        tile = self.tiles[self.issued]
        for kind, key, name, element in tile.reads:
            if kind == "made" and self.visible.get((key, name, element), NEVER) > now:
                return "hazard"
            if kind == "frame" and self.job.arrival + key[2] * self.job.frame_interval > now:
                return "input"
        held = sum(free > now for free in self.banks.values())
        return "backpressure" if tile.first and held >= self.core.accumulator_banks else "issue"

    def issue(self, now: int) -> int:
        """The next tile goes; its useful multiply-accumulates."""
        tile, lat = self.tiles[self.issued], self.core.latency
        self.issued += 1
        if tile.first:
            self.banks[tile.block] = NEVER
        if tile.last:
            levels = 0
            while 2**levels < self.core.ep:
                levels += 1
            mvm = lat.read + lat.multiply + lat.add * levels + lat.accumulate + lat.convert
            self.arrivals[tile.block] = now + mvm
        return tile.macs

    def value(self, key: Key, name: str, unit: int) -> int:
        """Cycle from which a unit's value is there in the tail."""
        plan = self.plan(key)
        stage, segment = plan.places[name]
        return self.units[key, stage, segment, unit] + plan.depths[name]

    def scalar(self, key: Key, name: str) -> int:
        """Section 8.5: a reduction, or what is computed once behind reductions."""
        if (key, name) not in self.scalars:
            plan, layer = self.plan(key), self.job.model.layers[key[0]]
            if plan.nodes[name].operation in REDUCTIONS:
                where = plan.places[name]
                last = max(self.units[key, *where, unit] for unit in range(layer.units(plan.rows(name))))
                last += plan.start(name)
                self.scalars[key, name] = last + plan.reduction_cycles(name, self.core.tail_width)
            else:
                last = max(self.scalar(key, each) for each in plan.made(name))
                self.scalars[key, name] = last + plan.cycles(name)
        return self.scalars[key, name]

    def ready_from(self) -> int:
        """From when the next turn has all that it waits for, the turns of this job before it apart."""
        if self.ready is None:
            self.ready = NEVER
            if self.turned < len(self.turns):
                turn = self.turns[self.turned]
                arrival = 0 if turn.segment else self.arrivals.get(turn.block)
                if arrival is None:
                    self.ready = None
                    return NEVER
                self.ready = max(arrival, self.operands_from(turn))
        return self.ready

    def operands_from(self, turn: Turn) -> int:
        earliest = 0
        for read in self.plan(turn.key).reads[turn.stage, turn.segment]:
            key = before(self.job, turn.key) if read.state else turn.key
            if not 0 <= key[2] < self.job.steps:
                continue
            for position, unit in enumerate(turn.units):
                there = self.scalar(key, read.name) if read.scalar else self.value(key, read.name, unit)
                earliest = max(earliest, there - position // self.core.tail_width - read.start)
        return earliest

    def enter_tail(self, now: int) -> int:
        """The next turn starts; how many cycles it takes."""
        turn, plan = self.turns[self.turned], self.plan(self.turns[self.turned].key)
        self.turned, self.ready = self.turned + 1, None
        taken = -(-len(turn.units) // self.core.tail_width)
        if turn.segment == 0:
            self.banks[turn.block] = now + taken
        for position, unit in enumerate(turn.units):
            begin = now + position // self.core.tail_width
            self.units[turn.key, turn.stage, turn.segment, unit] = begin
            for name in plan.written[turn.stage, turn.segment]:
                # No result is there in the cycle of its own turn (sections 7 and 8.2).
                shown = max(begin + 1, begin + plan.depths[name] + self.core.latency.writeback)
                self.visible[turn.key, name, unit] = shown
        if self.turned == len(self.turns):
            outputs = [layer.cell.states["h"] for layer in self.job.model.layers]
            self.finish = max(at for (key, name, _), at in self.visible.items() if name == outputs[key[0]])
        return taken
