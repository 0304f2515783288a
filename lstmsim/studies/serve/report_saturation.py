"""A search for the highest rate as people and programs read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lstmsim.report.document import Column, Document, Grid, Section, Text, remark
from lstmsim.report.results import Forms, plain
from lstmsim.studies.serve.saturation import Judged, Saturation, Tried


def document(saturation: Saturation) -> Document:
    """Show the answer, the most that the machine can possibly do, and a row for each rate."""
    remarks = (remark(sentence, 2) for sentence in _remarks(saturation))
    return Document.of(_answer(saturation), _bound(saturation), _rates(saturation), Section.of(*remarks))


def _rates(saturation: Saturation) -> Section:
    name, names = f"p{saturation.percentile:g}", sorted(saturation.bounds_ms)
    rejects = any(run.turned_away for run in saturation.runs)
    columns = [
        Column("requests/s", digits=1, form=lambda rate: f"{rate:,.1f}"),
        Column("load", digits=3),
        Column("requests"),
        Column(f"{name} ms", left=True),
        *(Column(f"{name} ms of {tenant}", left=True) for tenant in names),
        *[Column("rejected")] * rejects,
        Column("verdict", left=True),
    ]

    def row(run: Tried) -> tuple[str | int | float | None, ...]:
        tenants = [_judged(run.tenants.get(tenant)) for tenant in names]
        share = [f"{100 * run.turned_away:.2f} %"] * rejects
        value = _value(run.percentile_ms, run.half_width_ms)
        return (run.rate, run.load, run.requests or None, value, *tenants, *share, run.verdict)

    rows = sorted(saturation.runs, key=lambda run: run.rate)
    return Section.of(Grid(tuple(columns), tuple(map(row, rows)), repeated=1), title="RATES")


def _value(value: float | None, half: float | None) -> str | None:
    """The value with its interval; None where there is no such number."""
    if value is None:
        return None
    return f"{value:.4g} (too few)" if half is None else f"{value:.4g} +- {half:.2g}"


def _judged(judged: Judged | None) -> str | None:
    if judged is None:
        return None
    return f"{_value(judged.percentile_ms, judged.half_width_ms) or '-'} {judged.verdict}"


def _bound(saturation: Saturation) -> Text | None:
    """The most that the machine could do."""
    if saturation.bound_per_second is None:
        return None
    line = f"MACHINE: at most {saturation.bound_per_second:,.0f} requests/s of this mix, whatever their latency"
    if any(run.rate > saturation.bound_per_second for run in saturation.runs):
        line += ", the rest is rejected"
    line += f"; used up at {limits_text(saturation.limits_per_second)}"
    return Text(line + (f"; not counted: {', '.join(saturation.not_counted)}" if saturation.not_counted else ""))


def limits_text(limits_per_second: Mapping[str, float]) -> str:
    """Name each resource with the rate at which it is used up, the first one first."""
    ordered = sorted(limits_per_second.items(), key=lambda item: item[1])
    return ", ".join(f"{rate:,.0f}/s ({name})" for name, rate in ordered)


def _bounds(saturation: Saturation) -> str:
    parts = [] if saturation.bound_ms is None else [f"a p{saturation.percentile:g} of {saturation.bound_ms:g} ms"]
    parts += [
        f"a p{saturation.percentile:g} of {ms:g} ms for {name}" for name, ms in sorted(saturation.bounds_ms.items())
    ]
    return " and ".join(parts)


def _answer(saturation: Saturation) -> str:
    bounds, between = _bounds(saturation), _between(saturation)
    if saturation.rate is None and saturation.fails_from is None:
        return f"no rate could be told to keep {bounds}, nor to break it{between}"
    if saturation.rate is None:
        if saturation.undecided is None:
            return f"not even {saturation.fails_from:,.1f} requests/s keep {bounds}"
        return f"no rate could be told to keep {bounds}, {saturation.fails_from:,.1f} requests/s do not{between}"
    if saturation.fails_from is None:
        if saturation.undecided is None:
            return f"{saturation.rate:,.1f} requests/s, the highest rate tried, still keep {bounds}"
        return f"{saturation.rate:,.1f} requests/s keep {bounds}; no rate was seen to break it{between}"
    run = next(run for run in saturation.runs if run.rate == saturation.fails_from)
    why = " (unstable)" if run.verdict == "unstable" else ""
    return f"{saturation.rate:,.1f} requests/s keep {bounds}, {saturation.fails_from:,.1f} do not{why}{between}"


def _between(saturation: Saturation) -> str:
    if saturation.undecided is None:
        return ""
    low, high = saturation.undecided
    several = f"from {low:,.1f} to {high:,.1f}" if low < high else f"at {low:,.1f}"
    return f"; {several} it cannot be told"


def _remarks(saturation: Saturation) -> list[str]:
    """Sentences that the reader needs to understand the answer."""
    lines = []
    if not saturation.complete:
        lines.append("interrupted: the search was not done; more runs would draw the answer closer")
    if any(run.verdict == "unstable" and not run.requests for run in saturation.runs):
        open_ = any(run.missing and (run.load or 0.0) >= 1 for run in saturation.runs)
        unless = ", but where it cannot be told" if open_ else ""
        lines.append(f"a load of 1 or more is unstable without a run{unless}: more work comes than the machine can do")
    for missing, number in Counter(run.missing for run in saturation.runs if run.missing).items():
        lines.append(f"undecided: at {number} rate{'s' * (number > 1)} {missing}")
    unclear = [run for run in saturation.runs if run.kept is None and not run.missing]
    if unclear:
        few = [run for run in unclear if run.verdict == "too few"]
        # a queue that remembers for longer than its load says has no interval after so many requests either
        needs = min((run.needs for run in few if run.needs is not None and run.needs > run.requests), default=0)
        most = f" (the lowest needs {needs:,})" if needs else ""
        kinds = [f"{_have(len(few))} too few requests for an interval{most}"] * bool(few)
        kinds += [f"{_have(len(unclear) - len(few))} the bound within the interval"] * (len(few) < len(unclear))
        lines.append(f"undecided: {', '.join(kinds)}; --most-requests allows more")
    if not saturation.monotone:
        lines.append("not every lower rate keeps it: the order of service may be unfair")
    return lines


def _have(number: int) -> str:
    return "1 rate has" if number == 1 else f"{number} rates have"


def _data(saturation: Saturation) -> dict[str, Any]:
    """Plain data of schema `lstmsim/saturation/1`; rates per second, latencies in ms."""
    return {"schema": "lstmsim/saturation/1", **plain(saturation)}


FORMS = Forms(_data, document, lambda saturation: plain(saturation.runs))
