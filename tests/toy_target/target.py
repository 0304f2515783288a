"""The toy as everybody else sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from lstmsim.machines.assembly import PerStep
from lstmsim.machines.change import Change, detail_of
from lstmsim.machines.target import Fidelity, StructuralModel, Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Program
from tests.toy_target import lowering
from tests.toy_target.cpu import ToyChip, ToyCore


class _ToyTarget(Target):
    """A scalar processor."""

    kind: ClassVar[str] = "toy-cpu"
    title: ClassVar[str] = "toy processor"
    chip: ClassVar[type] = ToyChip
    core: ClassVar[type] = ToyCore
    counts: ClassVar[tuple[str, ...]] = ("lanes",)
    fidelity: ClassVar[Fidelity] = Fidelity(exact=("nothing: it is a toy",), assumed=("everything",))

    def lower(self, chip: ToyChip, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        return lowering.lower(chip, jobs, templates, lambda job: self.check(chip, job))

    def per_step(
        self, cores: Sequence[ToyCore], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        return lowering.per_step(cores, model, batch, split, members)

    def chip_counts(self, chip: ToyChip) -> Mapping[str, int]:
        return {"lanes": sum(core.lanes for core in chip.cores)}

    def structural_model(self) -> StructuralModel:
        from tests.toy_target.replay import replay

        return replay

    def changes(self, chip: ToyChip, jobs: Sequence[Job]) -> Sequence[Change]:
        pairs: list[tuple[ToyCore, dict[str, Any]]] = [(core, {"lanes": 2 * core.lanes}) for core in chip.cores]
        wider = replace(chip, cores=tuple(replace(core, **new) for core, new in pairs))
        return [Change("lanes doubled", detail_of(pairs), wider, tuple(jobs))]


TARGET = _ToyTarget()
