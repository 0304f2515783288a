"""The search as a whole: the best array for all jobs at one EP, and for each model of a mix at an EP of its own.

For a mix the hardware is one array of NPE multipliers whose trees have `tree_inputs` leaves; CAT-n sets EP to
`tree_inputs`, `/2`, ... `/n`, and VP to NPE // EP, of which a model uses min(Hw, VP) (column-wise LSTM patent). Among
trees with equal sums of cycles the one with the smallest CAT is sufficient.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lstmsim.base.bounds import MAX_PES
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import refuse_if_read
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.machines.registry import KINDS, capability, target_of
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Scenario
from lstmsim.studies.search.array import Score, Scores, Searched, doublings, least_of, widest_vp
from lstmsim.studies.search.request import SearchRequest
from lstmsim.studies.search.result import CatChoice, Found, Mix, ModelChoice, Point, Refused, SearchResult
from lstmsim.studies.search.strategies import best_of_every, count_pairs, walk
from lstmsim.studies.shared.loading import file_or_data
from lstmsim.studies.shared.request import Path, takes
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.studies.sweep.ahead import Workers
from lstmsim.studies.sweep.run import made_folder, table_stem
from lstmsim.studies.sweep.store import Store

#: EP -> the point of one model with the widest VP, or why there is none.
AtEp = Callable[[int], Point | Refused]


def reachable(tree_inputs: int, cat: int) -> tuple[int, ...]:
    """List the EPs of an adder tree with CAT-`cat`, the largest first.

    >>> reachable(64, 4), reachable(24, 16)
    ((64, 32, 16), (24, 12, 6, 3))
    """
    shifts = range(cat.bit_length())
    return tuple(tree_inputs >> shift for shift in shifts if tree_inputs % (1 << shift) == 0)


def best_tree(cat: int, trees: Sequence[int], models: Sequence[AtEp]) -> CatChoice | None:
    """Find the tree on which the models take the fewest cycles in sum, each alone and at its best reachable EP."""
    choices = []
    for tree in trees:
        points = [_best(at, reachable(tree, cat)) for at in models]
        own = [each for each in points if each is not None]
        if len(own) == len(models):
            eps = tuple(each.ep for each in own)
            choices.append(CatChoice(cat, tree, eps, sum(each.cycles for each in own)))
    return min(choices, key=lambda each: (each.cycles, each.tree_inputs), default=None)


def trees_for(eps: Iterable[int], powers: Sequence[int]) -> tuple[int, ...]:
    """List the inputs of the trees to try: all of `powers`, and the models' choices times powers of two up to these.

    Where EPs are powers of two, no other tree has any of them.
    """
    most = max(powers)
    larger = {ep << shift for ep in eps for shift in range(most.bit_length()) if ep << shift <= most}
    return tuple(sorted({*powers, *larger, *eps}))


def cat_choices(
    eps: Sequence[int], models: Sequence[AtEp], trees: Sequence[int]
) -> tuple[CatChoice | None, tuple[CatChoice, ...]]:
    """Find the least CAT-n with a tree on which the models take no more cycles in sum than with their own choices."""
    own = [at(ep) for at, ep in zip(models, eps, strict=True)]
    enough = sum(each.cycles for each in own if isinstance(each, Point))
    every = []
    # As long as a tree of that many inputs can be cut so often.
    for cat in (1 << power for power in range(max(eps).bit_length())):
        choice = best_tree(cat, trees, models)
        if choice is not None:
            every.append(choice)
            if choice.cycles <= enough:
                return choice, tuple(every)
    return None, tuple(every)


def _best(at: AtEp, eps: Sequence[int]) -> Point | None:
    """The best point of a model among some EPs; None if it runs at none of them."""
    points = [each for each in map(at, eps) if isinstance(each, Point)]
    return min(points, key=lambda each: each.key, default=None)


#: A job that every core can run.
_TRIVIAL = {"model": {"layers": [{"cell": "dense", "hidden": 1, "input": 1}]}, "steps": 1}


def load_for_search(source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario whose EP and VP need not fit its jobs, because a search replaces them."""
    try:
        return load_scenario(source, overrides)
    except InputError as error:
        try:
            # First the chip is read without its jobs, then the jobs with a chip that runs all that any array can run.
            trivial = [f"jobs={json.dumps([_TRIVIAL])}", "precision.calibration=null"]
            chip = load_scenario(source, [*overrides, *trivial]).chip
            array = capability(chip.kind, "array_search")
            if array is None:
                raise error from None
            core = array.widest_core(len(chip.cores), MAX_PES)
            stand_in = {"kind": chip.kind, "frequency_mhz": chip.frequency_mhz, "cores": [core]}
            scenario = load_scenario(source, [*overrides, f"chip={json.dumps(stand_in)}"])
        except InputError:
            raise error from None
    return replace(scenario, chip=chip)


