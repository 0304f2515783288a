"""A report as people and programs read it: a document, plain data, a record for each job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from lstmsim.analysis.report import NOBODY, CoreReport, JobReport, Rejected, Report
from lstmsim.analysis.stall_words import meaning_of
from lstmsim.base.units import cycles_to_ms
from lstmsim.base.wording import counted
from lstmsim.model.figures import PlannedProduct, PlannedProducts
from lstmsim.program.stall_reasons import CYCLES, names_of
from lstmsim.report.document import Column, Document, Grid, Section, Text, grid
from lstmsim.report.figures_text import four_digits, percent, short_name
from lstmsim.report.renderings import html, text
from lstmsim.report.results import Forms, picked, stamped

SCHEMA = "lstmsim/report/2"

#: Most jobs and layers in tables for people; the others are counted in a sentence.
_MOST_ROWS = 40
#: Most cores with rows of their own, and most planned products.
_MOST_CORES, _MOST_PLANS = 16, 12
#: A machine with more stall reasons than this shows only those that occur.
_MOST_NAMES = 9
_LONGEST_NAME = 36


def report_text(report: Report, jobs: bool = False, first: Sequence[Section] = ()) -> str:
    """The report for the terminal, without a final newline; first: sections behind its answer."""
    own = stamped(document(report, jobs), report)
    return text(Document.of(own.headline, *first, *own.sections))


def document(report: Report, jobs: bool = False) -> Document:
    """The report for people: the answer, latencies, then where the cycles went."""
    few = not report.requests and len(report.jobs) <= _MOST_ROWS
    many = _jobs(report) if jobs else f"JOBS: {len(report.jobs):,} were served; --jobs shows them"
    return Document.of(
        answer(report),
        _summary(report),
        _cores(report),
        _losses(report),
        _layers(report),
        _jobs(report) if few else None,
        None if report.planned is None else planned_section(report.planned),
        Section.of(*(Text(each, hang=2) for each in report.kernels)),
        None if few else many,
    )


def shown_accounts(report: Report) -> tuple[str, ...]:
    """The names of cycles for a table: of a machine with many stall reasons only those that occur."""
    names = report.accounts
    if len(names) <= _MOST_NAMES and not any(each.before_work and each.name in names for each in CYCLES):
        return names
    always = names_of("work", "rest")
    return tuple(each for each in names if each in always or any(core.cycles.get(each) for core in report.cores))


def _cores(report: Report) -> Section:
    """Two rows for each core, cycles and shares; of many cores the busiest, the least busy and the sum of all."""
    cores, names = report.cores, shown_accounts(report)
    shown: list[tuple[str, Sequence[CoreReport]]] = [(str(core.index), [core]) for core in cores]
    note = None
    if len(cores) > _MOST_CORES:
        by_work = sorted(cores, key=lambda core: -core.cycles.get("busy", 0))
        most, least = by_work[0], by_work[-1]
        shown = [(f"busiest, {most.index}", [most]), (f"least busy, {least.index}", [least]), ("sum of all", cores)]
        note = f"{len(cores):,} cores; --json FILE has each of them"
    rows = [row for label, some in shown for row in core_rows(report, label, some, names)]
    return Section.of(
        grid(["core", *report.columns, "useful", *names], rows), note, title="CORES: where the cycles went"
    )


def core_rows(report: Report, label: str, cores: Sequence[CoreReport], names: Sequence[str]) -> list[list[str | int]]:
    """Give the rows of some cores together, cycles by name and their shares."""
    sizes = [_size(cores, name) for name in report.columns]
    useful = cores[0].utilization if len(cores) == 1 else report.utilization
    counts = [sum(core.cycles.get(name, 0) for core in cores) for name in names]
    whole = report.makespan_cycles * sum(core.figures.instances for core in cores)
    shape = [label, *sizes, f"{100 * useful:.1f} %"]
    return [[*shape, *counts], [*("" for _ in shape), *(percent(count, whole, "-") for count in counts)]]


def _size(cores: Sequence[CoreReport], name: str) -> str:
    """A size that all these cores have, or a dash."""
    sizes = {core.columns.get(name) for core in cores}
    size = sizes.pop()
    return "-" if sizes or size is None else str(size)


def _losses(report: Report) -> Grid:
    total = sum(report.losses.values())
    rows = [(name, count, share, count / total, said) for name, count, share, said in loss_rows(report)]
    where = "all cores" if len(report.cores) > 1 else "the core"
    columns: list[str | Column] = ["<name", "count", "share", Column("", left=True, bar=24), "<meaning"]
    return grid(columns, rows, f"MULTIPLIERS: where the {part_cycles(report)} of {where} went", headed=False)


def loss_rows(report: Report) -> Iterator[tuple[str, int, str, str]]:
    """Of each name of what multipliers did: how often, its share, and what it means."""
    total = sum(report.losses.values())
    for name, count in report.losses.items():
        if count:
            yield name, count, percent(count, total, "-"), meaning(name, report)


def _layers(report: Report) -> Grid | None:
    """A table of layers, where a model has several."""
    if not any(each.layer for each in report.layers):
        return None
    unit, busy = report.unit.name, sum(each.cycles for each in report.layers)
    head = ["<model", "layer", "<cell", "hidden", "input", f"{unit} cycles", "share", "macs", "useful while it issues"]
    rows = []
    for each in report.layers:
        shape = [each.model, str(each.layer), each.cell, str(each.hidden), str(each.input), each.cycles]
        rows.append([*shape, percent(each.cycles, busy, "-"), each.macs, percent(each.macs, each.slots, "-")])
    title = f"LAYERS: for which the {unit} issued, all jobs together"
    return grid(head, rows, title, limit=_MOST_ROWS, more="layers")


def _jobs(report: Report) -> Section:
    shown, stopped = shown_jobs(report, _MOST_ROWS), any(job.preempted for job in report.jobs)
    head = ["<job", *job_columns(report), *["preempted"] * stopped]
    rows = [[short_name(job.name, _LONGEST_NAME), *job_cells(report, job), *[job.preempted] * stopped] for job in shown]
    hidden = len(report.jobs) - len(shown)
    note = f"... and {hidden} more (the slowest of all is shown); --json FILE has every job" if hidden else None
    return Section.of(grid(head, rows), note, title="JOBS: times in cycles")


def job_columns(report: Report) -> list[str]:
    """Give the heads of what `job_cells` gives: where and when a job ran, and with which batch."""
    batch = ["batch", "members"] if report.batches else []
    return ["core", "thread", *batch, "arrival", "start", "finish", "latency", "ms"]


def job_cells(report: Report, job: JobReport) -> list[str | int]:
    """Give where and when a job ran, in cycles and at last in ms; of rounds the first one's number and members."""
    ms = f"{cycles_to_ms(job.latency, report.frequency_mhz):.4g}"
    batch = ["-", "-"] if job.batch is None else [str(job.batch), str(len(report.batches[job.batch].members))]
    return [
        job.places,
        str(job.thread),
        *(batch if report.batches else []),
        job.arrival,
        job.start,
        job.finish,
        job.latency,
        ms,
    ]


