"""The phases of a model on the column-wise NPU, in either order of layers, on one core or split over several.

Rules of splits: docs/timing.md, section 9. The cores of a split job are a sequence of numbers, one for each member;
members with equal numbers are on different threads of one core.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from lstmsim.machines.assembly import Phases
from lstmsim.machines.column.npu import ColumnCore, Devices, Exchange
from lstmsim.machines.column.passes import Source, write_pass
from lstmsim.machines.column.shape import WHOLE, Spread, pass_shapes, share_of
from lstmsim.model.cell import REDUCTIONS, segments
from lstmsim.model.model import Layer, Model
from lstmsim.program.body_writer import BodyWriter
from lstmsim.program.program import Phase, Unit

#: Operations in all the bodies that are kept, of all models and cores: some tens of MB.
MOST_OPERATIONS = 100_000
#: Phases of different lengths that are kept of a model on a core; each is a few numbers, without the bodies.
MOST_LENGTHS = 8192


V = TypeVar("V")


class Kept(Generic[V]):
    """Results by key. If they are too many, the least recently used result goes first. The last one always stays.

    most, size: largest sum of the sizes of results, and what gives the size of one.
    """

    def __init__(self, most: int, size: Callable[[V], int]) -> None:
        self.most, self.size = most, size
        self.results: dict[Hashable, V] = {}
        self.total = 0
        self._lock = Lock()

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The result of a key. `make` makes it if it is not in the store."""
        with self._lock:
            if key in self.results:
                # the last result in the order of the dictionary is the most recently used one
                result = self.results[key] = self.results.pop(key)
                return result
        made = make()
        with self._lock:
            if key not in self.results:
                self.results[key] = made
                self.total += self.size(made)
            while self.total > self.most and len(self.results) > 1:
                self.total -= self.size(self.results.pop(next(iter(self.results))))
        return made

    def clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self.results.clear()
            self.total = 0


class _Made(NamedTuple):
    """Phases of one model on one core."""

    once: Phases  # the phases of one step
    lengths: dict[int, Phases]  # number of steps -> its phases, which have the same bodies

    @property
    def operations(self) -> int:
        return sum(phase.body.size for phase in self.once)


_KEPT: Kept[_Made] = Kept(MOST_OPERATIONS, lambda made: made.operations)


def own_units(core: ColumnCore) -> tuple[Unit, ...]:
    """The units that every core has."""
    return Unit("array", core.thread_policy, core.switch_cycles, pipeline="MVM"), Unit("tail", "fifo")


def what_is_read(model: Model, core: ColumnCore) -> tuple[Hashable, ...]:
    """Give everything that the bodies of a model on a core depend on, as a key.

    Threads, policies, switch cycles, banks and weight memories of the core are not in the key, nor is the model's name.
    """
    latency: Hashable = core.latency
    return model.layers, model.layer_order, core.ep, core.vp, core.tail_width, core.block_order, latency


def kept_phases(key: Hashable, steps: int, make: Callable[[], Phases], *, repeats: bool = True) -> Phases:
    """Give the phases of a number of steps: the same object for equal arguments.

    make: makes those of one step. repeats: whether they repeat; else `make` makes all of them, whatever `steps`.
    """
    once, lengths = _KEPT.of(key, lambda: _Made(make(), {}))
    if not repeats:
        return once
    phases = lengths.get(steps)
    if phases is None:
        if len(lengths) >= MOST_LENGTHS:
            lengths.clear()
        phases = lengths[steps] = repeated(once, steps)
    return phases


def layer_phases(model: Model, core: ColumnCore, steps: int, spreads: Sequence[Spread] = ()) -> Phases:
    """Make the phases of `layer_order: layer`: one phase for each pass, forward before backward."""
    phases: list[Phase] = []
    below: list[Source] = []
    below_backward: list[bool] = []
    for number, (layer, spread) in enumerate(zip(model.layers, spreads or _alone(model), strict=True)):
        done = []
        for direction in range(layer.directions):
            backward = layer.backward(direction)
            sources = [
                replace(source, mirrored=backward != other) for source, other in zip(below, below_backward, strict=True)
            ]
            rows = BodyWriter()
            h = write_pass(rows, layer, core, (number, direction), sources, x_last=False, spread=spread)
            done.append(replace(h, phase=len(phases)))
            phases.append(Phase(rows.body(), steps, mirrored=backward))
        below, below_backward = done, [layer.backward(direction) for direction in range(layer.directions)]
    return tuple(phases)


def step_phases(
    model: Model, core: ColumnCore, steps: int, spreads: Sequence[Spread] = (), first: Collection[int] = (0,)
) -> Phases:
    """Make the phase of `layer_order: step`: one body with all layers."""
    rows = BodyWriter()
    sources: list[Source] = []
    for number, (layer, spread) in enumerate(zip(model.layers, spreads or _alone(model), strict=True)):
        h = write_pass(rows, layer, core, (number, 0), sources, x_last=number not in first, spread=spread)
        sources = [h]
    return (Phase(rows.body(), steps),)


