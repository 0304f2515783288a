"""A search for the highest rate as text for the terminal, and as plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lstmsim.metrics.tables import table
from lstmsim.results import Forms
from lstmsim.traffic.saturation import Judged, Saturation

__all__ = ["FORMS", "limits_text", "saturation_json", "saturation_text"]

_WIDTH = 100


def saturation_json(found: Saturation) -> dict[str, Any]:
    """The search as plain data of schema `lstmsim/saturation/1`; rates per second, latencies in ms."""
    return {"schema": "lstmsim/saturation/1", **asdict(found)}


def saturation_text(found: Saturation) -> str:
    """What the machine can possibly do, a row for each rate, and the answer as a sentence.

    >>> from lstmsim.traffic.saturation import Tried
    >>> print(saturation_text(Saturation(None, 5.0, 0.5, (Tried(5.0, 0.7, False, 0.0, "above", 10000),))))
    RATES
    requests/s  load  requests  p99 ms  verdict
           5.0     -    10,000  -       above
    <BLANKLINE>
    not even 5.0 requests/s keep a p99 of 0.5 ms
    """
    away = any(run.turned_away for run in found.runs)
    name = f"p{found.percentile:g}"
    names = sorted(found.bounds_ms)
    head = ["requests/s", "load", "requests", f"{name} ms", *(f"{name} ms of {each}" for each in names)]
    rows = [[*head, *["turned away"] * away, "verdict"]]
    for run in sorted(found.runs, key=lambda each: each.rate):
        load = "-" if run.load is None else f"{run.load:.3f}"
        row = [f"{run.rate:,.1f}", load, f"{run.requests:,}" if run.requests else "-"]
        row += [_value(run.percentile_ms, run.half_width_ms)]
        row += [_judged(run.tenants.get(each)) for each in names]
        row += [f"{100 * run.turned_away:.2f} %"] * away
        rows.append([*row, run.verdict])
    left = range(3, 4 + len(names)), [len(rows[0]) - 1]
    lines = [*_bound(found), "RATES", *table(rows, left=[column for columns in left for column in columns]), ""]
    answer = [_answer(found), *_remarks(found)]
    return "\n".join([*lines, *(textwrap.fill(each, _WIDTH, subsequent_indent="  ") for each in answer)])


def _value(value: float | None, half: float | None) -> str:
    """With its interval; a dash where there is no such number."""
    if value is None:
        return "-"
    return f"{value:.4g} (too few)" if half is None else f"{value:.4g} +- {half:.2g}"


def _judged(each: Judged | None) -> str:
    return "-" if each is None else f"{_value(each.percentile_ms, each.half_width_ms)} {each.verdict}"


def _bound(found: Saturation) -> list[str]:
    """What the machine could do at the very most."""
    if found.bound_per_second is None:
        return []
    line = f"MACHINE: at most {found.bound_per_second:,.0f} requests/s of this mix, whatever their latency"
    line += f"; used up at {limits_text(found.limits_per_second)}"
    line += f"; not counted: {', '.join(found.not_counted)}" if found.not_counted else ""
    return [textwrap.fill(line, _WIDTH), ""]


def limits_text(limits_per_second: Mapping[str, float]) -> str:
    """Which resource is used up at which rate, the first one first.

    >>> limits_text({"threads": 2000.0, "PE arrays": 1500.0})
    '1,500/s (PE arrays), 2,000/s (threads)'
    """
    ordered = sorted(limits_per_second.items(), key=lambda each: each[1])
    return ", ".join(f"{rate:,.0f}/s ({name})" for name, rate in ordered)


def _bounds(found: Saturation) -> str:
    parts = [] if found.bound_ms is None else [f"a p{found.percentile:g} of {found.bound_ms:g} ms"]
    parts += [f"a p{found.percentile:g} of {each:g} ms for {name}" for name, each in sorted(found.bounds_ms.items())]
    return " and ".join(parts)


def _why(found: Saturation, rate: float) -> str:
    """How the run at that rate breaks the bound."""
    run = next(each for each in found.runs if each.rate == rate)
    return " (unstable)" if run.verdict == "unstable" else ""


def _answer(found: Saturation) -> str:
    bounds, between = _bounds(found), _between(found)
    if found.rate is None and found.fails_from is None:
        return f"no rate could be told to keep {bounds}, nor to break it{between}"
    if found.rate is None:
        if found.undecided is None:
            return f"not even {found.fails_from:,.1f} requests/s keep {bounds}"
        return f"no rate could be told to keep {bounds}, {found.fails_from:,.1f} requests/s do not{between}"
    if found.fails_from is None:
        if found.undecided is None:
            return f"{found.rate:,.1f} requests/s, the highest rate tried, still keep {bounds}"
        return f"{found.rate:,.1f} requests/s keep {bounds}; no rate was seen to break it{between}"
    why = _why(found, found.fails_from)
    return f"{found.rate:,.1f} requests/s keep {bounds}, {found.fails_from:,.1f} do not{why}{between}"


def _between(found: Saturation) -> str:
    if found.undecided is None:
        return ""
    low, high = found.undecided
    several = f"from {low:,.1f} to {high:,.1f}" if low < high else f"at {low:,.1f}"
    return f"; {several} it cannot be told"


def _rates(number: int) -> str:
    return "1 rate has" if number == 1 else f"{number} rates have"


def _remarks(found: Saturation) -> list[str]:
    """What the reader has to know of the answer."""
    lines = []
    if not found.complete:
        lines.append("interrupted: the search was not done; more runs would draw the answer closer")
    if any(run.verdict == "unstable" and not run.requests for run in found.runs):
        lines.append("a load of 1 or more is unstable without a run: more work comes than the machine can do")
    unclear = [run for run in found.runs if run.kept is None]
    if unclear:
        few = [run for run in unclear if run.verdict == "too few"]
        needs = min((run.needs for run in few if run.needs is not None), default=0)
        most = f" (the lowest needs {needs:,})" if needs else ""
        kinds = [f"{_rates(len(few))} too few requests for an interval{most}"] * bool(few)
        kinds += [f"{_rates(len(unclear) - len(few))} the bound within the interval"] * (len(few) < len(unclear))
        lines.append(f"undecided: {', '.join(kinds)}; --most-requests allows more")
    if not found.monotone:
        lines.append("not every lower rate keeps it: the order of service may be unfair")
    return lines


FORMS = Forms(saturation_json, saturation_text, lambda found: saturation_json(found)["runs"])
