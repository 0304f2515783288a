"""The column-wise NPU: descriptions of a core, of the memory and the links of a chip, of the chip; and its words.

Sources: column-wise LSTM patent (PE array, adder tree with configurable tail, threads). The patent gives no latency;
the defaults are an assumption, because a deeply pipelined Stratix 10 design is of that size and both of
the patent's stated orderings come out with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

from lstmsim.base import bounds
from lstmsim.base.checks import checked
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.base.records import hashed_once, record
from lstmsim.machines.arrays import ARRAY_WORDS, array_figures
from lstmsim.machines.target import PER_CYCLE, Clock, check_description
from lstmsim.model.cell import Stage, segments
from lstmsim.model.figures import CoreFigures, Words
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, data_words, unused

THREAD_POLICIES = ("coarse", "fine")
BLOCK_ORDERS = ("row", "column")

_DEEP = "assumption, because a deeply pipelined Stratix 10 design is of that size, and the patent's orderings come out"


_DIVIDER = "assumption, because a pipelined divider takes about a cycle for each bit of 16-bit operands"
_COMPARED = "assumption, because a subtraction and a comparison take as long as `elementwise_add`"
_SKIPPED = "assumption, because no source skips columns on a machine with an adder tree; as EdgeDRNN decides"
_EVERY_COLUMN = "assumption, because the patent multiplies every column"
#: Cycles of a comparison where a file does not say it.
COMPARE_CYCLES = 4
#: Largest threshold; larger than what vectors hold.
_MOST_CHANGE = 1e9
_OF_GROUP = "assumption, because the tiles of ep columns issue anyway"
_ONE_THREAD = "assumption, because the patent builds a core with one thread and adds others"
_NARROW = "assumption, because no source gives it; the tail then takes less than the tiles of a step"
_TWO_BANKS = "assumption, because one that fills and one that empties are the least that keeps the array busy"
_PLAIN_TREES = "assumption, because most trees are built for one ep"
_COARSE = "column-wise LSTM patent: coarse-grained multithreading, switch on a data hazard"
_FREE_SWITCH = "assumption, because the patent names no cost, and each thread has its own state and accumulators"
_ROW_ORDER = "assumption, because the patent leaves it open; row order needs the fewest banks"
_ON_CHIP = "assumption, because the patent's weights stay on the chip"
_DRAM = "assumption, because some 250 ns is what DRAM and HBM behind an FPGA's controllers take under load"
_TWO_BLOCKS = "assumption, because one in use and one that comes are the least that hides a transfer"
_TWO_FPGAS = "assumption, because two are the fewest that have a link"
_ONE_FPGA = "assumption, because the patent describes one device"
_ACROSS = "assumption, because a write, a few registers across a die and a read take about that"
_AS_TAIL = "assumption, because it is what the tail unit gives in a cycle by default"
_LTL = "Caulfield et al., MICRO 2016 (doi 10.1109/MICRO.2016.7783710), the network of Brainwave's FPGAs"
_LTL_TRIP = f"{_LTL}: a round trip in a rack takes just under 3 us, and half of 3 us is 375 cycles at 250 MHz"
_LTL_WIDTH = f"{_LTL}: 40 Gb/s are 160 bits a cycle at 250 MHz, 20 elements of 8 bits (headers not counted)"


def _depth(meaning: str, low: int = 1, source: str = _DEEP, vary: bool = True) -> Key:
    return Key(meaning, "cycles", low, bounds.MAX_LATENCY_CYCLES, source=source, vary=vary)


def _count(meaning: str, high: int = bounds.MAX_PES, source: str = "", follows: str = "", vary: bool = True) -> Key:
    return Key(meaning, "", 1, high, source=source, vary=vary, follows=follows)


_CAT = replace(
    # the largest power of two below the most PEs of a core
    _count("sums that a configurable tail forms in each tree", 1 << (bounds.MAX_PES.bit_length() - 1), _PLAIN_TREES),
    rule=lambda cat: "must be a power of two (1: no configurable tail)" if cat & (cat - 1) else "",
)


def _rate(meaning: str, source: str, vary: bool = True) -> Key:
    return Key(meaning, PER_CYCLE, 1, bounds.MAX_SIZE, source=source, vary=vary)


@checked("latency")
@record
class Latency:
    """Pipeline depths in cycles. `add` is the depth of one level of the adder tree.

    >>> Latency().mvm_cycles(32), Latency().mvm_cycles(1)
    (19, 14)
    """

    read: Annotated[int, _depth("weights and vector elements are read", low=0)] = 4
    multiply: Annotated[int, _depth("a product in the array")] = 4
    add: Annotated[int, _depth("one level of the adder tree")] = 1
    accumulate: Annotated[int, _depth("a sum into its accumulator")] = 2
    convert: Annotated[int, _depth("the adapter between array and tail", low=0)] = 4
    activation: Annotated[int, _depth("an activation function")] = 8
    elementwise_multiply: Annotated[int, _depth("a product in the tail")] = 4
    elementwise_add: Annotated[int, _depth("a sum in the tail")] = 4
    quantize: Annotated[int, _depth("a result is rounded to the width of vectors", low=0)] = 4
    writeback: Annotated[int, _depth("a result is written until it can be streamed", low=0)] = 4
    divide: Annotated[int, _depth("a quotient in the tail", source=_DIVIDER)] = 16
    delta: Annotated[
        int | None,
        Key(
            "an element is compared with the one last sent, on cores with `delta`; left out: 4",
            "cycles",
            0,
            bounds.MAX_LATENCY_CYCLES,
            source=_COMPARED,
            vary=True,
        ),
    ] = None

    def mistakes(self) -> list[tuple[str, str]]:
        """Latencies that the contract does not allow, as (key, sentence) pairs.

        >>> Latency(add=0, read=0).mistakes()
        [('add', 'must be at least 1, got 0')]
        """
        return mistakes_of(self)

    def mvm_cycles(self, ep: int) -> int:
        """Cycles from the issue of a row block's last tile until its sums reach the tail unit."""
        levels = (ep - 1).bit_length()
        return self.read + self.multiply + self.add * levels + self.accumulate + self.convert


