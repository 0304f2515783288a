"""A fused graph as people and programs read it: a document, plain data, records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lstmsim.base.units import cycles_to_us
from lstmsim.base.wording import counted, listed
from lstmsim.model.fusion.baselines import ABLATION
from lstmsim.model.fusion.graph import COMPUTE, Graph
from lstmsim.model.fusion.interpreter.checks import Difference
from lstmsim.model.fusion.plan import GLOBAL, MODES, OUTPUT, SHARED, Group, PlannedSubgraph, Stage, ThreadMapping, up
from lstmsim.report.document import Cell, Column, Document, Facts, Grid, Piece, Section, accounts, facts, grid, remark
from lstmsim.report.figures_text import percent, short_path, three_digits
from lstmsim.report.results import Forms, picked
from lstmsim.report.styles import SCREEN, Look
from lstmsim.report.tables import table
from lstmsim.studies.fuse.asked import STITCH
from lstmsim.studies.fuse.result import FusionReport, FusionRow

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture

_SCHEMA = "lstmsim/fusion/2"
#: Kernels that people are shown; the others are counted.
_MOST_KERNELS = 12
#: Most names that are listed in a line.
_MOST_NAMES = 12
#: Most sub-graphs that are shown in full, each with most so many stages.
_MOST_SUBGRAPHS, _MOST_STAGES = 8, 40
#: What a kind of mapping means, after its numbers.
_SIDES = {"column": ", 32 results side by side", "adapted": ", those of the group that it reads"}
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
#: What each mode is, in words.
_MEANINGS = {
    "op": "a kernel for each operation",
    "xla": "a kernel for each reduce, heavy operation that is broadcast, and output; the rest is inlined",
    "tvm": "a kernel for each reduce and output; heavy operations are computed anew where they are read",
    "stitch": "the pass: a kernel for each sub-graph",
}


def document(report: FusionReport, explain: bool = False) -> Document:
    """Everything that people read of a fused graph.

    report: the graph, fused.
    explain: whether every decision of the pass is a part of it.
    """
    verdict = _verdict(report)
    headline, verdict = ("\n".join(report.wrong), verdict) if report.wrong else (verdict, "")
    sections: list[Piece] = [verdict, _what(report), *_plan(report)]
    if explain:
        sections += _decisions(report)
    if report.plan.subgraphs:
        figures = report.reported.figures
        sections += [*_modes(report), *_ablations(report), _kernels(report)]
        if figures is not None:
            title = f"cycles of all schedulers in {report.reported.name}"
            sections.append(accounts(title, figures.accounts, figures.account_cycles))
        sections.append(_executed(report))
    sections.append(facts(("not modelled", "; ".join(report.asked.fused.LEFT_OUT))))
    # these two stand where their numbers would
    there = (report.asked.not_simulated, report.asked.not_executed) if report.plan.subgraphs else ()
    return Document.of(headline, *sections, *(remark(text) for text in report.remarks if text not in there))


def _verdict(report: FusionReport) -> str:
    """The pass beside the strongest baseline; empty: one of the two was not simulated."""
    row, base, ratio = report.stitched, report.strongest, report.ratio
    if row is None or base is None or ratio is None or row.cycles is None or base.cycles is None:
        return ""
    if ratio <= 1:
        kernels = f"{counted(len(row.kernels), 'kernel')}, {ratio:.2f} times the {base.cycles:,} of {base.name}"
        return f"the pass takes {row.cycles:,} cycles for {kernels} for {counted(len(base.kernels), 'kernel')}"
    its = f"{counted(len(row.kernels), 'kernel')} with {counted(row.grid_barriers, 'grid barrier')}"
    parts = max((stage.partials for kernel in row.kernels for stage in kernel.stages), default=0)
    if parts:
        its += f" and results in up to {parts} parts, which their readers load one after the other,"
    text = f"the pass LOSES here: {row.cycles:,} cycles for its {its} are {ratio:.2f} times the {base.cycles:,} of "
    text += f"{base.name} for {counted(len(base.kernels), 'kernel')}"
    other = report.other
    if other is not None and other.cycles is not None and base.cycles is not None:
        ends = "is as quick as that" if other.cycles == base.cycles else "loses too"
        wins = "wins" if other.cycles < base.cycles else ends
        text += f"; split_rule {other.device.split_rule} {wins}, with {other.cycles:,} cycles"
    return text


def _what(report: FusionReport) -> Facts:
    graph, chip, device = report.graph, report.chip, report.asked.device
    name = report.source if report.source.startswith(graph.name) else f"{graph.name}, {report.source}"
    where = f"{chip.name}, {counted(len(chip.cores), 'core')} at {chip.frequency_mhz:g} MHz, engine {report.engine}"
    rules = f"split_rule {device.split_rule}; at most {device.block_threads:,} threads and "
    rules += f"{device.shared_limit:,} bytes of shared memory a block; rows up to {device.split_length:,} stay whole"
    return facts(
        ("graph", f"{name}; {counted(len(graph.nodes), 'node')}"),
        *(("", each) for each in graph.about),
        ("chip", where),
        ("settings", rules),
    )


def _plan(report: FusionReport) -> Iterator[Piece]:
    """The plan, sub-graph by sub-graph."""
    graph, plan = report.graph, report.plan
    calls = [node.name for node in graph.nodes if node.kind == COMPUTE]
    fused = sum(node.intensive for node in graph.nodes)
    subgraphs = counted(len(plan.subgraphs), "sub-graph")
    text = f"{counted(fused, 'memory-intensive operation')} in {subgraphs}, a kernel each"
    text += f"; left to a library: {_names(calls)}" if calls else ""
    pairs = [("plan", text)]
    for each in plan.refused:
        operand, reader = graph.nodes[each.operand].name, graph.nodes[each.reader].name
        path = " -> ".join(graph.nodes[at].name for at in each.path)
        pairs.append(("refused", f"{operand} -> {reader}: one kernel of both would be a cycle over {path}"))
    yield facts(*pairs)
    for number, subgraph in enumerate(plan.subgraphs[:_MOST_SUBGRAPHS]):
        yield _subgraph(graph, number, subgraph)
    more = len(plan.subgraphs) - _MOST_SUBGRAPHS
    yield f"and {counted(more, 'more sub-graph')}: --json has them" if more > 0 else None


def _subgraph(graph: Graph, number: int, plan: PlannedSubgraph) -> Section:
    kernel = plan.kernel
    text = f"{counted(len(plan.nodes), 'operation')}; {counted(kernel.blocks, 'block')} of "
    text += f"{counted(kernel.threads, 'thread')}, {kernel.registers} registers each; "
    text += f"a wave is {kernel.wave:,} blocks; shared memory {kernel.shared_bytes:,} bytes a block"
    if kernel.shared_bytes_before_reuse > kernel.shared_bytes:
        text += f" ({kernel.shared_bytes_before_reuse:,} without reuse)"
    if kernel.grid_barriers:
        text += f"; {counted(kernel.grid_barriers, 'grid barrier')}"
        text += ", one of them at the end" if kernel.end_barrier and kernel.grid_barriers > 1 else ""
        text += " at the end" if kernel.end_barrier and kernel.grid_barriers == 1 else ""
    free, overflowed = (_names([graph.nodes[at].name for at in some]) for some in (plan.free, plan.overflowed))
    about = facts(
        (f"sub-graph {number}", text),
        *((f"  group {at}", _group_words(graph, group)) for at, group in enumerate(plan.groups)),
        ("  free", f"{free}: inlined where read" if free else ""),
        ("  overflow", f"shared memory is too small: {overflowed} went to global memory" if overflowed else ""),
    )
    rows = [_stage_row(graph, plan, stage) for stage in kernel.stages]
    heads = ["<  stage", "<operation", "elements", "group", "<scheme", "<", "<"]
    return Section.of(about, grid(heads, rows, limit=_MOST_STAGES, more="stages; --json has them"))


def _group_words(graph: Graph, group: Group) -> str:
    text = f"{group.kind}, backbone {graph.nodes[group.backbone].name}"
    if group.kind != "element":
        text += f" ({counted(group.rows, 'result')} of {counted(group.length, 'element')})"
    if group.sub_backbones:
        text += f", sub-backbones {_names([graph.nodes[at].name for at in group.sub_backbones])}"
    return text if group.mapping is None else f"{text}; {_mapping(group.mapping)}"


def _mapping(of: ThreadMapping) -> str:
    """Which thread computes which elements, in words."""
    text = f"{of.kind}: {counted(of.blocks, 'block')} of {counted(of.threads, 'thread')}{_SIDES.get(of.kind, '')}"
    if of.kind == "pack":
        text += f", {of.per_block:,} rows side by side" if of.per_block > 1 else ""
        text += f", {of.lanes:,} threads a row"
    if of.pieces > 1:
        text += f", {of.pieces:,} blocks share a result, {of.piece:,} elements each"
    return text + (f", {of.tasks:,} one after the other" if of.tasks > 1 else "")


def _stage_row(graph: Graph, plan: PlannedSubgraph, stage: Stage) -> tuple[str | int, ...]:
    node = graph.nodes[stage.node]
    group = next((str(at) for at, each in enumerate(plan.groups) if stage.node in each.members), "-")
    marks = ["grid barrier before"] if stage.grid_barrier else []
    marks += [f"split in {stage.partials}"] if stage.partials else []
    marks += ["output"] if stage.written and stage.scheme not in (GLOBAL, OUTPUT) else []
    where = f"buffer {stage.buffer}, {stage.bytes:,} bytes" if stage.scheme == SHARED else ""
    return f"  {short_path(node.name, 28)}", node.op, node.size, group, stage.scheme, where, ", ".join(marks)


def _decisions(report: FusionReport) -> Iterator[Section]:
    """Why the plan is so: all decisions, sub-graph by sub-graph."""
    for number, each in enumerate(report.plan.subgraphs):
        rows = [[f"  {one.about}", short_path(one.node, 28)] for one in each.decisions]
        heads = table(rows, left=[0, 1]) if rows else []
        said = [f"{one.chosen}, because {one.because}" for one in each.decisions]
        width = max(map(len, heads), default=0) + 2
        yield Section.of(Facts(tuple(zip(heads, said, strict=True)), width), title=f"DECISIONS on sub-graph {number}")


def _names(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(short_path(each, 28) for each in names[:_MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def _modes(report: FusionReport) -> Iterator[Section]:
    rows = [*report.rows, *([] if report.other is None else [report.other])]
    timed, filled = _tables(report, "mode", rows)
    yield Section.of(*timed, _legend(report, rows))
    over = "the time of the kernels" if _simulated(rows) else "the kernels"
    about = f"cores: share with a block; occupancy: share of the slots for warps (both: mean over {over}); "
    about += "shared bytes: of a block, of the kernel with the most"
    yield Section.of(filled, about, report.asked.not_simulated)
    meanings = facts(*((each.name, _MEANINGS[each.name]) for each in report.rows))
    other, stitched, text = report.other, report.stitched, ""
    if other is not None and stitched is not None and other.cycles is not None and stitched.cycles is not None:
        rules = other.device.split_rule, stitched.device.split_rule
        text = f"split_rule {rules[0]} takes {_compared(other.cycles, stitched.cycles)} split_rule {rules[1]}"
    yield Section.of(meanings, text, _MEMORY_ONLY)


def _simulated(rows: Sequence[FusionRow]) -> bool:
    return any(row.figures is not None for row in rows)


def _compared(mine: int, its: int) -> str:
    """A time against another, in words."""
    if mine == its:
        return "as long as"
    if mine >= 2 * its:
        return f"{mine / its:.2f} times the time of"
    return f"{percent(abs(mine - its), its)} {'less' if mine < its else 'more'} time than"


def _tables(report: FusionReport, title: str, rows: Sequence[FusionRow]) -> tuple[list[Grid | str], Grid]:
    """Ways to cut the graph, a row each: what they move and how long they take; how they fill the chip."""
    timed: list[list[Cell]] = []
    filled: list[list[Cell]] = []
    for row in rows:
        dram = None if row.figures is None else row.figures.dram_bytes
        moved = (len(row.kernels), row.counts.read, row.counts.written, dram, row.counts.recomputed)
        timed.append([row.name, *moved, *_timed(report, row)])
        shares = [percent(row.mean(of), 1) for of in (row.cores, row.occupancy)]
        shared = max(each.shared_bytes for each in row.kernels)
        before = max(each.shared_bytes_before_reuse for each in row.kernels)
        filled.append([row.name, row.waves, *shares, row.grid_barriers, shared, before])
    heads: list[str | Column] = [f"<{title}", "kernels", "read", "written", "DRAM", "recomputed", "cycles", "us"]
    heads += ["launches", Column("ratio", digits=3)]
    refused = [f"{row.name} was not simulated: {row.refused}" for row in rows if row.refused]
    fill = grid(["<", "waves", "cores", "occupancy", "grid barriers", "shared bytes", "without reuse"], filled)
    return [grid(heads, timed), *refused], fill


def _legend(report: FusionReport, rows: Sequence[FusionRow]) -> str:
    """What the columns of times are."""
    base = report.strongest
    split = any(stage.partials for row in rows for kernel in row.kernels for stage in kernel.stages)
    text = "read, written: bytes beyond the chip, each element once a kernel"
    text += ", without the partials of split results" if split else ""
    text += f"; {_DRAM}" if _simulated(rows) else ""
    text += f"; recomputed: {_RECOMPUTED}; launches: their share of the time"
    return text + (f"; ratio: {_RATIO.format(base.name, _strength(report))}" if base is not None else "")


def _timed(report: FusionReport, row: FusionRow) -> list[Cell]:
    if row.cycles is None or row.launches is None:
        return [None] * 4
    us = three_digits(cycles_to_us(row.cycles, report.chip.frequency_mhz))
    return [row.cycles, us, percent(row.launches, 1), report.ratio_of(row)]


def _strength(report: FusionReport) -> str:
    """Among which baselines the one that rows are compared with is the strongest."""
    simulated = {row.name for row in report.rows if row.cycles is not None}
    without = [each for each in MODES if each not in simulated and each != STITCH]
    if not without:
        return "the strongest baseline"
    return f"the strongest of the baselines here, without {listed(without, 'and')}"


def _ablations(report: FusionReport) -> Iterator[Section]:
    """What each mechanism of the pass adds."""
    if not report.ablations:
        return
    timed, filled = _tables(report, "step by step", report.ablations)
    yield Section.of(*timed)
    yield Section.of(filled)
    meanings = facts(*((each.name, ABLATION[each.name]) for each in report.ablations))
    worse = [
        f"{each.name} takes {each.cycles - before.cycles:,} cycles more than {before.name}"
        for before, each in pairwise(report.ablations)
        if each.cycles is not None and before.cycles is not None and each.cycles > before.cycles
    ]
    yield Section.of(meanings, f"not every step is a gain here: {'; '.join(worse)}" if worse else "")


def _kernels(report: FusionReport) -> Section | None:
    """Each kernel of the row that is shown in full."""
    row = report.reported
    if not row.kernels:
        return None
    heads = [f"<kernel of {row.name}", "blocks x threads", "waves", "registers", "shared", "cores", "occupancy"]
    rows = []
    spans = [None] * len(row.kernels) if row.figures is None else row.figures.kernels
    for kernel, counts, span in zip(row.kernels, row.counts.kernels, spans, strict=True):
        blocks = f"{kernel.blocks:,} x {kernel.threads:,}"
        sizes = (up(kernel.blocks, kernel.wave), kernel.registers, kernel.shared_bytes)
        shares = percent(row.cores(kernel), 1), percent(row.occupancy(kernel), 1)
        moved = counts.read, counts.written, None if span is None else span.cycles
        rows.append((short_path(kernel.name, 24), blocks, *sizes, *shares, *moved))
    table = grid([*heads, "read", "written", "cycles"], rows, limit=_MOST_KERNELS, more="kernels; --json has them")
    if row.figures is None:
        return Section.of(table)
    return Section.of(table, f"cycles without the launch, which takes {row.figures.launch:,} before each kernel")


def _executed(report: FusionReport) -> Facts:
    """What the kernels computed, compared with numpy."""
    done = report.executed
    if not done:
        return facts(("executed", f"no: {report.asked.not_executed or 'kernels were not executed on numbers'}"))
    if report.wrong:
        names = [name for name, each in done.items() if not each.equal]
        return facts(("executed", f"NOT equal to numpy: {listed(names, 'and')}; why stands at the top"))
    far = [each.difference for each in done.values() if each.difference is not None]
    text = f"equal to numpy within {max(each.largest for each in far):.2g} ({', '.join(done)}), block by block and "
    text += "thread by thread, reading only what each scheme allows; inputs drawn with seed "
    return facts(("executed", f"{text}{report.asked.seed}{_endless(far)}"))


def _endless(differences: Sequence[Difference]) -> str:
    """How many of the compared numbers show little; empty: none."""
    most = max(differences, key=lambda each: each.endless / max(1, each.elements))
    if not most.endless:
        return ""
    return f"; {most.endless:,} of {most.elements:,} numbers are infinite or NaN in numpy too, which shows little"


_KERNEL = (
    "name subgraph blocks threads wave registers shared_bytes shared_bytes_before_reuse buffers scratch grid_barriers "
    "end_barrier"
)


def _data(report: FusionReport) -> dict[str, Any]:
    """The graph as plain data of schema `lstmsim/fusion/2`."""
    graph = report.graph
    names = [node.name for node in graph.nodes]
    refused = [
        {"operand": names[each.operand], "reader": names[each.reader], "path": [names[at] for at in each.path]}
        for each in report.plan.refused
    ]
    return {
        "schema": _SCHEMA,
        "wrong": list(report.wrong),
        "graph": {
            "name": graph.name,
            "source": report.source,
            "about": list(graph.about),
            "nodes": len(graph.nodes),
            "memory_intensive": sum(node.intensive for node in graph.nodes),
            "elements": report.asked.elements,
            "outputs": list(graph.outputs),
        },
        **picked(report, "chip=chip.name frequency_mhz=chip.frequency_mhz engine seed=asked.seed device=asked.device"),
        "subgraphs": [_subgraph_data(report, each) for each in report.plan.subgraphs],
        "refused_edges": refused,
        "mode": report.mode,
        "modes": [_row_data(each, report) for each in report.rows],
        "reported": _kernels_data(report.reported),
        "strongest_baseline": None if report.strongest is None else report.strongest.name,
        "ratio_to_strongest": report.ratio,
        "loses": None if report.ratio is None else report.ratio > 1,
        "other_rule": None if report.other is None else _row_data(report.other, report),
        "ablations": [_row_data(each, report) for each in report.ablations],
        **picked(report, "left_out=asked.fused.LEFT_OUT remarks"),
    }


def _subgraph_data(report: FusionReport, plan: PlannedSubgraph) -> dict[str, Any]:
    names = [node.name for node in report.graph.nodes]
    return {
        "nodes": [names[each] for each in plan.nodes],
        "groups": [group_data(names, each) for each in plan.groups],
        "free": [names[each] for each in plan.free],
        "kernel": picked(plan.kernel, _KERNEL),
        "stages": [_stage_data(report, plan, each) for each in plan.kernel.stages],
        "overflowed": [names[each] for each in plan.overflowed],
        "decisions": [picked(each, "about node chosen because") for each in plan.decisions],
    }


def group_data(names: Sequence[str], group: Group) -> dict[str, Any]:
    """A group with its mapping as plain data, operations by their names."""
    return {
        "members": [names[each] for each in group.members],
        "backbone": names[group.backbone],
        "sub_backbones": [names[each] for each in group.sub_backbones],
        **picked(group, "kind rows length mapping"),
    }


def _stage_data(report: FusionReport, plan: PlannedSubgraph, stage: Stage) -> dict[str, Any]:
    node = report.graph.nodes[stage.node]
    return {
        "node": node.name,
        **picked(node, "op shape"),
        "group": next((at for at, each in enumerate(plan.groups) if stage.node in each.members), None),
        **picked(stage, "scheme written partials grid_barrier_before=grid_barrier"),
        "buffer": None if stage.buffer < 0 else stage.buffer,
        "bytes": stage.bytes,
    }


def _row_data(row: FusionRow, report: FusionReport) -> dict[str, Any]:
    """A way to cut the graph as plain data."""
    names = "dram_bytes l2_bytes"
    moved = dict.fromkeys(names.split()) if row.figures is None else picked(row.figures, names)
    return {
        "name": row.name,
        "kernels": len(row.kernels),
        **picked(row, "read_bytes=counts.read written_bytes=counts.written"),
        **moved,
        **picked(row, "recomputed=counts.recomputed grid_barriers waves"),
        "shared_bytes": max((each.shared_bytes for each in row.kernels), default=0),
        "shared_bytes_before_reuse": max((each.shared_bytes_before_reuse for each in row.kernels), default=0),
        "occupancy": row.mean(row.occupancy),
        "cores_used": row.mean(row.cores),
        "makespan_cycles": row.cycles,
        "us": None if row.cycles is None else cycles_to_us(row.cycles, report.chip.frequency_mhz),
        "launch_share": row.launches,
        "ratio_to_strongest": report.ratio_of(row),
        "refused": row.refused or None,
        "executed": _checked_data(row),
    }


def _checked_data(row: FusionRow) -> dict[str, Any] | None:
    if row.checked is None:
        return None
    difference = row.checked.difference
    return {
        "equal_to_numpy": row.checked.equal,
        "largest_difference": None if difference is None else min(difference.largest, 1e308),
        "elements": 0 if difference is None else difference.elements,
        "not_finite": 0 if difference is None else difference.endless,
        "fault": row.checked.fault or None,
    }


def _kernels_data(row: FusionRow) -> dict[str, Any]:
    """What is known of each kernel of a row, and of its run."""
    figures, kernels = row.figures, []
    spans = [None] * len(row.kernels) if figures is None else figures.kernels
    for kernel, counts, span in zip(row.kernels, row.counts.kernels, spans, strict=True):
        data = picked(kernel, _KERNEL) | picked(counts, "read_bytes=read written_bytes=written recomputed")
        data |= {"occupancy": row.occupancy(kernel), "cores_used": row.cores(kernel)}
        kernels.append(data if span is None else data | picked(span, "arrives ends cycles"))
    run = {} if figures is None else picked(figures, "launch_cycles=launch accounts account_cycles counts busy")
    return {"name": row.name, "kernels": kernels, **run}


def _records(report: FusionReport) -> Iterator[dict[str, Any]]:
    """A row for each way to cut the graph."""
    other = [] if report.other is None else [report.other]
    for what, rows in {"mode": report.rows, "other_rule": other, "ablation": report.ablations}.items():
        yield from ({"what": what, **_row_data(each, report)} for each in rows)


def plot_ways(report: FusionReport, look: Look = SCREEN) -> Picture:
    """Draw the cycles of each way to cut the graph into kernels, with their number.

    report: from `run_fusion`.
    look: how wide it is, and what it is made for.
    """
    from lstmsim.report.pictures.bars import plot

    def named(row: FusionRow) -> str:
        return f"{row.name} ({counted(len(row.kernels), 'kernel')})"

    ways = [(named(each), each.cycles) for each in (*report.rows, *report.ablations)]
    return plot(ways, named(report.reported), f"{report.source}: cycles of ways to cut it", look)


FORMS = Forms(_data, document, _records, picture="lstmsim.studies.fuse.report:plot_ways", headed=True)
