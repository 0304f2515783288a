"""The row-wise NPU: description of a core.

A matrix-vector unit of `tiles` x `engines` x `lanes` multipliers needs the whole vector before a product starts; its
results run through an in-order vector pipe (register file, two multi-function units, loader). Instructions carry one
operation for each of these units, and tags that say how many loader operations must be over before an operand is there.

Sources: Fowers et al., "A Configurable Cloud-Scale DNN Processor for Real-Time AI", ISCA 2018 (Brainwave); Boutros
et al., "Beyond Peak Performance", FPT 2020, and the public repository intel/fpga-npu (Intel NPU: RTL, simulator,
compiler).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from lstmsim.base.bounds import MAX_CELLS, MAX_LATENCY_CYCLES, MAX_PES, MAX_SIZE
from lstmsim.base.checked import checked
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.machines.row.cells import PROGRAMS
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Model

__all__ = ["Dispatch", "RowCore", "RowLatency"]

_RTL = "intel/fpga-npu: its RTL, counted by hand"
_COMPILER = "intel/fpga-npu: its compiler and RTL"
_PLAIN = "assumption, because the plainest machine of the kind has it so"


def _cycles(meaning: str, low: int = 1, source: str = _RTL) -> Key:
    return Key(meaning, "cycles", low, MAX_LATENCY_CYCLES, source=source, vary=True)


def _size(meaning: str, source: str = "", high: int = MAX_SIZE) -> Key:
    return Key(meaning, "", 1, high, source=source, vary=True)


@checked("latency")
@dataclass(frozen=True)
class RowLatency:
    """Cycles from one place of the machine to the next. The defaults are from the RTL of the Intel NPU.

    fetch: from the sending of an instruction until its operations can be decoded.
    issue_...: from the decoding of an operation until it can start in its unit.
    product: from the last column word of a row group, which enters the matrix-vector unit, until its sums reach the
        serializer or, without one, the vector register file.
    serializer: from the serializer to the vector register file.
    evrf, mfu0, mfu1: from the entry of a vector into this unit until it reaches the next unit.
    tag_...: from the last vector of a loader operation until an operation that waits for it may start.
    output: from the loader until a result can be read outside.
    """

    fetch: Annotated[int, _cycles("an instruction is sent until its operations can be decoded")] = 10
    issue_mvu: Annotated[int, _cycles("decoded until it starts in the matrix-vector unit")] = 6
    issue_evrf: Annotated[int, _cycles("decoded until it starts in the vector register file")] = 10
    issue_mfu: Annotated[int, _cycles("decoded until it starts in a multi-function unit")] = 10
    issue_loader: Annotated[int, _cycles("decoded until it starts in the loader")] = 6
    product: Annotated[int, _cycles("a row group's last column word until its sums reach the serializer")] = 60
    serializer: Annotated[int, _cycles("the serializer to the vector register file")] = 2
    evrf: Annotated[int, _cycles("a vector enters the register file until it reaches the next unit")] = 13
    mfu0: Annotated[int, _cycles("a vector enters the first multi-function unit until it reaches the next")] = 25
    mfu1: Annotated[int, _cycles("a vector enters the second multi-function unit until it reaches the loader")] = 27
    tag_mvu: Annotated[int, _cycles("the last loaded vector until a product that waits may start")] = 5
    tag_evrf: Annotated[int, _cycles("the last loaded vector until a register file that waits may start")] = 6
    tag_mfu: Annotated[int, _cycles("the last loaded vector until a multi-function unit that waits may start")] = 6
    output: Annotated[int, _cycles("the loader until a result can be read outside", low=0)] = 6

    def mistakes(self) -> list[tuple[str, str]]:
        """Latencies that no pipeline can have, as (key, sentence) pairs.

        >>> RowLatency(evrf=0).mistakes()
        [('evrf', 'must be at least 1, got 0')]
        """
        return mistakes_of(self)


@checked("dispatch")
@dataclass(frozen=True)
class Dispatch:
    """The dispatch of instructions for layers of one cell.

    cell: name of the cell.
    dispatch_cycles: from one instruction to the next.
    start_cycles: before the first instruction of a job.
    fitted_hidden: smallest and largest hidden size of the single layers to whose published latencies these two numbers
        were fitted; None if they were not fitted.
    """

    cell: Annotated[str, Key("cell of the layers")]
    dispatch_cycles: Annotated[
        int,
        Key(
            "from one instruction to the next",
            unit="cycles",
            low=1,
            high=MAX_LATENCY_CYCLES,
            source=_RTL,
            follows="the core's",
        ),
    ] = 1
    start_cycles: Annotated[
        int,
        Key(
            "before the first instruction of a job",
            unit="cycles",
            low=0,
            high=MAX_LATENCY_CYCLES,
            source=_COMPILER,
            follows="the core's",
        ),
    ] = 0
    fitted_hidden: Annotated[
        tuple[int, int] | None,
        Key("smallest and largest size that they were fitted to", low=1, high=MAX_SIZE, source=_PLAIN),
    ] = None


@checked("core")
@dataclass(frozen=True)
class RowCore:
    """One core.

    Each field says its meaning, unit and source. More on some of them:

    vectors, replicas: `vectors` inputs share each weight word, and `replicas` equal copies work on inputs of their own.
        A batch is `vectors` * `replicas` inferences.
    chunk_groups: row groups (one row for each engine) are worked on in chunks of so many. The last chunk is up to twice
        as long. No product has fewer row groups.
    empty_slots: whether an empty slot of an instruction takes a cycle of its unit, not only of its decoder.
    count_flushes: whether the compiler, when it sets tags of dense layers, counts loader operations that only discard
        padding or only send results out. If it does not, dense layers wait for too little.
    matrix_words: words of each engine's matrix memory, if known. No operation waits for room in it.

    >>> core = RowCore(tiles=7, engines=40, lanes=40, vectors=3, replicas=2)
    >>> core.npe, core.ep, core.vp, core.batch
    (67200, 280, 240, 6)
    """

    tiles: Annotated[int, _size("tiles of the matrix-vector unit")]
    engines: Annotated[int, _size("dot-product engines of a tile, a row each")]
    lanes: Annotated[int, _size("multipliers of an engine")]
    vectors: Annotated[int, _size("inputs that share each weight word", _PLAIN, high=1024)] = 1
    replicas: Annotated[int, _size("equal copies that work in lock-step", _PLAIN, high=1024)] = 1
    native_dimension: Annotated[int, _size("vectors are padded to a multiple of it", _PLAIN)] = 1
    chunk_groups: Annotated[int, _size("row groups that are worked on together", _PLAIN)] = 1
    vector_lanes: Annotated[int, _size("elements that pass the vector pipe in a cycle", "intel/fpga-npu: DOTW")] = 40
    tile_loads: Annotated[bool, Key("a loader operation for each tile, else for each vector", source=_COMPILER)] = True
    dispatch_cycles: Annotated[int, _cycles("from one instruction to the next")] = 1
    start_cycles: Annotated[int, _cycles("before the first instruction of a job", 0, _COMPILER)] = 0
    decode_cycles: Annotated[int, _cycles("of an operation in its decoder, beside one for each step", 0)] = 1
    empty_slots: Annotated[bool, Key("an instruction's empty slot takes a cycle of its unit", source=_RTL)] = False
    serializer_cycles: Annotated[
        int, _cycles("for the results of a row group to leave; 0: they leave together", 0, _PLAIN)
    ] = 0
    count_flushes: Annotated[
        bool, Key("the compiler counts loader operations that only discard or send out", source=_COMPILER)
    ] = True
    by_cell: Annotated[
        tuple[Dispatch, ...],
        Key("other numbers for layers of some cells", high=MAX_CELLS, source=_PLAIN, named_by="cell"),
    ] = ()
    matrix_words: Annotated[
        int | None,
        _size("words of each engine's matrix memory", "assumption, because few designs say it: nothing waits"),
    ] = None
    latency: Annotated[RowLatency, Key("from one place to the next", "cycles", source=_RTL)] = field(
        default_factory=RowLatency
    )

    @property
    def batch(self) -> int:
        """Inferences that run together."""
        return self.vectors * self.replicas

    @property
    def npe(self) -> int:
        """Multipliers."""
        return self.ep * self.vp

    @property
    def ep(self) -> int:
        """Elements of one vector that are multiplied in a cycle."""
        return self.tiles * self.lanes

    @property
    def vp(self) -> int:
        """Rows that are multiplied in a cycle, times the inferences that run together."""
        return self.engines * self.batch

    def dispatch(self, cell: str) -> Dispatch:
        """How instructions come for layers of that cell.

        >>> RowCore(1, 1, 1, dispatch_cycles=4).dispatch("lstm").dispatch_cycles
        4
        """
        own = {each.cell: each for each in self.by_cell}
        return own.get(cell) or Dispatch(cell, self.dispatch_cycles, self.start_cycles)

    def beyond_fit(self, model: Model) -> str | None:
        """What the model has that the core's fitted numbers say nothing about, in words; None if nothing, or if no
        number was fitted.

        >>> from lstmsim.model.cells import cell
        >>> from lstmsim.model.model import Layer
        >>> core = RowCore(1, 4, 4, by_cell=(Dispatch("lstm", 9, 700, (8, 64)),))
        >>> core.beyond_fit(Model("m", (Layer(cell("lstm"), 8, 8),)))
        >>> core.beyond_fit(Model("m", (Layer(cell("lstm"), 128, 128),)))
        'hidden 128, and lstm was fitted from 8 to 64'
        >>> core.beyond_fit(Model("m", (Layer(cell("rnn"), 8, 8),)))
        'cell rnn, and fitted are lstm only (its dispatch_cycles 1 and start_cycles 0 are assumptions)'
        """
        known = {each.cell: each.fitted_hidden for each in self.by_cell if each.fitted_hidden is not None}
        if not known:
            return None
        if len(model.layers) > 1 or model.layers[0].bidirectional:
            return "more than one layer or direction, and single ones were fitted"
        (layer,) = model.layers
        own, cell = self.dispatch(layer.cell.name), layer.cell.name
        if cell not in known:
            numbers = f"its dispatch_cycles {own.dispatch_cycles} and start_cycles {own.start_cycles} are assumptions"
            return f"cell {cell}, and fitted are {' and '.join(known)} only ({numbers})"
        low, high = known[cell]
        if not low <= layer.hidden <= high:
            return f"hidden {layer.hidden}, and {cell} was fitted from {low} to {high}"
        return None if layer.input == layer.hidden else f"input {layer.input} unlike hidden, and equal ones were fitted"

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs."""
        mistakes = mistakes_of(self)
        if self.npe > MAX_PES:
            text = f"tiles, engines, lanes, vectors and replicas make {self.npe:,} PEs, at most {MAX_PES:,} may be"
            mistakes.append(("engines", text))
        for each in self.by_cell:
            low, high = each.fitted_hidden or (1, 1)
            if not 1 <= low <= high:
                text = f"must be two sizes of at least 1, the smaller first, got {low} and {high}"
                mistakes.append((f"by_cell.{each.cell}.fitted_hidden", text))
        return mistakes

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can.

        >>> from lstmsim.model.cells import cell
        >>> from lstmsim.model.model import Layer
        >>> RowCore(1, 4, 4).refusal(Model("m", (Layer(cell("slstm"), 8, 8),)))
        "a row-npu has no program for cell 'slstm'; there are programs for dense, gru, gru-lbr0, lstm, rnn"
        """
        for layer in model.layers:
            if layer.cell.name not in PROGRAMS or layer.cell != CELLS[layer.cell.name]:
                known = ", ".join(sorted(PROGRAMS))
                return f"a row-npu has no program for cell {layer.cell.name!r}; there are programs for {known}"
        return None