def shown_jobs(report: Report, most: int) -> list[JobReport]:
    """The first jobs, so many at most, with the slowest of all among them."""
    if len(report.jobs) <= most:
        return list(report.jobs)
    slowest, shown = max(report.jobs, key=lambda job: job.latency), list(report.jobs[: most - 1])
    return shown if slowest in shown else [*shown, slowest]


def planned_grid(planned: PlannedProducts, title: str, limit: int, more: str = "rows") -> Grid:
    """A table of how products of jobs are spread over threads."""
    head = ("<model", "<layers", "<product", "<m x n x k", "threads", "<cut", "<rank", "<rejected before", "<relief")
    return grid(head, map(_planned_cells, planned.rows), title, limit=limit, more=more)


def planned_section(planned: PlannedProducts) -> Section:
    """How products of a time step are cut: a table and a note."""
    title = "PLANS: how the products of a time step are cut (p_m x p_n x p_k parts of rows, columns and K)"
    return Section.of(planned_grid(planned, title, _MOST_PLANS, "products; --json FILE has every one"), planned.note)


def _planned_cells(product: PlannedProduct) -> list[str]:
    first, last = product.layers[0], product.layers[-1]
    run = first != last and last - first + 1 == len(product.layers)
    layers = f"{first}..{last}" if run else ",".join(map(str, product.layers))
    # equal reasons once: what counts is why none of them was taken
    reasons = dict.fromkeys(reason for why in product.rejected for reason in why)
    rejected = f"{len(product.rejected)}: {', '.join(reasons)}" if product.rejected else "none"
    sizes = f"{product.m:,} x {product.n:,} x {product.k:,}"
    names = [short_name(product.model, 28), layers, product.label, sizes, str(product.threads), product.cut]
    return [*names, f"{product.rank} of {product.candidates}", rejected, product.relief or "-"]


def answer(report: Report) -> str:
    """The sentence that a user needs: how busy the machine was, for how long, and what mainly kept it from more.

    Rejected jobs and missed deadlines come first.
    """
    duration = cycles_to_ms(report.makespan_cycles, report.frequency_mhz)
    used = f"utilization {100 * report.utilization:.1f} %"
    took = f"makespan {report.makespan_cycles:,} cycles = {four_digits(duration)} ms"
    said = f"{_turned_away(report)}{_missed(report)}{used}, {took}"
    why = reason(report) if report.jobs else NOBODY
    return f"{said[0].upper()}{said[1:]}. {why[0].upper()}{why[1:]}."


def _turned_away(report: Report) -> str:
    """How many jobs are rejected, before the rest of a sentence; empty: none."""
    count = len(report.rejected)
    return f"{count:,} of {count + len(report.jobs):,} jobs {'is' if count == 1 else 'are'} rejected, " if count else ""


def _missed(report: Report) -> str:
    """How many jobs miss their deadline, before the rest of a sentence; empty: none."""
    missed = sum(job.missed for job in report.jobs)
    jobs = counted(_due(report), "served job" if report.rejected else "job")
    return f"{missed:,} of {jobs} with a deadline {'misses' if missed == 1 else 'miss'} it, " if missed else ""


