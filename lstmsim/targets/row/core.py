"""The row-wise NPU: description of a core.

A matrix-vector unit of `tiles` x `engines` x `lanes` multipliers needs the whole vector before a product starts; its
results run through an in-order vector pipe (register file, two multi-function units, loader). Instructions carry one
operation for each of these units, and tags that say how many loader operations must be over before an operand is there.

Sources: Fowers et al., "A Configurable Cloud-Scale DNN Processor for Real-Time AI", ISCA 2018 (Brainwave); Boutros
et al., "Beyond Peak Performance", FPT 2020, and the public repository intel/fpga-npu (Intel NPU: RTL, simulator,
compiler).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from lstmsim.targets.row.cells import PROGRAMS
from lstmsim.workload.cells import CELLS
from lstmsim.workload.model import Model

__all__ = ["Dispatch", "RowCore", "RowLatency"]

_AT_LEAST_ONE = (
    *("tiles", "engines", "lanes", "vectors", "replicas", "native_dimension", "chunk_groups", "vector_lanes"),
    "dispatch_cycles",
)
_AT_LEAST_ZERO = ("start_cycles", "decode_cycles", "serializer_cycles")


@dataclass(frozen=True)
class RowLatency:
    """Cycles from one place of the machine to the next. Defaults: the RTL of the Intel NPU (intel/fpga-npu).

    `fetch`: an instruction is sent until its operations can be decoded. `issue_...`: an operation is decoded until it
    can start in its unit. `product`: the last column word of a row group enters the matrix-vector unit until its sums
    reach the serializer or, where there is none, the vector register file; `serializer`: from there to the register
    file. `evrf`, `mfu0`, `mfu1`: a vector enters that unit until it reaches the next. `tag_...`: a loader operation's
    last vector until an operation that waits for it may start. `output`: the loader until a result can be read outside.
    """

    fetch: int = 10
    issue_mvu: int = 6
    issue_evrf: int = 10
    issue_mfu: int = 10
    issue_loader: int = 6
    product: int = 60
    serializer: int = 2
    evrf: int = 13
    mfu0: int = 25
    mfu1: int = 27
    tag_mvu: int = 5
    tag_evrf: int = 6
    tag_mfu: int = 6
    output: int = 6

    def mistakes(self) -> list[tuple[str, str]]:
        """Latencies below what a pipeline can have, as (key, sentence) pairs.

        >>> RowLatency(evrf=0).mistakes()
        [('evrf', 'must be at least 1, got 0')]
        """
        least = {key: 0 if key == "output" else 1 for key in asdict(self)}
        values = asdict(self)
        return [(key, f"must be at least {low}, got {values[key]}") for key, low in least.items() if values[key] < low]


@dataclass(frozen=True)
class Dispatch:
    """How instructions come for layers of one cell: cycles from one to the next, and before the first of a job.

    `fitted_hidden`: the smallest and the largest hidden size of the single layers whose published latencies these two
    numbers were fitted to; None if they were not fitted.
    """

    cell: str
    dispatch_cycles: int = 1
    start_cycles: int = 0
    fitted_hidden: tuple[int, int] | None = None


@dataclass(frozen=True)
class RowCore:
    """One core.

    `vectors` inputs share each weight word, `replicas` equal copies work in lock-step on inputs of their own: together
    they take a batch. Vectors are padded to `native_dimension`; row groups (one row for each engine) are worked on in
    chunks of `chunk_groups`, the last chunk up to twice as long, and no product has fewer. `vector_lanes` elements of a
    vector pass the vector pipe in a cycle. `tile_loads`: a vector for the matrix-vector unit takes a loader operation a
    tile, else one. `decode_cycles`: what an operation takes in its decoder beside a cycle for each of its steps.
    `empty_slots`: an instruction's empty slot takes a cycle of its unit, not only of its decoder. `serializer_cycles`:
    what the results of one row group take to leave the matrix-vector unit; 0: they leave together. `count_flushes`: the
    compiler counts the loader operations that only discard padding or only send results out when it sets tags of dense
    layers; if it does not, these wait for too little. `by_cell`: other `dispatch_cycles` and `start_cycles` for layers
    of some cells. `matrix_words`: words of each engine's matrix memory, where it is known; nothing waits.

    >>> core = RowCore(tiles=7, engines=40, lanes=40, vectors=3, replicas=2)
    >>> core.npe, core.ep, core.vp, core.batch
    (67200, 280, 240, 6)
    """

    tiles: int
    engines: int
    lanes: int
    vectors: int = 1
    replicas: int = 1
    native_dimension: int = 1
    chunk_groups: int = 1
    vector_lanes: int = 40
    tile_loads: bool = True
    dispatch_cycles: int = 1
    start_cycles: int = 0
    decode_cycles: int = 1
    empty_slots: bool = False
    serializer_cycles: int = 0
    count_flushes: bool = True
    by_cell: tuple[Dispatch, ...] = ()
    matrix_words: int | None = None
    latency: RowLatency = field(default_factory=RowLatency)

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
        """Rows times inferences that they are multiplied with."""
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

        >>> from lstmsim.workload.cells import cell
        >>> from lstmsim.workload.model import Layer
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
        found = []
        for low, keys in ((1, _AT_LEAST_ONE), (0, _AT_LEAST_ZERO)):
            values = {key: getattr(self, key) for key in keys}
            found += [(key, f"must be at least {low}, got {value}") for key, value in values.items() if value < low]
        found += [(f"latency.{key}", text) for key, text in self.latency.mistakes()]
        for each in self.by_cell:
            if each.dispatch_cycles < 1 or each.start_cycles < 0:
                text = "dispatch_cycles must be at least 1 and start_cycles at least 0"
                found.append((f"by_cell.{each.cell}", f"{text}, got {each.dispatch_cycles} and {each.start_cycles}"))
            low, high = each.fitted_hidden or (1, 1)
            if not 1 <= low <= high:
                text = f"must be two sizes of at least 1, the smaller first, got {low} and {high}"
                found.append((f"by_cell.{each.cell}.fitted_hidden", text))
        return found

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can.

        >>> from lstmsim.workload.cells import cell
        >>> from lstmsim.workload.model import Layer
        >>> RowCore(1, 4, 4).refusal(Model("m", (Layer(cell("slstm"), 8, 8),)))
        "a row-npu has no program for cell 'slstm'; there are programs for dense, gru, gru-lbr0, lstm, rnn"
        """
        for layer in model.layers:
            if layer.cell.name not in PROGRAMS or layer.cell != CELLS[layer.cell.name]:
                known = ", ".join(sorted(PROGRAMS))
                return f"a row-npu has no program for cell {layer.cell.name!r}; there are programs for {known}"
        return None
