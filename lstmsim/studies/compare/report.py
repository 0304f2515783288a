"""A comparison as a document with its sentences, as plain data, and as the rows of a CSV file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.report.document import Column, Document, Grid, Section, Text, grid, remark
from lstmsim.report.figures_text import percent, short_name, three_digits, with_interval
from lstmsim.report.results import Baseline, Forms, Keys, picked, plain
from lstmsim.studies.compare.device_fits import NO_DEVICE, DeviceFit
from lstmsim.studies.compare.headline import headline
from lstmsim.studies.compare.published import FITTED, about_machines, model_errors
from lstmsim.studies.compare.result import PERCENTILES, Comparison, Entry, Latencies, not_comparable, not_told
from lstmsim.traffic.intervals import Interval
from lstmsim.traffic.load import VERDICTS


def about_first_step(comparison: Comparison, row: int, column: int) -> str:
    """Say how long the base takes in comparison with a machine, as a whole and by later steps."""
    clause, speedup = _by_later_steps(comparison, row, column), comparison.speedup(row, column)
    if not clause or speedup is None or comparison.by_latency:
        return clause
    base = comparison.machines[0].name
    if speedup > 1:
        return f"{base} takes {three_digits(speedup)} times as long; {clause}"
    return f"{base} is {three_digits(1 / speedup)} times as fast; {clause}"


def _by_later_steps(comparison: Comparison, row: int, column: int) -> str:
    """The ratio by later steps in words, in the direction of the whole ratio, or why there is none."""
    machines, entries = comparison.machines, comparison.entries[row]
    speedup, later = comparison.speedup(row, column), comparison.later_speedup(row, column)
    cold = [each for each in dict.fromkeys((0, column)) if machines[each].begins_cold]
    if not cold or speedup is None or column == 0:
        return ""
    names = " and ".join(machines[each].name for each in cold)
    shares = [
        f"{percent(entry.first_cycles, entry.cycles)} of the cycles of {machines[each].name}"
        for each in cold
        if (entry := entries[each]).first_cycles is not None and entry.cycles
    ]
    if not shares and comparison.way != "at once":
        return f"later steps are not measured where jobs come over time: on {names} each job first loads its weights"
    if not shares:
        return f"no job has a second time step, so all of the time of {names} is a first step, which loads the weights"
    why = f"{' and '.join(shares)} are its first step, which loads the weights"
    if later is None:
        return f"by later steps it is not known, but {why}"
    return f"{three_digits(later if speedup > 1 else 1 / later)} times by later steps ({why})"


@dataclass(frozen=True)
class Defeat:
    """A workload that takes longer on the base than on another machine.

    workload: its name.
    times: how many times as long it takes on the base.
    peak_ratio, utilization_ratio: the other's peak TOPS and utilization / those of the base, None: unknown; their
        product is `times`, for published figures as exactly as they were printed.
    losses: where the base's PE-cycles went, in words.
    later: how many times as long it takes by later steps, in words; empty: no machine begins cold.

    >>> Defeat("m", 1.5, 2.0, 0.75, "hazard 20.0 %").sentence
    "1.50 times as long; the other's peak is 2.00 times, its utilization 0.75 times as high; own loss: hazard 20.0 %"
    """

    workload: str
    times: float
    peak_ratio: float | None
    utilization_ratio: float | None
    losses: str
    later: str = ""

    @property
    def sentence(self) -> str:
        """The defeat in words, without the workload's name."""
        parts = [f"{self.times:.2f} times as long", *([self.later] if self.later else [])]
        if self.peak_ratio is not None and self.utilization_ratio is not None:
            peak = f"the other's peak is {self.peak_ratio:.2f} times"
            parts.append(f"{peak}, its utilization {self.utilization_ratio:.2f} times as high")
        return "; ".join([*parts, f"own loss: {self.losses}"])


def lost_shares(entry: Entry) -> str:
    """Name where PE-cycles were lost, with shares: all shares from 1 % on, at least the largest."""
    shares = sorted(
        ((share, name) for name, share in entry.losses.items() if name != "useful" and share > 0),
        key=lambda pair: -pair[0],
    )
    shown = [pair for pair in shares if pair[0] >= 0.01] or shares[:1]
    return ", ".join(f"{name} {percent(share, 1)}" for share, name in shown)


