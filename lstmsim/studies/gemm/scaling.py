"""One matrix product on several numbers of threads, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.wording import listed
from lstmsim.machines.gemm import CACHES
from lstmsim.report.document import Cell, Column, Document, Section, facts, grid, remark
from lstmsim.report.figures_text import percent
from lstmsim.report.results import Forms, Table, picked, plain
from lstmsim.report.stamp import Stamp
from lstmsim.studies.gemm.report import KEYS, cut_words, faster, product_facts
from lstmsim.studies.gemm.request import GemmRequest, GemmThreadsRequest
from lstmsim.studies.gemm.result import GemmReport, GemmRow
from lstmsim.studies.gemm.run import run_gemm
from lstmsim.studies.shared.request import takes

#: What is asked of one number of threads only, with the value that stands for nothing asked.
_ALONE: Mapping[str, Any] = {"cut": None, "relief": "plan", "ablate": False, "numbers": None}


@dataclass(frozen=True, eq=False)
class GemmScaling(Table, forms="lstmsim.studies.gemm.scaling"):
    """A matrix product that was planned and simulated on several numbers of threads.

    reports: one for each number of threads, in the order in which they were asked for.
    one: the product on one thread.
    """

    reports: tuple[GemmReport, ...]
    one: GemmReport

    @property
    def stamp(self) -> Stamp:
        """That of the product on one thread: the chip is the same."""
        return self.one.stamp

    @property
    def caches(self) -> str:
        """What lay in the caches, of `lstmsim.machines.gemm.CACHES`."""
        return self.one.caches

    @property
    def remarks(self) -> tuple[str, ...]:
        """Further sentences, each once."""
        return tuple(dict.fromkeys(text for each in self.reports for text in each.remarks))

    def fastest(self, report: GemmReport, caches: str) -> GemmRow:
        """The fastest cut for such caches that was simulated."""
        return report.baselines.fastest(caches)

    def speed_up(self, report: GemmReport, caches: str) -> float:
        """How many times as fast as one thread."""
        return self.fastest(self.one, caches).cycles(caches) / self.fastest(report, caches).cycles(caches)

    def utilization(self, report: GemmReport, caches: str) -> float:
        """Useful multiply-accumulates over those that the cores of the threads could have done."""
        return report.product.macs / (report.peak * self.fastest(report, caches).cycles(caches))


@takes(GemmThreadsRequest)
def run_gemm_threads(request: GemmThreadsRequest) -> GemmScaling:
    """Plan C = A B for several numbers of threads, and simulate each plan and its baselines.

    `InputError` as of `run_gemm`, before anything is simulated.

    >>> scaling = run_gemm_threads(8, 64, 64, threads=[1, 4], baselines=False)
    >>> [round(scaling.speed_up(each, "warm"), 1) for each in scaling.reports]
    [1.0, 2.1]
    """
    threads = request.threads
    count = f"is for one number of threads, and {len(threads)} are given" if len(threads) > 1 else "is for run_gemm"
    refuse(Mistake(name, count) for name, value in _ALONE.items() if getattr(request, name) not in (value, False))
    twice = [each for each in dict.fromkeys(threads) if list(threads).count(each) > 1]
    refuse(Mistake("threads", f"{each} is given more than once") for each in twice)
    refuse([] if threads else [Mistake("threads", "expected a number at least")])
    shared = {each.name: getattr(request, each.name) for each in fields(GemmRequest)} | {"numbers": False}
    # the largest number first: what is wrong with it is said before the others take their time
    order = sorted({*threads, 1}, reverse=True)
    ready = {}
    for done, each in enumerate(order):
        if request.progress is not None:
            request.progress(done, len(order))
        baselines = request.baselines if each in threads else False
        ready[each] = run_gemm(**{**shared, "threads": each, "baselines": baselines, "progress": None})
    return GemmScaling(tuple(ready[each] for each in threads), ready[1])


def _headline(scaling: GemmScaling) -> str:
    """Say in a sentence which of several numbers of threads is fastest; of equals the fewest threads."""
    caches = scaling.caches
    used = {each.threads: scaling.fastest(each, caches) for each in scaling.reports}
    threads = min(used, key=lambda each: (used[each].cycles(caches), each))
    cycles, one = used[threads].cycles(caches), scaling.fastest(scaling.one, caches).cycles(caches)
    few = "of what was simulated, " if any(each.baselines.left_out for each in scaling.reports) else ""
    text = f"{few}of {listed(sorted(used), 'and')} threads use {threads}, {cut_words(used[threads].cut)}: "
    text += f"{cycles:,} cycles with {caches} caches"
    return text if threads == 1 else f"{text}, {faster(cycles, one)} one thread"


def _document(scaling: GemmScaling) -> Document:
    one, caches = scaling.one, scaling.caches
    columns: list[str | Column] = ["threads", "<use", "cycles", Column("speed-up", digits=2), "of peak"]
    columns += ["<best M/N", "cycles", "<plan", "cycles", "regret"]
    cycles = f"{scaling.fastest(one, caches).cycles(caches):,} cycles"
    some = [str(each.threads) for each in scaling.reports if each.baselines.left_out]
    left = f"; some were not on {', '.join(some)} threads, and may be faster (--baselines)" if some else ""
    regret = any(each.baselines.regret(caches) is not None for each in scaling.reports)
    about = facts(
        ("use", f"the fastest cut of those that were simulated{left}"),
        ("speed-up", f"over one thread, which takes {cycles}; of peak: of the cores of the threads"),
        ("plan", "what the planner's rule takes, before anything is simulated"),
        ("regret", "how much longer the plan takes than the fastest cut" if regret else ""),
    )
    table = grid(columns, [_row(scaling, each) for each in scaling.reports])
    left_out = facts(("not modelled", "; ".join(one.machine.LEFT_OUT)))
    product, remarks = product_facts(one, cores=False), map(remark, scaling.remarks)
    return Document.of(_headline(scaling), product, Section.of(table, about), left_out, *remarks)


def _row(scaling: GemmScaling, report: GemmReport) -> list[Cell]:
    caches, baselines = scaling.caches, report.baselines
    best, regret = scaling.fastest(report, caches), baselines.regret(caches)
    cells: list[Cell] = [str(report.threads), best.cut.short, best.cycles(caches)]
    cells += [scaling.speed_up(report, caches), percent(scaling.utilization(report, caches), 1)]
    for row in (baselines.best_pair(caches), baselines.plans[caches]):
        cells += [None, None] if row is None else [row.cut.short, row.cycles(caches)]
    return [*cells, None if regret is None else f"{100 * regret:.1f} %"]


def _data(scaling: GemmScaling) -> dict[str, Any]:
    """The product as plain data of schema `lstmsim/gemm-threads/1`."""
    one = scaling.one
    return {
        "schema": "lstmsim/gemm-threads/1",
        "headline": _headline(scaling),
        "product": {**picked(one.product, "m n k macs"), "source": one.source},
        "chip": one.chip.name,
        "cores": len(one.chip.cores),
        **picked(one, "frequency_mhz=chip.frequency_mhz engine caches packed=task.packed"),
        "packing": one.machine.packing(one.chip, one.task),
        "settings": dict(one.settings),
        "one_thread_cycles": {state: scaling.fastest(one, state).cycles(state) for state in CACHES},
        "threads": [
            {**picked(each, "threads peak_macs_per_cycle=peak"), **_states(scaling, each)} for each in scaling.reports
        ],
        "left_out": list(one.machine.LEFT_OUT),
        "remarks": list(scaling.remarks),
    }


def _states(scaling: GemmScaling, report: GemmReport) -> dict[str, Any]:
    """What is known of a number of threads, for each state of the caches."""
    baselines, states = report.baselines, {}
    for state in CACHES:
        best, pair, plan = scaling.fastest(report, state), baselines.best_pair(state), baselines.plans[state]
        others = [
            None if row is None else {**plain(row.cut, KEYS), "makespan_cycles": row.cycles(state)}
            for row in (pair, plan)
        ]
        states[state] = {
            "use": plain(best.division, KEYS),
            "makespan_cycles": best.cycles(state),
            "speed_up": scaling.speed_up(report, state),
            "utilization": scaling.utilization(report, state),
            "best_pair": others[0],
            "plan": others[1],
            "regret": baselines.regret(state),
        }
    return states


def _records(scaling: GemmScaling) -> Iterator[dict[str, Any]]:
    """A row for each number of threads."""
    for each in scaling.reports:
        yield {"threads": each.threads, **_states(scaling, each)}


FORMS = Forms(_data, _document, _records)
