"""The score of an (EP, VP): the scenario is simulated on its chip with those numbers in the searched cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from lstmsim import engines, machines
from lstmsim.base.errors import InputError
from lstmsim.machines.arrays import ArraySearch
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Chip, Job, distinct_jobs
from lstmsim.program.cycles import CYCLE_NAMES
from lstmsim.studies.search.candidates import Limits, limits_of, widest_vp
from lstmsim.studies.search.result import Point, Refused

__all__ = ["Score", "Searched", "score_of"]

#: (EP, VP) -> the simulated point, or why there is none; the same pair is simulated once.
Score = Callable[[int, int], Point | Refused]


@dataclass(frozen=True)
class Searched:
    """What is searched: jobs on a chip some of whose cores get other arrays.

    chip: of a machine that has an array with EP and VP.
    jobs: what runs.
    cores: numbers of the cores whose EP and VP are searched.
    npe: multipliers that each of these cores gets.
    """

    chip: Chip
    jobs: tuple[Job, ...]
    cores: tuple[int, ...]
    npe: int

    @cached_property
    def distinct(self) -> tuple[Job, ...]:
        """The first job of each configuration: a chip runs or refuses such jobs alike."""
        return distinct_jobs(self.jobs)

    @cached_property
    def array(self) -> ArraySearch:
        """The chip's machine, as a search asks about it."""
        array = target_of(self.chip.kind).array_search()
        assert array is not None, "only such chips are searched"
        return array

    @cached_property
    def limits(self) -> Limits:
        """The limits of the models that may run on the searched cores."""
        able = [job.model for job in self.jobs if job.may_use(self.cores)]
        return limits_of(dict.fromkeys(able), self.array.tail_width(self.chip.cores[self.cores[0]]))

    def chip_with(self, ep: int, vp: int) -> Chip:
        """Give the chip with that array. Its adder trees are built for the EP: a CAT does not narrow the search."""
        cores = list(self.chip.cores)
        for index in self.cores:
            cores[index] = self.array.with_array(cores[index], self.npe, ep, vp)
        return replace(self.chip, cores=tuple(cores))  # type: ignore[type-var]


def simulate_pair(searched: Searched, ep: int, vp: int) -> Point | Refused:
    """Simulate one pair; a refusal by the chip or its lowering is returned, not raised."""
    runs = False
    try:
        chip = searched.chip_with(ep, vp)
        for job in searched.distinct:
            target_of(chip.kind).check(chip, job)
        runs = True
        program = machines.lower(chip, searched.jobs)
    except InputError as error:
        return Refused(ep, vp, "; ".join(map(str, error.mistakes)), too_large=runs)
    totals = engines.totals(program, check=False)
    cores: Sequence[int] = searched.cores
    makespan = totals.makespan_cycles
    work = sum(int(totals.work[core]) for core in cores)
    hazard = sum(int(totals.cycles[core][CYCLE_NAMES.index("hazard")]) for core in cores)
    widest, bound = widest_vp(searched.limits, searched.npe, ep)
    return Point(
        ep=ep,
        vp=vp,
        bound=bound if vp == widest else "blocks",
        cycles=makespan,
        utilization=work / (searched.npe * makespan * len(cores)),
        hazard=hazard / (makespan * len(cores)),
    )


def score_of(searched: Searched, tick: Callable[[], None]) -> Score:
    """Make the function that simulates pairs, each once.

    searched: what is simulated.
    tick: is called after every simulation.

    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=65536, ep=1, vp=4),))
    >>> job = Job("a", Model("m", (Layer(cell("lstm"), 512, 512),)), steps=20)
    >>> score_of(Searched(chip, (job,), (0,), 65536), lambda: None)(32, 2048).cycles
    1423
    """

    @cache
    def score(ep: int, vp: int) -> Point | Refused:
        answer = simulate_pair(searched, ep, vp)
        tick()
        return answer

    return score
