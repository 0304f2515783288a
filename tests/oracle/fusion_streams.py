"""Section 10 of docs/fusion.md: the streams of every warp, one by one, and the cycles by the plain device."""

from __future__ import annotations

from typing import Any

from tests.oracle.fusion_graph import CHEAP, HEAVY, Graph, up
from tests.oracle.fusion_mapping import Device
from tests.oracle.fusion_plan import Kernel, Stage
from tests.oracle.parallel_device import simulate
from tests.oracle.parallel_traffic import Access, Grid, cost, lines_and_sectors, wavefronts

Lanes = tuple[int | None, ...]


class Warp:
    """The stream of one warp and what it still knows. A wait is the place of an instruction, or None."""

    def __init__(self, lanes: int, banks: int) -> None:
        self.lanes, self.banks = lanes, banks
        self.stream: list[dict[str, Any]] = []
        self.values: dict[tuple[int, Lanes], int | None] = {}
        self.shared_stores: list[int] = []
        self.global_stores: list[int] = []

    def put(self, kind: str, waits: list[int | None], **more: Any) -> int:
        there = list(dict.fromkeys(each for each in waits if each is not None))
        self.stream.append({"kind": kind, "count": 1, "waits": there} | more)
        return len(self.stream) - 1

    def far(self, kind: str, array: str, elements: Lanes, waits: list[int | None]) -> int | None:
        on = [4 * each for each in elements if each is not None]
        if not on:
            return None
        lines, sectors = lines_and_sectors(on)
        place = self.put(kind, waits, lsu=lines, access=Access(kind, array, sectors))
        if kind == "stg":
            self.global_stores.append(place)
        return place

    def near(self, kind: str, addresses: Lanes, waits: list[int | None]) -> int | None:
        if all(each is None for each in addresses):
            return None
        place = self.put(kind, waits, lsu=wavefronts(list(addresses), 1, self.banks))
        if kind == "sts":
            self.shared_stores.append(place)
        return place

    def halve(self, got: int | None, size: int) -> int | None:
        """As many times a shuffle and an operation as values can be halved."""
        while size > 1:
            got = self.put("fma", [self.put("shfl", [got])])
            size = up(size, 2)
        return got


