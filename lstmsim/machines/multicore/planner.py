"""The planner: candidates, conditions, their rank, and the first that is accepted (section 2 of docs/multicore.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import sqrt
from typing import Annotated, Any

from lstmsim.base.checks import Notes, checker_of
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import hashed_once, record
from lstmsim.base.wording import listed
from lstmsim.machines.gemm import CONDITIONS, Candidate, Cut, GemmPlan, Product
from lstmsim.machines.multicore import cuts
from lstmsim.machines.multicore.chip import MulticoreCpu, blocks_of, up


def conditions_of(
    chip: MulticoreCpu, product: Product, cut: Cut, caches: str, packed: bool = False
) -> Mapping[str, float]:
    """The conditions of a cut by name, as they are."""
    m, n, k = product.m, product.n, product.k
    blocks, core = blocks_of(chip), chip.core
    rows_fit, columns_fit = min(cut.mb, blocks.mc) / blocks.mc, min(cut.nb, blocks.nc) / blocks.nc

    def in_tiles(rows: int, columns: int) -> int:
        return core.rows(rows) * up(columns, core.nr) * core.nr

    # the work of a thread is a product of three factors, and the first thread has the most of each
    rows = [core.rows(each) for each in _parts(m, cut.p_m, cut.mb)]
    columns = [up(each, core.nr) * core.nr for each in _parts(n, cut.p_n, cut.nb)]
    ks = _parts(k, cut.p_k, cut.kb)
    traffic = m * k * up(n, cut.nb) + k * n * up(m, cut.mb) + 2 * m * n * cut.p_k
    return {
        "k_fit": min(cut.kb, blocks.kc) / blocks.kc,
        "mn_fit": {"MK": rows_fit, "NK": columns_fit}.get(cut.kind, sqrt(rows_fit * columns_fit)),
        "padding": in_tiles(cut.mb, cut.nb) / (cut.mb * cut.nb) / (in_tiles(m, n) / (m * n)),
        "balance": rows[0] * columns[0] * ks[0] * cut.threads / (sum(rows) * sum(columns) * sum(ks)),
        "contention": float(cut.p_k),
        "traffic": float(traffic),
        "cycles": cuts.estimated_cycles(chip, product, cut, caches, packed),
    }


def _parts(whole: int, parts: int, size: int) -> list[int]:
    return [min(size, max(0, whole - part * size)) for part in range(parts)]


#: Which cuts of rows and columns alone are candidates: the one of BLIS's rule, or all.
MN = ("blis", "all")

_MOST = 1e6
_weight = partial(Key, low=0, high=_MOST)


@hashed_once
@record
class Settings:
    """Parameters of the planner: the weight of each condition in the fitness, and what a cut must have to be accepted.

    >>> Settings().weights["padding"], Settings(padding=1).weights["padding"]
    (8.0, 1)
    """

    k_fit: Annotated[float, _weight("weight of k_fit")] = 2.0
    mn_fit: Annotated[float, _weight("weight of mn_fit")] = 1.0
    padding: Annotated[float, _weight("weight of padding")] = 8.0
    balance: Annotated[float, _weight("weight of balance")] = 2.0
    contention: Annotated[float, _weight("weight of contention")] = 2.0
    traffic: Annotated[float, _weight("weight of traffic")] = 8.0
    cycles: Annotated[float, _weight("weight of cycles")] = 100.0
    least_kb: Annotated[float, Key("least part of kc that a part of K must have", low=0, high=1)] = 0.25
    most_padding: Annotated[float, Key("most padding against the uncut product", above=0, high=_MOST)] = 1.5
    most_p_k: Annotated[int, Key("most threads that add into the same block of C", low=1, high=10**6)] = 16
    mn: Annotated[str, Key("which cuts of rows and columns alone are candidates", choices=MN)] = "all"

    @property
    def weights(self) -> Mapping[str, float]:
        """The weights by condition, in the order of `CONDITIONS`."""
        return {name: getattr(self, name) for name in CONDITIONS}


#: The parameters of section 2 of docs/multicore.md. Recurrent jobs are planned with them.
DOCUMENTED = Settings(cycles=0.0, mn="blis")


def settings_of(given: Mapping[str, Any]) -> Settings:
    """The parameters that a user gives, the others with their defaults.

    InputError with every name that there is not (and the nearest that there is) and every value that cannot be.
    """
    data = {str(name): value for name, value in given.items()}
    notes: Notes = []
    made: Settings | None = checker_of(Settings)(data, (), notes)
    mistakes = [Mistake(str(note.path[0]), note.message(data[str(note.path[0])])) for note in notes]
    if made is not None and not any(made.weights.values()):
        mistakes.append(Mistake(listed(CONDITIONS, "and"), "one of these weights must be above 0, all are 0"))
    if mistakes or made is None:
        raise InputError(mistakes)
    return made


def plan(
    chip: MulticoreCpu,
    product: Product,
    threads: int,
    settings: Settings | None = None,
    caches: str = "warm",
    *,
    packed: bool = False,
) -> GemmPlan:
    """A plan for a product, with all that led to it.

    chip, threads: what it is planned for; that it has as many cores is the caller's affair.
    settings: of the planner; None: the defaults.
    caches: what lies in them when the product begins, one of `lstmsim.machines.gemm.CACHES`.
    packed: whether B was packed before.
    """
    settings = settings or Settings()
    pairs = cuts.mn_cuts(product, threads) if settings.mn == "all" else (cuts.blis_cut(product, threads),)
    parts = {cut: cuts.is_idle(chip, product, cut) for cut in cuts.k_cuts(chip, product, threads)}
    kept = (*pairs, *(cut for cut, idle in parts.items() if not idle))
    raw = [conditions_of(chip, product, cut, caches, packed) for cut in kept]
    weights, rows = settings.weights, []
    for cut, own, of in zip(kept, raw, cuts.normalised(raw), strict=True):
        fitness = cuts.fitness_of([of[name] for name in weights], weights.values())
        rows.append(Candidate(cut, own, of, fitness, tuple(_why_not(chip, cut, own, settings))))
    ranked = tuple(sorted(rows, key=lambda row: (-row.fitness, row.cut.p_k)))
    # a cut of rows and columns is always accepted, and one is always there
    chosen = next(rank for rank, each in enumerate(ranked) if not each.why_not)
    stage = cuts.second_stage(chip, ranked[chosen].cut)
    return GemmPlan(
        product=product,
        blocks=blocks_of(chip)._asdict(),
        ranked=ranked,
        chosen=chosen,
        idle=tuple(cut for cut, idle in parts.items() if idle),
        sub_blocks=stage.sub_blocks,
        sub_ranked=stage.ranked,
        buffer=stage.buffer,
        packed=packed,
    )


def _why_not(chip: MulticoreCpu, cut: Cut, raw: Mapping[str, float], settings: Settings) -> Iterator[str]:
    """The conditions of acceptance that a cut fails."""
    if cut.kind == "MN":
        return
    kc = blocks_of(chip).kc
    if cut.kb < settings.least_kb * kc:
        inverse = 1 / settings.least_kb
        part = f"kc/{int(inverse)}" if inverse == int(inverse) else f"{settings.least_kb:g} kc"
        yield f"kb < {part}"
    if raw["padding"] > settings.most_padding:
        yield f"padding > {settings.most_padding:g}"
    if cut.p_k > settings.most_p_k:
        yield f"p_k > {settings.most_p_k}"
    if not cuts.second_stage(chip, cut).relieves:
        yield "no relief"