def repeated(phases: Phases, steps: int) -> Phases:
    """Give the phases of `steps` steps. No body depends on the number, so jobs of all lengths share the same bodies."""
    return tuple(replace(phase, repeat=steps) for phase in phases)


def _alone(model: Model) -> tuple[Spread, ...]:
    return (WHOLE,) * len(model.layers)


def model_phases(model: Model, core: ColumnCore, steps: int, batch: int = 1) -> Phases:
    """Give the phases of a batch of inferences of a model on one core: the same object for equal arguments."""
    order = layer_phases if model.layer_order == "layer" else step_phases
    key = what_is_read(model, core)
    if batch == 1:
        return kept_phases(key, steps, lambda: order(model, core, 1))
    spreads = (Spread.of_batch(batch),) * len(model.layers)
    return kept_phases((*key, batch), steps, lambda: order(model, core, 1, spreads))


#: Stands for the links of a job that is on one device, which uses none.
ONE_DEVICE = Devices()

#: Most members of a job: the dependences of each member grow with the number of members, the program with its square.
MAX_MEMBERS = 256

#: Most cores of a job with `split: auto`: there is a program for each number of cores.
MAX_AUTO = 16


def split_phases(
    model: Model,
    core: ColumnCore,
    steps: int,
    split: str,
    place: Sequence[int],
    exchange: Exchange,
    devices: Sequence[int] = (),
    link: Devices | None = None,
) -> Phases:
    """Give the phases of a task that is spread over members: the same object for equal arguments.

    devices: for each member, the number of its device; empty: all are on one.
    link: the links between devices. What goes over them is sent by members of their own, which come after the others.
    """
    numbers = list(dict.fromkeys(place))
    cores = tuple(numbers.index(each) for each in place)
    on = dict(zip(cores, devices, strict=True)) if len(set(devices)) > 1 else {}
    spread = Spread(
        (),
        cores,
        (),
        exchange,
        devices=tuple(on[each] for each in sorted(on)),
        link=(link if on else None) or ONE_DEVICE,
    )
    key = (*what_is_read(model, core), split, spread)
    return kept_phases(key, steps, lambda: _once(model, core, split, spread))


def _once(model: Model, core: ColumnCore, split: str, over: Spread) -> Phases:
    """Make the phases of one step. `over`: the cores of all members."""
    count, place = len(model.layers), over.cores
    over = replace(over, first_sender=len(place))
    if split == "rows":
        spread = replace(over, members=tuple(range(len(place))), readers=place)
        spreads = [spread] * (count - 1) + [replace(spread, readers=())]
        order = layer_phases if model.layer_order == "layer" else step_phases
        return order(model, core, 1, spreads)
    runs = layer_runs(model, len(place))
    owners = [member for member, run in enumerate(runs) for _ in run]
    above = [(place[member],) for member in owners[1:]] + [()]
    spreads = [
        replace(over, members=(member,), cores=(place[member],), readers=readers)
        for member, readers in zip(owners, above, strict=True)
    ]
    return step_phases(model, core, 1, spreads, first=[run[0] for run in runs])


def layer_runs(model: Model, members: int) -> tuple[range, ...]:
    """Share out the layers of a job that is split into layers: a run of at least one layer for each member.

    Of all cuts, those are taken whose largest member has the fewest multiply-accumulates; of these cuts, those with
    the least sum of squares; of these, the cut that gives earlier members more layers.
    """
    macs = [layer.macs_per_step for layer in model.layers]
    count = len(macs)
    sums = [sum(macs[:index]) for index in range(count + 1)]

    @cache
    def largest(first: int, left: int) -> int:
        if left == 1:
            return sums[count] - sums[first]
        ends = range(first + 1, count - left + 2)
        return min(max(sums[end] - sums[first], largest(end, left - 1)) for end in ends)

    most = largest(0, members)

    @cache
    def best(first: int, left: int) -> tuple[int, tuple[int, ...]] | None:
        """Give the sum of squares, and minus the number of layers of each member, from layer `first` on."""
        ends = [count] if left == 1 else range(first + 1, count - left + 2)
        cuts = []
        for end in ends:
            own, rest = sums[end] - sums[first], (0, ()) if left == 1 else best(end, left - 1)
            if own <= most and rest is not None:
                cuts.append((own * own + rest[0], (first - end, *rest[1])))
        return min(cuts, default=None)

    cut = best(0, members)
    assert cut is not None, "the cut with the least maximum is among them"
    ends = [-sum(cut[1][: index + 1]) for index in range(members)]
    return tuple(range(first, end) for first, end in zip([0, *ends], ends, strict=False))


