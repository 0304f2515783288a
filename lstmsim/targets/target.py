"""The contract that every machine fills in, once, in its own folder.

Everybody else asks this contract and never which machine it is: files, sweeps, explanations, devices, the replay of a
trace, reports and pages. A method that a machine leaves out says what it means that the machine has no answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from lstmsim.program.program import Program
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job

__all__ = ["Target"]


class Target(ABC):
    """One kind of machine.

    kind: the word for it in a chip's file. title: its name for people. chip, core: the frozen descriptions, whose
    fields carry their keys (`lstmsim.keys`).
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    chip: ClassVar[type]
    core: ClassVar[type]

    @abstractmethod
    def lower(self, chip: Any, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip; see `lstmsim.targets.lower`."""

    @abstractmethod
    def check(self, chip: Any, job: Job) -> None:
        """`InputError` if the chip cannot run the job."""

    @abstractmethod
    def operations_per_step(self, core: Any, model: Model, batch: int) -> int:
        """A bound on the operations that one step of a model in a batch lowers to on a core."""
