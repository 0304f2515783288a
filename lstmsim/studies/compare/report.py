"""A comparison in the forms that people and scripts read: tables for the terminal, Markdown, JSON, CSV."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from lstmsim.report.figures_text import percent, short_name, three_digits
from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.compare.published import FITTED, TITLE, about_machines, model_errors, model_errors_json
from lstmsim.studies.compare.result import Comparison, Machine
from lstmsim.studies.compare.rooms import rooms_json, rooms_text
from lstmsim.studies.compare.words import (
    CAPTION,
    LATENCY_COLUMNS,
    about_first_step,
    defeats,
    latency_figures,
    latency_json,
    latency_notes,
    latency_row,
    latency_verdicts,
)

_WIDTH = 100
_LONGEST_NAME = 30
_BY_LATER_STEPS = "speed-up by later steps"
#: Not shown where every workload is one job: latencies are then makespans.
_OF_SEVERAL_JOBS = ("mean latency ms", "p99 latency ms")
#: Row and column of an entry -> its text, None where it is not known.
Cell = Callable[[int, int], str | None]


def comparison_text(comparison: Comparison) -> str:
    """Write tables of at most 100 columns, split into blocks where there are many machines; without a final newline."""
    notes = _Notes(comparison)
    parts = [_each(comparison, notes) if comparison.each else _whole(comparison, notes)]
    if errors := model_errors(comparison):
        texts = [*(f"{each.sentence}." for each in errors), FITTED]
        parts.append("\n".join([TITLE, *(_filled(text, "  ") for text in texts)]))
    if len(comparison.machines) > 1:
        parts.append(_defeats(comparison))
    if comparison.rooms:
        parts.append(rooms_text(comparison.rooms))
    return "\n\n".join(
        [_title(comparison), *_about_latencies(comparison), *parts, *notes.lines(), *_remarks(comparison)]
    )


def _about_latencies(comparison: Comparison) -> list[str]:
    """What to know about latencies of jobs that come over time."""
    if comparison.each:
        return []
    lines = [_filled(text, "") for text in latency_notes(comparison)]
    return ["\n".join(lines)] if lines else []


def _filled(text: str, indent: str) -> str:
    """Lines of at most 100 columns; a percent sign stays with its number, a name whole."""
    kept = text.replace(" %", "\xa0%")
    return textwrap.fill(kept, _WIDTH, subsequent_indent=indent, break_on_hyphens=False).replace("\xa0", " ")


def _remarks(comparison: Comparison) -> list[str]:
    """What to know about the numbers, each once."""
    texts = dict.fromkeys(text for row in comparison.entries for entry in row for text in entry.remarks)
    return ["\n".join(textwrap.fill(text, _WIDTH, subsequent_indent="  ") for text in texts)] if texts else []


class _Notes:
    """Footnotes: why an entry has no numbers; equal reasons share a mark."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.reasons: list[str] = []

    def mark(self, row: int, column: int) -> str:
        entry = self.comparison.entries[row][column]
        if self.comparison.machines[column].published or not entry.reason:
            return "-"
        text = f"{self.comparison.machines[column].name}: {entry.reason}"
        if text not in self.reasons:
            self.reasons.append(text)
        return f"[{self.reasons.index(text) + 1}]"

    def lines(self) -> list[str]:
        """The paragraphs below the tables."""
        marked = [
            textwrap.fill(f"[{number}] {text}", _WIDTH, subsequent_indent="    ")
            for number, text in enumerate(self.reasons, start=1)
        ]
        sources: dict[str, list[str]] = {}
        for each in self.comparison.machines:
            if each.published:
                sources.setdefault(each.source, []).append(each.name)
        marked += [
            textwrap.fill(f"published, not simulated: {', '.join(names)}: {source}", _WIDTH, subsequent_indent="    ")
            for source, names in sources.items()
        ]
        return ["\n".join(marked)] if marked else []


