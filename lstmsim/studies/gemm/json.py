"""A threaded matrix product as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lstmsim.base.units import cycles_to_us
from lstmsim.machines.gemm import CACHES, Counts, Cut, Division, GemmFigures, SubBlocks
from lstmsim.studies.gemm.headline import gemm_headline
from lstmsim.studies.gemm.plan_text import RECONSTRUCTION
from lstmsim.studies.gemm.runs import GemmRow

if TYPE_CHECKING:
    from lstmsim.studies.gemm.run import GemmReport

__all__ = ["SCHEMA", "cut_json", "division_json", "gemm_json", "row_json"]

SCHEMA = "lstmsim/gemm/1"


def gemm_json(report: GemmReport) -> dict[str, Any]:
    """Give a product as plain data of schema `lstmsim/gemm/1`."""
    product, chip = report.product, report.chip
    return {
        "schema": SCHEMA,
        "headline": gemm_headline(report),
        "product": {"m": product.m, "n": product.n, "k": product.k, "macs": product.macs, "source": report.source},
        "threads": report.threads,
        "chip": chip.name,
        "cores": len(chip.cores),
        "frequency_mhz": chip.frequency_mhz,
        "peak_macs_per_cycle": report.peak,
        "line_bytes": report.machine.line_bytes(report.chip),
        "engine": report.engine,
        "caches": report.caches,
        "packed": report.task.packed,
        "packing": report.machine.packing(report.chip, report.task),
        "relief": report.relief,
        "cut_given": None if report.cut is None else cut_json(report.cut),
        "plan": _plan_json(report),
        "run": {
            **division_json(report.division),
            "utilization": report.utilization,
            **{each: _figures_json(report.beside.ran.figures[each], chip.frequency_mhz) for each in CACHES},
        },
        "beside": _beside_json(report),
        "ablations": [{"relief": each.name, **_short_json(each, report)} for each in report.beside.ablations],
        "result": _result_json(report),
        "left_out": list(report.machine.left_out),
        "meanings": dict(report.machine.meanings),
        "remarks": list(report.remarks),
    }


def _plan_json(report: GemmReport) -> dict[str, Any]:
    plan = report.plan
    return {
        **division_json(report.beside.planned.division),
        "rank": plan.chosen,
        "blocks": dict(plan.blocks),
        "buffer_recommended": plan.buffer,
        "settings": dict(report.settings),
        "settings_given": list(report.task.settings),
        "candidates": [
            {
                "rank": rank,
                **cut_json(of.cut),
                "fitness": of.fitness,
                "raw": dict(of.raw),
                "normalised": dict(of.normalised),
                "accepted": not of.why_not,
                "why_not": list(of.why_not),
                **({"left_out": True} if row is None else _short_json(row, report)),
            }
            for rank, (of, row) in enumerate(zip(plan.ranked, report.beside.candidates, strict=True))
        ],
        "idle": [cut_json(each) for each in plan.idle],
        "sub_candidates": [
            {**_sub_json(each.sub_blocks), "fitness": each.fitness, "raw": dict(each.raw),
             "normalised": dict(each.normalised)}
            for each in plan.sub_ranked
        ],
        "note": RECONSTRUCTION,
    }  # fmt: skip


def cut_json(cut: Cut) -> dict[str, Any]:
    """A cut as plain data."""
    sizes = {"mb": cut.mb, "nb": cut.nb, "kb": cut.kb}
    return {"kind": cut.kind, "p_m": cut.p_m, "p_n": cut.p_n, "p_k": cut.p_k, **sizes}


def _sub_json(of: SubBlocks) -> dict[str, int]:
    return {"sm": of.sm, "sn": of.sn, "s_m": of.s_m, "s_n": of.s_n}


def division_json(division: Division) -> dict[str, Any]:
    """A cut with its sub-blocks and its buffer as plain data."""
    of = division.sub_blocks
    return {
        **cut_json(division.cut),
        "sub_blocks": None if of is None else _sub_json(of),
        "buffer": division.buffer,
    }


def _figures_json(figures: GemmFigures, frequency_mhz: float) -> dict[str, Any]:
    ends = [each for each in figures.finish if each]
    return {
        "makespan_cycles": figures.makespan,
        "us": cycles_to_us(figures.makespan, frequency_mhz),
        "finish_cycles": list(figures.finish),
        "imbalance": max(ends) * len(ends) / sum(ends),
        "waits": dict(figures.waits),
        "compute_cycles": figures.compute,
        "memory_cycles_of_cores": figures.of_memory,
        "buffer_bytes": figures.buffer_bytes,
        "counts": _counts_json(figures.counts),
    }


def _counts_json(counts: Counts) -> dict[str, Any]:
    levels = {
        "l1": (counts.l1, counts.l1_hit),
        "l2": (counts.l2, counts.l2_hit),
        "llc": (counts.llc, counts.llc_hit),
    }
    rates = {
        name: {"accesses": accesses, "hits": hits, "hit_rate": hits / accesses if accesses else None}
        for name, (accesses, hits) in levels.items()
    }
    moved = {name: getattr(counts, name) for name in ("l1_l2", "l2_llc", "memory_read", "memory_write", "remote")}
    return {**rates, "lines": {**moved, "transfers": counts.transfers, "by_memory": list(counts.memory)}}


def _short_json(row: GemmRow, report: GemmReport) -> dict[str, Any]:
    """A division in short: what it is, and its makespan in both states, with the ratio to the plan's."""
    return {
        **division_json(row.division),
        **{
            each: {
                "makespan_cycles": row.cycles(each),
                "ratio_to_plan": row.cycles(each) / report.beside.planned.cycles(each),
                "waits": dict(row.figures[each].waits),
                "buffer_bytes": row.figures[each].buffer_bytes,
            }
            for each in CACHES
        },
    }


def row_json(row: GemmRow, report: GemmReport) -> Mapping[str, Any]:
    """A division as a row of a table.

    row: the division.
    report: whose it is.
    """
    plain = _short_json(row, report)
    of = plain.pop("sub_blocks")
    return {**plain, "sub_blocks": None if of is None else row.division.sub_blocks and row.division.sub_blocks.count}


def _beside_json(report: GemmReport) -> dict[str, Any]:
    beside = report.beside
    best = {
        each: {
            "plan": cut_json((plan := beside.plans[each]).cut),
            "plan_makespan_cycles": plan.cycles(each),
            "best_pair": None if (pair := beside.best_pair(each)) is None else cut_json(pair.cut),
            "fastest": division_json((row := beside.fastest(each)).division),
            "fastest_makespan_cycles": row.cycles(each),
            "regret": beside.regret(each),
            "loses_to_best_pair": None if pair is None else plan.cycles(each) > pair.cycles(each),
        }
        for each in CACHES
    }
    return {
        "blis": None if beside.blis is None else _short_json(beside.blis, report),
        "by_shapes": None if beside.by_shapes is None else _short_json(beside.by_shapes, report),
        "pairs": [_short_json(each, report) for each in beside.pairs],
        "pairs_known": beside.pairs_known,
        "simulated": len(beside.simulated),
        "not_simulated": beside.left_out,
        **best,
    }


def _result_json(report: GemmReport) -> dict[str, Any] | None:
    done = report.computed
    if done is None:
        return None
    return {
        "type": done.kind,
        "seed": report.seed,
        "shape": list(done.result.shape),
        "integers_equal": done.integers_equal,
        "largest_error": done.error,
        "sha256": done.sha256,
    }
