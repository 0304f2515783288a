"""Sparse products on a chip: simulated, searched for the fastest setting, computed, compared with other ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.memory import refuse_memory
from lstmsim.base.wording import listed, nearest, show
from lstmsim.machines.kernels import KernelWork, Settings, SparseFigures, SparseTask, Variant
from lstmsim.machines.registry import capability
from lstmsim.model.sparse.csr import takes_sparse_path
from lstmsim.model.sparse.made import Values, drawn_operands, largest_error
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.program.run import totals_of_flat
from lstmsim.studies.shared.products import chip_of, options_from
from lstmsim.studies.shared.request import Path, takes
from lstmsim.studies.sparse.asked import LEFT, as_asked, check_side, matrix_of, walked
from lstmsim.studies.sparse.request import SparseRequest
from lstmsim.studies.sparse.result import Search, SparseReport, SparseRow, Tried

if TYPE_CHECKING:
    from lstmsim.model.scenario import Chip
    from lstmsim.model.sparse.csr import Csr
    from lstmsim.report.pictures.figures import Picture

#: Most multiply-accumulates of a product whose baselines are simulated without being asked for.
_MOST_BESIDE = 4_000_000
#: Is called with settings of a search: done, and known so far.
_Progress = Callable[[int, int], None]


@takes(SparseRequest)
def run_sparse(request: SparseRequest) -> SparseReport:
    """Simulate a sparse product, and compute its result by the schedule that was simulated.

    `InputError` for a matrix or a parameter that is wrong, and for a chip that runs no sparse kernels.

    >>> report = run_sparse("silero-vad-16k:l0", "spmv", prune=0.9, chip="edge", baselines=False)
    >>> report.statistics.entries, report.result.shape, report.error < 1e-6
    (13108, (512,), True)
    """
    kernel, side, threshold = request.kernel, request.side, request.threshold
    ready = chip_of(request.chip, request.chip_overrides)
    kernels, chosen = _method(ready, kernel, request.method, threshold)
    check_side(kernel, side)
    read, about = matrix_of(
        request.matrix, request.prune, request.prune_by, request.banks, request.block, request.values_seed
    )
    chosen = chosen if threshold is None or takes_sparse_path(read, threshold) else "dense"
    _check_memory(walked(read, side), kernel, chosen, 1 if kernel == "spmv" else request.columns)
    operands = drawn_operands(kernel, walked(read, side), 1 if kernel == "spmv" else request.columns, request.seed)
    given = options_from(request.options, kernels.parameters(kernel, chosen))
    task = SparseTask(kernel, chosen, walked(read, side), operands, given)
    asked = _Asked(kernels, ready, task, request.engine)
    found = _searched(asked, request.progress) if request.best else None
    report = _report(asked, found, about, request.seed, request.baselines, request.ablate)
    return report if side == LEFT else replace(report, side=side, matrix=read, result=as_asked(report.result, side))


#: Columns of C that most thread blocks work on; measured bytes of a row, and of an entry, in each such block.
_TILE, _OF_ROW, _OF_ENTRY = 32, 600, {"spmv": 70, "spmm": 150, "sddmm": 400}


def _check_memory(matrix: Csr, kernel: str, method: str, columns: int) -> None:
    """Refuse a product whose dense operands, result and instructions take more memory than a run may."""
    sides, wide = (matrix.rows + matrix.columns) * columns, matrix.columns if kernel == "sddmm" else columns
    blocks, parts = -(-wide // _TILE), -(-columns // _TILE)
    size = 16 * sides
    if method != "dense":
        size += _OF_ROW * matrix.rows * blocks + _OF_ENTRY[kernel] * matrix.entries * parts
    shown = f"{kernel} of {matrix.rows:,} x {matrix.columns:,} with {columns:,} columns"
    refuse_memory("matrix", f"the instructions of {shown}", size, "take a smaller matrix or fewer columns")


def _method(chip: Chip, kernel: str, method: str | None, threshold: float | None) -> tuple[ModuleType, str]:
    """The kernels of a chip, and the method; `InputError` if there is no such thing."""
    if threshold is not None and method is not None:
        raise InputError(Mistake("threshold", f"chooses the method; {show(method)} is chosen already"))
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
        baselines=_rows_of(asked, kernels.baselines(chip, task) if baselines else ()),
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


def plot_blocks(report: SparseReport, path: Path | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw the blocks of each core over time, and how much each core has issued.

    path: the picture's file (.png, .svg or .pdf); None: no file.
    look: how wide it is, and what it is made for.

    >>> from lstmsim import plot_blocks, run_sparse
    >>> report = run_sparse("silero-vad-16k:l0", "spmv", prune=0.98, chip="edge")
    >>> plot_blocks(report).caption
    'spmv by csr on edge: 17,828 cycles'
    """
    from lstmsim.report.pictures import figures as plots

    title = f"{report.kernel} by {report.method} on {report.chip.name}: {report.figures.makespan:,} cycles"
    return plots.plot(report.figures.blocks, report.figures.busy, path, title=title, look=look)