def _title(comparison: Comparison) -> str:
    jobs = sum(each.jobs for each in comparison.workloads)
    what = f"{len(comparison.workloads)} models, each alone" if comparison.each else f"{jobs} job{'s' * (jobs > 1)}"
    lines = [f"COMPARISON of {comparison.scenario}: {what}, engine {comparison.engine}"]
    if len(comparison.machines) > 1 and not comparison.by_latency:
        base = comparison.machines[0].name
        part = comparison.part
        text = (
            f"Speed-up: milliseconds of {base} / milliseconds of the machine. At equal {part}s: that times the "
            f"{part}s of {base} / the {part}s of the machine. Utilization: useful multiply-accumulates per {part} "
            "and cycle."
        )
        lines += textwrap.wrap(text, _WIDTH)
        if _has_first_steps(comparison):
            cold = ", ".join(each.name for each in comparison.machines if each.begins_cold)
            lines += _filled(CAPTION.format(cold), "").splitlines()
    lines += [line for text in about_machines(comparison) for line in _filled(text, "  ").splitlines()]
    return "\n".join(lines)


def _whole(comparison: Comparison, notes: _Notes) -> str:
    """One table: a row for each figure, a column for each machine."""
    cells = _figures(comparison)
    columns = []
    for column, machine in enumerate(comparison.machines):
        head = [_whole_or_none(machine.pes) or "-", _whole_number(machine.frequency_mhz)]
        head.append(_short_number(machine.peak_tops) or "-")
        own = [cell(0, column) or "-" for cell in cells.values()]
        if not comparison.entries[0][column].known:
            own = [notes.mark(0, column), *[""] * (len(own) - 1)]
        columns.append([*head, *own])
    return _blocks(comparison, [f"{comparison.part}s", "MHz", "peak TOPS", *cells], dict(enumerate(columns)))


def _each(comparison: Comparison, notes: _Notes) -> str:
    """A table for each figure, with a row for each model.

    A machine has a column where it has the figure of one of the models, or ran none of them; the base always has one.
    """
    names = [each.name for each in comparison.workloads]
    rows = range(len(names))
    means = {"speed-up": comparison.mean_speedup, _BY_LATER_STEPS: comparison.mean_later_speedup}
    parts = []
    for title, cell in _figures(comparison).items():
        if title in (*_OF_SEVERAL_JOBS, _per_thousand(comparison)):
            continue
        shown = {}
        for column in range(len(comparison.machines)):
            own = [cell(row, column) for row in rows]
            if column == 0 or any(own) or not any(comparison.entries[row][column].known for row in rows):
                shown[column] = [text or notes.mark(row, column) for row, text in enumerate(own)]
        labels = names
        if title in means:
            labels = [*names, "geometric mean"]
            for column, column_texts in shown.items():
                column_texts.append(_short_number(means[title](column)) or "-")
        parts.append(f"{title.upper()}\n{_blocks(comparison, labels, shown)}")
    return "\n\n".join(parts)


