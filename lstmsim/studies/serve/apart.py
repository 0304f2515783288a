"""Parts of a scenario that share nothing of the chip: what overloads one of them says nothing about the others."""

from __future__ import annotations

from dataclasses import replace

from lstmsim import machines
from lstmsim.model.scenario import Job, Scenario

__all__ = ["apart"]


def apart(scenario: Scenario) -> list[Scenario]:
    """Give the parts of a scenario whose jobs meet no job of another part: on no core, in no memory, in no chain.

    The order within a part is that of the scenario. Where there is one part, it is the scenario.

    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> cores = {"a": [0], "b": [1, 2], "c": [2]}
    >>> jobs = [{"name": name, "model": "lstm-256", "steps": 1, "cores": own} for name, own in cores.items()]
    >>> [[job.name for job in each.jobs] for each in apart(load_scenario({"chip": "column-npu-4x16k", "jobs": jobs}))]
    [['a'], ['b', 'c']]
    """
    groups: list[tuple[set[int], set[str]]] = []
    for name, cores in _cores(scenario).items():
        meets = [each for each in groups if each[0] & cores]
        groups = [each for each in groups if each not in meets]
        groups.append((cores.union(*(each[0] for each in meets)), {name}.union(*(each[1] for each in meets))))
    if len(groups) < 2 or _shares(scenario, groups):
        return [scenario]
    parts = []
    for _, names in groups:
        jobs = tuple(job for job in scenario.jobs if _entry(scenario, job) in names)
        offers = {tenant: each for tenant, each in scenario.offers.items() if (each.entry or tenant) in names}
        parts.append(replace(scenario, jobs=jobs, offers=offers))
    return parts


def _entry(scenario: Scenario, job: Job) -> str:
    """The entry that the job belongs to."""
    offer = scenario.offers.get(job.tenant)
    return (offer.entry if offer is not None else "") or job.tenant


def _cores(scenario: Scenario) -> dict[str, set[int]]:
    """The cores that each entry may use."""
    number = len(scenario.chip.core_figures)
    cores: dict[str, set[int]] = {}
    for job in scenario.jobs:
        cores.setdefault(_entry(scenario, job), set()).update(job.allowed(number))
    return cores


def _shares(scenario: Scenario, groups: list[tuple[set[int], set[str]]]) -> bool:
    """Whether groups of entries meet elsewhere than on a core: in a memory, or because one waits for another."""
    for job in scenario.jobs:
        if job.after is not None:
            own, other = _entry(scenario, job), _entry(scenario, scenario.jobs[job.after])
            if not any({own, other} <= names for _, names in groups):
                return True
    first = {_entry(scenario, job): replace(job, after=None) for job in reversed(scenario.jobs)}
    program = machines.lower(scenario.chip, tuple(first.values()), templates=True)
    return any(core.shared for core in program.cores)