def defeats(comparison: Comparison, column: int) -> tuple[Defeat, ...]:
    """List the workloads that take longer on the base than on another machine, in their order."""
    base, other = comparison.machines[0], comparison.machines[column]
    peaks = other.peak_tops / base.peak_tops if other.peak_tops and base.peak_tops else None
    lost = []
    for row, (workload, entries) in enumerate(zip(comparison.workloads, comparison.entries, strict=True)):
        speedup, own, theirs = comparison.speedup(row, column), entries[0].utilization, entries[column].utilization
        if speedup is not None and speedup > 1:
            shares = theirs / own if own and theirs else None
            later = _by_later_steps(comparison, row, column)
            lost.append(Defeat(workload.name, speedup, peaks, shares, lost_shares(entries[0]), later))
    return tuple(lost)


#: What the way in which jobs come means for a comparison, a key of `lstmsim.model.scenario.ARRIVING`.
_WAYS = {
    "at once": "",
    "open": "The jobs come over time, at the same times to every chip.",
    "closed": "Some jobs come after others have been answered, so a faster chip is asked sooner.",
}
#: A p99 of fewer requests is hardly less than the maximum.
_FEWEST_FOR_P99 = 100

Cell = Callable[[int, int], str | None]


def latency_figures(comparison: Comparison) -> dict[str, Cell]:
    """Give the figures about latencies that are shown of an entry, in order; none where all jobs come at once.

    The result gives for each title a function of row and column.
    """
    known = [each.latencies for row in comparison.entries for each in row if each.latencies is not None]
    if not known:
        return {}

    def of(text: Callable[[Latencies], str | None]) -> Cell:
        def cell(row: int, column: int) -> str | None:
            own = comparison.entries[row][column].latencies
            return None if own is None else text(own)

        return cell

    def faster(percentile: int | None = None) -> Cell:
        def cell(row: int, column: int) -> str | None:
            ratio = comparison.latency_ratio(row, column, percentile)
            return None if ratio is None else three_digits(ratio)

        return cell

    def quantile(percentile: int) -> Cell:
        return of(lambda own: _interval(own.percentiles[percentile]))

    cells = {"requests served": of(lambda own: f"{own.requests:,}")}
    if any(own.rejected for own in known):
        cells["rejected"] = of(lambda own: _part(len(own.rejected), own.requests + len(own.rejected)))
    if any(own.misses is not None for own in known):
        cells["late"] = of(lambda own: None if own.misses is None else _part(own.misses, own.requests))
    cells["mean latency ms"] = of(lambda own: _interval(own.mean))
    cells |= {f"p{each} latency ms": quantile(each) for each in PERCENTILES}
    if any(own.offered_load is not None for own in known):
        cells["offered load"] = of(lambda own: None if own.offered_load is None else f"{own.offered_load:#.3g}")
    return cells | {
        "threads taken": of(lambda own: f"{100 * own.threads_taken:.1f} %"),
        "verdict": of(lambda own: own.verdict),
        "times as fast (mean)": faster(),
        "times as fast (p99)": faster(99),
        "requests sooner": of(lambda own: None if own.sooner is None else _part(own.sooner, own.requests)),
    }


def _part(count: int, whole: int) -> str:
    return f"{count:,} ({percent(count, whole)})"


def _interval(each: Interval) -> str:
    value = three_digits(each.value)
    return f"{value} (too few)" if each.half_width is None else with_interval(value, each.half_width, each.ends)


def latency_notes(comparison: Comparison) -> list[str]:
    """Write paragraphs on how the latencies were measured, and what they leave open."""
    base = comparison.machines[0].name
    pairs = zip(comparison.machines, comparison.entries[0], strict=True)
    own = [(machine.name, each.latencies) for machine, each in pairs if each.latencies is not None]
    if not own:
        return []
    notes = [
        f"{_WAYS[comparison.way]} Latency: from arrival to finish, without the first requests (warm-up); +- is half "
        "of a 95 % interval, and 'too few' says that there are too few requests to tell how far another run would be "
        f"from this one. Times as fast: latency of {base} / latency of the machine."
    ]
    if comparison.way == "open":
        least, most = (f"{100 * end(comparison.before_last_arrival):.3g} %" for end in (min, max))
        fixed = "The ratio of makespans is fixed by the arrivals" if comparison.by_latency else "Makespans"
        part = least if least == most else f"{least} to {most}"
        notes.append(f"{fixed}: {part} of the makespans are over when the last request comes, whatever the chip does.")
    if min(each.requests for _, each in own) < _FEWEST_FOR_P99:
        notes.append(f"A p99 of fewer than {_FEWEST_FOR_P99} requests is hardly less than the maximum of this run.")
    for verdict in ("unstable", "cannot tell", "no steady state"):
        which = [name for name, each in own if each.verdict == verdict]
        if which:
            notes.append(f"{verdict} on {', '.join(which)}: {VERDICTS[verdict]}.")
    if any(each.rejected for _, each in own):
        notes.append(
            "All figures are of the requests that were served: a machine that rejects more of them has less to do."
        )
    return notes


