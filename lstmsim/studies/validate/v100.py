"""V100's published DeepBench latencies (FP16) beside the preset, of which nothing was fitted to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lstmsim.base.errors import InputError
from lstmsim.base.units import cycles_to_ms
from lstmsim.files.tables.published import Measurement
from lstmsim.studies.validate.bench import Bench, layer
from lstmsim.studies.validate.null_model import Judgement, fit_null, noise
from lstmsim.studies.validate.rows import Group, Row

__all__ = ["FACTOR", "V100", "step_by_step_ms", "v100_group", "v100_rows"]

V100 = "v100"
#: The machine's name in the table of DeepBench latencies.
_DESIGN = "Tesla V100"
_HALVES = "chip.element_bytes=2"
#: Within this ratio either way simulated times are promised. It was chosen after the first look at these rows (the
#: worst is 2.6), so it says how far the model is off, and is no prediction that came true.
FACTOR = 3.0
#: Tasks of one step: the authors suspect that their time is initialisation, which is not simulated.
_ONE_STEP = 1
#: From so many units on, weights in FP16 (17 MB for an LSTM of 1,024) do not fit L2, so that every step is alike.
_ALIKE_FROM = 1024
_TASKS = 10
_TITLE = "V100 in FP16, DeepBench tasks; nothing was fitted to these rows"


def v100_rows(rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Pick the rows of V100 that have a latency.

    >>> from lstmsim.files.tables.published import deepbench
    >>> len(v100_rows(deepbench()))
    11
    """
    return tuple(row for row in rows if row.design == _DESIGN and row.latency_ms is not None)


def step_by_step_ms(row: Measurement, bench: Bench) -> float:
    """Simulate the first steps of a task, and add later ones as long as the last of these.

    One step where weights do not fit L2, so that each step reads them anew; else two, for the first one loads them.

    row: the task.
    bench: simulates it.
    `InputError` if a step has more operations than are simulated.
    """

    def cycles(steps: int) -> tuple[int, float]:
        layers = [layer(row.cell, row.hidden, row.input)]
        report = bench.on_preset(V100, layers, steps, batch=row.batch, overrides=[_HALVES])
        return report.makespan_cycles, report.frequency_mhz

    first, clock = cycles(1)
    later = first if row.hidden >= _ALIKE_FROM or row.steps == 1 else cycles(2)[0] - first
    return cycles_to_ms(first + (row.steps - 1) * later, clock)


def v100_group(rows: Sequence[Measurement], bench: Bench, tick: Callable[[], None] = lambda: None) -> Group:
    """Compare the latencies, beside a null model that was fitted to these very rows.

    rows: the published DeepBench latencies.
    bench: simulates the tasks.
    tick: is called after each task.
    """
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
            if row.steps > _ONE_STEP:
                compared.append((row, ms))
            else:
                told = f"{ms:.3g} ms simulated, {row.latency_ms:g} published ({row.note})"
                remarks.append(f"left out: {row.task}, which is one step: {told}")
        tick()
    return _group(compared, remarks)


def _group(compared: Sequence[tuple[Measurement, float]], remarks: Sequence[str]) -> Group:
    """The rows beside the null model; none where these rows are too few to fit one."""
    used = [row for row, _ in compared]
    try:
        null = fit_null(used)
    except ValueError:
        null = None
    own = tuple(
        Row(
            group=V100,
            name=row.task,
            quantity="latency",
            unit="ms",
            published=row.latency_ms or 0.0,
            simulated=ms,
            band=0.0,
            source=row.source,
            null=null.latency_ms(row.cell, row.steps) if null else None,
            factor=FACTOR,
        )
        for row, ms in compared
    )
    judgement = None
    if null:
        errors = tuple(row.error for row in own), tuple(row.null_error or 0.0 for row in own)
        judgement = Judgement(*errors, False, *noise(used), null_fitted=True)
    return Group(V100, _TITLE, V100, own, _TASKS, judgement, tuple(remarks))
