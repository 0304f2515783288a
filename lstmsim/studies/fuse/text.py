"""A fused graph in the forms that people and scripts read: text, plain data, a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lstmsim.base.units import cycles_to_us
from lstmsim.base.wording import counted, listed
from lstmsim.model.fusion.baselines import ABLATION
from lstmsim.model.fusion.interpreter.checks import Difference
from lstmsim.model.fusion.plan import MODES, up
from lstmsim.report.figures_text import percent, short_path, three_digits
from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.fuse.json import fusion_json, row_json
from lstmsim.studies.fuse.plan_text import decisions_text, plan_text
from lstmsim.studies.fuse.run import STITCH, FusionReport
from lstmsim.studies.fuse.runs import FusionRow
from lstmsim.studies.shared.product_text import account_text, folded, wrapped

__all__ = ["FORMS", "fusion_text"]

#: Most kernels in the text; the others are counted in a line.
_MOST_KERNELS = 12
#: What the ratio is to, where a table has one.
_RATIO = "cycles over those of {}, {}: above 1 is slower"
#: What the device moves, and why that is another number than what kernels read and write.
_DRAM = (
    "DRAM: bytes that the simulated device moves there, in sectors of 32, with partials, but without what L2 still "
    "has, so this is not their sum"
)
#: What is counted as computed again: all that the formulas repeat, which is more than the device does.
_RECOMPUTED = (
    "evaluations of an element beyond its first in a kernel, as the formulas repeat them; a warp that still has the "
    "value does not"
)
_MEMORY_ONLY = (
    "cycles and bytes are those of the memory-intensive part alone: kernels of a library, such as matrix products, are "
    "not in them"
)


def fusion_text(report: FusionReport, explain: bool = False) -> str:
    """Give a fused graph as text, without a final newline.

    explain: with every decision of the pass.
    """
    parts = [*_wrong(report), *_verdict(report), _what(report), plan_text(report)]
    if explain:
        parts.append(decisions_text(report))
    if report.plan.subgraphs:
        parts += [_modes(report), *_ablations(report), *_kernels(report), *_accounts(report), _executed(report)]
    parts.append("\n".join(wrapped("not modelled", "; ".join(report.asked.fused.left_out))))
    # these two stand where their numbers would
    there = (report.asked.not_simulated, report.asked.not_executed) if report.plan.subgraphs else ()
    parts += ["\n".join(folded(each)) for each in report.remarks if each not in there]
    return "\n\n".join(each for each in parts if each)


def _wrong(report: FusionReport) -> list[str]:
    """Said before all else: which kernels do not compute what they should."""
    return ["\n".join(line for each in report.wrong for line in folded(each))] if report.wrong else []


def _verdict(report: FusionReport) -> list[str]:
    """Said first of what is right: that the pass loses, if it does."""
    row, base, ratio = report.stitched, report.strongest, report.ratio
    if row is None or base is None or ratio is None or ratio <= 1:
        return []
    its = f"{counted(len(row.kernels), 'kernel')} with {counted(row.grid_barriers, 'grid barrier')}"
    parts = max((stage.partials for kernel in row.kernels for stage in kernel.stages), default=0)
    if parts:
        its += f" and results in up to {parts} parts, which their readers load one after the other,"
    told = f"the pass LOSES here: {row.cycles:,} cycles for its {its} are {ratio:.2f} times the {base.cycles:,} of "
    told += f"{base.name} for {counted(len(base.kernels), 'kernel')}"
    other = report.other
    if other is not None and other.cycles is not None and base.cycles is not None:
        ends = "is as quick as that" if other.cycles == base.cycles else "loses too"
        wins = "wins" if other.cycles < base.cycles else ends
        told += f"; split_rule {other.device.split_rule} {wins}, with {other.cycles:,} cycles"
    return ["\n".join(folded(told))]


def _what(report: FusionReport) -> str:
    graph, chip, device = report.graph, report.chip, report.asked.device
    name = report.source if report.source.startswith(graph.name) else f"{graph.name}, {report.source}"
    lines = wrapped("graph", f"{name}; {counted(len(graph.nodes), 'node')}")
    for each in graph.about:
        lines += wrapped("", each)
    where = f"{chip.name}, {counted(len(chip.cores), 'core')} at {chip.frequency_mhz:g} MHz, engine {report.engine}"
    lines += wrapped("chip", where)
    rules = f"split_rule {device.split_rule}; at most {device.block_threads:,} threads and "
    rules += f"{device.shared_limit:,} bytes of shared memory a block; rows up to {device.split_length:,} stay whole"
    return "\n".join([*lines, *wrapped("settings", rules)])


def _modes(report: FusionReport) -> str:
    rows = [*report.rows, *([] if report.other is None else [report.other])]
    lines = [*_table(report, "mode", rows), *folded(report.asked.not_simulated), ""]
    lines += [line for each in report.rows for line in wrapped(each.name, _MEANINGS[each.name])]
    other, stitched = report.other, report.stitched
    if other is not None and stitched is not None and other.cycles is not None and stitched.cycles is not None:
        rules = other.device.split_rule, stitched.device.split_rule
        lines += folded(f"split_rule {rules[0]} takes {_beside(other, stitched)} split_rule {rules[1]}")
    return "\n".join([*lines, *folded(_MEMORY_ONLY)])


def _beside(row: FusionRow, than: FusionRow) -> str:
    """The time of a row beside that of another, both of which were simulated."""
    mine, its = row.cycles or 0, than.cycles or 0
    if mine == its:
        return "as long as"
    if mine >= 2 * its:
        return f"{mine / its:.2f} times the time of"
    return f"{percent(abs(mine - its), its)} {'less' if mine < its else 'more'} time than"


#: What each mode is, in words.
_MEANINGS = {
    "op": "a kernel for each operation",
    "xla": "a kernel for each reduce, heavy operation that is broadcast, and output; the rest is inlined",
    "tvm": "a kernel for each reduce and output; heavy operations are computed anew where they are read",
    "stitch": "the pass: a kernel for each sub-graph",
}


def _table(report: FusionReport, title: str, rows: Sequence[FusionRow], legend: bool = True) -> list[str]:
    """Ways to cut the graph, a line each: what they move and how long they take, and how they fill the chip.

    legend: whether the columns are explained.
    """
    lines = [[title, "kernels", "read", "written", "DRAM", "recomputed", "cycles", "us", "launches", "ratio"]]
    for each in rows:
        numbers = (len(each.kernels), each.counts.read, each.counts.written)
        dram = "-" if each.figures is None else f"{each.figures.dram_bytes:,}"
        cells = [each.name, *(f"{number:,}" for number in numbers), dram, f"{each.counts.recomputed:,}"]
        lines.append([*cells, *_timed(report, each)])
    told = table(lines, left=[0])
    for each in rows:
        told += folded(f"{each.name} was not simulated: {each.refused}") if each.refused else []
    base = report.strongest
    split = any(stage.partials for row in rows for kernel in row.kernels for stage in kernel.stages)
    text = "read, written: bytes beyond the chip, each element once a kernel"
    text += ", without the partials of split results" if split else ""
    text += f"; {_DRAM}" if any(each.figures is not None for each in rows) else ""
    text += f"; recomputed: {_RECOMPUTED}; launches: their share of the time"
    text += f"; ratio: {_RATIO.format(base.name, _strength(report))}" if base is not None else ""
    filled = [["", "waves", "cores", "occupancy", "grid barriers", "shared bytes", "without reuse"]]
    for each in rows:
        shares = [percent(each.mean(of), 1) for of in (each.cores, each.occupancy)]
        shared = (
            max(one.shared_bytes for one in each.kernels),
            max(one.shared_bytes_before_reuse for one in each.kernels),
        )
        cells = [each.name, f"{each.waves:,}", *shares, f"{each.grid_barriers:,}"]
        filled.append([*cells, *(f"{number:,}" for number in shared)])
    over = "the time of the kernels" if any(each.figures is not None for each in rows) else "the kernels"
    about = f"cores: share with a block; occupancy: share of the slots for warps (both: mean over {over}); "
    about += "shared bytes: of a block, of the kernel with the most"
    if not legend:
        return [*told, "", *table(filled, left=[0])]
    return [*told, *folded(text), "", *table(filled, left=[0]), *folded(about)]


def _strength(report: FusionReport) -> str:
    """Among which baselines the one that rows are compared with is the strongest."""
    missing = [each for each in MODES if each not in {row.name for row in report.rows if row.cycles is not None}]
    without = [each for each in missing if each != STITCH]
    if not without:
        return "the strongest baseline"
    return f"the strongest of the baselines here, without {listed(without, 'and')}"


def _timed(report: FusionReport, row: FusionRow) -> list[str]:
    if row.cycles is None or row.launches is None:
        return ["-"] * 4
    ratio = report.ratio_of(row)
    us = three_digits(cycles_to_us(row.cycles, report.chip.frequency_mhz))
    return [f"{row.cycles:,}", us, percent(row.launches, 1), "-" if ratio is None else f"{ratio:.3f}"]


def _ablations(report: FusionReport) -> list[str]:
    """What each mechanism of the pass adds."""
    if not report.ablations:
        return []
    lines = [*_table(report, "step by step", report.ablations, legend=False), ""]
    lines += [line for each in report.ablations for line in wrapped(each.name, ABLATION[each.name])]
    before, *others = report.ablations
    worse = []
    for each in others:
        if each.cycles is not None and before.cycles is not None and each.cycles > before.cycles:
            worse.append(f"{each.name} takes {each.cycles - before.cycles:,} cycles more than {before.name}")
        before = each
    lines += folded(f"not every step is a gain here: {'; '.join(worse)}") if worse else []
    return ["\n".join(lines)]


def _kernels(report: FusionReport) -> list[str]:
    """Each kernel of the row that is told in full."""
    row = report.told
    if not row.kernels:
        return []
    head = [f"kernel of {row.name}", "blocks x threads", "waves", "registers", "shared", "cores", "occupancy"]
    rows = [[*head, "read", "written", "cycles"]]
    spans = [None] * len(row.kernels) if row.figures is None else row.figures.kernels
    for kernel, counts, span in list(zip(row.kernels, row.counts.kernels, spans, strict=True))[:_MOST_KERNELS]:
        grid = f"{kernel.blocks:,} x {kernel.threads:,}"
        sizes = (up(kernel.blocks, kernel.wave), kernel.registers, kernel.shared_bytes)
        cells = [short_path(kernel.name, 24), grid, *(f"{each:,}" for each in sizes)]
        cells += [percent(row.cores(kernel), 1), percent(row.occupancy(kernel), 1)]
        rows.append([*cells, f"{counts.read:,}", f"{counts.written:,}", "-" if span is None else f"{span.cycles:,}"])
    lines = table(rows, left=[0])
    more = len(row.kernels) - _MOST_KERNELS
    lines += [f"and {counted(more, 'more kernel')}: --json has them"] if more > 0 else []
    if row.figures is not None:
        lines += folded(f"cycles without the launch, which takes {row.figures.launch:,} before each kernel")
    return ["\n".join(lines)]


def _accounts(report: FusionReport) -> list[str]:
    figures = report.told.figures
    if figures is None:
        return []
    return [account_text(f"cycles of all schedulers in {report.told.name}", figures.accounts, figures.account_cycles)]


def _executed(report: FusionReport) -> str:
    """What the kernels computed, beside numpy."""
    done = report.executed
    if not done:
        return "\n".join(
            wrapped("executed", f"no: {report.asked.not_executed or 'kernels were not executed on numbers'}")
        )
    if report.wrong:
        names = [name for name, each in done.items() if not each.equal]
        return "\n".join(wrapped("executed", f"NOT equal to numpy: {listed(names, 'and')}; why stands at the top"))
    far = [each.difference for each in done.values() if each.difference is not None]
    told = f"equal to numpy within {max(each.largest for each in far):.2g} ({', '.join(done)}), block by block and "
    told += "thread by thread, reading only what each scheme allows; inputs drawn with seed "
    told += f"{report.asked.seed}{_endless(far)}"
    return "\n".join(wrapped("executed", told))


def _endless(differences: Sequence[Difference]) -> str:
    """How many of the compared numbers tell little; empty: none."""
    most = max(differences, key=lambda each: each.endless / max(1, each.elements))
    if not most.endless:
        return ""
    return f"; {most.endless:,} of {most.elements:,} numbers are infinite or NaN in numpy too, which shows little"


def _records(report: FusionReport) -> Iterator[dict[str, Any]]:
    """A row for each way to cut the graph."""
    other = [] if report.other is None else [report.other]
    for what, rows in {"mode": report.rows, "other_rule": other, "ablation": report.ablations}.items():
        yield from ({"what": what, **row_json(each, report)} for each in rows)


FORMS = Forms(fusion_json, fusion_text, _records)