def split_refusal(model: Model, core: ColumnCore, split: str, members: int) -> str | None:
    """Say in a sentence why a model cannot be split over the members; None if it can be split."""
    if members == 1:
        return core.refusal(model)
    if split == "auto":
        text = f"auto takes at most {MAX_AUTO} cores, got {members}: name fewer (`cores`)"
        return text if members > MAX_AUTO else None
    if members > MAX_MEMBERS:
        return f"at most {MAX_MEMBERS} cores can work on one job here, got {members}"
    if split == "layers":
        return _no_layers(model, members) or core.refusal(model)
    for index, layer in enumerate(model.layers):
        refusal = _no_rows(index, layer, core, members)
        if refusal is not None:
            return refusal
    return None


def spreads_over(model: Model, core: ColumnCore, cores: int) -> tuple[int, ...]:
    """List the numbers of cores, from 2 on, over which a job with `split: auto` may spread."""
    return tuple(members for members in range(2, cores + 1) if split_refusal(model, core, "rows", members) is None)


def _no_layers(model: Model, members: int) -> str | None:
    for index, layer in enumerate(model.layers):
        if layer.bidirectional or layer.reverse:
            how = "is bidirectional" if layer.bidirectional else "runs in reverse"
            return f"layer {index} {how}: the layer above it cannot start before its last step"
    count = len(model.layers)
    if members > count:
        text = f"there are {members} members for {count} layer{'s' * (count > 1)}; each needs a layer of its own"
        return f"{text}: name fewer `cores`"
    return None


def _no_rows(index: int, layer: Layer, core: ColumnCore, members: int) -> str | None:
    cell = layer.cell
    reduced = [node.operation for node in cell.nodes if node.operation in REDUCTIONS]
    if reduced:
        return f"cell {cell.name!r} of layer {index} takes a {reduced[0]} over all units, which no core has"
    for shape in pass_shapes(layer, core, 0, members):
        rows, gates = shape.stage.rows, len(shape.stage.gates)
        if layer.units(rows) < members:
            what = "hidden" if rows == "hidden" else "projected"
            return f"layer {index} has {layer.units(rows)} {what} units for {members} cores; each needs one"
        if core.vp < gates:
            return f"cell {cell.name!r} has {gates} gates and needs vp >= {gates}, got vp {core.vp}"
        if core.block_order == "column" and core.accumulator_banks < len(shape.blocks):
            banks = f"needs accumulator_banks >= {len(shape.blocks)}, got accumulator_banks {core.accumulator_banks}"
            return f"block_order 'column' {banks}: one for each row block of a core's share of layer {index}"
    return None


def share_weights(model: Model, split: str, place: Sequence[int]) -> int:
    """Count the weights on the core of a place that has most weights; the threads of one core share its memory."""
    if not split:
        return model.macs_per_step
    members = len(place)
    each: Sequence[int]
    if split == "rows":
        each = _weights_of_shares(model.layers, members)
    else:
        runs = layer_runs(model, members)
        each = [sum(model.layers[number].macs_per_step for number in run) for run in runs]
    held = dict.fromkeys(place, 0)
    for own, core in zip(each, place, strict=True):
        held[core] += own
    return max(held.values())


@lru_cache(64)
def _weights_of_shares(layers: tuple[Layer, ...], shares: int) -> tuple[int, ...]:
    # a job that may begin on any of its cores has as many places as cores
    return tuple(sum(_share_weights(layer, share, shares) for layer in layers) for share in range(shares))


def _share_weights(layer: Layer, share: int, shares: int) -> int:
    stages = layer.cell.stages
    units = {rows: share_of(layer.units(rows), share, shares) for rows in dict.fromkeys(s.rows for s in stages)}
    return layer.directions * sum(len(s.gates) * units[s.rows] * layer.columns(s) for s in stages)


@lru_cache(1024)
def operations_per_step(
    layers: tuple[Layer, ...], core: ColumnCore, split: str = "", members: int = 1, batch: int = 1
) -> int:
    """Bound the operations to which one step of a model lowers on all of its cores, without making any.

    A point of a sweep asks for its own before it is lowered and while it is.
    """
    # a fine-grained core with several threads may have to record every tile on its own
    single = core.thread_policy == "fine" and core.threads > 1
    shares = members if split == "rows" else 1
    total = 0
    for layer in layers:
        for shape in pass_shapes(layer, core, 0, shares):
            blocks, vectors = -(-shape.units // shape.units_per_block), len(shape.stage.vectors)
            groups = sum(shape.groups(vector) for vector in shape.stage.vectors)
            runs = groups + (2 * vectors if split else 4) * blocks
            runs = runs if core.block_order == "row" else 3 * groups + 2 * blocks
            own = [each for each in segments(layer.cell) if each.stage == shape.number]
            turns = blocks * sum(1 + len(each.nodes) * bool(split) for each in own)
            total += layer.directions * shares * batch * (turns + (blocks * groups if single else runs))
    return total
