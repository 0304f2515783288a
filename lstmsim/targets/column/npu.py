"""The column-wise NPU: description of the chip. Its lowering is in `lstmsim.targets.column.lowering`.

Sources: column-wise LSTM patent (PE array, adder tree with configurable tail, threads). The patent gives no latency;
the defaults are an assumption, because a deeply pipelined Stratix 10 design is of that size and both of
the patent's stated orderings come out with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property

from lstmsim.errors import InputError, Mistake
from lstmsim.targets.assembly import check_cores
from lstmsim.targets.column.memory import Memory
from lstmsim.workload.cell import Stage
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import ArrayCore, Job

__all__ = ["BLOCK_ORDERS", "THREAD_POLICIES", "ColumnCore", "ColumnNpu", "Exchange", "Latency"]

THREAD_POLICIES = ("coarse", "fine")
BLOCK_ORDERS = ("row", "column")

_AT_LEAST_ONE = ("npe", "ep", "vp", "threads", "tail_width", "accumulator_banks", "cat", "weight_bits")

#: Latencies that may be 0; the others are at least 1.
_MAY_BE_ZERO = ("read", "convert", "quantize", "writeback")

#: Settings of a core that a report shows beside its array, where they are not zero.
_SHOWN = (
    *("threads", "thread_policy", "switch_cycles", "tail_width", "accumulator_banks", "block_order", "adders_saved"),
    "weight_kib",
)


@dataclass(frozen=True)
class Latency:
    """Pipeline depths in cycles; `add` counts per level of the adder tree.

    >>> Latency().mvm_cycles(32), Latency().mvm_cycles(1)
    (19, 14)
    """

    read: int = 4
    multiply: int = 4
    add: int = 1
    accumulate: int = 2
    convert: int = 4
    activation: int = 8
    elementwise_multiply: int = 4
    elementwise_add: int = 4
    quantize: int = 4
    writeback: int = 4
    divide: int = 16

    def mistakes(self) -> list[tuple[str, str]]:
        """Latencies below what the contract allows, as (key, sentence) pairs.

        >>> Latency(add=0, read=0).mistakes()
        [('add', 'must be at least 1, got 0')]
        """
        least = {key: 0 if key in _MAY_BE_ZERO else 1 for key in asdict(self)}
        values = asdict(self)
        return [(key, f"must be at least {low}, got {values[key]}") for key, low in least.items() if values[key] < low]

    def mvm_cycles(self, ep: int) -> int:
        """Cycles from the issue of a row block's last tile until its sums reach the tail unit."""
        levels = (ep - 1).bit_length()
        return self.read + self.multiply + self.add * levels + self.accumulate + self.convert


