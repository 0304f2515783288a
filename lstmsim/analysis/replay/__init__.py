"""The replay of a trace on real numbers: it executes every tile and row block of the trace, in order, and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lstmsim.base.errors import InputError
from lstmsim.machines.registry import target_of
from lstmsim.model.numerics.golden import NetworkRun
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

__all__ = ["JobNumbers", "replay"]


def replay(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    numbers: Mapping[int, JobNumbers],
    progress: Callable[[int, int], None] | None = None,
) -> Mapping[int, NetworkRun]:
    """Compute the outputs of jobs by executing a trace.

    Returns index of a job -> its values. Jobs that were turned away are left out.

    scenario, program, trace: the run.
    numbers: index of a job -> its numbers.
    progress: called with the rows that are done, and how many rows there are.
    `ReplayError` if the trace uses a value before it is there, twice or never, or more than the machine has.
    `InputError` for chips without a structural model.

    >>> from lstmsim.studies.simulate.run import run
    >>> from lstmsim.model.numerics.golden import float_arithmetic, run_network
    >>> from lstmsim.model.numerics.weights import random_network, random_stimulus
    >>> core = {"npe": 64, "ep": 4, "vp": 16}
    >>> layer = {"cell": "lstm", "hidden": 6, "input": 5}
    >>> result = run({"chip": {"kind": "column-npu", "frequency_mhz": 260, "cores": [core]},
    ...               "jobs": [{"model": {"layers": [layer]}, "steps": 3}]})
    >>> model = result.scenario.jobs[0].model
    >>> numbers = JobNumbers(float_arithmetic(random_network(model, seed=1)), random_stimulus(model, 3, seed=1))
    >>> done = replay(result.scenario, result.program, result.trace, {0: numbers})
    >>> golden = run_network(numbers.arithmetic, numbers.stimulus)
    >>> bool(abs(done[0].output() - golden.output()).max() < 1e-12)
    True
    """
    model = target_of(scenario.chip.kind).structural_model()
    if model is None:
        kind = scenario.chip.kind
        raise InputError(f"a chip of kind {kind!r} has no structural model, its numbers cannot be checked")
    return model(scenario, program, trace, numbers, progress)
