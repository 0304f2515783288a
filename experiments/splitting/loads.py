"""Who decides over how many cores a request runs, at which load: always joined, never, or each request as it starts.

Four cores of 16384 multipliers, one thread each, first come, first served; `lstm-512-25` comes as a Poisson process.
Joined, one takes 0.67 times as long as on one core, for four times the cores: what pays depends on how many come.
`split: auto` (docs/timing.md, 11.6) takes all cores that are free if nobody else waits, and one otherwise.

The same requests come to all three. Load 1 is what the four cores can do apart.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.serving.study import task
from lstmsim import ColumnNpu, Scenario, load_scenario, run, serving
from lstmsim.base.wording import ranged
from lstmsim.model.scenario import Job
from lstmsim.traffic.intervals import Interval

__all__ = ["EXPLAINED", "LOADS", "POLICIES", "Latencies", "at_load", "load_table", "load_verdict"]

NAME = "lstm-512-25"
#: How many requests come at each load: more where the joined cores are near the most that they can do.
REQUESTS = {0.05: 2_000, 0.1: 2_000, 0.2: 2_000, 0.3: 8_000, 0.5: 2_000, 0.7: 4_000, 0.9: 4_000}
LOADS = tuple(REQUESTS)
#: What `split` says, by the name of the policy.
POLICIES = {"always joined": "rows", "each on one core": "", "each decides as it starts": "auto"}

EXPLAINED = (
    f"Mean latency in cycles of {min(REQUESTS.values()):,} to {max(REQUESTS.values()):,} requests for {NAME}, a "
    "Poisson process, the same requests for each policy. Four joined cores take 0.67 times as long as one of them. "
    "Load 1 is what the four can do apart; joined they are unstable long before."
)

#: Mean latencies by load and policy; None: more come than can be served.
Latencies = dict[float, dict[str, Interval | None]]


def alone(chip: ColumnNpu, split: str) -> int:
    """Cycles of one request on an empty machine."""
    return run(Scenario(chip, (replace(task(NAME), split=split),))).report.makespan_cycles


def requests(chip: ColumnNpu, load: float) -> list[Job]:
    """The requests of a load."""
    rate = load * len(chip.cores) * chip.frequency_mhz * 1e6 / alone(chip, "")
    arrival = {"kind": "poisson", "rate_per_second": rate}
    entry = {"model": "lstm-512", "steps": 1, "count": REQUESTS[load], "arrival": arrival}
    come = load_scenario({"chip": "column-npu-16k", "jobs": [entry]}).jobs
    return [replace(task(NAME), name=each.name, arrival=each.arrival) for each in come]


def at_load(chip: ColumnNpu, load: float, policies: tuple[str, ...] = tuple(POLICIES)) -> dict[str, Interval | None]:
    """The mean latency in cycles of each policy at a load."""
    means: dict[str, Interval | None] = {}
    for name in policies:
        split = POLICIES[name]
        bound = 1 / alone(chip, "rows") if split == "rows" else len(chip.cores) / alone(chip, "")
        if load * len(chip.cores) / alone(chip, "") >= bound:
            means[name] = None
            continue
        jobs = tuple(replace(each, split=split) for each in requests(chip, load))
        means[name] = serving(run(Scenario(chip, jobs))).latency.mean
    return means


def shown(mean: Interval | None) -> str:
    """A mean with its interval, for a table."""
    if mean is None:
        return "unstable"
    return f"{mean.value:,.0f} " + ("(too few)" if mean.half_width is None else f"+- {mean.half_width:,.0f}")


def load_table(latencies: Latencies) -> list[str]:
    """Mean latencies by load, a column for each policy."""
    lines = [f"| load | {' | '.join(POLICIES)} |", "| ---: |" + " ---: |" * len(POLICIES)]
    return [*lines, *(f"| {load:g} | {' | '.join(map(shown, row.values()))} |" for load, row in latencies.items())]


def apart(one: Interval | None, other: Interval | None) -> int:
    """Give -1 if the first mean is certainly smaller, 1 if it is larger, and 0 if their intervals do not tell."""
    if one is None or other is None:
        return (one is None) - (other is None)
    if (
        one.half_width is None
        or other.half_width is None
        or abs(one.value - other.value) <= (one.half_width + other.half_width)
    ):
        return 0
    return -1 if one.value < other.value else 1


def load_verdict(latencies: Latencies) -> str:
    """At which loads deciding late wins over both, over one of them, or loses."""
    outcome: dict[str, list[str]] = {}
    for load, row in latencies.items():
        *fixed, late = row.values()
        signs = [apart(late, each) for each in fixed]
        if max(signs) < 0:
            what = "wins over both"
        elif max(signs) > 0:
            what = f"loses against `{list(POLICIES)[signs.index(max(signs))]}`"
        else:
            same = " and ".join(f"`{name}`" for name, sign in zip(POLICIES, signs, strict=False) if sign == 0)
            what = f"cannot be told from {same}"
        outcome.setdefault(what, []).append(f"{load:g}")
    reported = "; ".join(f"{what} at load {', '.join(loads)}" for what, loads in outcome.items())
    return f"Who decides as it starts {reported} (intervals of 95 % that overlap do not tell). {_paired(latencies)}"


def _paired(latencies: Latencies) -> str:
    """Say what the same requests tell where the intervals tell nothing, against requests that stay on one core."""
    more = {}
    for load, row in latencies.items():
        _, fixed, late = row.values()
        if fixed is not None and late is not None and late.value > fixed.value:
            more[load] = late.value / fixed.value - 1
    if not more:
        return "At no load do these very requests take longer than each on one core."
    return (
        f"From load {min(more):g} on these very requests take "
        f"{ranged(*(f'{100 * pick(more.values()):.0f}' for pick in (min, max)))} % longer than each on one "
        "core: who is alone takes all cores, and the next ones wait for it."
    )
