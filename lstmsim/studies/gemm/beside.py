"""What stands beside a plan: the other candidates, all pairs of M/N threads, and the plan's cut under each relief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lstmsim import engines
from lstmsim.machines.gemm import CACHES, RELIEFS, Cut, Division, GemmFigures, GemmPlan
from lstmsim.studies.gemm.runs import Asked, GemmRow, Progress, simulated

__all__ = ["BY_SHAPES", "Beside", "beside_plan"]

#: What the plan is called that follows from sizes alone.
BY_SHAPES = "the plan by sizes alone"

#: Most accesses to lines of all divisions beside a plan that are simulated without being asked for: about a minute.
_MOST_ACCESSES = 1 << 31
#: So many times as long does it take where nothing native is there.
_PLAIN_TIMES = 128


@dataclass(frozen=True, eq=False)
class Beside:
    """Divisions of one product that were simulated, each with its own sub-blocks and buffer.

    ran: the fastest of all that was simulated, or a cut or relief that was asked for.
    planned: the plan, which the planner's rule gives before anything is simulated.
    plans: the plan for each state of the caches, a key of `lstmsim.machines.gemm.CACHES`; of these, one is `planned`.
    by_shapes: the plan that follows from sizes alone (`GemmThreads.by_shapes`); None: nothing stands beside the plan.
    candidates: in the order of rank; None: it was left out.
    pairs: cuts of rows and columns alone, the first one by BLIS's rule.
    pairs_known: how many of these there are.
    ablations: the cut of `ran` under each relief.
    simulated: everything that was simulated, each division once, plans first, then candidates by rank.
    left_out: how many candidates and pairs were not.
    remarks: what was left out, in sentences.
    """

    ran: GemmRow
    planned: GemmRow
    plans: Mapping[str, GemmRow]
    by_shapes: GemmRow | None
    candidates: tuple[GemmRow | None, ...]
    pairs: tuple[GemmRow, ...]
    pairs_known: int
    ablations: tuple[GemmRow, ...]
    simulated: tuple[GemmRow, ...]
    left_out: int
    remarks: tuple[str, ...]

    def fastest(self, caches: str) -> GemmRow:
        """The fastest of everything that was simulated; of equals the plan for such caches, then the first in rank."""
        plan = self.plans[caches].division
        return min(self.simulated, key=lambda each: (each.cycles(caches), each.division != plan))

    @property
    def blis(self) -> GemmRow | None:
        """The pair by BLIS's rule; None: nothing stands beside the plan."""
        return self.pairs[0] if self.pairs else None

    def best_pair(self, caches: str) -> GemmRow | None:
        """The fastest pair; of equals the plan for such caches, else the first. None: not all were simulated."""
        if len(self.pairs) < self.pairs_known:
            return None
        plan = self.plans[caches].division
        return min(self.pairs, key=lambda each: (each.cycles(caches), each.division != plan))

    def regret(self, caches: str) -> float | None:
        """How much longer than the fastest that was simulated the plan for such caches takes, relative to that.

        None: not every candidate and every pair was simulated.
        """
        if self.left_out:
            return None
        return self.plans[caches].cycles(caches) / self.fastest(caches).cycles(caches) - 1


def beside_plan(
    asked: Asked,
    plan: GemmPlan,
    relief: str,
    wanted: bool | None,
    ablate: bool,
    progress: Progress | None = None,
    given: Cut | None = None,
) -> Beside:
    """Simulate a plan, and what stands beside it.

    relief: of the cut that runs, one of `lstmsim.machines.gemm.RELIEFS`; any but `plan` is one of the plan's cut,
        unless another is given.
    wanted: whether candidates and pairs are simulated; None: if there is not too much to do.
    ablate: whether that cut is simulated under each relief.
    progress: is called with divisions done and in all.
    given: the cut that runs; None: the fastest, or of a relief the plan's.
    """
    bench = _Bench(asked, progress, 0 if not ablate else len(RELIEFS) - 1)
    planned = bench.divided(plan.division.cut)
    ran = None if given is None and relief == "plan" else bench.divided(given or planned.cut, relief)
    pairs = [bench.divided(each) for each in asked.threads.mn_cuts(asked.chip, asked.task)]
    candidates = [bench.divided(each.cut) for each in plan.ranked]
    plans = {each: bench.divided(_cut_for(asked, plan, each)) for each in CACHES}
    shaped = _by_shapes(asked)
    first = [planned, *plans.values(), *([] if wanted is False else [*pairs[:1], shaped]), *([ran] if ran else [])]
    others = [each for each in dict.fromkeys([*candidates, *pairs]) if each not in first]
    bench.run(first, 0 if wanted is False else len(others))
    all_of_them = bench.bearable(planned, len(others)) if wanted is None else wanted
    bench.run(others if all_of_them else [])
    cut = (ran or bench.fastest(asked.task.caches, planned).division).cut
    reliefs = {each: bench.divided(cut, each) for each in RELIEFS[1:]} if ablate and cut.p_k > 1 else {}
    bench.run(list(reliefs.values()))
    kept = pairs if all_of_them else pairs[: 0 if wanted is False else 1]
    return Beside(
        ran=bench.row("this run", ran or bench.fastest(asked.task.caches, planned).division),
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
    """Where divisions of a product are simulated, each once.

    progress: is called with divisions done and in all.
    later: how many more there may be than `run` is told.
    """

    def __init__(self, asked: Asked, progress: Progress | None, later: int) -> None:
        self._asked, self._progress, self._later = asked, progress, later
        self._count = 0
        self.ready: dict[Division, Mapping[str, GemmFigures]] = {}

    def divided(self, cut: Cut, relief: str = "plan") -> Division:
        return self._asked.threads.division(self._asked.chip, self._asked.task, cut, relief)

    def run(self, divisions: Sequence[Division], others: int = 0) -> None:
        """Simulate what was not simulated.

        others: how many will come after them.
        """
        new = [each for each in dict.fromkeys(divisions) if each not in self.ready]
        if not new:
            return
        before, told = len(self.ready), self._progress
        self._count = self._count or len(new) + others + self._later
        counted = None if told is None else lambda done, _: told(before + done, self._count)
        self.ready |= simulated(self._asked, new, counted)

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

    def fastest(self, caches: str, plan: Division) -> GemmRow:
        """The fastest of everything so far; of equals the plan."""
        return min(self.rows([plan]), key=lambda each: each.cycles(caches))


def _cut_for(asked: Asked, plan: GemmPlan, caches: str) -> Cut:
    """The cut of the plan for a state of the caches.

    plan: for the state that was asked for.
    """
    if caches == asked.task.caches:
        return plan.division.cut
    return asked.threads.plan(asked.chip, replace(asked.task, caches=caches)).division.cut


def _by_shapes(asked: Asked) -> Division:
    """The plan that follows from sizes alone."""
    return asked.threads.plan(asked.chip, replace(asked.task, settings=asked.threads.by_shapes)).division


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
