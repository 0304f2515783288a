"""The planner: candidates, their rank, and the first of them that is accepted (section 2 of docs/multicore.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lstmsim.machines.gemm import Candidate, Cut, GemmPlan, Product
from lstmsim.machines.multicore.machine import Machine
from lstmsim.machines.multicore.planning.blocks import blocks_of
from lstmsim.machines.multicore.planning.conditions import conditions_of
from lstmsim.machines.multicore.planning.cuts import blis_cut, is_idle, k_cuts, mn_cuts
from lstmsim.machines.multicore.planning.fitness import fitness_of, normalised
from lstmsim.machines.multicore.planning.second_stage import second_stage
from lstmsim.machines.multicore.planning.settings import Settings

__all__ = ["plan"]

_DEFAULTS = Settings()


def plan(
    machine: Machine,
    product: Product,
    threads: int,
    settings: Settings = _DEFAULTS,
    caches: str = "warm",
    *,
    packed: bool = False,
) -> GemmPlan:
    """A plan for a product, with all that led to it.

    machine: what it is planned for; that it has as many cores as `threads` is the caller's affair.
    threads: how many, each on a core of its own.
    settings: of the planner.
    caches: what lies in them when the product begins, one of `lstmsim.machines.gemm.CACHES`.
    packed: whether B was packed before.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> from lstmsim.machines.multicore.planning.settings import DOCUMENTED
    >>> of = plan(TOY, Product(4, 8, 64), 2, DOCUMENTED)
    >>> [(each.cut.kind, each.fitness) for each in of.ranked], of.chosen
    ([('MK', 0.956521739), ('MN', 0.910512552)], 0)
    >>> [(each.cut.kind, each.cut.p_m, each.cut.p_n, each.fitness) for each in plan(TOY, Product(4, 8, 64), 2).ranked]
    [('MN', 1, 2, 0.983266575), ('MK', 1, 1, 0.96243976), ('MN', 2, 1, 0.916260058)]
    """
    kept, idle = _kept(machine, product, threads, settings)
    ranked = _ranked(kept, [conditions_of(machine, product, cut, caches, packed) for cut in kept], machine, settings)
    # a cut of rows and columns is always accepted, and one is always there
    chosen = next(place for place, each in enumerate(ranked) if not each.why_not)
    stage = second_stage(machine, ranked[chosen].cut)
    return GemmPlan(
        product=product,
        blocks=blocks_of(machine)._asdict(),
        ranked=ranked,
        chosen=chosen,
        idle=idle,
        sub_blocks=stage.sub_blocks,
        sub_ranked=stage.ranked,
        buffer=stage.buffer,
        packed=packed,
    )


def _kept(
    machine: Machine, product: Product, threads: int, settings: Settings
) -> tuple[tuple[Cut, ...], tuple[Cut, ...]]:
    """The candidates in the order in which they are listed, and those that leave a thread without work."""
    pairs = mn_cuts(product, threads) if settings.mn == "all" else (blis_cut(product, threads),)
    parts = [(cut, is_idle(machine, product, cut)) for cut in k_cuts(machine, product, threads)]
    return (*pairs, *(cut for cut, idle in parts if not idle)), tuple(cut for cut, idle in parts if idle)


def _ranked(
    cuts: Sequence[Cut], raw: Sequence[Mapping[str, float]], machine: Machine, settings: Settings
) -> tuple[Candidate, ...]:
    """The candidates with their conditions, the best first."""
    weights = settings.weights
    rows = []
    for cut, own, of in zip(cuts, raw, normalised(raw), strict=True):
        fitness = fitness_of([of[name] for name in weights], weights.values())
        rows.append(Candidate(cut, own, of, fitness, tuple(_why_not(machine, cut, own, settings))))
    return tuple(sorted(rows, key=lambda row: (-row.fitness, row.cut.p_k)))


def _why_not(machine: Machine, cut: Cut, raw: Mapping[str, float], settings: Settings) -> Iterator[str]:
    """The conditions of acceptance that a cut fails."""
    if cut.kind == "MN":
        return
    kc = blocks_of(machine).kc
    if cut.kb < settings.least_kb * kc:
        yield f"kb < {_part(settings.least_kb, 'kc')}"
    if raw["padding"] > settings.most_padding:
        yield f"padding > {settings.most_padding:g}"
    if cut.p_k > settings.most_p_k:
        yield f"p_k > {settings.most_p_k}"
    if not second_stage(machine, cut).relieves:
        yield "no relief"


def _part(part: float, whole: str) -> str:
    """A part of a number in words: `kc/4`, `0.3 kc`."""
    inverse = 1 / part
    return f"{part:g} {whole}" if inverse != int(inverse) else f"{whole}/{int(inverse)}"
