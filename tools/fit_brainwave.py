"""Fit the two latencies of each cell that Brainwave's publications leave out; `--check` compares with the preset.

Fitted are `dispatch_cycles` and `start_cycles` of `brainwave-s10`, on the DeepBench rows that
`lstmsim.studies.validate.groups.FITTED` names, by the least sum of squared relative errors. A start only shifts a
run, so
for each dispatch the best start follows. Starts are rounded to 10 cycles: the published latencies are printed to a
microsecond, 250 cycles.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from lstmsim import run
from lstmsim.files.published import Measurement, deepbench
from lstmsim.files.scenario.scenario_file import load_chip, load_model
from lstmsim.machines.row.npu import Dispatch, RowNpu
from lstmsim.model.scenario import Job, Scenario
from lstmsim.studies.validate.groups import FITTED

DISPATCH = range(40, 81)
CELLS = ("lstm", "gru")


def _rows(cell: str) -> list[Measurement]:
    return [row for row in deepbench() if row.design == "Brainwave BW_S10" and row.task in FITTED and row.cell == cell]


def _cycles(chip: RowNpu, row: Measurement, dispatch_cycles: int) -> int:
    """Simulated cycles of a row with that dispatch and no start."""
    core = replace(chip.cores[0], by_cell=(Dispatch(row.cell, dispatch_cycles, 0),))
    job = Job(row.task, load_model(f"deepbench-{row.task}"), row.steps)
    return run(Scenario(replace(chip, cores=(core,)), (job,))).report.makespan_cycles


def fit(cell: str, dispatch: range = DISPATCH) -> tuple[int, int, float]:
    """The best dispatch and start of a cell, and the sum of squared relative errors that they leave."""
    chip = load_chip("brainwave-s10")
    assert isinstance(chip, RowNpu)
    fits = []
    for dispatch_cycles in dispatch:
        pairs = []
        for row in _rows(cell):
            assert row.latency_ms is not None
            published = row.latency_ms * chip.frequency_mhz * 1000
            pairs.append((_cycles(chip, row, dispatch_cycles) / published, 1 / published))
        # the least squares of a_i + start * b_i = 1
        best = sum((1 - a) * b for a, b in pairs) / sum(b * b for _, b in pairs)
        start_cycles = max(0, round(best, -1))
        left = sum((a + start_cycles * b - 1) ** 2 for a, b in pairs)
        fits.append((left, dispatch_cycles, int(start_cycles)))
    left, dispatch_cycles, start_cycles = min(fits)
    return dispatch_cycles, start_cycles, left


def main() -> int:
    """Fit each cell; the exit code is 1 if `--check` shows that the preset differs."""
    chip = load_chip("brainwave-s10")
    assert isinstance(chip, RowNpu)
    same = True
    for cell in CELLS:
        dispatch_cycles, start_cycles, left = fit(cell)
        print(f"{cell}: dispatch_cycles {dispatch_cycles}, start_cycles {start_cycles} (squares left: {left:.2e})")
        same = same and chip.cores[0].dispatch(cell) == Dispatch(cell, dispatch_cycles, start_cycles)
    return int("--check" in sys.argv[1:] and not same)


if __name__ == "__main__":
    sys.exit(main())
