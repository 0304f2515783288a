"""Threads for a matrix product: the plan and other divisions simulated, the product computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import Any

from lstmsim import engines
from lstmsim.machines.gemm import CACHES, RELIEFS, Cut, Division, GemmFigures, GemmPlan
from lstmsim.machines.registry import target_of
from lstmsim.model.numerics.matrices import Matrix, drawn_matrices, largest_error, same_integers
from lstmsim.studies.gemm.asked import Asked, asked_for, cut_and_threads, cut_for, shape_asked
from lstmsim.studies.gemm.request import GemmRequest
from lstmsim.studies.gemm.result import BY_SHAPES, Baselines, Computed, GemmReport, GemmRow
from lstmsim.studies.shared.request import takes
from lstmsim.studies.sweep.processes import processors

#: Is called with simulations done and in all.
Progress = Callable[[int, int], None]
#: Most accesses to lines of all divisions that are simulated to compare a plan with, unless baselines are asked for.
_MOST_ACCESSES = 1 << 31
#: So many times as long does it take where nothing native is there.
_PLAIN_TIMES = 128
#: Most multiply-accumulates, and most numbers in A and B, of a product that is computed without being asked for: some
#: seconds, and half a GiB.
_MOST_MACS, _MOST_NUMBERS = 1 << 28, 1 << 24


@takes(GemmRequest)
def run_gemm(request: GemmRequest) -> GemmReport:
    """Plan threads for C = A B, simulate the plan and other cuts, and compute C in the order of the fastest one.

    `InputError` for sizes, threads, cuts or settings that are wrong, and for a chip that has no threads for products.

    >>> report = run_gemm(8, 64, 64, threads=4, baselines=False)
    >>> report.figures.makespan > 0, report.computed.integers_equal
    (True, True)
    """
    shape = shape_asked(request)
    given, threads = cut_and_threads(request.cut, request.threads)
    asked = asked_for(request, shape, threads)
    plan = asked.machine.plan(asked.chip, asked.task)
    cut = cut_for(asked, given)
    baselines = _baselines_of(asked, plan, request, cut)
    done = _computed(asked, baselines.ran.division, request.numbers, request.seed)
    remarks = (*shape.remarks, *baselines.remarks)
    return GemmReport(
        shape.source,
        asked.chip,
        asked.task,
        asked.engine,
        request.relief,
        plan,
        baselines,
        done,
        request.seed,
        remarks,
        cut,
    )


def _baselines_of(asked: Asked, plan: GemmPlan, request: GemmRequest, given: Cut | None) -> Baselines:
    """Simulate a plan, and what it is compared with."""
    relief, wanted, ablate = request.relief, request.baselines, request.ablate
    bench = _Bench(asked, request.progress, 0 if not ablate else len(RELIEFS) - 1)
    planned = bench.divided(plan.division.cut)
    ran = None if given is None and relief == "plan" else bench.divided(given or planned.cut, relief)
    pairs = [bench.divided(each) for each in asked.machine.mn_cuts(asked.task)]
    candidates = [bench.divided(each.cut) for each in plan.ranked]
    own = asked.task.caches
    plans = {each: planned if each == own else bench.divided(bench.planned(caches=each).cut) for each in CACHES}
    shaped = bench.planned(settings=asked.machine.BY_SHAPES)
    first = [planned, *plans.values(), *([] if wanted is False else [*pairs[:1], shaped]), *([ran] if ran else [])]
    others = [each for each in dict.fromkeys([*candidates, *pairs]) if each not in first]
    bench.run(first, 0 if wanted is False else len(others))
    all_of_them = bench.bearable(planned, len(others)) if wanted is None else wanted
    bench.run(others if all_of_them else [])
    cut = (ran or bench.fastest(own, planned)).cut
    reliefs = {each: bench.divided(cut, each) for each in RELIEFS[1:]} if ablate and cut.p_k > 1 else {}
    bench.run(list(reliefs.values()))
    kept = pairs if all_of_them else pairs[: 0 if wanted is False else 1]
    return Baselines(
        ran=bench.row("this run", ran or bench.fastest(own, planned)),
        planned=bench.row("the plan", planned),
        plans={name: bench.row(f"the plan for {name} caches", each) for name, each in plans.items()},
        by_shapes=None if wanted is False else bench.row(BY_SHAPES, shaped),
        candidates=tuple(bench.row(each.cut.short, each) if each in bench.ready else None for each in candidates),
        pairs=tuple(bench.row(each.cut.short, each) for each in kept),
        pairs_known=len(pairs),
        ablations=tuple(bench.row(name, each) for name, each in reliefs.items()),
        simulated=tuple(bench.rows([planned, *candidates])),
        left_out=len({*candidates, *pairs} - bench.ready.keys()),
        remarks=_remarks(cut, relief, wanted, ablate, all_of_them),
    )


class _Bench:
    """Where divisions of a product are simulated, each once; `later`: how many more may come than `run` gets."""

    def __init__(self, asked: Asked, progress: Progress | None, later: int) -> None:
        self._asked, self._progress, self._later = asked, progress, later
        self._count = 0
        self.ready: dict[Division, Mapping[str, GemmFigures]] = {}

    def divided(self, cut: Cut, relief: str = "plan") -> Division:
        division: Division = self._asked.machine.division(self._asked.chip, self._asked.task, cut, relief)
        return division

    def planned(self, **changes: Any) -> Division:
        """The plan of a task with changes."""
        plan: GemmPlan = self._asked.machine.plan(self._asked.chip, replace(self._asked.task, **changes))
        return plan.division

    def run(self, divisions: Sequence[Division], others: int = 0) -> None:
        """Simulate what was not simulated, with cold and with warm caches.

        The traffic of caches is worked out outside of Python, so threads of this process do it side by side.
        """
        new = [each for each in dict.fromkeys(divisions) if each not in self.ready]
        if not new:
            return
        self._count = self._count or len(new) + others + self._later
        ready: dict[Division, Mapping[str, GemmFigures]] = {}
        self._tell(ready)
        pool = ThreadPoolExecutor(max(1, min(len(new), processors())))
        try:
            calls = {pool.submit(self._figures, each): each for each in new}
            for call in as_completed(calls):
                ready[calls[call]] = call.result()
                self._tell(ready)
        finally:
            # after a mistake, or an interrupt, what has not begun is not begun
            pool.shutdown(cancel_futures=True)
        self.ready |= {each: ready[each] for each in new}

    def _tell(self, ready: Mapping[Division, Any]) -> None:
        if self._progress is not None:
            self._progress(len(self.ready) + len(ready), self._count)

    def _figures(self, division: Division) -> Mapping[str, GemmFigures]:
        asked, ready = self._asked, {}
        # warm caches first: they come out of cold ones, so that these are known then
        for caches in reversed(CACHES):
            work = asked.work(division, caches)
            trace = engines.run(work.program, asked.engine, check=False)
            ready[caches] = asked.machine.figures(asked.chip, work, trace)
        return {each: ready[each] for each in CACHES}

    def bearable(self, one: Division, many: int) -> bool:
        """Whether so many divisions like one that was simulated take no minutes."""
        accesses = sum(each.counts.l1 for each in self.ready[one].values()) * many
        return accesses <= (_MOST_ACCESSES if engines.has_fast() else _MOST_ACCESSES // _PLAIN_TIMES)

    def row(self, name: str, division: Division) -> GemmRow:
        return GemmRow(name, division, self.ready[division])

    def rows(self, first: Sequence[Division]) -> list[GemmRow]:
        """Everything that was simulated, with some that come first."""
        order = dict.fromkeys([*first, *self.ready])
        return [self.row(each.cut.short, each) for each in order if each in self.ready]

    def fastest(self, caches: str, plan: Division) -> Division:
        """The fastest of everything so far; of equals the plan."""
        return min(self.rows([plan]), key=lambda each: each.cycles(caches)).division


def _remarks(cut: Cut, relief: str, wanted: bool | None, ablate: bool, all_of_them: bool) -> tuple[str, ...]:
    said = []
    if wanted is None and not all_of_them:
        said.append(
            "the other candidates and M/N pairs are left out, because simulating them would take minutes: ask for "
            "baselines"
        )
    if cut.p_k == 1 and (relief != "plan" or ablate):
        said.append("no threads share a block of C in this cut, so all reliefs are the same: there is none to compare")
    return tuple(said)


def _computed(asked: Asked, division: Division, wanted: bool | None, seed: int) -> Computed | None:
    """Compute C as the threads do, once of whole numbers and once in floating point."""
    product = division.product
    small = product.macs <= _MOST_MACS and (product.m + product.n) * product.k <= _MOST_NUMBERS
    if wanted is False or (wanted is None and not small):
        return None
    width = target_of(asked.chip.kind).element_bytes(asked.chip)
    kind = {2: "float16", 8: "float64"}.get(width or 4, "float32")

    def product_of(kind: str) -> tuple[Matrix, Matrix, Matrix]:
        a, b = drawn_matrices(product.m, product.n, product.k, kind, seed)
        return a, b, asked.machine.computed(asked.chip, division, a, b)

    # one after the other, because operands may be large
    equal = same_integers(*product_of("int64"))
    a, b, result = product_of(kind)
    return Computed(equal, kind, result, largest_error(a, b, result))
