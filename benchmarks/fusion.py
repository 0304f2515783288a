"""Fused kernels of the parallel device: seconds and memory to plan, write, price, lower and simulate them.

Run as `python benchmarks/fusion.py`, it prints its tables; with the number of a row, that row as a line of JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from measures import cpu_seconds, measured_package, table

from lstmsim import engines, load_chip
from lstmsim.machines.parallel import fusion
from lstmsim.machines.parallel.fused.kernels import fused_run
from lstmsim.machines.parallel.lowering.program import program_of_kernels
from lstmsim.machines.parallel.traffic import priced
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.plan import MODES
from lstmsim.model.fusion.planner import planned
from lstmsim.program.unflatten import tabled

__all__ = ["BOTH_HEAD", "FUSION_HEAD", "FUSION_NOTE", "both_rows", "fusion_rows"]

#: Batch and hidden units of the layer-normalised LSTM.
_SIZES = ((16, 256), (256, 512), (256, 2048))
_PARTS = ("plan", "write", "price", "lower", "simulate")
#: What the table shows.
FUSION_NOTE = """One time step of a layer-normalised LSTM (43 operations behind the products) on the preset `v100`, each
row in a new process. Seconds are of the clock; MB is the most memory that the process had had in the end. The second
table has the simulation alone, of small steps, by both engines."""
FUSION_HEAD = ["batch x hidden, kernels of", "million instructions", *(f"{each}: s" for each in _PARTS), "MB"]
BOTH_HEAD = ["batch x hidden, kernels of", "fast: CPU ms", "reference: CPU ms", "ratio"]
#: Preset, batch and hidden units that the reference engine can do as well.
_SMALL = (("v100", 1, 64), ("edge", 2, 64), ("edge", 8, 256))


def measured(batch: int, hidden: int, mode: str) -> dict[str, float]:
    """Seconds of each part, instructions, peak memory in MB."""
    chip: Any = load_chip("v100")
    result = {}
    graph, device = named_graph("ln-lstm", {"batch": batch, "hidden": hidden}), fusion.numbers(chip, {})

    def part(name: str, work: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        made = work()
        result[name] = time.perf_counter() - begin
        return made

    kernels = part("plan", lambda: kernels_of(graph, planned(graph, device), device, mode))
    run = part("write", lambda: fused_run(graph, kernels, chip))
    costs = part("price", lambda: priced(run, chip))
    lowered = part("lower", lambda: program_of_kernels(chip, costs))
    part("simulate", lambda: engines.totals(lowered.flat, check=False))
    result["instructions"] = sum(len(each.instructions.kind) for each in run.kernels)
    result["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return result


_TASKS = [(batch, hidden, mode) for batch, hidden in _SIZES for mode in MODES]


def fusion_rows() -> list[list[str]]:
    """Measure all of it, each in a new process."""
    rows = []
    for number, (batch, hidden, mode) in enumerate(_TASKS):
        words = [sys.executable, __file__, str(number)]
        of = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        seconds = [f"{of[part]:.2f}" for part in _PARTS]
        rows.append([f"{batch} x {hidden}, {mode}", f"{of['instructions'] / 1e6:.2f}", *seconds, f"{of['MB']:.0f}"])
    return rows


def both_rows() -> list[list[str]]:
    """Measure the simulation of small steps by both engines."""
    return [_both(*size, mode) for size in _SMALL for mode in ("op", "stitch")]


def _both(preset: str, batch: int, hidden: int, mode: str) -> list[str]:
    """A row."""
    chip: Any = load_chip(preset)
    graph, device = named_graph("ln-lstm", {"batch": batch, "hidden": hidden}), fusion.numbers(chip, {})
    work = fusion.lower(chip, graph, kernels_of(graph, planned(graph, device), device, mode), mode)
    program = tabled(work.flat, work.names)
    fast = cpu_seconds(lambda: engines.totals(work.flat), 5)
    reference = cpu_seconds(lambda: engines.totals(program, "reference"), 1)
    ratio = f"{reference / fast:,.0f}"
    return [f"{batch} x {hidden} on `{preset}`, {mode}", f"{1e3 * fast:.1f}", f"{1e3 * reference:,.0f}", ratio]


if __name__ == "__main__":
    measured_package()
    if len(sys.argv) > 1:
        print(json.dumps(measured(*_TASKS[int(sys.argv[1])])))
    else:
        print(table(FUSION_HEAD, fusion_rows(), names=1), table(BOTH_HEAD, both_rows(), names=1), sep="\n\n")
