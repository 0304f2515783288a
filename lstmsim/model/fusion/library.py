"""Graphs by name: what the commands offer without a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from lstmsim.base.bounds import MAX_AXIS, MAX_ELEMENTS
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest, show
from lstmsim.model.cell import Cell
from lstmsim.model.cells import CELLS
from lstmsim.model.fusion import examples
from lstmsim.model.fusion.cells import cell_graph
from lstmsim.model.fusion.graph import Graph

__all__ = ["GRAPHS", "NamedGraph", "named_graph"]


@record
class NamedGraph:
    """A graph that has a name and sizes.

    name: of the graph.
    meaning: what it is, a sentence without a full stop.
    sizes: name of each size -> its default, a number or the name of the size that it equals if nobody says otherwise.
    make: sizes by name -> the graph.
    """

    name: str
    meaning: str
    sizes: Mapping[str, int | str] = field(hash=False)
    make: Callable[..., Graph] = field(compare=False, repr=False)


_LAYER: Mapping[str, int | str] = {"batch": 1, "hidden": 64, "input": "hidden"}
_ROWS: Mapping[str, int | str] = {"rows": 1, "length": 256}

_EXAMPLES = (
    NamedGraph(
        "ln-lstm",
        "a layer-normalised LSTM step; 43 operations: one norm over all four sums, one over c; lstm-layernorm is "
        "another graph, with norms of the sums of x and of h apart",
        _LAYER,
        examples.ln_lstm,
    ),
    NamedGraph("lstm-tail", "an LSTM step with one matrix for x and h", _LAYER, examples.lstm_tail),
    NamedGraph(
        "attention",
        "attention pooling: a softmax over time of the scores of features",
        {"batch": 1, "steps": 40, "features": 356},
        examples.attention,
    ),
    NamedGraph("softmax", "a softmax of each row", {"rows": 64, "length": 256}, examples.softmax),
    NamedGraph("log-softmax", "the logarithm of a softmax", {"rows": 1, "length": 465}, examples.log_softmax),
    NamedGraph("l2-norm", "a projection with relu whose rows get length 1", _ROWS, examples.l2_norm),
    NamedGraph("quantisation", "a product of a vector quantised at run time", _ROWS, examples.quantisation),
    NamedGraph(
        "bias-gradient", "gradients behind a tanh, and of its bias", {"rows": 100, "units": 96}, examples.bias_gradient
    ),
    NamedGraph("row-sum", "the sum of each row", {"rows": 4, "length": 2048}, examples.row_sum),
    NamedGraph(
        "figure-3",
        "a reduce over the middle one of three axes",
        {"outer": 5, "length": 4, "inner": 6},
        examples.column_min,
    ),
    NamedGraph(
        "figure-4",
        "four reduces in two groups",
        {"rows": 2048, "parts": 8, "length": 64, "results": 64},
        examples.figure_4,
    ),
    NamedGraph(
        "figure-7",
        "figure 7 of AStitch (ASPLOS'22), in kind",
        {"repeats": 32, "rows": 64, "length": 256},
        examples.figure_7,
    ),
    NamedGraph(
        "cycle", "a product between two operations that must not become one kernel", {"size": 8}, examples.cycle
    ),
    NamedGraph(
        "overflow",
        "a value that may be too large for shared memory",
        {"rows": 200, "parts": 2, "length": 300},
        examples.overflow,
    ),
)


#: What is said of a cell's graph beside its source, since another graph is easily taken for it.
_BESIDE = {
    "lstm-layernorm": "; 104 operations: norms of the sums of x, of those of h, and of c; ln-lstm is another graph, "
    "with one norm over the sums of both"
}


def _of_cell(cell: Cell) -> NamedGraph:
    def make(batch: int, hidden: int, input: int, projection: int | None = None) -> Graph:
        return cell_graph(cell, hidden, input, batch, projection)

    sizes = {**_LAYER, "projection": 32} if cell.projected else _LAYER
    meaning = f"a step of the built-in cell ({cell.source}){_BESIDE.get(cell.name, '')}"
    return NamedGraph(cell.name, meaning, sizes, make)


#: Graphs by name.
GRAPHS: Mapping[str, NamedGraph] = {each.name: each for each in (*map(_of_cell, CELLS.values()), *_EXAMPLES)}


def named_graph(name: str, sizes: Mapping[str, int] | None = None) -> Graph:
    """The graph of that name; `InputError` if there is none, or if a size is none of its sizes or out of range.

    name: a key of `GRAPHS`.
    sizes: by name; those left out have their defaults.

    >>> named_graph("row-sum", {"rows": 2}).nodes[0].shape
    (2, 2048)
    >>> named_graph("row-sum", {"row": 2})
    Traceback (most recent call last):
    lstmsim.InputError: row: graph 'row-sum' has no such size; did you mean 'rows'?
    """
    if name not in GRAPHS:
        near = nearest(str(name), GRAPHS)
        raise InputError(f"no graph called {show(name)}{near or '; there are: ' + ', '.join(GRAPHS)}")
    known, given = GRAPHS[name], dict(sizes or {})
    mistakes = [Mistake(each, sentence) for each, value in given.items() if (sentence := _mistake(known, each, value))]
    if mistakes:
        raise InputError(mistakes)
    whole = _whole(known, given)
    graph = known.make(**whole)
    _check_elements(graph)
    told = ", ".join(f"{each} {value}" for each, value in whole.items())
    return replace(graph, about=(f"{known.meaning}; {told}", *graph.about))


def _mistake(known: NamedGraph, size: str, value: object) -> str | None:
    """What is wrong with a size that somebody gave."""
    if size not in known.sizes:
        hint = nearest(size, known.sizes) or f"; its sizes: {listed(known.sizes, 'and')}"
        return f"graph {known.name!r} has no such size{hint}"
    if isinstance(value, bool) or not isinstance(value, int):
        return f"must be a whole number, got {show(value)}"
    return None if 1 <= value <= MAX_AXIS else f"must be from 1 to {MAX_AXIS}, got {show(value)}"


def _whole(known: NamedGraph, given: Mapping[str, int]) -> dict[str, int]:
    """All sizes, with the defaults of those that are not given."""
    whole: dict[str, int] = {}
    for each, default in known.sizes.items():
        whole[each] = given[each] if each in given else whole[default] if isinstance(default, str) else default
    return whole


def _check_elements(graph: Graph) -> None:
    read = {place for number, places in enumerate(graph.operands) if graph.nodes[number].intensive for place in places}
    looked = [node for number, node in enumerate(graph.nodes) if node.intensive or number in read]
    largest = max(looked, key=lambda node: node.size)
    if largest.size > MAX_ELEMENTS:
        raise InputError(
            f"{largest.name} would have {largest.size} elements; the pass takes tensors of at most {MAX_ELEMENTS}"
        )
