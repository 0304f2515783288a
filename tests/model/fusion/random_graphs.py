"""Random small graphs with all operations, and devices on which every rule of the pass is met.

Every node knows between which numbers its values lie, so that no function leaves its domain and nothing overflows.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.plan import FusionDevice

#: Devices by name: those of the golden cases, and odd ones.
DEVICES = {
    "v100": FusionDevice(),
    "idle16": FusionDevice(sms=16, max_warps=32, max_blocks=1),
    "small": FusionDevice(sms=2, split_length=16, shared_limit=256),
    # more blocks than the shared memory of an SM lets on it at once
    "narrow": FusionDevice(sms=2, split_length=16, shared_bytes=1024, shared_limit=1024, block_threads=256),
    "one": FusionDevice(sms=1, max_blocks=1, split_length=8, block_threads=64, element_threads=32, shared_limit=96),
    # the wave of blocks that are planned is always larger than what is on the device with shared memory
    "crowded": FusionDevice(
        sms=3, split_length=8, block_threads=64, element_threads=64, shared_bytes=768, shared_limit=768, max_warps=32
    ),
    "costed": FusionDevice(
        sms=4, split_length=16, block_threads=64, split_rule="costed", turn_cycles=400, grid_cycles=900
    ),
}
SIZES = (1, 2, 2, 3, 4, 5, 8, 17, 33, 64)
#: The most elements of a tensor, and how large values get.
MOST, HIGH = 3000, 1e3


@dataclass
class Drawing:
    """A graph in the making.

    random: the source of all choices.
    nodes: so far.
    low, high: between which numbers the values of each lie.
    """

    random: random.Random
    nodes: list[Node] = field(default_factory=list)
    low: dict[str, float] = field(default_factory=dict)
    high: dict[str, float] = field(default_factory=dict)

    def add(self, op: str, inputs: tuple[str | float, ...], shape, low: float, high: float, axes=()) -> str:
        """Add a node; its name."""
        name = f"n{len(self.nodes)}"
        self.nodes.append(Node(name, op, inputs, tuple(shape), tuple(axes)))
        self.low[name], self.high[name] = low, high
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a node."""
        return self.nodes[int(name[1:])].shape

    def input(self, shape) -> str:
        """A new input."""
        return self.add("input", (), shape, 0.25, 1.75)

    def pick(self) -> str:
        """Some node, rather a late one."""
        names = [node.name for node in self.nodes]
        return self.random.choice(names[-6:] if self.random.random() < 0.7 else names)

    def like(self, shape: tuple[int, ...]) -> str | float:
        """Something of a shape: a node, one broadcast to it, a new input, or a number."""
        alike = [node.name for node in self.nodes if node.shape == shape]
        smaller = [node for node in self.nodes if node.shape and node.shape != shape and _dims(node.shape, shape)]
        choice = self.random.random()
        if alike and choice < 0.55:
            return self.random.choice(alike)
        if smaller and choice < 0.85:
            node = self.random.choice(smaller)
            return self.moved("broadcast", node.name, shape, _dims(node.shape, shape))
        return self.input(shape) if choice < 0.9 else round(self.random.uniform(0.25, 1.75), 2)

    def moved(self, op: str, name: str, shape, axes=()) -> str:
        """The same values in other places."""
        return self.add(op, (name,), shape, self.low[name], self.high[name], axes)

    def range_of(self, value: str | float) -> tuple[float, float]:
        """Between which numbers a value lies."""
        return (self.low[value], self.high[value]) if isinstance(value, str) else (value, value)


