"""One simulation as functions: run it, measure it, trace it, execute it, explain it, say what its input was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, cast

from lstmsim import __version__, engines, machines
from lstmsim.analysis.batches import batch_names
from lstmsim.analysis.report import Report, measure
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.engines.fast import run as fast
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Scenario, arriving
from lstmsim.program.program import Program
from lstmsim.program.runs import runs_of
from lstmsim.program.trace import Totals, Trace
from lstmsim.studies.shared.loading import Source, load_clocked
from lstmsim.studies.shared.request import Overrides, RandomWeights, takes, wrong_value
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.studies.simulate.request import SimulateRequest

if TYPE_CHECKING:
    from lstmsim.analysis.explanations.explanation import Explanation, Window
    from lstmsim.analysis.replay import Checked, Outputs
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.studies.serve.result import Serving


def about(scenario: Scenario, *, jobs: bool = True) -> dict[str, Any]:
    """Describe the input of a result as plain data.

    scenario: what was simulated or served.
    jobs: whether its jobs are the user's, so that the description is a scenario file that gives the same again; else
        they are templates of requests, and only chip, models and precision are described.
    """
    from lstmsim.files.scenario.written import resolved_data

    data = resolved_data(scenario)
    if not jobs:
        models = {entry["model"]["name"]: entry["model"] for entry in data["jobs"]}
        data = {key: value for key, value in data.items() if key != "jobs"} | {"models": list(models.values())}
    return {"version": __version__, "seeds": dict(scenario.seeds), "scenario": data}


#: Most operations whose trace is kept: a row has about 100 bytes.
MAX_TRACE_OPERATIONS = 10_000_000
#: Most operations of a run whose timeline a notebook shows unasked: more take seconds.
MAX_SHOWN_OPERATIONS = 100_000
#: Operations of the first steps that are explained in place of more: their alternatives take about a minute.
_WINDOW_OPERATIONS = 2_500_000
#: Steps that are explained at least, if they can be: the first one may find caches cold.
_WINDOW_STEPS = 2


@dataclass(frozen=True, eq=False)
class Run:
    """One simulation: what was asked, and the lowered program. Trace, report and timeline are made when asked for.

    scenario: what was asked.
    engine: a key of `lstmsim.engines.ENGINES`.
    program: what the engine runs.
    lowered: whether a target has just made the program, so that it is not checked for broken rules.
    batches: the totals, where the chip runs whole batches one after the other; such a run has no trace.
    """

    scenario: Scenario
    engine: str
    program: Program
    lowered: bool = False
    batches: Totals | None = None

    @cached_property
    def operations(self) -> int:
        """How many operations the trace has a row for."""
        return sum(sum(phase.body.size * phase.repeat for phase in task.variants[0][1]) for task in self.program.tasks)

    @cached_property
    def trace(self) -> Trace:
        """What every unit did, event for event."""
        if self.batches is not None:
            text = (
                "batches of this chip are simulated each alone, so no trace has all: trace one, as a job with `batch`"
            )
            raise InputError(Mistake("batching", text))
        refuse_long_trace(self.operations)
        return engines.run(self.program, self.engine, check=not self.lowered)

    @cached_property
    def totals(self) -> Totals:
        """Cycles by name, work and finishes; made without a trace unless the trace is there already."""
        if self.batches is not None:
            return self.batches
        if self.engine == "fast" and "trace" not in self.__dict__:
            return fast.totals(self.program, check=not self.lowered)
        from lstmsim.program.accounts import totals_of

        return totals_of(self.program, self.trace)

    @cached_property
    def report(self) -> Report:
        """The report of the run."""
        chip, jobs = self.scenario.chip, self.scenario.jobs
        target = target_of(chip.kind)
        said: tuple[str, ...] = ()
        if self.batches is not None:
            from lstmsim.studies.serve.programs import ONE_BY_ONE

            said = (ONE_BY_ONE,)
        measured = measure(self.scenario, self.totals, self.engine, None if said else self.program)
        return replace(
            measured,
            remarks=(*measured.remarks, *said),
            planned=target.planned(chip, jobs),
            kernels=target.kernels(chip, jobs),
            stamping=partial(stamp_of_scenario, self.scenario),
            tracing=partial(trace, self.scenario, engine=self.engine),
        )

    @cached_property
    def timeline(self) -> Timeline:
        """What happened cycle by cycle, for pictures and trace files."""
        from lstmsim.analysis.timeline import build_timeline, job_groups

        chip = self.scenario.chip
        names = batch_names([job.name for job in self.scenario.jobs], runs_of(self.trace.tasks, self.trace.pauses))
        unit = chip.core_figures[0].unit.name
        groups = job_groups(self.scenario.jobs)
        return build_timeline(self.program, self.trace, names, chip.name, chip.frequency_mhz, unit, groups)

    def to_dict(self) -> dict[str, Any]:
        """The report of the run as plain data, and what was simulated."""
        return self.report.to_dict() | about(self.scenario)

    def to_text(self) -> str:
        """The report of the run as the terminal shows it."""
        return self.report.to_text()

    __str__ = to_text

    def __repr__(self) -> str:
        return f"<Run of {self.scenario.name} on {self.scenario.chip.name}>"

    def _repr_html_(self) -> str:
        from lstmsim.report.html.markup import element
        from lstmsim.report.results import in_page
        from lstmsim.studies.simulate.picture import plot

        page = self.report._repr_html_()
        if self.operations > MAX_SHOWN_OPERATIONS:
            return page + element("p", f"no picture: {self.operations:,} operations take long; lstmsim.plot draws them")
        return page + in_page(lambda: plot(self.timeline))


@takes(SimulateRequest)
def run(request: SimulateRequest) -> Run:
    """Simulate a scenario and keep everything: report, trace and timeline of one and the same run.

    >>> result = run({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> result.report.makespan_cycles == result.timeline.makespan_cycles
    True
    """
    loaded = load_clocked(request.scenario, request.overrides, request.clock)
    engine = engines.running(request.engine)
    if any(job.batching is not None for job in loaded.jobs):
        # not at the top: what few scenarios have must not delay the start of all others
        from lstmsim.studies.serve.programs import in_batches, simulated

        if in_batches(loaded.chip, loaded.jobs):
            program, totals = simulated(loaded.chip, loaded.jobs, engine)
            return Run(loaded, engine, program, lowered=True, batches=totals)
    return Run(loaded, engine, machines.lower(loaded.chip, loaded.jobs), lowered=True)


def refuse_long_trace(operations: int) -> None:
    """Raise `InputError` if a trace of so many operations would be too long to keep."""
    if operations > MAX_TRACE_OPERATIONS:
        text = (
            f"a trace of {operations:,} operations is too long to keep, at most {MAX_TRACE_OPERATIONS:,} are recorded"
        )
        raise InputError(
            f"{text}; fewer time steps have a shorter one, and the report alone, on the engine 'fast', needs none"
        )


@takes(SimulateRequest)
def simulate(request: SimulateRequest) -> Report:
    """Simulate a scenario: cycles, utilization, where the cycles went, when each job finished.

    >>> core = {"npe": 65536, "ep": 32, "vp": 2048}
    >>> chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [core]}
    >>> layer = {"cell": "lstm", "hidden": 512, "input": 512}
    >>> simulate({"chip": chip, "jobs": [{"model": {"layers": [layer]}, "steps": 20}]}).makespan_cycles
    1423
    """
    return run(request.scenario, engine=request.engine, overrides=request.overrides, clock=request.clock).report


def run_of(value: object, name: str) -> Run:
    """Give the run that is meant: a run itself, or the simulation of a scenario."""
    if isinstance(value, Run):
        return value
    expect(value, (Scenario, str, PathLike, Mapping), name, "a Run, as lstmsim.run gives it, or a scenario")
    return run(cast(Source, value))


def expect(value: object, kinds: tuple[type, ...], name: str, what: str) -> None:
    """Raise `InputError` unless a value is of one of the kinds.

    value: what a function got.
    kinds: the types that it takes.
    name: of the function, for the sentence.
    what: the kinds in words.

    >>> expect(5, (str,), "plot", "a text")
    Traceback (most recent call last):
    lstmsim.InputError: plot: expects a text; got a value of type int
    """
    if not isinstance(value, kinds):
        raise InputError(Mistake(name, f"expects {what}; got a value of type {type(value).__name__}"))


def check_numerics(
    result: Run | Source, *, random_weights: int | None = None, progress: Callable[[int, int], None] | None = None
) -> tuple[Checked, ...]:
    """Execute the trace of a run on the real weights of its jobs and compare with the golden model.

    Fixed point must be equal bit for bit, float64 to rounding. Jobs that were rejected are left out.

    result: the run, or a scenario to simulate.
    random_weights: the seed to draw weights with, for models that have none.
    progress: is called with rows done and in all.

    `ReplayError` if numbers differ. `InputError` for a model without weights, unless `random_weights` is given.

    >>> result = run({"chip": "column-npu-64k", "jobs": [{"model": "silero-vad-16k", "steps": 3}]})
    >>> check_numerics(result)[0].values
    384
    """
    result = run_of(result, "check_numerics")
    refuse(wrong_value("random_weights", random_weights, RandomWeights))
    from lstmsim.analysis.replay import check_numerics as check
    from lstmsim.files.scenario.numbers import job_data

    data = job_data(result.scenario, random_weights)
    return check(result.scenario, result.program, result.trace, data, progress)


def outputs(
    result: Run | Source,
    *,
    random_weights: int | None = None,
    checks: Sequence[Checked] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outputs:
    """Give the numbers that the simulated machine computed: a tensor [steps, outputs] for each job under its name.

    The trace of the run is executed, and every value compared with the golden model. The numbers are float64 where the
    scenario has no `precision`, else the real values of the fixed-point numbers. Jobs that were rejected have no
    tensor (`Outputs.rejected`).

    result: the run, or a scenario to simulate.
    random_weights, progress: as in `check_numerics`; so are the errors.
    checks: what `check_numerics` gave for the same run, so that the run is not executed again.

    >>> job = {"model": "silero-vad-16k", "steps": 3, "inputs": "silero-speech.safetensors"}
    >>> computed = outputs(run({"chip": "column-npu-64k", "jobs": [job]}))
    >>> computed.tensors["silero-vad-16k"].shape, computed.fixed
    ((3, 128), False)
    """
    result = run_of(result, "outputs")
    refuse(wrong_value("random_weights", random_weights, RandomWeights))
    from lstmsim.analysis import replay as making
    from lstmsim.files.scenario.numbers import job_data

    refuse(wrong_value("checks", checks, Sequence[making.Checked] | None))
    if checks is not None and len(checks) != len(result.report.jobs):
        raise InputError(Mistake("checks", f"must be those of the {len(result.report.jobs)} jobs, got {len(checks)}"))
    making.check_size(result.scenario)
    data = job_data(result.scenario, random_weights)
    return making.outputs(result.scenario, result.program, result.trace, data, progress, checks)


def serving(result: Run | Source, *, percentiles: Sequence[float] | None = None) -> Serving:
    """Say what serving the jobs of a run came to: rates, latencies with intervals, queues, misses and slowdowns by
    tenant.

    For the slowdowns each kind of job is also simulated alone on the chip, and for the offered load some hundreds of
    jobs at once.

    result: the run, or a scenario to simulate.
    percentiles: of the latencies; 50, 95, 99 and 99.9 unless given.

    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 50, "arrival": {"kind": "poisson", "rate_per_second": 1e5}}]
    >>> serving(run({"chip": "column-npu-16k", "jobs": jobs})).little.difference
    0
    """
    result = run_of(result, "serving")
    refuse(wrong_value("percentiles", percentiles, Sequence[float] | None))
    from lstmsim.studies.serve.metrics import served
    from lstmsim.traffic.latencies import PERCENTILES

    return served(
        result.scenario,
        result.program,
        result.report,
        result.totals,
        slowdowns=True,
        percentiles=PERCENTILES if percentiles is None else percentiles,
    )


@dataclass(frozen=True)
class Refused:
    """The reason why a chip has no serving figures."""

    sentence: str

    def to_text(self) -> str:
        """Give the reason as lines of at most 100 columns."""
        from lstmsim.report.tables import folded

        return "\n".join(folded(f"SERVING: no figures; {self.sentence}"))

    def to_dict(self) -> dict[str, str]:
        """Give the reason as plain data."""
        return {"refused": self.sentence}


def serving_or_refusal(result: Run) -> Serving | Refused:
    """Give the serving figures of a run, or why its chip has none.

    >>> job = {"model": "lstm-256", "steps": 1, "count": 2, "arrival": {"kind": "poisson", "rate_per_second": 1e4}}
    >>> serving_or_refusal(run({"chip": "column-npu-16k", "jobs": [job]})).requests
    2
    """
    try:
        return serving(result)
    except InputError as error:
        return Refused(f"{result.scenario.chip.name}: {'; '.join(map(str, error.mistakes))}")


def explain(
    result: Run | Source, *, device: str | None = None, progress: Callable[[int, int], None] | None = None
) -> Explanation:
    """Say why a run is not 100 % useful: its critical path, and what would shorten that, each change simulated.

    For requests that come over time it also says what held the slowest up (`Explanation.slowest`). Where the trace of a
    run is too long to keep, its first time steps are explained, simulated alone (`Explanation.window`).

    result: the run, or a scenario to simulate.
    device: the FPGA on which changes have their price; None: that on which the chip was built, if it is known, else
        prices are in multipliers.
    progress: is called with simulations done and in all.

    `InputError` for an unknown device, or if the trace is too long and cannot be shortened by explaining fewer steps.

    >>> explanation = explain(run({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}))
    >>> sum(share.cycles for share in explanation.shares) == explanation.makespan_cycles
    True
    """
    result = run_of(result, "explain")
    from lstmsim.analysis.explanations.explanation import explain as explaining
    from lstmsim.studies.fit.price import pricing

    prices = pricing(result.scenario, device)
    part, window = _explained_part(result)
    return replace(
        explaining(part.scenario, part.program, part.trace, progress, prices), window=window, misfit=prices.misfit
    )


def _explained_part(result: Run) -> tuple[Run, Window | None]:
    """Give the run itself if its trace can be kept."""
    from lstmsim.analysis.explanations.explanation import Window

    most = MAX_TRACE_OPERATIONS
    if result.operations <= most:
        return result, None
    jobs = result.scenario.jobs
    if arriving(jobs) == "open":
        fewer = "fewer entries of `jobs`, or a lower `count` or `until` of those that have one"
        _refuse_explaining(result, f"explain fewer requests ({fewer}), or requests of fewer `steps`")
    longest = max(job.steps for job in jobs)
    alike = min(job.steps for job in jobs) == longest
    steps = min(longest, max(_WINDOW_STEPS, longest * _WINDOW_OPERATIONS // result.operations) + 1)
    while steps > 1:
        steps -= 1
        part = _first_steps(result, steps)
        if part.operations <= most:
            return part, Window(steps, longest, result.totals.makespan_cycles, result.operations, most, alike)
        steps = min(steps, steps * most // part.operations + 1)
    _refuse_explaining(result, "one time step alone is too long as well: explain fewer jobs, or a smaller model")


def _first_steps(result: Run, steps: int) -> Run:
    jobs = tuple(replace(job, steps=min(job.steps, steps)) for job in result.scenario.jobs)
    scenario = replace(result.scenario, jobs=jobs)
    return replace(result, scenario=scenario, program=machines.lower(scenario.chip, jobs))


def _refuse_explaining(result: Run, instead: str) -> NoReturn:
    text = f"needs a trace, and one of {result.operations:,} operations is too long to keep, at most "
    raise InputError(Mistake("explain", f"{text}{MAX_TRACE_OPERATIONS:,} are recorded; {instead}"))


def trace(scenario: Source, *, engine: str = "fast", overrides: Overrides = ()) -> Timeline:
    """Simulate a scenario and give what happened cycle by cycle, as named spans.

    scenario, engine, overrides: as in `simulate`; so are the errors.

    >>> len(trace({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 2}]})) > 0
    True
    """
    return run(scenario, engine=engine, overrides=overrides).timeline
