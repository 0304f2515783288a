"""Fusion of a graph's memory-intensive part on a chip: planned, executed, simulated, compared with other cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, must_be
from lstmsim.machines.registry import target_of
from lstmsim.model.fusion.baselines import ablation, kernels_of
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.interpreter.checks import overlap_remarks
from lstmsim.model.fusion.plan import MODES, SPLIT_RULES, FusionDevice, FusionPlan, PlannedKernel
from lstmsim.model.fusion.planner import planned
from lstmsim.report.results import Table
from lstmsim.studies.fuse.graph import graph_of, sizes_from
from lstmsim.studies.fuse.runs import Asked, Checked, FusionRow, row_of
from lstmsim.studies.program.flat_runs import timeline_of
from lstmsim.studies.shared.arguments import refuse, wrong_names, wrong_whole
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.shared.product_options import chip_of, options_from
from lstmsim.studies.simulate.run import check_engine

if TYPE_CHECKING:
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.model.scenario import Chip

__all__ = ["STITCH", "FusionReport", "run_fusion", "simulated_row"]

#: The mode of the pass itself; the others are what it is compared with.
STITCH = "stitch"

#: Is called with ways to cut the graph done and in all.
_Progress = Callable[[int, int], None]
#: A name, the numbers and settings that kernels were planned with, and the kernels.
_Way = tuple[str, FusionDevice, tuple[PlannedKernel, ...]]


@dataclass(frozen=True, eq=False)
class FusionReport(Table, forms="lstmsim.studies.fuse.text"):
    """A graph whose memory-intensive part was fused.

    source: where the graph is from.
    asked: the graph, the chip with its numbers and settings of the pass, the engine that ran.
    plan: the plan.
    rows: the ways to cut the graph that were asked for, a mode each.
    mode: the one of them that is told in full.
    other: the plan under the other rule for splits, if its kernels differ; None: they do not, or `stitch` was left out.
    ablations: the pass with its mechanisms one after the other, in the order of the paper.
    remarks: further sentences.
    """

    source: str
    asked: Asked
    plan: FusionPlan
    rows: tuple[FusionRow, ...]
    mode: str
    other: FusionRow | None
    ablations: tuple[FusionRow, ...]
    remarks: tuple[str, ...]

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.asked.graph

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.asked.chip

    @property
    def engine(self) -> str:
        """The engine that ran."""
        return self.asked.engine

    @property
    def told(self) -> FusionRow:
        """The row that is told in full."""
        return next(each for each in self.rows if each.name == self.mode)

    @property
    def stitched(self) -> FusionRow | None:
        """The row of the pass; None: it was not asked for."""
        return next((each for each in self.rows if each.name == STITCH), None)

    @property
    def strongest(self) -> FusionRow | None:
        """The baseline that takes the fewest cycles, the first of equals; None: none was simulated."""
        some = [each for each in self.rows if each.name != STITCH and each.cycles is not None]
        return min(some, key=lambda each: each.cycles or 0, default=None)

    @property
    def ratio(self) -> float | None:
        """Cycles of the pass over those of the strongest baseline: above 1 the pass loses; None: one is not known."""
        return None if self.stitched is None else self.ratio_of(self.stitched)

    def ratio_of(self, row: FusionRow) -> float | None:
        """Cycles of a row over those of the strongest baseline; None: one is not known."""
        base = self.strongest
        if base is None or base.cycles is None or row.cycles is None:
            return None
        return row.cycles / base.cycles

    @property
    def executed(self) -> dict[str, Checked]:
        """What each row that was executed computed, by the row's name; steps of the ablation may be rows themselves."""
        rows = [*self.rows, *([] if self.other is None else [self.other]), *self.ablations]
        return {each.name: each.checked for each in rows if each.checked is not None}

    @property
    def wrong(self) -> tuple[str, ...]:
        """A sentence for each row whose kernels do not compute what numpy does, or cannot run; none: all is right."""
        return tuple(
            f"{name} is WRONG, please report it: {each.why}" for name, each in self.executed.items() if not each.equal
        )

    @cached_property
    def timeline(self) -> Timeline:
        """What happened cycle by cycle in the row that is told in full, for trace files; it runs once more for it.

        `InputError` if it was not simulated, or has too many operations.
        """
        work = simulated_row(self, "trace").work
        assert work is not None
        return timeline_of(work.flat, work.names, self.chip, self.engine)


def simulated_row(report: FusionReport, place: str) -> FusionRow:
    """The row that is told in full; `InputError` if it has no cycles.

    report: whose row it is.
    place: what needs the cycles, for the mistake.
    """
    row = report.told
    if row.figures is None:
        none = "" if row.kernels else "there is no kernel: the graph has no memory-intensive operation"
        raise InputError(Mistake(place, none or row.refused or f"{row.name} was not simulated: ask for cycles"))
    return row


