"""One matrix product on several numbers of threads, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.base.errors import Mistake
from lstmsim.report.results import Table
from lstmsim.studies.gemm.run import GemmReport, run_gemm
from lstmsim.studies.gemm.runs import GemmRow, Progress
from lstmsim.studies.shared.arguments import refuse

__all__ = ["GemmScaling", "run_gemm_threads", "wrong_for_several"]

#: What is asked of one number of threads only, with the value that stands for nothing asked. The last ones are files
#: that the command writes.
_ALONE: Mapping[str, Any] = {
    "cut": None,
    "relief": "plan",
    "ablate": False,
    "numbers": None,
    **dict.fromkeys(("output", "timeline", "trace", "trace_window")),
}


@dataclass(frozen=True, eq=False)
class GemmScaling(Table, forms="lstmsim.studies.gemm.scaling_text"):
    """A matrix product that was planned and simulated on several numbers of threads.

    reports: one for each number of threads, in the order in which they were asked for.
    one: the product on one thread.
    """

    reports: tuple[GemmReport, ...]
    one: GemmReport

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
        return report.beside.fastest(caches)

    def speed_up(self, report: GemmReport, caches: str) -> float:
        """How many times as fast as one thread."""
        return self.fastest(self.one, caches).cycles(caches) / self.fastest(report, caches).cycles(caches)

    def utilization(self, report: GemmReport, caches: str) -> float:
        """Useful multiply-accumulates over those that the cores of the threads could have done."""
        return report.product.macs / (report.peak * self.fastest(report, caches).cycles(caches))


def run_gemm_threads(
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    *,
    threads: Sequence[int],
    progress: Progress | None = None,
    **options: Any,
) -> GemmScaling:
    """Plan C = A B for several numbers of threads, and simulate each plan and what stands beside it.

    m, n, k: rows of C, columns of C, length of the sums.
    threads: on how many cores, each number once.
    progress: is called with numbers of threads done and in all.
    options: the other arguments of `run_gemm`, but those that are for one number of threads: `cut`, `relief`, `ablate`,
        `numbers`.

    `InputError` as of `run_gemm`, before anything is simulated.

    >>> scaling = run_gemm_threads(8, 64, 64, threads=[1, 4], baselines=False)
    >>> [round(scaling.speed_up(each, "warm"), 1) for each in scaling.reports]
    [1.0, 2.1]
    """
    refuse(wrong_for_several(options, len(threads)), _twice(threads))
    shared = {**options, "numbers": False}
    # the largest number first: what is wrong with it is said before the others take their time
    order = sorted(dict.fromkeys([*threads, 1]), key=_size, reverse=True)
    ready = {}
    for done, each in enumerate(order):
        if progress is not None:
            progress(done, len(order))
        own = shared if each in threads else {**shared, "baselines": False}
        ready[each] = run_gemm(m, n, k, threads=each, **own)
    return GemmScaling(tuple(ready[each] for each in threads), ready[1])


def _size(number: object) -> float:
    """A number to order by; what is none is looked at first."""
    return float("inf") if isinstance(number, bool) or not isinstance(number, int) or number < 1 else number


def wrong_for_several(options: Mapping[str, Any], count: int) -> Iterator[Mistake]:
    """What was asked for and is for one number of threads only.

    options: what may have been asked for, by name.
    count: how many numbers of threads there are.
    """
    for name, value in options.items():
        if name in _ALONE and value is not False and value != _ALONE[name]:
            yield Mistake(name, f"is for one number of threads, and {count} are given")


def _twice(threads: Sequence[object]) -> Iterator[Mistake]:
    if not threads:
        yield Mistake("threads", "expected a number at least")
    for each in dict.fromkeys(threads):
        if list(threads).count(each) > 1:
            yield Mistake("threads", f"{each} is given more than once")
