"""Published tables, simulated again: Intel's workloads, Brainwave's and V100's DeepBench latencies.

One half of Brainwave's rows was used to fit the preset and the other was not; nothing was fitted to those of V100.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from lstmsim.analysis.report import Report, measure
from lstmsim.base.errors import InputError
from lstmsim.base.units import cycles_to_ms
from lstmsim.files.published import IntelWorkload, Measurement
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.model.scenario import Scenario
from lstmsim.studies.sweep.evaluate import simulated
from lstmsim.studies.validate.rows import Group, Judgement, NullModel, Row, fit_null, noise


def layer(cell: str, hidden: int, inputs: int) -> dict[str, Any]:
    """Describe a layer as scenario files do."""
    return {"cell": cell, "hidden": hidden, "input": inputs}


class Bench:
    """Simulates on one engine; equal scenarios are simulated once."""

    def __init__(self, engine: str = "fast") -> None:
        self.engine = engine
        self.report = cache(self._report)

    def _report(self, scenario: Scenario) -> Report:
        return measure(scenario, simulated(scenario.chip, scenario.jobs, self.engine), self.engine)

    def on_preset(
        self,
        chip: str,
        layers: Sequence[Mapping[str, Any]],
        steps: int,
        *,
        batch: int = 1,
        count: int = 1,
        overrides: Sequence[str] = (),
    ) -> Report:
        """Simulate equal jobs of some layers on a preset, all there at cycle 0."""
        job = {"model": {"layers": list(layers)}, "steps": steps, "batch": batch, "count": count}
        return self.report(load_scenario({"chip": chip, "jobs": [job]}, overrides))


RTL = "intel-npu-rtl"
CPP = "intel-npu-cpp"

_TITLES = {RTL: "Intel NPU, RTL simulation", CPP: "Intel NPU, C++ simulator"}

_WORKLOADS = 19

#: The cell of each kind of workload. Their GRU multiplies r * h before the matrix product.
_CELLS = {"gemv": "dense", "mlp": "dense", "rnn": "rnn", "gru": "gru-lbr0", "lstm": "lstm"}


def layers_of(workload: IntelWorkload) -> list[dict[str, Any]]:
    """Describe the layers of a workload as scenario files do; `InputError` for an unknown kind of cell."""
    if workload.cell not in _CELLS:
        known = ", ".join(_CELLS)
        raise InputError(f"workload {workload.workload}: no cell called {workload.cell!r}; there are: {known}")
    return [layer(_CELLS[workload.cell], hidden, inputs) for inputs, hidden in pairwise(workload.sizes)]


def intel_group(
    chip: str, workloads: Sequence[IntelWorkload], bench: Bench, tick: Callable[[], None] = lambda: None
) -> Group:
    """Compare cycles and TOPS of every workload on a preset; exactly the published figure is promised.

    TOPS are the cycles in another unit and not counted.
    """
    rows: list[Row] = []
    for each in workloads:
        report = bench.on_preset(chip, layers_of(each), each.steps, batch=each.batch)
        cycles, tops = (each.rtl_cycles, each.rtl_tops) if chip == RTL else (each.cpp_cycles, each.cpp_tops)
        # TOPS are printed with two decimals.
        note = "; ".join(filter(None, (each.note, "" if chip == RTL else each.cpp_note)))
        latency = Row(chip, each.workload, "latency", "cycles", cycles, report.makespan_cycles, 0.0, each.source, note)
        tops_row = replace(
            latency, quantity="throughput", unit="TOPS", published=tops, simulated=round(report.tops, 2), derived=True
        )
        rows += [latency, tops_row]
        tick()
    return Group(chip, _TITLES[chip], chip, tuple(rows), promised=_WORKLOADS)


CHIP = "brainwave-s10"
#: The machine's name in the table of DeepBench latencies.
DESIGN = "Brainwave BW_S10"
FITTED_GROUP = "brainwave-fitted"
HELD_OUT_GROUP = "brainwave-held-out"

_TASKS = 11

#: The tasks whose latencies the preset's unpublished parameters were fitted to. All others are held out.
FITTED = ("lstm-256-150", "lstm-1024-25", "lstm-2048-25", "gru-512-1", "gru-1024-1500", "gru-2816-750")

#: The relative error that is promised at most, of fitted and of held-out tasks. Latencies are printed to 0.001 ms.
BAND = 0.05

_HALVES_TITLES = {
    FITTED_GROUP: "Brainwave, tasks that the preset was fitted to",
    HELD_OUT_GROUP: "Brainwave, tasks held out from the fit",
}


def in_group(key: str, rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Pick the rows of Brainwave that have a latency and belong to one half.

    >>> from lstmsim.files.published import deepbench
    >>> [row.task for row in in_group(HELD_OUT_GROUP, deepbench())][:2]
    ['lstm-512-25', 'lstm-1536-50']
    """
    own = [row for row in rows if row.design == DESIGN and row.latency_ms is not None]
    return tuple(row for row in own if (row.task in FITTED) == (key == FITTED_GROUP))


