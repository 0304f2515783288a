"""A sparse product as people and programs read it: a document, plain data, records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lstmsim.base.units import cycles_to_ms
from lstmsim.machines.kernels import ArrayLoads, KernelSpan, SparseFigures
from lstmsim.model.sparse.csr import statistics
from lstmsim.report.document import Cell, Column, Document, Facts, Grid, Piece, Section, accounts, facts, grid, remark
from lstmsim.report.figures_text import percent, three_digits
from lstmsim.report.results import Forms, Keys, picked
from lstmsim.studies.sparse.asked import LEFT, SIDES
from lstmsim.studies.sparse.result import Search, SparseReport, SparseRow, Tried, regret

_SCHEMA = "lstmsim/sparse/2"
#: Kernels that people are shown; the others are counted.
_MOST_KERNELS = 12
_BYTES_OF_SECTOR = 32
#: The method that multiplies the zeros too.
_DENSE = "dense"


def headline(report: SparseReport) -> str:
    """Say in a sentence whether dense or sparse is faster here, or what a run came to that stands alone."""
    run = SparseRow(f"{report.method}, this run", report.figures, method=report.method)
    # a row in brackets is no way to do the product
    rows = [run, *(each for each in report.baselines if each.figures is not None and not each.name.startswith("("))]
    dense, sparse = ([each for each in rows if (each.method == _DENSE) == kind] for kind in (True, False))
    search = report.search
    searched = (
        "" if search is None else f", in the fastest of {len(search.tried) - search.refused:,} settings simulated"
    )
    if not (dense and sparse):
        missing = "other" if len(rows) == 1 else "sparse" if dense else "dense"
        first = min(rows, key=_span)
        fastest = "" if first is run else f"; the fastest is {first.name}, {_span(first):,}"
        takes = f"{report.method} takes {_span(run):,} cycles without launches{searched}"
        return f"{takes}; no {missing} run to compare it with{fastest}"
    best, other = min(dense, key=_span), min(sparse, key=_span)
    text = _verdict(best, other)
    if run not in (best, other):
        text += f"; this run ({report.method}) takes {_span(run):,}"
    if _span(best) <= _span(other):
        more = "" if search is not None else ": --best simulates some hundred"
        text += f"; sparse in settings that were not simulated may be faster{more}"
    return text


def _span(row: SparseRow) -> int:
    """Cycles without launches."""
    assert row.figures is not None
    return row.figures.span


def _verdict(dense: SparseRow, sparse: SparseRow) -> str:
    """Which of the fastest rows of both kinds is faster."""
    won, lost = sorted((dense, sparse), key=_span)
    cycles = f"{_span(won):,} against {_span(lost):,} cycles"
    if _span(won) == _span(lost):
        names = f"{dense.name}; {sparse.name}"
        return f"dense and sparse are equally fast here: {_span(won):,} cycles without launches ({names})"
    if won is dense and dense.note:
        part = f"for another amount of work: {dense.note}"
        return f"whether dense is faster here cannot be told: it takes {cycles} without launches, but {part}"
    kind = "dense" if won is dense else "sparse"
    text = f"{kind} is faster here: {cycles} without launches ({won.name}; {lost.name})"
    assert won.figures is not None
    assert lost.figures is not None
    made = won.figures.makespan, lost.figures.makespan
    if made[0] >= made[1]:
        text += f"; with the launches of their kernels it is not: {made[0]:,} against {made[1]:,}"
    return text


def document(report: SparseReport) -> Document:
    """Everything that people read of a sparse product."""
    figures, base = report.figures, report.figures
    sections: list[Piece] = [None if report.search is None else _searched(report.search), _what(report), _time(report)]
    sections.append(accounts("cycles of all schedulers", figures.accounts, figures.account_cycles))
    sections += [_traffic(report) or "nothing is loaded", _work(report)]
    if report.baselines:
        sections.append(Section.of(*_rows("the same product by", report.baselines, base)))
    if report.ablations:
        base = next((each.figures for each in report.ablations if each.figures is not None), base)
        rows = _rows("with a mechanism off", report.ablations, base)
        sections.append(Section.of(_other_start(figures, base), *rows, _faster(report.ablations, base)))
    left_out = facts(("not modelled", "; ".join(report.left_out)))
    return Document.of(headline(report), *sections, left_out, *map(remark, report.remarks))


def _searched(search: Search) -> Facts:
    """Which settings were searched, what the fastest is, and how much slower the run without a search would be."""
    first, best = search.first, search.best
    together, alone = (
        "; ".join(f"{name} {', '.join(map(_shown, values))}" for name, values in some.items())
        for some in (search.settings.together, search.settings.alone)
    )
    count = f"{len(search.tried):,} settings" + (f" ({search.refused:,} refused)" if search.refused else "")
    rule = ""
    if search.by_rule:
        ruled, names = search.rule_best, " and ".join(search.by_rule)
        rule = f"chose {names}, and loses {percent(regret(first, ruled), 1)} against the best of these alone: "
        rule += f"{ruled.cycles:,} cycles with {_setting(ruled.options, search.by_rule)}, all else as without a search"
    lost = f"{first.cycles:,} cycles, {percent(regret(first, best), 1)} more"
    return facts(
        ("searched", f"{count}: every combination of {together}" if together else count),
        ("", f"from the fastest on, one change at a time, also of {alone}, until none was faster"),
        ("best", f"{best.cycles:,} cycles without launches: {_setting(best.options)}"),
        ("no search", f"{lost}: {_setting(first.options)}"),
        ("the rule", rule),
    )


def _setting(options: Mapping[str, object], names: Sequence[str] = ()) -> str:
    return ", ".join(f"{name} {_shown(options[name])}" for name in names or options)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "default" if value is None else str(value)


def _what(report: SparseReport) -> Facts:
    of, (plain, by_length) = report.statistics, report.waste
    size = (
        f"{of.rows:,} x {of.columns:,}, {of.entries:,} entries (sparsity {_sparsity(of.sparsity)}); a row has "
        f"{of.mean_length:.1f} on average, CoV {of.variation:.2f}, {of.empty_rows:,} empty"
    )
    waste = f"lockstep waste of bundles of 4 rows {plain:.3f}, sorted by length {by_length:.3f}"
    sizes = [f"{size}; {waste}"]
    if report.side != LEFT:
        by = statistics(report.walked)
        lengths = f"{by.mean_length:.1f} entries on average, CoV {by.variation:.2f}, {by.empty_rows:,} empty"
        sizes = [size, f"walked by columns: {lengths}; {waste}"]
    ruled = dict.fromkeys(report.figures.by_rule, " (by rule)")
    given = report.figures.options.items()
    options = ", ".join(f"{name} {_shown(value)}{ruled.get(name, '')}" for name, value in given)
    chip = f"{report.chip.name}, {len(report.chip.cores)} cores at {report.chip.frequency_mhz:g} MHz, engine "
    return facts(
        ("matrix", report.source),
        *(("", each) for each in sizes),
        ("product", f"{report.kernel} by {report.method}; {_operands(report)} drawn with seed {report.seed}"),
        ("side", f"{report.side}: {SIDES[report.kernel][report.side]}"),
        ("parameters", options or "none"),
        ("chip", chip + report.engine),
    )


def _sparsity(sparsity: float) -> str:
    """A sparsity with three digits, or by what it lacks to 1 where these would say 1."""
    text = f"{sparsity:.3f}"
    return f"1 - {1 - sparsity:.2g}" if text == "1.000" and sparsity < 1 else text


def _operands(report: SparseReport) -> str:
    """The dense operands in words."""
    if report.side == "right":
        return f"A with {report.columns:,} rows"
    by_kernel = {"spmm": f"B with {report.columns:,} columns", "sddmm": f"A and B of width {report.columns:,}"}
    return by_kernel.get(report.kernel, "x")


def _time(report: SparseReport) -> Section:
    figures = report.figures
    rows = [(each.name, each.blocks, each.arrives, each.ends, each.cycles) for each in figures.kernels]
    heads = ["<kernel", "blocks", "arrive", "end", "cycles"]
    ms = cycles_to_ms(figures.makespan, report.chip.frequency_mhz)
    return Section.of(
        grid(heads, rows, limit=_MOST_KERNELS, more="kernels"),
        f"in all {figures.makespan:,} cycles, {three_digits(ms)} ms; {figures.span:,} without launches",
        f"imbalance {figures.imbalance:.3f}: most issue cycles of a core over their mean",
    )


def _traffic(report: SparseReport) -> Grid | None:
    loads = [each for each in report.figures.loads if each.requests]
    if not loads:
        return None
    levels = list(loads[0].sectors)
    rows = [(each.array, each.requests, *(each.sectors[level] for level in levels)) for each in loads]
    return grid(["<loads of", "requests", *(f"{level} sectors" for level in levels)], rows)


def _work(report: SparseReport) -> Grid:
    figures, rows = report.figures, []
    for name, value in figures.counts.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
        if name.endswith("_sectors"):
            shown += f" ({_BYTES_OF_SECTOR * value:,} bytes)"
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
    return grid(["<count", "<value", "<meaning"], rows, headed=False)


def _rows(title: str, given: Sequence[SparseRow], base: SparseFigures) -> tuple[Grid, str]:
    rows: list[tuple[Cell, ...]] = (
        [] if base is given[0].figures else [("(this run)", base.span, 1.0, base.imbalance, "")]
    )
    for each in given:
        run = each.figures
        figures: tuple[Cell, ...] = (None, None, None) if run is None else (run.span, _ratio(run, base), run.imbalance)
        rows.append((each.name, *figures, f"refused: {each.refused}" if run is None else each.note))
    ratio, imbalance = Column("ratio", digits=3), Column("imbalance", digits=3)
    return grid(
        [f"<{title}", "cycles", ratio, imbalance, "<"], rows
    ), "cycles without launches; a ratio above 1 is slower"


def _ratio(figures: SparseFigures, base: SparseFigures) -> float:
    return figures.span / base.span if base.span else 1.0


def _other_start(run: SparseFigures, base: SparseFigures) -> str:
    """A sentence where the rows are measured by another configuration than the run's."""
    other = [name for name, value in base.options.items() if run.options.get(name, value) != value]
    if not other:
        return ""
    first, above = (_setting(each.options, other) for each in (base, run))
    return f"the rows below are measured by the first one, which has {first}; the run above has {above}"


