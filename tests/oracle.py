"""The timing contract once more, stepped cycle by cycle: slow, without Program or engine, for small scenarios.

Written from the text of the contract (docs/timing.md, by section number); shares only the descriptions with lstmsim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lstmsim.targets.column_npu import ColumnCore
from lstmsim.workload.model import Layer
from lstmsim.workload.scenario import Job, Scenario

NEVER = 10**18
LSTM_TAIL = ("activation", "elementwise_multiply", "elementwise_add", "activation", "elementwise_multiply", "quantize")
TAILS = {
    "lstm": LSTM_TAIL,
    "gru": (
        *("activation", "elementwise_multiply", "elementwise_add", "activation", "elementwise_add"),
        *("elementwise_multiply", "elementwise_add", "quantize"),
    ),
    "rnn": ("activation", "quantize"),
}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


@dataclass
class Tile:
    """One tile: what it reads as (kind, key, element) triples, and its place among its row block's tiles."""

    reads: list[tuple[str, tuple[int, int, int], int]]
    key: tuple[int, int, int]
    block: int
    units: range
    first: bool
    last: bool
    macs: int


def tiles_of_step(job: Job, core: ColumnCore, number: int, direction: int, step: int) -> Iterator[Tile]:
    layer: Layer = job.model.layers[number]
    gates, ep = GATES[layer.cell.name], core.ep
    units = core.vp // gates
    if number == 0:
        x = [("frame", (0, 0, step), 0)] * layer.input
    else:
        below = job.model.layers[number - 1]
        x = [("h", (number - 1, d, step), u) for d in range(below.directions) for u in range(below.hidden)]
    before = step - 1 if direction == 0 else step + 1
    h = [("h", (number, direction, before), u) for u in range(layer.hidden)]
    if not 0 <= before < job.steps:
        h = [("start", (0, 0, 0), 0)] * layer.hidden
    groups = [x[i : i + ep] for i in range(0, len(x), ep)], [h[i : i + ep] for i in range(0, len(h), ep)]
    swap = number > 0 and job.model.layer_order == "step"
    order = groups[1] + groups[0] if swap else groups[0] + groups[1]
    blocks = [range(b, min(b + units, layer.hidden)) for b in range(0, layer.hidden, units)]
    pairs = [(b, g) for b in range(len(blocks)) for g in range(len(order))]
    if core.block_order == "column":
        pairs = [(b, g) for g in range(len(order)) for b in range(len(blocks))]
    for b, g in pairs:
        macs = gates * len(blocks[b]) * len(order[g])
        last = g == len(order) - 1
        yield Tile(order[g], (number, direction, step), b, blocks[b], g == 0, last, macs)


def tiles_of_job(job: Job, core: ColumnCore) -> Iterator[Tile]:
    if job.model.layer_order == "step":
        for step in range(job.steps):
            for number in range(len(job.model.layers)):
                yield from tiles_of_step(job, core, number, 0, step)
        return
    for number, layer in enumerate(job.model.layers):
        for direction in range(layer.directions):
            for step in range(job.steps) if direction == 0 else reversed(range(job.steps)):
                yield from tiles_of_step(job, core, number, direction, step)


@dataclass
class Thread:
    index: int
    job: Job
    start: int
    core: ColumnCore
    tiles: list[Tile] = field(default_factory=list)
    next: int = 0
    visible: dict[tuple[tuple[int, int, int], int], int] = field(default_factory=dict)
    bank_free: list[int] = field(default_factory=list)  # cycle at which each taken bank frees, NEVER while held
    blocks_in_tail: int = 0
    finish: int = NEVER

    def state(self, now: int) -> str:
        """Section 3.2: may the next tile issue, else why not."""
        if self.next == len(self.tiles):
            return "drain"
        tile = self.tiles[self.next]
        for kind, key, element in tile.reads:
            if kind == "h" and self.visible.get((key, element), NEVER) > now:
                return "hazard"
            if kind == "frame" and self.job.arrival + key[2] * self.job.frame_interval > now:
                return "input"
        held = sum(free > now for free in self.bank_free)
        return "backpressure" if tile.first and held >= self.core.accumulator_banks else "issue"


