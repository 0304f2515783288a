"""Graphs of recurrent cells: one time step of a layer, as its project description has it.

Products are matrix products of the whole batch, as few as the vectors allow: x and h go into one product, and a sum
that reads only one of them has zeros under the other; each vector that a step itself makes is a product of its own.
Numbers are floats, so `quantize` does nothing, and the operation before it is the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.model.cell import REDUCTIONS, Cell, Node, Sum, kinds
from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.mapping import lowest_first
from lstmsim.model.model import Layer, Model


@record
class StepProduct:
    """A product: some vectors side by side, times a matrix.

    columns, rows: elements of each vector, and of each sum that it gives or a part of which it gives.
    fresh: of each sum whether this is its first part, which also brings the bias.
    sections: neighbouring rows that read the same columns: how many, the first column and the one after the last.
    """

    vectors: tuple[str, ...]
    columns: tuple[int, ...]
    sums: tuple[str, ...]
    rows: tuple[int, ...]
    fresh: tuple[bool, ...]
    sections: tuple[tuple[int, int, int], ...]

    @property
    def tag(self) -> str:
        """What the names of its nodes begin with."""
        return ".".join(self.vectors)

    @property
    def product(self) -> str:
        """Name of the node of the product."""
        return f"{self.tag}.p"

    def start(self, name: str) -> int:
        """The first row of a sum."""
        return sum(self.rows[: self.sums.index(name)])

    def offset(self, vector: str) -> int:
        """The first column of a vector."""
        return sum(self.columns[: self.vectors.index(vector)])


def products_of(layer: Layer) -> tuple[StepProduct, ...]:
    """The products of a time step: that of x and h, then those of vectors that the step makes, as first read."""
    sums = [(each, layer.units(stage.rows)) for stage in layer.cell.stages for each in stage.sums]
    read = dict.fromkeys(vector for each, _ in sums for vector in each.vectors)
    outside = tuple(vector for vector in ("x", "h") if vector in read)
    groups: list[tuple[str, ...]] = [outside] if outside else []
    groups += [(vector,) for vector in read if vector not in outside]
    known: set[str] = set()
    made = []
    for vectors in groups:
        own = [(each, rows) for each, rows in sums if set(each.vectors) & set(vectors)]
        made.append(_product(layer, vectors, own, known))
        known.update(each.name for each, _ in own)
    return tuple(made)


def _product(layer: Layer, vectors: tuple[str, ...], sums: Sequence[tuple[Sum, int]], known: set[str]) -> StepProduct:
    columns = tuple(layer.width(vector) for vector in vectors)
    groups: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for each, rows in sums:
        # sums that read the same columns lie side by side
        groups.setdefault(tuple(v for v in vectors if v in each.vectors), []).append((each.name, rows))
    sections = []
    for some, members in groups.items():
        places = [vectors.index(vector) for vector in some]
        bounds = sum(columns[: min(places)]), sum(columns[: max(places) + 1])
        sections.append((sum(rows for _, rows in members), *bounds))
    every = [member for members in groups.values() for member in members]
    names = tuple(name for name, _ in every)
    fresh = tuple(name not in known for name in names)
    return StepProduct(vectors, columns, names, tuple(rows for _, rows in every), fresh, tuple(sections))


@record
class StepGraph:
    """One time step of a layer: its graph, its matrix products, and (state, node of its next value)."""

    graph: Graph
    products: tuple[StepProduct, ...]
    states: tuple[tuple[str, str], ...]


def cell_graph(cell: Cell, hidden: int, input: int, batch: int, projection: int | None = None) -> Graph:
    """The graph of one time step; `InputError` if the cell or its sizes are wrong."""
    layer = Layer(cell, hidden, input, projection=projection)
    # a model tells what is wrong with a layer
    Model(cell.name, (layer,))
    if batch < 1:
        raise InputError(Mistake("batch", f"must be at least 1, got {batch}"))
    return step_graph(layer, batch).graph


@lru_cache(maxsize=64)
def step_graph(layer: Layer, batch: int) -> StepGraph:
    """The graph of one time step of one direction of a layer, with its products; batch: sequences side by side."""
    drawn = _Step(layer, batch)
    for node in _listed(layer.cell):
        drawn.compute(node)
    states = tuple((state, drawn.output(target)) for state, target in layer.cell.states.items())
    outputs = dict.fromkeys(node for _, node in states)
    graph = drawn.sketch.graph(layer.cell.name, outputs, _about(layer))
    return StepGraph(graph, drawn.products, states)


def _about(layer: Layer) -> tuple[str, ...]:
    projected = f", projection {layer.projection}" if layer.projection else ""
    about = [
        f"one time step of cell {layer.cell.name}: hidden {layer.hidden}, input {layer.input}{projected}",
        "numbers are floats: quantize does nothing",
    ]
    if any(low or high != sum(each.columns) for each in products_of(layer) for _, low, high in each.sections):
        about.append("x and h are one matrix; sums that read one of them only have zeros under the other")
    if any(node.operation == "divide" for node in layer.cell.nodes):
        about.append("0 / 0 is no number here; elsewhere in this project it is 0")
    return tuple(about)


def _listed(cell: Cell) -> list[Node]:
    """The nodes as the cell lists them, but each after all that it reads, vectors of its sums among them."""
    place = {node.name: number for number, node in enumerate(cell.nodes)}
    vectors = {each.name: each.vectors for each in cell.sums}
    waits = [
        {place[name] for source in node.sources for name in (source, *vectors.get(source, ())) if name in place}
        for node in cell.nodes
    ]
    return [cell.nodes[number] for number in lowest_first(range(len(waits)), waits)]


class _Step:
    """A step that is being drawn: its graph so far, and its products."""

    def __init__(self, layer: Layer, batch: int) -> None:
        self.sketch = Sketch()
        self.products = products_of(layer)
        self._layer, self._batch = layer, batch
        self._rows = kinds(layer.cell)
        self._sums = {each.name for each in layer.cell.sums}
        # name of the cell -> name of its node: a node that does nothing has none of its own
        self._nodes: dict[str, str] = {}
        self._spread: dict[tuple[str, int], str] = {}

    def compute(self, node: Node) -> None:
        """Draw a node of the cell."""
        if node.operation in REDUCTIONS:
            self._nodes[node.name] = self._reduced(node)
        elif node.operation == "quantize":
            self._nodes[node.name] = self._value(node.sources[0])
        else:
            operands = self._operands(node)
            expand = _EXPANDED.get(node.operation)
            if expand is None:
                self._nodes[node.name] = self.sketch.element(node.operation, node.name, *operands)
            else:
                self._nodes[node.name] = expand(self.sketch, node.name, operands)

    def output(self, name: str) -> str:
        """The node that gives the next value of a state: an operation also where the value is only passed on."""
        node = self._value(name)
        if node in (*self._layer.cell.states, *self._layer.cell.parameters):
            return self.sketch.element("copy", f"{name}.out", node)
        return node

    def _operands(self, node: Node) -> tuple[str | float, ...]:
        """The operands of a node on elements, all of the shape of its result."""
        wide = self._rows[node.name] != "scalar"
        units = self._layer.width(node.name)
        return tuple(
            each if not isinstance(each, str) else self._wide(each, units) if wide else self._value(each)
            for each in node.inputs
        )

    def _wide(self, name: str, units: int) -> str:
        """A value with one number for each sequence and unit: scalars and parameters are spread once for each width."""
        value, shape = self._value(name), (self._batch, units)
        parameter = name in self._layer.cell.parameters
        if not parameter and self._rows[name] != "scalar":
            return value
        if (name, units) not in self._spread:
            width = str(units) if any(name == other for other, _ in self._spread) else ""
            axis = 1 if parameter else 0
            self._spread[name, units] = self.sketch.broadcast(f"{name}.wide{width}", value, shape, (axis,))
        return self._spread[name, units]

    def _value(self, name: str) -> str:
        """The node of a name of the cell; sums, states and parameters are drawn where they are first read."""
        if name not in self._nodes:
            if name in self._sums:
                self._nodes[name] = self._sum(name)
            elif name in self._layer.cell.parameters:
                self._nodes[name] = self.sketch.input(name, (self._layer.width(name),))
            else:
                self._nodes[name] = self.sketch.input(name, (self._batch, self._layer.width(name)))
        return self._nodes[name]

    def _sum(self, name: str) -> str:
        """A sum: its parts of all products, added up."""
        parts = [each for each in self.products if name in each.sums]
        if len(parts) == 1:
            return self._part(parts[0], name, name)
        total = self._part(parts[0], name, f"{name}.{parts[0].tag}")
        for each in parts[1:]:
            own = self._part(each, name, f"{name}.{each.tag}")
            total = self.sketch.element("add", name if each is parts[-1] else f"{name}.to.{each.tag}", total, own)
        return total

    def _part(self, product: StepProduct, name: str, called: str) -> str:
        if len(product.sums) == 1:
            return self._product(product, called)
        return self._rows_of(product, product.start(name), product.rows[product.sums.index(name)], called)

    def _rows_of(self, product: StepProduct, start: int, rows: int, called: str) -> str:
        """Some rows of a product, biases added."""
        whole = self._product(product)
        if rows == sum(product.rows):
            return whole
        if self.sketch.knows(called):
            return called
        return self.sketch.slice(called, whole, (0, start), (self._batch, rows))

    def _product(self, product: StepProduct, called: str = "") -> str:
        """A product with the biases of the sums that it is the first part of."""
        tag, sketch = product.tag, self.sketch
        total = called if called and any(product.fresh) else f"{tag}.z" if any(product.fresh) else product.product
        if sketch.knows(total):
            return total
        rows = sum(product.rows)
        if len(product.vectors) > 1:
            vectors = sketch.input(tag, (self._batch, sum(product.columns)))
        elif tag == "x":
            vectors = sketch.input(tag, (self._batch, self._layer.input))
        else:
            vectors = self._value(tag)
        result = sketch.matmul(product.product, vectors, sketch.input(f"{tag}.W", (sum(product.columns), rows)))
        if not any(product.fresh):
            return result
        bias = sketch.broadcast(f"{tag}.bb", sketch.input(f"{tag}.b", (rows,)), (self._batch, rows), (1,))
        return sketch.element("add", total, result, bias)

    def _reduced(self, node: Node) -> str:
        """A mean over units of one or more values, of their squares where that is asked."""
        values = self._together(node.sources)
        total = ""
        for number, value in enumerate(values):
            tag = f".{number}" if len(values) > 1 else ""
            if node.operation == "mean_square":
                value = self.sketch.element("multiply", f"{node.name}.square{tag}", value, value)
            own = self.sketch.reduce("reduce_sum", f"{node.name}.sum{tag}", value, (1,))
            total = self.sketch.element("add", f"{node.name}.total{tag}", total, own) if total else own
        count = sum(self._layer.width(each) for each in node.sources)
        return self.sketch.element("multiply", node.name, total, 1.0 / count)

    def _together(self, names: Sequence[str]) -> list[str]:
        """The values of some names: those of neighbouring rows of one product as one value, which takes one reduce."""
        for each in self.products:
            own = [name for name in each.sums if name in names]
            alone = all(sum(name in other.sums for other in self.products) == 1 for name in names)
            if len(names) > 1 and alone and sorted(own) == sorted(names):
                start, rows = each.start(own[0]), sum(each.rows[each.sums.index(name)] for name in own)
                if each.start(own[-1]) + each.rows[each.sums.index(own[-1])] == start + rows:
                    return [self._rows_of(each, start, rows, f"{own[0]}.to.{own[-1]}")]
        return [self._value(name) for name in names]


def _relu(sketch: Sketch, name: str, operands: Sequence[str | float]) -> str:
    return sketch.element("maximum", name, *operands, 0.0)


def _log_sigmoid(sketch: Sketch, name: str, operands: Sequence[str | float]) -> str:
    """min(v, 0) - log(1 + exp(-|v|)): the exponential of what is negative only."""
    small = sketch.element("negate", f"{name}.negative", sketch.element("abs", f"{name}.abs", *operands))
    inner = sketch.element("add", f"{name}.one", sketch.element("exp", f"{name}.exp", small), 1.0)
    least = sketch.element("minimum", f"{name}.least", *operands, 0.0)
    return sketch.element("subtract", name, least, sketch.element("log", f"{name}.log", inner))


#: Operations of cells that graphs have no operation for.
_EXPANDED: dict[str, Callable[[Sketch, str, Sequence[str | float]], str]] = {"relu": _relu, "log_sigmoid": _log_sigmoid}
