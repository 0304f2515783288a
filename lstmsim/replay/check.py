"""Replays a trace in fixed and in floating point and compares it with the golden model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from lstmsim.errors import InputError, Mistake, ReplayError
from lstmsim.numerics.accuracy import Accuracy, accuracy
from lstmsim.numerics.fixed import FixedArithmetic, fixed_arithmetic
from lstmsim.numerics.golden import NetworkRun, float_arithmetic, run_network
from lstmsim.numerics.weights import Floats, Network, Stimulus
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from lstmsim.replay import replay
from lstmsim.replay.numbers import JobNumbers
from lstmsim.workload.scenario import Scenario

__all__ = ["FLOAT_TOLERANCE", "Checked", "JobData", "check_numerics"]

#: Largest difference of two float64 runs that differ in the order of additions only, as a part of the largest value.
#: Rounding adds up to about (columns + steps) * 1e-16; a wrong or missing addend is far above it. A recurrence that
#: amplifies differences gets more: `_MARGIN` times what weights changed in their last bit make of the output.
FLOAT_TOLERANCE = 1e-9
_MARGIN = 1000


@dataclass(frozen=True, eq=False)
class JobData:
    """The numbers of a job, and in words where its weights and its input are from."""

    network: Network
    stimulus: Stimulus
    weights: str
    inputs: str


@dataclass(frozen=True, eq=False)
class Checked:
    """What a job's replay showed: `values` outputs equal to the golden model bit for bit in fixed point, and up to
    `float_error` (part of the largest value) in float64.

    `saturated` and `overflowed` count values of the fixed-point run that did not fit; `accuracy` is against float64.
    """

    job: str
    weights: str
    inputs: str
    values: int
    float_error: float
    saturated: int
    overflowed: int
    accuracy: Accuracy


def check_numerics(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    data: Mapping[int, JobData],
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Checked, ...]:
    """Replay the jobs in `data` (by index) and compare; `ReplayError` if one value differs or is used too early.

    Jobs that were turned away have computed nothing and are left out.
    """
    ran = trace.task("core") >= 0
    data = {index: each for index, each in data.items() if ran[index]}
    fixed = {index: _fixed(scenario, index, each) for index, each in data.items()}
    golden = {index: run_network(each.arithmetic, each.stimulus) for index, each in fixed.items()}
    lost = {index: _lost(each) for index, each in fixed.items()}
    half = _halves(progress)
    done = replay(scenario, program, trace, fixed, half(0))
    for index, own in fixed.items():
        name = scenario.jobs[index].name
        _compare(name, done[index], golden[index])
        if _lost(own) != tuple(2 * each for each in lost[index]):
            raise ReplayError(f"job {name}: the replay does not saturate where the golden model does")
    floats = {index: JobNumbers(float_arithmetic(each.network), each.stimulus) for index, each in data.items()}
    done = replay(scenario, program, trace, floats, half(1))
    found = []
    for index, each in data.items():
        exact = run_network(floats[index].arithmetic, each.stimulus)
        moved = run_network(float_arithmetic(_last_bits_changed(each.network)), each.stimulus)
        allowed = max(FLOAT_TOLERANCE, _MARGIN * _difference(moved, exact))
        error = _difference(done[index], exact)
        if not error <= allowed:
            text = f"in float64 the schedule differs from the golden model by {error:.3g} of the largest value"
            raise ReplayError(f"job {scenario.jobs[index].name}: {text}, more than the {allowed:.3g} of rounding")
        values = sum(one.h.size for both in golden[index].passes for one in both)
        quality = accuracy(golden[index].output(), exact.output())
        found.append(
            Checked(scenario.jobs[index].name, each.weights, each.inputs, values, error, *lost[index], quality)
        )
    return tuple(found)


def _fixed(scenario: Scenario, index: int, data: JobData) -> JobNumbers:
    try:
        return JobNumbers(fixed_arithmetic(data.network, data.stimulus, scenario.precision), data.stimulus)
    except InputError as error:
        name = scenario.jobs[index].name
        mistakes = [
            Mistake(f"job {name}" + (f": {each.place}" if each.place else ""), each.sentence) for each in error.mistakes
        ]
        raise InputError(mistakes) from None


def _halves(progress: Callable[[int, int], None] | None) -> Callable[[int], Callable[[int, int], None] | None]:
    """Two passes over the trace as one progress."""
    if progress is None:
        return lambda half: None
    return lambda half: lambda done, total: progress(half * total + done, 2 * total)


def _lost(numbers: JobNumbers) -> tuple[int, int]:
    """Values that saturated and sums that overflowed so far, over all passes."""
    every = [each for both in numbers.arithmetic for each in both if isinstance(each, FixedArithmetic)]
    return sum(sum(each.saturated.values()) for each in every), sum(sum(each.overflowed.values()) for each in every)


def _compare(job: str, found: NetworkRun, golden: NetworkRun) -> None:
    """Bit for bit: every h, and every state at the end."""
    for layer, (ours, theirs) in enumerate(zip(found.passes, golden.passes, strict=True)):
        for direction, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            wrong = np.argwhere(one.h != other.h)
            if len(wrong):
                step, unit = (int(each) for each in wrong[0])
                raise ReplayError(
                    f"job {job}: layer {layer}, direction {direction}, step {step}, unit {unit}: the schedule "
                    f"computes {one.h[step, unit]}, the golden model {other.h[step, unit]} ({len(wrong)} values differ)"
                )
            for state, values in other.states.items():
                if not np.array_equal(one.states[state], values):
                    raise ReplayError(f"job {job}: layer {layer}: state {state!r} differs from the golden model's")


def _difference(found: NetworkRun, golden: NetworkRun) -> float:
    """The largest difference of any h or final state, as a part of the largest value; not a number if one is not."""
    worst = 0.0
    for one, other in zip(chain(*found.passes), chain(*golden.passes), strict=True):
        for ours, theirs in ((one.h, other.h), *((one.states[name], each) for name, each in other.states.items())):
            largest = max(float(np.abs(theirs).max(initial=0)), 1e-300)
            error = float(np.abs(ours - theirs).max(initial=0)) / largest
            worst = error if error > worst or error != error else worst
            if worst != worst:
                return worst
    return worst


def _last_bits_changed(network: Network) -> Network:
    """The network with every weight moved by about half a unit in its last place, up and down in turn."""

    def moved(values: Floats) -> Floats:
        signs = np.where(np.arange(values.size) % 2, 1.0, -1.0).reshape(values.shape)
        changed: Floats = values.astype(np.float64) * (1 + signs * 2.0**-52)
        return changed

    passes = tuple(
        tuple(replace(each, matrices={key: moved(matrix) for key, matrix in each.matrices.items()}) for each in both)
        for both in network.passes
    )
    return Network(network.model, passes)
