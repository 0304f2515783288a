"""The description of the toy: a core, a chip, and what accounts know of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from lstmsim.base.keys import Key, mistakes_of
from lstmsim.machines.target import check_description
from lstmsim.model.figures import CoreFigures, MainUnit, Words
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job

_WHY = "assumption, because it is a toy"
WORDS = {
    "padding": Words("the pipeline does something else than multiply", "the core adds, rounds and so on"),
    # a word that only this machine has
    "alu": Words(glossary="the pipeline of a core, which multiplies, adds and rounds", behind="turn"),
    "work": Words(share="the pipeline computes"),
    "step to step": Words(way="from the last node of a step to the first product of the next"),
    "hazard": Words(held_by="the pipeline's end (hazard)", next_wait="pipeline's end"),
}
UNIT = MainUnit("alu", "ALUs", "lane")


@dataclass(frozen=True)
class ToyCache:
    """What lies between a core and its weights: products wait for it once in each step."""

    miss_cycles: Annotated[int, Key("before products begin", "cycles", 0, 1000, source=_WHY, vary=True)] = 0
    hidden: Annotated[float, Key("share of these that nobody notices", "", 0.1, 0.9, source=_WHY, vary=True)] = 0.5
    warm: Annotated[bool, Key("whether it never misses", source=_WHY, vary=True)] = False

    @property
    def cycles(self) -> int:
        return 0 if self.warm else round(self.miss_cycles * (1 - self.hidden))


@dataclass(frozen=True)
class ToyCore:
    """One pipeline: `lanes` multiply-accumulates at a time, element-wise operations one by one."""

    lanes: Annotated[int, Key("multiply-accumulates at a time", low=1, high=64, vary=True)]
    operation_cycles: Annotated[int, Key("of an element-wise operation", "cycles", 1, 1000, source=_WHY, vary=True)] = 2
    latency_cycles: Annotated[int, Key("until a result can be read", "cycles", 0, 1000, source=_WHY, vary=True)] = 3
    cache: Annotated[ToyCache, Key("what holds weights", source=_WHY)] = ToyCache()

    def mistakes(self) -> list[tuple[str, str]]:
        return mistakes_of(self)

    def refusal(self, model: Model) -> str | None:
        return "it runs layer after layer only" if model.layer_order == "step" else None


@dataclass(frozen=True)
class ToyChip:
    """Some cores at one clock."""

    name: str
    frequency_mhz: Annotated[float, Key("the clock", "MHz", 1, 10_000)]
    cores: tuple[ToyCore, ...]
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "toy-cpu"

    def __post_init__(self) -> None:
        check_description(self)

    @property
    def core_figures(self) -> tuple[CoreFigures, ...]:
        return tuple(
            CoreFigures(each.lanes, each.lanes, {"lanes": each.lanes}, words=WORDS, unit=UNIT) for each in self.cores
        )

    def remarks(self, job: Job) -> tuple[str, ...]:
        return ()
