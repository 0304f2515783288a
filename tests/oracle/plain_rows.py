"""SpMV and SDDMM warp by warp and lane by lane (docs/sparse_kernels.md, sections 4 and 6)."""

from __future__ import annotations

from typing import Any

from tests.oracle.plain_warps import Row, Warp, bundles_of, grid_of, in_order, pointers

Numbers = list[list[int]]


def halves(lanes: int) -> list[int]:
    """The distances of a tree over so many lanes."""
    return [1 << i for i in range(10) if 1 << i < lanes][::-1]


class PlainSpmv:
    """y = A x."""

    def __init__(self, matrix: list[Row], x: list[int], o: dict[str, Any], device: dict[str, int]) -> None:
        self.o, self.W, self.x, self.matrix = o, device["warp"], x, matrix
        nnz, self.v = sum(map(len, matrix)), o["v"]
        fitting = [1 << i for i in range(7) if 1 << i <= self.W and (1 << i) * self.v * len(matrix) <= nnz]
        self.L = o["lanes"] or max([1, *fitting])
        self.g = self.W // self.L
        order = in_order([len(row) for row in matrix], o["order"])
        self.order = order if o["order"] == "sorted" else None
        self.position = {row: at for at, row in enumerate(order)}
        self.cols = [c for row in matrix for c, _ in row]
        self.values = [x for row in matrix for _, x in row]
        self.y = [0] * len(matrix)
        self.slots = self.masked = 0
        self.at, offset = [], 0
        for row in matrix:
            m = offset % self.v if o["align"] == "reverse" and row else 0
            self.at.append((offset - m, m, m + len(row)))
            self.masked += m
            offset += len(row)
        lists = bundles_of(order, self.g * o["warps"])
        blocks = grid_of([[len(row) for row in matrix]], lists, o["dispatch"], device["sms"])
        self.placing = None if o["dispatch"] == "demand" else [sm for _, _, sm in blocks]
        self.blocks = [
            [self._warp(rows[j * self.g : (j + 1) * self.g]) for j in range(o["warps"])] for _, rows, _ in blocks
        ]

    def _warp(self, own: list[int]) -> list[list[Any]]:
        warp, L, v = Warp(self.W), self.L, self.v
        if not own:
            return []
        warp.put("alu", 4)
        p0, p1, _ = pointers(warp, self.o, own, self.position[own[0]], (L, self.g))
        last = a1 = warp.put("alu", 3, [p0, p1])
        sums = [[0] * L for _ in own]
        before: int | None = None
        for i in range(max(-(-self.at[row][2] // (L * v)) for row in own)):
            before = self._strip(warp, own, i, a1, before, sums)
        last = a1 if before is None else before
        for _ in halves(L):
            last = warp.put("fma", 1, [warp.put("shfl", 1, [last])])
        lanes = [own[lane // L] if lane % L == 0 and lane // L < len(own) else None for lane in range(self.W)]
        warp.memory("stg", "y", lanes, [last])
        for row, lane_sums in zip(own, sums, strict=True):
            for h in halves(L):
                lane_sums = [lane_sums[lane] + lane_sums[lane + h] for lane in range(h)]
            self.y[row] = lane_sums[0]
        return warp.stream

    def _elements(self, own: list[int], i: int, d: int) -> list[tuple[int, int, int] | None]:
        """Of each lane: its row's place in the warp, the element of the row, and where that is stored."""
        made: list[tuple[int, int, int] | None] = []
        for lane in range(self.W):
            s, p = lane // self.L, (i * self.L + lane % self.L) * self.v + d
            made.append((s, p, self.at[own[s]][0] + p) if s < len(own) and p < self.at[own[s]][2] else None)
        return made

    def _strip(self, warp: Warp, own: list[int], i: int, a1: int, before: int | None, sums: Numbers) -> int | None:
        o, v = self.o, self.v
        va = 1 if o["align"] == "none" else v
        need: list[int | None] = []
        for q in range(v // va):
            where = [None if each is None else each[2] for each in self._elements(own, i, q)]
            for array in ("cols", "values"):
                need.append(warp.memory("ldg", array, where, [a1], va))
        if i == 0 and o["align"] == "reverse" and v > 1:
            need = [warp.put("alu", 2, need)]
        ad = warp.put("alu", v, need)
        issued = []
        for d in range(v):
            lanes: list[int | None] = []
            for lane, each in enumerate(self._elements(own, i, d)):
                if each is None:
                    lanes.append(None)
                    continue
                s, p, at = each
                useful = p >= self.at[own[s]][1]
                lanes.append(self.cols[at] if useful else 0)
                if useful:
                    sums[s][lane % self.L] += self.values[at] * self.x[self.cols[at]]
            issued.append(warp.memory("ldg", "x", lanes, [ad]))
        for load in issued:
            if load is not None:
                before = warp.put("fma", 1, [load, *need, before])
                self.slots += self.W
        return before


class PlainSddmm:
    """D = (A B) o C; `right` is B transposed."""

    def __init__(
        self, matrix: list[Row], left: Numbers, right: Numbers, k: int, o: dict[str, Any], device: dict[str, int]
    ) -> None:
        self.o, self.W, self.A, self.Bt, self.K, self.matrix = o, device["warp"], left, right, k, matrix
        self.v = o["v"] or (4 if k % 4 == 0 else 2 if k % 2 == 0 else 1)
        self.L = o["lanes"] or max([1, *(1 << i for i in range(7) if 1 << i <= self.W and (1 << i) * self.v <= k)])
        self.g, self.t = self.W // self.L, o["tile"]
        self.offset = [sum(map(len, matrix[:r])) for r in range(len(matrix))]
        self.D = [0] * sum(map(len, matrix))
        self.slots = self.idle = 0
        order = in_order([len(row) for row in matrix], o["order"])
        self.order = order if o["order"] == "sorted" else None
        self.position = {row: at for at, row in enumerate(order)}
        loads = [
            [min(self.t, max(0, len(row) - n * self.t)) for row in matrix] for n in range(-(-len(right) // self.t))
        ]
        blocks = grid_of(loads, bundles_of(order, self.g * o["warps"]), o["dispatch"], device["sms"])
        self.placing = None if o["dispatch"] == "demand" else [sm for _, _, sm in blocks]
        self.blocks = []
        for n, rows, _ in blocks:
            self.idle += not any(loads[n][row] for row in rows)
            own = [rows[j * self.g : (j + 1) * self.g] for j in range(o["warps"])]
            self.blocks.append([self._warp(n, each, [loads[n][row] for row in each]) for each in own])

    def _lanes(self, own: list[int], of: Any) -> list[int | None]:
        """An element for each lane, by the place of its row and its own place in the subwarp; None is off."""
        made = []
        for lane in range(self.W):
            s = lane // self.L
            made.append(of(s, lane % self.L) if s < len(own) else None)
        return made

    def _warp(self, n: int, own: list[int], cnt: list[int]) -> list[list[Any]]:
        warp, L, o = Warp(self.W), self.L, self.o
        if not own:
            return []
        warp.put("alu", 4)
        p0, p1, _ = pointers(warp, o, own, self.position[own[0]], (L, self.g))
        top = max(cnt)
        if not top:
            warp.put("alu", 1, [p0, p1])
            return warp.stream
        a1 = warp.put("alu", 3, [p0, p1])
        first = [self.offset[row] + n * self.t for row in own]

        def entries(q: int) -> list[int | None]:
            return self._lanes(own, lambda s, lane: first[s] + q * L + lane if q * L + lane < cnt[s] else None)

        lc = [warp.memory("ldg", "cols", entries(q), [a1]) for q in range(-(-top // L))]
        ad = [warp.put("alu", 1, [warp.put("shfl", 1, [lc[d // L]])]) for d in range(top)]
        last: list[int | None] = [None] * top
        for i in range(-(-self.K // (L * self.v))):
            self._strip(warp, n, own, cnt, i, (a1, ad), last)
        for _ in halves(L):
            moved = [warp.put("shfl", 1, [last[d]]) for d in range(top)]
            last = [warp.put("fma", 1, [each]) for each in moved]
        picked = warp.put("alu", top, [last[top - 1]])
        for q in range(-(-top // L)):
            value: int | None = picked
            if o["mode"] == "values":
                value = warp.put("fma", 1, [warp.memory("ldg", "values", entries(q), [a1]), picked])
            warp.memory("stg", "D", entries(q), [value])
        for s, row in enumerate(own):
            for d in range(cnt[s]):
                c, x = self.matrix[row][n * self.t + d]
                product = sum(a * b for a, b in zip(self.A[row], self.Bt[c], strict=True))
                self.D[first[s] + d] = product * x if o["mode"] == "values" else product
        return warp.stream

    def _strip(
        self, warp: Warp, n: int, own: list[int], cnt: list[int], i: int, known: tuple[int, list[int]],
        last: list[int | None],
    ) -> None:  # fmt: skip
        (a1, ad), v = known, self.v

        def vector(row: int, lane: int) -> int | None:
            k = (i * self.L + lane) * v
            return row * self.K + k if k < self.K else None

        la = warp.memory("ldg", "A", self._lanes(own, lambda s, lane: vector(own[s], lane)), [a1], v)
        for d0 in range(0, len(ad), 4):
            u = min(4, len(ad) - d0)
            loads = []
            for d in range(d0, d0 + u):
                column = [self.matrix[row][n * self.t + d][0] if d < cnt[s] else -1 for s, row in enumerate(own)]
                lanes = self._lanes(
                    own, lambda s, lane, column=column: None if column[s] < 0 else vector(column[s], lane)
                )
                loads.append(warp.memory("ldg", "Bt", lanes, [ad[d]], v))
            fma = warp.put("fma", u, [la, *loads])
            for _ in range(v - 1):
                fma = warp.put("fma", u, [fma if u == 1 else None])
            self.slots += self.W * u * v
            last[d0 : d0 + u] = [fma] * u