@dataclass
class OracleCore:
    core: ColumnCore
    threads: list[Thread | None]
    active: int = 0
    fresh: bool = False
    switching_until: int = 0
    tail_free: int = 0
    names: dict[str, int] = field(default_factory=dict)
    macs: int = 0

    def cycle(self, now: int) -> None:
        name = self.step(now)
        self.names[name] = self.names.get(name, 0) + 1

    def step(self, now: int) -> str:
        if now < self.switching_until:
            return "switch"
        states = [None if thread is None else thread.state(now) for thread in self.threads]
        count = len(states)
        ring = [(self.active + k) % count for k in range(count)]
        if self.core.thread_policy == "fine" and not self.fresh:
            ring = ring[1:] + ring[:1]
        for index in ring:
            if states[index] == "issue":
                if index != self.active and self.core.switch_cycles:
                    self.active, self.fresh = index, True
                    self.switching_until = now + self.core.switch_cycles
                    return "switch"
                self.active, self.fresh = index, False
                self.issue(index, now)
                return "busy"
        return next((name for name in ("hazard", "backpressure", "input", "drain") if name in states), "idle")

    def issue(self, index: int, now: int) -> None:
        thread, core, lat = self.threads[index], self.core, self.core.latency
        assert thread is not None
        tile = thread.tiles[thread.next]
        thread.next += 1
        self.macs += tile.macs
        if tile.first:
            thread.bank_free.append(NEVER)
        if tile.last:
            levels = 0
            while 2**levels < core.ep:
                levels += 1
            mvm = lat.read + lat.multiply + lat.add * levels + lat.accumulate + lat.convert
            begin = max(now + mvm, self.tail_free)
            taken = -(-len(tile.units) // core.tail_width)
            self.tail_free = begin + taken
            thread.bank_free[thread.blocks_in_tail] = begin + taken
            thread.blocks_in_tail += 1
            depth = sum(getattr(lat, stage) for stage in TAILS[thread.job.model.layers[tile.key[0]].cell.name])
            for u, unit in enumerate(tile.units):
                thread.visible[tile.key, unit] = begin + u // core.tail_width + depth + lat.writeback
        if thread.next == len(thread.tiles):
            thread.finish = max(thread.visible.values())


def may_run(job: Job, core: ColumnCore) -> bool:
    for layer in job.model.layers:
        gates = GATES[layer.cell.name]
        if core.vp < gates:
            return False
        if core.block_order == "column" and core.accumulator_banks < -(-layer.hidden // (core.vp // gates)):
            return False
    return True


def simulate(scenario: Scenario) -> tuple[list[tuple[int, int, int, int]], list[tuple[dict[str, int], int]]]:
    """Per job (core, thread, start, finish); per core (named cycles, useful multiply-accumulates)."""
    cores = [OracleCore(core, [None] * core.threads) for core in scenario.chip.cores]  # type: ignore[attr-defined]
    order = sorted(range(len(scenario.jobs)), key=lambda index: (scenario.jobs[index].arrival, index))
    done: dict[int, tuple[int, int, int, int]] = {}
    now = 0
    while True:
        for number, core in enumerate(cores):
            for context, thread in enumerate(core.threads):
                if thread is not None and thread.finish == now:
                    done[thread.index] = (number, context, thread.start, now)
                    core.threads[context] = None
        if len(done) == len(scenario.jobs):
            break
        for index in list(order):
            job = scenario.jobs[index]
            allowed = [
                (sum(thread is not None for thread in core.threads), number)
                for number, core in enumerate(cores)
                if job.core in (None, number) and None in core.threads and may_run(job, core.core)
            ]
            if job.arrival <= now and allowed:
                core = cores[min(allowed)[1]]
                thread = Thread(index, job, now, core.core)
                thread.tiles = list(tiles_of_job(job, core.core))
                core.threads[core.threads.index(None)] = thread
                order.remove(index)
        for core in cores:
            core.cycle(now)
        now += 1
    return [done[index] for index in range(len(scenario.jobs))], [(core.names, core.macs) for core in cores]
