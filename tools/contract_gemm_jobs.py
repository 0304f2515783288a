"""The cases of recurrent jobs on the multi-core CPU (docs/multicore.md, sections 6 and 7), run on an engine.

The result has the layout of `expect`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines
from lstmsim.machines.gemm import GemmPlan
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.jobs import Shape, TracedPass, job_phases, traced
from lstmsim.machines.multicore.lines.space import COLUMNS
from lstmsim.machines.multicore.stages import cores_of, place_of
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer
from lstmsim.program.program import Program, Task
from tools.multicore_waits import step_times, waits_of

__all__ = ["job_result"]


def job_result(machine: MulticoreCpu, case: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """What the engine makes of a job alone on a machine.

    machine: of the case.
    case: with `cell`, `layers`, `steps`, `batch`, `threads`, `arrival`, `frame_interval`.
    engine: a key of `lstmsim.engines.ENGINES`.
    """
    layers = tuple(Layer(cell(case["cell"]), hidden, width) for hidden, width in case["layers"])
    shape = Shape(layers, case["steps"], case["batch"], case["threads"])
    first, *others = place_of(machine, 0, shape.threads)
    task = Task(
        "job",
        ((0, job_phases(machine, shape, 0)),),
        (),
        (first,),
        case["arrival"],
        case["frame_interval"],
        gang=(tuple(others),),
    )
    program = Program(cores_of(machine), (task,))
    trace = engines.run(program, engine)
    return {
        "finish": trace.makespan_cycles,
        "waits": dict(waits_of(step_times(program, trace))),
        **_traced_shown(traced(machine, shape, 0)),
    }


def _traced_shown(job: Sequence[TracedPass]) -> dict[str, Any]:
    steps = [step.counts for one in job for step in one.steps]
    return {
        "plans": [[_plan_shown(each) for each in one.plans] for one in job],
        "memory_lines_by_traced_step": [[_memories(part) for part in step] for step in steps],
        "l2_accesses_by_traced_step": [step[:, COLUMNS.index("l2")].tolist() for step in steps],
    }


def _plan_shown(plan: GemmPlan) -> list[Any]:
    cut = plan.ranked[plan.chosen].cut
    return [{key.replace("_", ""): value for key, value in asdict(cut).items()}, plan.chosen]


def _memories(counts: NDArray[np.int64]) -> dict[str, int]:
    """Lines of the memories that occur."""
    return {str(place): lines for place, lines in enumerate(counts[len(COLUMNS) :].tolist()) if lines}
