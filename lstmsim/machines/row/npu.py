"""The row-wise NPU: descriptions of a core and of the chip, sizes of words and row groups; and its words.

A matrix-vector unit of `tiles` x `engines` x `lanes` multipliers needs the whole vector before a product starts; its
results run through an in-order vector pipe (register file, two multi-function units, loader). Instructions carry one
operation for each of these units, and tags that say how many loader operations must be over before an operand is there.

Sources: Fowers et al., "A Configurable Cloud-Scale DNN Processor for Real-Time AI", ISCA 2018 (Brainwave); Boutros
et al., "Beyond Peak Performance", FPT 2020, and the public repository intel/fpga-npu (Intel NPU: RTL, simulator,
compiler).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from lstmsim.base.bounds import MAX_CELLS, MAX_LATENCY_CYCLES, MAX_PES, MAX_SIZE
from lstmsim.base.checks import checked
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.machines.arrays import ARRAY_WORDS, array_figures
from lstmsim.machines.row.plan import PROGRAMS
from lstmsim.machines.target import PER_CYCLE, Clock, check_description
from lstmsim.model.cells import CELLS
from lstmsim.model.figures import CoreFigures, Words
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, unused

_RTL = "intel/fpga-npu: its RTL, counted by hand"
_COMPILER = "intel/fpga-npu: its compiler and RTL"
_PLAIN = "assumption, because the plainest machine of the kind has it so"


def _cycles(meaning: str, low: int = 1, source: str = _RTL) -> Key:
    return Key(meaning, "cycles", low, MAX_LATENCY_CYCLES, source=source, vary=True)


def _of_cell(meaning: str, low: int, source: str) -> Key:
    return Key(meaning, "cycles", low, MAX_LATENCY_CYCLES, source=source, follows="the core's")


def _size(meaning: str, source: str = "", high: int = MAX_SIZE) -> Key:
    return Key(meaning, "", 1, high, source=source, vary=True)


@checked("latency")
@dataclass(frozen=True)
class RowLatency:
    """Cycles from one place of the machine to the next. The defaults are from the RTL of the Intel NPU."""

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
        return mistakes_of(self)


@checked("dispatch")
@dataclass(frozen=True)
class Dispatch:
    """The dispatch of instructions for layers of one cell.

    fitted_hidden: smallest and largest hidden size of the single layers to whose published latencies these two numbers
        were fitted; None if they were not fitted.
    """

    cell: Annotated[str, Key("cell of the layers")]
    dispatch_cycles: Annotated[int, _of_cell("from one instruction to the next", 1, _RTL)] = 1
    start_cycles: Annotated[int, _of_cell("before the first instruction of a job", 0, _COMPILER)] = 0
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
    vector_lanes: Annotated[
        int, Key("elements that pass the vector pipe", PER_CYCLE, 1, MAX_SIZE, source="intel/fpga-npu: DOTW", vary=True)
    ] = 40
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
        """How instructions come for layers of that cell."""
        own = {each.cell: each for each in self.by_cell}
        return own.get(cell) or Dispatch(cell, self.dispatch_cycles, self.start_cycles)

    def beyond_fit(self, model: Model) -> str | None:
        """What the model has that the core's fitted numbers say nothing about, in words; None if nothing, or if no
        number was fitted.
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
        """Why this core cannot run the model, in a sentence; None if it can."""
        for layer in model.layers:
            if layer.cell.name not in PROGRAMS or layer.cell != CELLS[layer.cell.name]:
                known = ", ".join(sorted(PROGRAMS))
                return f"a row-npu has no program for cell {layer.cell.name!r}; there are programs for {known}"
        return None


@dataclass(frozen=True)
class Shape:
    """A core's sizes in words and cycles."""

    core: RowCore

    def words(self, columns: int) -> int:
        """Words of a vector in each tile: those of its columns, padded to the native dimension."""
        core = self.core
        padded = -(-columns // core.native_dimension) * core.native_dimension
        return -(-padded // core.ep)

    def groups(self, rows: int) -> int:
        """Row groups of a matrix: one row for each engine, at least as many as a column word takes to load."""
        return max(-(-rows // self.core.engines), self.core.chunk_groups)

    def product_cycles(self, rows: int, columns: int) -> int:
        """Cycles of a matrix-vector product: one for each row group and word."""
        return self.groups(rows) * self.words(columns)

    def passes(self) -> int:
        """Cycles in which the results of one row group pass the vector pipe."""
        return -(-self.core.vectors * self.core.engines // self.core.vector_lanes)

    def vectors(self, rows: int) -> int:
        """Cycles in which a vector of that many elements passes the vector pipe."""
        return self.groups(rows) * self.passes()

    def chunks(self, groups: int) -> tuple[int, ...]:
        """Row groups in each chunk; the last takes what remains, less than two chunks."""
        size = self.core.chunk_groups
        whole = groups // size - 1
        return (*[size] * whole, groups - whole * size)

    def loader_words(self, size: int) -> tuple[int, ...]:
        """Row groups that each loader operation writes to the matrix-vector unit.

        There is one operation for each tile until all groups are written, or one operation for all.
        """
        groups, words = self.groups(size), self.words(size)
        if not self.core.tile_loads:
            return (groups,)
        full, rest = divmod(min(groups, self.core.tiles * words), words)
        return (*[words] * full, *([rest] if rest else []))


#: Name of cycles or losses, or word of outputs -> words.
WORDS = {
    **ARRAY_WORDS,
    "fetch": Words(glossary="sends instructions to the decoders, in order", behind="batch"),
    "mvu": Words(
        glossary="matrix-vector unit of a row-wise NPU: multiplies, once the whole vector is there", behind="fetch"
    ),
    "evrf": Words(glossary="vector register file behind the matrix-vector unit", behind="mvu"),
    "mfu0": Words(glossary="first multi-function unit: activation, addition, multiplication of vectors", behind="evrf"),
    "mfu1": Words(
        glossary="second multi-function unit: activation, addition, multiplication of vectors", behind="mfu0"
    ),
    "loader": Words(glossary="writes results back to the register files, and inputs from outside", behind="mfu1"),
    "serializer": Words(glossary="takes the results of a row group apart into vectors", behind="loader"),
}


#: Settings of a core that a report shows next to its array.
_SHOWN = ("tiles", "engines", "lanes", "vectors", "replicas")


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
        shown = {core: {key: getattr(core, key) for key in _SHOWN} for core in dict.fromkeys(self.cores)}
        return array_figures(self.cores, shown, ("dispatch",), WORDS)

    def remarks(self, job: Job) -> tuple[str, ...]:
        """Sentences on what is simulated although the machine could not do it, or no source says how long it takes."""
        beyond = self.cores[job.allowed(1)[0]].beyond_fit(job.model)
        said = (*unused(job, "threads", "weights", "density"), *self.too_large(job))
        if beyond is None:
            return said
        return (*said, f"{job.model.name} has {beyond}: no published latency stands behind its cycles")

    def too_large(self, job: Job) -> tuple[str, ...]:
        """Say whether the weights of a job are more than the matrix memories hold."""
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
