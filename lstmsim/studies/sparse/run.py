"""Sparse products on a chip: simulated, searched for the fastest setting, computed, compared with other ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, must_be, nearest, show
from lstmsim.machines.kernels import KernelWork, Settings, SparseFigures, SparseTask, Variant
from lstmsim.machines.registry import capability
from lstmsim.model.sparse.csr import Csr, takes_sparse_path
from lstmsim.model.sparse.made import Values, drawn_operands, largest_error
from lstmsim.studies.program.run import totals_of_flat
from lstmsim.studies.shared.arguments import refuse, wrong_number, wrong_whole
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.shared.products import chip_of, options_from
from lstmsim.studies.simulate.run import check_engine
from lstmsim.studies.sparse.request import KERNELS, LEFT, as_asked, check_side, matrix_of, walked
from lstmsim.studies.sparse.result import Search, SparseReport, SparseRow, Tried

if TYPE_CHECKING:
    from lstmsim.model.scenario import Chip
    from lstmsim.report.pictures.figures import Picture

#: Most multiply-accumulates of a product beside which others are simulated without being asked for.
_MOST_BESIDE = 4_000_000
#: Is called with settings of a search: done, and known so far.
_Progress = Callable[[int, int], None]


def run_sparse(
    matrix: Path | Csr,
    kernel: str = "spmm",
    *,
    method: str | None = None,
    threshold: float | None = None,
    side: str = LEFT,
    columns: int = 32,
    chip: Path | Chip = "v100",
    chip_overrides: Sequence[str] = (),
    options: Sequence[str] | Mapping[str, Any] = (),
    prune: float | None = None,
    prune_by: str = "magnitude",
    banks: int = 4,
    block: int = 4,
    seed: int = 0,
    values_seed: int | None = None,
    baselines: bool | None = None,
    ablate: bool = False,
    best: bool = False,
    engine: str = "fast",
    progress: Callable[[int, int], None] | None = None,
) -> SparseReport:
    """Simulate a sparse product, and compute its result by the schedule that was simulated.

    matrix: a file (.mtx, .smtx, each also .gz), weights of a model (`resemblyzer:l1`), or a
    `lstmsim.model.sparse.csr.Csr`. kernel: a key of `KERNELS`. method: how; None: the machine's first one.
    threshold: instead of a method: the machine's first one if more than this fraction of it is zero, else `dense`.
    side: which operand is sparse, and which way round, a key of `lstmsim.studies.sparse.sides.SIDES`.
    columns: of the dense operand, its rows for side `right`; of `sddmm` the length of inner products; `spmv` has one.
    chip: a preset's name, a chip's file, or a chip. chip_overrides: texts like `"partitions=8"`.
    options: parameters of the kernel, as texts like `"tile=64"` or a mapping.
    prune: which fraction of a model's weights goes. prune_by, banks, block: as in
    `lstmsim.model.sparse.made.pruned`.
    seed: of the dense operands. values_seed: of the values of a file that has none; None: each is 1.
    baselines: whether other ways to do the same are simulated too; None: if the product is not too large.
    ablate: whether each mechanism is off in turn. best: whether the fastest setting is searched; `options` stay.
    engine: a key of `lstmsim.engines.ENGINES`. progress: is called with settings of a search: done, and known so far.

    `InputError` for a matrix or a parameter that is wrong, and for a chip that runs no sparse kernels.

    >>> report = run_sparse("silero-vad-16k:l0", "spmv", prune=0.9, chip="edge", baselines=False)
    >>> report.statistics.entries, report.result.shape, report.error < 1e-6
    (13108, (512,), True)
    """
    check_engine(engine)
    refuse(_wrong({"columns": columns, "banks": banks, "block": block}, {"seed": seed, "values_seed": values_seed}))
    refuse(wrong_number("prune", prune), wrong_number("threshold", threshold))
    ready = chip_of(chip, chip_overrides)
    kernels, chosen = _method(ready, kernel, method, threshold)
    check_side(kernel, side)
    read, about = matrix_of(matrix, prune, prune_by, banks, block, values_seed)
    chosen = chosen if threshold is None or takes_sparse_path(read, threshold) else "dense"
    operands = drawn_operands(kernel, walked(read, side), 1 if kernel == "spmv" else columns, seed)
    given = options_from(options, kernels.parameters(kernel, chosen))
    task = SparseTask(kernel, chosen, walked(read, side), operands, given)
    asked = _Asked(kernels, ready, task, engine)
    report = _report(asked, _searched(asked, progress) if best else None, about, seed, baselines, ablate)
    return report if side == LEFT else replace(report, side=side, matrix=read, result=as_asked(report.result, side))


def _wrong(sizes: Mapping[str, int], seeds: Mapping[str, int | None]) -> list[Mistake]:
    """What is wrong with sizes, from 1 on, and seeds, from 0 on."""
    wrong = [each for name, value in sizes.items() for each in wrong_whole(name, value, 1, MAX_SIZE)]
    return wrong + [each for name, value in seeds.items() for each in wrong_whole(name, value or 0, 0, MAX_SIZE)]


def _method(chip: Chip, kernel: str, method: str | None, threshold: float | None) -> tuple[ModuleType, str]:
    """The kernels of a chip, and the method; `InputError` if there is no such thing."""
    if threshold is not None and method is not None:
        raise InputError(Mistake("threshold", f"chooses the method; {show(method)} is chosen already"))
    if kernel not in KERNELS:
        raise InputError(Mistake("kernel", must_be(kernel, KERNELS)))
    kernels = capability(chip.kind, "sparse")
    if kernels is None:
        raise InputError(Mistake(f"chip {chip.name}", "its machine runs no kernels for sparse matrices"))
    methods = kernels.METHODS[kernel]
    if method is not None and method not in methods:
        text = f"{kernel} has {listed(methods)}, got {show(method)}{nearest(str(method), methods)}"
        raise InputError(Mistake("method", text))
    return kernels, next(iter(methods)) if method is None else method


def _report(
    asked: _Asked, found: tuple[_Ran, Search] | None, about: str, seed: int, baselines: bool | None, ablate: bool
) -> SparseReport:
    """The report of a product."""
    if found is not None:
        asked = replace(asked, task=replace(asked.task, options={**asked.task.options, **found[1].chosen}))
    kernels, chip, task = asked.kernels, asked.chip, asked.task
    ran = _simulated(asked, task) if found is None else found[0]
    remarks = (*ran.said, *ran.work.remarks, *_few_blocks(ran.figures))
    if baselines is None:
        baselines = task.matrix.entries * asked.columns <= _MOST_BESIDE
        if not baselines:
            remarks += ("other ways to do the same are left out, because the product is large: ask for baselines",)
    return SparseReport(
        source=about,
        matrix=task.matrix,
        kernel=task.kernel,
        method=task.method,
        columns=asked.columns,
        seed=seed,
        side=LEFT,
        chip=chip,
        engine=engines.running(asked.engine),
        figures=ran.figures,
        result=ran.work.result,
        error=_error_of(task, ran.figures, ran.work.result),
        beside=_rows_of(asked, kernels.baselines(chip, task) if baselines else ()),
        ablations=_rows_of(asked, kernels.ablations(chip, task) if ablate else ()),
        left_out=tuple(kernels.LEFT_OUT),
        meanings=kernels.MEANINGS,
        flat=ran.work.flat,
        names=ran.work.names,
        remarks=remarks,
        search=None if found is None else found[1],
    )


def _few_blocks(figures: SparseFigures) -> tuple[str, ...]:
    """A sentence where the longest kernel has fewer thread blocks than there are cores."""
    longest = max(figures.kernels, key=lambda each: each.cycles, default=None)
    cores = len(figures.busy)
    if longest is None or not 0 < longest.blocks < cores:
        return ()
    count = f"{longest.blocks:,} thread block" + ("" if longest.blocks == 1 else "s")
    return (
        f"kernel {longest.name} has {count} for {cores:,} cores: the others have nothing to do in it; parameters that "
        "divide the work into smaller blocks use more of them",
    )


@dataclass(frozen=True, eq=False)
class _Asked:
    """A product and where it runs."""

    kernels: ModuleType  # of the machine
    chip: Chip  # where
    task: SparseTask  # the product
    engine: str  # a key of `lstmsim.engines.ENGINES`

    @property
    def columns(self) -> int:
        """Of the dense operand; of `sddmm` the length of the inner products."""
        first = self.task.operands[0]
        return first.shape[1] if first.ndim == 2 else 1


@dataclass(frozen=True, eq=False)
class _Ran:
    """A product that was simulated."""

    work: KernelWork  # the program and its result
    figures: SparseFigures  # what it came to
    taken: str = ""  # which of several ways was the fastest; empty if there was one only
    candidates: tuple[tuple[str, int], ...] = ()  # cycles of each of these ways without launches, by name

    @property
    def said(self) -> tuple[str, ...]:
        """Which way was taken, in a sentence."""
        if not self.taken:
            return ()
        spans = ", ".join(f"{name} {cycles:,}" for name, cycles in self.candidates)
        return (f"{self.taken} was taken, the fastest of {len(self.candidates)}: cycles without launches {spans}",)


def _simulated(asked: _Asked, task: SparseTask) -> _Ran:
    """Simulate a product; where its machine leaves a choice, each way, and the fastest is it, the first of equals."""
    choices = asked.kernels.choices(asked.chip, task)
    if not choices:
        return _once(asked, task)
    best, candidates = None, []
    for each in choices:
        ran = replace(_once(asked, replace(task, method=each.method, options=each.options)), taken=each.name)
        candidates.append((each.name, ran.figures.span))
        if best is None or ran.figures.span < best.figures.span:
            best = ran
    assert best is not None
    return replace(best, candidates=tuple(candidates))


def _once(asked: _Asked, task: SparseTask) -> _Ran:
    work = asked.kernels.lower(asked.chip, task)
    return _Ran(
        work, asked.kernels.figures(asked.chip, task, work, totals_of_flat(work.flat, work.names, asked.engine))
    )


def _rows_of(asked: _Asked, variants: Sequence[Variant]) -> tuple[SparseRow, ...]:
    """Simulate other ways to do a product; one that is refused is a row with the reason."""
    rows = []
    for each in variants:
        other = replace(asked.task, method=each.method, options=each.options)
        try:
            ran = _simulated(asked, other)
            fastest = f", {ran.taken} (the fastest of {len(ran.candidates)})" if ran.taken else ""
            rows.append(SparseRow(f"{each.name}{fastest}", ran.figures, note=each.note, method=each.method))
        except InputError as error:
            rows.append(SparseRow(each.name, None, str(error).replace("\n", "; ")))
    return tuple(rows)


def _error_of(task: SparseTask, figures: SparseFigures, result: Values | None) -> float | None:
    """How far a result is from a plain product; None if there is none."""
    if result is None:
        return None
    matrix = task.matrix
    if figures.options.get("mode") == "indicator":
        # positions count alone
        matrix = replace(matrix, values=matrix.values * 0 + 1)
    return largest_error(task.kernel, matrix, task.operands, result)


def _searched(asked: _Asked, progress: _Progress | None = None) -> tuple[_Ran, Search]:
    """Simulate the settings that a machine has for a product, and take the fastest."""
    settings = asked.kernels.settings(asked.chip, asked.task)
    if not settings.together and not settings.alone:
        text = f"{asked.task.method} has no parameter left whose values could be searched"
        raise InputError(Mistake("best", text))
    run = _Search(asked, settings, progress)
    every = [dict(zip(settings.together, each, strict=True)) for each in product(*settings.together.values())]
    run.all_of(every)
    while True:
        before = run.best
        run.all_of(list(_single_changes(settings, before.options)))
        if run.best is before:
            return run.ran, Search(settings, tuple(run.tried.values()), run.best, run.ran_first.figures.by_rule)


def _single_changes(settings: Settings, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every setting that differs from one in a single parameter."""
    for name, values in (*settings.together.items(), *settings.alone.items()):
        for value in values:
            if value != options[name]:
                yield {**options, name: value}