def _threshold(vector: str) -> Key:
    return Key(
        f"change of an element of {vector} from which on its group is sent", "", 0, _MOST_CHANGE, source=_SKIPPED
    )


@checked("delta")
@record
class Delta:
    """Which columns a core skips: groups none of whose elements has changed enough since it was last sent.

    >>> Delta(x=0.25, h=-1).mistakes()
    [('h', 'must be at least 0, got -1')]
    """

    x: Annotated[float, _threshold("x")] = 0.0
    h: Annotated[float, _threshold("h")] = 0.0
    group: Annotated[
        int | None,
        Key(
            "elements that are sent together, a multiple of ep", "", 1, bounds.MAX_SIZE, source=_OF_GROUP, follows="ep"
        ),
    ] = None

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs."""
        return mistakes_of(self)


def with_vp(values: dict[str, Any]) -> str:
    """Add `vp` to the numbers of a core, as `npe // ep`, where it is left out; "", or why it cannot be, in a sentence.

    >>> values = {"npe": 64, "ep": 8}
    >>> with_vp(values), values["vp"], with_vp({"npe": 4, "ep": 8})
    ('', 8, 'must not exceed npe: 8 > 4')
    """
    if values.get("vp") is None and "npe" in values and "ep" in values:
        npe, ep = values["npe"], values["ep"]
        if ep > npe:
            return f"must not exceed npe: {ep} > {npe}"
        values["vp"] = npe // ep if ep >= 1 else 1
    return ""


def _follow(values: dict[str, Any]) -> None:
    sentence = with_vp(values)
    if sentence:
        raise InputError(Mistake("core: ep", sentence))
    if values.get("delta") is not None:
        latency = values.get("latency", Latency())
        if isinstance(latency, Latency) and latency.delta is None:
            values["latency"] = replace(latency, delta=COMPARE_CYCLES)


@checked("core", _follow)
@hashed_once
@record
class ColumnCore:
    """One core: `npe` multipliers used as `vp` rows of `ep`, an adder tree, accumulators, a tail unit, threads.

    Each field says its meaning, unit and source. Two of them belong together: `tree_inputs` and `cat` describe a
    configurable adder-tree tail (CAT-n). With them, `ep` may be `tree_inputs`, `tree_inputs / 2`, ... `tree_inputs /
    cat`. Without them, the trees are built for `ep` itself.

    >>> core = ColumnCore(npe=65536, ep=32, vp=2048, tree_inputs=64, cat=4)
    >>> core.mistakes(), core.adders_saved
    ([], 3072)
    """

    npe: Annotated[int, _count("multipliers of the core")]
    ep: Annotated[int, _count("elements in parallel")]
    vp: Annotated[int, _count("rows in parallel", follows="npe // ep")]
    threads: Annotated[int, _count("jobs that the core works on in turn", bounds.MAX_THREADS, _ONE_THREAD)] = 1
    tail_width: Annotated[int, _rate("units that enter the tail", _NARROW)] = 64
    accumulator_banks: Annotated[int, _count("banks of accumulators of each thread", bounds.MAX_BANKS, _TWO_BANKS)] = 2
    tree_inputs: Annotated[int | None, _count("leaves of each adder tree", source=_PLAIN_TREES)] = None
    cat: Annotated[int, _CAT] = 1
    thread_policy: Annotated[
        str, Key("when a core goes on with another thread", choices=THREAD_POLICIES, source=_COARSE)
    ] = "coarse"
    switch_cycles: Annotated[int, _depth("a switch of threads", 0, _FREE_SWITCH)] = 0
    block_order: Annotated[str, Key("order of the tiles of a matrix", choices=BLOCK_ORDERS, source=_ROW_ORDER)] = "row"
    latency: Annotated[Latency, Key("pipeline depths", "cycles", source=_DEEP)] = field(default_factory=Latency)
    weight_kib: Annotated[
        int | None,
        Key("memory for weights", "KiB", 1, bounds.MAX_WEIGHT_KIB, source=f"{_ON_CHIP}: as much as it takes"),
    ] = None
    weight_bits: Annotated[
        int, Key("a weight in that memory", "bits", 1, 64, source="column-wise LSTM patent: 8-bit weights")
    ] = 8

    delta: Annotated[Delta | None, Key("which columns are skipped", source=_EVERY_COLUMN)] = None

    @property
    def delta_group(self) -> int:
        """Elements of a group of columns that is sent or skipped as a whole."""
        return (self.delta and self.delta.group) or self.ep

    @property
    def delta_cycles(self) -> int:
        """From a visible element until it is known whether its group is sent."""
        return COMPARE_CYCLES if self.latency.delta is None else self.latency.delta

    @property
    def weight_capacity(self) -> int | None:
        """How many weights the core holds; None for any number."""
        return None if self.weight_kib is None else self.weight_kib * 8192 // self.weight_bits

    @property
    def adders_saved(self) -> int:
        """Accumulators that the configurable tail does not need in addition to its tree.

        At `ep = tree_inputs / cat` each tree has to hold `cat` running sums. CAT-n forms them from the `cat - 1`
        adders of the tree's last levels and the one accumulator at its root; a fixed tree needs `cat - 1` more
        accumulators (patent, paragraphs on the configurable adder-tree tail). One tree per `tree_inputs` multipliers.
        """
        return 0 if self.tree_inputs is None else (self.cat - 1) * (self.npe // self.tree_inputs)

    def mistakes(self) -> list[tuple[str, str]]:
        """List what is wrong with the numbers, as (key, sentence) pairs. Numbers right alone are judged together."""
        return mistakes_of(self) or self._mistakes_together()

    def _mistakes_together(self) -> list[tuple[str, str]]:
        mistakes = []
        if self.ep * self.vp > self.npe:
            text = f"ep * vp must not exceed npe: {self.ep} * {self.vp} = {self.ep * self.vp} > {self.npe}"
            mistakes.append(("vp", text))
        if self.delta_group % self.ep:
            mistakes.append(("delta", f"group must be a multiple of ep {self.ep}, got {self.delta_group}"))
        if self.tree_inputs is None:
            if self.cat > 1:
                mistakes.append(("cat", "needs tree_inputs, the number of leaves of each adder tree"))
        elif self.tree_inputs > self.npe:
            text = f"an adder tree of {self.tree_inputs} inputs needs as many multipliers; npe is {self.npe}"
            mistakes.append(("tree_inputs", text))
        elif self.ep not in self.reachable_ep:
            choices = ", ".join(map(str, self.reachable_ep))
            text = f"an adder tree of {self.tree_inputs} inputs with CAT-{self.cat} gives ep {choices}; got {self.ep}"
            # of other sizes a tree can be built too, but for powers of two it is what was meant
            advice = f": set `tree_inputs` to {self.ep}, or to null with `cat` 1, which allows any ep"
            text += "" if self.ep & (self.ep - 1) else advice
            mistakes.append(("ep", text))
        return mistakes

    @property
    def reachable_ep(self) -> tuple[int, ...]:
        """Every `ep` that the adder tree can be set to; `(ep,)` if the tree is built for one `ep` only."""
        if self.tree_inputs is None:
            return (self.ep,)
        shifts = range(self.cat.bit_length())
        return tuple(self.tree_inputs >> k for k in shifts if self.tree_inputs % (1 << k) == 0)

    def units_per_block(self, stage: Stage) -> int:
        """How many whole units one row block of a stage holds."""
        return self.vp // len(stage.gates)

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can.

        >>> from lstmsim.model.cells import cell
        >>> from lstmsim.model.model import Layer
        >>> ColumnCore(npe=64, ep=4, vp=2).refusal(Model("m", (Layer(cell("gru"), 8, 8),)))
        "cell 'gru' has 3 gates and needs vp >= 3, got vp 2"
        """
        for index, layer in enumerate(model.layers):
            refusal = self.delta and _no_delta(index, layer)
            if refusal:
                return refusal
            for stage in layer.cell.stages:
                gates = len(stage.gates)
                if self.vp < gates:
                    which = "" if len(layer.cell.stages) == 1 else " in one stage"
                    return (
                        f"cell {layer.cell.name!r} has {gates} gates{which} and needs vp >= {gates}, got vp {self.vp}"
                    )
                rows, units = layer.units(stage.rows), self.units_per_block(stage)
                blocks = -(-rows // units)
                if self.block_order == "column" and self.accumulator_banks < blocks:
                    why = f"one for each row block of layer {index} ({stage.rows} {rows}, {units} units a block)"
                    need = f"block_order 'column' needs accumulator_banks >= {blocks}, {why}"
                    return f"{need}, got accumulator_banks {self.accumulator_banks}"
        return None


def _no_delta(number: int, layer: Layer) -> str:
    """Why no core with delta columns can run a layer; empty if one can."""
    if layer.bidirectional or layer.reverse:
        how = "is bidirectional" if layer.bidirectional else "runs in reverse"
        return f"layer {number} {how}, and differences are kept in one order of the steps (`delta` of the core)"
    if len(segments(layer.cell)) > 1:
        text = "takes several products or reductions, whose sums are not kept (`delta` of the core)"
        return f"cell {layer.cell.name!r} of layer {number} {text}"
    return ""


#: Cycles after which another thread's transfer gets its turn. Assumption, because memory controllers need a burst of
#: some KiB to be near their bandwidth. Turns share the bandwidth evenly, and change no sum.
TURN_CYCLES = 256


@checked("memory")
@record
class Memory:
    """A memory that all cores of a chip share; all of its bandwidth is for weights.

    >>> Memory(gb_per_s=76.8).transfer_cycles(8 * 768_000, frequency_mhz=250)
    2500
    """

    gb_per_s: Annotated[
        float, Key("bandwidth in 10^9 bytes a second", "GB/s", bounds.MIN_GB_PER_S, bounds.MAX_GB_PER_S)
    ]
    latency_cycles: Annotated[
        int, _depth("from the end of a transfer until its weights can be used", 0, _DRAM, vary=False)
    ] = 64
    prefetch_blocks: Annotated[
        int,
        _count("row blocks of streamed weights that a core has room for", bounds.MAX_BANKS, _TWO_BLOCKS, vary=False),
    ] = 2

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs.

        >>> Memory(0, -1).mistakes()
        [('gb_per_s', 'must be at least 0.001, got 0'), ('latency_cycles', 'must be at least 0, got -1')]
        """
        return mistakes_of(self)

    def transfer_cycles(self, bits: int, frequency_mhz: float) -> int:
        """Whole cycles of a clock that `bits` bits take at full bandwidth, at least 1."""
        bits_per_cycle = Fraction(str(self.gb_per_s)) * 8000 / Fraction(str(frequency_mhz))
        return max(1, -(-bits // bits_per_cycle))


#: Weights are streamed block by block, and a product needs the weights of its row block.
_STREAMED = Words(
    glossary="nothing can issue, because a row block's weights are still being streamed from the memory",
    next_wait="block's weights",
    leg="tiles wait for weights from the memory",
    way="until the weights are there that a tile needs",
)

#: Name of cycles or losses, way off the array, or word of outputs -> words.
WORDS = {
    **ARRAY_WORDS,
    "room": Words(
        called="bank",
        leg="a row block waits for a free accumulator bank",
        way="from a row block's last tile to the free accumulator bank that the next one takes",
    ),
    "weights": _STREAMED,
    "CAT": Words(
        glossary="configurable adder-tree tail: the tree's last levels can serve as accumulators, so that ep can be "
        "changed",
        behind="vp",
    ),
    "row block": Words(glossary="the rows that fill vp: as many whole hidden units as fit", behind="tile"),
    "bank": Words(glossary="accumulator memory for the partial sums of one row block", behind="row block"),
    "tail": Words(
        glossary="the unit behind the array: activations and state updates, tail_width hidden units a cycle",
        behind="array",
    ),
    "exchange": Words(glossary="sends a core's share of h to the other cores of its job", behind="tail"),
    "link": Words(
        glossary="sends what cores of a device have sent on to the other devices of a job", behind="exchange"
    ),
    "memory": Words(
        glossary="DRAM or HBM beside the chip, shared by its cores: from there come weights that do not stay on it",
        behind="exchange",
    ),
}


#: Settings of a core that a report shows next to its array, where they are not zero.
_SHOWN = (
    *("threads", "thread_policy", "switch_cycles", "tail_width", "accumulator_banks", "block_order", "adders_saved"),
    "weight_kib",
)


@checked("exchange")
@record
class Exchange:
    """The links between the cores of a split job, for h. Each core has a link of its own to all others.

    >>> Exchange(width=0).mistakes(), Exchange(latency_cycles=0).visible_cycles
    ([('width', 'must be at least 1, got 0')], 1)
    """

    latency_cycles: Annotated[
        int, _depth("from an element's turn on the link until other cores can read it", 0, _ACROSS, vary=False)
    ] = 8
    width: Annotated[int, _rate("elements that the link takes", _AS_TAIL, vary=False)] = 64

    @property
    def visible_cycles(self) -> int:
        """Cycles from an element's turn on the link until other cores can read it; at least 1, as after the tail."""
        return max(1, self.latency_cycles)

    def rate(self, tail_width: int) -> int:
        """Elements of a vector that leave in a cycle: no more than the tail unit gives in a cycle.

        >>> [Exchange(width=width).rate(tail_width=64) for width in (16, 64, 256)]
        [16, 64, 64]
        """
        return min(self.width, tail_width)

    def mistakes(self) -> list[tuple[str, str]]:
        return mistakes_of(self)


@checked("devices")
@record
class Devices(Exchange):
    """The devices (FPGAs) that a chip stands for, and the links between them: one more level of the exchange.

    Each device has as many of the cores, and one link to all other devices.

    >>> Devices(latency_cycles=0).visible_cycles, Devices(width=100).rate(Exchange().rate(tail_width=64))
    (1, 64)
    """

    latency_cycles: Annotated[
        int, _depth("from an element's turn on the link until other devices can read it", 0, _LTL_TRIP, vary=False)
    ] = 375
    width: Annotated[int, _rate("elements that the link of a device takes", _LTL_WIDTH, vary=False)] = 20
    count: Annotated[int, _count("devices", bounds.MAX_CORES, _TWO_FPGAS, vary=False)] = 2


def device_faults(devices: int, cores: int, memory: bool) -> list[tuple[str, str]]:
    """Why so many cores cannot be on so many devices, as (key, sentence) pairs.

    >>> device_faults(2, 3, memory=False)
    [('devices.count', 'must share out the cores evenly: 3 cores on 2 devices')]
    """
    if cores % devices:
        return [("devices.count", f"must share out the cores evenly: {cores} cores on {devices} devices")]
    if memory and devices > 1:
        return [("memory", "one memory serves all cores, and several devices have one each: leave out one of both")]
    return []


@checked("chip")
@record
class ColumnNpu:
    """A chip: one clock, one or more cores, equal or not, perhaps a memory. It may stand for several linked devices.

    `InputError` if a core cannot be built, or if the cores cannot be shared out over the devices.

    >>> ColumnNpu("small", 260, (ColumnCore(npe=64, ep=4, vp=16),)).cores[0].ep
    4
    """

    name: str
    frequency_mhz: Clock
    cores: tuple[ColumnCore, ...]
    memory: Annotated[Memory | None, Key("memory beside the chip", source=_ON_CHIP)] = None
    exchange: Annotated[
        Exchange, Key("links between cores", source="assumption, because the patent's cores share nothing")
    ] = Exchange()
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "column-npu"
    devices: Annotated[Devices | None, Key("several devices, and the links between them", source=_ONE_FPGA)] = None

    def __post_init__(self) -> None:
        check_description(self)
        faults = device_faults(self.device_count, len(self.cores), self.memory is not None)
        refuse(Mistake(f"chip {self.name}: {key}", text) for key, text in faults)

    def device_of(self, core: int) -> int:
        """The device of a core: the first cores are on the first device.

        >>> chip = ColumnNpu("two", 260, (ColumnCore(npe=64, ep=4, vp=16),) * 4, devices=Devices(count=2))
        >>> [chip.device_of(core) for core in range(4)]
        [0, 0, 1, 1]
        """
        return core * self.device_count // len(self.cores)

    @property
    def device_count(self) -> int:
        """How many devices the chip stands for."""
        return 1 if self.devices is None else self.devices.count

    @cached_property
    def core_figures(self) -> tuple[CoreFigures, ...]:
        """The cores as the accounts see them; equal cores are one object."""
        shown = {core: {key: getattr(core, key) for key in _SHOWN} for core in dict.fromkeys(self.cores)}
        return array_figures(self.cores, shown, ("reload", "weights") if self.memory else (), WORDS)

    def remarks(self, job: Job) -> tuple[str, ...]:
        """Keys that the chip has no use for; where columns are skipped, for which data."""
        idle = unused(job, "threads", "weights")
        cores = [self.cores[each] for each in job.allowed(len(self.cores)) if each < len(self.cores)]
        if all(core.delta is None for core in cores):
            return (*idle, *unused(job, "density"))
        return (f"columns are skipped (delta): cycles depend on the data. {data_words(job)}", *idle)