def latency_verdicts(comparison: Comparison) -> list[str]:
    """Say for each other machine whether the base's latency is longer, as far as this run can tell."""
    base, *others = comparison.entries[0]
    return [
        f"than {machine.name}: {_verdict(comparison, base.latencies, other.latencies, column)}"
        for column, (machine, other) in enumerate(zip(comparison.machines[1:], others, strict=True), start=1)
    ]


def _verdict(comparison: Comparison, base: Latencies | None, other: Latencies | None, column: int) -> str:
    if base is None or other is None:
        return "not known"
    reason, ratio = not_comparable(base, other), comparison.latency_ratio(0, column)
    if reason or ratio is None:
        return f"not comparable; {reason}"
    sooner = f"; {other.sooner:,} of {other.requests:,} requests are sooner there" if other.sooner is not None else ""
    run = f"{ratio:.3g} times as long{sooner}"
    if doubt := not_told(base, other):
        return f"cannot tell, {doubt}; in this run {run}"
    return f"{'yes' if ratio > 1 else 'no'}, {run}"


_BY_LATER_STEPS = "speed-up by later steps"
_COMPARED = "compared with"


def _document(comparison: Comparison) -> Document:
    """Tables that are split where there are many machines, then what is to be known about the numbers."""
    jobs = sum(each.jobs for each in comparison.workloads)
    what = f"{len(comparison.workloads)} models, each alone" if comparison.each else f"{jobs} job{'s' * (jobs > 1)}"
    remarks = dict.fromkeys(text for row in comparison.entries for entry in row for text in entry.remarks)
    return Document.of(
        headline(comparison),
        Section.of(
            f"COMPARISON of {comparison.scenario}: {what}, engine {comparison.engine}.",
            *_captions(comparison),
            *(Text(each, hang=2) for each in about_machines(comparison)),
        ),
        Section.of(*([] if comparison.each else latency_notes(comparison))),
        *(_each(comparison) if comparison.each else [_whole(comparison)]),
        _errors(comparison),
        _defeats(comparison) if len(comparison.machines) > 1 else None,
        _fits(comparison.device_fits),
        _footnotes(comparison),
        Section.of(*(remark(each, hang=2) for each in remarks)),
    )


def _captions(comparison: Comparison) -> list[str]:
    """Say what the ratios are."""
    if len(comparison.machines) == 1 or comparison.by_latency:
        return []
    base, part = comparison.machines[0].name, comparison.part
    captions = [
        f"Speed-up: milliseconds of {base} / milliseconds of the machine. At equal {part}s: that times the {part}s of "
        f"{base} / the {part}s of the machine. Utilization: useful multiply-accumulates per {part} and cycle."
    ]
    if _has_first_steps(comparison):
        cold = ", ".join(each.name for each in comparison.machines if each.begins_cold)
        what = "cycles of the same jobs with one time step each; it loads the weights on"
        captions.append(f"First step: {what} {cold}. Later steps: what the others add.")
    return captions


def _has_first_steps(comparison: Comparison) -> bool:
    """Whether first steps were simulated alone."""
    return any(entry.first_cycles is not None for row in comparison.entries for entry in row)


def _whole(comparison: Comparison) -> Grid:
    """One table: a row for each figure, a column for each machine."""
    cells, columns = _figures(comparison), {}
    for column, machine in enumerate(comparison.machines):
        known = comparison.entries[0][column].known
        own = [cell(0, column) or "-" if known else "" for cell in cells.values()]
        own[:1] = own[:1] if known else [_mark(comparison, 0, column)]
        clock = "-" if machine.frequency_mhz is None else f"{machine.frequency_mhz:g}"
        columns[column] = [_whole_number(machine.pes) or "-", clock, _short(machine.peak_tops) or "-", *own]
    return _table(comparison, [f"{comparison.part}s", "MHz", "peak TOPS", *cells], columns)