@dataclass(frozen=True)
class ColumnCore:
    """One core: `npe` multipliers used as `vp` rows of `ep`, an adder tree, accumulators, a tail unit, threads.

    `tree_inputs` and `cat` describe a configurable adder-tree tail (CAT-n): `ep` may be `tree_inputs`,
    `tree_inputs / 2`, ... `tree_inputs / cat`. Without them any `ep` is built as such. `weight_kib`: its memory for
    weights of `weight_bits` each (None: as much as it takes).

    >>> core = ColumnCore(npe=65536, ep=32, vp=2048, tree_inputs=64, cat=4)
    >>> core.mistakes(), core.adders_saved
    ([], 3072)
    """

    npe: int
    ep: int
    vp: int
    threads: int = 1
    tail_width: int = 64
    accumulator_banks: int = 2
    tree_inputs: int | None = None
    cat: int = 1
    thread_policy: str = "coarse"
    switch_cycles: int = 0
    block_order: str = "row"
    latency: Latency = field(default_factory=Latency)
    weight_kib: int | None = None
    weight_bits: int = 8

    @property
    def weight_capacity(self) -> int | None:
        """How many weights the core holds; None: any number.

        >>> ColumnCore(npe=64, ep=4, vp=16, weight_kib=1, weight_bits=4).weight_capacity
        2048
        """
        return None if self.weight_kib is None else self.weight_kib * 8192 // self.weight_bits

    @property
    def adders_saved(self) -> int:
        """Accumulators that the configurable tail does not need beside its tree.

        At `ep = tree_inputs / cat` each tree has to hold `cat` running sums. CAT-n forms them from the `cat - 1`
        adders of the tree's last levels and the one accumulator at its root; a fixed tree needs `cat - 1` more
        accumulators (patent, paragraphs on the configurable adder-tree tail). One tree per `tree_inputs` multipliers.
        """
        return 0 if self.tree_inputs is None else (self.cat - 1) * (self.npe // self.tree_inputs)

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, alone and taken together, as (key, sentence) pairs."""
        least = {key: getattr(self, key) for key in _AT_LEAST_ONE}
        found = [(key, f"must be at least 1, got {value}") for key, value in least.items() if value < 1]
        if self.weight_kib is not None and self.weight_kib < 1:
            found.append(("weight_kib", f"must be at least 1, got {self.weight_kib}"))
        if self.switch_cycles < 0:
            found.append(("switch_cycles", f"must be at least 0, got {self.switch_cycles}"))
        for key, known in (("thread_policy", THREAD_POLICIES), ("block_order", BLOCK_ORDERS)):
            if getattr(self, key) not in known:
                found.append((key, f"must be {' or '.join(known)}, got {getattr(self, key)!r}"))
        found += [(f"latency.{key}", text) for key, text in self.latency.mistakes()]
        if found:
            return found
        if self.ep * self.vp > self.npe:
            text = f"ep * vp must not exceed npe: {self.ep} * {self.vp} = {self.ep * self.vp} > {self.npe}"
            found.append(("vp", text))
        if self.cat & (self.cat - 1) or self.cat < 1:
            found.append(("cat", f"must be a power of two (1: no configurable tail), got {self.cat}"))
        elif self.tree_inputs is None:
            if self.cat > 1:
                found.append(("cat", "needs tree_inputs, the number of leaves of each adder tree"))
        elif self.tree_inputs > self.npe:
            text = f"an adder tree of {self.tree_inputs} inputs needs as many multipliers; npe is {self.npe}"
            found.append(("tree_inputs", text))
        elif self.ep not in self.reachable_ep:
            choices = ", ".join(map(str, self.reachable_ep))
            text = f"an adder tree of {self.tree_inputs} inputs with CAT-{self.cat} gives ep {choices}; got {self.ep}"
            found.append(("ep", text))
        return found

    @property
    def reachable_ep(self) -> tuple[int, ...]:
        """Every `ep` that the adder tree can be set to; `(ep,)` when the tree is built for just one."""
        if self.tree_inputs is None:
            return (self.ep,)
        shifts = range(self.cat.bit_length())
        return tuple(self.tree_inputs >> k for k in shifts if self.tree_inputs % (1 << k) == 0)

    def units_per_block(self, stage: Stage) -> int:
        """Units that one row block of a stage holds: whole units only."""
        return self.vp // len(stage.gates)

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can.

        >>> from lstmsim.workload.cells import cell
        >>> from lstmsim.workload.model import Layer
        >>> ColumnCore(npe=64, ep=4, vp=2).refusal(Model("m", (Layer(cell("gru"), 8, 8),)))
        "cell 'gru' has 3 gates and needs vp >= 3, got vp 2"
        """
        for index, layer in enumerate(model.layers):
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


def _settings(core: ColumnCore) -> dict[str, int | str]:
    return {key: getattr(core, key) for key in _SHOWN if getattr(core, key)}


@dataclass(frozen=True)
class Exchange:
    """How h goes from a core to the others of a job that is split: each core has a link of its own to all of them.

    `width`: elements that the link takes in a cycle, of those that are there (default: an assumption, because it is
    what the tail unit gives in a cycle by default). `latency_cycles`: from an element's turn on the link until it is
    visible on every other core (default: an assumption, because a write, a few registers across a die and a read take
    about that).

    >>> Exchange(width=0).mistakes(), Exchange(latency_cycles=0).visible_cycles
    ([('width', 'must be at least 1, got 0')], 1)
    """

    latency_cycles: int = 8
    width: int = 64

    @property
    def visible_cycles(self) -> int:
        """From an element's turn on the link until others can read it; at least 1, as behind the tail."""
        return max(1, self.latency_cycles)

    def rate(self, tail_width: int) -> int:
        """Elements of a vector that leave in a cycle: no more than the tail unit gives in one.

        >>> [Exchange(width=width).rate(tail_width=64) for width in (16, 64, 256)]
        [16, 64, 64]
        """
        return min(self.width, tail_width)

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs."""
        least = {"latency_cycles": 0, "width": 1}
        values = asdict(self)
        return [(key, f"must be at least {low}, got {values[key]}") for key, low in least.items() if values[key] < low]


@dataclass(frozen=True)
class ColumnNpu:
    """A chip: one clock, one or more cores, equal or not, perhaps a memory. `InputError` if a core cannot be built.

    >>> ColumnNpu("small", 260, (ColumnCore(npe=64, ep=4, vp=16),)).cores[0].ep
    4
    """

    name: str
    frequency_mhz: float
    cores: tuple[ColumnCore, ...]
    memory: Memory | None = None
    exchange: Exchange = Exchange()
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "column-npu"

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(f"chip {self.name}: cores.{index}.{key}", text)
            for index, core in enumerate(self.cores)
            for key, text in core.mistakes()
        ]
        if self.memory is not None:
            mistakes += [Mistake(f"chip {self.name}: memory.{key}", text) for key, text in self.memory.mistakes()]
        mistakes += [Mistake(f"chip {self.name}: exchange.{key}", text) for key, text in self.exchange.mistakes()]
        if mistakes:
            raise InputError(mistakes)

    @cached_property
    def array_cores(self) -> tuple[ArrayCore, ...]:
        """The cores as the accounts see them; equal cores are one object."""
        stalls = ("reload", "weights") if self.memory else ()
        distinct = {
            each: ArrayCore(each.npe, each.ep, each.vp, _settings(each), stalls) for each in dict.fromkeys(self.cores)
        }
        return tuple(distinct[each] for each in self.cores)

    def remarks(self, job: Job) -> tuple[str, ...]:
        """Nothing is simulated that the machine could not do."""
        return ()

    def check(self, job: Job) -> None:
        """Raise `InputError` if no core that the job may use can run it."""
        if job.batch != 1:
            text = f"a column-wise NPU has no batching (batch inputs are jobs of their own), got {job.batch}"
            raise InputError(Mistake(f"job {job.name}: batch", text))
        check_cores(self.cores, job)
