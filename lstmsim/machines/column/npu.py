"""The column-wise NPU: description of the chip. Its lowering is in `lstmsim.machines.column.lowering`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Annotated

from lstmsim.base.bounds import MAX_LATENCY_CYCLES, MAX_SIZE
from lstmsim.base.checked import checked
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.base.records import record
from lstmsim.machines.array_words import array_figures
from lstmsim.machines.column.core import BLOCK_ORDERS, THREAD_POLICIES, ColumnCore, Latency
from lstmsim.machines.column.memory import Memory
from lstmsim.machines.column.words import WORDS
from lstmsim.machines.entries import Clock, check_description
from lstmsim.model.figures import CoreFigures
from lstmsim.model.scenario import Job

__all__ = ["BLOCK_ORDERS", "THREAD_POLICIES", "ColumnCore", "ColumnNpu", "Exchange", "Latency"]

#: Settings of a core that a report shows beside its array, where they are not zero.
_SHOWN = (
    *("threads", "thread_policy", "switch_cycles", "tail_width", "accumulator_banks", "block_order", "adders_saved"),
    "weight_kib",
)


def _settings(core: ColumnCore) -> dict[str, int | str]:
    return {key: getattr(core, key) for key in _SHOWN if getattr(core, key)}


@checked("exchange")
@record
class Exchange:
    """The links between the cores of a split job, for h. Each core has a link of its own to all others.

    latency_cycles: from an element's turn on the link until it is visible on every other core.
    width: elements that the link takes in a cycle, if they are there.

    >>> Exchange(width=0).mistakes(), Exchange(latency_cycles=0).visible_cycles
    ([('width', 'must be at least 1, got 0')], 1)
    """

    latency_cycles: Annotated[
        int,
        Key(
            "from an element's turn on the link until other cores can read it",
            unit="cycles",
            low=0,
            high=MAX_LATENCY_CYCLES,
            source="assumption, because a write, a few registers across a die and a read take about that",
        ),
    ] = 8
    width: Annotated[
        int,
        Key(
            "elements that the link takes in a cycle",
            low=1,
            high=MAX_SIZE,
            source="assumption, because it is what the tail unit gives in a cycle by default",
        ),
    ] = 64

    @property
    def visible_cycles(self) -> int:
        """Cycles from an element's turn on the link until other cores can read it; at least 1, as behind the tail."""
        return max(1, self.latency_cycles)

    def rate(self, tail_width: int) -> int:
        """Elements of a vector that leave in a cycle: no more than the tail unit gives in a cycle.

        >>> [Exchange(width=width).rate(tail_width=64) for width in (16, 64, 256)]
        [16, 64, 64]
        """
        return min(self.width, tail_width)

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs."""
        return mistakes_of(self)


def _array(core: ColumnCore) -> dict[str, int]:
    return {"npe": core.npe, "ep": core.ep, "vp": core.vp}


@checked("chip")
@record
class ColumnNpu:
    """A chip: one clock, one or more cores, equal or not, perhaps a memory.

    `InputError` if a core cannot be built.

    >>> ColumnNpu("small", 260, (ColumnCore(npe=64, ep=4, vp=16),)).cores[0].ep
    4
    """

    name: str
    frequency_mhz: Clock
    cores: tuple[ColumnCore, ...]
    memory: Annotated[
        Memory | None,
        Key("memory beside the chip", source="assumption, because the patent's weights stay on the chip"),
    ] = None
    exchange: Annotated[
        Exchange, Key("links between cores", source="assumption, because the patent's cores share nothing")
    ] = Exchange()
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "column-npu"

    def __post_init__(self) -> None:
        check_description(self)

    @cached_property
    def core_figures(self) -> tuple[CoreFigures, ...]:
        """The cores as the accounts see them; equal cores are one object."""
        return array_figures(self.cores, _array, _settings, ("reload", "weights") if self.memory else (), WORDS)

    def remarks(self, job: Job) -> tuple[str, ...]:
        """Nothing is simulated that the machine could not do."""
        return ()
