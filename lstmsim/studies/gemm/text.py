"""A threaded matrix product in the forms that people and scripts read: text, plain data, a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstmsim.base.units import cycles_to_us
from lstmsim.base.wording import counted
from lstmsim.report.figures_text import percent, three_digits
from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.gemm.beside_text import ablation_text, beside_text, verdict_text
from lstmsim.studies.gemm.json import gemm_json, row_json
from lstmsim.studies.gemm.plan_text import plan_text
from lstmsim.studies.gemm.run import GemmReport
from lstmsim.studies.shared.product_text import folded, wrapped

__all__ = ["FORMS", "gemm_text", "product_text"]


def gemm_text(report: GemmReport) -> str:
    """Give a product as text, without a final newline."""
    parts = [verdict_text(report), product_text(report), plan_text(report), _time(report), _traffic(report)]
    parts += [*beside_text(report), *ablation_text(report), _result(report)]
    parts.append("\n".join(wrapped("not modelled", "; ".join(report.machine.left_out))))
    parts += ["\n".join(folded(each)) for each in report.remarks]
    return "\n\n".join(parts)


def product_text(report: GemmReport, cores: bool = True) -> str:
    """The product, and where it runs.

    cores: whether the threads of this report are told.
    """
    m, n, k = report.product.m, report.product.n, report.product.k
    size = f"C ({m:,} x {n:,}) = A ({m:,} x {k:,}) B ({k:,} x {n:,}), "
    size += counted(report.product.macs, "multiply-accumulate")
    where = counted(len(report.chip.cores), "core")
    where = f"{counted(report.threads, 'thread')} on {report.threads:,} of {where}" if cores else where
    chip = f"{report.chip.name}, {where} at {report.chip.frequency_mhz:g} MHz; caches {report.caches}, engine "
    source = wrapped("", report.source) if report.source else []
    packing = wrapped("packing", report.machine.packing(report.chip, report.task))
    return "\n".join([*wrapped("product", size), *source, *packing, *wrapped("chip", chip + report.engine)])


def _time(report: GemmReport) -> str:
    figures, mhz = report.figures, report.chip.frequency_mhz
    us = three_digits(cycles_to_us(figures.makespan, mhz))
    share = percent(report.utilization, 1)
    barrier = figures.makespan - max(figures.finish)
    told = f"{figures.makespan:,} cycles, {us} us, {barrier:,} of them the barrier at the end; {share} of the peak of "
    told += f"{counted(report.threads, 'core')}, {report.peak:,} multiply-accumulates in a cycle"
    if report.otherwise:
        told += f" ({report.otherwise}, as asked for; the plan takes {report.planned_cycles:,} cycles)"
    elif report.division != report.beside.planned.division:
        told += f" ({report.division.cut.short}; the plan takes {report.planned_cycles:,} cycles)"
    lines = wrapped("time", told)
    ends = [each for each in figures.finish if each]
    mean = sum(ends) / len(ends)
    told = f"they end from cycle {min(ends):,} to {max(ends):,}, on average at {mean:,.0f}; imbalance "
    told += f"{max(ends) / mean:.3f} (the last end over the average)"
    empty = report.threads - len(ends)
    if empty:
        told += f"; {counted(empty, 'thread')} without any work"
    lines += wrapped("threads", told)
    waits = ", ".join(f"{_WAITS.get(name, name)} {cycles:,}" for name, cycles in figures.waits.items())
    told = f"cycles of all threads: {waits}; in all steps {figures.compute:,} cycles of arithmetic, packing and adding"
    told += f", and {figures.of_memory:,} that cores have only because of lines from and to memory"
    return "\n".join([*lines, *wrapped("waits", told)])


#: Causes of waits in words.
_WAITS = {"contention": "for a piece of C that another thread adds into (contention)", "memory": "for memory"}


def _traffic(report: GemmReport) -> str:
    counts, line = report.figures.counts, report.machine.line_bytes(report.chip)
    rows = [["lines", "accesses", "hits", "hit rate"]]
    for name, level, hits in (
        ("L1", counts.l1, counts.l1_hit),
        ("L2", counts.l2, counts.l2_hit),
        ("last level", counts.llc, counts.llc_hit),
    ):
        rows.append([name, f"{level:,}", f"{hits:,}", percent(hits, level, "-")])
    moved = [["lines moved", "lines", "bytes", ""]]
    named = {
        "L1 - L2": (counts.l1_l2, "both ways"),
        "L2 - last level": (counts.l2_llc, "both ways"),
        "memory, read": (counts.memory_read, ""),
        "memory, written": (counts.memory_write, ""),
        "remote": (counts.remote, "of the lines of memory, those of another domain than the core's"),
        "transfers": (counts.transfers, "from core to core, because another core had written them"),
    }
    moved += [[name, f"{count:,}", f"{line * count:,}", what] for name, (count, what) in named.items()]
    if len(counts.memory) > 1:
        by_memory = ", ".join(f"{lines:,}" for lines in counts.memory)
        after = [*wrapped("memories", f"lines of each, read and written: {by_memory}")]
    else:
        after = []
    own = report.figures.buffer_bytes
    after += wrapped("buffers", f"{own:,} bytes, of all threads together" if own else "none")
    return "\n".join([*table(rows, left=[0]), "", *table(moved, left=[0, 3]), *after])


def _result(report: GemmReport) -> str:
    done = report.computed
    if done is None:
        return "\n".join(wrapped("result", report.no_result))
    shape = " x ".join(map(str, done.result.shape))
    equal = "equal to numpy's in every number" if done.integers_equal else "NOT equal to numpy's: please report it"
    told = f"{shape}, summed up in the order of the simulated steps; of integers {equal}; of {done.kind} the largest "
    told += f"difference from 64-bit products is {done.error:.2g}, relative to the sum of their sizes (operands drawn "
    return "\n".join(wrapped("result", f"{told}with seed {report.seed})"))


def _records(report: GemmReport) -> Iterator[dict[str, Any]]:
    """A row for each division that was simulated: the run, the candidates, the pairs, the reliefs."""
    beside = report.beside
    yield {"what": "run", **row_json(beside.ran, report)}
    for rank, (of, each) in enumerate(zip(report.plan.ranked, beside.candidates, strict=True)):
        about = {"what": "candidate", "rank": rank, "fitness": of.fitness, "why_not": "; ".join(of.why_not)}
        if each is not None:
            yield {**about, **row_json(each, report)}
    for kind, rows in {"pair": beside.pairs, "relief": beside.ablations}.items():
        yield from ({"what": kind, **row_json(each, report)} for each in rows)


FORMS = Forms(gemm_json, gemm_text, _records)
