"""EdgeDRNN: descriptions of a core, of its memory and of the chip; its words (docs/edgedrnn.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Annotated

from lstmsim.base.bounds import MAX_LATENCY_CYCLES
from lstmsim.base.checks import checked
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.base.records import hashed_once, record
from lstmsim.machines.edgedrnn.words import STALLS, UNIT, WORDS
from lstmsim.machines.target import Clock, check_description
from lstmsim.model.cells import CELLS
from lstmsim.model.figures import CoreFigures
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, data_words, unused

_RTL = "github.com/SensorsINI/EdgeDRNN, commit 2f57fc6"
_MEMORY = "assumption, because the memory of the published system is not in its RTL: an ideal one"
_PAPER = "Gao et al., JETCAS 2020 (arXiv:2012.13600), from memory, not verified"
_RESET = "assumption, because the RTL's reset and the configuration of its registers are outside the contract"

#: Largest size of a vector, and most layers: widths of registers.
MAX_WIDTH, MAX_LAYERS = 1024, 4
#: Largest threshold that a register holds.
MOST_CHANGE = 511 / 256
#: Lanes, and depths of the FIFO, that were compared with the RTL.
LANES, DEPTHS = (2, 4, 8, 16, 32), (4, 16, 32, 64)


def _one_of(name: str, known: tuple[int, ...]) -> str:
    return f"must be one of {', '.join(map(str, known))}, with which the RTL was compared"


def _cycles(meaning: str, low: int = 0, source: str = _MEMORY) -> Key:
    return Key(meaning, "cycles", low, MAX_LATENCY_CYCLES, source=source, vary=True)


@checked("memory")
@record
class ColumnMemory:
    """The memory of the weights, seen from the core.

    >>> ColumnMemory(latency=-1).mistakes()
    [('latency', 'must be at least 0, got -1')]
    """

    latency: Annotated[int, _cycles("from a command to its first beat of weights")] = 1
    period: Annotated[int, _cycles("from a beat to the next", 1)] = 1
    gap: Annotated[int, _cycles("more after the last beat of a column")] = 0
    outstanding: Annotated[
        int, Key("commands that may be under way; 0: any number", "", 0, 1 << 16, source=_MEMORY, vary=True)
    ] = 0

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs."""
        return mistakes_of(self)


@checked("threshold")
@record
class Thresholds:
    """The least changes that are sent, in real numbers; the machine holds them in steps of 1/256.

    >>> Thresholds(x=0.25, h=0.5).registers
    (64, 128)
    """

    x: Annotated[float, Key("of the input of each layer", "", 0, MOST_CHANGE, source=_PAPER, vary=True)] = 0.25
    h: Annotated[float, Key("of the output of the step before", "", 0, MOST_CHANGE, source=_PAPER, vary=True)] = 0.25

    @property
    def registers(self) -> tuple[int, int]:
        """As the registers hold them, rounded to even."""
        return round(256 * self.x), round(256 * self.h)

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs."""
        return mistakes_of(self)


@checked("core")
@hashed_once
@record
class DeltaCore:
    """One accelerator: an encoder that looks for changes, a FIFO, `pe` multiply-accumulators, a memory of weights.

    >>> DeltaCore(pe=6).mistakes()
    [('pe', 'must be one of 2, 4, 8, 16, 32, with which the RTL was compared, got 6')]
    """

    pe: Annotated[int, Key("lanes: multiply-accumulates a cycle", "", 2, 32, source=_PAPER)] = 8
    fifo: Annotated[int, Key("entries that wait for the multipliers", "", 4, 64, source=_RTL)] = 32
    memory: Annotated[ColumnMemory, Key("memory of the weights", source=_MEMORY)] = field(default_factory=ColumnMemory)
    threshold: Annotated[Thresholds, Key("least changes that are sent", source=_PAPER)] = field(
        default_factory=Thresholds
    )
    reset_cycles: Annotated[int, _cycles("before each job, to clear what the last one left", source=_RESET)] = 0

    def mistakes(self) -> list[tuple[str, str]]:
        """List what is wrong with the numbers, as (key, sentence) pairs."""
        mistakes = mistakes_of(self)
        for name, value, known in (("pe", self.pe, LANES), ("fifo", self.fifo, DEPTHS)):
            if value not in known and name not in dict(mistakes):
                mistakes.append((name, f"{_one_of(name, known)}, got {value}"))
        return mistakes

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can.

        >>> from lstmsim.model.cells import cell
        >>> DeltaCore().refusal(Model("m", (Layer(cell("gru"), 20, 8),)))
        'layer 0 has 20 hidden units, which must be a multiple of pe 8'
        """
        layers = model.layers
        if len(layers) > MAX_LAYERS:
            return f"it has {len(layers)} layers, and the machine's registers hold {MAX_LAYERS}"
        for number, layer in enumerate(layers):
            refusal = self._of_layer(number, layer)
            if refusal:
                return refusal
            if number and layer.hidden < layers[number - 1].hidden:
                text = f"layer {number} is narrower ({layer.hidden}) than the one below ({layers[number - 1].hidden})"
                return f"{text}: in the machine's addresses their weights would overlap"
        return None

    def _of_layer(self, number: int, layer: Layer) -> str | None:
        if layer.cell != CELLS["gru"]:
            return f"layer {number} is of cell {layer.cell.name!r}, and the machine has 'gru' only"
        if layer.bidirectional or layer.reverse:
            how = "is bidirectional" if layer.bidirectional else "runs in reverse"
            return f"layer {number} {how}, and the machine keeps what was sent in one order of the steps"
        for what, size in (("inputs", layer.input), ("hidden units", layer.hidden)):
            if size > MAX_WIDTH:
                return f"layer {number} has {size} {what}, and the machine's registers hold {MAX_WIDTH}"
        if layer.hidden % self.pe:
            return f"layer {number} has {layer.hidden} hidden units, which must be a multiple of pe {self.pe}"
        if layer.hidden == self.pe:
            return f"layer {number} has as many hidden units as lanes, with which results depend on the cycle"
        if not number and layer.input % self.pe not in (0, self.pe // 2):
            text = f"layer 0 has {layer.input} inputs, which must be a multiple of pe {self.pe}, or {self.pe // 2} more"
            return f"{text}: with others the machine loses step with its inputs"
        return None


@checked("chip")
@record
class EdgeDrnn:
    """A chip: one clock, one or more accelerators of their own.

    >>> EdgeDrnn("small", 125, (DeltaCore(),)).core_figures[0].peak
    8
    """

    name: str
    frequency_mhz: Clock
    cores: tuple[DeltaCore, ...]
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "edgedrnn"

    def __post_init__(self) -> None:
        check_description(self)

    @cached_property
    def core_figures(self) -> tuple[CoreFigures, ...]:
        """The cores as the accounts see them."""
        return tuple(
            CoreFigures(core.pe, core.pe, {"pe": core.pe}, {"fifo": core.fifo}, STALLS, WORDS, UNIT)
            for core in self.cores
        )

    def remarks(self, job: Job) -> tuple[str, ...]:
        """For which data the cycles hold, which numbers did not fit, and another order of layers."""
        from lstmsim.machines.edgedrnn.network import lost_words

        core = self.cores[job.allowed(len(self.cores))[0]]
        order = ("layers run step by step on this machine, whatever `layer_order` says",)
        other = order if len(job.model.layers) > 1 and job.model.layer_order == "layer" else ()
        lost = lost_words(job, core.pe, core.threshold.registers)
        return (f"cycles depend on the data. {data_words(job)}", *lost, *other, *unused(job, "threads", "weights"))
