"""What serving many requests came to, as lines for the terminal and as plain data."""

from __future__ import annotations

import textwrap
from typing import Any

from lstmsim.results import Forms
from lstmsim.traffic.latencies import Distribution
from lstmsim.traffic.load_text import load_json, load_lines
from lstmsim.traffic.result import Serving
from lstmsim.traffic.statistics import Interval
from lstmsim.traffic.tenants_text import plain, shares_json, tenant_lines, window_json
from lstmsim.units import cycles_to_ms

__all__ = ["FORMS", "SERVING_SCHEMA", "serving_json", "serving_text"]

SERVING_SCHEMA = "lstmsim/serving/1"

_WIDTH = 100


def serving_text(found: Serving, *, tenants: bool = True) -> str:
    """Lines of at most 100 columns: rates, latencies with their 95 % intervals, queue, warm-up, Little's law.

    `tenants`: with a table of these, if there are several, and remarks on who stands in whose way.

    >>> from lstmsim.traffic.metrics import Collector
    >>> collector = Collector(250)
    >>> collector.add_many([0, 1], [0, 5], [0, 10], [10, 20])
    >>> print(serving_text(collector.result()).splitlines()[1])
    throughput 2.5e+07 /s, goodput 2.5e+07 /s, 0 of 2 late; threads taken 100.0 % of the time
    """
    rates = f"throughput {found.throughput_per_second:.4g} /s, goodput {found.goodput_per_second:.4g} /s{_while(found)}"
    late = f"{found.misses:,} of {found.requests:,} late; threads taken {100 * found.utilization:.1f} % of the time"
    inside = f"in the system {found.little.inside:.4g} on average, {found.most_inside:,} at most"
    waiting = f"waiting {found.little_waiting.inside:.4g}, {found.most_waiting:,} at most"
    law = "holds exactly" if not found.little.difference and not found.little_waiting.difference else "is broken"
    threads = f"{found.servers} thread{'s' * (found.servers != 1)}"
    lines = [
        f"SERVING: {found.requests:,} request{'s' * (found.requests != 1)} on {threads}{_away(found)}",
        f"{rates}, {late}",
        *load_lines(found),
        f"latency in ms: {_distribution(found.latency, found)}",
        f"wait in ms: {_distribution(found.wait, found)}",
        f"{inside}; {waiting}; Little's law {law}",
        f"warm-up: {found.warmup.requests:,} requests left out ({found.warmup.rule})",
    ]
    lines += _slowdown_lines(found)
    told = [textwrap.fill(line, _WIDTH, subsequent_indent="  ") for line in lines]
    if not tenants:
        return "\n".join(told)
    told += tenant_lines(found) if len(found.tenants) > 1 else []
    remarks = [textwrap.fill(f"remark: {each}", _WIDTH, subsequent_indent="  ") for each in found.remarks]
    return "\n".join([*told, *remarks])


def _while(found: Serving) -> str:
    """Where clients ask, what the rates are of."""
    if found.window is None:
        return ""
    many = f"all {found.window.clients:,} clients are" if found.window.clients > 1 else "the client is"
    until = f"cycles {found.window.start_cycle:,} to {found.window.end_cycle:,}"
    served = f"{found.requests_inside:,} request{'s' * (found.requests_inside != 1)}"
    return f" while {many} active ({until}, {served})"


def _slowdown_lines(found: Serving) -> list[str]:
    lines = []
    if found.antt is not None and found.stp is not None:
        many = len(found.tenants)
        text = f"slowdown against each job alone on the chip: {found.antt:.4g}"
        if many > 1:
            text = f"{text} on average over {many:,} tenants (ANTT), their progress adds up to {found.stp:.4g} (STP)"
        lines.append(text)
    if len(found.tenants) > 1:
        fair = f"of slowdowns {found.fairness_slowdown:.3f}, of goodput {found.fairness_goodput:.3f}"
        lines.append(f"fairness between tenants (Jain): {fair}")
    return lines


def _away(found: Serving) -> str:
    return f"; {found.turned_away:,} more turned away" if found.turned_away else ""


def _distribution(figures: Distribution, found: Serving) -> str:
    named = {"mean": figures.mean, **{f"p{percent:g}": each for percent, each in figures.percentiles.items()}}
    parts = [f"{name} {_interval(each, found)}" for name, each in named.items()]
    return ", ".join([*parts, f"max {cycles_to_ms(figures.max, found.frequency_mhz):.4g}"])


def _interval(each: Interval, found: Serving) -> str:
    value = f"{each.value / found.frequency_mhz / 1000:.4g}"
    if each.half_width is not None:
        return f"{value} +- {each.half_width / found.frequency_mhz / 1000:.2g}"
    # Where there is nothing to settle to, more requests would not help.
    return f"{value} (too few)" if found.verdict in ("settled", "too few") else value


def serving_json(found: Serving) -> dict[str, Any]:
    """The same as plain data of schema `lstmsim/serving/1`; times in cycles."""
    return {
        "schema": SERVING_SCHEMA,
        "frequency_mhz": found.frequency_mhz,
        "requests": found.requests,
        "servers": found.servers,
        "misses": found.misses,
        "turned_away": found.turned_away,
        "throughput_per_second": found.throughput_per_second,
        "goodput_per_second": found.goodput_per_second,
        "throughput_whole_run_per_second": found.per_second(found.requests),
        "goodput_whole_run_per_second": found.per_second(found.requests - found.misses),
        "window": window_json(found),
        "utilization": found.utilization,
        "latency_cycles": plain(found.latency),
        "wait_cycles": plain(found.wait),
        "inside": {"mean": found.little.inside, "most": found.most_inside, "area": found.little.area},
        "waiting": {"mean": found.little_waiting.inside, "most": found.most_waiting},
        "sojourn_cycles": found.little.sojourn,
        **shares_json(found),
        "over_time": [
            {
                "start_cycle": each.start_cycle,
                "width_cycles": each.width_cycles,
                "waiting": each.queue_length,
                "threads_taken": each.taken,
                "finished": each.finished,
            }
            for each in found.windows
        ],
        **load_json(found),
        "remarks": list(found.remarks),
    }


FORMS = Forms(serving_json, serving_text, lambda found: serving_json(found)["tenants"])