def _defeats(comparison: Comparison) -> str:
    """On which workloads the base is slower, and why."""
    if comparison.by_latency:
        lines = [f"WHERE {_name(comparison.machines[0].name)} TAKES LONGER (mean latency)"]
        columns = range(1, len(comparison.machines))
        texts = [
            *latency_verdicts(comparison),
            *filter(None, (about_first_step(comparison, 0, each) for each in columns)),
        ]
        return "\n".join([*lines, *(_filled(text, "  ") for text in texts)])
    lines = [f"WHERE {_name(comparison.machines[0].name)} TAKES LONGER (makespan)"]
    for column, machine in enumerate(comparison.machines[1:], start=1):
        lost = defeats(comparison, column)
        known = sum(comparison.speedup(row, column) is not None for row in range(len(comparison.workloads)))
        many = (
            f"{len(lost)} of {known}"
            if comparison.each and lost
            else "yes"
            if lost
            else "nowhere"
            if known
            else "not known"
        )
        lines.append(f"than {_name(machine.name)}: {many}")
        for each in lost:
            text = f"{_name(each.workload)}: {each.sentence}"
            lines.append(textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    "))
        lines += _first_steps(comparison, column, {each.workload for each in lost})
    return "\n".join(lines)


def _first_steps(comparison: Comparison, column: int, told: Collection[str]) -> list[str]:
    """How the workloads that are not told yet compare by later steps."""
    lines = []
    for row, workload in enumerate(comparison.workloads):
        text = about_first_step(comparison, row, column)
        if text and workload.name not in told:
            lines.append(_filled(f"  {_name(workload.name)}: {text}", "    "))
    return lines


def _has_first_steps(comparison: Comparison) -> bool:
    """Whether first steps were simulated alone."""
    return any(entry.first_cycles is not None for row in comparison.entries for entry in row)


def _per_thousand(comparison: Comparison) -> str:
    return f"TOPS per 1000 {comparison.part}s"


def _figures(comparison: Comparison) -> dict[str, Cell]:
    """The figures that are shown of an entry, in order; published figures with the digits that were printed."""

    def of(name: str) -> Cell:
        def cell(row: int, column: int) -> str | None:
            value = getattr(comparison.entries[row][column], name)
            return f"{value:g}" if value is not None and comparison.machines[column].published else _short_number(value)

        return cell

    at_equal = f"speed-up at equal {comparison.part}s"
    shown: dict[str, Cell] = {
        "cycles": lambda row, column: _whole_or_none(comparison.entries[row][column].cycles),
        "ms": of("ms"),
        "mean latency ms": of("mean_latency_ms"),
        "p99 latency ms": of("p99_latency_ms"),
        "TOPS": of("tops"),
        "utilization": lambda row, column: _percent(comparison.entries[row][column].utilization),
        "speed-up": lambda row, column: _short_number(comparison.speedup(row, column)),
        at_equal: lambda row, column: _short_number(comparison.speedup_at_equal_pes(row, column)),
        _per_thousand(comparison): lambda row, column: _short_number(comparison.tops_per_1000_pes(row, column)),
        "most lost to": lambda row, column: _loss(comparison, row, column),
    }
    if _has_first_steps(comparison):
        shown = _with_first_steps(comparison, shown)
    latencies = {} if comparison.each else latency_figures(comparison)
    if latencies:
        for name in ("mean latency ms", "p99 latency ms"):
            del shown[name]
        # Latencies come first: they are what matters where jobs come over time.
        shown = {**latencies, **shown}
    if comparison.by_latency:
        shown["ratio of makespans"] = shown.pop("speed-up")
        del shown[at_equal]
    return shown


def _with_first_steps(comparison: Comparison, shown: Mapping[str, Cell]) -> dict[str, Cell]:
    """The figures with first and later steps, each behind that of the whole."""
    entries = comparison.entries
    behind: dict[str, dict[str, Cell]] = {
        "cycles": {
            "cycles of first step": lambda row, column: _whole_or_none(entries[row][column].first_cycles),
            "cycles of later steps": lambda row, column: _whole_or_none(entries[row][column].later_cycles),
        },
        "speed-up": {_BY_LATER_STEPS: lambda row, column: _short_number(comparison.later_speedup(row, column))},
    }
    return {name: cell for title, own in shown.items() for name, cell in {title: own, **behind.get(title, {})}.items()}


def _loss(comparison: Comparison, row: int, column: int) -> str | None:
    entry = comparison.entries[row][column]
    name = entry.main_loss
    return None if name is None else f"{name} {_percent(entry.losses[name])}"


def _percent(share: float | None) -> str | None:
    return None if share is None else percent(share, 1)


def _whole_or_none(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _whole_number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _short_number(value: float | None) -> str | None:
    return None if value is None else three_digits(value)


def _blocks(comparison: Comparison, names: Sequence[str], columns: Mapping[int, Sequence[str]]) -> str:
    """The columns (by number of their machines) beside the names, as many in a block as fit; the first in every one."""
    labels = ["", "", *map(_name, names)]
    full = []
    for number, texts in columns.items():
        machine = comparison.machines[number]
        full.append([_name(machine.name), "published" if machine.published else "simulated", *texts])
    widths = [2 + max(map(len, column)) for column in full]
    room = _WIDTH - max(map(len, labels)) - widths[0]
    blocks: list[list[int]] = [[]]
    for index in range(1, len(full)):
        if blocks[-1] and sum(widths[each] for each in (*blocks[-1], index)) > room:
            blocks.append([])
        blocks[-1].append(index)
    shown = [[labels, *(full[index] for index in (0, *block))] for block in blocks]
    return "\n\n".join("\n".join(table(list(zip(*each, strict=True)), left=(0,))) for each in shown)


def _name(text: str) -> str:
    return short_name(text, _LONGEST_NAME)


SCHEMA = "lstmsim/comparison/1"

#: The columns of the CSV, one row for each workload and machine.
COLUMNS = (
    *("workload", "machine", "published", "pes", "frequency_mhz", "precision", "cycles", "ms"),
    *("mean_latency_ms", "p99_latency_ms"),
    *("tops", "utilization", "speedup", "speedup_at_equal_pes", "tops_per_1000_pes", "main_loss", "main_loss_share"),
    *("begins_cold", "first_step_cycles", "later_steps_cycles", "speedup_by_later_steps"),
    *("reason", "source"),
    *LATENCY_COLUMNS,
)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Give the comparison as plain data of schema `lstmsim/comparison/1`, ready for `json.dumps`; shares are 0 to 1."""
    machines = [
        {
            "name": each.name,
            "published": each.published,
            "pes": each.pes,
            "frequency_mhz": each.frequency_mhz,
            "peak_tops": each.peak_tops,
            "precision": each.precision,
            "stands_for": each.stands_for,
            "changed": list(each.changed),
            "source": each.source,
            "begins_cold": each.begins_cold,
            "mean_speedup": comparison.mean_speedup(column),
            "mean_speedup_by_later_steps": comparison.mean_later_speedup(column),
        }
        for column, each in enumerate(comparison.machines)
    ]
    workloads = [
        {
            "name": each.name,
            "jobs": each.jobs,
            "macs": each.macs,
            "entries": [_entry_json(comparison, row, column) for column in range(len(comparison.machines))],
        }
        for row, each in enumerate(comparison.workloads)
    ]
    return {
        "schema": SCHEMA,
        "scenario": comparison.scenario,
        "engine": comparison.engine,
        "each": comparison.each,
        "arriving": comparison.way,
        "base": comparison.machines[0].name,
        "machines": machines,
        "workloads": workloads,
        "rooms": rooms_json(comparison.rooms),
        "model_errors": model_errors_json(comparison),
    }


def _entry_json(comparison: Comparison, row: int, column: int) -> dict[str, Any]:
    entry = comparison.entries[row][column]
    return {
        "machine": comparison.machines[column].name,
        "cycles": entry.cycles,
        "ms": entry.ms,
        "mean_latency_ms": entry.mean_latency_ms,
        "p99_latency_ms": entry.p99_latency_ms,
        "tops": entry.tops,
        "utilization": entry.utilization,
        "speedup": comparison.speedup(row, column),
        "speedup_at_equal_pes": comparison.speedup_at_equal_pes(row, column),
        "tops_per_1000_pes": comparison.tops_per_1000_pes(row, column),
        "first_step_cycles": entry.first_cycles,
        "later_steps_cycles": entry.later_cycles,
        "speedup_by_later_steps": comparison.later_speedup(row, column),
        "first_step": about_first_step(comparison, row, column),
        "losses": dict(entry.losses),
        "main_loss": entry.main_loss,
        "reason": entry.reason,
        "latency": latency_json(comparison, row, column),
    }


def comparison_rows(comparison: Comparison) -> Iterator[list[Any]]:
    """Give the table of the CSV: its `COLUMNS`, then a row for each workload and machine; unknown figures are None."""
    yield list(COLUMNS)
    for row, workload in enumerate(comparison.workloads):
        for column, machine in enumerate(comparison.machines):
            numbers = _entry_json(comparison, row, column)
            loss = numbers["main_loss"]
            extra = {
                "workload": workload.name,
                "published": int(machine.published),
                "pes": machine.pes,
                "frequency_mhz": machine.frequency_mhz,
                "precision": machine.precision,
                "main_loss_share": None if loss is None else numbers["losses"][loss],
                "source": machine.source,
                "begins_cold": int(machine.begins_cold),
                **latency_row(comparison, row, column),
            }
            yield [(numbers | extra)[name] for name in COLUMNS]


def machines_markdown(comparison: Comparison) -> list[str]:
    """Write the lines of a table of the machines: PEs, clock, peak, precision; then how far off models are."""
    rows = []
    for each in comparison.machines:
        kind = "published" if each.published else "simulated"
        rows.append(
            [f"{each.name} ({kind})", *map(_number, (each.pes, each.frequency_mhz, each.peak_tops)), each.precision]
        )
    table = _table(["machine", f"{comparison.part}s", "MHz", "peak TOPS", "precision"], rows)
    errors = [f"* Simulated / published, {each.sentence}." for each in model_errors(comparison)]
    return [*table, *errors, f"* {FITTED}", ""] if errors else table


def comparison_markdown(
    comparison: Comparison, starred: Collection[tuple[str, str]] = (), beside: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Write the lines of three tables: milliseconds; TOPS with utilization; how many times as fast the base is.

    The last table has, for each other machine, 1 / speed-up and the geometric mean. Published figures have the digits
    that were printed.
    """
    machines, others = comparison.machines, range(1, len(comparison.machines))
    titles = ["task", *(f"{each.name}{' (published)' if each.published else ''}" for each in machines)]
    ms, tops, faster = [], [], []
    for row, (workload, entries) in enumerate(zip(comparison.workloads, comparison.entries, strict=True)):
        name = workload.name
        pairs = list(zip(entries, machines, strict=True))
        stars = ["\\*" if (name, each.name) in starred else "" for each in machines]
        times = [_number(entry.ms, machine) for entry, machine in pairs]
        ms.append([name, *(text + star for text, star in zip(times, stars, strict=True))])
        shares = ["" if each.utilization is None else f" ({100 * each.utilization:.1f})" for each in entries]
        values = [_number(entry.tops, machine) for entry, machine in pairs]
        tops.append([name, *(value + share for value, share in zip(values, shares, strict=True))])
        faster.append([name, *(_times(comparison.speedup(row, column)) for column in others)])
    means = [_times(comparison.mean_speedup(column)) for column in others]
    lines = ["Milliseconds:", "", *_table(titles, ms)]
    lines += ["TOPS (in brackets: utilization in %):", "", *_table(titles, tops)]
    lines += [f"{machines[0].name} is so many times as fast:", ""]
    extra = beside or {}
    last = [[*row, *(texts[number] for texts in extra.values())] for number, row in enumerate(faster)]
    last.append(["geometric mean", *means, *("" for _ in extra)])
    return [*lines, *_table(["task", *titles[2:], *extra], last), *_later_steps(comparison, titles)]


def _later_steps(comparison: Comparison, titles: Sequence[str]) -> list[str]:
    """The last table by later steps, with a sentence for each pair; nothing where no machine begins cold."""
    others = range(1, len(comparison.machines))
    pairs = [(row, column) for row in range(len(comparison.workloads)) for column in others]
    names = [comparison.workloads[row].name for row, _ in pairs]
    texts = [about_first_step(comparison, row, column) for row, column in pairs]
    told = [f"* {name}: {text}." for name, text in zip(names, texts, strict=True) if text]
    if not told:
        return []
    rows = [
        [workload.name, *(_times(comparison.later_speedup(row, column)) for column in others)]
        for row, workload in enumerate(comparison.workloads)
    ]
    rows.append(["geometric mean", *(_times(comparison.mean_later_speedup(column)) for column in others)])
    head = f"{comparison.machines[0].name} is so many times as fast by later steps, without the first:"
    return [head, "", *_table(["task", *titles[2:]], rows), *told, ""]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    return [lines[0], "| --- |" + " ---: |" * (len(head) - 1), *lines[1:], ""]


def _times(speedup: float | None) -> str:
    return "" if speedup is None else _number(1 / speedup)


def _number(value: float | None, machine: Machine | None = None) -> str:
    """Three digits, and all before the point; figures of a published machine have the digits that were printed."""
    if value is None:
        return ""
    if machine is not None and machine.published:
        return f"{value:g}"
    return three_digits(value)


def _records(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The rows of the CSV by the names of its columns."""
    head, *rows = comparison_rows(comparison)
    return (dict(zip(head, row, strict=True)) for row in rows)


FORMS = Forms(comparison_json, comparison_text, _records)
