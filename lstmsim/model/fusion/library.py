"""Graphs by name: of recurrent cells, of what stands around recurrent layers, and of published figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TypeVar

from lstmsim.base.bounds import MAX_AXIS, MAX_ELEMENTS
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest, show
from lstmsim.model.cell import Cell
from lstmsim.model.cells import CELLS
from lstmsim.model.fusion.cells import cell_graph
from lstmsim.model.fusion.graph import Graph, Sketch


@record
class NamedGraph:
    """A graph that has a name and sizes.

    name: of the graph.
    meaning: a sentence on it, without a full stop.
    sizes: name of each size -> its default, a number or the name of the size that it equals if nobody says otherwise.
    make: sizes by name -> the graph.
    """

    name: str
    meaning: str
    sizes: Mapping[str, int | str] = field(hash=False)
    make: Callable[..., Graph] = field(compare=False, repr=False)


Maker = TypeVar("Maker", bound=Callable[..., Graph])
_EXAMPLES: list[NamedGraph] = []
_EPSILON = 1e-5


def _example(name: str, meaning: str, **sizes: int | str) -> Callable[[Maker], Maker]:
    """Offer what a function draws under a name, with default sizes."""

    def offered(make: Maker) -> Maker:
        _EXAMPLES.append(NamedGraph(name, meaning, sizes, make))
        return make

    return offered


@_example(
    "ln-lstm",
    "a layer-normalised LSTM step; 43 operations: one norm over all four sums, one over c; lstm-layernorm is "
    "another graph, with norms of the sums of x and of h apart",
    batch=1,
    hidden=64,
    input="hidden",
)
def ln_lstm(batch: int, hidden: int, input: int) -> Graph:
    """An LSTM step whose four sums are normalised together, and the cell state too; sizes as of a layer."""
    draw = Sketch()
    product = draw.matmul("p", draw.input("xh", (batch, input + hidden)), draw.input("W", (input + hidden, 4 * hidden)))
    ot, c2 = _lstm_state(draw, _normalised(draw, "ln", product), batch, hidden)
    ct = draw.element("tanh", "ct", _normalised(draw, "lnc", c2))
    return draw.graph("ln-lstm", (c2, draw.element("multiply", "h2", ot, ct)))


@_example("lstm-tail", "an LSTM step with one matrix for x and h", batch=1, hidden=64, input="hidden")
def lstm_tail(batch: int, hidden: int, input: int) -> Graph:
    """An LSTM step whose weights are one matrix of x and h; sizes as of a layer."""
    draw = Sketch()
    xh, weights = draw.input("xh", (batch, input + hidden)), draw.input("W", (input + hidden, 4 * hidden))
    bias = draw.input("b", (4 * hidden,))
    product = draw.matmul("p", xh, weights)
    sums = draw.element("add", "z", product, draw.broadcast("bb", bias, draw.shape(product), (1,)))
    ot, c2 = _lstm_state(draw, sums, batch, hidden)
    return draw.graph("lstm-tail", (c2, draw.element("multiply", "h2", ot, draw.element("tanh", "ct", c2))))


def _normalised(draw: Sketch, tag: str, value: str) -> str:
    """Layer normalisation over the last axis of a matrix, with scale and shift."""
    shape = draw.shape(value)
    share = 1.0 / shape[1]
    mean = draw.element("multiply", f"{tag}.mean", draw.reduce("reduce_sum", f"{tag}.sum", value, (1,)), share)
    centred = draw.element("subtract", f"{tag}.centred", value, draw.broadcast(f"{tag}.meanb", mean, shape, (0,)))
    square = draw.element("multiply", f"{tag}.square", centred, centred)
    variance = draw.element("multiply", f"{tag}.var", draw.reduce("reduce_sum", f"{tag}.sumsq", square, (1,)), share)
    rstd = draw.element("rsqrt", f"{tag}.rstd", draw.element("add", f"{tag}.eps", variance, _EPSILON))
    normal = draw.element("multiply", f"{tag}.normal", centred, draw.broadcast(f"{tag}.rstdb", rstd, shape, (0,)))
    gamma = draw.broadcast(f"{tag}.gammab", draw.input(f"{tag}.gamma", shape[1:]), shape, (1,))
    beta = draw.broadcast(f"{tag}.betab", draw.input(f"{tag}.beta", shape[1:]), shape, (1,))
    return draw.element("add", f"{tag}.out", draw.element("multiply", f"{tag}.scaled", normal, gamma), beta)


def _lstm_state(draw: Sketch, sums: str, batch: int, hidden: int) -> tuple[str, str]:
    """The output gate and the next cell state, of the four sums of an LSTM side by side."""
    zi, zf, zg, zo = (
        draw.slice(f"z{gate}", sums, (0, place * hidden), (batch, hidden)) for place, gate in enumerate("ifgo")
    )
    it, ft, ot = (
        draw.element("sigmoid", name, part) for name, part in zip(("it", "ft", "ot"), (zi, zf, zo), strict=True)
    )
    gt = draw.element("tanh", "gt", zg)
    fc = draw.element("multiply", "fc", ft, draw.input("c", (batch, hidden)))
    return ot, draw.element("add", "c2", fc, draw.element("multiply", "ig", it, gt))


@_example(
    "attention", "attention pooling: a softmax over time of the scores of features", batch=1, steps=40, features=356
)
def attention(batch: int, steps: int, features: int) -> Graph:
    """Attention pooling: features of all time steps, weighted by a softmax over time of their scores, and added up."""
    draw = Sketch()
    shape = (batch, steps, features)
    f = draw.input("f", shape)
    weights = draw.broadcast("wb", draw.input("w", (features,)), shape, (2,))
    score = draw.reduce("reduce_sum", "score", draw.element("multiply", "fw", f, weights), (2,))
    a = _softmax(draw, score, "a", "sum")
    weighted = draw.element("multiply", "wf", f, draw.broadcast("ab", a, shape, (0, 1)))
    moved = draw.transpose("tr", weighted, (0, 2, 1))
    return draw.graph("attention", (draw.reduce("reduce_sum", "y", moved, (2,)),))


@_example("softmax", "a softmax of each row", rows=64, length=256)
def softmax(rows: int, length: int) -> Graph:
    """Softmax of each row."""
    draw = Sketch()
    return draw.graph("softmax", (_softmax(draw, draw.input("x", (rows, length)), "y", "s"),))


def _softmax(draw: Sketch, value: str, name: str, total: str) -> str:
    _, e = _exponentials(draw, value)
    s = draw.reduce("reduce_sum", total, e, (1,))
    return draw.element("divide", name, e, draw.broadcast(f"{total}b", s, draw.shape(value), (0,)))


def _exponentials(draw: Sketch, value: str) -> tuple[str, str]:
    """Each row less its maximum, and the exponential of that."""
    largest = draw.broadcast("maxb", draw.reduce("reduce_max", "max", value, (1,)), draw.shape(value), (0,))
    d = draw.element("subtract", "d", value, largest)
    return d, draw.element("exp", "e", d)


@_example("log-softmax", "the logarithm of a softmax", rows=1, length=465)
def log_softmax(rows: int, length: int) -> Graph:
    """The logarithm of a softmax of each row."""
    draw = Sketch()
    d, e = _exponentials(draw, draw.input("x", (rows, length)))
    logarithm = draw.element("log", "l", draw.reduce("reduce_sum", "s", e, (1,)))
    spread = draw.broadcast("lb", logarithm, (rows, length), (0,))
    return draw.graph("log-softmax", (draw.element("subtract", "y", d, spread),))


@_example("l2-norm", "a projection with relu whose rows get length 1", rows=1, length=256)
def l2_norm(rows: int, length: int) -> Graph:
    """A projection with relu whose rows get length 1."""
    draw = Sketch()
    product = draw.matmul("p", draw.input("a", (rows, length)), draw.input("W", (length, length)))
    r = draw.element("maximum", "r", product, 0.0)
    total = draw.reduce("reduce_sum", "s", draw.element("multiply", "q", r, r), (1,))
    n = draw.element("rsqrt", "n", draw.element("add", "eps", total, 1e-12))
    return draw.graph("l2-norm", (draw.element("multiply", "y", r, draw.broadcast("nb", n, (rows, length), (0,))),))


@_example("quantisation", "a product of a vector quantised at run time", rows=1, length=256)
def quantisation(rows: int, length: int) -> Graph:
    """A product of vectors that are quantised to 8 bits by their largest value at run time."""
    draw = Sketch()
    h, weights = draw.input("h", (rows, length)), draw.input("W", (length, length))
    largest = draw.reduce("reduce_max", "max", draw.element("abs", "abs", h), (0, 1))
    scale = draw.element("divide", "scale", largest, 127.0)
    inverse = draw.broadcast("ib", draw.element("reciprocal", "inv", scale), (rows, length), ())
    q = draw.element("round", "q", draw.element("multiply", "hs", h, inverse))
    product = draw.matmul("p", q, weights)
    spread = draw.broadcast("scb", scale, (rows, length), ())
    return draw.graph("quantisation", (draw.element("multiply", "y", product, spread),))


@_example("bias-gradient", "gradients behind a tanh, and of its bias", rows=100, units=96)
def bias_gradient(rows: int, units: int) -> Graph:
    """The gradient behind a tanh of a batch of steps, and the gradient of the bias: its sum over all of them."""
    draw = Sketch()
    dz, t = draw.input("dz", (rows, units)), draw.input("t", (rows, units))
    slope = draw.element("subtract", "one", 1.0, draw.element("multiply", "t2", t, t))
    d = draw.element("multiply", "d", dz, slope)
    return draw.graph("bias-gradient", (draw.reduce("reduce_sum", "db", d, (0,)), d))


@_example("row-sum", "the sum of each row", rows=4, length=2048)
def row_sum(rows: int, length: int) -> Graph:
    """The sum of each row; 4 rows of 2048 is the published example of a row that several blocks share."""
    draw = Sketch()
    return draw.graph("row-sum", (draw.reduce("reduce_sum", "y", draw.input("x", (rows, length)), (1,)),))


@_example("figure-3", "a reduce over the middle one of three axes", outer=5, length=4, inner=6)
def column_min(outer: int, length: int, inner: int) -> Graph:
    """The minimum over the middle axis of three; figure 3."""
    draw = Sketch()
    return draw.graph("figure-3", (draw.reduce("reduce_min", "y", draw.input("x", (outer, length, inner)), (1,)),))


@_example("figure-4", "four reduces in two groups", rows=2048, parts=8, length=64, results=64)
def figure_4(rows: int, parts: int, length: int, results: int) -> Graph:
    """Four reduces in two groups; figures 4 and 6."""
    draw = Sketch()
    x, y = draw.input("x", (rows, parts, length)), draw.input("y", (results, rows))
    r1 = draw.reduce("reduce_sum", "r1", draw.element("multiply", "x2", x, x), (2,))
    r2 = draw.reduce("reduce_sum", "r2", draw.element("sqrt", "r1s", r1), (1,))
    spread = draw.broadcast("r2b", draw.element("multiply", "r2s", r2, 0.5), (results, rows), (1,))
    r3 = draw.reduce("reduce_sum", "r3", draw.element("multiply", "yb", y, spread), (1,))
    r4 = draw.reduce("reduce_max", "r4", draw.element("add", "r3s", r3, 1.0), (0,))
    return draw.graph("figure-4", (r4,))


@_example("figure-7", "figure 7 of AStitch (ASPLOS'22), in kind", repeats=32, rows=64, length=256)
def figure_7(repeats: int, rows: int, length: int) -> Graph:
    """Two reduces, an expensive operation before a broadcast, an output; in kind figure 7 of AStitch (ASPLOS'22)."""
    draw = Sketch()
    flat, whole = (rows, length), (repeats, rows, length)
    x, y = draw.input("x", flat), draw.input("y", whole)
    a1 = draw.element("add", "A.1", x, 1.0)
    r1 = draw.reduce("reduce_sum", "R.1", a1, (1,))
    d1 = draw.element("subtract", "D.1", a1, draw.broadcast("B.1", r1, flat, (0,)))
    power = draw.element("power", "Pw.1", d1, 2.0)
    s1 = draw.element("subtract", "S.1", y, draw.broadcast("B.2", power, whole, (1, 2)))
    r2 = draw.reduce("reduce_sum", "R.2", s1, (1, 2))
    return draw.graph("figure-7", (draw.element("multiply", "M.1", s1, draw.broadcast("B.3", r2, whole, (0,))),))


@_example("cycle", "a product between two operations that must not become one kernel", size=8)
def cycle(size: int) -> Graph:
    """Two operations that must not become one kernel, because a product between them needs one and feeds the other."""
    draw = Sketch()
    x, weights = draw.input("x", (size, size)), draw.input("W", (size, size))
    a = draw.element("tanh", "a", x)
    y = draw.element("add", "y", draw.matmul("p", a, weights), a)
    return draw.graph("cycle", (draw.reduce("reduce_sum", "s", y, (1,)),))


@_example("overflow", "a value that may be too large for shared memory", rows=200, parts=2, length=300)
def overflow(rows: int, parts: int, length: int) -> Graph:
    """A row of values (tanh) that all of a block needs: more than shared memory holds if the rows are long."""
    draw = Sketch()
    flat, whole = (rows, length), (rows, parts, length)
    x, y = draw.input("x", flat), draw.input("y", whole)
    s = draw.reduce("reduce_sum", "s", x, (1,))
    t = draw.element("tanh", "t", draw.element("subtract", "d", x, draw.broadcast("sb", s, flat, (0,))))
    ty = draw.element("multiply", "ty", y, draw.broadcast("tb", t, whole, (0, 2)))
    return draw.graph("overflow", (draw.reduce("reduce_sum", "o", ty, (1, 2)),))


_LAYER: Mapping[str, int | str] = {"batch": 1, "hidden": 64, "input": "hidden"}
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
    """The graph of a name in `GRAPHS`; `InputError` if there is none, or a size is not of it or out of range."""
    if name not in GRAPHS:
        near = nearest(str(name), GRAPHS)
        raise InputError(f"no graph called {show(name)}{near or '; there are: ' + ', '.join(GRAPHS)}")
    known, given = GRAPHS[name], dict(sizes or {})
    refuse(Mistake(each, sentence) for each, value in given.items() if (sentence := _mistake(known, each, value)))
    whole = _whole(known, given)
    graph = known.make(**whole)
    _check_elements(graph)
    sized = ", ".join(f"{each} {value}" for each, value in whole.items())
    return replace(graph, about=(f"{known.meaning}; {sized}", *graph.about))


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
