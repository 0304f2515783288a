"""Brainwave's published DeepBench latencies, of which one half was used to fit the preset and the other was not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lstmsim.files.tables.published import Measurement
from lstmsim.studies.validate.bench import Bench, layer
from lstmsim.studies.validate.null_model import Judgement, NullModel, fit_null, noise
from lstmsim.studies.validate.rows import Group, Row

__all__ = ["BAND", "CHIP", "DESIGN", "FITTED", "FITTED_GROUP", "HELD_OUT_GROUP", "brainwave_group", "in_group"]

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

_TITLES = {
    FITTED_GROUP: "Brainwave, tasks that the preset was fitted to",
    HELD_OUT_GROUP: "Brainwave, tasks held out from the fit",
}


def in_group(key: str, rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Pick the rows of Brainwave that have a latency and belong to one half.

    key: `FITTED_GROUP` or `HELD_OUT_GROUP`.

    >>> from lstmsim.files.tables.published import deepbench
    >>> [row.task for row in in_group(HELD_OUT_GROUP, deepbench())][:2]
    ['lstm-512-25', 'lstm-1536-50']
    """
    own = [row for row in rows if row.design == DESIGN and row.latency_ms is not None]
    return tuple(row for row in own if (row.task in FITTED) == (key == FITTED_GROUP))


def brainwave_group(
    key: str, rows: Sequence[Measurement], bench: Bench, tick: Callable[[], None] = lambda: None
) -> Group:
    """Compare the latencies of one half, beside the null model that was fitted to the first half.

    Without enough rows of the first half to fit a null model there is none.

    key: `FITTED_GROUP` or `HELD_OUT_GROUP`.
    rows: the published DeepBench latencies.
    bench: simulates the tasks.
    tick: is called after each task.
    """
    own_rows = []
    null = _null(rows)
    for row in in_group(key, rows):
        report = bench.on_preset(CHIP, [layer(row.cell, row.hidden, row.input)], row.steps, batch=row.batch)
        assert row.latency_ms is not None
        # The notes of these rows are on their utilizations, which are not compared.
        blind = null.latency_ms(row.cell, row.steps) if null and row.cell in null.start_ms else None
        own = Row(key, row.task, "latency", "ms", row.latency_ms, report.latency_ms.max, BAND, row.source, null=blind)
        own_rows.append(own)
        tick()
    promised = len(FITTED) if key == FITTED_GROUP else _TASKS - len(FITTED)
    return Group(key, _TITLES[key], CHIP, tuple(own_rows), promised, _judgement(key, own_rows, rows))


def _null(rows: Sequence[Measurement]) -> NullModel | None:
    """The null model that was fitted to the first half; None if it has too few rows."""
    try:
        return fit_null(in_group(FITTED_GROUP, rows))
    except ValueError:
        return None


def _judgement(key: str, own_rows: Sequence[Row], rows: Sequence[Measurement]) -> Judgement | None:
    """This half beside the null model; None where a row has no figure of the null model."""
    blind = [row.null_error for row in own_rows if row.null_error is not None]
    if not own_rows or len(blind) < len(own_rows):
        return None
    every = [row for row in rows if row.design == DESIGN and row.latency_ms is not None]
    return Judgement(tuple(row.error for row in own_rows), tuple(blind), key == FITTED_GROUP, *noise(every))
