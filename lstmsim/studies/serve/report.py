"""Serving as people and programs read it: rates, offered load, latencies, queues, tenants."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from lstmsim.base.units import cycles_to_ms
from lstmsim.report.document import Column, Document, Grid, Section, Text, remark
from lstmsim.report.figures_text import four_digits, percent, short_name, with_interval
from lstmsim.report.results import Forms, Keys, picked, plain
from lstmsim.studies.serve.result import ClosedWindow, Serving, Tenant
from lstmsim.traffic.intervals import Interval, requests_for
from lstmsim.traffic.latencies import Distribution
from lstmsim.traffic.load import VERDICTS, Load
from lstmsim.traffic.population import Window
from lstmsim.traffic.rates import Rates

if TYPE_CHECKING:
    from lstmsim.studies.serve.run import Served

SCHEMA = "lstmsim/serving/2"
#: So many tenants are shown; of more, those with the largest slowdown.
SHOWN = 12
_NAME = 22
#: Verdicts on runs of which a longer one may have the intervals that are missing.
_MAY_SETTLE = ("settled", "too few")


def document(result: Serving | Served, *, tenants: bool = True) -> Document:
    """Show rates, latencies with their 95 % intervals, queue, warm-up, Little's law, and what the whole run came to.

    tenants: whether a table of the tenants follows, if there are several, and remarks on jobs that keep others out.
    """
    serving = _serving(result)
    count, servers = serving.requests, serving.servers
    threads = f"{servers} thread{'s' * (servers != 1)}"
    rejected = f"; {serving.rejected:,} more rejected" if serving.rejected else ""
    headline = (
        f"SERVING: {count:,} request{'s' * (count != 1)} on {threads}{_late(serving)}{rejected}{_unstable(result)}"
    )
    if not count:
        headline = f"SERVING: all {serving.rejected:,} requests on {threads} were rejected"
    sections = [Section.of(Text("\n".join(_figures(serving)), hang=2))]
    if tenants and len(serving.tenants) > 1:
        sections.append(_tenants(serving))
    if tenants:
        sections.append(Section.of(*(remark(f"remark: {sentence}", 2) for sentence in serving.remarks)))
    if not isinstance(result, Serving):
        sections.append(Section.of(_whole_run(result)))
    return Document.of(headline, *sections)


def _serving(result: Serving | Served) -> Serving:
    return result if isinstance(result, Serving) else result.serving


def _unstable(result: Serving | Served) -> str:
    """That more came than the machine can do, and where the run was cut for that."""
    load = _serving(result).load
    if _serving(result).verdict != "unstable":
        return ""
    at = f" at a load of {load.offered:.4g}" if load is not None and load.offered >= 1 else ""
    full = not isinstance(result, Serving) and result.ended == "full"
    return f"; unstable{at}" + (f", cut with {result.window:,} in the machine" if full else "")


def _late(serving: Serving) -> str:
    """How many of the requests with a deadline were late, where any has one."""
    asked = sum(each.attained for each in serving.tenants.values()) + serving.misses
    return f", {percent(serving.misses, asked, 'none')} of those with a deadline late" if asked else ""


def _figures(serving: Serving) -> list[str]:
    """Lines on all requests together."""
    served, good, kept, taken = _levels(serving)
    late = f"{serving.misses:,} of {serving.requests:,} late{kept}; threads taken {taken} of the time"
    inside = f"in the system {serving.little.inside:.4g} on average, {serving.most_inside:,} at most"
    waiting = f"waiting {serving.little_waiting.inside:.4g}, {serving.most_waiting:,} at most"
    law = "holds exactly" if not serving.little.difference and not serving.little_waiting.difference else "is broken"
    return [
        f"throughput {served}, goodput {good}{_while(serving)}, {late}",
        *load_lines(serving),
        f"latency in ms: {_distribution(serving.latency, serving)}",
        f"wait in ms: {_distribution(serving.wait, serving)}",
        f"{inside}; {waiting}; Little's law {law}",
        *([] if serving.batching is None else [serving.batching.words]),
        f"warm-up: {serving.warmup.requests:,} requests left out ({serving.warmup.rule})",
        *_slowdown_lines(serving),
    ]


def _levels(serving: Serving) -> tuple[str, str, str, str]:
    """Throughput, goodput, the share in time and the threads taken, each with the half width of its interval."""
    few = f" ({_few(serving).partition(',')[0]})" * (serving.verdict in _MAY_SETTLE)

    def level(text: str, interval: Interval | None, unit: str, scale: float = 1.0) -> str:
        if interval is None or interval.half_width is None:
            return f"{text} {unit}{few}"
        scaled = interval.scaled(scale)
        return f"{with_interval(text, scale * interval.half_width, scaled.ends)} {unit}"

    rates = serving.rates or Rates(Interval(0.0), Interval(0.0))
    kept, share = rates.attainment, ""
    if kept is not None:
        share = f", in time {level(four_digits(100 * kept.value), kept, '%', 100)} of those with a deadline"
    return (
        level(four_digits(serving.throughput_per_second), rates.throughput, "/s"),
        level(four_digits(serving.goodput_per_second), rates.goodput, "/s"),
        share,
        level(f"{100 * serving.utilization:.1f}", rates.utilization, "%", 100),
    )


def _while(serving: Serving) -> str:
    """Where clients ask, the part of the run that the rates are of."""
    window = serving.window
    if window is None:
        return ""
    many = f"all {window.clients:,} clients are" if window.clients > 1 else "the client is"
    until = f"cycles {window.start_cycle:,} to {window.end_cycle:,}"
    served = f"{serving.requests_inside:,} request{'s' * (serving.requests_inside != 1)}"
    return f" while {many} active ({until}, {served})"


def _slowdown_lines(serving: Serving) -> list[str]:
    lines, many = [], len(serving.tenants)
    if serving.antt is not None and serving.stp is not None:
        text = f"slowdown against each job alone on the chip: {serving.antt:.4g}"
        if many > 1:
            text = f"{text} on average over {many:,} tenants (ANTT), their progress adds up to {serving.stp:.4g} (STP)"
        lines.append(text)
    if many > 1:
        fair = f"of slowdowns {serving.fairness_slowdown:.3f}, of goodput {serving.fairness_goodput:.3f}"
        lines.append(f"fairness between tenants (Jain): {fair}")
    return lines


def _named(figures: Distribution) -> dict[str, Interval]:
    return {"mean": figures.mean, **{f"p{percent:g}": each for percent, each in figures.percentiles.items()}}


def _distribution(figures: Distribution, serving: Serving) -> str:
    if not figures.requests:
        return "none, no request was served"
    parts = []
    for name, interval in _named(figures).items():
        value = four_digits(serving.ms(interval.value))
        if interval.half_width is not None:
            value = with_interval(value, serving.ms(interval.half_width), interval.scaled(serving.ms(1)).ends)
        elif serving.verdict in _MAY_SETTLE:
            value = f"{value} ({_few(serving, None if name == 'mean' else float(name[1:]))})"
        parts.append(f"{name} {value}")
    return ", ".join([*parts, f"max {four_digits(cycles_to_ms(figures.max, serving.frequency_mhz))}"])


# ---- the offered load and the verdict


def load_lines(serving: Serving) -> list[str]:
    """Say how much is asked of the machine, by its parts, and what follows for the figures of this run."""
    return [_load_line(serving), f"verdict: {serving.verdict}: {VERDICTS[serving.verdict]}{_missing(serving)}"]


def _load_line(serving: Serving) -> str:
    load = serving.load
    if load is None:
        steady = serving.verdict != "no steady state"
        clients = sum(tenant.clients for tenant in serving.tenants.values())
        why = f"{clients:,} clients ask when they are answered" if clients else "it is not known how requests come"
        return f"offered load: none, {why if steady else 'requests come once'}"
    where = {
        name: f" of core{'s' * (len(cores) > 1)} {', '.join(map(str, cores))}" for name, cores in load.cores.items()
    }
    parts = [f"{name}{where.get(name, '')} {part:.3g}" for name, part in load.parts.items()]
    if "saturated" in load.parts and load.measured:
        parts[-1] += f" (measured on {load.measured:,} requests at once)"
    come = f"{_rate(load.rate_per_second)} requests/s arrive{' (estimated from the arrivals)' * load.estimated}"
    if load.peak_per_second:
        come += f" in the long run, {_rate(load.peak_per_second)} /s while bursts are on"
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
    measured = load.preemption
    if measured is None:
        least = load.rate_per_second / load.bound_per_second
        return f"{least:.4g} to {load.offered:.4g}" if load.unsure else f"{load.offered:.4g}"
    if measured.load is None:
        return f"{load.offered:.4g} without what preemption adds, which is not known"
    how = f"measured on {measured.requests:,} requests" if measured.requests else "a bound"
    adds = "preemption and threads that share a core add" if measured.shared else "preemption adds"
    if not measured.exact:
        return f"{load.offered:.4g} without preemption; {adds} {load.added:.2g} at most ({how})"
    off = f" +- {measured.half_width:.2g}" if measured.half_width else ""
    return f"{load.offered:.4g}, of which {adds} {load.added:.3g}{off} ({how})"


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
        excess = "; more come than can be served, but what goes on coming and is never rejected is no more than that"
    if serving.verdict != "too few" or _relaxation(serving) is None:
        return excess
    if not _takes(serving):
        return f"{excess}; its latencies vary more than the load explains"
    where = "with these clients" if any(each.clients for each in serving.tenants.values()) else "at this load"
    return f"{excess}; {where} that takes about {_takes(serving)}"


def _relaxation(serving: Serving) -> float | None:
    """The relaxation in requests that come, of which only those that are served count; None: it is not known."""
    clients = any(tenant.clients for tenant in serving.tenants.values())
    known = serving.relaxation if clients or serving.load is not None else None
    return None if known in (None, inf) else known * (1 + serving.rejected / serving.requests)


def _few(serving: Serving, percent: float | None = None) -> str:
    """Why a figure has no interval: how many requests that takes, or that what came of so many does not settle."""
    if takes := _takes(serving, percent):
        return f"too few, takes about {takes}"
    return "too few" if _relaxation(serving) is None else "no interval, batches vary too much or are alike"


def _takes(serving: Serving, percent: float | None = None) -> str:
    """How many requests an interval takes, to two digits; empty: not known, or so many came."""
    needed = requests_for(_relaxation(serving) or 0.0, percent)
    unit = 10 ** max(0, len(str(int(needed))) - 2)  # rounded up
    return f"{int(-(-needed // unit) * unit):,}" if serving.requests + serving.rejected < needed else ""


# ---- tenants


def _tenants(serving: Serving) -> Section:
    """What was served, late and rejected of each tenant; rates and latencies with their intervals."""
    tenants, title = list(serving.tenants.values()), "TENANTS"
    if len(tenants) > SHOWN:
        more = f"{len(tenants) - SHOWN:,} more are in the JSON"
        title = f"TENANTS (the {SHOWN} of {len(tenants):,} with the largest slowdown; {more})"
        # of equal slowdowns, those with more rejected requests
        tenants = sorted(tenants, key=lambda each: (-(each.slowdown or 0.0), -each.rejected))[:SHOWN]
    verdicts = dict.fromkeys(each.verdict for each in serving.tenants.values())
    note = None
    if len(verdicts) > 1:
        groups = [
            f"{verdict}: {', '.join(short_name(one.name, _NAME) for one in tenants if one.verdict == verdict)}"
            for verdict in verdicts
        ]
        note = Text(f"verdicts, as these tenants share nothing of the machine: {'; '.join(groups)}", hang=2)
    return Section.of(tenants_grid(serving, tenants), note, title=title)


def tenants_grid(serving: Serving, tenants: Sequence[Tenant], limit: int | None = None) -> Grid:
    """Make a table of tenants.

    limit: most rows of a page, whose table also has models and maxima; None: the table of a terminal.
    """
    whole = limit is not None
    columns = [
        Column("tenant", left=True, form=None if whole else lambda name: short_name(str(name), _NAME)),
        *[Column("model", left=True)] * whole,
        *(Column(head) for head in ("requests", "rejected", "late")),
        Column("slowdown", form=lambda value: four_digits(float(value or 0)), meaning="Latency / latency alone."),
        *(Column(head) for head in ("in time", "requests/s", "good requests/s")),
        *(Column(f"{name} ms", missing="") for name in (*_named(serving.latency), "mean wait")),
        *[Column("max ms", missing="")] * whole,
    ]
    rows = []
    for each in tenants:
        most = None if each.latency is None else four_digits(serving.ms(each.latency.max))
        counts = each.requests, each.rejected, each.misses, each.slowdown
        rows.append((each.name, *[each.model] * whole, *counts, *_rates(each), *_times(each, serving), *[most] * whole))
    return Grid(tuple(columns), tuple(rows), limit=limit, more="tenants, in the JSON of the run", repeated=1)


def _rates(tenant: Tenant) -> list[str | None]:
    """The share in time, throughput and goodput, each with the half width of its interval in percent."""
    kept = tenant.attainment
    texts = [None if kept is None else f"{100 * kept:.4g} %"]
    texts += [four_digits(rate) for rate in (tenant.throughput_per_second, tenant.goodput_per_second)]
    if tenant.rates is None:
        return texts
    known = tenant.rates.attainment, tenant.rates.throughput, tenant.rates.goodput
    shown = zip(texts, known, (100.0, 1.0, 1.0), strict=True)
    return [text and f"{text}{_percent(each, tenant, scale)}" for text, each, scale in shown]


def _percent(interval: Interval | None, tenant: Tenant, scale: float = 1.0) -> str:
    if interval is None:
        return ""
    if interval.half_width is None:
        return " too few" * (tenant.verdict in _MAY_SETTLE)
    if interval.ends is not None:
        return f" [{', '.join(four_digits(scale * end) for end in interval.ends)}]"
    return f" +-{100 * interval.half_width / (interval.value or 1):.2g}%"


def _times(tenant: Tenant, serving: Serving) -> Sequence[str | None]:
    if tenant.latency is None or tenant.wait is None:
        return ["none served", *[None] * (len(serving.latency.percentiles) + 1)]
    intervals = [tenant.latency.mean, *tenant.latency.percentiles.values(), tenant.wait.mean]
    return [f"{four_digits(serving.ms(one.value))}{_percent(one, tenant, serving.ms(1))}" for one in intervals]


# ---- the whole run


def _whole_run(served: Served) -> str:
    """How long the run took, and why it ended."""
    ms = served.serving.ms(served.makespan_cycles)
    useful = f"utilization {100 * served.utilization:.1f} %, {served.tops:.4g} TOPS"
    line = f"makespan {served.makespan_cycles:,} cycles = {four_digits(ms)} ms, {useful}"
    came = served.serving.requests + served.serving.rejected
    if served.ended == "full":
        at = served.full_at or 0
        word = "unstable" if served.serving.verdict == "unstable" else "cannot go on"
        return (
            f"{line}\n{word}: more requests than there is room for ({served.window:,}) were in the machine at once, "
            f"at cycle {at:,} = {served.serving.ms(at):.4g} ms; the {came:,} that came until then are finished "
            "and counted, the others are not"
        )
    if served.until_half_width is None:
        return line
    told = "within {} % after" if served.ended == "half width" else "not within {} % at the limit of"
    return f"{line}\nintervals {told.format(f'{100 * served.until_half_width:g}')} {came:,} requests"


# ---- plain data


_TENANT = (
    "tenant=name model clients requests rejected in_time misses with_deadline attainment throughput_per_second "
    "goodput_per_second latency_cycles=latency wait_cycles=wait slowdown progress verdict"
)
_LOAD = (
    "offered parts cores rate_per_second peak_per_second bound_per_second estimated bounded lasting saturated_fcfs "
    "measured_requests=measured relaxation_requests=relaxation not_counted preemption unsure"
)
_FAIRNESS = "slowdown=fairness_slowdown goodput=fairness_goodput throughput=fairness_throughput"
_KEYS: Keys = {
    Interval: "value half_width ends",
    Distribution: lambda own: {**_named(own), "max": own.max, "exact": own.exact} if own.requests else None,
    Rates: Rates.named,
    Window: "start_cycle width_cycles waiting=queue_length threads_taken=taken finished",
    ClosedWindow: "clients start_cycle end_cycle",
    Tenant: lambda own: (
        picked(own, _TENANT, _KEYS)
        | {"intervals": plain(own.rates or {}, _KEYS), "batching": own.batching and dict(vars(own.batching))}
    ),
}


def _data(result: Serving | Served) -> dict[str, Any]:
    """Plain data of schema `lstmsim/serving/2`; times in cycles, rates per second."""
    serving = _serving(result)
    window = {} if serving.window is None else {"requests": serving.requests_inside}
    models = {name: picked(each, "requests in_time rejected slowdown") for name, each in serving.models.items()}
    load = {} if serving.load is None else picked(serving.load, _LOAD)
    if serving.load is not None and serving.load.preemption is not None:
        load["preemption"]["adds"] = serving.load.added
    counts = "frequency_mhz requests servers misses rejected throughput_per_second goodput_per_second"
    data = {
        "schema": SCHEMA,
        **picked(serving, counts),
        "throughput_whole_run_per_second": serving.per_second(serving.requests),
        "goodput_whole_run_per_second": serving.per_second(serving.requests - serving.misses),
        "window": {**plain(serving.window, _KEYS), **window} if window else None,
        **picked(serving, "utilization intervals=rates latency_cycles=latency wait_cycles=wait", _KEYS),
        "inside": picked(serving, "mean=little.inside most=most_inside area=little.area"),
        "waiting": picked(serving, "mean=little_waiting.inside most=most_waiting"),
        "sojourn_cycles": serving.little.sojourn,
        "models": models,
        "tenants": plain(serving.tenants.values(), _KEYS),
        **picked(serving, "antt stp"),
        "fairness": picked(serving, _FAIRNESS),
        "over_time": plain(serving.windows, _KEYS),
        "load": load or None,
        "batching": serving.batching and dict(vars(serving.batching)),
        "verdict": serving.verdict,
        "warmup": {**picked(serving.warmup, "requests rule"), "settled": serving.verdict == "settled"},
        "remarks": list(serving.remarks),
    }
    return data if isinstance(result, Serving) else data | _whole_run_data(result)


def _whole_run_data(served: Served) -> dict[str, Any]:
    from lstmsim.studies.simulate.run import about

    names = (
        "makespan_cycles utilization_of_pes=utilization tops ended full_at_cycle=full_at until_half_width "
        "chip_remarks=remarks"
    )
    return picked(served, names) | ({} if served.scenario is None else about(served.scenario, jobs=False))


FORMS = Forms(_data, document, lambda result: plain(_serving(result).tenants.values(), _KEYS))
