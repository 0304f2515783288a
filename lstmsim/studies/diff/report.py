"""A diff as people and programs read it: a document that begins with the verdict, plain data, the rows of its path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lstmsim.analysis.explanations.text import held_words
from lstmsim.base.wording import counted
from lstmsim.report.document import Cell, Column, Document, Grid, Section, facts, grid, remark
from lstmsim.report.figures_text import four_digits, percent, short_name, short_path, two_digits
from lstmsim.report.results import Forms, picked, plain
from lstmsim.studies.diff.result import Arrivals, CoreRow, Diff, JobRow, Pair, PathRow
from lstmsim.traffic.intervals import Interval

#: Rows that people are shown; the JSON has all.
_KEYS, _PATH, _CORES, _JOBS = 12, 12, 2, 10
_NAME, _VALUE = 24, 30
_MORE = "{}; --json FILE has them"


def _data(diff: Diff) -> dict[str, Any]:
    """Give the diff as plain data of schema `lstmsim/diff/1`; each pair has the number of A, then of B."""
    return {
        "schema": "lstmsim/diff/1",
        **picked(diff, "names chips frequency_mhz makespan_cycles ms"),
        "time": {"clock_ms": diff.clock_ms, "cycles_ms": diff.cycles_ms},
        **plain(picked(diff, "changed path cores")),
        "jobs": [picked(job, "job numbers latency_cycles cycles") for job in diff.jobs],
        **picked(diff, "parts_at apart lag"),
        "arrivals": plain(diff.arrivals, {Interval: "value half_width batches"}),
        "verdict": diff.verdict,
    }


def _document(diff: Diff) -> Document:
    return Document.of(
        headline(diff),
        facts(*_sides(diff)),
        *_time(diff),
        _changed(diff),
        _path(diff),
        *_cores(diff),
        *_jobs(diff),
        None if diff.arrivals is None else _latencies(diff.arrivals),
        _parting(diff),
    )


def headline(diff: Diff) -> str:
    """Say which side is faster, by how much, the biggest reason by path, and which job loses where the makespan gains.

    >>> from lstmsim.studies.diff.run import diff
    >>> scenario = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 5}]}
    >>> headline(diff(scenario, overrides=["chip.cores.0.latency.writeback=6"]))
    'B is slower: 374 cycles, A 364 (2.7 % more); the critical path: tail pipeline, for results (hazard) +8.'
    """
    arrivals, (a, b) = diff.arrivals, diff.makespan_cycles
    run = f"{b:,} cycles, A {a:,}{_by(b, a)}" if a != b else f"{b:,} cycles on both sides"
    if diff.frequency_mhz[0] != diff.frequency_mhz[1]:
        run += f"; {four_digits(diff.ms[1])} ms, A {four_digits(diff.ms[0])}{_by(diff.ms[1], diff.ms[0])}"
    if arrivals is not None:
        run = f"the mean latency is {four_digits(arrivals.mean_ms[1])} ms, A {four_digits(arrivals.mean_ms[0])}"
        mean = arrivals.difference_ms.get("mean")
        of = " without the first tenth of the requests" if arrivals.drawn else ""
        run += "" if mean is None else f" (difference{of} {_difference(mean)})"
        run += f"; makespan {b:,} cycles, A {a:,}"
    words = {"same": "B is as fast as A", "cannot tell": "It cannot be told whether B is faster than A"}
    text = f"{words.get(diff.verdict, f'B is {diff.verdict}')}: {run}"
    if arrivals is not None and diff.verdict == "cannot tell":
        text += f"; {arrivals.reason or _because(arrivals)}"
    return f"{text}{_most_of_it(diff)}{_loser(diff)}."


def _by(b: float, a: float) -> str:
    return "" if a == b else f" ({percent(abs(b - a), a)} {'less' if b < a else 'more'})"


def _because(arrivals: Arrivals) -> str:
    mean = arrivals.difference_ms.get("mean")
    if mean is None or mean.holds(0.0):
        return "no request was served on both sides" if mean is None else "the interval holds 0"
    return "the side with shorter latencies serves fewer requests"


def _most_of_it(diff: Diff) -> str:
    """The row of the paths that changed most in the direction of the makespan; at open arrivals, of all latencies."""
    if diff.arrivals is not None:
        return _most_of_latencies(diff)
    more = diff.makespan_cycles[1] - diff.makespan_cycles[0]
    rows = [row for row in diff.path if (row.cycles[1] - row.cycles[0]) * more > 0]
    if not rows:
        return ""
    what, change = piece(diff, rows[0]), rows[0].cycles[1] - rows[0].cycles[0]
    return f"; the critical path: {what} {change:+,}"


def _most_of_latencies(diff: Diff) -> str:
    sums: Counter[str] = Counter()
    for job in diff.jobs:
        if job.more is not None:
            sums.update({name: _more(pair) or 0 for name, pair in job.cycles.items()})
    more = sum(sums.values()) if diff.verdict in ("faster", "slower") else 0
    name = max(sums, key=lambda each: sums[each] * more, default="")
    return f"; most of it: {name} {sums[name]:+,} cycles over all requests" if name and sums[name] * more > 0 else ""


def piece(diff: Diff, row: PathRow) -> str:
    """What a row of the path is, and what the path waited for."""
    return f"{row.what}, for {held_words(row.why, diff.words)}"


def _loser(diff: Diff) -> str:
    """The job that loses most although the makespan gains."""
    lost = max(((job.more or 0, job.job) for job in diff.jobs), default=(0, ""), key=lambda each: each[0])
    fewer = [counted(sum(job.latency_cycles[at] is None for job in diff.jobs), "job") for at in (0, 1)]
    text = f"; B does not serve {fewer[1]}, A {fewer[0]}" if fewer[0] != fewer[1] else ""
    gains = diff.verdict == "faster" if diff.arrivals else diff.makespan_cycles[1] < diff.makespan_cycles[0]
    if not gains or lost[0] <= 0:
        return text
    many = sum((job.more or 0) > 0 for job in diff.jobs)
    more = f", the most of {many:,} that lose" if many > 1 else ""
    return f"{text}; but job {short_name(lost[1], _NAME)} takes {lost[0]:,} cycles longer{more}"


def _sides(diff: Diff) -> list[tuple[str, str]]:
    rows = zip("AB", diff.names, diff.chips, diff.frequency_mhz, diff.makespan_cycles, diff.ms, strict=True)
    return [
        (label, f"{name}: {short_name(chip, _NAME)} at {mhz:g} MHz, {cycles:,} cycles = {four_digits(ms)} ms")
        for label, name, chip, mhz, cycles, ms in rows
    ]


def _time(diff: Diff) -> list[Section]:
    """The parts of the time by clock and cycles, where clocks differ."""
    if diff.frequency_mhz[0] == diff.frequency_mhz[1]:
        return []
    rows = [("clock", diff.clock_ms), ("cycles", diff.cycles_ms), ("sum", diff.ms[1] - diff.ms[0])]
    said = (
        "Clock is the price of a period at the cycles taken, not the effect of changing the clock: cycles may change "
    )
    said += "with it, too, where a memory is given in GB/s or jobs come by the second. All below is in cycles."
    cells = [(name, f"{value:+.4g}") for name, value in rows]
    return [Section.of(grid(["<time", "B - A, ms"], cells), remark(said))]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return short_name(", ".join(f"{key} {_value(each)}" for key, each in value.items()), _VALUE)
    if isinstance(value, list | tuple):
        return short_name(", ".join(map(_value, value)), _VALUE)
    return "-" if value is None else short_name(str(value), _VALUE)


def _changed(diff: Diff) -> Section:
    if not diff.changed:
        return Section.of("Nothing that the descriptions say differs.", title="WHAT CHANGED")
    rows = [(short_path(each.key, 36), *map(_value, each.values)) for each in diff.changed]
    table = grid(["<key", "A", "B"], rows, limit=_KEYS, more=_MORE.format("keys"))
    return Section.of(table, title=f"WHAT CHANGED: {counted(len(diff.changed), 'key')}")


def _signed(value: Cell) -> str:
    return "-" if value is None else f"{value:+,}" if value else "0"


_MORE_OF_B = Column("B - A", form=_signed)


def _more(pair: Pair) -> int | None:
    return None if pair[0] is None or pair[1] is None else pair[1] - pair[0]


def _rows(cycles: Mapping[str, Pair], last: str) -> list[tuple[Cell, ...]]:
    """Rows of names and their sum; names that are 0 on both sides are left out."""
    rows = [(name, *pair, _more(pair)) for name, pair in cycles.items() if pair[0] or pair[1]]
    there = [next(iter(cycles.values()), (0, 0))[at] is not None for at in (0, 1)]
    total = [sum(pair[at] or 0 for pair in cycles.values()) if there[at] else None for at in (0, 1)]
    return [*rows, (last, *total, _more((total[0], total[1])))]


def _path(diff: Diff) -> Section:
    """The waterfall of the critical path."""
    rows = [
        (row.what, held_words(row.why, diff.words), *row.cycles, row.cycles[1] - row.cycles[0]) for row in diff.path
    ]
    total = ("makespan", "", *diff.makespan_cycles, diff.makespan_cycles[1] - diff.makespan_cycles[0])
    title = "THE CRITICAL PATH: what the change bought (rows add up to the makespans)"
    head: list[str | Column] = ["<what", "<waited for", "A", "B", _MORE_OF_B]
    said = "Of chains of equal length the path follows the same one on both sides (docs/traces.md, the critical path)."
    # with its last row, so that people see the sum
    return Section.of(_with_sum(head, rows, total, _PATH, "rows"), remark(said), title=title)


def _with_sum(
    head: Iterable[str | Column], rows: Sequence[Sequence[Cell]], total: Sequence[Cell], limit: int, what: str
) -> Grid:
    """A table whose sum is shown, also where rows are not: these are then one row."""
    columns = list(head)
    if len(rows) > limit:
        rest = rows[limit - 1 :]
        sums = [sum(row[at] for row in rest) for at in range(len(total) - 3, len(total))]  # type: ignore[misc]
        text = f"... and {len(rest):,} more {_MORE.format(what)}"
        rows = [*rows[: limit - 1], (text, *[""] * (len(total) - 4), *sums)]
    return grid(columns, [*rows, total])


def _cores(diff: Diff) -> list[Section]:
    """Where the cycles of cores went; those that differ most first."""

    def change(core: CoreRow) -> int:
        return sum(abs((pair[1] or 0) - (pair[0] or 0)) for pair in core.cycles.values())

    chosen = sorted(diff.cores, key=lambda core: (-change(core), core.core))
    sections = [_core(core) for core in chosen[:_CORES]]
    if len(chosen) > _CORES:
        sections.append(Section.of(f"... and {len(chosen) - _CORES:,} more {_MORE.format('cores')}"))
    return sections


def _core(core: CoreRow) -> Section:
    head: list[str | Column] = ["<cycles", "A", "B", _MORE_OF_B]
    ways = [each for each in core.ways if each is not None]
    if len(ways) < 2:
        title = f"CORE {core.core}: only {'A' if core.ways[1] is None else 'B'} has it"
    elif not core.comparable:
        title = f"CORE {core.core}: A has {ways[0]} ways, B {ways[1]}; each side adds up to its ways x makespan"
    else:
        title = f"CORE {core.core}: where the cycles went"
    whole = "ways x makespan" if max(ways) > 1 else "makespan"
    parts = [grid(head, _rows(core.cycles, whole))]
    if core.multiplier_cycles:
        head = ["<multiplier-cycles", "A", "B", _MORE_OF_B]
        parts.append(grid(head, _rows(core.multiplier_cycles, "peak x makespan")))
    return Section.of(*parts, title=title)


def _jobs(diff: Diff) -> list[Section]:
    """Latencies of jobs: those that gained most and lost most first."""
    known = sorted((job for job in diff.jobs if job.more is not None), key=lambda job: job.more or 0)
    half = _JOBS // 2
    shown = known if len(known) <= _JOBS else [*known[:half], *known[-half:], *known[half:-half]]
    rows = [(short_name(job.job, _NAME), *job.latency_cycles, job.more, _parts(job)) for job in shown]
    head: list[str | Column] = ["<job", "A", "B", _MORE_OF_B, "<most of the difference"]
    table = grid(head, rows, limit=_JOBS, more=_MORE.format("jobs"))
    title = "JOBS: latency in cycles, those that gain most and lose most first"
    said = []
    for side, at in (("A", 0), ("B", 1)):
        only = [job for job in diff.jobs if job.numbers[1 - at] is None]
        away = [job for job in diff.jobs if job.numbers[at] is not None and job.latency_cycles[at] is None]
        said += [f"only in {side}: {_listed(only)}"] if only else []
        said += [f"{side} rejects {counted(len(away), 'job')}: {_listed(away)}"] if away else []
    return [Section.of(*([table] if rows else []), *said, title=title)]


def _listed(jobs: Sequence[JobRow]) -> str:
    names = ", ".join(short_name(job.job, _NAME) for job in jobs[:5])
    return f"{names} and {len(jobs) - 5:,} more" if len(jobs) > 5 else names


def _parts(job: JobRow) -> str:
    """The two names that differ most."""
    changes = {name: _more(pair) or 0 for name, pair in job.cycles.items()}
    most = sorted((name for name in changes if changes[name]), key=lambda name: -abs(changes[name]))[:2]
    return ", ".join(f"{name} {changes[name]:+,}" for name in most)


def _difference(interval: Interval) -> str:
    half = "" if interval.half_width is None else f" ± {two_digits(interval.half_width)}"
    return f"{interval.value:+.4g}{half} ms"


def _latencies(arrivals: Arrivals) -> Section:
    way = (
        f"the same requests on both sides, in pairs: {arrivals.compared:,} that both served"
        if arrivals.same or not arrivals.drawn
        else "other requests on each side, so that the intervals of the sides are combined"
    )
    rows = [(name, _difference(each)) for name, each in arrivals.difference_ms.items()]
    said = "without the first tenth (warm-up), at 95 %" if arrivals.drawn else "these requests are all there is"
    counts = f"Only A served {arrivals.only_a:,} of the requests that both have, only B {arrivals.only_b:,}."
    return Section.of(
        grid(["<statistic", "B - A"], rows) if rows else None,
        f"{said[0].upper()}{said[1:]}.",
        f"No interval: {arrivals.reason}." if arrivals.reason else None,
        counts if arrivals.only_a or arrivals.only_b else None,
        title=f"LATENCIES: {way}",
    )


def _parting(diff: Diff) -> Section:
    at, lag = diff.parts_at, diff.lag
    apart = ", ".join(short_name(each, _NAME) for each in diff.apart[:5])
    said = f"Issues of {apart}{' ...' if len(diff.apart) > 5 else ''} cannot be compared one by one, for they are cut "
    said += "otherwise on each side: of these jobs only starts and finishes are aligned."
    behind = ""
    if lag is not None:
        verb = "loses" if lag.cycles > 0 else "gains"
        then = f"{counted(abs(lag.behind), 'cycle')} {'behind' if lag.behind > 0 else 'ahead of'} A"
        then = then if lag.behind else "level with A"
        behind = f"B {verb} most in {short_name(lag.job, _NAME)}, layer {lag.layer}, step {lag.step}: "
        behind += f"{counted(abs(lag.cycles), 'cycle')}; after it B is {then}."
    if at is None:
        where = [] if diff.apart else ["Both sides do the same in every cycle."]
        return Section.of(*where, said if diff.apart else "", behind, title="WHERE THEY PART")
    core = "" if at.core is None else f" on core {at.core}"
    rows = facts(("A", at.a), ("B", at.b), ("why", at.why), width=6)
    title = f"WHERE THEY PART: at cycle {at.cycle:,}{core}"
    return Section.of(rows, said if diff.apart else "", behind, title=title)


def _records(diff: Diff) -> list[dict[str, Any]]:
    return [{"what": row.what, "why": row.why, "a": row.cycles[0], "b": row.cycles[1]} for row in diff.path]


FORMS = Forms(_data, _document, _records)
