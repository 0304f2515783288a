"""The figures of serving many requests, as lines for the terminal and as plain data."""

from __future__ import annotations

import textwrap
from typing import Any

from lstmsim.base.units import cycles_to_ms
from lstmsim.report.figures_text import four_digits, two_digits
from lstmsim.report.results import Forms
from lstmsim.traffic.latencies import Distribution
from lstmsim.traffic.load_text import load_json, load_lines
from lstmsim.traffic.rates import Rates
from lstmsim.traffic.result import Serving
from lstmsim.traffic.statistics import Interval
from lstmsim.traffic.tenants_text import plain, rates_json, shares_json, tenant_lines, window_json

__all__ = ["FORMS", "SERVING_SCHEMA", "serving_json", "serving_text"]

SERVING_SCHEMA = "lstmsim/serving/1"

_WIDTH = 100


def serving_text(serving: Serving, *, tenants: bool = True) -> str:
    """Give lines of at most 100 columns: rates, latencies with their 95 % intervals, queue, warm-up, Little's law.

    tenants: whether a table of the tenants follows, if there are several, and remarks on jobs that keep others out.

    >>> from lstmsim.traffic.metrics import Collector
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