class _Search:
    """Options of a search, and its simulations, counted against a bound that is known before."""

    def __init__(self, request: SearchRequest, workers: Workers, store: Store | None) -> None:
        self.exhaustive, self.any_ep, self.show = request.exhaustive, request.any_ep, request.progress
        self.workers, self.store = workers, store
        self.done = self.total = 0

    def expect(self, searched: Searched) -> None:
        """Raise the bound by what these jobs take at most."""
        limits, npe = searched.limits, searched.npe
        every = count_pairs(limits, npe, self.any_ep) if self.exhaustive else len(doublings(limits, npe))
        self.total += every

    def tick(self) -> None:
        self.done = min(self.done + 1, self.total)
        if self.show is not None:
            self.show(self.done, self.total)

    def skip(self, simulations: int) -> None:
        """Note that so many simulations will not be needed."""
        self.total = max(self.done, self.total - simulations)

    def scores(self, searched: Searched) -> Score:
        """Make the function that simulates pairs, and counts each."""
        return Scores(searched, self.tick, self.workers, self.store)

    def find(self, searched: Searched, score: Score) -> Found:
        """Search greedily, and among all pairs if asked for."""
        limits, npe = searched.limits, searched.npe
        walked = walk(limits, npe, score, self.any_ep)
        if not self.exhaustive:
            return Found(walked, None)
        return Found(walked, best_of_every(limits, npe, score, least_of(searched), self.any_ep, skip=self.skip))


@takes(SearchRequest)
def search(request: SearchRequest) -> SearchResult:
    """Search the best (EP, VP) of `npe` multipliers for a scenario's jobs: fewest cycles until all are finished.

    Of several models, each is searched alone as well. All other parameters of the chip stay. No result depends on the
    number of processes.

    >>> jobs = [{"model": "lstm-512", "steps": 25}]
    >>> search({"chip": "column-npu-64k", "jobs": jobs}, 65536).common.walk.chosen.ep
    32
    """
    scenario, npe = request.scenario, int(request.npe)
    if not isinstance(scenario, Scenario):
        scenario = load_for_search(file_or_data(scenario), tuple(request.overrides))
    searched = _searched(scenario, npe, None if request.core is None else int(request.core))
    able = [job.model for job in searched.jobs if job.may_use(searched.cores)]
    models = list(dict.fromkeys(able))
    alone = [_alone(searched, model) for model in models] if len(models) > 1 else []
    with _store(request.folder, searched) as store, Workers(request.jobs) as workers:
        run = _Search(request, workers, store)
        for each in [searched, *alone]:
            run.expect(each)
        common = run.find(searched, run.scores(searched))
        mix = _mix(models, alone, common, run) if alone else None
    return SearchResult(
        scenario=scenario.name,
        chip=searched.chip.name,
        cores=searched.cores,
        npe=npe,
        any_ep=request.any_ep,
        jobs=len(searched.jobs),
        models=tuple(model.name for model in models),
        rows=searched.limits.rows,
        common=common,
        mix=mix,
        stamp=stamp_of_scenario(scenario, [f"chip.cores.{key}" for key in ("npe", "ep", "vp")]),
    )


@contextmanager
def _store(folder: Path | None, searched: Searched) -> Iterator[Store | None]:
    """The open store of a sweep's folder; `InputError` where its numbers, which are of whole chips, are no help."""
    if folder is None:
        yield None
        return
    if len(searched.cores) < len(searched.chip.cores):
        raise InputError(Mistake("folder", "keeps numbers of whole chips, not of one core of several: leave it out"))
    path = f"{table_stem(os.fspath(folder), None)}.sqlite"
    refuse_if_read(path)
    with made_folder(os.fspath(folder)), Store(path, create=True) as store:
        yield store


