"""Whether the widths of a design are accurate enough: the measure of `lstmsim accuracy`, once for each precision."""

from __future__ import annotations

from math import isnan

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.machines.registry import target_of
from lstmsim.model.model import Precision
from lstmsim.model.scenario import Scenario
from lstmsim.studies.accuracy.study import accuracy_cases, studies


class Least:
    """A bound on the accuracy of every job.

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
