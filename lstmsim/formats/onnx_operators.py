"""The table of all operators of an ONNX network: what became of each, and its share of the multiply-accumulates.

Sizes that the file leaves open (batch, time) are assumed for the count: one sequence of 1,000, or of the exporter's
example if the network fits no other; the shares for 100 and 10,000 say how much that matters. A size is the batch if
the batch of the recurrent layers is exactly it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lstmsim.formats.onnx_graph import Scope, label
from lstmsim.formats.onnx_heads import Chain, Head
from lstmsim.formats.onnx_outcomes import Key, outcomes
from lstmsim.formats.onnx_products import products
from lstmsim.formats.onnx_shapes import Shapes
from lstmsim.formats.onnx_sizes import PRIMES, computed, frames_of, open_sizes, output_sizes, sized
from lstmsim.formats.operators import DENSE, LEFT_OUT, SIMULATED, Operators, OperatorTable
from lstmsim.formats.wording import listed, show
from lstmsim.workload.model import Layer

__all__ = ["operator_table"]

#: Frames that are assumed where the file leaves their number open: the count that is shown, then two to compare.
_LENGTHS = (1000, 100, 10_000)
#: Networks above this are listed, not counted.
_MAX_NODES = 50_000


@dataclass
class _Count:
    """Multiply-accumulates of each node in one run, or why they cannot be told; steps of each recurrent node."""

    macs: dict[tuple[int, int], int | str] = field(default_factory=dict)
    steps: set[int | None] = field(default_factory=set)
    batches: set[int | None] = field(default_factory=set)


def operator_table(
    network: Any, scopes: list[Scope], layers: Mapping[Key, Layer], chains: Mapping[Key, Chain], heads: bool
) -> OperatorTable:
    """What became of every node of `network`, opened as `scopes`.

    layers: the nodes that are recurrent layers of the models.
    chains: products behind their last layers that can be dense layers; heads: whether they are.
    """
    offered = [head for chain in chains.values() for head in chain.heads]
    became = outcomes(scopes, set(layers), {key for head in offered if heads for key in head.nodes})
    places = {
        (number, index): (scope, index) for number, scope in enumerate(scopes) for index in range(len(scope.nodes))
    }
    if len(places) > _MAX_NODES:
        text = f"the network has more than {_MAX_NODES:,} nodes"
        return OperatorTable(_groups({at: text for at, key in places.items() if key in became}, places, became, layers))
    sizes = open_sizes(network)
    own = {at: layers[key] for at, key in places.items() if key in layers}
    if not sizes:
        count = _counted(network, {}, own)
        table = _table(count, places, became, layers)
    else:
        table = _at_lengths(network, sizes, own, (places, became, layers))
    return replace(table, notes=(*_notes(became), *(() if heads else _offer(offered))))


_Places = dict[tuple[int, int], Key]


def _at_lengths(
    network: Any,
    sizes: list[str],
    own: dict[tuple[int, int], Layer],
    rest: tuple[_Places, dict[Key, str], Mapping[Key, Layer]],
) -> OperatorTable:
    """The table for one sequence of the first length, with the shares at the others."""
    primes = dict(zip(sizes, PRIMES, strict=False))
    probe = _counted(network, primes, own)
    single = [name for name, size in primes.items() if size in probe.batches]
    lengths = [name for name in sizes if name not in single]

    def at(length: int) -> OperatorTable:
        return _table(_counted(network, {name: 1 if name in single else length for name in sizes}, own), *rest)

    shown, table = _LENGTHS[0], at(_LENGTHS[0])
    between = None
    if table.left_out is None:
        # Some exports run with the length of their example only, which then is a size of their outputs.
        trials = ((length, at(length)) for length in output_sizes(network))
        shown, table = next((trial for trial in trials if trial[1].left_out is not None), (shown, table))
    elif lengths:
        shares = [table.left_out, *(at(length).left_out for length in _LENGTHS[1:])]
        known = [share for share in shares if share is not None]
        between = (min(known), max(known))
    words = [f"{show(name)} = {size:,}" for names, size in ((single, 1), (lengths, shown)) for name in names[:4]]
    more = " and others" if max(len(single), len(lengths)) > 4 else ""
    return replace(table, assumed=f"{listed(words, 'and')}{more}, which the file leaves open", between=between)


def _counted(network: Any, sizes: Mapping[str, int], layers: Mapping[tuple[int, int], Layer]) -> _Count:
    scopes, count = sized(network, sizes), _Count()
    shapes = computed(scopes)
    for number, scope in enumerate(scopes):
        for index in range(len(scope.nodes)):
            if index in scope.children:
                continue
            layer = layers.get((number, index))
            macs = _recurrent(shapes, scope, index, layer, count) if layer else products(shapes, scope, index)
            if macs != 0 and scope.loops:
                macs = f"{label(scope, index)} runs in {scope.loops[0]}, whose turns the file does not fix"
            count.macs[number, index] = macs
    return count


def _recurrent(shapes: Shapes, scope: Scope, index: int, layer: Layer, count: _Count) -> int | str:
    steps, batch = frames_of(shapes, scope, index)
    count.batches.add(batch)
    count.steps.add(steps * batch if steps is not None and batch is not None else None)
    if steps is None or batch is None:
        return f"the number of frames at {label(scope, index)} is not known"
    return steps * batch * layer.macs_per_step


def _table(count: _Count, places: _Places, became: dict[Key, str], layers: Mapping[Key, Layer]) -> OperatorTable:
    steps = next(iter(count.steps)) if len(count.steps) == 1 else None
    return OperatorTable(_groups(count.macs, places, became, layers), steps)


def _groups(
    macs: Mapping[tuple[int, int], int | str], places: _Places, became: dict[Key, str], layers: Mapping[Key, Layer]
) -> tuple[Operators, ...]:
    members: dict[tuple[str, str], list[int | str]] = defaultdict(list)
    for at, key in places.items():
        if key in became:
            # What is prepared from constants is done once, before any run.
            work = macs.get(at, 0) if became[key] in (SIMULATED, DENSE, LEFT_OUT) else 0
            members[str(key[0].nodes[key[1]].op_type), became[key]].append(work)
    groups = []
    for (kind, outcome), works in members.items():
        reasons = [each for each in works if isinstance(each, str)]
        total = None if reasons else sum(each for each in works if isinstance(each, int))
        groups.append(Operators(kind, outcome, len(works), total, reasons[0] if reasons else ""))
    return tuple(groups)


def _offer(heads: list[Head]) -> tuple[str, ...]:
    """The products that could be layers, and how."""
    if not heads:
        return ()
    names = listed([label(*head.product) for head in heads[:4]], "and") + (" and others" if len(heads) > 4 else "")
    return (f"--heads makes dense layers of {names}",)


def _notes(became: Mapping[Key, str]) -> tuple[str, ...]:
    """What to know about branches: all of them are counted."""
    choices = {
        branch[0]
        for scope, index in became
        for branch in scope.branches
        if became[scope, index] in (SIMULATED, LEFT_OUT)
    }
    count = len(choices)
    if not count:
        return ()
    return (f"both branches of {count} If{'s' if count > 1 else ''} are counted, of which one runs",)
