"""A matrix product on several numbers of threads in the forms that people and scripts read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstmsim.machines.gemm import CACHES
from lstmsim.report.figures_text import percent
from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.gemm.headline import scaling_headline
from lstmsim.studies.gemm.json import cut_json, division_json
from lstmsim.studies.gemm.run import GemmReport
from lstmsim.studies.gemm.runs import GemmRow
from lstmsim.studies.gemm.scaling import GemmScaling
from lstmsim.studies.gemm.text import product_text
from lstmsim.studies.shared.product_text import folded, wrapped

__all__ = ["FORMS", "SCHEMA"]

SCHEMA = "lstmsim/gemm-threads/1"


def _json(scaling: GemmScaling) -> dict[str, Any]:
    one, product = scaling.one, scaling.one.product
    return {
        "schema": SCHEMA,
        "headline": scaling_headline(scaling),
        "product": {"m": product.m, "n": product.n, "k": product.k, "macs": product.macs, "source": one.source},
        "chip": one.chip.name,
        "cores": len(one.chip.cores),
        "frequency_mhz": one.chip.frequency_mhz,
        "engine": one.engine,
        "caches": scaling.caches,
        "packed": one.task.packed,
        "packing": one.machine.packing(one.chip, one.task),
        "settings": dict(one.settings),
        "one_thread_cycles": {each: scaling.fastest(one, each).cycles(each) for each in CACHES},
        "threads": [
            {
                "threads": each.threads,
                "peak_macs_per_cycle": each.peak,
                **{at: _state(scaling, each, at) for at in CACHES},
            }
            for each in scaling.reports
        ],
        "left_out": list(one.machine.left_out),
        "remarks": list(scaling.remarks),
    }


def _state(scaling: GemmScaling, report: GemmReport, caches: str) -> dict[str, Any]:
    best, beside = scaling.fastest(report, caches), report.beside

    def other(row: GemmRow | None) -> dict[str, Any] | None:
        return None if row is None else {**cut_json(row.cut), "makespan_cycles": row.cycles(caches)}

    return {
        "use": division_json(best.division),
        "makespan_cycles": best.cycles(caches),
        "speed_up": scaling.speed_up(report, caches),
        "utilization": scaling.utilization(report, caches),
        "best_pair": other(beside.best_pair(caches)),
        "plan": other(beside.plans[caches]),
        "regret": beside.regret(caches),
    }


def _text(scaling: GemmScaling) -> str:
    one, caches = scaling.one, scaling.caches
    heads = [
        "threads",
        "use",
        "cycles",
        "speed-up",
        "of peak",
        "best M/N",
        "cycles",
        "plan",
        "cycles",
        "regret",
    ]
    rows = [heads, *(_row(scaling, each) for each in scaling.reports)]
    cycles = f"{scaling.fastest(one, caches).cycles(caches):,} cycles"
    about = wrapped("use", f"the fastest cut of those that were simulated{_left_out(scaling)}")
    about += wrapped("speed-up", f"over one thread, which takes {cycles}; of peak: of the cores of the threads")
    about += wrapped("plan", "what the planner's rule takes, before anything is simulated")
    if any(each.beside.regret(caches) is not None for each in scaling.reports):
        about += wrapped("regret", "how much longer the plan takes than the fastest cut")
    parts = [
        "\n".join(folded(scaling_headline(scaling))),
        product_text(one, cores=False),
        "\n".join([*table(rows, left=(1, 5, 7)), *about]),
    ]
    parts.append("\n".join(wrapped("not modelled", "; ".join(one.machine.left_out))))
    return "\n\n".join([*parts, *("\n".join(folded(each)) for each in scaling.remarks)])


def _left_out(scaling: GemmScaling) -> str:
    """That candidates were not simulated, if some were not."""
    some = [str(each.threads) for each in scaling.reports if each.beside.left_out]
    return f"; some were not on {', '.join(some)} threads, and may be faster (--baselines)" if some else ""


def _row(scaling: GemmScaling, report: GemmReport) -> list[str]:
    caches, beside = scaling.caches, report.beside
    best, regret = scaling.fastest(report, caches), beside.regret(caches)
    cells = [str(report.threads), best.cut.short, f"{best.cycles(caches):,}"]
    cells += [f"{scaling.speed_up(report, caches):.2f}", percent(scaling.utilization(report, caches), 1)]
    for row in (beside.best_pair(caches), beside.plans[caches]):
        cells += ["-", "-"] if row is None else [row.cut.short, f"{row.cycles(caches):,}"]
    return [*cells, "-" if regret is None else f"{100 * regret:.1f} %"]


def _records(scaling: GemmScaling) -> Iterator[dict[str, Any]]:
    """A row for each number of threads."""
    for each in scaling.reports:
        yield {"threads": each.threads, **{caches: _state(scaling, each, caches) for caches in CACHES}}


FORMS = Forms(_json, _text, _records)