class _Search:
    """Settings on their way through the simulator; only the fastest program is kept."""

    def __init__(self, asked: _Asked, settings: Settings, progress: _Progress | None) -> None:
        self.asked, self.progress = asked, progress
        self.ran = self.ran_first = _simulated(asked, asked.task)
        names = asked.kernels.parameters(asked.task.kernel, asked.task.method)
        self.start = {name: self.ran.figures.options[name] for name in names}
        self.best = Tried(self.start, self.ran.figures.span)
        self.tried = {tuple(self.start.values()): self.best}

    def all_of(self, changes: list[dict[str, Any]]) -> None:
        """Simulate settings that have not been simulated yet."""
        known = len(self.tried)
        for number, each in enumerate(changes):
            if self.progress is not None:
                self.progress(known + number, known + len(changes))
            self._one(self.start | each)

    def _one(self, options: dict[str, Any]) -> None:
        key = tuple(options.values())
        if key in self.tried:
            return
        try:
            ran = _simulated(self.asked, replace(self.asked.task, options=options))
        except InputError:
            self.tried[key] = Tried(options, None)
            return
        self.tried[key] = Tried(options, ran.figures.span)
        if ran.figures.span < self.ran.figures.span:
            self.ran, self.best = ran, self.tried[key]


def plot_blocks(report: SparseReport, path: Path | None = None) -> Picture:
    """Draw the blocks of each core over time, and how much each core has issued.

    path: the picture's file (.png, .svg or .pdf); None: no file.
    """
    from lstmsim.report.pictures import figures as plots

    title = f"{report.kernel} by {report.method} on {report.chip.name}: {report.figures.makespan:,} cycles"
    return plots.plot(report.figures.blocks, report.figures.busy, path, title=title)
