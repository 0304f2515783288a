"""Designs as documents and as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from lstmsim.report.document import Document, Section, Text, facts, grid, remark
from lstmsim.report.results import Forms, picked, plain
from lstmsim.studies.design.judge import DOUBT
from lstmsim.studies.design.result import Alike, Choice, Design, More, written

#: Unit of what is minimised, and how its number is written.
_UNITS = {
    "cycles": ("cycles", "{:,.0f}"),
    "energy_j": ("J an inference (relative)", "{:.3g}"),
    "us": ("us", "{:.4g}"),
    "npe": ("multipliers", "{:,.0f}"),
    "share": ("of the device", "{:.1%}"),
    "requests_per_second": ("requests/s", "{:,.1f}"),
}
#: Designs of a front, rules, and designs alike that people are shown.
_SHOWN = 20


def _number(name: str, value: float) -> str:
    return _UNITS.get(name, ("ms", "{:.4g}"))[1].format(value)


def _said(name: str, value: float) -> str:
    """A value with its unit, like `6,135 cycles` or `p99 0.2 ms`."""
    unit = _UNITS.get(name, ("ms", ""))[0]
    before = f"{name.removesuffix('_ms')} " if name.endswith("_ms") else ""
    return f"{before}{_number(name, value)} {unit}"


def _change(value: float, best: float, result: Design) -> str:
    if not best:
        return "-"
    near = result.clock is not None and max(value / best, best / value) <= result.clock.pairs
    return f"{100 * (value / best - 1):+.1f} %{' (cannot tell)' if near else ''}"


def words_of(values: Mapping[str, Any]) -> str:
    """Write the values of a design."""
    return ", ".join(f"{key.removeprefix('chip.cores.0.')} {written(value)}" for key, value in values.items())


def _headline(result: Design) -> str:
    where = f" on {result.device}" if result.device else ""
    start = f"DESIGN for {result.scenario}{where}: "
    if not result.best:
        looked = "of those looked at" if result.left else f"of {result.space:,}"
        # one that could not be simulated may, and one whose rate no run tells
        keeps = "keeps" if result.proven or result.left else "is known to keep"
        return f"{start}no design {looked} {keeps} all that is asked"
    if result.clock is not None:
        return start + _at_told_clocks(result)
    if len(result.names) > 1:
        sure = "no other design can be on it" if result.proven else "others may be on it"
        sure += "; for the requests that are drawn: nothing is compared at 95 %" if result.drawn else ""
        return f"{start}a front of {len(result.best):,} of {result.space:,} designs; {sure}"
    said = _said(result.names[0], result.best[0].objective[0])
    if result.stamp is not None and result.stamp.clock:
        said += f" at {result.stamp.clock}"
    if result.proven:
        sure = f"proven best of {result.space:,} designs{' for the requests that are drawn' if result.drawn else ''}"
    else:
        gap = "an unknown share" if result.gap is None else f"at most {100 * result.gap:.1f} %"
        sure = f"not proven: of {result.space:,} designs one may be better by {gap}"
    if result.alike:
        others = "1 other" if len(result.alike) == 1 else f"{len(result.alike):,} others"
        sure += f"; it cannot be told at 95 % that it is better than {others}"
    return f"{start}{said}, {sure}"


def _at_told_clocks(result: Design) -> str:
    """The headline where the clock of each design is told by a model: only what its error leaves."""
    assert result.clock is not None
    untimed = sum(result.untimed.values())
    error, known = f"the clock model's error of {result.clock.apart} between two designs", result.space - untimed
    others = f"{len(result.alike):,} other{'s' * (len(result.alike) != 1)}"
    if len(result.names) > 1:
        sure = len(result.best) - len(result.shaky)
        text = f"a front of {len(result.best):,} of {known:,} designs; {sure:,} stay{'s' * (sure == 1)} on it within "
        text += (
            f"{error}, and {others} may be on it. Clocks are predicted for {result.clock.family}: {result.clock.judged}"
        )
    else:
        best = result.best[0]
        text = f"{_said(result.names[0], best.objective[0])} at {best.mhz:g} MHz, predicted for {result.clock.family} "
        text += f"({result.clock.judged}); least of {known:,} designs, " + (
            f"but within {error} it cannot be told from {others}" if result.alike else f"by more than {error}"
        )
    text += f"; {result.left:,} were not looked at" if result.left else ""
    return text + (f"; of {untimed:,} more the clock cannot be told" if untimed else "")


def _document(result: Design) -> Document:
    sections = [_space(result), *_found(result), _counts(result), *_asked(result)]
    ends = [remark(each, hang=2) for each in result.remarks]
    written = Text(f"written: {', '.join(result.files)}", hang=2) if result.files else None
    return Document.of(_headline(result), *sections, Section.of(*ends), written)


def _space(result: Design) -> Section:
    rows = [[key, len(values), _listed(values)] for key, values in result.axes.items()]
    fixed = f"set beside them: {', '.join(result.fixed)}" if result.fixed else None
    held = "not in this space: schedules (the order of layers and steps stays as in the scenario)"
    return Section.of(grid(["<key", "values", "<"], rows), fixed, held, title=f"SPACE: {result.space:,} designs")


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(map(written, values[:12]))
    return f"{shown}, ... {written(values[-1])}" if len(values) > 12 else shown


def _found(result: Design) -> Iterator[Section]:
    if not result.best:
        return
    if len(result.names) > 1:
        shaky = {each.objective for each in result.best if each.point in result.shaky}
        columns = [
            *result.names,
            *(["MHz", "<stays"] if result.clock else []),
            "equal",
            *(f"<{key.removeprefix('chip.cores.0.')}" for key in result.axes),
        ]
        alike = Counter(each.objective for each in result.best)
        first = {each.objective: each for each in reversed(result.best)}
        rows = [
            [
                *(_number(name, number) for name, number in zip(result.names, objective, strict=True)),
                *(
                    [f"{first[objective].mhz:g}", "cannot tell" if objective in shaky else "yes"]
                    if result.clock
                    else []
                ),
                *(alike[objective], *(written(value) for value in first[objective].values.values())),
            ]
            for objective in alike
        ]
        title = "front; of equal designs the one with the lowest number"
        yield Section.of(grid(columns, rows, limit=_SHOWN, repeated=len(result.names)), title=title)
        return
    best = result.best[0]
    others = "1 other is" if result.equal == 2 else f"{result.equal - 1:,} others are"
    equal = f"{others} equal to it; it has the lowest number" if result.equal > 1 else None
    yield Section.of(
        facts(
            ("best", words_of(best.values)),
            *((("clock", f"{best.mhz:g} MHz, predicted"),) if best.mhz else ()),
            *((("fit", best.fit),) if best.fit else ()),
        ),
        equal,
        title=f"BEST: design {best.point:,}",
    )
    rows = [
        [
            *(rival.key, written(best.values[rival.key]), written(rival.value)),
            *(_number(result.names[0], rival.objective), _change(rival.objective, best.objective[0], result)),
        ]
        for rival in result.rivals
    ]
    heads = ["<key", "best has", "runner-up has", result.names[0], "change"]
    yield Section.of(grid(heads, rows), title="WITH ONE KEY CHANGED") if rows else Section(())


def _counts(result: Design) -> Section:
    unfit = result.does_not_fit
    groups = (
        ("breaks a rule", result.infeasible),
        ("does not fit", {why: count for why, count in unfit.items() if not why.startswith(DOUBT)}),
        ("fit cannot be told", {why[len(DOUBT) :]: count for why, count in unfit.items() if why.startswith(DOUBT)}),
        ("not accurate enough", result.inaccurate),
        ("clock cannot be told", result.untimed),
        ("ruled out by a bound", result.pruned),
        ("simulated", {"": result.simulated}),
        ("not looked at", {"": result.left} if result.left else {}),
    )
    rows: list[list[Any]] = [[what, why, number] for what, each in groups for why, number in each.items()]
    rows.append(["all", "", result.space])
    # of a rate that another design keeps, nobody searches what the one that does not keep it bears
    broken = "at the rate of a better one, or at no rate for certain" if result.maximise else "or not for certain"
    text = f"{result.late:,} of the simulated designs do not keep the bound on latencies {broken}"
    late = text if result.late else None
    extra = (
        f"{result.extra_runs:,} further simulations for what is said of the best design" if result.extra_runs else None
    )
    return Section.of(grid(["<designs", "<", "number"], rows, limit=None), late, extra, title="EVERY DESIGN, ONCE")


def _asked(result: Design) -> Iterator[Section]:
    if result.more:
        yield Section.of(*(_more(each, result) for each in result.more), title="WHAT BINDS")
    if result.alike and result.clock is not None:
        yield _near(result)
    elif result.alike:
        rows = [
            [
                *(each.choice.point, words_of(each.choice.values)),
                *(_number(result.names[0], each.choice.objective[0]), _between(each), each.requests),
            ]
            for each in result.alike
        ]
        heads = ["design", "<", result.names[0], "difference, 95 %", "requests"]
        side = "above" if result.maximise else "below"
        title = f"NOT TOLD FROM THE BEST: it may be no better ({side} 0: the other is)"
        yield Section.of(grid(heads, rows, limit=_SHOWN), title=title)


def _near(result: Design) -> Section:
    """Designs that the error of the clock model leaves beside the best one, or beside a front."""
    rows = [
        [
            *(each.choice.point, words_of(each.choice.values)),
            *(_number(name, number) for name, number in zip(result.names, each.choice.objective, strict=True)),
            f"{each.choice.mhz:g}",
        ]
        for each in result.alike
    ]
    title = "MAY BE ON THE FRONT" if len(result.names) > 1 else "CANNOT BE TOLD FROM THE BEST"
    heads = ["design", "<", *result.names, "MHz"]
    return Section.of(grid(heads, rows, limit=_SHOWN), title=f"{title}, by the clock model")


def _between(each: Alike) -> str:
    low, high = each.difference
    ends = f"{low:+.3g} to {high:+.3g}" if low < high else f"{low:+.3g}: {each.reason}"
    return ends if isfinite(low) and isfinite(high) else each.reason or "not known"


def _more(more: More, result: Design) -> str:
    start = f"{more.words}. 10 % more {more.resource} "
    rest = "" if more.complete else " (not all designs that it brings were looked at)"
    if more.best is None:
        return f"{start}would buy nothing in this space{rest}"
    name, own, now = result.names[0], more.best.objective[0], result.best[0].objective[0]
    change = f"{_said(name, now)} to {_said(name, own)} ({_change(own, now, result)})"
    return f"{start}would take the best from {change}: {words_of(more.best.values)}{rest}"


def _choice(each: Choice) -> dict[str, Any]:
    objective = each.objective[0] if len(each.objective) == 1 else list(each.objective)
    return picked(each, "point fit mhz") | {"values": dict(each.values), "objective": objective}


def _data(result: Design) -> dict[str, Any]:
    names = "scenario minimise maximise axes fixed space infeasible pruned simulated left extra_runs"
    difference = "difference_ms" if result.drawn else "difference"
    return {
        "schema": "lstmsim/design/1",
        **picked(result, f"{names} why_not_fit=does_not_fit late equal gap proven bounded drawn remarks files"),
        "device": result.device or None,
        "clock": None if result.clock is None else plain(result.clock, {}),
        "untimed": sum(result.untimed.values()),
        "why_untimed": dict(result.untimed),
        "shaky": list(result.shaky),
        "does_not_fit": sum(result.does_not_fit.values()),
        "inaccurate": sum(result.inaccurate.values()),
        "why_inaccurate": dict(result.inaccurate),
        "best": [_choice(each) for each in result.best],
        "indistinguishable": [
            _choice(each.choice) | picked(each, "requests reason") | {difference: _finite(each)}
            for each in result.alike
        ],
        "runner_up": {each.key: picked(each, "value objective point") for each in result.rivals},
        "ten_percent_more": [
            picked(each, "resource words complete") | {"best": _choice(each.best) if each.best else None}
            for each in result.more
        ],
    }


def _finite(each: Alike) -> list[float] | None:
    return list(each.difference) if all(map(isfinite, each.difference)) else None


def _records(result: Design) -> Iterable[dict[str, Any]]:
    """A row for each of the best designs."""
    return [
        {"point": each.point, **each.values, **dict(zip(result.names, each.objective, strict=True)), "fit": each.fit}
        for each in result.best
    ]


FORMS = Forms(
    _data,
    _document,
    _records,
    axes=lambda result: (
        (*result.names[1::-1], *result.names[2:]) if len(result.names) > 1 else ("point", *result.names)
    ),
    picture="lstmsim.studies.design.picture:plot_design",
    headed=True,
)
