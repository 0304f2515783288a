"""SpMM warp by warp and lane by lane (docs/sparse_kernels.md, section 3)."""

from __future__ import annotations

from typing import Any

from tests.oracle.plain_warps import Row, Warp, bundles_of, grid_of, in_order, pointers, spread

Numbers = list[list[int]]


class PlainSpmm:
    """C = A B. `rows` are those of the format; `names` their numbers in the matrix."""

    def __init__(self, matrix: list[Row], dense: Numbers, n: int, o: dict[str, Any], device: dict[str, int]) -> None:
        self.o, self.W, self.N, self.K, self.B = o, device["warp"], n, len(dense), dense
        self.names = [r for r, row in enumerate(matrix) if row or o["format"] == "csr"]
        self.rows = [matrix[r] for r in self.names]
        self.v = o["v"] or (4 if n % 4 == 0 else 2 if n % 2 == 0 else 1)
        self.t = o["tile"] or (64 if n >= 64 else 32 if n >= 32 else 16 if n >= 16 else 8)
        self.tw = self.t // o["warps"] if o["share"] else self.t
        self.L = max(1 << i for i in range(7) if 1 << i <= self.W and (1 << i) * self.v <= self.tw)
        self.reps, self.g = self.tw // (self.L * self.v), self.W // self.L
        self.C = [[0] * n for _ in matrix]
        self.masked = self.tail = self.slots = self.active = 0
        self._store()
        lengths = [len(row) for row in self.rows]
        order = in_order(lengths, o["order"])
        self.order = order if o["order"] == "sorted" else None
        size = self.g * (1 if o["share"] else o["warps"])
        tiles = -(-n // self.t)
        several = min(o["blocks"], max(1, tiles * len(bundles_of(order, size)))) if o["blocks"] else 0
        to, places = ("snake", several) if several else (o["dispatch"], device["sms"])
        blocks = grid_of([lengths] * tiles, bundles_of(order, size), to, places)
        self.placing = None if o["dispatch"] == "demand" else [sm for _, _, sm in blocks]
        self.position = {row: at for at, row in enumerate(order)}
        self.blocks = [self._block(tile, rows) for tile, rows, _ in blocks]
        if several:
            own = [[i for i, (_, _, place) in enumerate(blocks) if place == x] for x in range(several)]
            self.blocks = [[self._behind([self.blocks[i][0] for i in some])] for some in own]
        self.zeros = [] if o["format"] == "csr" else [[self._zero(r)] for r in range(len(matrix)) if not matrix[r]]

    @staticmethod
    def _behind(streams: list[list[Any]]) -> list[Any]:
        """Streams one behind the other; an instruction waits for those of its own."""
        whole: list[Any] = []
        for stream in streams:
            at = len(whole)
            whole += [[*each[:2], [at + wait for wait in each[2]], *each[3:]] for each in stream]
        return whole

    def _store(self) -> None:
        """What lies in cols and values, and of each row: start, masked, end."""
        o, self.cols, self.values, self.at = self.o, [], [], []
        for row in self.rows:
            offset, n = len(self.cols), len(row)
            self.cols += [c for c, _ in row]
            self.values += [x for _, x in row]
            m = offset % self.v if o["align"] == "reverse" and n else 0
            if o["align"] == "pad":
                fill = -n % self.v
                self.cols += [0] * fill
                self.values += [0] * fill
                n += fill
            self.at.append((offset - m, m, m + n))
        self.va = 1 if o["align"] == "none" else self.v

    def _zero(self, row: int) -> list[list[Any]]:
        warp, v = Warp(self.W), 4 if self.N % 4 == 0 else 2 if self.N % 2 == 0 else 1
        a = warp.put("alu", 4)
        for first in range(0, self.N, self.W * v):
            lanes = [first + lane * v for lane in range(self.W)]
            warp.memory("stg", "C", [row * self.N + c if c < self.N else None for c in lanes], [a], v)
        return warp.stream

    def _block(self, tile: int, rows: list[int]) -> list[list[list[Any]]]:
        if self.o["align"] == "reverse":
            self.masked += sum(self.at[row][1] for row in rows)
        return [self._warp(tile, rows, j) for j in range(self.o["warps"])]

    def _warp(self, tile: int, rows: list[int], j: int) -> list[list[Any]]:
        o, warp = self.o, Warp(self.W)
        own = rows if o["share"] else rows[j * self.g : (j + 1) * self.g]
        base = 0 if o["share"] else 8 * self.g * o["k_tile"] * j
        n0 = tile * self.t + (j * self.tw if o["share"] else 0)
        stores = self._fetch(warp, tile, j) if o["fetch"] == "all" else []
        if not own:
            if o["fetch"] == "all":
                warp.put("bar", 1, stores)
            return warp.stream
        warp.put("alu", 4)
        if o["fetch"] == "all":
            warp.put("bar", 1, stores)
        p0, p1, rn = pointers(
            warp, o | {"bar": o["fetch"] == "all"}, own, self.position[own[0]], (self.L, self.g), o["format"] == "dcsr"
        )
        a1 = warp.put("alu", 3, [p0, p1])
        kt, sums = o["k_tile"], {}
        last: int | None = None
        strips = max(-(-self.at[row][2] // kt) for row in own)
        for i in range(strips):
            last = self._strip(warp, own, i, i + 1 < strips, (tile, j, n0, base, a1), last, sums)
        for q in range(self.reps):
            lanes = []
            for lane in range(self.W):
                s, c = lane // self.L, n0 + (q * self.L + lane % self.L) * self.v
                lanes.append(self.names[own[s]] * self.N + c if s < len(own) and c < self.N else None)
            warp.memory("stg", "C", lanes, [a1 if last is None else last, rn], self.v)
        for (row, c), value in sums.items():
            self.C[self.names[row]][c] = value
        return warp.stream

    def _shared(self, k: int, c: int, tile: int) -> int:
        rows = 8 * self.g * self.o["k_tile"] * (1 if self.o["share"] else self.o["warps"])
        return rows + 4 * (k * self.t + c - tile * self.t)

    def _fetch(self, warp: Warp, tile: int, j: int) -> list[int | None]:
        x = warp.put("alu", 4)
        columns = range(tile * self.t, min(self.N, (tile + 1) * self.t), self.v)
        vectors = [(k, c) for k in range(self.K) for c in columns]
        chunks = [vectors[at : at + self.W] for at in range(0, len(vectors), self.W)]
        mine = [chunk for number, chunk in enumerate(chunks) if number % self.o["warps"] == j]
        stores: list[int | None] = []
        for start in range(0, len(mine), 4):
            group = mine[start : start + 4]
            off = [[None] * (self.W - len(chunk)) for chunk in group]
            loads = [
                warp.memory("ldg", "B", [k * self.N + c for k, c in chunk] + rest, [x], self.v)
                for chunk, rest in zip(group, off, strict=True)
            ]
            for chunk, rest, load in zip(group, off, loads, strict=True):
                stores.append(warp.shared("sts", [self._shared(k, c, tile) for k, c in chunk] + rest, [load], self.v))
        return stores

    def _strip(
        self, warp: Warp, own: list[int], i: int, more: bool, place: tuple[int, int, int, int, int],
        last: int | None, sums: dict[tuple[int, int], int],
    ) -> int | None:  # fmt: skip
        o, kt, va, L = self.o, self.o["k_tile"], self.va, self.L
        tile, j, n0, base, a1 = place
        loads = []
        for q in range(-(-kt // (L * va))):
            if o["share"] and q % o["warps"] != j:
                continue
            elements, addresses = [], []
            for lane in range(self.W):
                s, p = lane // L, i * kt + (q * L + lane % L) * va
                on = s < len(own) and p < min((i + 1) * kt, self.at[own[s]][2])
                elements.append(self.at[own[s]][0] + p if on else None)
                addresses.append(base + 4 * (s * kt + p - i * kt) if on else None)
                if on and o["align"] == "reverse":
                    self.tail += max(0, p + va - self.at[own[s]][2])
            cols = warp.memory("ldg", "cols", elements, [a1], va)
            if cols is not None:
                loads.append((addresses, [cols, warp.memory("ldg", "values", elements, [a1], va)]))
        stores: list[int | None] = []
        for addresses, needed in loads:
            if i == 0 and o["align"] == "reverse" and self.v > 1:
                needed = [warp.put("alu", 2, needed)]
            stores.append(warp.shared("sts", addresses, needed, va))
            shifted = [None if each is None else each + 4 * self.g * kt for each in addresses]
            stores.append(warp.shared("sts", shifted, needed, va))
        if o["share"]:
            warp.put("bar", 1, stores)
            stores = []
        count = max(min((i + 1) * kt, self.at[row][2]) for row in own) - i * kt
        shared_loads = []
        for n in range(0, count, 4):
            u = min(4, count - n)
            at = spread([base + 4 * (s * kt + n) for s in range(len(own))], L, self.g)
            lv = warp.shared("lds", at, stores, 4)
            lc = warp.shared("lds", [None if each is None else each + 4 * self.g * kt for each in at], stores, 4)
            shared_loads += [lv, lc]
            ad = warp.put("alu", u, [lc])
            brought = [
                [self._operand(warp, own, i * kt + n + d, q, (tile, n0), ad, sums) for q in range(self.reps)]
                for d in range(u)
            ]
            for each in brought:
                self.slots += self.W * self.reps
                single = self.v * self.reps == 1
                last = warp.put("fma", self.v * self.reps, [*each, lv, last if single else None])
            warp.put("alu", 1)
        if o["share"] and more:
            warp.put("bar", 1, shared_loads)
        return last

    def _operand(
        self, warp: Warp, own: list[int], p: int, q: int, place: tuple[int, int], ad: int,
        sums: dict[tuple[int, int], int],
    ) -> int | None:  # fmt: skip
        tile, n0 = place
        lanes: list[int | None] = []
        for lane in range(self.W):
            s, c = lane // self.L, n0 + (q * self.L + lane % self.L) * self.v
            if s >= len(own) or p >= self.at[own[s]][2] or c >= self.N:
                lanes.append(None)
                continue
            start, m, _ = self.at[own[s]]
            useful = m <= p < m + len(self.rows[own[s]])
            k = self.cols[start + p] if useful else 0
            lanes.append(self._shared(k, c, tile) if self.o["fetch"] == "all" else k * self.N + c)
            if useful:
                self.active += 1
                for x in range(c, c + self.v):
                    sums[own[s], x] = sums.get((own[s], x), 0) + self.values[start + p] * self.B[k][x]
        if self.o["fetch"] == "needed":
            return warp.memory("ldg", "B", lanes, [ad], self.v)
        return warp.shared("lds", lanes, [ad], self.v) if any(each is not None for each in lanes) else None
