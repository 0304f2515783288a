"""Fusion of the memory-intensive part of a graph on a chip: planned, executed, simulated, compared with other cuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed
from lstmsim.machines.registry import capability
from lstmsim.model.fusion.baselines import ablation, kernels_of
from lstmsim.model.fusion.interpreter.checks import difference_of_run, overlap_remarks
from lstmsim.model.fusion.interpreter.run import Fault
from lstmsim.model.fusion.plan import SPLIT_RULES, FusionDevice, FusionPlan, PlannedKernel
from lstmsim.model.fusion.planner import planned
from lstmsim.model.fusion.schemes import counted
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.fuse.asked import STITCH, Asked, graph_of, modes_asked, sizes_from
from lstmsim.studies.fuse.request import FusionRequest
from lstmsim.studies.fuse.result import Checked, FusionReport, FusionRow, simulated_row
from lstmsim.studies.program.run import totals_of_flat
from lstmsim.studies.shared.products import chip_of, options_from, presets_with
from lstmsim.studies.shared.request import Path, names_of, takes

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture

#: Is called with ways to cut the graph done and in all.
_Progress = Callable[[int, int], None]
#: A name, the numbers and settings that kernels were planned with, and the kernels.
_Way = tuple[str, FusionDevice, tuple[PlannedKernel, ...]]


@takes(FusionRequest)
def run_fusion(request: FusionRequest) -> FusionReport:
    """Cut the memory-intensive part of a graph into few kernels, execute and simulate them, and compare other cuts.

    `InputError` for a graph, sizes or settings that are wrong, and for a chip that runs no fused kernels.

    >>> report = run_fusion("softmax", sizes={"rows": 8}, cycles=False)
    >>> [(row.name, len(row.kernels)) for row in report.rows], report.reported.checked.equal
    ([('op', 7), ('xla', 3), ('tvm', 3), ('stitch', 1)], True)
    """
    wanted, reported = modes_asked(names_of(request.modes), request.mode)
    read, source = graph_of(request.graph, sizes_from(request.sizes))
    ready = chip_of(request.chip, request.chip_overrides)
    fused = capability(ready.kind, "fusion")
    if fused is None:
        text = f"its machine runs no fused kernels; {listed(presets_with('fusion'), 'and')} do"
        raise InputError(Mistake(f"chip {ready.name}", text))
    device = fused.numbers(ready, options_from(request.settings, fused.SETTINGS, "setting of the pass", "settings"))
    engine = engines.running(request.engine)
    asked = Asked(read, fused, ready, device, engine, request.cycles, request.numbers, request.seed)
    return _report(asked, source, wanted, reported, request.ablate, request.progress)


def _report(
    asked: Asked, source: str, modes: Sequence[str], reported: str, ablate: bool, progress: _Progress | None
) -> FusionReport:
    graph, device = asked.graph, asked.device
    plan = planned(graph, device)
    cuts = {each: kernels_of(graph, plan, device, each) for each in modes}
    ways: list[_Way] = [(name, device, kernels) for name, kernels in cuts.items()]
    other = _other(asked, plan) if STITCH in modes else None
    ways += [] if other is None else [other]
    steps = ablation(graph, plan, device) if ablate else ()
    # what is among the modes is not simulated twice
    ways += [(each.name, device, each.kernels) for each in steps if each.name not in cuts]
    rows: dict[str, FusionRow] = {}
    for done, (name, numbers, kernels) in enumerate(ways):
        if progress is not None:
            progress(done, len(ways))
        rows[name] = row_of(asked, name, numbers, kernels)
    return FusionReport(
        source=source,
        asked=asked,
        plan=plan,
        rows=tuple(rows[each] for each in modes),
        mode=reported,
        other=None if other is None else rows[other[0]],
        ablations=tuple(rows[each.name] for each in steps),
        remarks=_remarks(asked, plan),
    )


def _other(asked: Asked, plan: FusionPlan) -> _Way | None:
    """The pass under the other rule for splits; None if its kernels are the same."""
    rule = next(each for each in SPLIT_RULES if each != asked.device.split_rule)
    device = replace(asked.device, split_rule=rule)
    other = planned(asked.graph, device)
    if [_form(each) for each in _kernels(plan)] == [_form(each) for each in _kernels(other)]:
        return None
    return f"{STITCH} ({rule})", device, kernels_of(asked.graph, other, device, STITCH)


def _kernels(plan: FusionPlan) -> list[PlannedKernel]:
    return [each.kernel for each in plan.subgraphs]


def _form(kernel: PlannedKernel) -> tuple[Any, ...]:
    """The key by which kernels of the same operations differ under two rules for splits."""
    stages = tuple((each.node, each.scheme, each.partials, each.grid_barrier, each.bytes) for each in kernel.stages)
    return kernel.blocks, kernel.threads, kernel.shared_bytes, stages


def _remarks(asked: Asked, plan: FusionPlan) -> tuple[str, ...]:
    if not plan.subgraphs:
        return ("the graph has no memory-intensive operation: there is nothing to fuse",)
    limit = asked.device.shared_limit
    large = (
        f"the kernel {each.name} has {each.shared_bytes:,} bytes of shared memory a block, more than the {limit:,} of "
        "shared_limit: its scratch alone stays, as no value is left that could leave it"
        for each in _kernels(plan)
        if each.shared_bytes > limit
    )
    reported = overlap_remarks(asked.graph, _kernels(plan), asked.device.warp)
    return (*filter(None, (asked.not_simulated, asked.not_executed)), *large, *reported)


def row_of(asked: Asked, name: str, device: FusionDevice, kernels: Sequence[PlannedKernel]) -> FusionRow:
    """Count, execute and simulate kernels, as far as it is asked for.

    asked: where they run.
    name: of the row.
    device: the numbers that the kernels were planned with.
    kernels: all of the graph, in the order in which they run.
    """
    some = tuple(kernels)
    counts = counted(asked.graph, some)
    checked = _checked(asked, device, some) if asked.executes and some else None
    if not asked.simulates or not some:
        return FusionRow(name, device, some, counts, checked, None)
    try:
        work = asked.fused.lower(asked.chip, asked.graph, some, name)
    except InputError as error:
        return FusionRow(name, device, some, counts, checked, None, refused=str(error).replace("\n", "; "))
    figures = asked.fused.figures(asked.chip, work, totals_of_flat(work.flat, work.names, asked.engine))
    return FusionRow(name, device, some, counts, checked, figures, work)


def _checked(asked: Asked, device: FusionDevice, kernels: tuple[PlannedKernel, ...]) -> Checked:
    try:
        return Checked(difference_of_run(asked.graph, kernels, device, asked.seed))
    except Fault as fault:
        return Checked(None, str(fault))


def plot_fusion(report: FusionReport, path: Path | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw the graph: its sub-graphs framed, groups in colour, where each value lies.

    report: what `run_fusion` gives.
    path: the picture's file (.png, .svg or .pdf); None: no file.
    look: how wide it is, and what it is made for.

    `InputError` for a graph of more nodes than one can look at.

    >>> from lstmsim import plot_fusion, run_fusion
    >>> plot_fusion(run_fusion("softmax")).caption
    'softmax on v100, fused part: 6,710 cycles'
    """
    from lstmsim.studies.fuse import picture as plots

    title = f"{report.graph.name} on {report.chip.name}"
    row = report.stitched
    if row is not None and row.cycles is not None:
        # the picture shows calls of libraries too, which these cycles do not have
        title += f", fused part: {row.cycles:,} cycles"
    return plots.plot(report.plan, path, title=title, look=look)


def plot_kernels(report: FusionReport, path: Path | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw the blocks of each core over time, in the mode that is reported in full, and how much each core has issued.

    report: what `run_fusion` gives.
    path: the picture's file (.png, .svg or .pdf); None: no file.
    look: how wide it is, and what it is made for.

    `InputError` if nothing was simulated.

    >>> from lstmsim import plot_kernels, run_fusion
    >>> plot_kernels(run_fusion("softmax")).caption
    'softmax by stitch on v100: 6,710 cycles; 16 of 80 cores run no block, and have no row'
    """
    from lstmsim.report.pictures import figures as plots

    figures = simulated_row(report, "timeline").figures
    assert figures is not None
    title = f"{report.graph.name} by {report.mode} on {report.chip.name}: {figures.makespan:,} cycles"
    return plots.plot(figures.blocks, figures.busy, path, title=title, look=look)