def _faster(given: Sequence[SparseRow], base: SparseFigures) -> str:
    """Which rows are faster than the first one, in a sentence."""
    rows = [(each.name, each.figures.span) for each in given if each.figures and each.figures.span < base.span]
    shown = ", ".join(f"{name} ({base.span / span:.2f} times as fast)" for name, span in rows)
    return f"faster than the first row here: {shown or 'none'}"


#: Of parts of the result, what their plain data are.
_KEYS: Keys = {
    KernelSpan: "name blocks arrives ends",
    ArrayLoads: lambda each: {"array": each.array, "requests": each.requests, **each.sectors},
    Tried: "span_cycles=cycles options",
    Search: lambda search: {
        **search.settings.__dict__,
        "best": search.best,
        "without_search": search.first,
        "regret": regret(search.first, search.best),
        "by_rule": search.by_rule,
        "best_by_rule": search.rule_best,
        "regret_of_rule": regret(search.first, search.rule_best),
        "tried": search.tried,
    },
}
_LENGTHS = "mean_length variation empty_rows"
_FIGURES = "options by_rule kernels busy_cycles=busy imbalance accounts account_cycles loads counts macs utilization"


def _data(report: SparseReport) -> dict[str, Any]:
    """The product as plain data of schema `lstmsim/sparse/2`."""
    waste = dict(zip(("lockstep_waste_of_4", "lockstep_waste_of_4_sorted"), report.waste, strict=True))
    return {
        "schema": _SCHEMA,
        "headline": headline(report),
        "matrix": {"source": report.source, **picked(report.statistics, f"rows columns entries sparsity {_LENGTHS}")},
        "walked": {**picked(statistics(report.walked), f"rows columns {_LENGTHS}"), **waste},
        **picked(report, "kernel side"),
        "product": SIDES[report.kernel][report.side],
        **picked(report, "method columns seed chip=chip.name frequency_mhz=chip.frequency_mhz engine"),
        **picked(report.figures, "makespan_cycles=makespan span_cycles=span"),
        "ms": cycles_to_ms(report.figures.makespan, report.chip.frequency_mhz),
        **picked(report.figures, _FIGURES, _KEYS),
        "largest_error": report.error,
        "baselines": [_row_data(each, report) for each in report.baselines],
        "ablations": [_row_data(each, report) for each in report.ablations],
        **picked(report, "left_out remarks search", _KEYS),
    }


def _row_data(row: SparseRow, report: SparseReport) -> dict[str, Any]:
    if row.figures is None:
        return picked(row, "name refused")
    return {
        **picked(row, "name makespan_cycles=figures.makespan span_cycles=figures.span"),
        "ratio": _ratio(row.figures, report.figures),
        **picked(row, "imbalance=figures.imbalance counts=figures.counts note"),
    }


def _records(report: SparseReport) -> Iterator[dict[str, Any]]:
    """A row for the product, and one for each other way to do it."""
    for each in (SparseRow(report.method, report.figures), *report.baselines, *report.ablations):
        yield _row_data(each, report)


FORMS = Forms(_data, document, _records, picture="lstmsim.studies.sparse.picture:plot_ways", headed=True)
