"""A diff as people and programs read it: a document that begins with the verdict, plain data, the rows of its path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lstmsim.analysis.explanations.text import held_words
from lstmsim.base.wording import counted
from lstmsim.report.document import Cell, Column, Document, Section, facts, grid, remark
from lstmsim.report.figures_text import four_digits, percent, short_name, short_path, two_digits
from lstmsim.report.results import Forms, picked, plain
from lstmsim.studies.diff.result import Arrivals, CoreRow, Diff, JobRow, Pair, PathRow, more
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
        **plain(picked(diff, "changed path several_paths cores")),
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
        run = f"{four_digits(diff.ms[1])} ms, A {four_digits(diff.ms[0])}{_by(diff.ms[1], diff.ms[0])}; {run}"
    if arrivals is not None:
        run = f"the mean latency is {four_digits(arrivals.mean_ms[1])} ms, A {four_digits(arrivals.mean_ms[0])}"
        mean = arrivals.difference_ms.get("mean")
        of = " without the first tenth of the requests" if arrivals.drawn else ""
        run += "" if mean is None else f" (difference{of} {_difference(mean)})"
        run += f"; makespan {b:,} cycles, A {a:,}"
    words = {"same": "B is as fast as A", "cannot tell": "It cannot be told whether B is faster than A"}
    text = f"{words.get(diff.verdict, f'B is {diff.verdict}')}: {run}"
    if diff.verdict == "cannot tell":
        text += f"; {'one side serves fewer jobs' if arrivals is None else arrivals.reason or _because(arrivals)}"
    return f"{text}{_most_of_it(diff)}{_loser(diff)}."


def _by(b: float, a: float) -> str:
    return "" if a in (0, b) else f" ({percent(abs(b - a), a)} {'less' if b < a else 'more'})"


def _because(arrivals: Arrivals) -> str:
    mean = arrivals.difference_ms.get("mean")
    if mean is None or mean.holds(0.0):
        return "no request was served on both sides" if mean is None else "the interval holds 0"
    return "the side with shorter latencies serves fewer requests"


def _most_of_it(diff: Diff) -> str:
    """The row of the paths that changed most in the direction of the makespan; at open arrivals, of all latencies.

    Where the cycles do not say it, the clock does.
    """
    if diff.arrivals is not None:
        return _most_of_latencies(diff)
    a, b = diff.makespan_cycles
    if (b - a) * (diff.clock_ms + diff.cycles_ms) <= 0 and diff.clock_ms:
        return f"; by the clock: {diff.clock_ms:+.4g} ms"
    row = next((row for row in diff.path if row.more * (b - a) > 0), None)
    return f"; the critical path: {piece(diff, row)} {row.more:+,}" if row else ""


def _most_of_latencies(diff: Diff) -> str:
    sums: Counter[str] = Counter()
    for job in diff.jobs:
        if job.more is not None:
            sums.update({name: more(pair) or 0 for name, pair in job.cycles.items()})
    sign = sum(sums.values()) if diff.verdict in ("faster", "slower") else 0
    name = max(sums, key=lambda each: sums[each] * sign, default="")
    return f"; most of it: {name} {sums[name]:+,} cycles over all requests" if name and sums[name] * sign > 0 else ""


def piece(diff: Diff, row: PathRow) -> str:
    """What a row of the path is, and what the path waited for."""
    return f"{row.what}, for {held_words(row.why, diff.words)}" if row.why else row.what


def shortened(path: Sequence[PathRow], limit: int, text: str) -> list[PathRow]:
    """Rows of a path, at most `limit`: those that differ least are then one row, called `text` with their number."""
    rest = path[limit - 1 :]
    a, b = (sum(row.cycles[at] for row in rest) for at in (0, 1))
    return [*path[: limit - 1], PathRow(text.format(len(rest)), "", (a, b))] if len(rest) > 1 else [*path]


def _loser(diff: Diff) -> str:
    """The job that loses most although the makespan gains."""
    lost = max(((job.more or 0, job.job) for job in diff.jobs), default=(0, ""), key=lambda each: each[0])
    fewer = [counted(sum(job.latency_cycles[at] is None for job in diff.jobs), "job") for at in (0, 1)]
    text = f"; B does not serve {fewer[1]}, A {fewer[0]}" if fewer[0] != fewer[1] else ""
    gains = diff.verdict == "faster" if diff.arrivals else diff.makespan_cycles[1] < diff.makespan_cycles[0]
    if not gains or lost[0] <= 0:
        return text
    many = sum((job.more or 0) > 0 for job in diff.jobs)
    others = f", the most of {many:,} that lose" if many > 1 else ""
    return f"{text}; but job {short_name(lost[1], _NAME)} takes {lost[0]:,} cycles longer{others}"


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
    rows = [(short_path(each.key, 36) + each.where, *map(_value, each.values)) for each in diff.changed]
    table = grid(["<key", "A", "B"], rows, limit=_KEYS, more=_MORE.format("keys"))
    return Section.of(table, title=f"WHAT CHANGED: {counted(len(diff.changed), 'key')}")


def _signed(value: Cell) -> str:
    return "-" if value is None else f"{value:+,}" if value else "0"


_MORE_OF_B = Column("B - A", form=_signed)


def _rows(cycles: Mapping[str, Pair], last: str) -> list[tuple[Cell, ...]]:
    """Rows of names and their sum; names that are 0 on both sides are left out."""
    rows = [(name, *pair, more(pair)) for name, pair in cycles.items() if pair[0] or pair[1]]
    a, b = (None if None in side else sum(side) for side in zip(*cycles.values(), strict=True))
    return [*rows, (last, a, b, more((a, b)))]


def _path(diff: Diff) -> Section:
    """The waterfall of the critical path."""
    shown = shortened(diff.path, _PATH, f"... and {{:,}} more {_MORE.format('rows')}")
    rows = [(row.what, row.why and held_words(row.why, diff.words), *row.cycles, row.more) for row in shown]
    a, b = diff.makespan_cycles
    rows.append(("makespan", "", a, b, b - a))
    title = "THE CRITICAL PATH: what the change bought (rows add up to the makespans)"
    head: list[str | Column] = ["<what", "<waited for", "A", "B", _MORE_OF_B]
    several = [name for name, each in zip("AB", diff.several_paths, strict=True) if each]
    said = f"The path of {' and of '.join(several)} is one of several of equal length, chosen by one rule on both "
    said += "sides (docs/traces.md, the critical path): another one could show other rows."
    return Section.of(grid(head, rows), remark(said) if several else None, title=title)


def _cores(diff: Diff) -> list[Section]:
    """Where the cycles of cores went; those that differ most first."""

    def change(core: CoreRow) -> int:
        return sum(abs((b or 0) - (a or 0)) for a, b in core.cycles.values())

    chosen = sorted(diff.cores, key=change, reverse=True)
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
    changes = {name: more(pair) or 0 for name, pair in job.cycles.items()}
    most = sorted((name for name in changes if changes[name]), key=lambda name: -abs(changes[name]))[:2]
    return ", ".join(f"{name} {changes[name]:+,}" for name in most)


def _difference(interval: Interval) -> str:
    unit, factor = ("µs", 1000.0) if 0 < abs(interval.value) < 1e-3 else ("ms", 1.0)
    own = interval.scaled(factor)
    half = "" if own.half_width is None else f" ± {two_digits(own.half_width)}"
    return f"{own.value:+.4g}{half} {unit}"


def _latencies(arrivals: Arrivals) -> Section:
    way = (
        f"the same requests on both sides, in pairs: {arrivals.compared:,} that both served"
        if arrivals.same or not arrivals.drawn
        else "other requests on each side, so that the intervals of the sides are combined"
    )
    few = ", no interval: too few requests" if arrivals.drawn and not arrivals.reason else ""
    rows = [
        (name, _difference(each) + few * (each.half_width is None)) for name, each in arrivals.difference_ms.items()
    ]
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


FORMS = Forms(
    _data,
    _document,
    _records,
    axes=lambda _: ("a", "b", "why"),
    picture="lstmsim.studies.diff.picture:plot_diff",
    headed=True,
)