class Code:
    """A kernel being written."""

    def __init__(self, graph: Graph, kernel: Kernel, device: Device, arrays: list[tuple[str, int]], banks: int) -> None:
        self.graph, self.kernel, self.device, self.arrays = graph, kernel, device, arrays
        self.lanes = device["warp"]
        self.own = {stage.node: stage for stage in kernel.stages}
        self.base = [sum(kernel.buffers[:place]) for place in range(len(kernel.buffers))]
        self.blocks = [
            [Warp(self.lanes, banks) for _ in range(up(kernel.threads, self.lanes))] for _ in range(kernel.blocks)
        ]
        self.rank = {stage.node: ranks(stage) for stage in kernel.stages if stage.scheme == "shared"}
        self.partials: dict[int, str] = {}
        self.node = [f"n{v}" for v in range(len(graph.nodes))]

    def write(self) -> None:
        for stage in self.kernel.stages:
            if stage.barrier:
                self.meet()
            if stage.pieces:
                self.partials[stage.node] = f"p{len(self.arrays)}"
                self.arrays.append((self.partials[stage.node], self.graph.sizes[stage.node] * stage.pieces))
            work: list[list[list[int]]] = [[[] for _ in range(self.kernel.threads)] for _ in self.blocks]
            for e, (block, thread) in enumerate(stage.work):
                work[block][thread].append(e)
            if self.graph.reduces(stage.node):
                self.reduce(stage, work)
            else:
                self.element(stage, work)
            if stage.scheme == "shared":
                self.bar()
        if self.kernel.end_barrier:
            self.meet()
        self.end()

    def bar(self) -> None:
        for block in self.blocks:
            for warp in block:
                warp.put("bar", [*warp.shared_stores])
                warp.shared_stores = []

    def meet(self) -> None:
        for block in self.blocks:
            for warp in block:
                warp.put("gridbar", [*warp.global_stores])
                warp.global_stores = []

    def value(self, b: int, warp: Warp, v: int, elements: Lanes, root: bool = False) -> int | None:
        """Evaluate elements of a node: the instruction that has them."""
        if (v, elements) in warp.values:
            return warp.values[v, elements]
        if v in self.kernel.ends and not root:
            got = self.load(b, warp, v, elements)
        else:
            waits = [
                self.value(b, warp, u, tuple(None if e is None else self.graph.index(v, u)[e] for e in elements))
                for u in self.graph.known(v)
            ]
            got = self.operate(warp, self.graph.ops[v], waits)
        warp.values[v, elements] = got
        return got

    def operate(self, warp: Warp, op: str, waits: list[int | None]) -> int | None:
        if op in CHEAP:
            return warp.put("fma", waits)
        if op in HEAVY:
            got = warp.put("sfu", waits, count=2 if op == "power" else 1)
            return warp.put("fma", [got]) if op == "divide" else got
        return waits[0]

    def load(self, b: int, warp: Warp, v: int, elements: Lanes) -> int | None:
        stage = self.own.get(v)
        if stage is None or (stage.scheme == "global" and not stage.pieces):
            return warp.far("ldg", self.node[v], elements, [])
        if stage.scheme == "global":
            return self.combine(warp, stage, elements)
        if stage.scheme == "shared":
            return warp.near("lds", self.places(b, stage, elements), [])
        return None

    def places(self, b: int, stage: Stage, elements: Lanes) -> Lanes:
        rank = self.rank[stage.node]
        return tuple(None if e is None else self.base[stage.buffer] + 4 * rank[b, e] for e in elements)

    def combine(self, warp: Warp, stage: Stage, elements: Lanes) -> int | None:
        got = None
        for piece in range(stage.pieces):
            some = tuple(None if e is None else e * stage.pieces + piece for e in elements)
            got = warp.put("fma", [warp.far("ldg", self.partials[stage.node], some, []), got])
        return got

    def forget(self, warp: Warp, before: dict[tuple[int, Lanes], int | None], work: list[list[list[int]]]) -> None:
        if max(len(some) for block in work for some in block) > self.device["register_elements"]:
            warp.values = before

    def warps(self) -> list[tuple[int, int, Warp]]:
        return [(b, place, warp) for b, block in enumerate(self.blocks) for place, warp in enumerate(block)]

    def own_lanes(self, per_thread: list[Any], place: int, nothing: Any) -> list[Any]:
        some = per_thread[place * self.lanes : (place + 1) * self.lanes]
        return some + [nothing] * (self.lanes - len(some))

    def element(self, stage: Stage, work: list[list[list[int]]]) -> None:
        for b, place, warp in self.warps():
            lists = self.own_lanes(work[b], place, [])
            for j in range(max(map(len, lists))):
                lanes = tuple(some[j] if j < len(some) else None for some in lists)
                before = dict(warp.values)
                got = self.value(b, warp, stage.node, lanes, root=True)
                if stage.scheme == "shared":
                    warp.near("sts", self.places(b, stage, lanes), [got])
                if stage.written:
                    warp.far("stg", self.node[stage.node], lanes, [got])
                self.forget(warp, before, work)

    def reduce(self, stage: Stage, work: list[list[list[int]]]) -> None:
        (operand,) = self.graph.known(stage.node)
        of = {e: p for p, part in enumerate(self.graph.parts(stage.node)) for e in part}
        mine = [[grouped(some, of) for some in block] for block in work]
        scratch, warps = sum(self.kernel.buffers), len(self.blocks[0])
        for q in range(max(len(results) for block in mine for results in block)):
            held: list[dict[int, set[int]]] = [{} for _ in self.blocks]
            for b, block in enumerate(mine):
                for thread, results in enumerate(block):
                    for p, _ in results[q : q + 1]:
                        held[b].setdefault(p, set()).add(thread // self.lanes)
            most = max(len(some) for each in held for some in each.values())
            spans = most > 1
            sums: dict[tuple[int, int], tuple[int | None, Lanes]] = {}
            for b, place, warp in self.warps():
                lists = [
                    results[q] if q < len(results) else (None, []) for results in self.own_lanes(mine[b], place, [])
                ]
                lanes = tuple(p for p, _ in lists)
                got = None
                for j in range(max(len(some) for _, some in lists)):
                    turn = tuple(some[j] if j < len(some) else None for _, some in lists)
                    before = dict(warp.values)
                    got = warp.put("fma", [self.value(b, warp, operand, turn), got])
                    self.forget(warp, before, work)
                on = [p for p in lanes if p is not None]
                if len(on) > len(set(on)):
                    got = warp.halve(got, self.lanes)
                sums[b, place] = got, lanes
                if spans:
                    some = tuple(
                        scratch + 4 * place if p is not None and len(held[b][p]) > 1 and p not in lanes[:lane] else None
                        for lane, p in enumerate(lanes)
                    )
                    warp.near("sts", some, [got])
            if spans:
                self.bar()
            for b, place, warp in self.warps():
                got, lanes = sums[b, place]
                lead = tuple(
                    p if p is not None and min(held[b][p]) == place and p not in lanes[:lane] else None
                    for lane, p in enumerate(lanes)
                )
                if any(p is not None and len(held[b][p]) > 1 for p in lead):
                    got = warp.near("lds", tuple(scratch + 4 * (lane % warps) for lane in range(self.lanes)), [])
                    got = warp.halve(got, most)
                self.store(b, warp, stage, lead, got)

    def store(self, b: int, warp: Warp, stage: Stage, lead: Lanes, got: int | None) -> None:
        if stage.pieces:
            some = tuple(None if p is None else p * stage.pieces + stage.blocks[p].index(b) for p in lead)
            warp.far("stg", self.partials[stage.node], some, [got])
            return
        if stage.scheme == "shared":
            warp.near("sts", self.places(b, stage, lead), [got])
        if stage.written:
            warp.far("stg", self.node[stage.node], lead, [got])

    def end(self) -> None:
        """Section 7.1: owners combine the partials of outputs, behind the last barrier."""
        for stage in self.kernel.stages:
            if not stage.pieces or not stage.output:
                continue
            work: list[list[list[int]]] = [[[] for _ in range(self.kernel.threads)] for _ in self.blocks]
            for p, (block, thread) in enumerate(stage.owners):
                work[block][thread].append(p)
            for b, place, warp in self.warps():
                lists = self.own_lanes(work[b], place, [])
                for j in range(max(map(len, lists))):
                    lanes = tuple(some[j] if j < len(some) else None for some in lists)
                    warp.far("stg", self.node[stage.node], lanes, [self.combine(warp, stage, lanes)])


def grouped(elements: list[int], of: dict[int, int]) -> list[tuple[int, list[int]]]:
    """The results of a thread, ascending, each with its elements."""
    some: dict[int, list[int]] = {}
    for e in elements:
        some.setdefault(of[e], []).append(e)
    return sorted(some.items())


def ranks(stage: Stage) -> dict[tuple[int, int], int]:
    """The place of each element among those of its block."""
    count: dict[int, int] = {}
    placed = {}
    for e, (block, _) in enumerate(stage.owners):
        placed[block, e] = count.get(block, 0)
        count[block] = placed[block, e] + 1
    return placed


def written(graph: Graph, kernels: list[Kernel], device: Device, machine: Any) -> list[dict[str, Any]]:
    """The device kernels, with what their accesses cost."""
    arrays = [(f"n{v}", size) for v, size in enumerate(graph.sizes)]
    codes = []
    for kernel in kernels:
        codes.append(Code(graph, kernel, device, arrays, machine.core.banks))
        codes[-1].write()
    grids = [
        Grid(
            len(code.blocks[0]),
            code.kernel.registers,
            code.kernel.shared,
            set(),
            [-1] * len(code.blocks),
            [[[each.get("access") for each in warp.stream] for warp in block] for block in code.blocks],
        )
        for code in codes
    ]
    cost(arrays, grids, machine)
    return [
        {
            "warps": len(code.blocks[0]),
            "registers": code.kernel.registers,
            "shared": code.kernel.shared,
            "persistent": code.kernel.end_barrier or any(stage.barrier for stage in code.kernel.stages),
            "blocks": [
                {"streams": [[priced(each) for each in warp.stream] for warp in block]} for block in code.blocks
            ],
        }
        for code in codes
    ]


def priced(each: dict[str, Any]) -> dict[str, Any]:
    access = each.get("access")
    if access is None:
        return each
    plain = {name: value for name, value in each.items() if name != "access"}
    misses = {str(place): count for place, count in access.misses.items()}
    return plain | {"sectors": access.through, "misses": misses, "in_l1": access.in_l1, "in_l2": access.in_l2}


def cycles(graph: Graph, kernels: list[Kernel], device: Device, machine: Any) -> int:
    return int(simulate(machine, written(graph, kernels, device, machine))["makespan"])
