"""What stands beside a plan: the other candidates, all pairs of M/N threads, and the plan's cut under each relief."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lstmsim import engines
from lstmsim.api.gemm_runs import Asked, GemmRow, Progress, simulated
from lstmsim.targets.division import Cut, Division
from lstmsim.targets.gemm import CACHES, RELIEFS, GemmFigures, GemmPlan

__all__ = ["BY_SHAPES", "Beside", "beside_plan"]

#: What the plan is called that follows from sizes alone.
BY_SHAPES = "the plan by sizes alone"

#: Most accesses to lines of all divisions beside a plan that are simulated without being asked for: about a minute.
_MOST_ACCESSES = 1 << 31
#: So many times as long does it take where nothing native is there.
_PLAIN_TIMES = 128

_Ready = Mapping[Division, Mapping[str, GemmFigures]]


@dataclass(frozen=True, eq=False)
class Beside:
    """Divisions of one product that were simulated, each with its own sub-blocks and buffer.

    ran: the plan's cut, or one that was given, as it was asked for.
    planned: the plan; the same as `ran` unless another cut or relief was asked for.
    plans: the plan for each state of the caches, a key of `lstmsim.targets.gemm.CACHES`; of these, one is `planned`.
    by_shapes: the plan that follows from sizes alone (`GemmThreads.by_shapes`); None: nothing stands beside the plan.
    candidates: in the order of rank; None: it was left out.
    pairs: cuts of rows and columns alone, the first one by BLIS's rule.
    pairs_known: how many of these there are.
    ablations: the cut of `ran` under each relief.
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
    remarks: tuple[str, ...]

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

    def best_candidate(self, caches: str) -> GemmRow | None:
        """The fastest candidate, of equals the first in rank; None: not all were simulated."""
        rows = [each for each in self.candidates if each is not None]
        return min(rows, key=lambda each: each.cycles(caches)) if len(rows) == len(self.candidates) else None

    def regret(self, caches: str) -> float | None:
        """How much longer than the fastest candidate the plan for such caches takes, relative to that.

        None: not all were simulated.
        """
        best = self.best_candidate(caches)
        return None if best is None else self.plans[caches].cycles(caches) / best.cycles(caches) - 1


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

    relief: of the cut that runs, one of `lstmsim.targets.gemm.RELIEFS`.
    wanted: whether candidates and pairs are simulated; None: if there is not too much to do.
    ablate: whether that cut is simulated under each relief.
    progress: is called with divisions done and in all.
    given: the cut that runs in the plan's place; None: the plan's.
    """
    cut = plan.division.cut if given is None else given

    def divided(cut: Cut, relief: str = "plan") -> Division:
        return asked.threads.division(asked.chip, asked.task, cut, relief)

    ran, planned = divided(cut, relief), divided(plan.division.cut)
    pairs = [divided(each) for each in asked.threads.mn_cuts(asked.chip, asked.task)]
    candidates = [divided(each.cut) for each in plan.ranked]
    reliefs = {each: divided(cut, each) for each in RELIEFS[1:]} if ablate and cut.p_k > 1 else {}
    plans = {each: divided(_cut_for(asked, plan, each)) for each in CACHES}
    shaped = _by_shapes(asked)
    first = [ran, *plans.values(), *reliefs.values(), *([] if wanted is False else [*pairs[:1], shaped])]
    others = [each for each in dict.fromkeys([*candidates, *pairs]) if each not in first]
    count = len(dict.fromkeys(first)) + (0 if wanted is False else len(others))
    ready = dict(simulated(asked, first, _counting(progress, 0, count)))
    accesses = sum(each.counts.l1 for each in ready[planned].values()) * len(others)
    most = _MOST_ACCESSES if engines.has_fast() else _MOST_ACCESSES // _PLAIN_TIMES
    all_of_them = accesses <= most if wanted is None else wanted
    if all_of_them:
        ready |= simulated(asked, others, _counting(progress, len(ready), count))
    kept = pairs if all_of_them else pairs[: 0 if wanted is False else 1]
    return Beside(
        ran=GemmRow("this run", ran, ready[ran]),
        planned=GemmRow("the plan", planned, ready[planned]),
        plans={name: GemmRow(f"the plan for {name} caches", each, ready[each]) for name, each in plans.items()},
        by_shapes=None if wanted is False else GemmRow(BY_SHAPES, shaped, ready[shaped]),
        candidates=tuple(_row(each, ready) for each in candidates),
        pairs=tuple(GemmRow(each.cut.short, each, ready[each]) for each in kept),
        pairs_known=len(pairs),
        ablations=tuple(GemmRow(name, each, ready[each]) for name, each in reliefs.items()),
        remarks=_remarks(cut, relief, wanted, ablate, all_of_them),
    )


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


def _row(division: Division, ready: _Ready) -> GemmRow | None:
    return GemmRow(division.cut.short, division, ready[division]) if division in ready else None


def _counting(progress: Progress | None, before: int, count: int) -> Progress | None:
    """Progress of a part of all divisions: so many were done before it."""
    if progress is None:
        return None
    told: Callable[[int, int], None] = progress
    return lambda done, _: told(before + done, count)


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