def _summary(report: Report) -> Section:
    latency = ", ".join(f"{name} {value:.4g}" for name, value in asdict(report.latency_ms).items())
    return Section.of(
        f"{report.chip} at {_whole(report.frequency_mhz)} MHz, engine {report.engine}, {report.tops:.4g} TOPS",
        f"latency in ms: {latency}" if report.jobs else None,
        *_of_some_runs(report),
    )


def _of_some_runs(report: Report) -> Iterator[str]:
    """The lines on deadlines, jobs that were not served, and a memory."""
    if report.left_out is not None:
        text = f"left out: {100 * report.left_out:.1f} % of the groups of columns, which have not changed enough"
        yield f"{text}; with them, as a dense machine counts, effective {report.effective_tops:.4g} TOPS"
    if (due := _due(report)) and not _missed(report):
        yield f"deadlines: {due:,} of {due:,}{' served jobs' if report.rejected else ''} kept"
    if report.rejected:
        count = len(report.rejected)
        yield f"rejected: {count:,} of {count + len(report.jobs):,} jobs ({_first(report.rejected)})"
    if report.batching is not None:
        yield report.batching.words
    busy = report.memory_busy_cycles
    if busy is not None:
        yield f"memory: busy for {busy:,} cycles ({percent(busy, report.makespan_cycles, '-')})"


def _due(report: Report) -> int:
    """How many served jobs have a deadline."""
    return sum(job.deadline is not None for job in report.jobs)


def _first(jobs: Sequence[Rejected]) -> str:
    shown = ", ".join(short_name(job.name, _LONGEST_NAME) for job in jobs[:3])
    return shown if len(jobs) <= 3 else f"{shown} and {len(jobs) - 3:,} more"


def reason(report: Report) -> str:
    """Say in one sentence the biggest reason why the multipliers were not always useful."""
    name = main_loss(report)
    share = percent(report.losses[name], sum(report.losses.values()), "-")
    # The sentence does not say what would help: only `explain` simulates that.
    why = f"not 100 % mainly because of {name} ({share}): {meaning(name, report)}"
    return why if report.losses[name] else "every multiplier did useful work in every cycle"


def main_loss(report: Report) -> str:
    """The biggest of the names of cycles in which multipliers did nothing useful."""
    return max(list(report.losses)[1:], key=lambda name: report.losses[name])


def part_cycles(report: Report) -> str:
    """What people call the cycles of what multiplies in the machine of the report: `PE-cycles`."""
    return f"{report.unit.part}-cycles"


def meaning(name: str, report: Report) -> str:
    """The meaning of a name of cycles or PE-cycles, on the machine of the report."""
    return meaning_of(name, report.words)


def report_json(report: Report) -> dict[str, Any]:
    """The report as plain data of schema `lstmsim/report/2`, ready for `json.dumps`."""
    return {
        "schema": SCHEMA,
        **picked(report, "chip engine"),
        "frequency_mhz": _whole(report.frequency_mhz),
        "makespan_cycles": report.makespan_cycles,
        "jobs": [_job_json(job) for job in report.jobs],
        "cores": [
            {"index": core.index, **core.columns, **picked(core, "macs utilization cycles pe_cycles settings")}
            for core in report.cores
        ],
        **picked(report, "utilization tops"),
        "latency_ms": asdict(report.latency_ms) if report.jobs else None,
        **_json_of_some_runs(report),
    }


def _json_of_some_runs(report: Report) -> dict[str, Any]:
    """The entries that only some runs have."""
    layer = "model layer cell hidden input directions cycles macs slots utilization"
    planned = report.planned
    entries: dict[str, Any] = {
        "left_out": report.left_out,
        "effective_tops": None if report.left_out is None else report.effective_tops,
        "layers": [picked(each, layer) for each in report.layers],
        "rejected": [picked(job, "name arrival at") for job in report.rejected],
        "memory": None if report.memory_busy_cycles is None else {"busy_cycles": report.memory_busy_cycles},
        "plans": None if planned is None else picked(planned, "note products=rows"),
        "batches": [[each.start, each.core, each.thread, list(each.members)] for each in report.batches],
        "batching": None if report.batching is None else asdict(report.batching),
        **picked(report, "kernels remarks"),
    }
    return {name: value for name, value in entries.items() if value or value == 0.0}


def _whole(number: float) -> float | int:
    """A whole number as an `int`: files must not depend on whether a frequency was written as 260 or 260.0."""
    return int(number) if float(number).is_integer() else number


def _job_json(job: JobReport) -> dict[str, Any]:
    cores = "cores " if job.cores else ""
    due = " deadline missed" if job.deadline is not None else ""
    stopped = " preempted" if job.preempted else ""
    batch = "" if job.batch is None else " batch"
    return picked(job, f"name core thread {cores}arrival start finish latency macs{due}{stopped}{batch}")


FORMS = Forms(
    report_json,
    document,
    lambda report: [_job_json(job) for job in report.jobs],
    lambda report: html(stamped(document(report, jobs=True), report)),
)
