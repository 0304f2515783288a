"""Figures of each tenant, an entry of the scenario, gathered while its requests finish, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.studies.serve.result import ClosedWindow, Entry, Tenant
from lstmsim.traffic.intervals import Interval
from lstmsim.traffic.latencies import LEAST_KEPT, Distribution, Sample, sum_of
from lstmsim.traffic.load import Traffic, relaxation_of, verdict_of
from lstmsim.traffic.rates import Rates, Span, Tally, no_surer, rates_of, relaxation_in

Ints = NDArray[np.int64]

#: The due time of a request that may take any time.
NEVER = 2**63 - 1

#: Progress is summed in units of 2^-50: whole numbers, so that no order or grouping of requests changes the sum.
_PROGRESS = 2.0**50
#: Requests are counted when there are so many, and about so many for each tenant.
_LEAST, _EACH = 4096, 32


class Rows(NamedTuple):
    """Requests as columns, shape [requests] each, in the order of their finishes.

    due: the last cycle at which the request is in time.
    servers, core: threads that it took (0: rejected, or beside another one of its batch); where it ran (-1: unknown).
    alone: cycles of that job alone on the chip, 0: unknown.
    stalls: 0 if it never lets another thread have the array.
    """

    arrival: Ints
    start: Ints
    finish: Ints
    due: Ints
    servers: Ints
    alone: Ints
    core: Ints
    stalls: Ints
    paused: Ints

    def of(self, chosen: Ints | slice) -> Rows:
        """Give the chosen requests."""
        return Rows(*(column[chosen] for column in self))

    @property
    def served(self) -> NDArray[np.bool_]:
        """Which of the requests were not rejected."""
        return np.asarray((self.servers > 0) | (self.core >= 0))


class Known(NamedTuple):
    """Knowledge of the whole run, for the intervals of its tenants; the utilization is that of threads.

    taken: the utilization with its interval.
    relaxation: about how many requests of all tenants pass until the queue has forgotten its past; None: unknown.
    alike: all services take equally long.
    """

    traffic: Traffic
    relaxation: float | None
    utilization: float
    verdict: str
    taken: Interval
    alike: bool


#: Sums over the requests of a tenant, as fields of `Tenant`.
_COUNTS = (
    *("requests", "in_time", "sojourn", "service", "rejected"),
    *("with_deadline", "attained", "counted", "counted_in_time"),
)


class _Account:
    """The sums of one tenant."""

    def __init__(self, entry: Entry, room: int) -> None:
        self.entry = entry
        self.tally: Tally | None = None
        self.counts: Counter[str] = Counter()
        self.sample = Sample(room)
        #: Requests with a known time alone, rejected ones included; their progress in units of 2^-50.
        self.compared = self.progress = 0
        #: By the cycles that a request takes alone: how many were served, and the sum of their latencies.
        self.alone: dict[int, tuple[int, int]] = {}

    def take(self, rows: Rows, window: ClosedWindow | None, sampled: bool, origin: int) -> None:
        latency, wait, served = rows.finish - rows.arrival, rows.start - rows.arrival, rows.served
        in_time, asked = served & (rows.finish <= rows.due), rows.due < NEVER
        until = np.ones(len(latency), dtype=np.bool_) if window is None else rows.finish <= window.end_cycle
        inside = until if window is None else until & (rows.finish > window.start_cycle)
        service, counted = (rows.finish - rows.start)[served], served & inside
        sums = latency[served], service
        columns = served, in_time, *sums, ~served, asked, in_time & asked, counted, in_time & inside
        self.counts.update({name: sum_of(each.astype(np.int64)) for name, each in zip(_COUNTS, columns, strict=True)})
        self.tally = Tally(origin) if self.tally is None else self.tally
        self.tally.add(rows.finish, np.stack([served, in_time, asked, in_time & asked]))
        self._compare(latency, rows.alone, served, until & (rows.alone > 0))
        if sampled:
            self.sample.add(latency[served & until], wait[served & until])

    def _compare(self, latency: Ints, alone: Ints, served: NDArray[np.bool_], known: NDArray[np.bool_]) -> None:
        """Add latencies to those of requests with the same time alone."""
        self.compared += int(known.sum())
        latency, alone = latency[known & served], alone[known & served]
        if not len(alone):
            return
        self.progress += sum_of(np.rint(alone / np.maximum(latency, 1) * _PROGRESS).astype(np.int64))
        kinds, group = np.unique(alone, return_inverse=True)
        for kind, cycles in enumerate(kinds.tolist()):
            of_kind = latency if len(kinds) == 1 else latency[group == kind]
            number, total = self.alone.get(cycles, (0, 0))
            self.alone[cycles] = number + len(of_kind), total + sum_of(of_kind)


def _turnaround(accounts: Iterable[_Account]) -> float | None:
    """The mean over requests of latency / cycles alone; None without such requests."""
    sums = [(cycles, *each) for account in accounts for cycles, each in account.alone.items()]
    served = sum(number for _, number, _ in sums)
    return fsum(total / cycles for cycles, _, total in sorted(sums)) / served if served else None


class Accounts:
    """Gathers the requests of each tenant; `tenants` and `models` give their figures.

    entries: the tenants, in their order.
    kept: number of latencies kept of all tenants together, shared equally; each has room for `LEAST_KEPT` at least.
    window: of a closed loop, the part of the run that counts.
    """

    def __init__(self, entries: Sequence[Entry], kept: int, window: ClosedWindow | None = None) -> None:
        self.window = window
        #: The only tenant's latencies are those of the whole run.
        self._single = len(entries) == 1
        room = max(LEAST_KEPT, kept // max(1, len(entries)))
        self._accounts = [_Account(entry, room) for entry in entries]
        #: Requests that are not counted yet: few at a time would be slow where there are many tenants.
        self._pending: list[tuple[Ints, Rows]] = []
        self._waiting = 0
        #: No request leaves before that cycle.
        self._origin: int | None = None

    @property
    def names(self) -> list[str]:
        """The tenants' names, in their order."""
        return [each.entry.name for each in self._accounts]

    def take(self, places: Ints, rows: Rows) -> None:
        """Count these requests; `places`: the indices of their tenants, shape [requests]."""
        if self._origin is None:
            self._origin = int(rows.arrival.min())
        self._pending.append((places, rows))
        self._waiting += len(places)
        if self._waiting >= max(_LEAST, _EACH * len(self._accounts)):
            self._count()

    def _count(self) -> None:
        """Add the requests that are not counted yet to the accounts of their tenants."""
        if not self._pending:
            return
        places = np.concatenate([each for each, _ in self._pending])
        rows = Rows(*(np.concatenate(columns) for columns in zip(*(each for _, each in self._pending), strict=True)))
        self._pending, self._waiting = [], 0
        order = np.argsort(places, kind="stable")
        cuts = np.flatnonzero(np.diff(places[order])) + 1
        for chosen in np.split(order, cuts):
            self._accounts[int(places[chosen[0]])].take(
                rows.of(chosen), self.window, not self._single, self._origin or 0
            )

    def tenants(
        self,
        span: Span,
        whole: tuple[Distribution, Distribution],
        warmup: int | None,
        known: Known,
        percentiles: Sequence[float],
    ) -> dict[str, Tenant]:
        """Give the figures of each tenant, by name, in order."""
        self._count()
        all_served = sum(each.counts["requests"] for each in self._accounts)
        load, made = known.traffic.load, {}
        # where the run had no room for all requests, any part of the machine may be the cause
        cut = known.verdict == "cannot tell" and not (load is not None and load.unsure)
        for each in self._accounts:
            share = each.counts["requests"] / max(1, all_served)
            left_out = None if warmup is None else int(warmup * share)
            traffic = None if cut else known.traffic.apart.get(each.entry.name)
            relaxation = known.relaxation
            if traffic is not None:
                came = self._came(known.traffic.apart, traffic)
                relaxation = relaxation_of(traffic, came, known.utilization)
                share = each.counts["requests"] / max(1, came)
            own_relaxation = None if relaxation is None else max(1.0, relaxation * share)
            own = each.sample.distributions(left_out, own_relaxation, percentiles)
            distributions = whole if self._single and all_served else own
            verdict = known.verdict
            if traffic is not None:
                verdict = verdict_of(traffic, grows=False, known=own is not None and own[0].mean.half_width is not None)
            tenant = replace(_tenant(each, distributions, span.seconds), verdict=verdict)
            if each.tally is not None:
                values = tenant.throughput_per_second, tenant.goodput_per_second, tenant.attainment
                # of an entry that ends early a level of the whole run says nothing
                latency = None if distributions is None or own_relaxation is None else distributions[0]
                relaxation = relaxation_in(latency, each.sample.one_of)
                made_of = rates_of(each.tally, span, values, relaxation)
                if tenant.rejected or tenant.clients:
                    made_of = no_surer(made_of, known.taken, span.seconds, alike=known.alike and self._single)
                tenant = replace(tenant, rates=made_of)
            made[each.entry.name] = tenant
        return made

    def round(self) -> float:
        """Say how many of all requests are served until each client of the closed loops has been served once."""
        self._count()
        counts = [(each.entry.clients, each.counts["requests"]) for each in self._accounts]
        total = sum(served for _, served in counts)
        return max((clients * total / served if served else inf for clients, served in counts if clients), default=inf)

    def rates(self, span: Span, latency: Distribution | None) -> Rates:
        """Give the rates of all tenants together; `latency`: of all their requests, None: unknown."""
        self._count()
        tallies = [each.tally for each in self._accounts if each.tally is not None]
        whole = Tally(tallies[0].origin)
        for each in tallies:
            whole.join(each)
        sums = _figures(self._accounts)
        asked, rate = sums["with_deadline"], 1 / span.seconds if span.seconds else 0.0
        values = sums["counted"] * rate, sums["counted_in_time"] * rate
        return rates_of(whole, span, (*values, sums["attained"] / asked if asked else None), relaxation_in(latency))

    def _came(self, apart: Mapping[str, Traffic], traffic: Traffic) -> int:
        """How many requests came of all tenants of one part of the machine."""
        counts = (each.counts for each in self._accounts if apart.get(each.entry.name) is traffic)
        return sum(each["requests"] + each["rejected"] for each in counts)

    def models(self) -> dict[str, Tenant]:
        """Give the counts of all tenants with the same model together, by the model's name, in the order of names."""
        self._count()
        by_model: dict[str, list[_Account]] = {}
        for each in self._accounts:
            if each.counts["requests"] or each.counts["rejected"]:
                by_model.setdefault(each.entry.model, []).append(each)
        return {
            name: Tenant(name=name, model=name, **_figures(group), slowdown=_turnaround(group))
            for name, group in sorted(by_model.items())
        }


