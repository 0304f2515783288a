"""Sections 2 and 3 of docs/multicore.md once more, from the text alone: the planner and its second stage.

A machine is anything with the fields of section 1. A cut is a tuple (kind, p_m, p_n, p_k, mb, nb, kb), sub-blocks are a
tuple (sm, sn, S_m, S_n), so that golden cases can be compared as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Cut = tuple[str, int, int, int, int, int, int]
Sub = tuple[int, int, int, int]

SubRank = tuple[Sub, dict[str, float], dict[str, float], float]

NAMES = ("k_fit", "mn_fit", "padding", "balance", "contention", "traffic")
FITS = ("k_fit", "mn_fit", "count")
WEIGHTS = (2, 1, 8, 2, 2, 8)


def up(a: int, b: int) -> int:
    return (a + b - 1) // b


def rows(m: Any, n: int) -> int:
    return n if m.exact_rows else up(n, m.mr) * m.mr


def cache_bytes(m: Any) -> tuple[int, int, int]:
    return m.l1_sets * m.l1_ways * m.line, m.l2_sets * m.l2_ways * m.line, m.llc_sets * m.llc_ways * m.line


def blocks(m: Any) -> tuple[int, int, int]:
    """mc, nc, kc (2.1)."""
    l1, l2, llc = (size * m.fill[0] // m.fill[1] for size in cache_bytes(m))
    s = m.element_bytes
    kc = max(m.k_unit, l1 // ((m.mr + m.nr) * s) // m.k_unit * m.k_unit)
    mc = max(m.mr, l2 // (kc * s) // m.mr * m.mr)
    nc = max(m.nr, llc // m.cores_per_llc // (kc * s) // m.nr * m.nr)
    return mc, nc, kc


def mn_cut(mnk: tuple[int, int, int], t1: int, t2: int) -> Cut:
    return ("MN", t1, t2, 1, up(mnk[0], t1), up(mnk[1], t2), mnk[2])


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def mn_cuts(mnk: tuple[int, int, int], threads: int) -> list[Cut]:
    """Every pair of 2.9, that of BLIS's rule first."""
    pairs = [(t1, threads // t1) for t1 in divisors(threads)]
    first = min(pairs, key=lambda pair: (abs(pair[0] * mnk[1] - pair[1] * mnk[0]), pair[0]))
    return [mn_cut(mnk, *pair) for pair in [first, *(pair for pair in pairs if pair != first)]]


def candidates(m: Any, mnk: tuple[int, int, int], threads: int) -> tuple[list[Cut], list[Cut]]:
    """Those that are kept, and those that are dropped (2.2)."""
    big_m, big_n, big_k = mnk
    kept, idle = [mn_cuts(mnk, threads)[0]], []
    for kind in ("MK", "NK"):
        for pk in divisors(threads)[1:]:
            pm, pn = (threads // pk, 1) if kind == "MK" else (1, threads // pk)
            if kind == "NK" and pn == 1:
                continue
            mb, nb = up(big_m, pm), up(big_n, pn)
            kb = up(up(big_k, pk), m.k_unit) * m.k_unit
            cut = (kind, pm, pn, pk, mb, nb, min(kb, big_k))
            dropped = up(big_k, kb) < pk or up(big_m, mb) < pm or up(big_n, nb) < pn
            (idle if dropped else kept).append(cut)
    return kept, idle


def owned(cut: Cut, mnk: tuple[int, int, int], thread: int) -> tuple[tuple[int, int], ...]:
    """Rows, columns and K range of a thread (2.3), as (first, end)."""
    _, _, pn, pk, *sizes = cut
    place = (thread // pk // pn, thread // pk % pn, thread % pk)
    return tuple(
        (min(i * size, whole), min(i * size + size, whole)) for i, size, whole in zip(place, sizes, mnk, strict=True)
    )


def raw_conditions(m: Any, mnk: tuple[int, int, int], cut: Cut) -> dict[str, float]:
    """2.4."""
    big_m, big_n, big_k = mnk
    kind, pm, pn, pk, mb, nb, kb = cut
    mc, nc, kc = blocks(m)

    def q(a: int, b: int) -> float:
        return rows(m, a) * up(b, m.nr) * m.nr / (a * b)

    fit_m, fit_n = min(mb, mc) / mc, min(nb, nc) / nc
    work = []
    for thread in range(pm * pn * pk):
        (m0, m1), (n0, n1), (k0, k1) = owned(cut, mnk, thread)
        work.append(rows(m, m1 - m0) * up(n1 - n0, m.nr) * m.nr * (k1 - k0))
    return {
        "k_fit": min(kb, kc) / kc,
        "mn_fit": {"MK": fit_m, "NK": fit_n, "MN": (fit_m * fit_n) ** 0.5}[kind],
        "padding": q(mb, nb) / q(big_m, big_n),
        "balance": max(work) * len(work) / sum(work),
        "contention": float(pk),
        "traffic": float(big_m * big_k * up(big_n, nb) + big_k * big_n * up(big_m, mb) + 2 * big_m * big_n * pk),
    }


def normalised(all_raw: list[dict[str, float]]) -> list[dict[str, float]]:
    """2.5."""
    best = {
        name: (max if name in FITS else min)(each[name] for each in all_raw) for name in (all_raw[0] if all_raw else ())
    }
    return [
        {name: value / best[name] if name in FITS else best[name] / value for name, value in raw.items()}
        for raw in all_raw
    ]


@dataclass
class Plan:
    blocks: tuple[int, int, int]
    #: cut, raw, normalised, fitness, why not
    ranked: list[tuple[Cut, dict[str, float], dict[str, float], float, list[str]]]
    chosen: int
    idle: list[Cut]
    sub: Sub | None
    #: sub-blocks, raw, normalised, fitness
    sub_ranked: list[SubRank]
    buffer: bool

    @property
    def cut(self) -> Cut:
        return self.ranked[self.chosen][0]


def plan(m: Any, mnk: tuple[int, int, int], threads: int, weights: tuple[float, ...] = WEIGHTS) -> Plan:
    kept, idle = candidates(m, mnk, threads)
    all_raw = [raw_conditions(m, mnk, cut) for cut in kept]
    ranked = []
    for cut, raw, good in zip(kept, all_raw, normalised(all_raw), strict=True):
        total = 0.0
        for name, weight in zip(NAMES, weights, strict=True):
            total += weight * good[name]
        ranked.append((cut, raw, good, round(total / sum(weights), 9), why_not(m, cut, raw)))
    ranked.sort(key=lambda each: (-each[3], each[0][3]))
    chosen = next(i for i, each in enumerate(ranked) if not each[4])
    return Plan(blocks(m), ranked, chosen, idle, *second_stage(m, ranked[chosen][0]))


def why_not(m: Any, cut: Cut, raw: dict[str, float]) -> list[str]:
    """2.8."""
    kind, _, _, pk, _, _, kb = cut
    if kind == "MN":
        return []
    sub, _, buffer = second_stage(m, cut)
    failed = {
        "kb < kc/4": 4 * kb < blocks(m)[2],
        "padding > 1.5": raw["padding"] > 1.5,
        "p_k > 16": pk > 16,
        "no relief": sub is None and not buffer,
    }
    return [name for name, fails in failed.items() if fails]


def second_stage(m: Any, cut: Cut) -> tuple[Sub | None, list[SubRank], bool]:
    """Section 3: the sub-blocks, all that were considered, the buffer."""
    _, _, _, pk, mb, nb, kb = cut
    if pk == 1:
        return None, [], False
    unit = max(m.nr, m.line // m.element_bytes)
    subs: dict[Sub, None] = {}
    for a in range(1, min(2 * pk, up(mb, m.mr)) + 1):
        for b in range(1, min(2 * pk, up(nb, unit)) + 1):
            sm, sn = up(up(mb, a), m.mr) * m.mr, up(up(nb, b), unit) * unit
            sub = (sm, sn, up(mb, sm), up(nb, sn))
            if sub[2] * sub[3] >= pk:
                subs[sub] = None
    all_raw = [
        {
            "count": pk / (s_m * s_n),
            "padding": sm * sn * (s_m * s_n) / (mb * nb),
            "repack": float(mb * kb * s_n + kb * nb * s_m),
        }
        for sm, sn, s_m, s_n in subs
    ]
    ranked = [
        (sub, raw, good, round((good["count"] + good["padding"] + good["repack"]) / 3, 9))
        for sub, raw, good in zip(subs, all_raw, normalised(all_raw), strict=True)
    ]
    ranked.sort(key=lambda each: (-each[3], each[0][2] * each[0][3], each[0][2]))
    return ranked[0][0] if ranked else None, ranked, buffer_advised(m, cut)


def buffer_advised(m: Any, cut: Cut) -> bool:
    """3.2."""
    _, _, _, _, mb, nb, kb = cut
    mc, nc, kc = blocks(m)
    fits = mb * nb * m.element_bytes <= cache_bytes(m)[1] * m.buffer_fill[0] // m.buffer_fill[1]
    return fits and (kb > kc or 2 * mb < mc or 2 * nb < nc)


def relieved(m: Any, cut: Cut, relief: str) -> tuple[Sub | None, bool]:
    """3.3: sub-blocks and buffer of a cut under one of the reliefs."""
    sub, _, buffer = second_stage(m, cut)
    if relief == "plan":
        return sub, buffer
    return sub if relief in ("sub", "both") else None, relief in ("buffer", "both")