def _each(comparison: Comparison) -> Iterator[Section]:
    """A table for each figure, with a row for each model.

    A machine has a column where it has the figure of one of the models, or ran none of them; the base always has one.
    """
    rows = range(len(comparison.workloads))
    means = {"speed-up": comparison.mean_speedup, _BY_LATER_STEPS: comparison.mean_later_speedup}
    *figures, (_, evidence) = _figures(comparison).items()
    for title, cell in figures:
        if title in ("mean latency ms", "p99 latency ms", _per_thousand(comparison)):
            continue
        shown = {}
        for column in range(len(comparison.machines)):
            own = [cell(row, column) for row in rows]
            if column == 0 or any(own) or not any(comparison.entries[row][column].known for row in rows):
                mean = [_short(means[title](column)) or "-"] if title in means else []
                mean += [evidence(0, column) or "-"] if title == "cycles" else []
                shown[column] = [*(text or _mark(comparison, row, column) for row, text in enumerate(own)), *mean]
        labels = [*(each.name for each in comparison.workloads), *(["geometric mean"] if title in means else [])]
        labels += [_COMPARED] if title == "cycles" else []
        yield Section.of(_table(comparison, labels, shown), title=title.upper())


def _table(comparison: Comparison, labels: Sequence[str], columns: Mapping[int, Sequence[str]]) -> Grid:
    """Figures of machines (by their numbers) beside labels; the first machine stands in every part of a split table."""
    machines = [comparison.machines[number] for number in columns]
    kinds = ["published" if each.published else "simulated" for each in machines]
    shown = [[kind, *texts] for kind, texts in zip(kinds, columns.values(), strict=True)]
    heads = [Column(_name(each.name)) for each in machines]
    rows = zip(["", *map(_name, labels)], *shown, strict=True)
    return grid([Column("", left=True), *heads], rows, repeated=2)


def _mark(comparison: Comparison, row: int, column: int) -> str:
    """The mark of the footnote that says why an entry has no numbers."""
    entry, machine = comparison.entries[row][column], comparison.machines[column]
    known = machine.published or not entry.reason
    return "-" if known else f"[{comparison.reasons[f'{machine.name}: {entry.reason}']}]"


def _footnotes(comparison: Comparison) -> Section:
    """Why entries have no numbers, and the sources of published figures."""
    sources: dict[str, list[str]] = {}
    for each in comparison.machines:
        if each.published:
            sources.setdefault(each.source, []).append(each.name)
    texts = [f"[{number}] {text}" for text, number in comparison.reasons.items()]
    texts += [f"published, not simulated: {', '.join(names)}: {source}" for source, names in sources.items()]
    return Section.of(*(Text(each, hang=4) for each in texts))


def _errors(comparison: Comparison) -> Section | None:
    texts = [Text(f"{each.sentence}.", hang=2) for each in model_errors(comparison)]
    title = "HOW FAR OFF THE MODEL IS: simulated time / published time of the machine that the chip describes"
    return Section.of(*texts, FITTED, title=title) if texts else None


def _defeats(comparison: Comparison) -> Section:
    """On which workloads the base is slower, and why."""
    base, others = _name(comparison.machines[0].name), range(1, len(comparison.machines))
    if comparison.by_latency:
        lines = [*latency_verdicts(comparison), *(about_first_step(comparison, 0, each) for each in others)]
        texts = [Text(each, hang=2) for each in lines if each]
        return Section.of(*texts, title=f"WHERE {base} TAKES LONGER (mean latency)")
    texts = []
    for column in others:
        lost = {each.workload: each.sentence for each in defeats(comparison, column)}
        known = sum(comparison.speedup(row, column) is not None for row in range(len(comparison.workloads)))
        many = "not known" if not known else "nowhere" if not lost else "yes"
        many = f"{len(lost)} of {known}" if comparison.each and lost else many
        steps = {each.name: about_first_step(comparison, row, column) for row, each in enumerate(comparison.workloads)}
        shown = lost | {name: text for name, text in steps.items() if text and name not in lost}
        texts.append(Text(f"than {_name(comparison.machines[column].name)}: {many}"))
        texts += [Text(f"  {_name(name)}: {text}", hang=4) for name, text in shown.items()]
    return Section.of(*texts, title=f"WHERE {base} TAKES LONGER (makespan)")