def _searched(scenario: Scenario, npe: int, core: int | None) -> Searched:
    """Check what is asked for, and put it together; `InputError` for mistakes."""
    chip = scenario.chip
    if capability(chip.kind, "array_search") is None:
        able = [kind for kind in KINDS if capability(kind, "array_search") is not None]
        text = f"is of kind {chip.kind!r}, which has no EP and VP; expected a {' or '.join(able)}"
        raise InputError(Mistake(f"chip {chip.name}", text))
    if target_of(chip.kind).reads_numbers(chip):
        text = "its cycles depend on data, for which nothing is proved: vary EP and VP in a sweep"
        raise InputError(Mistake(f"chip {chip.name}", text))
    searched = Searched(chip, scenario.jobs, _cores(chip, core), npe)
    if not any(job.may_use(searched.cores) for job in scenario.jobs):
        raise InputError(Mistake("core", f"no job may run on core {core}: all are bound to others"))
    for job in scenario.jobs:
        if job.settled(len(chip.cores)).split:
            raise InputError(Mistake(f"job {job.name}: split", "a search has one core for each job: leave it out"))
        if job.may_leave:
            text = "a search needs all jobs to finish: leave queue_limit and patience out"
            raise InputError(Mistake(f"job {job.name}", text))
    if npe < 1:
        raise InputError(Mistake("npe", f"must be at least 1, got {npe}"))
    if npe > MAX_PES:
        raise InputError(Mistake("npe", f"must be at most {MAX_PES:,}, as in a chip's file, got {npe:,}"))
    gates = searched.limits.gates
    if npe < gates:
        text = f"must be at least {gates}, the gates of one unit of the largest cell, got {npe}"
        raise InputError(Mistake("npe", text))
    return searched


def _cores(chip: Chip, core: int | None) -> tuple[int, ...]:
    """The numbers of the searched cores; `InputError` for a core that does not exist, or for several unequal cores."""
    count = len(chip.cores)
    if core is not None and not 0 <= core < count:
        raise InputError(Mistake("core", f"there is no core {core}; the chip has {count} (0 to {count - 1})"))
    if core is None and len(set(chip.cores)) > 1:
        text = f"the {count} cores of chip {chip.name} are not equal; say which one is searched (0 to {count - 1})"
        raise InputError(Mistake("core", text))
    return tuple(range(count)) if core is None else (core,)


def _alone(searched: Searched, model: Model) -> Searched:
    """The jobs of one model only, the first of which arrives at cycle 0; they still come after others of that model."""
    kept = [number for number, job in enumerate(searched.jobs) if job.model == model]
    index = {number: position for position, number in enumerate(kept)}
    jobs = [searched.jobs[number] for number in kept]
    after = [None if job.after is None else index.get(job.after) for job in jobs]
    first = min(job.arrival for job, before in zip(jobs, after, strict=True) if before is None)
    moved = [
        replace(job, arrival=job.arrival - (first if before is None else 0), after=before)
        for job, before in zip(jobs, after, strict=True)
    ]
    return replace(searched, jobs=tuple(moved))


def _mix(models: list[Model], alone: list[Searched], common: Found, run: _Search) -> Mix:
    """Search for each model of several its own EP, and for the least CAT-n that gives all of these."""
    chosen = common.walk.chosen
    choices, at_ep = [], []
    for model, own in zip(models, alone, strict=True):
        score = run.scores(own)
        at_common = score(chosen.ep, chosen.vp)
        # A part of the jobs that have just run on this array can run there too.
        assert isinstance(at_common, Point)
        choices.append(ModelChoice(model.name, len(own.jobs), run.find(own, score), at_common.cycles))
        at_ep.append(_at_ep(own, score))
    eps = [each.found.walk.chosen.ep for each in choices]
    trees = trees_for(eps, max((doublings(own.limits, own.npe) for own in alone), key=len))
    return Mix(tuple(choices), *cat_choices(eps, at_ep, trees), trees)


def _at_ep(searched: Searched, score: Score) -> AtEp:
    """The function that simulates a model's jobs at an EP, with the widest VP."""
    limits, npe = searched.limits, searched.npe
    return lambda ep: score(ep, widest_vp(limits, npe, ep)[0])
