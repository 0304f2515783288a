"""A trace executed on real numbers and compared with the golden model; the outputs of its jobs, and their file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from math import isfinite, isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake, ReplayError, refuse
from lstmsim.base.wording import show
from lstmsim.importers.tensors import MAX_HEADER, METADATA, write_safetensors
from lstmsim.machines.registry import target_of
from lstmsim.model.model import Precision
from lstmsim.model.numerics.accuracy import Accuracy, accuracy
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.golden import NetworkRun, Sender, float_arithmetic, run_network
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
from lstmsim.report.document import Document, Section, grid, remark
from lstmsim.report.results import Forms, Result, picked


def replay(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    numbers: Mapping[int, JobNumbers],
    progress: Callable[[int, int], None] | None = None,
) -> Mapping[int, NetworkRun]:
    """Compute the outputs of jobs by executing a trace."""
    together = next((job for job in scenario.jobs if job.batch > 1), None)
    if together is not None:
        text = "the numbers of inferences of one job are not executed; give them as requests with `batching`"
        raise InputError(Mistake(f"job {together.name}: batch", text))
    target = target_of(scenario.chip.kind)
    drawn = next((job for job in scenario.jobs if job.density is not None), None)
    if drawn is not None and target.reads_numbers(scenario.chip):
        text = "which elements change is drawn, so that no numbers go with the run: give `inputs` to check numbers"
        raise InputError(Mistake(f"job {drawn.name}: density", text))
    model = target.structural_model()
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
    """Values that a job computed, and those of the golden model; `error` is a part of the largest value."""

    run: NetworkRun
    golden: NetworkRun
    error: float = 0.0
    saturated: int = 0
    overflowed: int = 0


@dataclass(frozen=True, eq=False)
class Checked:
    """The result of a job's replay. In fixed point its outputs are equal to the golden model bit for bit.

    values: how many outputs were compared.
    float_error: largest difference in float64, as a part of the largest value; NaN: the trace is one of fixed point
        alone, because cycles depend on the numbers.
    fixed_executed: whether the trace was executed in fixed point; no: it is one of float64 alone.
    accuracy: of the fixed-point run, which `saturated` and `overflowed` count values of, against float64.
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
    fixed_executed: bool = True


def check_numerics(
    scenario: Scenario, program: Program, trace: Trace, data: Mapping[int, JobData], progress: Progress | None = None
) -> tuple[Checked, ...]:
    """Replay jobs in fixed and in floating point, and compare them with the golden model."""
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
        error, executed = floats[index].error, not isnan(own.error)
        checks.append(Checked(name, data[index], values, error, *lost, quality, output, exact, executed))
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
    target = target_of(scenario.chip.kind)

    def senders(index: int, own: JobNumbers) -> Sequence[Sender]:
        return target.senders(scenario.chip, scenario.jobs[index], own.arithmetic)

    golden = run_jobs(numbers, senders)
    lost = {index: _lost(each) for index, each in numbers.items()}
    if target.reads_numbers(scenario.chip) and fixed != scenario.precision_given:
        # the trace is of the other arithmetic, in which other columns were sent
        return {index: Executed(golden[index], golden[index], nan, *lost[index]) for index in numbers}
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
            moved = partial(senders, index, own)
            executed[index] = _close(name, data[index].network, own.after(before), done[index], golden[index], moved)
    return executed


def _refuse_what_has_no_beginning(scenario: Scenario, numbers: Mapping[int, JobNumbers]) -> None:
    """`InputError` if the first states of a job should come from a job that was rejected."""
    mistakes = [
        Mistake(
            f"job {scenario.jobs[index].name}",
            f"begins with the last states of {scenario.jobs[each.follows].name}, which was rejected and has none",
        )
        for index, each in numbers.items()
        if each.follows is not None and each.follows not in numbers
    ]
    refuse(mistakes)


def _close(
    name: str,
    network: Network,
    stimulus: Stimulus,
    done: NetworkRun,
    golden: NetworkRun,
    senders: Callable[[], Sequence[Sender]],
) -> Executed:
    """Compare a float64 run with the golden run; `ReplayError` if they differ by more than the order of additions."""
    changed = float_arithmetic(_last_bits_changed(network))
    moved = run_network(changed, _last_bit_of_states(stimulus), senders=senders())
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