def _fits(fits: Sequence[DeviceFit]) -> Section | None:
    """For each chip and device the verdict, once for all workloads that share it."""
    texts = []
    for chip, home, rivals in dict.fromkeys((each.chip, each.device, each.rivals) for each in fits):
        if not home:
            texts.append(Text(f"{', '.join(rivals)}: {NO_DEVICE}", hang=2))
            continue
        own = [each for each in fits if (each.chip, each.device, each.rivals) == (chip, home, rivals)]
        texts.append(Text(f"{chip} on {home} ({', '.join(rivals)}):", hang=2))
        for short in dict.fromkeys(each.short for each in own):
            named = [each.workload for each in own if each.short == short]
            text = short if len(named) == len(own) else f"{', '.join(named)}: {short}"
            texts.append(Text(f"  {text}", hang=4))
    title = "DOES IT FIT the device of the machine that it is compared with, with the workload's weights?"
    return Section.of(*texts, title=title) if texts else None


def _per_thousand(comparison: Comparison) -> str:
    return f"TOPS per 1000 {comparison.part}s"


def _figures(comparison: Comparison) -> dict[str, Cell]:
    """The figures that are shown of an entry, in order; published figures with the digits that were printed."""
    entries, by_latency, first = comparison.entries, comparison.by_latency, _has_first_steps(comparison)
    latencies, stamps = {} if comparison.each else latency_figures(comparison), comparison.stamps

    def of(name: str) -> Cell:
        def cell(row: int, column: int) -> str | None:
            value = getattr(entries[row][column], name)
            return f"{value:g}" if value is not None and comparison.machines[column].published else _short(value)

        return cell

    def whole(name: str) -> Cell:
        return lambda row, column: _whole_number(getattr(entries[row][column], name))

    def ratio(method: Callable[[int, int], float | None]) -> Cell:
        return lambda row, column: _short(method(row, column))

    def loss(row: int, column: int) -> str | None:
        name = entries[row][column].main_loss
        return None if name is None else f"{name} {percent(entries[row][column].losses[name], 1)}"

    def share(row: int, column: int) -> str | None:
        value = entries[row][column].utilization
        return None if value is None else percent(value, 1)

    # Latencies come first: they are what matters where jobs come over time.
    shown: dict[str, Cell | None] = {
        **latencies,
        "cycles": whole("cycles"),
        "cycles of first step": whole("first_cycles") if first else None,
        "cycles of later steps": whole("later_cycles") if first else None,
        "ms": of("ms"),
        "mean latency ms": latencies.get("mean latency ms", of("mean_latency_ms")),
        "p99 latency ms": latencies.get("p99 latency ms", of("p99_latency_ms")),
        "TOPS": of("tops"),
        "utilization": share,
        "speed-up": None if by_latency else ratio(comparison.speedup),
        _BY_LATER_STEPS: ratio(comparison.later_speedup) if first else None,
        f"speed-up at equal {comparison.part}s": None if by_latency else ratio(comparison.speedup_at_equal_pes),
        _per_thousand(comparison): ratio(comparison.tops_per_1000_pes),
        "most lost to": loss,
        "ratio of makespans": ratio(comparison.speedup) if by_latency else None,
        _COMPARED: lambda _, column: None if column >= len(stamps) else stamps[column].compared.partition(",")[0],
    }
    return {title: cell for title, cell in shown.items() if cell is not None}


def _whole_number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _short(value: float | None) -> str | None:
    return None if value is None else three_digits(value)


def _name(text: str) -> str:
    return short_name(text, 30)


_KEYS: Keys = {Interval: "value half_width", frozenset: len}
#: The columns of the CSV about latencies, and all of them; a row for each workload and machine.
LATENCY_COLUMNS = (
    *("requests", "rejected", "misses", "offered_load", "threads_taken", "verdict", "last_arrival_ms"),
    *("latency_mean_ms", "latency_mean_half_width_ms"),
    *(f"latency_p{each}_{what}" for each in PERCENTILES for what in ("ms", "half_width_ms")),
    *("mean_latency_ratio", "p99_latency_ratio", "sooner"),
)
COLUMNS = (
    *("workload", "machine", "published", "pes", "frequency_mhz", "precision", "cycles", "ms"),
    *("mean_latency_ms", "p99_latency_ms"),
    *("tops", "utilization", "speedup", "speedup_at_equal_pes", "tops_per_1000_pes", "main_loss", "main_loss_share"),
    *("begins_cold", "first_step_cycles", "later_steps_cycles", "speedup_by_later_steps"),
    *("reason", "source"),
    *LATENCY_COLUMNS,
)


