"""A report in the forms that people and scripts read: JSON, a table for the terminal, HTML for notebooks.

Where the cycles of each core went, as a table: of a few cores each, of many cores the extremes and the sum.

How products of jobs are spread over threads, in the forms of a report.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from lstmsim.analysis.report import CoreReport, JobReport, Report, TurnedAway
from lstmsim.analysis.stall_words import NAMED
from lstmsim.base.units import cycles_to_ms
from lstmsim.model.figures import PlannedProduct, PlannedProducts, Words
from lstmsim.program.stall_reasons import CYCLES, names_of
from lstmsim.report.figures_text import four_digits, percent, short_name
from lstmsim.report.results import Forms
from lstmsim.report.tables import table

#: Most cores with rows of their own.
_MOST_CORES = 16

#: Most names for which a table has room even if nothing bears them.
_MOST_NAMES = 9


def shown_accounts(report: Report) -> tuple[str, ...]:
    """The names of cycles for a table: of a machine with many names only the stalls that occur.

    >>> from lstmsim.analysis.report import LatencyMs
    >>> shown_accounts(Report("chip", "fast", 260.0, 0, (), (), 0.0, 0.0, LatencyMs(0.0, 0.0, 0.0, 0.0, 0.0)))
    ()
    """
    names = report.accounts
    if len(names) <= _MOST_NAMES and not any(each.before_work and each.name in names for each in CYCLES):
        return names
    always = names_of("work", "rest")
    return tuple(each for each in names if each in always or any(core.cycles.get(each) for core in report.cores))


def cores_text(report: Report) -> str:
    """The table of the cores, with a row of cycles and a row of shares for each.

    Of more than 16 cores it has the busiest, the least busy and the sum of all.

    >>> from lstmsim.analysis.report import LatencyMs
    >>> print(cores_text(Report("chip", "fast", 260.0, 0, (), (), 0.0, 0.0, LatencyMs(0.0, 0.0, 0.0, 0.0, 0.0))))
    CORES: where the cycles went
    core  useful
    """
    names = shown_accounts(report)
    rows = [["core", *report.columns, "useful", *names]]
    many = len(report.cores) > _MOST_CORES
    for label, cores in _summed(report.cores) if many else [(str(core.index), [core]) for core in report.cores]:
        rows += _rows(report, label, cores, names)
    notes = [f"{len(report.cores):,} cores; --json FILE has each of them"] if many else []
    return "\n".join(["CORES: where the cycles went", *table(rows), *notes])


def _summed(cores: Sequence[CoreReport]) -> list[tuple[str, Sequence[CoreReport]]]:
    """The core with the most busy cycles, the one with the fewest, and all of them."""
    by_work = sorted(cores, key=lambda core: -core.cycles.get("busy", 0))
    most, least = by_work[0], by_work[-1]
    return [(f"busiest, {most.index}", [most]), (f"least busy, {least.index}", [least]), ("sum of all", cores)]


def _rows(report: Report, label: str, cores: Sequence[CoreReport], names: Sequence[str]) -> list[list[str]]:
    """Two rows: cycles of these cores by name, and their shares."""
    sizes = [_size(cores, name) for name in report.columns]
    useful = cores[0].utilization if len(cores) == 1 else report.utilization
    counts = [sum(core.cycles.get(name, 0) for core in cores) for name in names]
    whole = report.makespan_cycles * sum(core.figures.ways for core in cores)
    shares = (percent(count, whole, "-") for count in counts)
    shape = [label, *sizes, f"{100 * useful:.1f} %"]
    return [[*shape, *(f"{count:,}" for count in counts)], ["" for _ in shape] + [*shares]]


def _size(cores: Sequence[CoreReport], name: str) -> str:
    """A size that all these cores have, or a dash."""
    sizes = {core.columns.get(name) for core in cores}
    size = sizes.pop()
    return "-" if sizes or size is None else str(size)


#: Names of the columns, and the numbers of those that hold words.
HEAD = ("model", "layers", "product", "m x n x k", "threads", "cut", "rank", "rejected before", "relief")
LEFT = (0, 1, 2, 3, 5, 6, 7, 8)
#: Most rows in the text; the others are counted.
_MOST = 12
_PLANNED_NAME, _WIDTH_planned_text = 28, 100


def planned_json(planned: PlannedProducts) -> dict[str, Any]:
    """Products that were planned as plain data."""
    return {
        "note": planned.note,
        "products": [
            {**asdict(each), "layers": list(each.layers), "rejected": [list(why) for why in each.rejected]}
            for each in planned.rows
        ],
    }


def planned_text(planned: PlannedProducts) -> str:
    """Products that were planned as a table for the terminal, with a note."""
    lines = ["PLANS: how the products of a time step are cut (p_m x p_n x p_k parts of rows, columns and K)"]
    lines += table([HEAD, *map(planned_cells, planned.rows[:_MOST])], left=LEFT)
    if len(planned.rows) > _MOST:
        lines.append(f"... and {len(planned.rows) - _MOST:,} more; --json FILE has every one")
    return "\n".join([*lines, *textwrap.wrap(planned.note, _WIDTH_planned_text, break_on_hyphens=False)])


def planned_cells(each: PlannedProduct) -> list[str]:
    """A row of the table: texts under `HEAD`."""
    first, last = each.layers[0], each.layers[-1]
    run = first != last and last - first + 1 == len(each.layers)
    layers = f"{first}..{last}" if run else ",".join(map(str, each.layers))
    # equal reasons once: what counts is why none of them was taken
    reasons = dict.fromkeys(reason for why in each.rejected for reason in why)
    rejected = f"{len(each.rejected)}: {', '.join(reasons)}" if each.rejected else "none"
    sizes = f"{each.m:,} x {each.n:,} x {each.k:,}"
    names = [short_name(each.model, _PLANNED_NAME), layers, each.label, sizes, str(each.threads), each.cut]
    return [*names, f"{each.rank} of {each.candidates}", rejected, each.relief or "-"]


SCHEMA = "lstmsim/report/1"

#: Most jobs in tables for people; the other jobs are counted in a sentence.
_JOB_LIMIT = 40
_BAR = 24
_LONGEST_NAME = 36
_WIDTH = 100


def report_json(report: Report) -> dict[str, Any]:
    """The report as plain data of schema `lstmsim/report/1`, ready for `json.dumps`.

    >>> from lstmsim.analysis.report import LatencyMs
    >>> empty = Report("chip", "fast", 260.0, 0, (), (), 0.0, 0.0, LatencyMs(0.0, 0.0, 0.0, 0.0, 0.0))
    >>> report_json(empty)["schema"], report_json(empty)["frequency_mhz"]
    ('lstmsim/report/1', 260)
    """
    return {
        "schema": SCHEMA,
        "chip": report.chip,
        "engine": report.engine,
        "frequency_mhz": _whole(report.frequency_mhz),
        "makespan_cycles": report.makespan_cycles,
        "jobs": [_job_json(job) for job in report.jobs],
        "cores": [_core_json(core) for core in report.cores],
        "utilization": report.utilization,
        "tops": report.tops,
        "latency_ms": asdict(report.latency_ms),
        **_beside_json(report),
    }


def _beside_json(report: Report) -> dict[str, Any]:
    """The entries that only some runs have."""
    entries: dict[str, Any] = {}
    if report.layers:
        entries["layers"] = [asdict(each) | {"utilization": each.utilization} for each in report.layers]
    if report.turned_away:
        entries["turned_away"] = [
            {"name": job.name, "arrival": job.arrival, "at": job.at} for job in report.turned_away
        ]
    if report.memory_busy_cycles is not None:
        entries["memory"] = {"busy_cycles": report.memory_busy_cycles}
    if report.planned is not None:
        entries["plans"] = planned_json(report.planned)
    if report.kernels:
        entries["kernels"] = list(report.kernels)
    if report.remarks:
        entries["remarks"] = list(report.remarks)
    return entries


def _whole(number: float) -> float | int:
    """A whole number as an `int`: files must not depend on whether a frequency was written as 260 or 260.0."""
    return int(number) if float(number).is_integer() else number


def _job_json(job: JobReport) -> dict[str, Any]:
    places = {"name": job.name, "core": job.core, "thread": job.thread}
    times = {"arrival": job.arrival, "start": job.start, "finish": job.finish, "latency": job.latency}
    due = {} if job.deadline is None else {"deadline": job.deadline, "missed": job.missed}
    stopped = {"preempted": job.preempted} if job.preempted else {}
    spread = {"cores": list(job.cores)} if job.cores else {}
    return {**places, **spread, **times, "macs": job.macs, **due, **stopped}


def _core_json(core: CoreReport) -> dict[str, Any]:
    return {
        "index": core.index,
        **core.columns,
        "macs": core.macs,
        "utilization": core.utilization,
        "cycles": dict(core.cycles),
        "pe_cycles": dict(core.pe_cycles),
        "settings": dict(core.settings),
    }


def report_text(report: Report, jobs: bool = False) -> str:
    """The report as a table for the terminal, without a final newline.

    jobs: whether each job has a row where there are many; of few jobs each has one.

    >>> from lstmsim.analysis.report import LatencyMs
    >>> empty = Report("chip", "fast", 260.0, 0, (), (), 0.0, 0.0, LatencyMs(0.0, 0.0, 0.0, 0.0, 0.0))
    >>> print(report_text(empty).splitlines()[0])
    chip at 260 MHz, engine fast
    """
    parts = [f"{report.chip} at {_whole(report.frequency_mhz)} MHz, engine {report.engine}", cores_text(report)]
    few = not report.requests and len(report.jobs) <= _JOB_LIMIT
    parts += [_losses_text(report), *_layers_text(report), *([_jobs_text(report)] if few else [])]
    parts += [] if report.planned is None else [planned_text(report.planned)]
    if report.kernels:
        lines = [textwrap.wrap(each, _WIDTH, break_on_hyphens=False, subsequent_indent="  ") for each in report.kernels]
        parts.append("\n".join(line for own in lines for line in own))
    parts.append(_summary_text(report))
    if not few:
        parts.append(_jobs_text(report) if jobs else f"JOBS: {len(report.jobs):,} were served; --jobs shows them")
    return "\n\n".join(parts)


def _losses_text(report: Report) -> str:
    losses = report.losses
    total = sum(losses.values())
    rows = []
    for name, count in losses.items():
        if count:
            bar = "#" * round(_BAR * count / total)
            rows.append([name, f"{count:,}", percent(count, total, "-"), bar, meaning(name, report)])
    where = "all cores" if len(report.cores) > 1 else "the core"
    return "\n".join([f"MULTIPLIERS: where the {part_cycles(report)} of {where} went", *table(rows, left=(0, 3, 4))])


def _layers_text(report: Report) -> Iterator[str]:
    """A table of layers, where a model has several."""
    if not any(each.layer for each in report.layers):
        return
    unit, busy = report.unit.name, sum(each.cycles for each in report.layers)
    rows = [["model", "layer", "cell", "hidden", "input", f"{unit} cycles", "share", "macs", "useful while it issues"]]
    for each in report.layers[:_JOB_LIMIT]:
        sizes = [each.model, str(each.layer), each.cell, str(each.hidden), str(each.input)]
        shares = [percent(each.cycles, busy, "-"), f"{each.macs:,}", percent(each.macs, each.slots, "-")]
        rows.append([*sizes, f"{each.cycles:,}", *shares])
    left = len(report.layers) - _JOB_LIMIT
    more = [f"... and {left} more layers"] if left > 0 else []
    yield "\n".join([f"LAYERS: for which the {unit} issued, all jobs together", *table(rows, left=(0, 2)), *more])


def _shown_jobs(report: Report) -> tuple[list[JobReport], str]:
    """The jobs to show, and a sentence on the jobs that are not shown."""
    if len(report.jobs) <= _JOB_LIMIT:
        return list(report.jobs), ""
    slowest = max(report.jobs, key=lambda job: job.latency)
    shown = list(report.jobs[: _JOB_LIMIT - 1])
    if slowest not in shown:
        shown.append(slowest)
    hidden = len(report.jobs) - len(shown)
    return shown, f"... and {hidden} more (the slowest of all is shown); --json FILE has every job"


def _jobs_text(report: Report) -> str:
    rows = [["job", "core", "thread", "arrival", "start", "finish", "latency", "ms"]]
    shown, note = _shown_jobs(report)
    stopped = any(job.preempted for job in report.jobs)
    rows[0] += ["preempted"] * stopped
    for job in shown:
        times = (f"{time:,}" for time in (job.arrival, job.start, job.finish, job.latency))
        latency_ms = f"{cycles_to_ms(job.latency, report.frequency_mhz):.4g}"
        rows.append([short_name(job.name, _LONGEST_NAME), job.places, str(job.thread), *times, latency_ms])
        rows[-1] += [f"{job.preempted:,}"] * stopped
    return "\n".join(["JOBS: times in cycles", *table(rows, left=(0,)), *([note] if note else [])])


def _summary_text(report: Report) -> str:
    duration = cycles_to_ms(report.makespan_cycles, report.frequency_mhz)
    latency = ", ".join(f"{name} {value:.4g}" for name, value in asdict(report.latency_ms).items())
    return "\n".join(
        [
            f"makespan {report.makespan_cycles:,} cycles = {four_digits(duration)} ms, "
            f"utilization {100 * report.utilization:.1f} %, {report.tops:.4g} TOPS",
            f"latency in ms: {latency}",
            *_missed_text(report),
            *_beside_text(report),
            *textwrap.wrap(reason(report), _WIDTH),
        ]
    )


def _missed_text(report: Report) -> list[str]:
    due = [job for job in report.jobs if job.deadline is not None]
    missed = sum(job.missed for job in due)
    return [f"deadlines: {missed:,} of {len(due):,} missed"] if due else []


def _beside_text(report: Report) -> list[str]:
    """The lines that only some runs have."""
    lines = []
    if report.turned_away:
        count = len(report.turned_away)
        lines.append(f"turned away: {count:,} of {count + len(report.jobs):,} jobs ({_first(report.turned_away)})")
    busy = report.memory_busy_cycles
    if busy is not None:
        lines.append(f"memory: busy for {busy:,} cycles ({percent(busy, report.makespan_cycles, '-')})")
    return lines


def _first(jobs: Sequence[TurnedAway]) -> str:
    shown = ", ".join(short_name(job.name, _LONGEST_NAME) for job in jobs[:3])
    return shown if len(jobs) <= 3 else f"{shown} and {len(jobs) - 3:,} more"


def reason(report: Report) -> str:
    """Say in one sentence the biggest reason why the multipliers were not always useful."""
    losses = report.losses
    total = sum(losses.values())
    name = max(list(losses)[1:], key=lambda loss: losses[loss])
    if not losses[name]:
        return "every multiplier did useful work in every cycle"
    share = percent(losses[name], total, "-")
    # The sentence does not say what would help: only `explain` simulates that.
    return f"not 100 % mainly because of {name} ({share}): {meaning(name, report)}"


def part_cycles(report: Report) -> str:
    """What people call the cycles of what multiplies in the machine of the report: `PE-cycles`."""
    return f"{report.unit.part}-cycles"


def meaning(name: str, report: Report) -> str:
    """The meaning of a name of cycles or PE-cycles, on the machine of the report."""
    return report.words.get(name, Words()).meaning or NAMED[name].meaning


def remedy(name: str, report: Report) -> str:
    """How a user could get fewer cycles of that name; empty for names that are no loss."""
    return report.words.get(name, Words()).remedy or NAMED[name].remedy


def report_html(report: Report) -> str:
    """The report as an HTML fragment for notebooks: the summary, the losses as bars, the jobs.

    >>> from lstmsim.analysis.report import LatencyMs
    >>> empty = Report("a<b", "fast", 260.0, 0, (), (), 0.0, 0.0, LatencyMs(0.0, 0.0, 0.0, 0.0, 0.0))
    >>> "a&lt;b" in report_html(empty)
    True
    """
    from html import escape

    summary = "<br>".join(escape(line) for line in _summary_text(report).splitlines())
    title = f"<b>{escape(report.chip)}</b> at {_whole(report.frequency_mhz)} MHz, engine {report.engine}"
    return f"<div><p>{title}<br>{summary}</p>{_losses_html(report)}{_jobs_html(report)}</div>"


def _losses_html(report: Report) -> str:
    losses = report.losses
    total = sum(losses.values())
    rows = []
    for name, count in losses.items():
        if count:
            colour = NAMED[name].style.fill if name == "useful" else "#bbbbbb"
            style = f"background:{colour};height:0.8em;width:{200 * count / total:.1f}px"
            cells = (
                name,
                f"{count:,}",
                percent(count, total, "-"),
                f'<div style="{style}"></div>',
                meaning(name, report),
            )
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table><caption>{part_cycles(report)}</caption>{''.join(rows)}</table>"


def _jobs_html(report: Report) -> str:
    from html import escape

    shown, note = _shown_jobs(report)
    names = ("job", "core", "thread", "arrival", "start", "finish", "latency")
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = []
    for job in shown:
        numbers = (job.thread, job.arrival, job.start, job.finish, job.latency)
        cells = [escape(short_name(job.name, _LONGEST_NAME)), job.places, *(f"{number:,}" for number in numbers)]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    table = f"<table><caption>Jobs (cycles)</caption><tr>{head}</tr>{''.join(rows)}</table>"
    return table + (f"<p>{escape(note)}</p>" if note else "")


FORMS = Forms(report_json, report_text, lambda report: report_json(report)["jobs"], report_html)