def _dims(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of a larger shape that have the sizes of a smaller one, in order; empty: there are none."""
    dims: list[int] = []
    for size in small:
        start = dims[-1] + 1 if dims else 0
        if size not in large[start:]:
            return ()
        dims.append(large.index(size, start))
    return tuple(dims)


def random_graph(seed: int) -> Graph:
    """A graph of up to some thirty nodes.

    seed: the graph.
    """
    draw = Drawing(random.Random(seed))
    for _ in range(draw.random.randint(1, 3)):
        draw.input(_shape(draw.random))
    steps = (
        [_unary] * 4
        + [_binary] * 6
        + [_reduce] * 3
        + [_rejoined] * 4
        + [_broadcast] * 2
        + [_moves] * 3
        + [_call, _select]
    )
    for _ in range(draw.random.randint(2, 16)):
        draw.random.choice(steps)(draw)
    if all(node.op == "input" for node in draw.nodes):
        _unary(draw)
    return Graph(f"random-{seed}", tuple(draw.nodes), _outputs(draw))


def _shape(source: random.Random) -> tuple[int, ...]:
    while True:
        shape = tuple(source.choice(SIZES) for _ in range(source.choice((0, 1, 2, 2, 2, 3, 3))))
        if math.prod(shape) <= MOST:
            return shape


def _outputs(draw: Drawing) -> tuple[str, ...]:
    """Most of what nobody reads, the last one always, and now and then a node that is read."""
    read = {each for node in draw.nodes for each in node.inputs}
    computed = [node.name for node in draw.nodes if node.op != "input"]
    chance = draw.random.random
    return tuple(name for name in computed if name == computed[-1] or chance() < (0.06 if name in read else 0.85))


def _unary(draw: Drawing) -> None:
    x = draw.pick()
    low, high = draw.low[x], draw.high[x]
    known = {
        "negate": (-high, -low),
        "abs": (0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))),
        "copy": (low, high),
        "round": (math.floor(low), math.ceil(high)),
        "tanh": (math.tanh(low), math.tanh(high)),
        "sigmoid": (1 / (1 + math.exp(-max(low, -50))), 1 / (1 + math.exp(-min(high, 50)))),
    }
    if high < 5:
        known["exp"] = math.exp(max(low, -50)), math.exp(high)
    if low > 0.05:
        known |= {
            "log": (math.log(low), math.log(high)),
            "sqrt": (low**0.5, high**0.5),
            "rsqrt": (high**-0.5, low**-0.5),
            "reciprocal": (1 / high, 1 / low),
        }
    op = draw.random.choice(sorted(known))
    draw.add(op, (x,), draw.shape(x), *known[op])


def _binary(draw: Drawing, x: str = "", y: str | float = "") -> None:
    x = x or draw.pick()
    y = draw.like(draw.shape(x)) if y == "" else y
    (a, b), (c, d) = draw.range_of(x), draw.range_of(y)
    products = [a * c, a * d, b * c, b * d]
    known = {
        "add": (a + c, b + d),
        "subtract": (a - d, b - c),
        "multiply": (min(products), max(products)),
        "maximum": (max(a, c), max(b, d)),
        "minimum": (min(a, c), min(b, d)),
    }
    known = {op: ends for op, ends in known.items() if max(map(abs, ends)) < HIGH}
    if c > 0.05 and max(abs(a), abs(b)) / c < HIGH:
        quotients = [a / c, a / d, b / c, b / d]
        known["divide"] = min(quotients), max(quotients)
    if a > 0.05 and max(abs(c), abs(d)) * max(abs(math.log(a)), abs(math.log(b))) < 5:
        powers = [a**c, a**d, b**c, b**d]
        known["power"] = min(powers), max(powers)
    # one that keeps little of its operands is seldom
    op = draw.random.choice(sorted(known)) if known and draw.random.random() < 0.97 else "greater"
    known["greater"] = 0.0, 1.0
    inputs: tuple[str | float, ...] = (x, y)
    if isinstance(y, float) and op in ("add", "multiply", "maximum", "minimum") and draw.random.random() < 0.5:
        inputs = (y, x)
    draw.add(op, inputs, draw.shape(x), *known[op])


def _reduced(draw: Drawing) -> tuple[str, str, tuple[int, ...]] | None:
    """What is reduced, its result, and the axes that stay."""
    wide = [node.name for node in draw.nodes if node.shape]
    if not wide:
        return None
    x = draw.random.choice(wide[-8:])
    shape = draw.shape(x)
    if draw.random.random() < 0.6:
        gone = tuple(range(draw.random.randrange(len(shape)), len(shape)))
    else:
        gone = tuple(sorted(draw.random.sample(range(len(shape)), draw.random.randint(1, len(shape)))))
    kept = tuple(axis for axis in range(len(shape)) if axis not in gone)
    length = math.prod(shape[axis] for axis in gone)
    low, high = draw.low[x], draw.high[x]
    ops = ["reduce_max", "reduce_min"]
    if max(abs(low), abs(high)) * length < HIGH:
        ops += ["reduce_sum"] * 3
    op = draw.random.choice(ops)
    times = length if op == "reduce_sum" else 1
    return x, draw.add(op, (x,), [shape[axis] for axis in kept], low * times, high * times, gone), kept


def _reduce(draw: Drawing) -> None:
    _reduced(draw)


def _rejoined(draw: Drawing) -> None:
    """A reduce, perhaps a function of it, broadcast to the shape of what was reduced, and both together."""
    some = _reduced(draw)
    if some is None:
        return
    x, result, kept = some
    if draw.random.random() < 0.5:
        low, high = draw.low[result], draw.high[result]
        op = "rsqrt" if low > 0.05 else "sigmoid"
        ends = (high**-0.5, low**-0.5) if op == "rsqrt" else (0.0, 1.0)
        result = draw.add(op, (result,), draw.shape(result), *ends)
    _binary(draw, x, draw.moved("broadcast", result, draw.shape(x), kept))


def _broadcast(draw: Drawing) -> None:
    x = draw.pick()
    shape = list(draw.shape(x))
    order = list(range(len(shape)))
    if draw.random.random() < 0.2:
        draw.random.shuffle(order)
    # place of each axis of the result: an axis of the operand, or a new one
    places: list[int | None] = list(order)
    for _ in range(draw.random.randint(1, 2)):
        places.insert(draw.random.randint(0, len(places)), None)
    result = [draw.random.choice(SIZES) if axis is None else shape[axis] for axis in places]
    if math.prod(result) <= MOST and len(result) <= 4:
        draw.moved("broadcast", x, result, [places.index(axis) for axis in range(len(shape))])


def _moves(draw: Drawing) -> None:
    x = draw.pick()
    shape = draw.shape(x)
    op = draw.random.choice(("reshape", "transpose", "slice"))
    if op == "reshape":
        size = math.prod(shape)
        first = draw.random.choice([each for each in range(1, size + 1) if size % each == 0])
        draw.moved(op, x, (size,) if draw.random.random() < 0.3 else (first, size // first))
    elif op == "transpose":
        axes = list(range(len(shape)))
        draw.random.shuffle(axes)
        draw.moved(op, x, [shape[axis] for axis in axes], axes)
    else:
        starts = [draw.random.randrange(size) for size in shape]
        sizes = [draw.random.randint(1, size - start) for size, start in zip(shape, starts, strict=True)]
        draw.moved(op, x, sizes, starts)


def _select(draw: Drawing) -> None:
    x = draw.pick()
    condition = draw.add("greater", (x, round(draw.random.uniform(-1, 2), 2)), draw.shape(x), 0.0, 1.0)
    y = draw.like(draw.shape(x))
    (a, b), (c, d) = draw.range_of(x), draw.range_of(y)
    draw.add("select", (condition, x, y), draw.shape(x), min(a, c), max(b, d))


def _call(draw: Drawing) -> None:
    """A product with new weights, or a call that is not known: often with a way around it."""
    flat = [node.name for node in draw.nodes if len(node.shape) == 2]
    if not flat or draw.random.random() < 0.3:
        x = draw.pick()
        called = draw.add("gather", (x,), draw.shape(x), 0.25, 1.75)
        if draw.random.random() < 0.6:
            _binary(draw, x, called)
        return
    x = draw.random.choice(flat)
    rows, length = draw.shape(x)
    low, high = draw.low[x], draw.high[x]
    most = 1.75 * length * max(abs(low), abs(high))
    if most < HIGH:
        w = draw.input((length, draw.random.choice((1, 3, 8))))
        draw.add("matmul", (x, w), (rows, draw.shape(w)[1]), -most if low < 0 else 0.0, most)