def checks_document(checks: Sequence[Checked], precision: Precision, rejected: int = 0) -> Document:
    """Make a table of the jobs that were executed."""
    head = ["<job", "<weights", "<inputs", "outputs", "fixed point", "float64", "SQNR", "saturated", "overflowed"]
    rows = []
    for each in checks:
        sqnr = f"{each.accuracy.sqnr_db:.1f} dB" if isfinite(each.accuracy.sqnr_db) else "-"
        error = "not run" if isnan(each.float_error) else f"{each.float_error:.0e}" if each.float_error else "0"
        names = each.job, each.data.weights, each.data.inputs, each.values
        fixed = "equal" if each.fixed_executed else "not run"
        rows.append((*names, fixed, error, sqnr, each.saturated, each.overflowed))
    weak = [each.job for each in checks if each.accuracy.sqnr_db < _WEAK_DB]
    widths = f"{precision.weight_bits}-bit weights, {precision.vector_bits}-bit vectors, {precision.tail_bits}-bit tail"
    return Document.of(
        "NUMBERS: every tile and row block of the trace, executed and compared with the golden model",
        Section.of(
            grid(head, rows, limit=_LIMIT, more="jobs, all equal"),
            remark(f"below {_WEAK_DB} dB the widths are too small for the answer: {', '.join(weak[:5])}")
            if weak
            else None,
            *beginning_lines([(each.job, each.data.begins) for each in checks]),
            f"{rejected:,} job{'s' * (rejected > 1)} rejected, with nothing to compute" if rejected else None,
            *calibration_lines([each.data for each in checks]),
            f"fixed point ({widths}) is equal bit for bit; float64 differs by that part of the largest output, from "
            "the order of additions; SQNR compares fixed point with float64, `lstmsim accuracy` shows more",
        ),
    )


def checks_json(checks: Sequence[Checked]) -> list[dict[str, Any]]:
    """Give the jobs that were executed as plain data. A signal-to-noise ratio without noise is null."""
    return [
        {
            **picked(each, "job weights=data.weights inputs=data.inputs"),
            "begins_with": each.data.begins or "0",
            "calibrated_on": each.data.calibrated_on or None,
            "outputs": each.values,
            "fixed_point_equal": each.fixed_executed or None,
            "float_error": None if isnan(each.float_error) else each.float_error,
            **picked(each, "saturated overflowed sqnr_db=accuracy.sqnr_db"),
        }
        for each in checks
    ]


#: Most bytes of the outputs of all layers together, which the replay holds until its end.
MOST_BYTES = 10**9


@dataclass(frozen=True, eq=False)
class Outputs(Result, forms="lstmsim.analysis.replay"):
    """The outputs of a run.

    scenario: scenario of the run.
    fixed: whether the outputs are in fixed point, as the scenario's `precision` says, or in float64.
    tensors: name of a job -> [steps, outputs] of its last layer, both directions side by side, as float64 numbers.
    rejected: names of the jobs that computed nothing.
    data: name of a job -> its numbers, and where they are from.
    """

    scenario: Scenario
    fixed: bool
    tensors: Mapping[str, NDArray[np.float64]]
    rejected: tuple[str, ...]
    data: Mapping[str, JobData]


def check_size(scenario: Scenario) -> None:
    """Refuse a scenario whose outputs cannot be computed.

    `InputError` if the chip has no structural model, or if the outputs of all layers are larger than `MOST_BYTES`.
    """
    if target_of(scenario.chip.kind).structural_model() is None:
        text = f"a chip of kind {scenario.chip.kind!r} has no structural model that could compute them"
        raise InputError(Mistake("outputs", text))
    numbers = sum(job.steps * sum(layer.output for layer in job.model.layers) for job in scenario.jobs)
    if 8 * numbers > MOST_BYTES:
        size = f"{8 * numbers / 1e9:,.1f} GB"
        text = (
            f"those of all layers would be {size}, at most {MOST_BYTES / 1e9:g} GB are kept: take fewer steps or jobs"
        )
        raise InputError(Mistake("outputs", text))


def outputs(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    data: Mapping[int, JobData],
    progress: Progress | None = None,
    checks: Sequence[Checked] | None = None,
) -> Outputs:
    """Execute the trace on the numbers of all jobs, in fixed point with a `precision`, or take what `checks` have."""
    check_size(scenario)
    fixed = bool(scenario.precision_given)
    if checks is None:
        done = execute(scenario, program, trace, data, fixed=fixed, progress=progress)
        tensors = {scenario.jobs[index].name: own.run.output() for index, own in done.items()}
    else:
        tensors = {each.job: each.fixed if fixed else each.float64 for each in checks}
    rejected = tuple(job.name for job in scenario.jobs if job.name not in tensors)
    named = {scenario.jobs[index].name: each for index, each in data.items()}
    return Outputs(scenario, fixed, tensors, rejected, named)


