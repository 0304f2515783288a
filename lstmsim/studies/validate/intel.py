"""The 19 workloads of Intel's NPU: its RTL simulation and its C++ simulator state cycles and TOPS of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.files.tables.published import IntelWorkload
from lstmsim.studies.validate.bench import Bench, layer
from lstmsim.studies.validate.rows import Group, Row

__all__ = ["CPP", "RTL", "intel_group", "layers_of"]

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

    chip: the preset, `RTL` or `CPP`.
    workloads: the published figures.
    bench: simulates the workloads.
    tick: is called after each workload.
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
