"""What is known of a design before it is simulated: whether it fits, what it takes, its accuracy, its clock."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import floor, isnan
from typing import NamedTuple

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.machines.hardware import Stored
from lstmsim.machines.registry import target_of
from lstmsim.model.model import Precision
from lstmsim.model.scenario import Scenario
from lstmsim.studies.accuracy.study import accuracy_cases, studies
from lstmsim.studies.fit.device import Device
from lstmsim.studies.fit.energy import energy
from lstmsim.studies.fit.fit import Fit, fit
from lstmsim.studies.fit.needs import NO_PARTS

#: Before the resources of which it cannot be told whether they suffice.
DOUBT = "cannot tell: "
#: Fits that are kept.
_MOST_KEPT = 200_000


def scaled(device: Device, factor: float, resource: str = "") -> Device:
    """Give the device with a part of what it has, of all resources or of one.

    resource: name of a resource of a `Fit`; empty: all.

    >>> from lstmsim.studies.fit.device import device
    >>> scaled(device("arria-10-gx-1150"), 0.5, "DSP").multipliers
    759
    """

    def part(amount: int | None, name: str) -> int | None:
        return floor(amount * factor) if amount is not None and name in (resource or name).split(" + ") else amount

    memories = tuple(replace(each, blocks=part(each.blocks, each.name)) for each in device.memories)
    logic = replace(device.logic, elements=part(device.logic.elements, device.logic.name))
    multipliers = part(device.multipliers, device.multiplier)
    return replace(device, multipliers=multipliers, memories=memories, logic=logic)


class Judged(NamedTuple):
    """What is known of a design before it is simulated.

    fits: whether it fits; None: that cannot be told.
    share: of the device's resource that it takes most of; None: not known.
    why: the resources that are exceeded, or of which it cannot be told.
    """

    fits: bool | None
    share: float | None
    why: str = ""


@dataclass
class Judge:
    """Fits designs to a device, each chip once.

    device: None: everything fits.
    allow: whether a design is taken of which it cannot be told.
    """

    device: Device | None
    allow: bool = False

    def __post_init__(self) -> None:
        self._known: dict[Hashable, Judged] = {}

    def refuse(self, scenario: Scenario) -> None:
        """`InputError` where the parts of the scenario's chip cannot be counted."""
        if self.device is not None and target_of(scenario.chip.kind).hardware() is None:
            text = f"{NO_PARTS.format(kind=scenario.chip.kind)}: only `none` can be said"
            raise InputError(Mistake("device", text))

    def fit(self, scenario: Scenario) -> Fit | None:
        """What a chip takes of the device; None without a device, or where a core cannot run all models."""
        if self.device is None:
            return None
        models = tuple(dict.fromkeys(job.model for job in scenario.jobs))
        try:
            return fit(scenario.chip, models, scenario.precision, self.device, Stored.of(scenario.jobs))
        except InputError:
            return None

    def judged(self, scenario: Scenario) -> Judged:
        """Say whether a design fits, and what it takes."""
        if self.device is None:
            return Judged(True, None)
        key = (scenario.chip.kind, scenario.chip.cores, scenario.precision)
        if key not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            own = self.fit(scenario)
            self._known[key] = _judged(own) if own else Judged(None, None, "a core cannot run every model")
        return self._known[key]

    def out(self, scenario: Scenario) -> str:
        """Why a design may not be chosen; empty: it may."""
        fits, _, why = self.judged(scenario)
        if fits or (fits is None and self.allow):
            return ""
        return why if fits is False else f"{DOUBT}{why}"


def _judged(own: Fit) -> Judged:
    shares = [each.share for each in own.resources]
    known = None if None in shares else max(each or 0.0 for each in shares)
    return Judged(own.fits, known, ", ".join(each.name for each in own.resources if each.fits is own.fits))


def energy_of(scenario: Scenario) -> float:
    """Give the energy of an inference in J, the mean over all jobs: relative, as `lstmsim fit --energy` says.

    Of unlike cores a job is counted on the first one that it may use and that can run it.
    """
    chip, total = scenario.chip, 0.0
    spent: dict[Hashable, float] = {}
    for job in scenario.jobs:
        key = (id(job.model), job.steps, job.batch, job.cores)
        if key not in spent:
            able = [each for each in job.allowed(len(chip.cores)) if chip.cores[each].refusal(job.model) is None]
            core = able[0] if able else 0
            own = energy(chip, job.model, job.steps, scenario.precision, core=core, batch=job.batch)
            spent[key] = own.total_nj / job.batch
        total += spent[key]
    return total / len(scenario.jobs) / 1e9


class Least:
    """A bound on the accuracy of every job: the measure of `lstmsim accuracy`, once for each precision.

    scenario: its jobs have weights and inputs, and its chip computes in fixed point; else `InputError`, because
        nothing can be told.
    least_db: the least ratio of signal to quantisation noise that the outputs of each job must have against float64.
    """

    def __init__(self, scenario: Scenario, least_db: float) -> None:
        other = target_of(scenario.chip.kind).other_numbers
        if other:
            raise InputError(Mistake("accuracy_db", f"cannot be told: {other}"))
        refuse(
            Mistake("accuracy_db", f"cannot be told: job {job.name} has no {name}, and random ones say nothing of it")
            for job in scenario.jobs
            for name, there in (("weights", job.model.weights), ("inputs", job.inputs))
            if not there
        )
        self.least_db = least_db
        self._known: dict[tuple[Precision, frozenset[tuple[str, str]]], str] = {}

    def missed(self, design: Scenario) -> str:
        """Say which job misses the bound at the precision of a design, and by what it has; empty: none does."""
        precision, other = design.precision, target_of(design.chip.kind).other_numbers
        if other:
            return f"cannot tell: {other}"
        key = precision, frozenset(design.calibration.items())
        if key not in self._known:
            (own,) = studies(accuracy_cases(design), [precision])
            found = {each.case.jobs[0]: each.accuracy.sqnr_db for each in own.jobs}
            # without a signal there is no ratio, and so nothing that is kept
            job, least = min(found.items(), key=lambda item: (not isnan(item[1]), item[1]))
            widths = f"{precision.weight_bits} bits of weights, {precision.vector_bits} of vectors"
            kept = least >= self.least_db
            self._known[key] = "" if kept else f"{widths}: job {job} has {least:.1f} dB"
        return self._known[key]
