"""The offered load and the verdict on a run, as lines for the terminal and as plain data."""

from __future__ import annotations

from math import inf
from typing import Any

from lstmsim.traffic.intervals import MEAN_UNITS
from lstmsim.traffic.load import VERDICTS, Load
from lstmsim.traffic.result import Serving

__all__ = ["load_json", "load_lines"]


def load_lines(serving: Serving) -> list[str]:
    """Say what is asked of the machine, by its parts, and what that means for the figures of this run.

    >>> from lstmsim.traffic.load import Load
    >>> from lstmsim.traffic.metrics import Collector
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
