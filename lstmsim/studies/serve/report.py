"""The figures of serving many requests, of the offered load and of tenants: lines for the terminal, and plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import inf
from typing import Any

from lstmsim.base.units import cycles_to_ms
from lstmsim.report.figures_text import four_digits, two_digits
from lstmsim.report.results import Forms
from lstmsim.studies.serve.result import Serving, Tenant
from lstmsim.traffic.intervals import MEAN_UNITS, Interval
from lstmsim.traffic.latencies import Distribution
from lstmsim.traffic.load import VERDICTS, Load
from lstmsim.traffic.rates import Rates


def load_lines(serving: Serving) -> list[str]:
    """Say what is asked of the machine, by its parts, and what that means for the figures of this run.

    >>> from lstmsim.traffic.load import Load
    >>> from lstmsim.studies.serve.metrics import Collector
    >>> collector = Collector(250)
    >>> collector.add_many([0, 1], [0, 5], [0, 10], [10, 20])
    >>> result = collector.result(load=Load(1.25, {"threads": 1.25}, rate_per_second=500.0, bound_per_second=400.0))
    >>> print(*load_lines(result), sep="\\n")
    offered load 1.25: threads 1.25; 500 requests/s come, at most 400 /s can be served
    verdict: unstable: more comes than the machine can do: latencies grow as long as requests come
    """
    return [_load_line(serving), f"verdict: {serving.verdict}: {VERDICTS[serving.verdict]}{_missing(serving)}"]


def _load_line(serving: Serving) -> str:
    load = serving.load
    if load is None:
        steady = serving.verdict != "no steady state"
        clients = sum(each.clients for each in serving.tenants.values())
        why = f"{clients:,} clients ask when they are answered" if clients else "nobody has said how requests come"
        return f"offered load: none, {why if steady else 'requests come once'}"
    parts = [f"{name}{_where(load.cores.get(name, ()))} {each:.3g}" for name, each in load.parts.items()]
    if "saturated" in load.parts and load.measured:
        parts[-1] += f" (measured on {load.measured:,} requests at once)"
    come = f"{_rate(load.rate_per_second)} requests/s come{' (estimated from the arrivals)' * load.estimated}"
    more = f"; not counted: {', '.join(load.not_counted)}" if load.not_counted else ""
    if load.saturated_fcfs is not None:
        more += f"; first come first served it would be {load.saturated_fcfs:.3g} (measured)"
        more += ", this order may do more" if load.preemption is None else ", where no job stops another"
    return (
        f"offered load {_offered(load)}: {', '.join(parts)}; {come}, at most {_rate(load.bound_per_second)} /s can be "
        f"served{' without preemption' * (load.preemption is not None)}{more}"
    )


def _rate(value: float) -> str:
    """A rate, with all digits before the point."""
    return f"{value:,.0f}" if value >= 1e6 else f"{value:,.6g}"


def _offered(load: Load) -> str:
    """The load, and what preemption adds to it as far as that is known."""
    told = load.preemption
    if told is None:
        least = load.rate_per_second / load.bound_per_second
        return f"{least:.4g} to {load.offered:.4g}" if load.unsure else f"{load.offered:.4g}"
    if told.load is None:
        return f"{load.offered:.4g} without what preemption adds, which is not known"
    how = f"measured on {told.requests:,} requests" if told.requests else "a bound"
    what = "preemption and threads that share a core add" if told.shared else "preemption adds"
    if not told.exact:
        return f"{load.offered:.4g} without preemption; {what} {load.added:.2g} at most ({how})"
    off = f" +- {told.half_width:.2g}" if told.half_width else ""
    return f"{load.offered:.4g}, of which {what} {load.added:.3g}{off} ({how})"


def _where(cores: tuple[int, ...]) -> str:
    return f" of core{'s' * (len(cores) > 1)} {', '.join(map(str, cores))}" if cores else ""


def _missing(serving: Serving) -> str:
    """How many requests would be enough, where there are too few; or what happens to too many requests."""
    load = serving.load
    if serving.verdict == "cannot tell":
        cut = "more requests were in the machine at once than there is room for, where the run ended"
        return f"; {load.unsure if load is not None and load.unsure else cut}"
    if load is not None and load.offered < 1 and serving.verdict == "unstable":
        return "; the offered load does not explain it, but the latencies of this run rise all the time"
    excess = ""
    if load is not None and load.offered >= 1 and load.bounded:
        excess = "; more come than can be served, but what goes on coming and is never turned away is no more than that"
    clients = any(each.clients for each in serving.tenants.values())
    relaxation = serving.relaxation if clients or load is not None else None
    if serving.verdict != "too few" or relaxation is None or relaxation == inf:
        return excess
    # only those that are served tell
    came = serving.requests + serving.turned_away
    needed = MEAN_UNITS * relaxation * came / serving.requests / 0.9
    if came >= needed:
        return f"{excess}; its latencies vary more than the load explains"
    where = "with these clients" if clients else "at this load"
    return f"{excess}; {where} that takes about {_round_up(needed):,}"


def _round_up(number: float) -> int:
    """The number rounded up to two digits."""
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return int(-(-number // unit) * unit)


def load_json(serving: Serving) -> dict[str, Any]:
    """Give the keys `load` (rates per second), `verdict` and `warmup` as plain data."""
    load, warmup = serving.load, serving.warmup
    left_out = {"requests": warmup.requests, "rule": warmup.rule, "settled": serving.verdict == "settled"}
    return {
        "load": None
        if load is None
        else {
            "offered": load.offered,
            "parts": dict(load.parts),
            "cores": {name: list(cores) for name, cores in load.cores.items()},
            "rate_per_second": load.rate_per_second,
            "bound_per_second": load.bound_per_second,
            "estimated": load.estimated,
            "bounded": load.bounded,
            "lasting": load.lasting,
            "saturated_fcfs": load.saturated_fcfs,
            "measured_requests": load.measured,
            "relaxation_requests": None if load.relaxation == inf else load.relaxation,
            "not_counted": list(load.not_counted),
            "preemption": None if load.preemption is None else {**vars(load.preemption), "adds": load.added},
            "unsure": load.unsure,
        },
        "verdict": serving.verdict,
        "warmup": left_out,
    }


#: So many tenants are shown; of more, those with the largest slowdown.
SHOWN = 12
_NAME = 22

_NONE = "-"


def shown_tenants(serving: Serving) -> tuple[list[Tenant], str]:
    """Give the tenants that are shown, and a sentence that says which these are if there are more.

    Of more than `SHOWN`, those with the largest slowdown are shown; of equal slowdowns, those with more turned away.
    """
    tenants = list(serving.tenants.values())
    if len(tenants) <= SHOWN:
        return tenants, ""
    worst = sorted(tenants, key=lambda each: (-(each.slowdown or 0.0), -each.turned_away))[:SHOWN]
    text = f"the {SHOWN} of {len(tenants):,} with the largest slowdown; {len(tenants) - SHOWN:,} more are in the JSON"
    return worst, text


def tenant_lines(serving: Serving) -> list[str]:
    """Give tables of at most 100 columns: what was served, late and turned away; latencies with their intervals.

    An interval is written as +- and its half width in percent of the value.
    """
    tenants, which = shown_tenants(serving)
    title = f"TENANTS ({which})" if which else "TENANTS"
    counts = [
        [
            _short(each.name),
            f"{each.requests:,}",
            f"{each.turned_away:,}",
            f"{each.misses:,}",
            _NONE if each.slowdown is None else four_digits(each.slowdown),
        ]
        for each in tenants
    ]
    heads = ["", "requests", "turned away", "late", "slowdown"]
    rates = [["rates", "in time", "/s", "good /s"], *([_short(each.name), *_rates(each)] for each in tenants)]
    percents = [f"p{percent:g}" for percent in serving.latency.percentiles]
    times = [["latency in ms", "mean", *percents, "wait, mean"]]
    times += [_times(each, serving) for each in tenants]
    # as many columns as fit beside each other, with the names again
    halves = [[[row[0], *row[1:4]] for row in times], [[row[0], *row[4:]] for row in times]]
    lines = [title, *_table([heads, *counts]), *_table(rates), *(line for half in halves for line in _table(half))]
    verdicts = dict.fromkeys(each.verdict for each in serving.tenants.values())
    if len(verdicts) > 1:
        told = [f"{each}: {', '.join(_short(one.name) for one in tenants if one.verdict == each)}" for each in verdicts]
        text = f"  verdicts, as these tenants share nothing of the machine: {'; '.join(told)}"
        lines.append(textwrap.fill(text, _WIDTH, subsequent_indent="    "))
    return lines


def _rates(tenant: Tenant) -> list[str]:
    """The share in time, throughput and goodput, each with the half width of its interval in percent."""
    kept = tenant.attainment
    texts = [_NONE if kept is None else f"{100 * kept:.4g} %"]
    texts += [four_digits(each) for each in (tenant.throughput_per_second, tenant.goodput_per_second)]
    if tenant.rates is None:
        return texts
    known = tenant.rates.attainment, tenant.rates.throughput, tenant.rates.goodput
    return [f"{text}{_percent(each, tenant.verdict)}" for text, each in zip(texts, known, strict=True)]


def _percent(each: Interval | None, verdict: str) -> str:
    if each is None or (each.half_width is None and verdict not in ("settled", "too few")):
        return ""
    if each.half_width is None:
        return " too few"
    return f" +-{100 * each.half_width / each.value:.2g}%" if each.value else ""


def _times(tenant: Tenant, serving: Serving) -> list[str]:
    if tenant.latency is None or tenant.wait is None:
        return [_short(tenant.name), "none served"]
    each = [tenant.latency.mean, *tenant.latency.percentiles.values(), tenant.wait.mean]
    return [_short(tenant.name), *(" ".join(interval_texts(one, serving, tenant.verdict)) for one in each)]


def interval_texts(each: Interval, serving: Serving, verdict: str) -> tuple[str, str]:
    """Give a time in milliseconds, and the half width of its interval in percent; `verdict`: the tenant's.

    Without an interval the second text says so; it is empty where more requests would not help, because there is no
    steady state.

    >>> from lstmsim.studies.serve.metrics import Collector
    >>> collector = Collector(250)
    >>> collector.add(0, arrival=0, start=0, finish=250)
    >>> serving = collector.result()
    >>> interval_texts(Interval(250.0, 5.0, 10), serving, "settled")
    ('0.001', '+-2%')
    >>> interval_texts(Interval(250.0), serving, "too few"), interval_texts(Interval(250.0), serving, "unstable")
    (('0.001', 'too few'), ('0.001', ''))
    """
    value = four_digits(serving.ms(each.value))
    if each.half_width is None:
        return value, "too few" if verdict in ("settled", "too few") else ""
    share = 100 * each.half_width / each.value if each.value else 0.0
    return value, f"+-{share:.2g}%" if share < 100 else f"+-{share:.0f}%"


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns of equal width, the first one to the left; a row may end early."""
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(max(map(len, rows)))]
    return [
        "  "
        + "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    ]


def window_json(serving: Serving) -> dict[str, int] | None:
    """Give the part of a run in which all clients are active as plain data; None without clients."""
    if serving.window is None:
        return None
    return {
        "clients": serving.window.clients,
        "start_cycle": serving.window.start_cycle,
        "end_cycle": serving.window.end_cycle,
        "requests": serving.requests_inside,
    }


def shares_json(serving: Serving) -> dict[str, Any]:
    """Give what models and tenants got, and how fair that is, as plain data."""
    return {
        "models": {
            name: {
                "requests": each.requests,
                "in_time": each.in_time,
                "turned_away": each.turned_away,
                "slowdown": each.slowdown,
            }
            for name, each in serving.models.items()
        },
        "tenants": _tenants_json(serving),
        "antt": serving.antt,
        "stp": serving.stp,
        "fairness": {
            "slowdown": serving.fairness_slowdown,
            "goodput": serving.fairness_goodput,
            "throughput": serving.fairness_throughput,
        },
    }


def _tenants_json(serving: Serving) -> list[dict[str, Any]]:
    """All tenants in their order; times in cycles."""
    return [
        {
            "tenant": each.name,
            "model": each.model,
            "clients": each.clients,
            "requests": each.requests,
            "turned_away": each.turned_away,
            "in_time": each.in_time,
            "misses": each.misses,
            "with_deadline": each.with_deadline,
            "attainment": each.attainment,
            "throughput_per_second": each.throughput_per_second,
            "goodput_per_second": each.goodput_per_second,
            "latency_cycles": None if each.latency is None else plain(each.latency),
            "wait_cycles": None if each.wait is None else plain(each.wait),
            "slowdown": each.slowdown,
            "progress": each.progress,
            "verdict": each.verdict,
            "intervals": rates_json(each.rates),
        }
        for each in serving.tenants.values()
    ]


def rates_json(rates: Rates | None) -> dict[str, Any]:
    """Give throughput, goodput, attainment and utilization as plain data; `half_width` is None where there is none."""
    named = {} if rates is None else rates.named()
    return {name: {"value": each.value, "half_width": each.half_width} for name, each in named.items()}


def plain(distribution: Distribution) -> dict[str, Any]:
    """Give a distribution as plain data; `half_width` is None where there are too few requests to tell."""
    named = {"mean": distribution.mean, **{f"p{percent:g}": each for percent, each in distribution.percentiles.items()}}
    values = {name: {"value": each.value, "half_width": each.half_width} for name, each in named.items()}
    return {**values, "max": distribution.max, "exact": distribution.exact}


SERVING_SCHEMA = "lstmsim/serving/1"

_WIDTH = 100


def serving_text(serving: Serving, *, tenants: bool = True) -> str:
    """Give lines of at most 100 columns: rates, latencies with their 95 % intervals, queue, warm-up, Little's law.

    tenants: whether a table of the tenants follows, if there are several, and remarks on jobs that keep others out.

    >>> from lstmsim.studies.serve.metrics import Collector
    >>> collector = Collector(250)
    >>> collector.add_many([0, 1], [0, 5], [0, 10], [10, 20])
    >>> serving_text(collector.result()).splitlines()[1][:67]
    'throughput 25,000,000 /s (too few), goodput 25,000,000 /s (too few)'
    """
    served, good, kept, taken = _levels(serving)
    rates = f"throughput {served}, goodput {good}{_while(serving)}"
    late = f"{serving.misses:,} of {serving.requests:,} late{kept}; threads taken {taken} of the time"
    inside = f"in the system {serving.little.inside:.4g} on average, {serving.most_inside:,} at most"
    waiting = f"waiting {serving.little_waiting.inside:.4g}, {serving.most_waiting:,} at most"
    law = "holds exactly" if not serving.little.difference and not serving.little_waiting.difference else "is broken"
    threads = f"{serving.servers} thread{'s' * (serving.servers != 1)}"
    lines = [
        f"SERVING: {serving.requests:,} request{'s' * (serving.requests != 1)} on {threads}{_away(serving)}",
        f"{rates}, {late}",
        *load_lines(serving),
        f"latency in ms: {_distribution(serving.latency, serving)}",
        f"wait in ms: {_distribution(serving.wait, serving)}",
        f"{inside}; {waiting}; Little's law {law}",
        f"warm-up: {serving.warmup.requests:,} requests left out ({serving.warmup.rule})",
    ]
    lines += _slowdown_lines(serving)
    told = [textwrap.fill(line, _WIDTH, subsequent_indent="  ") for line in lines]
    if not tenants:
        return "\n".join(told)
    told += tenant_lines(serving) if len(serving.tenants) > 1 else []
    remarks = [textwrap.fill(f"remark: {each}", _WIDTH, subsequent_indent="  ") for each in serving.remarks]
    return "\n".join([*told, *remarks])


def _levels(serving: Serving) -> tuple[str, str, str, str]:
    """Throughput, goodput, the share in time and the threads taken, each with the half width of its interval."""
    few = " (too few)" * (serving.verdict in ("settled", "too few"))

    def level(text: str, each: Interval | None, unit: str, scale: float = 1.0) -> str:
        if each is None or each.half_width is None:
            return f"{text} {unit}{few}"
        return f"{text} +- {two_digits(scale * each.half_width)} {unit}"

    rates = serving.rates or Rates(Interval(0.0), Interval(0.0))
    kept = rates.attainment
    share = (
        ""
        if kept is None
        else f", in time {level(four_digits(100 * kept.value), kept, '%', 100)} of those with a deadline"
    )
    return (
        level(four_digits(serving.throughput_per_second), rates.throughput, "/s"),
        level(four_digits(serving.goodput_per_second), rates.goodput, "/s"),
        share,
        level(f"{100 * serving.utilization:.1f}", rates.utilization, "%", 100),
    )


def _while(serving: Serving) -> str:
    """Where clients ask, the part of the run that the rates are of."""
    if serving.window is None:
        return ""
    many = f"all {serving.window.clients:,} clients are" if serving.window.clients > 1 else "the client is"
    until = f"cycles {serving.window.start_cycle:,} to {serving.window.end_cycle:,}"
    served = f"{serving.requests_inside:,} request{'s' * (serving.requests_inside != 1)}"
    return f" while {many} active ({until}, {served})"


def _slowdown_lines(serving: Serving) -> list[str]:
    lines = []
    if serving.antt is not None and serving.stp is not None:
        many = len(serving.tenants)
        text = f"slowdown against each job alone on the chip: {serving.antt:.4g}"
        if many > 1:
            text = f"{text} on average over {many:,} tenants (ANTT), their progress adds up to {serving.stp:.4g} (STP)"
        lines.append(text)
    if len(serving.tenants) > 1:
        fair = f"of slowdowns {serving.fairness_slowdown:.3f}, of goodput {serving.fairness_goodput:.3f}"
        lines.append(f"fairness between tenants (Jain): {fair}")
    return lines


def _away(serving: Serving) -> str:
    return f"; {serving.turned_away:,} more turned away" if serving.turned_away else ""


def _distribution(figures: Distribution, serving: Serving) -> str:
    named = {"mean": figures.mean, **{f"p{percent:g}": each for percent, each in figures.percentiles.items()}}
    parts = [f"{name} {_interval(each, serving)}" for name, each in named.items()]
    return ", ".join([*parts, f"max {four_digits(cycles_to_ms(figures.max, serving.frequency_mhz))}"])


def _interval(each: Interval, serving: Serving) -> str:
    value = four_digits(serving.ms(each.value))
    if each.half_width is not None:
        return f"{value} +- {two_digits(serving.ms(each.half_width))}"
    # Where there is nothing to settle to, more requests would not help.
    return f"{value} (too few)" if serving.verdict in ("settled", "too few") else value


def serving_json(serving: Serving) -> dict[str, Any]:
    """Give the figures as plain data of schema `lstmsim/serving/1`; times in cycles."""
    return {
        "schema": SERVING_SCHEMA,
        "frequency_mhz": serving.frequency_mhz,
        "requests": serving.requests,
        "servers": serving.servers,
        "misses": serving.misses,
        "turned_away": serving.turned_away,
        "throughput_per_second": serving.throughput_per_second,
        "goodput_per_second": serving.goodput_per_second,
        "throughput_whole_run_per_second": serving.per_second(serving.requests),
        "goodput_whole_run_per_second": serving.per_second(serving.requests - serving.misses),
        "window": window_json(serving),
        "utilization": serving.utilization,
        "intervals": rates_json(serving.rates),
        "latency_cycles": plain(serving.latency),
        "wait_cycles": plain(serving.wait),
        "inside": {"mean": serving.little.inside, "most": serving.most_inside, "area": serving.little.area},
        "waiting": {"mean": serving.little_waiting.inside, "most": serving.most_waiting},
        "sojourn_cycles": serving.little.sojourn,
        **shares_json(serving),
        "over_time": [
            {
                "start_cycle": each.start_cycle,
                "width_cycles": each.width_cycles,
                "waiting": each.queue_length,
                "threads_taken": each.taken,
                "finished": each.finished,
            }
            for each in serving.windows
        ],
        **load_json(serving),
        "remarks": list(serving.remarks),
    }


FORMS = Forms(serving_json, serving_text, lambda serving: serving_json(serving)["tenants"])
