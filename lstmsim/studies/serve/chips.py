"""The rate that each of several chips can bear under the same bounds: one search for each chip and bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.files.scenario.requests import batch_overrides, load_requests
from lstmsim.model.scenario import Scenario
from lstmsim.report.document import Column, Document, Grid, Section, remark
from lstmsim.report.results import Forms, Table, plain
from lstmsim.report.stamp import Stamp
from lstmsim.studies.fit.device import device_of
from lstmsim.studies.fit.energy import energy
from lstmsim.studies.serve.kept import Kept
from lstmsim.studies.serve.load_latency import Asked, key_of, override_of
from lstmsim.studies.serve.programs import alone
from lstmsim.studies.serve.request import SaturateChipsRequest
from lstmsim.studies.serve.saturate import saturate
from lstmsim.studies.serve.saturation import Saturation
from lstmsim.studies.shared.loading import Path, drawn_anew, load_chip
from lstmsim.studies.shared.request import names_of, takes, told_apart
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.studies.sweep.ahead import Ahead, Workers
from lstmsim.studies.sweep.processes import processors

#: To be raised when a rate is searched, or kept, in another way than before.
_FORMAT = "lstmsim saturate chip 3"
#: A chip (None: the scenario's own) and a largest batch (None: the file's).
_Case = tuple[str | None, int | None]


@dataclass(frozen=True)
class ChipRate:
    """The answer of one chip for one bound and one largest batch.

    chip: the chip's name.
    bound_ms: the bound on the percentile, in ms.
    rate: the highest rate that certainly keeps it, in requests per second; None: none was found.
    fails_from: the lowest rate that certainly does not; None: none was found.
    limit: what limits the rate, in words.
    bound_per_second: the most requests per second that the chip can possibly do.
    rejects: whether requests may be rejected; then bounds may be kept above `bound_per_second`, too.
    batch: the most requests of a batch; None: as the scenario says.
    requests, percentile_ms, half_width_ms: of the run at `rate`, its requests, the percentile and its 95 % interval.
    simulated: requests of the longest run of each rate that was tried, together.
    alone_ms: the latency of the longest request alone.
    device: the FPGA on which the chip was built, if that is known; else empty.
    energy_nj: of a request that runs alone, on average, relative (docs of `lstmsim fit`); None: not known of this
        machine.
    reason: why the chip has no answer; empty: it has one.
    ended: as that of a `Saturation`.
    """

    chip: str
    bound_ms: float
    rate: float | None = None
    fails_from: float | None = None
    limit: str = ""
    bound_per_second: float | None = None
    alone_ms: float | None = None
    device: str = ""
    energy_nj: float | None = None
    reason: str = ""
    rejects: bool = False
    batch: int | None = None
    requests: int = 0
    percentile_ms: float | None = None
    half_width_ms: float | None = None
    simulated: int = 0
    ended: str = "done"

    @property
    def called(self) -> str:
        """The chip with its largest batch."""
        return self.chip if self.batch is None else f"{self.chip}, batch {self.batch}"

    @property
    def ceiling(self) -> float | None:
        """A rate that the chip certainly does not bear; None: none is known."""
        return self.fails_from if self.fails_from is not None or self.rejects else self.bound_per_second


@dataclass(frozen=True)
class ChipRates(Table, forms="lstmsim.studies.serve.chips"):
    """The rates of several chips, bound by bound.

    percentile: the percentile that keeps the bounds.
    rates: the answers, those of a bound one after the other, in the order in which the chips were named.
    remarks: what the chips say of the jobs.
    """

    scenario: str
    percentile: float
    rates: tuple[ChipRate, ...]
    remarks: tuple[str, ...] = ()
    stamps: tuple[Stamp, ...] = field(default=(), compare=False, repr=False)

    @property
    def bounds_ms(self) -> tuple[float, ...]:
        """The bounds, ascending."""
        return tuple(sorted({each.bound_ms for each in self.rates}))

    def at(self, bound_ms: float) -> tuple[ChipRate, ...]:
        """Give the answers for one bound."""
        return tuple(each for each in self.rates if each.bound_ms == bound_ms)

    def best(self, bound_ms: float) -> ChipRate | None:
        """Give the answer of the chip that certainly bears the most, with the batch at which it was seen to.

        None: that cannot be told. Another batch of the same chip may bear more; where one chip alone runs the jobs, its
        batches are told apart.
        """
        answers = [each for each in self.at(bound_ms) if not each.reason]
        first = max(answers, key=lambda each: each.rate or 0.0, default=None)
        if first is None or first.rate is None:
            return None
        others = [each for each in answers if each.chip != first.chip]
        others = others or [each for each in answers if each is not first]
        below = all(each.ceiling is not None and each.ceiling <= first.rate for each in others)
        return first if others and below else None


@takes(SaturateChipsRequest)
def saturate_chips(request: SaturateChipsRequest) -> ChipRates:
    """Find the highest rate of requests at which each of several chips keeps a bound: `saturate`, chip by chip.

    The scenario's own chip is the first. Every chip has the same requests; keys of jobs that stand under `on` are those
    of the chip. With `batches` each chip has an answer for each of them: `batching.max_batch_size` of all jobs. A chip
    that cannot run the jobs, or not in such batches, has its reason. No number depends on the processes.

    `InputError` as for `saturate`, and where no chip can run the jobs.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "arrival": arrival}]
    >>> scenario = {"chip": "column-npu-16k", "jobs": jobs}
    >>> found = saturate_chips(scenario, 0.01, ["column-npu-64k"], tolerance=0.2, most_requests=5000)
    >>> [each.chip for each in found.rates], found.rates[1].rate > 1e5
    (['column-npu-16k', 'column-npu-64k'], True)
    """
    scenario = drawn_anew(request.scenario)
    named = names_of(request.chips)
    refuse(Mistake(f"chip {name}", "is named twice") for name in dict.fromkeys(named) if named.count(name) > 1)
    chips: list[str | None] = [None, *named]
    sizes: list[int | None] = [*request.batches] or [None]
    refuse(Mistake(f"batch {size}", "is named twice") for size in dict.fromkeys(sizes) if sizes.count(size) > 1)
    bounds = sorted({request.bound_ms, *request.also_ms})
    asked = request.percentile, request.tolerance, request.most_requests, request.effort
    search = _Search(scenario, tuple(request.overrides), *asked)
    cases = list(product(chips, sizes))
    loaded = {case: _loaded(search, *case) for case in cases}
    if all(isinstance(each, str) for each in loaded.values()):
        raise InputError([Mistake(str(chip or "chip"), str(why)) for (chip, _), why in loaded.items()])
    names = _names(chips, loaded)
    store = Kept[ChipRate](request.folder, "chips", _FORMAT, "rate", asdict, lambda data: ChipRate(**data))
    rates = list[ChipRate]()
    keys = [(bound, *case) for bound, case in product(bounds, cases)]
    known = {key: store.read(search.key(*key)) for key in keys if not isinstance(loaded[key[1:]], str)}
    wanted = [key for key, rate in known.items() if rate is None]
    with Workers(processors() if request.jobs is None else request.jobs) as workers:
        run = Ahead(partial(_rate_of, search), workers)
        run.expect(wanted)
        for done, key in enumerate(keys):
            if request.progress is not None:
                request.progress(done, len(keys))
            bound, chip, size = key
            on = loaded[chip, size]
            if isinstance(on, str):
                rates.append(ChipRate(names[chip], bound, reason=on, batch=size))
                continue
            rate = known[key]
            if rate is None:
                rate = run(*key)
                store.write(search.key(*key), rate)
            rates.append(replace(rate, chip=names[chip]))
    scenarios = {case: each for case, each in loaded.items() if isinstance(each, Scenario)}
    remarks = dict.fromkeys(f"{names[chip]}: {text}" for (chip, _), each in scenarios.items() for text in each.remarks)
    first = {chip: each for (chip, _), each in reversed(scenarios.items())}
    stamps = [replace(stamp_of_scenario(first[chip]), chip=names[chip]) for chip in chips if chip in first]
    name = next(iter(scenarios.values())).name
    return ChipRates(name, request.percentile, tuple(rates), tuple(remarks), tuple(stamps))


def _names(chips: Sequence[str | None], loaded: Mapping[_Case, Scenario | str]) -> dict[str | None, str]:
    """What each chip is called, the scenario's own (None) among them."""
    known = {chip: each.chip.name for (chip, _), each in loaded.items() if isinstance(each, Scenario)}
    return dict(zip(chips, told_apart([known.get(each, each or "the file's chip") for each in chips]), strict=True))


