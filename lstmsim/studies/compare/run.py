"""The same jobs on several chips: as a whole, or each distinct model alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, product
from typing import Any

from lstmsim import engines, machines
from lstmsim.analysis.report import NOBODY, Report, measure
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.units import cycles_to_ms
from lstmsim.base.wording import counted, show
from lstmsim.files.published import Measurement, deepbench
from lstmsim.files.scenario.jobs import with_numbers
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Chip, Job, Scenario, arriving
from lstmsim.report.stamp import Stamp
from lstmsim.studies.compare.device_fits import device_fits
from lstmsim.studies.compare.published import changed_keys, peak_tops, published_columns, stands_for
from lstmsim.studies.compare.request import CompareRequest
from lstmsim.studies.compare.result import Comparison, Entry, Machine, Workload, latencies, sooner
from lstmsim.studies.compare.stability import stable
from lstmsim.studies.serve.metrics import served
from lstmsim.studies.serve.programs import ONE_BY_ONE, in_batches, simulated
from lstmsim.studies.shared.loading import AtClock, load_at_clocks
from lstmsim.studies.shared.request import names_of, takes, told_apart
from lstmsim.studies.shared.stamp import stamp_of, stamp_of_scenario
from lstmsim.studies.sweep.ahead import Ahead, Workers


def chips_of(scenario: Scenario, names: Sequence[str], base: str | None = None) -> tuple[Chip, ...]:
    """List the chips of a comparison: the base (the scenario's own chip, unless another is named) first.

    `InputError` with every name that is unknown or stands for a chip that is listed already.
    """
    chips: list[tuple[str, Chip]] = [] if base is not None else [("the scenario's own chip", scenario.chip)]
    mistakes: list[Mistake] = []
    for name in [*([base] if base is not None else []), *names]:
        try:
            chip = load_chip(name)
        except InputError as error:
            mistakes += error.mistakes
            continue
        same = next((other for other, known in chips if known == chip), None)
        if same is None:
            chips.append((show(name), chip))
        else:
            again = "is named twice" if same == show(name) else f"is the same as {same}"
            mistakes.append(Mistake(f"chip {show(name)}", f"{again}; expected different chips"))
    refuse(mistakes)
    return tuple(chip for _, chip in chips)


def as_it_can(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """The same work as the machine can do it, and remarks on what is different."""
    chip, remarks = scenario.chip, list[str]()
    target = target_of(chip.kind)
    if any(job.on for job in scenario.jobs):
        scenario = replace(scenario, jobs=tuple(job.at(chip) for job in scenario.jobs))
    if target.deals and any(job.batch > 1 for job in scenario.jobs):
        # The work stays the same: this machine gives the inferences of a batch to its threads.
        scenario = replace(scenario, jobs=_unbatched(scenario.jobs), offers={})
        remarks.append(f"{chip.name}: batched inferences run as jobs of their own")
    return with_numbers(scenario), remarks


def _unbatched(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Make a job for each inference; a job after a batch comes after the inference of its own number in that batch."""
    first = [0, *accumulate(job.batch for job in jobs)]
    single = []
    for job in jobs:
        for number in range(job.batch):
            after = None if job.after is None else first[job.after] + min(number, jobs[job.after].batch - 1)
            single.append(replace(job, batch=1, after=after))
    return tuple(single)


def _has_first_step(chips: Sequence[Chip], jobs: Sequence[Job]) -> bool:
    """Whether the first step is simulated alone: a chip begins cold, and the jobs come at once and have later steps."""
    some_have_later = any(job.steps > 1 for job in jobs)
    cold = (target_of(chip.kind).begins_cold(chip) for chip in chips)
    return some_have_later and arriving(jobs) == "at once" and any(cold)


Progress = Callable[[int, int], None]
#: Most jobs of which a chip says why it cannot run them.
_MOST_REASONS = 10
#: A row: its name and its jobs.
Row = tuple[str, tuple[Job, ...]]


@takes(CompareRequest)
def compare(request: CompareRequest) -> Comparison:
    """Run the same jobs on the scenario's chip and on others.

    Arrivals by the second come so at each chip's own clock; the jobs of a ready `Scenario` have their cycles already.
    For jobs that come over time, entries have latencies with intervals (`Entry.latencies`, `Comparison.latency_ratio`).

    >>> comparison = compare({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}, ["intel-npu-rtl"])
    >>> [machine.name for machine in comparison.machines]
    ['column-npu-64k', 'intel-npu-rtl']
    """
    loaded, at_clock = load_at_clocks(request.scenario, request.overrides)
    return compared(
        loaded,
        chips_of(loaded, names_of(request.chips), None if request.base is None else os.fspath(request.base)),
        each=request.each,
        published=deepbench() if request.published else (),
        engine=engines.running(request.engine),
        jobs=request.jobs,
        progress=request.progress,
        at_clock=at_clock,
        stability=request.stability,
    )


def compared(
    scenario: Scenario,
    chips: Sequence[Chip],
    *,
    each: bool = False,
    published: Sequence[Measurement] = (),
    engine: str = "fast",
    jobs: int | None = 1,
    progress: Progress | None = None,
    at_clock: AtClock | None = None,
    stability: float | None = None,
) -> Comparison:
    """Simulate the scenario's jobs on every chip; where jobs come over time, entries have latencies as well."""
    way = "at once" if each else arriving(scenario.jobs)
    ending = [job for job in scenario.jobs if job.may_leave] if way == "at once" and not each else []
    if ending:
        text = "jobs that come at once are compared by the time for all of them: leave queue_limit and patience out"
        raise InputError(Mistake(f"job {ending[0].name}", text))
    rows = _models(scenario.jobs) if each else [(scenario.name, scenario.jobs)]
    clocks = {} if each or at_clock is None else _at_clocks(scenario, chips, at_clock)
    with Workers(jobs) as workers:
        run = Ahead(partial(_entry_on, scenario, rows, chips, clocks, engine), workers)
        entries = _entries(len(rows), len(chips), run, progress)
    _refuse_what_no_chip_runs(rows, chips, entries)
    names = told_apart([chip.name for chip in chips])
    designs, columns = published_columns(rows, published)
    models = [(name, tuple(dict.fromkeys(job.model for job in jobs))) for name, jobs in rows]
    comparison = Comparison(
        scenario=scenario.name,
        engine=engine,
        each=each,
        machines=(
            *(_machine(name, chip, designs, scenario.jobs) for name, chip in zip(names, chips, strict=True)),
            *designs,
        ),
        workloads=tuple(Workload(name, len(jobs), sum(job.macs for job in jobs)) for name, jobs in rows),
        entries=tuple((*own, *beside) for own, beside in zip(entries, columns, strict=True)),
        way=way,
        stamps=tuple(_stamp(scenario, chip, rows, own) for chip, *own in zip(chips, *entries, strict=True)),
        device_fits=device_fits(names, chips, [each.name for each in designs], models, scenario.precision),
    )
    if stability is None:
        return comparison

    def entries_of(chip: Chip, number: int) -> list[Entry]:
        changed = [*chips[:number], chip, *chips[number + 1 :]]
        return [_entry_on(scenario, rows, changed, clocks, engine, row, number)[0] for row in range(len(rows))]

    return replace(comparison, stability=stable(comparison, chips, entries_of, stability))


def _stamp(scenario: Scenario, chip: Chip, rows: Sequence[Row], entries: Sequence[Entry]) -> Stamp:
    """The stamp of a chip with the jobs that it ran; of several rows, the first that lies outside what was compared."""
    ran = [jobs for (_, jobs), entry in zip(rows, entries, strict=True) if entry.known]
    stamps = [stamp_of_scenario(as_it_can(replace(scenario, chip=chip, jobs=jobs))[0]) for jobs in ran]
    return next((each for each in stamps if each.outside), stamps[0] if stamps else stamp_of(chip))


def _at_clocks(scenario: Scenario, chips: Sequence[Chip], at_clock: AtClock) -> dict[float, Scenario | str]:
    """The scenario at each clock that is not its own chip's, or why there is none."""
    came: dict[float, Scenario | str] = {}
    for clock in {chip.frequency_mhz for chip in chips} - {scenario.chip.frequency_mhz}:
        try:
            came[clock] = at_clock(clock)
        except InputError as error:
            came[clock] = "; ".join(map(str, error.mistakes))
    return came


def _entries(
    rows: int, chips: int, run: Ahead[tuple[Entry, Report | None]], progress: Progress | None
) -> list[list[Entry]]:
    """Each row on each chip; latencies of every other chip are judged by those of the first."""
    run.expect(product(range(rows), range(chips)))
    entries: list[list[Entry]] = [[] for _ in range(rows)]
    base: Report | None = None
    for done, (row, chip) in enumerate(product(range(rows), range(chips)), 1):
        entry, report = run(row, chip)
        base = base if chip else report
        if chip and entry.latencies is not None and report is not None and base is not None:
            many = sooner(base.jobs, report.jobs, base.frequency_mhz, report.frequency_mhz)
            entry = replace(entry, latencies=replace(entry.latencies, sooner=many))
        entries[row].append(entry)
        if progress is not None:
            progress(done, rows * chips)
    return entries


def _models(jobs: Sequence[Job]) -> list[Row]:
    """One job of each distinct model, steps, batch, core and rate of frames, named after what differs."""
    first: dict[Hashable, Job] = {}
    for job in jobs:
        first.setdefault(job.identity, job)
    others: dict[str, Any] = {"arrival": 0, "after": None, "queue_limit": None, "patience": None}
    alone = [replace(job, **others, batching=job.batching and job.batching.alone) for job in first.values()]
    parts = [_name_parts(job) for job in alone]
    names = [each[0] for each in parts]
    for more in range(1, len(parts[0])):
        times = Counter(names)
        names = [f"{name}, {each[more]}" if times[name] > 1 else name for name, each in zip(names, parts, strict=True)]
    return [(name, (job,)) for name, job in zip(told_apart(names), alone, strict=True)]


def _name_parts(job: Job) -> tuple[str, ...]:
    """The parts by which a job differs from others, the clearest first."""
    core = "any core" if job.cores is None else f"core {', '.join(map(str, job.cores))}"
    core += f", {job.split} split" if job.split else ""
    core = core if job.threads is None else f"{job.threads} threads"
    steps = f"{job.steps} steps" + (" one by one" if job.batching else "")
    return job.model.name, steps, f"batch {job.batch}", core, f"frames every {job.frame_interval}"


def _machine(name: str, chip: Chip, designs: Sequence[Machine], jobs: Sequence[Job]) -> Machine:
    pes = sum(core.peak for core in chip.core_figures)
    part, peak = chip.core_figures[0].unit.part, peak_tops(pes, chip.frequency_mhz)
    size, design = target_of(chip.kind).element_bytes(chip), stands_for(chip.name, designs)
    warm = all(job.at(chip).weights == "warm" for job in jobs)
    return Machine(
        name,
        False,
        pes,
        chip.frequency_mhz,
        peak,
        part=part,
        begins_cold=target_of(chip.kind).begins_cold(chip) and not warm,
        precision="the same cycles in any precision" if size is None else f"elements of {size} bytes",
        stands_for=design,
        changed=changed_keys(chip) if design else (),
    )


def _entry_on(
    scenario: Scenario,
    rows: Sequence[Row],
    chips: Sequence[Chip],
    clocks: Mapping[float, Scenario | str],
    engine: str,
    row: int,
    column: int,
) -> tuple[Entry, Report | None]:
    """The entry of one chip, or why it refuses the jobs, and the report that latencies are compared by."""
    chip = chips[column]
    if reason := _homeless(scenario, chip):
        return Entry(reason=reason), None
    came = clocks.get(chip.frequency_mhz) or replace(scenario, jobs=rows[row][1])
    if isinstance(came, str):
        return Entry(reason=f"{chip.name}: {came}"), None
    scenario, remarks = as_it_can(replace(came, chip=chip))
    refused = machines.refusals(chip, scenario.jobs)
    if refused:
        return Entry(reason=_reasons(refused)), None
    try:
        entry, report = _simulated(scenario, engine)
        if _has_first_step(chips, scenario.jobs):
            _, first = simulated(chip, tuple(replace(job, steps=1) for job in scenario.jobs), engine)
            entry = replace(entry, first_cycles=first.makespan_cycles)
    except InputError as error:
        # Also a machine that runs these jobs, but cannot say what requests that keep coming ask of it.
        return Entry(reason=_reasons(error.mistakes)), None
    kernels = target_of(chip.kind).kernels(chip, scenario.jobs)
    batches = [ONE_BY_ONE] if in_batches(chip, scenario.jobs) else []
    remarks += [f"{chip.name}: {text}" for text in (*scenario.remarks, *kernels, *batches)]
    return replace(entry, remarks=tuple(dict.fromkeys(remarks))), report if entry.latencies else None


def _homeless(scenario: Scenario, chip: Chip) -> str:
    """Why streams have no home on another chip: pinned ones were dealt out over those of the scenario's own chip."""
    if chip.core_figures[0].spreads and any(job.session is not None for job in scenario.jobs):
        text = "jobs of this machine run on several cores at once, where moved streams have no core of their own"
        return f"{text}: choose session anywhere"
    own, there = (1 if target_of(one.kind).one_by_one else len(one.core_figures) for one in (scenario.chip, chip))
    fits = own == there and not chip.core_figures[0].spreads
    if fits or not any(each.pinned for each in scenario.offers.values()):
        return ""
    cores = counted(own, "core")
    return f"pinned streams have their states on the {cores} of {scenario.chip.name}: choose session anywhere"


def _simulated(scenario: Scenario, engine: str) -> tuple[Entry, Report]:
    """Run the jobs on the chip; latencies are those of jobs that come over time."""
    program, totals = simulated(scenario.chip, scenario.jobs, engine)
    report = measure(scenario, totals, engine)
    if not report.jobs:
        raise InputError(f"{scenario.chip.name}: {NOBODY}")
    whole = sum(report.losses.values())
    over_time = arriving(scenario.jobs) != "at once"
    entry = Entry(
        cycles=report.makespan_cycles,
        ms=cycles_to_ms(report.makespan_cycles, report.frequency_mhz),
        mean_latency_ms=report.latency_ms.mean,
        p99_latency_ms=report.latency_ms.p99,
        tops=report.tops,
        utilization=report.utilization,
        losses={name: count / whole for name, count in report.losses.items()},
        latencies=latencies(served(scenario, program, report, totals), report) if over_time else None,
    )
    return entry, report


def _reasons(mistakes: Sequence[Mistake]) -> str:
    """A sentence for each job, the first of them."""
    texts = [str(each) for each in mistakes[:_MOST_REASONS]]
    more = len(mistakes) - len(texts)
    return "; ".join([*texts, *([f"and {more} more jobs"] if more > 0 else [])])


def _refuse_what_no_chip_runs(rows: Sequence[Row], chips: Sequence[Chip], entries: Sequence[Sequence[Entry]]) -> None:
    """Raise `InputError` for rows that none of the chips can run."""
    mistakes = []
    for (name, _), row in zip(rows, entries, strict=True):
        if not any(entry.known for entry in row):
            reasons = (f"{chip.name}: {entry.reason}" for chip, entry in zip(chips, row, strict=True))
            mistakes.append(Mistake(name, f"none of the chips can run it; {'; '.join(reasons)}"))
    refuse(mistakes)
