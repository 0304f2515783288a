"""A sparse product in the forms that people and scripts read: text, plain data, a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lstmsim.base.units import cycles_to_ms
from lstmsim.machines.kernels import SparseFigures
from lstmsim.model.sparse.statistics import statistics
from lstmsim.report.figures_text import percent, three_digits
from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.shared.product_text import account_text, folded, wrapped
from lstmsim.studies.sparse.headline import headline
from lstmsim.studies.sparse.run import SparseReport
from lstmsim.studies.sparse.runs import SparseRow
from lstmsim.studies.sparse.search import Search, Tried, regret
from lstmsim.studies.sparse.sides import LEFT, SIDES

__all__ = ["FORMS", "SCHEMA", "sparse_json", "sparse_text"]

SCHEMA = "lstmsim/sparse/1"
#: Kernels in the text; the others are counted in a line.
_MOST_KERNELS = 12
#: Bytes of a sector.
_SECTOR = 32


def sparse_json(report: SparseReport) -> dict[str, Any]:
    """Give a product as plain data of schema `lstmsim/sparse/1`."""
    of = report.statistics
    walked = statistics(report.walked)
    plain, by_length = report.waste
    return {
        "schema": SCHEMA,
        "headline": headline(report),
        "matrix": {
            "source": report.source,
            "rows": of.rows,
            "columns": of.columns,
            "entries": of.entries,
            "sparsity": of.sparsity,
            "mean_length": of.mean_length,
            "variation": of.variation,
            "empty_rows": of.empty_rows,
        },
        "walked": {
            "rows": walked.rows,
            "columns": walked.columns,
            "mean_length": walked.mean_length,
            "variation": walked.variation,
            "empty_rows": walked.empty_rows,
            "lockstep_waste_of_4": plain,
            "lockstep_waste_of_4_sorted": by_length,
        },
        "kernel": report.kernel,
        "side": report.side,
        "product": SIDES[report.kernel][report.side],
        "method": report.method,
        "columns": report.columns,
        "seed": report.seed,
        "chip": report.chip.name,
        "frequency_mhz": report.chip.frequency_mhz,
        "engine": report.engine,
        **_figures_json(report.figures, report.chip.frequency_mhz),
        "largest_error": report.error,
        "beside": [_row_json(each, report) for each in report.beside],
        "ablations": [_row_json(each, report) for each in report.ablations],
        "left_out": list(report.left_out),
        "remarks": list(report.remarks),
        "search": None if report.search is None else _search_json(report.search),
    }


def _search_json(search: Search) -> dict[str, Any]:
    def tried(each: Tried) -> dict[str, Any]:
        return {"span_cycles": each.cycles, "options": dict(each.options)}

    return {
        "together": {name: list(values) for name, values in search.settings.together.items()},
        "alone": {name: list(values) for name, values in search.settings.alone.items()},
        "best": tried(search.best),
        "without_search": tried(search.first),
        "regret": regret(search.first, search.best),
        "by_rule": list(search.by_rule),
        "best_by_rule": tried(search.rule_best),
        "regret_of_rule": regret(search.first, search.rule_best),
        "tried": [tried(each) for each in search.tried],
    }


def _figures_json(figures: SparseFigures, frequency_mhz: float) -> dict[str, Any]:
    return {
        "makespan_cycles": figures.makespan,
        "span_cycles": figures.span,
        "ms": cycles_to_ms(figures.makespan, frequency_mhz),
        "options": {name: list(each) if isinstance(each, tuple) else each for name, each in figures.options.items()},
        "by_rule": list(figures.by_rule),
        "kernels": [
            {"name": each.name, "blocks": each.blocks, "arrives": each.arrives, "ends": each.ends}
            for each in figures.kernels
        ],
        "busy_cycles": list(figures.busy),
        "imbalance": figures.imbalance,
        "accounts": dict(figures.accounts),
        "account_cycles": figures.account_cycles,
        "loads": [{"array": each.array, "requests": each.requests, **each.sectors} for each in figures.loads],
        "counts": dict(figures.counts),
        "macs": figures.macs,
        "utilization": figures.utilization,
    }


def _row_json(row: SparseRow, report: SparseReport) -> dict[str, Any]:
    if row.figures is None:
        return {"name": row.name, "refused": row.refused}
    figures = row.figures
    return {
        "name": row.name,
        "makespan_cycles": figures.makespan,
        "span_cycles": figures.span,
        "ratio": _ratio(figures, report.figures),
        "imbalance": figures.imbalance,
        "counts": dict(figures.counts),
        "note": row.note,
    }


def _ratio(figures: SparseFigures, base: SparseFigures) -> float:
    return figures.span / base.span if base.span else 1.0


def sparse_text(report: SparseReport) -> str:
    """Give a product as text, without a final newline."""
    parts = ["\n".join(folded(headline(report)))]
    parts += [] if report.search is None else ["\n".join(_searched(report.search))]
    parts += [_what(report), _time(report), _accounts(report), _traffic(report), _work(report)]
    if report.beside:
        parts.append(_rows_text("the same product by", report.beside, report.figures))
    if report.ablations:
        base = next((each.figures for each in report.ablations if each.figures is not None), report.figures)
        rows = _rows_text("with a mechanism off", report.ablations, base)
        parts.append("\n".join([*_other_start(report.figures, base), rows, *_faster(report.ablations, base)]))
    parts.append("\n".join(wrapped("not modelled", "; ".join(report.left_out))))
    parts += ["\n".join(folded(each)) for each in report.remarks]
    return "\n\n".join(parts)


def _searched(search: Search) -> list[str]:
    """Which settings were searched, what the fastest is, and how much slower the run without a search would be."""
    first, best = search.first, search.best
    together, alone = (
        "; ".join(f"{name} {', '.join(map(_shown, values))}" for name, values in some.items())
        for some in (search.settings.together, search.settings.alone)
    )
    count = f"{len(search.tried):,} settings" + (f" ({search.refused:,} refused)" if search.refused else "")
    lines = wrapped("searched", f"{count}: every combination of {together}" if together else count)
    lines += wrapped("", f"from the fastest on, one change at a time, also of {alone}, until none was faster")
    lines += wrapped("best", f"{best.cycles:,} cycles without launches: {_setting(best)}")
    lines += wrapped("no search", f"{first.cycles:,} cycles, {percent(regret(first, best), 1)} more: {_setting(first)}")
    if search.by_rule:
        own, names = search.rule_best, " and ".join(search.by_rule)
        chosen = ", ".join(f"{name} {_shown(own.options[name])}" for name in search.by_rule)
        lost = f"chose {names}, and loses {percent(regret(first, own), 1)} against the best of these alone"
        lines += wrapped("the rule", f"{lost}: {own.cycles:,} cycles with {chosen}, all else as without a search")
    return lines


def _setting(tried: Tried) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in tried.options.items())


def _what(report: SparseReport) -> str:
    of, (plain, by_length) = report.statistics, report.waste
    size = (
        f"{of.rows:,} x {of.columns:,}, {of.entries:,} entries (sparsity {_sparsity(of.sparsity)}); a row has "
        f"{of.mean_length:.1f} on average, CoV {of.variation:.2f}, {of.empty_rows:,} empty"
    )
    waste = f"lockstep waste of bundles of 4 rows {plain:.3f}, sorted by length {by_length:.3f}"
    lines = wrapped("matrix", report.source)
    if report.side == LEFT:
        lines += wrapped("", f"{size}; {waste}")
    else:
        own = statistics(report.walked)
        lengths = f"{own.mean_length:.1f} entries on average, CoV {own.variation:.2f}, {own.empty_rows:,} empty"
        lines += [*wrapped("", size), *wrapped("", f"walked by columns: {lengths}; {waste}")]
    ruled = dict.fromkeys(report.figures.by_rule, " (by rule)")
    options = ", ".join(
        f"{name} {_shown(value)}{ruled.get(name, '')}" for name, value in report.figures.options.items()
    )
    lines += wrapped(
        "product", f"{report.kernel} by {report.method}; {_operands(report)} drawn with seed {report.seed}"
    )
    lines += wrapped("side", f"{report.side}: {SIDES[report.kernel][report.side]}")
    chip = f"{report.chip.name}, {len(report.chip.cores)} cores at {report.chip.frequency_mhz:g} MHz, engine "
    return "\n".join([*lines, *wrapped("parameters", options or "none"), *wrapped("chip", chip + report.engine)])


def _operands(report: SparseReport) -> str:
    """The dense operands in words."""
    if report.side == "right":
        return f"A with {report.columns:,} rows"
    return {"spmv": "x", "spmm": f"B with {report.columns:,} columns", "sddmm": f"A and B of width {report.columns:,}"}[
        report.kernel
    ]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "default" if value is None else str(value)


def _time(report: SparseReport) -> str:
    figures = report.figures
    rows = [["kernel", "blocks", "arrive", "end", "cycles"]]
    for each in figures.kernels[:_MOST_KERNELS]:
        rows.append([each.name, *(f"{number:,}" for number in (each.blocks, each.arrives, each.ends, each.cycles))])
    lines = table(rows, left=[0])
    more = len(figures.kernels) - _MOST_KERNELS
    lines += [f"and {more} more kernels"] if more > 0 else []
    ms = cycles_to_ms(figures.makespan, report.chip.frequency_mhz)
    lines.append(f"in all {figures.makespan:,} cycles, {three_digits(ms)} ms; {figures.span:,} without launches")
    lines.append(f"imbalance {figures.imbalance:.3f}: most issue cycles of a core over their mean")
    return "\n".join(lines)


def _accounts(report: SparseReport) -> str:
    figures = report.figures
    return account_text("cycles of all schedulers", figures.accounts, figures.account_cycles)


def _traffic(report: SparseReport) -> str:
    loads = [each for each in report.figures.loads if each.requests]
    if not loads:
        return "nothing is loaded"
    levels = list(loads[0].sectors)
    rows = [["loads of", "requests", *(f"{level} sectors" for level in levels)]]
    rows += [[each.array, f"{each.requests:,}", *(f"{each.sectors[level]:,}" for level in levels)] for each in loads]
    return "\n".join(table(rows, left=[0]))


def _work(report: SparseReport) -> str:
    figures, rows = report.figures, []
    for name, value in figures.counts.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
        if name.endswith("_sectors"):
            shown += f" ({_SECTOR * value:,} bytes)"
        rows.append([name, shown, report.meanings.get(name, "")])
    rows.append(["macs", f"{figures.macs:,}", "useful multiply-accumulates"])
    peak = f"of {figures.peak:,} multiply-accumulates that the chip can do in a cycle"
    rows.append(["utilization", percent(figures.utilization, 1), peak])
    if report.result is not None and report.error is not None:
        shape = " x ".join(map(str, report.result.shape))
        about = "largest difference from 64-bit products, relative to the sum of their sizes"
        rows.append(["result", shape, f"{about}: {report.error:.2g}"])
    else:
        rows.append(["result", "none", "this method is a baseline: it is timed, and computes nothing here"])
    return "\n".join(table(rows, left=[0, 1, 2]))


def _rows_text(title: str, given: Sequence[SparseRow], base: SparseFigures) -> str:
    rows = [[title, "cycles", "ratio", "imbalance", ""]]
    if base is not given[0].figures:
        rows.append(["(this run)", f"{base.span:,}", "1.000", f"{base.imbalance:.3f}", ""])
    for each in given:
        if each.figures is None:
            rows.append([each.name, "-", "-", "-", f"refused: {each.refused}"])
        else:
            ratio, imbalance = _ratio(each.figures, base), each.figures.imbalance
            rows.append([each.name, f"{each.figures.span:,}", f"{ratio:.3f}", f"{imbalance:.3f}", each.note])
    return "\n".join([*table(rows, left=[0, 4]), "cycles without launches; a ratio above 1 is slower"])


def _other_start(run: SparseFigures, base: SparseFigures) -> list[str]:
    """A sentence where the rows are measured by another configuration than the run's."""
    other = [name for name, value in base.options.items() if run.options.get(name, value) != value]
    if not other:
        return []
    first, above = (", ".join(f"{name} {_shown(each.options[name])}" for name in other) for each in (base, run))
    text = f"the rows below are measured by the first one, which has {first}; the run above has {above}"
    return folded(text)


def _faster(given: Sequence[SparseRow], base: SparseFigures) -> list[str]:
    """Which rows are faster than the first one, in a sentence."""
    rows = [(each.name, each.figures.span) for each in given if each.figures and each.figures.span < base.span]
    shown = ", ".join(f"{name} ({base.span / span:.2f} times as fast)" for name, span in rows)
    return folded(f"faster than the first row here: {shown or 'none'}")


def _records(report: SparseReport) -> Iterator[dict[str, Any]]:
    """A row for the product, and one for each other way to do it."""
    rows = [SparseRow(report.method, report.figures), *report.beside, *report.ablations]
    for each in rows:
        yield _row_json(each, report)


FORMS = Forms(sparse_json, sparse_text, _records)


def _sparsity(sparsity: float) -> str:
    """A sparsity with three digits, or by what it lacks to 1 where these would say 1."""
    text = f"{sparsity:.3f}"
    return f"1 - {1 - sparsity:.2g}" if text == "1.000" and sparsity < 1 else text