def _figures(group: Sequence[_Account]) -> dict[str, Any]:
    """The counts of several tenants together."""
    return {name: sum(each.counts[name] for each in group) for name in _COUNTS}


def _tenant(account: _Account, known: tuple[Distribution, Distribution] | None, seconds: float) -> Tenant:
    counts, rate, entry = account.counts, 1 / seconds if seconds else 0.0, account.entry
    return Tenant(
        name=entry.name,
        model=entry.model,
        clients=entry.clients,
        **_figures([account]),
        throughput_per_second=counts["counted"] * rate,
        goodput_per_second=counts["counted_in_time"] * rate,
        latency=None if known is None else known[0],
        wait=None if known is None else known[1],
        slowdown=_turnaround([account]),
        progress=account.progress / _PROGRESS / account.compared if account.compared else None,
    )


#: Ratios are summed in units of 2^-20: whole numbers, so that no grouping of requests changes the sum.
_UNIT = 2**20
#: How many jobs that never stall are looked back at on each core.
_REMEMBERED = 4096
#: No more remarks than this.
_SAID = 4


class Sharing:
    """Measures how much longer requests take on cores where threads share a unit, and which jobs that is due to.

    A job that never stalls keeps a coarse-grained unit from its first tile to its end: for about as long as it takes
    alone, right before it finishes. So a request was kept out, at least, in those cycles of all other such jobs that
    ended in its time.

    coarse: the coarse-grained cores that have several threads, by number.
    """

    def __init__(self, coarse: Mapping[int, int]) -> None:
        self.coarse = dict(coarse)
        #: By core: finishes, cycles alone and tenants of the last jobs that never stall.
        self._past = {core: np.zeros((3, 0), dtype=np.int64) for core in self.coarse}
        #: By core: for how long each tenant's jobs that never stall have had the unit.
        self._held = {core: Counter[int]() for core in self.coarse}
        #: By tenant and core: the number of requests, and sums over them: service time / cycles alone; cycles beyond
        #: those alone; of the cycles beyond, those in which the request was kept out.
        self._sums: dict[tuple[int, int], Ints] = {}

    def take(self, places: Ints, rows: Rows) -> None:
        """Count these requests; `places`: the indices of their tenants, shape [requests]."""
        for core in self.coarse:
            own = np.flatnonzero((rows.core == core) & rows.served & (rows.alone > 0))
            if len(own):
                self._take(core, places[own], rows.of(own))

    def _take(self, core: int, places: Ints, rows: Rows) -> None:
        """Count requests of one core."""
        keeps = rows.stalls == 0
        more = np.stack([rows.finish[keeps], rows.alone[keeps], places[keeps]])
        past = np.concatenate([self._past[core], more], axis=1)
        service = rows.finish - rows.start - rows.paused
        longer = np.maximum(service - rows.alone, 0)
        ratio = np.rint(service / rows.alone * _UNIT).astype(np.int64)
        for place in np.unique(places).tolist():
            own = places == place
            held = np.minimum(_kept_out(past, place, rows.start[own], rows.finish[own]), longer[own])
            sums = [int(own.sum()), sum_of(ratio[own]), sum_of(longer[own]), sum_of(held)]
            self._sums[place, core] = self._sums.get((place, core), np.zeros(4, dtype=object)) + np.array(sums, object)
            self._held[core][place] += sum_of(rows.alone[own & keeps])
        self._past[core] = past[:, -_REMEMBERED:]

    def remarks(self, names: Sequence[str]) -> tuple[str, ...]:
        """Give a sentence or two for each core where jobs that never stall hold up another tenant.

        That is where a tenant takes longer than equal shares of the unit could explain (more than 2 and more than the
        core's threads times as long as alone), at least half of it while such jobs of others had the unit.
        """
        worst: dict[int, tuple[float, int, int]] = {}
        for (place, core), (number, ratios, longer, held) in self._sums.items():
            ratio = ratios / _UNIT / number
            if ratio <= max(2, self.coarse[core]) or 2 * held < longer:
                continue
            keeper = max((each for each in self._held[core].items() if each[0] != place), key=lambda each: each[1])[0]
            worst[keeper] = max(worst.get(keeper, (0.0, 0, 0)), (ratio, -core, -place))
        ranked = sorted(worst.items(), key=lambda each: (-each[1][0], each[0]))[:_SAID]
        return tuple(
            self._sentence(names[keeper], names[-place], ratio, -core) for keeper, (ratio, core, place) in ranked
        )

    def _sentence(self, name: str, other: str, ratio: float, core: int) -> str:
        return (
            f"{name} never stalls: on core {core}, whose {self.coarse[core]} threads are coarse-grained, it keeps the "
            f"others out while it runs. There {other} takes {ratio:.3g} times as long from its start to its finish as "
            f"alone, mostly because of such jobs."
        )


def _kept_out(past: Ints, place: int, start: Ints, finish: Ints) -> Ints:
    """In how many cycles from its start to its finish each request waited for jobs of others that never stall."""
    ends, alone, whose = past
    cycles = np.where(whose == place, 0, alone)
    until = np.searchsorted(ends, finish, side="left")
    since = np.maximum(np.searchsorted(ends, start, side="right"), until - _REMEMBERED)
    sums = np.concatenate([[0], np.cumsum(cycles)])
    total: Ints = np.where(until > since, sums[until] - sums[np.minimum(since, until)], 0)
    # The first of these jobs may have begun before the request started.
    first = np.minimum(since, max(0, len(ends) - 1))
    before = np.maximum(cycles[first] - (ends[first] - start), 0) if len(ends) else 0
    return total - np.where(until > since, before, 0)
