"""What is known of all points of a space before one is simulated: rules, multiplier blocks, and numbers to beat."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lstmsim.machines.bounds import Column
from lstmsim.machines.registry import capability
from lstmsim.machines.rtl import ClockModel
from lstmsim.studies.design.bounds.jobs import Bounded, bounded, percentile_of
from lstmsim.studies.design.bounds.multipliers import multiplier_blocks
from lstmsim.studies.design.judge import Least
from lstmsim.studies.design.rates import Rates
from lstmsim.studies.design.request import BEARS, MAKESPAN, OBJECTIVES, PERCENT_OF, DesignRequest
from lstmsim.studies.design.space import Box, Broken
from lstmsim.studies.design.walk import INACCURATE, INFEASIBLE, PRUNED, UNTIMED, Bounds, Known, Labels
from lstmsim.studies.fit.device import Device

#: A percentile is a sum of rounded products; so much less than it is surely less.
_ROUNDED = 1 - 1e-12


def known_of(
    size: int,
    boxes: Iterable[Box | Broken],
    there: Device | None,
    request: DesignRequest,
    accurate: Least | None,
    rates: Rates | None,
    clock: ClockModel | None = None,
) -> Known:
    """Bound all points, and label those that break a rule or need too many multiplier blocks."""
    labels = Labels.of(size)
    least, which = np.zeros((size, len(request.names))), np.zeros(size, np.int8)
    least[:, [name == BEARS for name in request.names]] = -np.inf
    blocks = np.zeros(size, np.int64)
    names = {"": 0}
    complete = True
    for box in boxes:
        if isinstance(box, Broken):
            labels.mark(box.points, INFEASIBLE, box.reason)
            continue
        if accurate is not None and (missed := accurate.missed(box.scenario)):
            labels.mark(box.points, INACCURATE, missed)
        own = bounded(box)
        if own is None:
            complete = False
            continue
        for rule, wrong in own.broken.items():
            labels.mark(box.points[np.broadcast_to(wrong, box.points.shape)], INFEASIBLE, rule)
        mhz = _mhz(box, labels, clock)
        most = np.broadcast_to(np.inf if rates is None else rates.most(box), box.points.shape)
        for place, name in enumerate(request.names):
            numbers, due = (-most, (0, ["load"])) if name == BEARS else _least(name, own, box, mhz)
            least[box.points, place] = numbers
            if place == 0:
                codes = np.array([names.setdefault(each, len(names)) for each in due[1]], np.int8)
                which[box.points] = codes[due[0]]
        if request.at_rate is not None:
            labels.mark(box.points[most < request.at_rate], PRUNED, "at_rate: load")
        elif request.bound_ms is not None and rates is None:
            wait = percentile_of(own, request.percentile) / box.scenario.chip.frequency_mhz / 1000
            late = np.broadcast_to(wait * _ROUNDED > request.bound_ms, box.points.shape)
            labels.mark(box.points[late], PRUNED, "bound_ms: latency")
        if there is not None:
            needs = multiplier_blocks(box, there)
            blocks[box.points] = 0 if needs is None else np.where(own.whole, needs, 0)
    return Known(there, labels, Bounds(least, which, tuple(names)), blocks, complete)


def _mhz(box: Box, labels: Labels, clock: ClockModel | None) -> Column:
    """The clock of each point: that of the chip, or the highest one that the model may mean where it tells it.

    Points of which it cannot be told get a label.
    """
    chip = box.scenario.chip
    if clock is None:
        return chip.frequency_mhz
    mhz, why = capability(chip.kind, "clock").clocks(box.scenario, box.entries, box.counts)
    for name, wrong in why.items():
        labels.mark(box.points[np.broadcast_to(wrong, box.points.shape)], UNTIMED, name)
    return mhz * clock.pairs


def _least(objective: str, own: Bounded, box: Box, mhz: Column) -> tuple[Column, tuple[Column, list[str]]]:
    """The least of what is minimised, and what it is due to: (numbers of names, names)."""
    if objective in PERCENT_OF:
        cycles = percentile_of(own, PERCENT_OF[objective])
        return cycles / box.scenario.chip.frequency_mhz / 1000 * _ROUNDED, (0, ["latency"])
    if not OBJECTIVES[objective]:
        return own.peak if objective == "npe" else 0.0, (0, ["what it takes"])
    table = np.stack([np.broadcast_to(each, box.points.shape) for each in own.makespan.values()] or [0 * box.points])
    best = table.max(axis=0)
    due = (table.argmax(axis=0), list(own.makespan) or [""])
    return (best / mhz / MAKESPAN[objective] * _ROUNDED if objective in MAKESPAN else best), due
