"""The row-wise NPU: description of the chip. Its lowering is in `lstmsim.machines.row.lowering`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lstmsim.base.checked import checked
from lstmsim.machines.array_words import array_figures
from lstmsim.machines.entries import Clock, check_description
from lstmsim.machines.row.cells import PROGRAMS
from lstmsim.machines.row.core import Dispatch, RowCore, RowLatency
from lstmsim.machines.row.shape import Shape
from lstmsim.machines.row.words import WORDS
from lstmsim.model.figures import CoreFigures
from lstmsim.model.scenario import Job

__all__ = ["Dispatch", "RowCore", "RowLatency", "RowNpu"]

#: Settings of a core that a report shows beside its array.
_SHOWN = ("tiles", "engines", "lanes", "vectors", "replicas")


def _settings(core: RowCore) -> dict[str, int | str]:
    return {key: getattr(core, key) for key in _SHOWN}


def _array(core: RowCore) -> dict[str, int]:
    return {"npe": core.npe, "ep": core.ep, "vp": core.vp}


@checked("chip")
@dataclass(frozen=True)
class RowNpu:
    """A chip: one clock, one or more independent cores. Each core runs one job after another.

    `InputError` if a core cannot be built.

    >>> RowNpu("small", 250, (RowCore(tiles=2, engines=4, lanes=4),)).core_figures[0].peak
    32
    """

    name: str
    frequency_mhz: Clock
    cores: tuple[RowCore, ...]
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "row-npu"

    def __post_init__(self) -> None:
        check_description(self)

    @cached_property
    def core_figures(self) -> tuple[CoreFigures, ...]:
        """The cores as the accounts see them; equal cores are one object."""
        return array_figures(self.cores, _array, _settings, ("dispatch",), WORDS)

    def remarks(self, job: Job) -> tuple[str, ...]:
        """Sentences on what is simulated although the machine could not do it, or no source says how long it takes."""
        beyond = self.cores[job.allowed(1)[0]].beyond_fit(job.model)
        if beyond is None:
            return self._too_large(job)
        return (*self._too_large(job), f"{job.model.name} has {beyond}: no published latency stands behind its cycles")

    def _too_large(self, job: Job) -> tuple[str, ...]:
        shape = Shape(self.cores[job.allowed(1)[0]])
        limit = shape.core.matrix_words
        programs = [(layer, PROGRAMS[layer.cell.name](layer)) for layer in job.model.layers]
        words = sum(
            layer.directions * shape.product_cycles(chain.product.rows, chain.product.columns)
            for layer, program in programs
            for chain in (*program.x_part, *program.h_part)
            if chain.product is not None
        )
        if limit is None or words <= limit:
            return ()
        text = f"the weights of {job.model.name} take {words:,} words of each engine's matrix memory"
        return (f"{text}, which has {limit:,}: simulated as if they fitted",)
