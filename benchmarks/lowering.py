"""What lowering and the points of a sweep cost, as ratios within one run; `table.py` puts them into BENCHMARKS.md.

Run as `python benchmarks/lowering.py`. Times are CPU seconds of this process, the least of several, so that others on
the machine count little.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import make_dataclass

from measures import cpu_seconds, measured_package

from lstmsim import ColumnCore, ColumnNpu, Job, Layer, Model, Scenario, cell, engines, machines
from lstmsim.analysis.report import measure
from lstmsim.machines.column import phases
from lstmsim.machines.registry import target_of
from lstmsim.program.operations import Operation
from lstmsim.studies.sweep.columns import numbers_of

__all__ = ["HEAD", "design_points", "point_rates", "ratios"]

HEAD = ["what", "against", "times"]


def design_points() -> list[Scenario]:
    """LSTM 256 to 2048, 25 steps, six arrays, one thread and two: 180 points, two of which share a body."""
    points = []
    for hidden in range(256, 2049, 128):
        model = Model("m", (Layer(cell("lstm"), hidden, hidden),))
        for ep in (4, 8, 16, 32, 64, 128):
            for threads in (1, 2):
                core = ColumnCore(npe=65536, ep=ep, vp=65536 // ep, threads=threads)
                jobs = tuple(Job(f"j{each}", model, 25) for each in range(threads))
                points.append(Scenario(ColumnNpu("c", 260, (core,)), jobs))
    return points


def row(scenario: Scenario) -> tuple[int | float, ...]:
    """The numbers of a point, as a sweep computes them."""
    return numbers_of(scenario, engines.totals(machines.lower(scenario.chip, scenario.jobs), check=False))


def forget() -> None:
    """Drop the bodies that are kept of earlier points."""
    phases._KEPT.clear()


def point_rates(points: list[Scenario]) -> tuple[float, float]:
    """Points a CPU second: each for the first time, and again."""
    row(points[0])

    def first() -> None:
        forget()
        again()

    def again() -> None:
        for each in points:
            row(each)

    return len(points) / cpu_seconds(first, 5), len(points) / cpu_seconds(again, 5)


def ratios(points: list[Scenario]) -> list[list[str]]:
    """Give, for each pair of things, how many times as long the second takes as the first."""
    own = Operation._field_defaults
    plain = make_dataclass("Plain", [(name, object) for name in Operation._fields], frozen=True)
    values = {name: own.get(name, 0) for name in Operation._fields}

    def made(kind: Callable[..., object]) -> Callable[[], object]:
        return lambda: [kind(**values) for _ in range(20_000)]

    def lowered() -> list[object]:
        return [machines.lower(each.chip, each.jobs) for each in points]

    def lowered_anew() -> None:
        for each in points:
            phases._KEPT.clear()
            machines.lower(each.chip, each.jobs)

    programs = [machines.lower(each.chip, each.jobs) for each in points]
    totals = [engines.totals(each, check=False) for each in programs]
    both = list(zip(points, totals, strict=True))
    pairs = [
        ("an operation made", "a frozen dataclass of the same fields", made(Operation), made(plain)),
        ("a point lowered with kept bodies", "lowered with nothing kept", lowered, lowered_anew),
        (
            "the numbers of a row from totals",
            "by way of a report",
            lambda: [numbers_of(*each) for each in both],
            lambda: [(measure(*each, "fast"), target_of(each[0].chip.kind).adders(each[0].chip)) for each in both],
        ),
    ]
    return [[one, other, f"{cpu_seconds(second) / cpu_seconds(first):.1f}"] for one, other, first, second in pairs]


def main() -> int:
    points = design_points()
    for each in (HEAD, ["---", "---", "---:"], *ratios(points)):
        print("| " + " | ".join(each) + " |")
    first, again = point_rates(points)
    print(f"\npoints a CPU second: {first:,.0f} the first time, {again:,.0f} again")
    return 0


if __name__ == "__main__":
    measured_package()
    sys.exit(main())