#: Most groups of jobs with the same origins that a file's metadata names.
_MOST = 100
#: Most bytes of one tensor's description beside its name, and of the metadata.
_ENTRY, _METADATA = 100, 2**20


def check_names(scenario: Scenario) -> None:
    """Check that a file can hold a tensor for each job.

    `InputError` if the jobs are too many for a header, or one has a name that no tensor may have.
    """
    if any(job.name == METADATA for job in scenario.jobs):
        raise InputError(Mistake(f"job {METADATA}", "has a name that no tensor of a safetensors file may have"))
    header = _METADATA + sum(len(json.dumps(job.name)) + _ENTRY for job in scenario.jobs)
    if header > MAX_HEADER:
        text = f"{len(scenario.jobs):,} jobs are too many for one safetensors file, whose header holds at most"
        raise InputError(Mistake("outputs", f"{text} {MAX_HEADER // 2**20} MiB: give fewer jobs"))


def save_outputs(outputs: Outputs, path: str | os.PathLike[str], version: str) -> None:
    """Write a tensor [steps, outputs] as F64 for each job that was not rejected; the file is whole or not written."""
    name = os.fspath(path)
    if not name.lower().endswith(".safetensors"):
        raise InputError(Mistake(name, "expected a file name that ends in .safetensors"))
    check_names(outputs.scenario)
    write_safetensors(path, outputs.tensors, {"lstmsim": version} | outputs_metadata(outputs))


def outputs_metadata(outputs: Outputs) -> dict[str, str]:
    """Make the texts that the file has next to the tensors; lists and mappings are JSON."""
    scenario = outputs.scenario
    words = "real values of fixed-point numbers, equal bit for bit to the golden model"
    if not outputs.fixed:
        words = "float64, equal to the golden model but for the order of additions"
    metadata = {
        "schema": "lstmsim/outputs/2",
        "scenario": scenario.name,
        "chip": scenario.chip.name,
        "numbers": f"what the simulated machine computed: {words}",
        "shape": "[steps, outputs of the last layer, both directions side by side]",
        "jobs": json.dumps(_origins(outputs)),
    }
    if outputs.fixed:
        metadata["precision"] = json.dumps(asdict(scenario.precision))
    if outputs.rejected:
        away = [show(name) for name in outputs.rejected[:_MOST]]
        metadata["rejected"] = json.dumps({"count": len(outputs.rejected), "first": away})
    return metadata


def _origins(outputs: Outputs) -> list[dict[str, Any]]:
    """Where the numbers of jobs are from: one entry for jobs with equal origins, the first `_MOST` entries."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in outputs.tensors:
        data = outputs.data[name]
        calibrated = data.calibrated_on or "the frames of these and the model's other jobs"
        key = (data.network.model.name, data.weights, data.inputs, data.begins or "0")
        groups.setdefault((*key, calibrated if outputs.fixed else ""), []).append(name)
    keys = ("model", "weights", "inputs", "begins_with", "calibrated_on")
    listed: list[dict[str, Any]] = [
        {**{key: each for key, each in zip(keys, group, strict=True) if each}, "count": len(names), "first": names[:3]}
        for group, names in list(groups.items())[:_MOST]
    ]
    return listed + ([{"more": len(groups) - _MOST}] if len(groups) > _MOST else [])


def outputs_json(outputs: Outputs) -> dict[str, Any]:
    """Give shape, smallest and largest number of each tensor as plain data of schema `lstmsim/outputs/2`."""
    return {
        "schema": "lstmsim/outputs/2",
        "fixed": outputs.fixed,
        "tensors": {
            name: {"shape": list(values.shape), "smallest": float(values.min()), "largest": float(values.max())}
            for name, values in outputs.tensors.items()
        },
        "rejected": list(outputs.rejected),
    }


def _document(outputs: Outputs) -> Document:
    """Make a table with a row for each job, and name the jobs that computed nothing."""
    rows = [
        (name, *values.shape, f"{values.min():.4g}", f"{values.max():.4g}") for name, values in outputs.tensors.items()
    ]
    rejected = f"rejected, without outputs: {', '.join(outputs.rejected)}" if outputs.rejected else None
    table = grid(["<job", "steps", "outputs", "smallest", "largest"], rows)
    headline = f"OUTPUTS of {outputs.scenario.name}, in {'fixed point' if outputs.fixed else 'float64'}"
    return Document.of(headline, table, rejected)


FORMS = Forms(outputs_json, _document)
