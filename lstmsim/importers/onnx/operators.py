"""The table of all operators of an ONNX network: what became of each, and its share of the multiply-accumulates.

Sizes that the file leaves open (batch, time) are assumed for the count: one sequence of 1,000 steps, or of the length
of the exporter's example if the network fits no other length. The shares for 100 and 10,000 steps say how much that
matters. An open size is the batch if the recurrent layers have exactly this batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import FOLDED, LEFT_OUT, SIMULATED, Operators, OperatorTable
from lstmsim.importers.onnx.graph import Scope, label
from lstmsim.importers.onnx.heads import Chain, Head
from lstmsim.importers.onnx.outcomes import Key, outcomes
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.sizes import MAX_COUNTED, PRIMES, frames_of, open_sizes, output_sizes, products, sized
from lstmsim.model.model import Layer

__all__ = ["operator_table"]

#: Frames that are assumed if the file leaves their number open: the number of the table, then two to compare.
_LENGTHS = (1000, 100, 10_000)


def operator_table(
    network: Any,
    scopes: list[Scope],
    layers: Mapping[Key, Layer],
    chains: Mapping[Key, Chain],
    heads: bool,
    written_out: Mapping[Key, str] = MappingProxyType({}),
) -> OperatorTable:
    """Count what became of every node of a network."""
    offered = [head for chain in chains.values() for head in chain.heads]
    became = outcomes(scopes, set(layers), {key for head in offered if heads for key in head.nodes}) | dict(written_out)
    if len(became) > MAX_COUNTED:
        text = f"the network has more than {MAX_COUNTED:,} nodes"
        return OperatorTable(_groups(dict.fromkeys(became, text), became))
    count = _Count(network, scopes, layers, became)
    sizes = open_sizes(network)
    table = _at_lengths(count, sizes) if sizes else count.table({})
    return replace(table, notes=(*_notes(became), *(() if heads else _offer(offered))))


@dataclass(frozen=True)
class _Count:
    """A network whose work can be counted for any sizes of a run."""

    network: Any
    scopes: list[Scope]
    layers: Mapping[Key, Layer]
    became: Mapping[Key, str]

    def table(self, sizes: Mapping[str, int]) -> OperatorTable:
        """Make the table for a run with numbers for the open sizes."""
        with sized(self.network, self.scopes, sizes) as shapes:
            macs = {key: self._macs(shapes, *key) for key in self.became}
            frames = {frames_of(shapes, *key) for key in self.layers}
        steps = {time * batch if time is not None and batch is not None else None for time, batch in frames}
        return OperatorTable(_groups(macs, self.became), steps.pop() if len(steps) == 1 else None)

    def batches(self, sizes: Mapping[str, int]) -> set[int | None]:
        """Give the batches of the recurrent layers in a run with numbers for the open sizes."""
        with sized(self.network, self.scopes, sizes) as shapes:
            return {frames_of(shapes, *key)[1] for key in self.layers}

    def _macs(self, shapes: Shapes, scope: Scope, index: int) -> int | str:
        """Multiply-accumulates of a node in the run, or why they cannot be told."""
        layer = self.layers.get((scope, index))
        macs: int | str
        if layer is None:
            macs = products(shapes, scope, index)
        else:
            steps, batch = frames_of(shapes, scope, index)
            macs = f"the number of frames at {label(scope, index)} is not known"
            if steps is not None and batch is not None:
                macs = steps * batch * layer.macs_per_step
        if macs != 0 and scope.loops:
            return f"{label(scope, index)} runs in {scope.loops[0]}, whose turns the file does not fix"
        return macs


def _at_lengths(count: _Count, sizes: list[str]) -> OperatorTable:
    """The table for one sequence of the first length, with the shares at the others."""
    primes = dict(zip(sizes, PRIMES, strict=False))
    batches = count.batches(primes)
    single = [name for name, size in primes.items() if size in batches]
    lengths = [name for name in sizes if name not in single]

    def at(length: int) -> OperatorTable:
        return count.table({name: 1 if name in single else length for name in sizes})

    shown, table = _LENGTHS[0], at(_LENGTHS[0])
    between = None
    if table.left_out is None:
        # Some exports run only with the length of their example, which then is a size of their outputs.
        trials = ((length, at(length)) for length in output_sizes(count.network))
        shown, table = next((trial for trial in trials if trial[1].left_out is not None), (shown, table))
    elif lengths:
        shares = [table.left_out, *(at(length).left_out for length in _LENGTHS[1:])]
        known = [share for share in shares if share is not None]
        between = (min(known), max(known))
    words = [f"{show(name)} = {size:,}" for names, size in ((single, 1), (lengths, shown)) for name in names[:4]]
    more = " and others" if max(len(single), len(lengths)) > 4 else ""
    return replace(table, assumed=f"{listed(words, 'and')}{more}, which the file leaves open", between=between)


def _groups(macs: Mapping[Key, int | str], became: Mapping[Key, str]) -> tuple[Operators, ...]:
    members: dict[tuple[str, str], list[int | str]] = defaultdict(list)
    for key, outcome in became.items():
        # Operations on constants are done once, before any run.
        members[str(key[0].nodes[key[1]].op_type), outcome].append(0 if outcome == FOLDED else macs[key])
    groups = []
    for (kind, outcome), works in members.items():
        reasons = [each for each in works if isinstance(each, str)]
        total = None if reasons else sum(each for each in works if isinstance(each, int))
        groups.append(Operators(kind, outcome, len(works), total, reasons[0] if reasons else ""))
    return tuple(groups)


def _offer(heads: list[Head]) -> tuple[str, ...]:
    """A note on the products that could be layers."""
    if not heads:
        return ()
    names = listed([label(*head.product) for head in heads[:4]], "and") + (" and others" if len(heads) > 4 else "")
    return (f"--heads makes dense layers of {names}",)


def _notes(became: Mapping[Key, str]) -> tuple[str, ...]:
    """A note on branches: all of them are counted."""
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
