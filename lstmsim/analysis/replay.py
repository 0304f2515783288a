"""A trace replayed on real numbers and compared with the golden model: every tile and row block of it, and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake, ReplayError
from lstmsim.machines.registry import target_of
from lstmsim.model.model import Precision
from lstmsim.model.numerics.accuracy import Accuracy, accuracy
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.golden import NetworkRun, float_arithmetic, run_network
from lstmsim.model.numerics.jobs import (
    JobData,
    JobNumbers,
    beginning_lines,
    calibration_lines,
    fixed_numbers,
    float_numbers,
    run_jobs,
)
from lstmsim.model.numerics.weights import Floats, Network, Stimulus
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from lstmsim.report.tables import table


def replay(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    numbers: Mapping[int, JobNumbers],
    progress: Callable[[int, int], None] | None = None,
) -> Mapping[int, NetworkRun]:
    """Compute the outputs of jobs by executing a trace."""
    model = target_of(scenario.chip.kind).structural_model()
    if model is None:
        kind = scenario.chip.kind
        raise InputError(f"a chip of kind {kind!r} has no structural model, its numbers cannot be checked")
    return model(scenario, program, trace, numbers, progress)


#: Largest difference of two float64 runs that differ in the order of additions only, as a part of the largest value.
#: Rounding adds up to about (columns + steps) * 1e-16; a wrong or missing addend is far above it. A recurrence may
#: amplify differences. Its limit is `_MARGIN` times the difference that weights make if their last bit is changed.
FLOAT_TOLERANCE = 1e-9
_MARGIN = 1000

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Executed:
    """The values that a job computed, beside those of the golden model. In fixed point they are equal bit for bit.

    run: values of the job.
    golden: values of the golden model.
    error: largest difference in float64, as a part of the largest value.
    saturated, overflowed: how many values did not fit.
    """

    run: NetworkRun
    golden: NetworkRun
    error: float = 0.0
    saturated: int = 0
    overflowed: int = 0


@dataclass(frozen=True, eq=False)
class Checked:
    """The result of a job's replay. In fixed point its outputs are equal to the golden model bit for bit.

    job: name of the job.
    data: numbers of the job, and where they are from.
    values: how many outputs were compared.
    float_error: largest difference in float64, as a part of the largest value.
    saturated, overflowed: how many values of the fixed-point run did not fit.
    accuracy: of the fixed-point run against float64.
    fixed, float64: outputs of the machine in fixed and in floating point, [steps, outputs], as real numbers.
    """

    job: str
    data: JobData
    values: int
    float_error: float
    saturated: int
    overflowed: int
    accuracy: Accuracy
    fixed: NDArray[np.float64]
    float64: NDArray[np.float64]


def check_numerics(
    scenario: Scenario, program: Program, trace: Trace, data: Mapping[int, JobData], progress: Progress | None = None
) -> tuple[Checked, ...]:
    """Replay jobs in fixed and in floating point, and compare them with the golden model.

    Jobs that were turned away are left out.

    scenario, program, trace: the run.
    data: index of a job -> its numbers.
    progress: called with the rows that are done, and how many rows there are.
    `ReplayError` if one value differs or is used too early.
    """
    half = _halves(progress)
    fixed = execute(scenario, program, trace, data, fixed=True, progress=half(0))
    floats = execute(scenario, program, trace, data, fixed=False, progress=half(1))
    checks = []
    for index, own in fixed.items():
        values = sum(one.h.size for both in own.golden.passes for one in both)
        output, exact = own.run.output(), floats[index].run.output()
        quality = accuracy(output, floats[index].golden.output())
        lost = own.saturated, own.overflowed
        name = scenario.jobs[index].name
        checks.append(Checked(name, data[index], values, floats[index].error, *lost, quality, output, exact))
    return tuple(checks)


def execute(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    data: Mapping[int, JobData],
    *,
    fixed: bool,
    progress: Progress | None = None,
) -> Mapping[int, Executed]:
    """Replay jobs in fixed or in floating point, and compare each with the golden model."""
    ran = trace.task("core") >= 0
    every = fixed_numbers(data, scenario.precision) if fixed else float_numbers(data)
    numbers = {index: each for index, each in every.items() if ran[index]}
    _refuse_what_has_no_beginning(scenario, numbers)
    golden = run_jobs(numbers)
    lost = {index: _lost(each) for index, each in numbers.items()}
    done = replay(scenario, program, trace, numbers, progress)
    executed = {}
    for index, own in numbers.items():
        name = scenario.jobs[index].name
        if fixed:
            _compare(name, done[index], golden[index])
            if _lost(own) != tuple(2 * each for each in lost[index]):
                raise ReplayError(f"job {name}: the replay does not saturate where the golden model does")
            executed[index] = Executed(done[index], golden[index], 0.0, *lost[index])
        else:
            before = None if own.follows is None else golden[own.follows]
            executed[index] = _close(name, data[index].network, own.after(before), done[index], golden[index])
    return executed


def _refuse_what_has_no_beginning(scenario: Scenario, numbers: Mapping[int, JobNumbers]) -> None:
    """`InputError` if the first states of a job should come from a job that was turned away."""
    mistakes = [
        Mistake(
            f"job {scenario.jobs[index].name}",
            f"begins with the last states of {scenario.jobs[each.follows].name}, which was turned away and has none",
        )
        for index, each in numbers.items()
        if each.follows is not None and each.follows not in numbers
    ]
    if mistakes:
        raise InputError(mistakes)


def _close(name: str, network: Network, stimulus: Stimulus, done: NetworkRun, golden: NetworkRun) -> Executed:
    """Compare a float64 run with the golden run; `ReplayError` if they differ by more than the order of additions."""
    moved = run_network(float_arithmetic(_last_bits_changed(network)), _last_bit_of_states(stimulus))
    allowed = max(FLOAT_TOLERANCE, _MARGIN * _difference(moved, golden))
    error = _difference(done, golden)
    if not error <= allowed:
        text = f"in float64 the schedule differs from the golden model by {error:.3g} of the largest value"
        raise ReplayError(f"job {name}: {text}, more than the {allowed:.3g} of rounding")
    return Executed(done, golden, error)


def _halves(progress: Callable[[int, int], None] | None) -> Callable[[int], Callable[[int, int], None] | None]:
    """Report the progress of two passes over the trace as one progress."""
    if progress is None:
        return lambda half: None
    return lambda half: lambda done, total: progress(half * total + done, 2 * total)


def _lost(numbers: JobNumbers) -> tuple[int, int]:
    """How many values saturated and how many sums overflowed so far, over all passes."""
    every = [each for both in numbers.arithmetic for each in both if isinstance(each, FixedArithmetic)]
    return sum(sum(each.saturated.values()) for each in every), sum(sum(each.overflowed.values()) for each in every)


def _compare(job: str, done: NetworkRun, golden: NetworkRun) -> None:
    """Compare every h, and every state at the end, bit for bit; `ReplayError` if one differs."""
    for layer, (ours, theirs) in enumerate(zip(done.passes, golden.passes, strict=True)):
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


def _difference(done: NetworkRun, golden: NetworkRun) -> float:
    """The largest difference of any h or final state, as a part of the largest value; NaN if any value is NaN."""
    worst = 0.0
    for one, other in zip(chain(*done.passes), chain(*golden.passes), strict=True):
        for ours, theirs in ((one.h, other.h), *((one.states[name], each) for name, each in other.states.items())):
            largest = max(float(np.abs(theirs).max(initial=0)), 1e-300)
            error = float(np.abs(ours - theirs).max(initial=0)) / largest
            worst = error if error > worst or error != error else worst
            if worst != worst:
                return worst
    return worst


def _last_bits_changed(network: Network) -> Network:
    """The network with every weight moved by about half a unit in its last place, up and down in turn."""
    passes = tuple(
        tuple(replace(each, matrices={key: _moved(matrix) for key, matrix in each.matrices.items()}) for each in both)
        for both in network.passes
    )
    return Network(network.model, passes)


def _last_bit_of_states(stimulus: Stimulus) -> Stimulus:
    """The same frames. The states before the first step are moved like weights: another job may have rounded them."""
    states = {key: {name: _moved(values) for name, values in each.items()} for key, each in stimulus.initial.items()}
    return replace(stimulus, initial=states)


def _moved(values: Floats) -> Floats:
    signs = np.where(np.arange(values.size) % 2, 1.0, -1.0).reshape(values.shape)
    changed: Floats = values.astype(np.float64) * (1 + signs * 2.0**-52)
    return changed


_LIMIT = 40
#: At 10 dB the noise is a third of the signal.
_WEAK_DB = 10


def checks_text(checks: Sequence[Checked], precision: Precision, turned_away: int = 0) -> str:
    """A table of the jobs that were executed, without a final newline.

    precision: widths of the fixed-point run.
    turned_away: how many jobs were turned away and have no row.
    """
    rows = [["job", "weights", "inputs", "outputs", "fixed point", "float64", "SQNR", "saturated", "overflowed"]]
    for each in checks[:_LIMIT]:
        names = [each.job, each.data.weights, each.data.inputs, f"{each.values:,}"]
        sqnr = f"{each.accuracy.sqnr_db:.1f} dB" if isfinite(each.accuracy.sqnr_db) else "-"
        error = f"{each.float_error:.0e}" if each.float_error else "0"
        rows.append([*names, "equal", error, sqnr, f"{each.saturated:,}", f"{each.overflowed:,}"])
    widths = f"{precision.weight_bits}-bit weights, {precision.vector_bits}-bit vectors, {precision.tail_bits}-bit tail"
    lines = ["NUMBERS: every tile and row block of the trace, executed and compared with the golden model"]
    lines += table(rows, left=(0, 1, 2))
    weak = [each.job for each in checks if each.accuracy.sqnr_db < _WEAK_DB]
    if weak:
        lines.append(f"below {_WEAK_DB} dB the widths are too small for the answer: {', '.join(weak[:5])}")
    if len(checks) > _LIMIT:
        lines.append(f"... and {len(checks) - _LIMIT} more jobs, all equal")
    lines += beginning_lines([(each.job, each.data.begins) for each in checks])
    if turned_away:
        lines.append(f"{turned_away:,} job{'s' * (turned_away > 1)} turned away, with nothing to compute")
    lines += calibration_lines([each.data for each in checks])
    lines += [
        f"fixed point ({widths}) is equal bit for bit; float64",
        "differs by that part of the largest output, from the order of additions; SQNR compares fixed point",
        "with float64, `lstmsim accuracy` shows more",
    ]
    return "\n".join(lines)


def checks_json(checks: Sequence[Checked]) -> list[dict[str, Any]]:
    """The jobs that were executed, as plain data. A signal-to-noise ratio without noise is null."""
    return [
        {
            "job": each.job,
            "weights": each.data.weights,
            "inputs": each.data.inputs,
            "begins_with": each.data.begins or "0",
            "calibrated_on": each.data.calibrated_on or None,
            "outputs": each.values,
            "fixed_point_equal": True,
            "float_error": each.float_error,
            "saturated": each.saturated,
            "overflowed": each.overflowed,
            "sqnr_db": each.accuracy.sqnr_db if isfinite(each.accuracy.sqnr_db) else None,
        }
        for each in checks
    ]