@dataclass(frozen=True)
class _Search:
    """What is asked of every chip."""

    scenario: Path | Mapping[str, Any]
    overrides: tuple[str, ...]
    percentile: float
    tolerance: float
    most_requests: int | None
    effort: float | None

    def changes(self, chip: str | None, batch: int | None) -> tuple[str, ...]:
        """The overrides with a chip and a largest batch."""
        changes = (*self.overrides, *override_of(chip))
        return changes if batch is None else (*changes, *batch_overrides(self.scenario, changes, batch))

    def key(self, bound: float, chip: str | None, batch: int | None) -> str:
        """A name of all that decides an answer."""
        own = key_of(Asked(self.scenario, self.changes(chip, batch), self.most_requests or 0, 0))
        return f"{own}-{batch}-{bound!r}-{self.percentile!r}-{self.tolerance!r}-{self.effort!r}"


def _loaded(search: _Search, chip: str | None, batch: int | None) -> Scenario | str:
    """The scenario on a chip, its jobs as requests; or why the chip cannot run them. An unknown chip is a mistake."""
    if chip is not None:
        load_chip(chip)
    else:
        # what is wrong in the file itself is a mistake
        load_requests(search.scenario, search.overrides, 1)
    try:
        return load_requests(search.scenario, search.changes(chip, batch), 1).scenario
    except InputError as error:
        return "; ".join(map(str, error.mistakes))


