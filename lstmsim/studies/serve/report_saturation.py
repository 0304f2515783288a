"""A search for the highest rate as text for the terminal, and as plain data."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.serve.saturation import Judged, Saturation

_WIDTH = 100


def saturation_json(saturation: Saturation) -> dict[str, Any]:
    """Give the search as plain data of schema `lstmsim/saturation/1`; rates per second, latencies in ms."""
    return {"schema": "lstmsim/saturation/1", **asdict(saturation)}


def saturation_text(saturation: Saturation) -> str:
    """Say what the machine can possibly do, give a row for each rate, and the answer as a sentence.

    >>> from lstmsim.studies.serve.saturation import Tried
    >>> print(saturation_text(Saturation(None, 5.0, 0.5, (Tried(5.0, 0.7, False, 0.0, "above", 10000),))))
    RATES
    requests/s  load  requests  p99 ms  verdict
           5.0     -    10,000  -       above
    <BLANKLINE>
    not even 5.0 requests/s keep a p99 of 0.5 ms
    """
    away = any(run.turned_away for run in saturation.runs)
    name = f"p{saturation.percentile:g}"
    names = sorted(saturation.bounds_ms)
    head = ["requests/s", "load", "requests", f"{name} ms", *(f"{name} ms of {each}" for each in names)]
    rows = [[*head, *["turned away"] * away, "verdict"]]
    for run in sorted(saturation.runs, key=lambda each: each.rate):
        load = "-" if run.load is None else f"{run.load:.3f}"
        row = [f"{run.rate:,.1f}", load, f"{run.requests:,}" if run.requests else "-"]
        row += [_value(run.percentile_ms, run.half_width_ms)]
        row += [_judged(run.tenants.get(each)) for each in names]
        row += [f"{100 * run.turned_away:.2f} %"] * away
        rows.append([*row, run.verdict])
    left = range(3, 4 + len(names)), [len(rows[0]) - 1]
    lines = [*_bound(saturation), "RATES", *table(rows, left=[column for columns in left for column in columns]), ""]
    answer = [_answer(saturation), *_remarks(saturation)]
    return "\n".join([*lines, *(textwrap.fill(each, _WIDTH, subsequent_indent="  ") for each in answer)])


def _value(value: float | None, half: float | None) -> str:
    """The value with its interval; a dash where there is no such number."""
    if value is None:
        return "-"
    return f"{value:.4g} (too few)" if half is None else f"{value:.4g} +- {half:.2g}"


def _judged(each: Judged | None) -> str:
    return "-" if each is None else f"{_value(each.percentile_ms, each.half_width_ms)} {each.verdict}"


def _bound(saturation: Saturation) -> list[str]:
    """What the machine could do at the very most."""
    if saturation.bound_per_second is None:
        return []
    line = f"MACHINE: at most {saturation.bound_per_second:,.0f} requests/s of this mix, whatever their latency"
    if any(run.rate > saturation.bound_per_second for run in saturation.runs):
        line += ", the rest is turned away"
    line += f"; used up at {limits_text(saturation.limits_per_second)}"
    line += f"; not counted: {', '.join(saturation.not_counted)}" if saturation.not_counted else ""
    return [textwrap.fill(line, _WIDTH), ""]


def limits_text(limits_per_second: Mapping[str, float]) -> str:
    """Name each resource with the rate at which it is used up, the first one first.

    >>> limits_text({"threads": 2000.0, "PE arrays": 1500.0})
    '1,500/s (PE arrays), 2,000/s (threads)'
    """
    ordered = sorted(limits_per_second.items(), key=lambda each: each[1])
    return ", ".join(f"{rate:,.0f}/s ({name})" for name, rate in ordered)


def _bounds(saturation: Saturation) -> str:
    parts = [] if saturation.bound_ms is None else [f"a p{saturation.percentile:g} of {saturation.bound_ms:g} ms"]
    parts += [
        f"a p{saturation.percentile:g} of {each:g} ms for {name}" for name, each in sorted(saturation.bounds_ms.items())
    ]
    return " and ".join(parts)


def _why(saturation: Saturation, rate: float) -> str:
    """How the run at that rate breaks the bound."""
    run = next(each for each in saturation.runs if each.rate == rate)
    return " (unstable)" if run.verdict == "unstable" else ""


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
    why = _why(saturation, saturation.fails_from)
    return f"{saturation.rate:,.1f} requests/s keep {bounds}, {saturation.fails_from:,.1f} do not{why}{between}"


def _between(saturation: Saturation) -> str:
    if saturation.undecided is None:
        return ""
    low, high = saturation.undecided
    several = f"from {low:,.1f} to {high:,.1f}" if low < high else f"at {low:,.1f}"
    return f"; {several} it cannot be told"


def _of_rates(number: int) -> str:
    return "at 1 rate" if number == 1 else f"at {number} rates"


def _rates(number: int) -> str:
    return "1 rate has" if number == 1 else f"{number} rates have"


def _remarks(saturation: Saturation) -> list[str]:
    """Sentences that the reader needs to understand the answer."""
    lines = []
    if not saturation.complete:
        lines.append("interrupted: the search was not done; more runs would draw the answer closer")
    if any(run.verdict == "unstable" and not run.requests for run in saturation.runs):
        open_ = any(run.missing and (run.load or 0.0) >= 1 for run in saturation.runs)
        told = ", but where it cannot be told" if open_ else ""
        lines.append(f"a load of 1 or more is unstable without a run{told}: more work comes than the machine can do")
    for missing, number in Counter(run.missing for run in saturation.runs if run.missing).items():
        lines.append(f"undecided: {_of_rates(number)} {missing}")
    unclear = [run for run in saturation.runs if run.kept is None and not run.missing]
    if unclear:
        few = [run for run in unclear if run.verdict == "too few"]
        # a queue that remembers for longer than its load says has no interval after so many requests either
        needs = min((run.needs for run in few if run.needs is not None and run.needs > run.requests), default=0)
        most = f" (the lowest needs {needs:,})" if needs else ""
        kinds = [f"{_rates(len(few))} too few requests for an interval{most}"] * bool(few)
        kinds += [f"{_rates(len(unclear) - len(few))} the bound within the interval"] * (len(few) < len(unclear))
        lines.append(f"undecided: {', '.join(kinds)}; --most-requests allows more")
    if not saturation.monotone:
        lines.append("not every lower rate keeps it: the order of service may be unfair")
    return lines


FORMS = Forms(saturation_json, saturation_text, lambda saturation: saturation_json(saturation)["runs"])
