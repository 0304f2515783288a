"""The timing contract of the parallel device (docs/parallel_device.md, sections 2 to 4 and 6) in plain Python.

It goes from one cycle at which something can change to the next, and does there what section 4.1 says: what is due
takes effect, blocks are placed, every free unit chooses once. It knows no Program. Kernels are the mappings of golden
cases: `blocks` of `streams` of instructions.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lstmsim.machines.parallel.device import ParallelDevice

ARITHMETIC = ("alu", "fma", "sfu")
SERVED = ("shfl", "lds", "sts", "ldg", "stg", "atom")
NAMES = ("memory", "barrier", "dependence", "start", "drain")
NEVER = 1 << 60


def up(value: int, size: int) -> int:
    return -(-value // size) * size


@dataclass
class Queue:
    """A unit that serves one request at a time: by arrival, then SM, then slot."""

    free: int = 0
    busy: int = 0
    waiting: list[tuple[int, int, int, int, Callable[[int], None]]] = field(default_factory=list)

    def ask(self, arrival: int, who: tuple[int, int], length: int, then: Callable[[int], None]) -> None:
        self.waiting.append((arrival, *who, length, then))

    def choose(self, now: int) -> int | None:
        """Serve one request if the unit is free; when it is free again."""
        there = [each for each in self.waiting if each[0] <= now]
        if self.free > now or not there:
            return None
        first = min(there, key=lambda each: each[:3])
        self.waiting.remove(first)
        self.free = now + first[3]
        self.busy += first[3]
        first[4](now)
        return self.free


@dataclass
class Warp:
    block: Block
    number: int
    slot: int
    stream: list[dict[str, Any]]
    at: int = 0
    left: int = 0
    #: of each instruction that was issued: its result; NEVER while parts of it are not known
    results: list[int] = field(default_factory=list)
    bars: int = 0
    gridbars: int = 0
    #: from when on the barrier before the next instruction holds nothing back
    released: int = 0

    @property
    def next(self) -> dict[str, Any] | None:
        return self.stream[self.at] if self.at < len(self.stream) else None

    def lacks(self, now: int) -> str | None:
        """What the next instruction lacks, by the order of section 6."""
        if now < self.block.may_issue:
            return "start"
        if self.next is None:
            return "drain"
        if self.left < self.next.get("count", 1):
            return None
        late = {self.stream[each]["kind"] for each in self.next.get("waits", []) if self.results[each] > now}
        if late & set(SERVED):
            return "memory"
        if self.released > now:
            return "barrier"
        return "dependence" if late & set(ARITHMETIC) else None


@dataclass
class Block:
    kernel: int
    number: int
    sm: int | None
    shape: dict[str, Any]
    streams: list[list[dict[str, Any]]]
    placed: int = NEVER
    may_issue: int = NEVER
    end: int = NEVER
    warps: list[Warp] = field(default_factory=list)
    bars: dict[int, list[int]] = field(default_factory=dict)
    gridbars: dict[int, list[int]] = field(default_factory=dict)

    def settle(self, retire: int) -> None:
        """Know the end as soon as everything is issued and all results are known."""
        done = all(warp.next is None for warp in self.warps)
        results = [each for warp in self.warps for each in warp.results]
        if done and max(results, default=0) < NEVER:
            self.end = max([*results, self.may_issue]) + retire


class Machine:
    """A run of kernels on a device."""

    def __init__(self, device: ParallelDevice, kernels: list[dict[str, Any]]) -> None:
        self.device, self.kernels = device, kernels
        self.slots: list[list[Warp | None]] = [[None] * device.core.max_warps for _ in range(device.sms)]
        self.resident: list[list[Block]] = [[] for _ in range(device.sms)]
        self.last = [[0] * device.core.schedulers for _ in range(device.sms)]
        self.occupied = [[0] * device.core.schedulers for _ in range(device.sms)]
        self.lsu, self.port = ([Queue() for _ in range(device.sms)] for _ in range(2))
        self.dram, self.atomic = ([Queue() for _ in range(device.partitions)] for _ in range(2))
        self.sync = Queue()
        self.dispatcher = 0
        self.times: list[int] = []
        self.kinds: Counter[str] = Counter()
        self.accounts = [Counter[str]() for _ in range(device.sms)]
        self.blocks: list[Block] = []
        self.spans: list[dict[str, int]] = []
        self.waiting: list[Block] = []
        self.gathered: dict[int, list[int]] = {}

    def wake(self, cycle: int) -> None:
        if cycle < NEVER:
            heapq.heappush(self.times, cycle)

    def room(self, kernel: dict[str, Any]) -> int:
        device, w = self.device, kernel["warps"]
        bounds = [device.core.max_blocks, device.core.max_warps // w]
        if kernel["registers"]:
            bounds.append(device.core.registers // (w * up(kernel["registers"] * device.core.warp, 256)))
        if kernel["shared"]:
            bounds.append(device.core.shared_bytes // up(kernel["shared"], 256))
        return min(bounds)

    def run(self) -> dict[str, Any]:
        end = 0
        for number, kernel in enumerate(self.kernels):
            end = self.run_kernel(number, kernel, end + self.device.launch, end)
        return self.reported(end)

    def run_kernel(self, number: int, kernel: dict[str, Any], arrive: int, before: int) -> int:
        own = [
            Block(number, place, each.get("sm"), kernel, each["streams"]) for place, each in enumerate(kernel["blocks"])
        ]
        self.blocks += own
        self.waiting, self.gathered = list(own), {}
        self.times = []
        # the cycles between the kernels
        self.name(before, arrive)
        now = arrive
        while any(block.end > now for block in own):
            self.step(now)
            following = [each for each in self.times if each > now]
            assert following, "nothing can happen any more"
            self.times = following
            then = min(following)
            self.name(now, then)
            now = then
        for block in own:
            self.free(block)
        end = max((block.end for block in own), default=arrive)
        self.spans.append({"arrive": arrive, "end": end, "resident": self.room(kernel)})
        return end

    def free(self, block: Block) -> None:
        if block.warps and block in self.resident[block.sm or 0]:
            self.resident[block.sm or 0].remove(block)
            for warp in block.warps:
                self.slots[block.sm or 0][warp.slot] = None

    def step(self, now: int) -> None:
        for sm in self.resident:
            for block in [each for each in sm if each.end <= now]:
                self.free(block)
        self.place(now)
        for sm in range(self.device.sms):
            for scheduler in range(self.device.core.schedulers):
                if self.occupied[sm][scheduler] <= now:
                    self.schedule(sm, scheduler, now)
        for unit in (*self.lsu, *self.port, *self.dram, *self.atomic, self.sync):
            free = unit.choose(now)
            if free is not None:
                self.wake(free)
        for sm in self.resident:
            for block in sm:
                if block.end == NEVER:
                    block.settle(self.device.retire)
                    self.wake(block.end)

    def place(self, now: int) -> None:
        standing: set[int] = set()
        left = []
        for block in self.waiting:
            may = range(self.device.sms) if block.sm is None else [block.sm]
            w = len(block.streams)
            free = [
                (len(self.resident[sm]), sm)
                for sm in may
                if sm not in standing
                and len(self.resident[sm]) < self.room(block.shape)
                and self.slots[sm].count(None) >= w
            ]
            if not free:
                standing |= set(may)
                left.append(block)
                continue
            sm = min(free)[1]
            block.sm, block.placed = sm, now
            slots = [slot for slot, each in enumerate(self.slots[sm]) if each is None][:w]
            for number, (slot, stream) in enumerate(zip(slots, block.streams, strict=True)):
                warp = Warp(block, number, slot, stream, left=stream[0].get("count", 1) if stream else 0)
                block.warps.append(warp)
                self.slots[sm][slot] = warp
            self.resident[sm].append(block)
            begin = max(now, self.dispatcher)
            self.dispatcher = begin + self.device.dispatch
            block.may_issue = self.dispatcher + self.device.start
            self.wake(block.may_issue)
        self.waiting = left

    def schedule(self, sm: int, scheduler: int, now: int) -> None:
        device, slots = self.device, self.slots[sm]
        first = self.last[sm][scheduler] + (device.core.warp_policy == "fine")
        for slot in [*range(first, device.core.max_warps), *range(first)]:
            warp = slots[slot]
            if slot % device.core.schedulers != scheduler or warp is None or warp.next is None or warp.lacks(now):
                continue
            self.last[sm][scheduler] = slot
            self.occupied[sm][scheduler] = now + self.issue(sm, warp, warp.next, now)
            self.wake(self.occupied[sm][scheduler])
            return

    def issue(self, sm: int, warp: Warp, each: dict[str, Any], now: int) -> int:
        """Issue once; for how many cycles the scheduler is occupied."""
        device, kind = self.device, each["kind"]
        cycles = 1
        if kind in ARITHMETIC:
            cycles = -(-device.core.warp // (device.core.sfu_lanes if kind == "sfu" else device.core.lanes))
        self.kinds[kind] += 1
        self.accounts[sm]["issue"] += cycles
        warp.left -= 1
        if warp.left:
            return cycles
        number = warp.at
        warp.results.append(NEVER)
        warp.at += 1
        warp.left = warp.next.get("count", 1) if warp.next else 0
        if kind in ARITHMETIC:
            self.give(warp, number, now + getattr(device.core.latency, kind))
        elif kind == "bar":
            self.give(warp, number, now + 1)
            self.meet(warp, now)
        elif kind == "gridbar":
            self.meet_all(sm, warp, number, now)
        else:
            length = max(1, each.get("lsu", 0))
            self.lsu[sm].ask(now + 1, (sm, warp.slot), length, lambda at: self.served(sm, warp, number, each, at))
            self.wake(now + 1)
        return cycles

    def give(self, warp: Warp, number: int, cycle: int) -> None:
        warp.results[number] = cycle
        self.wake(cycle)

    def meet(self, warp: Warp, now: int) -> None:
        """A `bar`: all warps of the block go on some cycles after the last one has come."""
        starts = warp.block.bars.setdefault(warp.bars, [])
        starts.append(now)
        warp.bars += 1
        warp.released = NEVER
        if len(starts) == len(warp.block.warps):
            release = max(starts) + self.device.core.latency.barrier
            for other in warp.block.warps:
                other.released = release
            self.wake(release)

    def meet_all(self, sm: int, warp: Warp, number: int, now: int) -> None:
        """A `gridbar`: the block comes to the sync unit when its last warp has come."""
        block, which = warp.block, warp.gridbars
        starts = block.gridbars.setdefault(which, [])
        starts.append(now)
        warp.gridbars += 1
        warp.released = NEVER
        if len(starts) < len(block.warps):
            return

        def serve(at: int) -> None:
            over = at + self.device.sync
            for each in block.warps:
                own = [place for place, one in enumerate(each.stream) if one["kind"] == "gridbar"][which]
                self.give(each, own, over)
            ends = self.gathered.setdefault(which, [])
            ends.append(over)
            all_blocks = [each for each in self.blocks if each.kernel == block.kernel]
            if len(ends) == len(all_blocks):
                for each in all_blocks:
                    for one in each.warps:
                        one.released = max(ends) + self.device.grid
                self.wake(max(ends) + self.device.grid)

        self.sync.ask(now + 1, (sm, min(each.slot for each in block.warps)), self.device.sync, serve)
        self.wake(now + 1)

    def served(self, sm: int, warp: Warp, number: int, each: dict[str, Any], b1: int) -> None:
        """The load/store unit begins with an access: what comes of it."""
        latency, kind = self.device.core.latency, each["kind"]
        done = b1 + max(1, each.get("lsu", 0))
        if kind == "shfl":
            return self.give(warp, number, done + latency.shuffle)
        if kind in ("lds", "sts"):
            return self.give(warp, number, done + latency.shared)
        parts = [done + latency.l1] if kind == "ldg" and each.get("in_l1") else []
        sectors = each.get("sectors", 0)
        if not sectors and kind == "ldg":
            return self.give(warp, number, max([*parts, done]))
        rate, cycles = self.device.core.port
        length = -(-sectors * cycles // rate)
        who = sm, warp.slot

        def through(b2: int) -> None:
            over = b2 + length
            if kind == "stg" or (kind == "ldg" and each.get("in_l2")):
                parts.append(over + latency.l2)
            missing = each.get("misses", {})
            units, speed = (self.atomic, self.device.atomic) if kind == "atom" else (self.dram, self.device.dram)
            behind = {"ldg": latency.dram, "stg": 0, "atom": latency.l2}[kind]
            left = len(missing)

            def brought(b3: int, length: int) -> None:
                nonlocal left
                parts.append(b3 + length + behind)
                left -= 1
                if not left:
                    self.give(warp, number, max(parts))

            for place, count in missing.items():
                long = speed * count
                units[int(place)].ask(over, who, long, lambda b3, long=long: brought(b3, long))
            self.wake(over)
            if not missing:
                self.give(warp, number, max(parts))

        self.port[sm].ask(done, who, length, through)
        self.wake(done)
        return None

    def name(self, now: int, then: int) -> None:
        """Name the scheduler-cycles from `now` to `then`, in which nothing changes."""
        device = self.device
        for sm in range(device.sms):
            for scheduler in range(device.core.schedulers):
                busy = min(max(self.occupied[sm][scheduler], now), then)
                own = [
                    warp
                    for slot, warp in enumerate(self.slots[sm])
                    if warp is not None and slot % device.core.schedulers == scheduler and warp.block.end > now
                ]
                lacking = {warp.lacks(now) for warp in own}
                name = next((each for each in NAMES if each in lacking), "empty")
                if then > busy:
                    assert own == [] or name != "empty", "a warp that lacks nothing and is not issued"
                self.accounts[sm][name] += then - busy

    def reported(self, end: int) -> dict[str, Any]:
        names = ("issue", *NAMES, "empty")
        rows = [
            {
                "kernel": each.kernel,
                "block": each.number,
                "sm": each.sm,
                "placed": each.placed,
                "may_issue": each.may_issue,
                "end": each.end,
            }
            for each in self.blocks
        ]
        return {
            "makespan": end,
            "issue": [each["issue"] for each in self.accounts],
            "kinds": dict(self.kinds),
            "lsu": [each.busy for each in self.lsu],
            "port": [each.busy for each in self.port],
            "dram": [each.busy for each in self.dram],
            "atomic": [each.busy for each in self.atomic],
            "accounts": [{name: each[name] for name in names} for each in self.accounts],
            "kernels": self.spans,
            "blocks": rows,
        }


def simulate(device: ParallelDevice, kernels: list[dict[str, Any]]) -> dict[str, Any]:
    """What comes of the kernels, laid out as the `expect` of a golden case."""
    return Machine(device, kernels).run()