def _rate_of(search: _Search, bound: float, chip: str | None, batch: int | None) -> ChipRate:
    """The answer of one chip."""
    changes = search.changes(chip, batch)
    scenario = load_requests(search.scenario, changes, 1).scenario
    name, clock = scenario.chip.name, scenario.chip.frequency_mhz * 1e3
    device = device_of(name) or ""
    try:
        longest = max(alone(scenario.chip, job).latency_cycles for job in scenario.jobs) / clock
        found = saturate(
            search.scenario,
            bound,
            percentile=search.percentile,
            tolerance=search.tolerance,
            most_requests=search.most_requests,
            effort=search.effort,
            overrides=changes,
        )
    except InputError as error:
        return ChipRate(name, bound, device=device, reason="; ".join(map(str, error.mistakes)), batch=batch)
    at = next((each for each in found.runs if each.rate == found.rate), None)
    return ChipRate(
        name,
        bound,
        found.rate,
        found.fails_from,
        _limit(found, bound, longest),
        found.bound_per_second,
        longest,
        device,
        _energy(scenario),
        rejects=any(job.may_leave for job in scenario.jobs),
        batch=batch,
        requests=at.requests if at else 0,
        percentile_ms=at.percentile_ms if at else None,
        half_width_ms=at.half_width_ms if at else None,
        simulated=sum(each.requests for each in found.runs),
        ended=found.ended,
    )


def _limit(found: Saturation, bound: float, longest: float) -> str:
    """What keeps the rate from being higher."""
    if found.rate is None and longest > bound:
        return f"a request alone takes {longest:.3g} ms"
    failed = [each for each in found.runs if each.rate == found.fails_from]
    resource = min(found.limits_per_second.items(), key=lambda item: item[1], default=("", 0.0))[0]
    if failed and failed[0].verdict == "unstable" and found.ended == "effort":
        return "cannot tell: the CPU seconds are used up"
    if failed and failed[0].verdict == "unstable":
        return "no faster from a backlog" if resource == "saturated" else f"{resource} used up"
    if found.rate is None or found.fails_from is None:
        return "cannot tell"
    share = 100 * found.rate / (found.bound_per_second or found.rate)
    return f"waiting, at {share:.0f} % of the most that it can possibly do"


def _energy(scenario: Scenario) -> float | None:
    """The energy of a request on average, in nJ; None where it is not known."""
    total = weights = 0.0
    for job in scenario.jobs:
        offer = scenario.offers[job.tenant]
        weight = offer.rate_per_second * dict(offer.lengths).get(job.steps, 1.0)
        try:
            each = energy(scenario.chip, job.model, job.steps, scenario.precision, batch=job.batch)
        except InputError:
            return None
        total, weights = total + weight * each.total_nj, weights + weight
    return total / weights if weights else None