def brainwave_group(
    key: str, rows: Sequence[Measurement], bench: Bench, tick: Callable[[], None] = lambda: None
) -> Group:
    """Compare the latencies of one half, and those of the null model that was fitted to the first half.

    Without enough rows of the first half to fit a null model there is none.
    """
    own = []
    null = _null(in_group(FITTED_GROUP, rows))
    for row in in_group(key, rows):
        report = bench.on_preset(CHIP, [layer(row.cell, row.hidden, row.input)], row.steps, batch=row.batch)
        # The notes of these rows are on their utilizations, which are not compared.
        blind = null.latency_ms(row.cell, row.steps) if null and row.cell in null.start_ms else None
        published, simulated = row.latency_ms or 0.0, report.latency_ms.max
        own.append(Row(key, row.task, "latency", "ms", published, simulated, BAND, row.source, null=blind))
        tick()
    every = [row for row in rows if row.design == DESIGN and row.latency_ms is not None]
    promised = len(FITTED) if key == FITTED_GROUP else _TASKS - len(FITTED)
    return Group(key, _HALVES_TITLES[key], CHIP, tuple(own), promised, _judged(own, every, fitted=key == FITTED_GROUP))


def _null(rows: Sequence[Measurement]) -> NullModel | None:
    """The null model that is fitted to some rows; None if these are too few."""
    try:
        return fit_null(rows)
    except ValueError:
        return None


def _judged(
    own: Sequence[Row], rows: Sequence[Measurement], *, fitted: bool = False, null_fitted: bool = False
) -> Judgement | None:
    """Simulated rows in comparison with the null model; None where a row has no figure of it."""
    blind = [row.null_error for row in own if row.null_error is not None]
    if not own or len(blind) < len(own):
        return None
    return Judgement(tuple(row.error for row in own), tuple(blind), fitted, *noise(rows), null_fitted)


V100 = "v100"
#: The machine's name in the table of DeepBench latencies.
_DESIGN = "Tesla V100"
_HALVES = "chip.element_bytes=2"
#: Within this ratio either way simulated times are promised. It was chosen after the first look at these rows (one is
#: 2.6), so it says how far the model is off, and is no prediction that came true.
FACTOR = 3.0
#: From so many units on, weights in FP16 (17 MB for an LSTM of 1,024) do not fit L2, so that every step is alike.
_ALIKE_FROM = 1024
_V100_TASKS = 10
_TITLE = "V100 in FP16, DeepBench tasks; nothing was fitted to these rows"


def v100_rows(rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Pick the rows of V100 that have a latency."""
    return tuple(row for row in rows if row.design == _DESIGN and row.latency_ms is not None)


def step_by_step_ms(row: Measurement, bench: Bench) -> float:
    """Simulate the first steps of a task, and add later ones as long as the last of these.

    One step where weights do not fit L2, so that each step reads them anew; else two, for the first one loads them.
    """

    def cycles(steps: int) -> tuple[int, float]:
        layers = [layer(row.cell, row.hidden, row.input)]
        report = bench.on_preset(V100, layers, steps, batch=row.batch, overrides=[_HALVES])
        return report.makespan_cycles, report.frequency_mhz

    first, clock = cycles(1)
    later = first if row.hidden >= _ALIKE_FROM or row.steps == 1 else cycles(2)[0] - first
    return cycles_to_ms(first + (row.steps - 1) * later, clock)


def v100_group(rows: Sequence[Measurement], bench: Bench, tick: Callable[[], None] = lambda: None) -> Group:
    """Compare the latencies, and those of a null model that was fitted to these very rows."""
    compared: list[tuple[Measurement, float]] = []
    remarks = [
        "simulated at the preset's 1530 MHz, published at 1380 MHz; of each task the first step is simulated (two "
        "where weights fit L2), later ones take as long as the last of these",
        f"the factor of {FACTOR:g} was chosen after a first look at these rows: it says how far off the model is",
    ]
    for row in v100_rows(rows):
        try:
            ms = step_by_step_ms(row, bench)
        except InputError as error:
            remarks.append(f"left out: {row.task}: {error.mistakes[0].sentence}")
        else:
            # Of tasks of one step the authors suspect that their time is initialisation, which is not simulated.
            if row.steps > 1:
                compared.append((row, ms))
            else:
                both = f"{ms:.3g} ms simulated, {row.latency_ms:g} published ({row.note})"
                remarks.append(f"left out: {row.task}, which is one step: {both}")
        tick()
    used = [row for row, _ in compared]
    null = _null(used)
    own = tuple(
        Row(V100, row.task, "latency", "ms", row.latency_ms or 0.0, ms, 0.0, row.source, null=blind, factor=FACTOR)
        for row, ms in compared
        for blind in [null.latency_ms(row.cell, row.steps) if null else None]
    )
    return Group(V100, _TITLE, V100, own, _V100_TASKS, _judged(own, used, null_fitted=True), tuple(remarks))