def _data(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain data of schema `lstmsim/comparison/2`; shares are 0 to 1."""
    names = "name published pes frequency_mhz peak_tops precision stands_for changed source begins_cold"
    errors = "machine=chip.name published=design.name simulated_over_published=ratios geometric_mean=mean sentence"
    fits = [picked(each, "chip device rivals workload fits verdict=reason weights") for each in comparison.device_fits]
    columns = range(len(comparison.machines))
    return {
        "schema": "lstmsim/comparison/2",
        **picked(comparison, "scenario engine each arriving=way"),
        "base": comparison.machines[0].name,
        "machines": [
            picked(each, names)
            | {
                "mean_speedup": comparison.mean_speedup(column),
                "mean_speedup_by_later_steps": comparison.mean_later_speedup(column),
            }
            for column, each in enumerate(comparison.machines)
        ],
        "workloads": [
            plain(each) | {"entries": [_entry(comparison, row, column) for column in columns]}
            for row, each in enumerate(comparison.workloads)
        ],
        "rooms": [each | {key: each[key] or None for key in ("device", "workload")} for each in fits],
        "model_errors": [picked(each, errors) for each in model_errors(comparison)],
    }


def _entry(comparison: Comparison, row: int, column: int) -> dict[str, Any]:
    entry = comparison.entries[row][column]
    return {
        "machine": comparison.machines[column].name,
        **picked(entry, "cycles ms mean_latency_ms p99_latency_ms tops utilization"),
        "speedup": comparison.speedup(row, column),
        "speedup_at_equal_pes": comparison.speedup_at_equal_pes(row, column),
        "tops_per_1000_pes": comparison.tops_per_1000_pes(row, column),
        **picked(entry, "first_step_cycles=first_cycles later_steps_cycles=later_cycles"),
        "speedup_by_later_steps": comparison.later_speedup(row, column),
        "first_step": about_first_step(comparison, row, column),
        **picked(entry, "losses main_loss reason"),
        "latency": _latency(comparison, row, column),
    }


def _latency(comparison: Comparison, row: int, column: int) -> dict[str, Any] | None:
    """The latencies of an entry; None where it has none."""
    own = comparison.entries[row][column].latencies
    if own is None:
        return None
    intervals = {"mean": own.mean, **{f"p{each}": own.percentiles[each] for each in PERCENTILES}}
    return {
        **picked(own, "requests rejected misses", _KEYS),
        **plain({f"{name}_ms": each for name, each in intervals.items()}, _KEYS),
        **picked(own, "offered_load threads_taken verdict last_arrival_ms"),
        "mean_latency_ratio": comparison.latency_ratio(row, column),
        "p99_latency_ratio": comparison.latency_ratio(row, column, 99),
        "sooner": own.sooner,
    }


def _records(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The rows of the CSV by the names of its columns; unknown figures are None."""
    for row, workload in enumerate(comparison.workloads):
        for column, machine in enumerate(comparison.machines):
            numbers = _entry(comparison, row, column)
            latency, loss = numbers["latency"] or {}, numbers["main_loss"]
            for name in ("mean", *(f"p{each}" for each in PERCENTILES)):
                interval = latency.get(f"{name}_ms", {})
                numbers[f"latency_{name}_ms"] = interval.get("value")
                numbers[f"latency_{name}_half_width_ms"] = interval.get("half_width")
            numbers |= picked(machine, "pes frequency_mhz precision source") | {
                "workload": workload.name,
                "published": int(machine.published),
                "main_loss_share": None if loss is None else numbers["losses"][loss],
                "begins_cold": int(machine.begins_cold),
            }
            yield {name: (latency | numbers).get(name) for name in COLUMNS}


def comparison_rows(comparison: Comparison) -> Iterator[list[Any]]:
    """Give the table of the CSV: its `COLUMNS`, then a row for each workload and machine."""
    yield list(COLUMNS)
    yield from (list(each.values()) for each in _records(comparison))


def _axes(comparison: Comparison) -> list[str]:
    """How many times as fast as the base each machine is, over its utilization."""
    return ["utilization", "mean_latency_ratio" if comparison.by_latency else "speedup", "machine"]


def _baseline(comparison: Comparison) -> Baseline:
    """The rows of the base: every workload on the first machine."""
    count = len(comparison.machines)
    return Baseline(f"the base, {comparison.machines[0].name}", range(0, count * len(comparison.workloads), count))


FORMS = Forms(
    _data,
    _document,
    _records,
    axes=_axes,
    baseline=_baseline,
    picture="lstmsim.studies.compare.picture:plot_comparison",
)
