"""Requests per second that designs bear under a bound on their latencies: the searches and verdicts of `saturate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import inf, nextafter
from typing import Any, NamedTuple

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.requests import load_requests, rates_of
from lstmsim.machines.bounds import Column
from lstmsim.model.scenario import Job
from lstmsim.studies.design.bounds.jobs import most_per_second
from lstmsim.studies.design.request import BEARS, DesignRequest
from lstmsim.studies.design.space import Box, Space
from lstmsim.studies.serve.kept import Kept
from lstmsim.studies.serve.load_latency import Asked, key_of
from lstmsim.studies.serve.saturate import judge_rate, saturate
from lstmsim.studies.shared.loading import Path, drawn_anew
from lstmsim.studies.sweep.ahead import Ahead, Workers
from lstmsim.studies.sweep.processes import processors

#: To be raised when a rate is searched, or kept, in another way than before.
_FORMAT = "lstmsim design rate 2"


class Borne(NamedTuple):
    """What a design bears, in requests per second.

    rate: the highest rate that it certainly keeps; None: not known, or not asked.
    ceiling: the lowest rate that it certainly does not keep; None: not known, or not asked.
    keeps: whether it keeps the rate of `--at-rate`; None: that cannot be told, or was not asked.
    """

    rate: float | None
    ceiling: float | None
    keeps: bool | None

    @property
    def hope(self) -> float:
        """The highest rate that it may keep."""
        return inf if self.ceiling is None else nextafter(self.ceiling, 0)


class Question(NamedTuple):
    """What is asked of every design.

    overrides: what is set in all of them.
    searched: whether the highest rate is sought.
    """

    scenario: Path | Mapping[str, Any]
    overrides: tuple[str, ...]
    bound_ms: float
    percentile: int
    requests: int
    at_rate: float | None
    searched: bool

    def answer(self, settings: Sequence[str], beat: float | None) -> Borne:
        """Ask one design; beat: a rate that another one keeps, so that less is not worth a search."""
        try:
            return self._answer((*self.overrides, *settings), beat)
        except InputError:
            # of this chip alone: other arrivals are more than it can do, or its load is not known
            return Borne(None, None, None)

    def _answer(self, changes: Sequence[str], beat: float | None) -> Borne:
        asked: dict[str, Any] = {"percentile": self.percentile, "most_requests": self.requests, "overrides": changes}
        keeps = None
        if self.at_rate is not None:
            keeps = judge_rate(self.scenario, self.bound_ms, self.at_rate, **asked).kept
        if not self.searched or keeps is False:
            return Borne(None, self.at_rate, keeps)
        if beat is not None and judge_rate(self.scenario, self.bound_ms, beat, **asked).kept is False:
            return Borne(None, beat, keeps)
        found = saturate(self.scenario, self.bound_ms, tolerance=0.01, **asked)
        return Borne(found.rate, found.fails_from, keeps)

    def key(self, settings: Sequence[str], beat: float | None) -> str:
        """A name of all that decides an answer."""
        own = key_of(Asked(self.scenario, (*self.overrides, *settings), self.requests, 0))
        return f"{own}-{self.bound_ms!r}-{self.percentile}-{self.at_rate!r}-{self.searched}-{beat!r}"


class Rates:
    """Answers by point, each searched once; those of a folder are kept there.

    known: by point what it was to beat, and the answer.
    mix: jobs, each with how many of them come for one request per second; 0: they come whatever the rates are.

    `InputError` for a scenario without rates.
    """

    def __init__(self, question: Question, space: Space, folder: Path | None, jobs: int | None) -> None:
        self.question, self.space, self.jobs = question, space, jobs
        self.known: dict[int, tuple[float | None, Borne]] = {}
        self.mix = _mix_of(question.scenario, question.overrides)
        self._kept = Kept[Borne](folder, "rates", _FORMAT, "borne", Borne._asdict, lambda data: Borne(**data))

    def most(self, box: Box) -> Column:
        """The most requests per second that points can keep."""
        return most_per_second(box, self.mix, self.question.bound_ms, self.question.percentile)

    def ask(self, points: Iterable[int], beat: float | None) -> None:
        """Ask points that were not asked yet; those that had something to beat are asked again without it."""
        missing = {}
        for point in points:
            before, borne = self.known.get(point, (inf, None))
            if borne is None or not (before in (None, beat) or borne.rate is not None):
                settings = self.space.settings(point)
                key = self.question.key(settings, beat)
                answer = self._kept.read(key)
                if answer is None:
                    missing[point] = settings, key
                else:
                    self.known[point] = beat, answer
        with Workers(processors() if self.jobs is None else self.jobs) as workers:
            run = Ahead(partial(Question.answer, self.question), workers)
            run.expect((settings, beat) for settings, _ in missing.values())
            for point, (settings, key) in missing.items():
                answer = run(settings, beat)
                self._kept.write(key, answer)
                self.known[point] = beat, answer


def rates_for(request: DesignRequest, space: Space, fixed: Sequence[str]) -> Rates | None:
    """The rates that a request asks for; None: none. fixed: what the space sets beside its keys."""
    if BEARS not in request.maximise and request.at_rate is None:
        return None
    assert request.bound_ms is not None, "checked before"
    question = Question(
        drawn_anew(request.scenario),
        (*fixed, *request.overrides),
        request.bound_ms,
        request.percentile,
        request.until,
        request.at_rate,
        BEARS in request.maximise,
    )
    return Rates(question, space, request.folder, request.jobs)


def _mix_of(scenario: Path | Mapping[str, Any], overrides: Sequence[str]) -> tuple[tuple[Job, float], ...]:
    """The mix; `InputError` for a scenario without rates."""
    rates = rates_of(scenario, overrides)
    requests = load_requests(scenario, overrides, 1)
    growing = {int(path.split(".")[1]) for path in rates.stated}
    mix = []
    for job, entry in zip(requests.scenario.jobs, requests.entries, strict=True):
        offer = requests.scenario.offers[job.tenant]
        part = dict(offer.lengths).get(job.steps, 1.0)
        mix.append((job, offer.rate_per_second * part / rates.per_second if entry in growing else 0.0))
    return tuple(mix)