def run_fusion(
    graph: Path | Graph,
    *,
    sizes: Sequence[str] | Mapping[str, int] = (),
    chip: Path | Chip = "v100",
    chip_overrides: Sequence[str] = (),
    settings: Sequence[str] | Mapping[str, Any] = (),
    modes: Sequence[str] = MODES,
    mode: str | None = None,
    ablate: bool = False,
    cycles: bool | None = None,
    numbers: bool | None = None,
    seed: int = 0,
    engine: str = "fast",
    progress: Callable[[int, int], None] | None = None,
) -> FusionReport:
    """Cut the memory-intensive part of a graph into few kernels, execute and simulate them, and compare other cuts.

    graph: a name of `lstmsim list graphs`, a graph file (YAML, JSON), an ONNX file, or a
    `lstmsim.model.fusion.graph.Graph`.
    sizes: of a named graph or of open axes of an ONNX file, as texts like `"hidden=512"` or a mapping.
    chip: a preset's name, a chip's file, or a chip. chip_overrides: texts like `"partitions=8"`.
    settings: of the pass, as texts like `"split_rule=costed"` or a mapping.
    modes: which ways to cut the graph are compared, of `lstmsim.model.fusion.plan.MODES`.
    mode: the one that is told in full; None: the pass, or the first one if that is not asked for.
    ablate: whether the mechanisms of the pass are added one after the other, in the order of the paper.
    cycles: whether kernels are simulated; None: if the graph is not too large.
    numbers: whether kernels are executed on drawn numbers and compared with numpy; None: if it is not too large.
    seed: of these numbers. engine: a key of `lstmsim.engines.ENGINES`.
    progress: is called with ways to cut the graph done and in all.

    `InputError` for a graph, sizes or settings that are wrong, and for a chip that runs no fused kernels.

    >>> report = run_fusion("softmax", sizes={"rows": 8}, cycles=False)
    >>> [(row.name, len(row.kernels)) for row in report.rows], report.told.checked.equal
    ([('op', 7), ('xla', 3), ('tvm', 3), ('stitch', 1)], True)
    """
    check_engine(engine)
    refuse(_wrong_seed(seed))
    wanted, told = _modes(modes, mode)
    read, source = graph_of(graph, sizes_from(sizes))
    ready = chip_of(chip, chip_overrides)
    fused = target_of(ready.kind).fused_kernels()
    if fused is None:
        text = f"its machine runs no fused kernels; {listed(_chips_with_kernels(), 'and')} do"
        raise InputError(Mistake(f"chip {ready.name}", text))
    device = fused.numbers(ready, options_from(settings, fused.settings, "setting of the pass"))
    asked = Asked(read, fused, ready, device, engines.running(engine), cycles, numbers, seed)
    return _report(asked, source, wanted, told, ablate, progress)


def _report(
    asked: Asked, source: str, modes: Sequence[str], told: str, ablate: bool, progress: _Progress | None
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
        mode=told,
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
    """What tells kernels of the same operations apart under two rules for splits."""
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
    told = overlap_remarks(asked.graph, _kernels(plan), asked.device.warp)
    return (*filter(None, (asked.not_simulated, asked.not_executed)), *large, *told)


def _wrong_seed(seed: object) -> list[Mistake]:
    """What is wrong with a seed; without one, numbers would be others each time, and nobody could repeat them."""
    if seed is None:
        return [Mistake("seed", "must be a whole number of at least 0, got nothing")]
    return wrong_whole("seed", seed, 0)


def _modes(modes: Sequence[str], mode: str | None) -> tuple[tuple[str, ...], str]:
    """The modes in their order, and the one that is told in full."""
    refuse(wrong_names("modes", modes, "the name of a mode"))
    given = [modes] if isinstance(modes, str) else list(modes)
    wrong = [Mistake("modes", must_be(each, MODES)) for each in given if each not in MODES]
    refuse(wrong, [] if given else [Mistake("modes", f"must be some of {listed(MODES)}, got none")])
    wanted = tuple(each for each in MODES if each in given)
    if mode is None:
        return wanted, STITCH if STITCH in wanted else wanted[0]
    if mode not in wanted:
        raise InputError(Mistake("mode", must_be(mode, wanted)))
    return wanted, mode


def _chips_with_kernels() -> list[str]:
    """Names of the presets whose machines run fused kernels."""
    from lstmsim.files.catalog import chip_files
    from lstmsim.studies.shared.loading import load_chip

    return [name for name in chip_files() if target_of(load_chip(name).kind).fused_kernels() is not None]