def _headline(found: ChipRates) -> str:
    """Which chip bears the most at each bound, where that can be told."""
    sentences = []
    for bound in found.bounds_ms:
        best, name = found.best(bound), f"a p{found.percentile:g} of {bound:g} ms"
        if best is not None:
            size = "" if best.batch is None else f" in batches of up to {best.batch}"
            sentences.append(f"{best.chip} certainly bears the most under {name}: {best.rate:,.0f} requests/s{size}")
            continue
        most = max((each.rate or 0.0 for each in found.at(bound)), default=0.0)
        if not most:
            sentences.append(f"no chip is known to keep {name} at any rate")
            continue
        if sum(not each.reason for each in found.at(bound)) == 1:
            only = next(each for each in found.at(bound) if not each.reason)
            sentences.append(f"only {only.called} runs the jobs; under {name} it bears {only.rate:,.0f} requests/s")
            continue
        rivals = [each.called for each in found.at(bound) if each.rate == most or _may_bear(each, most)]
        sentences.append(f"under {name} it cannot be told which of {', '.join(rivals)} bears the most")
    return "; ".join(sentences)


def _may_bear(each: ChipRate, most: float) -> bool:
    return not each.reason and (each.ceiling is None or each.ceiling > most)


def _whole(value: str | int | float | None) -> str:
    return f"{float(value or 0):,.0f}"


def document(found: ChipRates) -> Document:
    """Show the chips, bound by bound."""
    batches = any(each.batch is not None for each in found.rates)
    columns = (
        Column("chip", left=True),
        *[Column("batch", meaning="the most requests of a batch")] * batches,
        Column("bound ms", key="bound_ms", meaning=f"the bound on the p{found.percentile:g} of all latencies"),
        Column(
            "keeps /s", key="rate", form=lambda rate: f"{rate:,.0f}", meaning="the highest rate that certainly keeps"
        ),
        Column("requests", meaning="requests of the run that shows that `keeps` is kept"),
        Column("fails from /s", key="fails_from", form=lambda rate: f"{rate:,.0f}"),
        Column("at most /s", key="bound_per_second", form=lambda rate: f"{rate:,.0f}"),
        Column("alone ms", key="alone_ms", digits=4, meaning="the longest request alone on the chip"),
        Column("nJ", key="energy_nj", form=_whole),
        Column("device", left=True),
        Column("what limits it", key="limit", left=True),
    )
    rows = [
        (
            each.chip,
            *[each.batch] * batches,
            each.bound_ms,
            each.rate,
            each.requests or None,
            each.fails_from,
            each.bound_per_second,
            each.alone_ms,
            each.energy_nj,
            each.device or None,
            "cannot run it" if each.reason else each.limit,
        )
        for each in found.rates
    ]
    said = [f"{each.called}: {each.reason}" for each in found.rates if each.reason]
    stopped = sum(each.ended == "effort" for each in found.rates)
    said += [f"searches that ended with their CPU seconds: {stopped}; --effort allows more seconds"] * bool(stopped)
    whole = sum(each.simulated for each in found.rates)
    said.append(
        f"{whole:,} requests were simulated, of each rate the longest run. `requests`: so many had the run by whose "
        f"95 % interval the p{found.percentile:g} at `keeps` is below the bound"
    )
    said.append(
        "nJ: of a request that runs alone, relative, by a table of energies for 45 nm; a machine without a count of "
        "its hardware has none. Devices: on which FPGA a chip was built, where that is known. A rate says nothing of "
        "what a chip costs"
    )
    remarks = (remark(text, 2) for text in dict.fromkeys(said))
    return Document.of(f"{_headline(found)}.", Section.of(Grid(columns, tuple(rows), repeated=2)), Section.of(*remarks))


def _data(found: ChipRates) -> dict[str, Any]:
    """Plain data of schema `lstmsim/saturation-chips/1`; rates per second, latencies in ms."""
    best = {f"{bound:g}": None if (one := found.best(bound)) is None else one.chip for bound in found.bounds_ms}
    return {
        "schema": "lstmsim/saturation-chips/1",
        "scenario": found.scenario,
        "percentile": found.percentile,
        "best": best,
        "rates": plain(found.rates),
        "remarks": list(found.remarks),
    }


def _records(found: ChipRates) -> Sequence[Mapping[str, Any]]:
    return [{**asdict(each), "called": each.called} for each in found.rates]


FORMS = Forms(
    _data,
    document,
    _records,
    axes=lambda found: ("bound_ms", "rate", "called", "line"),
    picture="lstmsim.studies.serve.chips_picture:plot_saturation",
)
