"""The rules that make nodes a graph: names, order, operands, shapes, axes. Each rule has a sentence of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from math import inf, prod
from typing import Any

from lstmsim.base.bounds import MAX_ELEMENTS, MAX_GRAPH_NODES, MAX_RANK
from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.wording import listed, nearest, show
from lstmsim.model.fusion.graph import COMPUTE, INPUT, MOVES, OPERATIONS, REDUCES, Graph, Node, mistaken_name

#: A key of a node with indices in its list, and what is wrong there.
Wrong = tuple[tuple[str | int, ...], str]

#: What graph files call `Node.axes`, by operation; reduces call it `axes`.
AXES_KEYS: Mapping[str, str] = {"broadcast": "dims", "transpose": "perm", "slice": "start"}


def wrong_shapes(node: Node, operands: Sequence[Node]) -> Iterator[Wrong]:
    """Say what does not fit in the shape and the axes of a node.

    >>> x, y = Node("x", "input", (), (2, 3)), Node("y", "transpose", ("x",), (2, 3), (1, 0))
    >>> list(wrong_shapes(y, [x]))
    [(('shape',), "must be [3, 2], because 'x' is [2, 3] and perm is [1, 0], got [2, 3]")]
    """
    if node.op in OPERATIONS:
        for each in operands:
            if each.shape != node.shape:
                stretch = ": a broadcast makes shapes equal" if node.shape else ""
                text = f"must be that of its operand {_shown(each)}, got {sizes_text(node.shape)}{stretch}"
                yield ("shape",), text
                return
    elif node.op in REDUCES:
        yield from _reduce(node, operands[0])
    elif node.op in _RULES:
        yield from _RULES[node.op](node, operands[0])
    elif node.op == "matmul":
        yield from _matmul(node, *operands)


def sizes_text(shape: Sequence[int]) -> str:
    """Sizes as graph files write them.

    >>> sizes_text((2, 3))
    '[2, 3]'
    """
    return f"[{', '.join(map(str, shape))}]"


def _shown(node: Node) -> str:
    return f"{show(node.name)} {sizes_text(node.shape)}"


def _axes(node: Node, key: str, rank: int, whose: str) -> list[Wrong]:
    """Axes that are out of range or stand there twice."""
    wrong: list[Wrong] = []
    for at, axis in enumerate(node.axes):
        if not 0 <= axis < rank:
            known = f"must be from 0 to {rank - 1}, the axes of {whose}"
            text = known if rank else f"must be empty: {whose} has no axes"
            wrong.append(((key, at), f"{text}, got {axis}"))
        elif axis in node.axes[:at]:
            wrong.append(((key, at), f"axis {axis} stands there twice"))
    return wrong


def _expected(node: Node, shape: tuple[int, ...], because: str) -> Iterator[Wrong]:
    if node.shape != shape:
        yield ("shape",), f"must be {sizes_text(shape)}, because {because}, got {sizes_text(node.shape)}"


def _reduce(node: Node, operand: Node) -> Iterator[Wrong]:
    wrong = _axes(node, "axes", len(operand.shape), _shown(operand))
    if not node.axes:
        wrong.append((("axes",), "must name at least 1 axis that vanishes, got none"))
    if not wrong and list(node.axes) != sorted(node.axes):
        wrong.append((("axes",), f"must be ascending, got {sizes_text(node.axes)}"))
    yield from wrong
    if not wrong:
        shape = tuple(size for axis, size in enumerate(operand.shape) if axis not in node.axes)
        yield from _expected(node, shape, f"{_shown(operand)} loses axes {sizes_text(node.axes)}")


def _broadcast(node: Node, operand: Node) -> Iterator[Wrong]:
    if len(node.axes) != len(operand.shape):
        text = f"must have an axis of the result for each axis of {_shown(operand)}"
        yield ("dims",), f"{text}, got {sizes_text(node.axes)}"
        return
    wrong = _axes(node, "dims", len(node.shape), f"the result {sizes_text(node.shape)}")
    yield from wrong
    if wrong:
        return
    for at, axis in enumerate(node.axes):
        if operand.shape[at] != node.shape[axis]:
            hint = ": a reshape takes an axis of size 1 away first" if operand.shape[at] == 1 else ""
            text = f"must be {operand.shape[at]}, the size of axis {at} of {_shown(operand)}"
            yield ("shape", axis), f"{text}, got {node.shape[axis]}{hint}"


def _reshape(node: Node, operand: Node) -> Iterator[Wrong]:
    if prod(node.shape) != prod(operand.shape):
        text = f"must have the {prod(operand.shape)} elements of {_shown(operand)}"
        yield ("shape",), f"{text}, got {sizes_text(node.shape)}: {prod(node.shape)}"


def _transpose(node: Node, operand: Node) -> Iterator[Wrong]:
    if len(node.axes) != len(operand.shape):
        yield ("perm",), f"must name each axis of {_shown(operand)} once, got {sizes_text(node.axes)}"
        return
    wrong = _axes(node, "perm", len(operand.shape), _shown(operand))
    yield from wrong
    if not wrong:
        shape = tuple(operand.shape[axis] for axis in node.axes)
        whole = _shown(operand).replace(" [", " is [")
        yield from _expected(node, shape, f"{whole} and perm is {sizes_text(node.axes)}")


def _slice(node: Node, operand: Node) -> Iterator[Wrong]:
    if len(node.axes) != len(operand.shape):
        yield ("start",), f"must have a place for each axis of {_shown(operand)}, got {sizes_text(node.axes)}"
    elif len(node.shape) != len(operand.shape):
        yield ("shape",), f"must have a size for each axis of {_shown(operand)}, got {sizes_text(node.shape)}"
    else:
        for at, (start, size, whole) in enumerate(zip(node.axes, node.shape, operand.shape, strict=True)):
            if start < 0:
                yield ("start", at), f"must be at least 0, got {start}"
            elif size > whole:
                yield ("shape", at), f"must be at most {whole}, the size of axis {at} of {_shown(operand)}, got {size}"
            elif start + size > whole:
                text = f"must be at most {whole - size}: {size} of the {whole} elements of axis {at} begin there"
                yield ("start", at), f"{text}, got {start}"


_RULES: Mapping[str, Callable[[Node, Node], Iterator[Wrong]]] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
}


def _matmul(node: Node, a: Node, b: Node) -> Iterator[Wrong]:
    if not a.shape or not b.shape:
        which = 0 if not a.shape else 1
        yield ("inputs", which), f"must have at least 1 axis, got {_shown((a, b)[which])}"
        return
    rows, columns = a.shape[-2:-1], b.shape[-1:] if len(b.shape) > 1 else ()
    depth = b.shape[-2] if len(b.shape) > 1 else b.shape[-1]
    if a.shape[-1] != depth:
        yield ("inputs", 1), f"must have {a.shape[-1]} rows, as many as {_shown(a)} has columns, got {_shown(b)}"
        return
    outer = _joined(a.shape[:-2], b.shape[:-2])
    if outer is None:
        yield ("inputs", 1), f"must have the axes before the last two of {_shown(a)}, got {_shown(b)}"
        return
    yield from _expected(node, (*outer, *rows, *columns), f"{_shown(a)} is multiplied by {_shown(b)}")


def _joined(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes of both, as numpy broadcasts them; None if they do not fit."""
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True))
    return tuple(max(pair) for pair in pairs) if all(x == y or 1 in (x, y) for x, y in pairs) else None


#: Where in a graph, as a path of keys and indices, and what is wrong there.
Located = tuple[tuple[str | int, ...], str]

_MOST_REPORTED = 100
#: The largest number of 32 bits.
_MOST_NUMBER = 3.4028234663852886e38
_MOST_LETTERS = 500


def mistakes(graph: Graph) -> list[tuple[str, str]]:
    """List what is wrong with a graph of any content, as (key path, sentence) pairs such as `nodes.y.axes`."""
    kinds = list(_kinds(graph))
    if kinds:
        return [(".".join(map(str, path)), sentence) for path, sentence in kinds][:_MOST_REPORTED]
    names = [node.name for node in graph.nodes]
    return [(_spelled(path, names), sentence) for path, sentence in located_mistakes(graph)]


def _kinds(graph: Any) -> Iterator[Located]:
    """What is of another type than the fields say, as only graphs that are made in Python may have it."""
    if not isinstance(graph.name, str):
        yield ("name",), f"must be text, got {show(graph.name)}"
    for key in ("nodes", "outputs"):
        if not isinstance(getattr(graph, key), tuple | list):
            yield (key,), f"must be a tuple, got {show(getattr(graph, key))}"
            return
    for number, node in enumerate(graph.nodes):
        if not isinstance(node, Node):
            yield ("nodes", number), f"must be a Node, got {show(node)}"
            continue
        for key in ("name", "op"):
            if not isinstance(getattr(node, key), str):
                yield ("nodes", number, key), f"must be text, got {show(getattr(node, key))}"
        for key in ("inputs", "shape", "axes"):
            # a list would be unequal to the same numbers in a tuple
            if not isinstance(getattr(node, key), tuple):
                yield ("nodes", number, key), f"must be a tuple, got {show(getattr(node, key))}"


def _spelled(path: tuple[str | int, ...], names: list[str]) -> str:
    parts = [names[each] if at == 1 and path[0] == "nodes" else each for at, each in enumerate(path)]  # type: ignore[index]
    return ".".join(map(str, parts))


def checked_graph(graph: Graph) -> Graph:
    """The same graph; `InputError` with every mistake if it has any."""
    wrong = [Mistake(place, sentence) for place, sentence in mistakes(graph)]
    refuse(wrong)
    return graph


def located_mistakes(graph: Graph, unknown: Set[int] = frozenset()) -> list[Located]:
    """List what is wrong with a graph, with key paths such as `("nodes", 3, "axes")`, at most 100 of them.

    Shapes are judged only where names and numbers of operands are right, and not those of `unknown` nodes and readers.
    """
    if not graph.nodes:
        return [(("nodes",), "must be a list of at least 1 node, got none")]
    if len(graph.nodes) > MAX_GRAPH_NODES:
        return [(("nodes",), f"must be at most {MAX_GRAPH_NODES} nodes, got {len(graph.nodes)}")]
    first: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        first.setdefault(node.name, number)
    found: list[Located] = []
    for number, node in enumerate(graph.nodes):
        own = [
            *_name(node, first[node.name], number),
            *(_result(node) if number not in unknown else ()),
            *_operation(node),
            *_operands(graph, number, first),
        ]
        if not own and number not in unknown:
            own = [*_shapes(graph, node, first, unknown)]
        found += [(("nodes", number, *path), sentence) for path, sentence in own]
    return [*found, *_outputs(graph, first)][:_MOST_REPORTED]


def _name(node: Node, first: int, number: int) -> Iterator[Located]:
    name = node.name
    if not name or not name.isprintable() or name != name.strip() or len(name) > _MOST_LETTERS:
        text = f"must be printable text of 1 to {_MOST_LETTERS} letters without spaces around it, got {show(name)}"
        yield ("name",), text
    if first != number:
        yield ("name",), f"{show(name)} is taken by node {first}, counted from 0"


def _result(node: Node) -> Iterator[Located]:
    if len(node.shape) > MAX_RANK:
        yield ("shape",), f"must be at most {MAX_RANK} sizes, got {len(node.shape)}"
    wrong = [at for at, size in enumerate(node.shape) if not _whole(size) or size < 1]
    for at in wrong:
        yield ("shape", at), f"must be a whole number of at least 1, got {show(node.shape[at])}"
    if not wrong and prod(node.shape) > MAX_ELEMENTS:
        yield ("shape",), f"must be at most {MAX_ELEMENTS} elements, got {sizes_text(node.shape)}: {prod(node.shape)}"
    for at, axis in enumerate(node.axes):
        if not _whole(axis):
            yield (AXES_KEYS.get(node.op, "axes"), at), f"must be a whole number, got {show(axis)}"


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _operation(node: Node) -> Iterator[Located]:
    if not node.op or not node.op.isprintable() or len(node.op) > _MOST_LETTERS:
        yield ("op",), f"must be the name of an operation, got {show(node.op)}"
        return
    hint = mistaken_name(node.op)
    if hint:
        yield ("op",), f"no operation is called {show(node.op)}{hint} A call of a library needs a name unlike it"
    if node.axes and node.op not in REDUCES and node.op not in ("broadcast", "transpose", "slice"):
        yield ("axes",), f"{show(node.op)} has no axes, got {sizes_text(node.axes)}"


def _count(node: Node) -> int | None:
    """How many operands its operation takes; None for any number."""
    if node.op in OPERATIONS:
        return OPERATIONS[node.op].operands
    if node.op in MOVES or node.op in REDUCES:
        return 1
    return {INPUT: 0, "matmul": 2}.get(node.op)


def _operands(graph: Graph, number: int, first: dict[str, int]) -> Iterator[Located]:
    node, count = graph.nodes[number], _count(graph.nodes[number])
    if count is not None and len(node.inputs) != count:
        yield ("inputs",), f"{show(node.op)} takes {count} operand{'' if count == 1 else 's'}, got {len(node.inputs)}"
    numeric = node.op in OPERATIONS or (node.kind == COMPUTE and node.op != "matmul")
    for at, each in enumerate(node.inputs):
        if isinstance(each, str):
            if each not in first:
                hint = nearest(each, first)
                yield ("inputs", at), f"no node is called {show(each)}{hint}"
            elif first[each] >= number:
                yield ("inputs", at), _too_early(graph, number, first[each], first)
        elif isinstance(each, bool) or not isinstance(each, int | float):
            yield ("inputs", at), f"must be the name of a node or a number, got {show(each)}"
        elif abs(each) > _MOST_NUMBER and each not in (inf, -inf):
            yield ("inputs", at), f"must be at most {_MOST_NUMBER:g}, got {show(each)}"
        elif each != each:
            yield ("inputs", at), "must be a number, got not-a-number (NaN)"
        elif not numeric:
            yield ("inputs", at), f"{show(node.op)} takes no plain numbers, got {show(each)}"
    if node.op in OPERATIONS and len(node.inputs) == count and not any(isinstance(each, str) for each in node.inputs):
        yield ("inputs",), "must have a node among them: an operation on numbers alone is a number"


def _too_early(graph: Graph, reader: int, operand: int, first: dict[str, int]) -> str:
    """Why a node cannot read one that does not stand before it: a circle, or the order alone."""
    name = show(graph.nodes[operand].name)
    if operand == reader:
        return f"{name} reads itself"
    came = {operand: -1}
    waiting = [operand]
    while waiting and reader not in came:
        number = waiting.pop()
        for each in graph.nodes[number].inputs:
            source = first.get(each) if isinstance(each, str) else None
            if source is not None and source not in came:
                came[source] = number
                waiting.append(source)
    if reader not in came:
        return f"{name} stands after it: a node comes after its operands"
    circle, at = [reader], came[reader]
    while at != -1:
        circle.append(at)
        at = came[at]
    circle.append(reader)
    words = [show(graph.nodes[each].name) for each in circle]
    if len(words) > 6:
        words = [*words[:3], "...", *words[-2:]]
    return f"the nodes read each other in a circle: {' -> '.join(words)}"


def _shapes(graph: Graph, node: Node, first: dict[str, int], unknown: Set[int]) -> Iterator[Located]:
    """What does not fit in the shapes of a node and its operands, if the operands' own shapes are right."""
    numbers = [first[each] for each in node.inputs if isinstance(each, str)]
    operands = [graph.nodes[each] for each in numbers]
    if unknown.isdisjoint(numbers) and not any(True for each in operands for _ in _result(each)):
        yield from wrong_shapes(node, operands)


def _outputs(graph: Graph, first: dict[str, int]) -> Iterator[Located]:
    if not graph.outputs:
        yield ("outputs",), "must be a list of at least 1 node, got none"
    for at, name in enumerate(graph.outputs):
        if name not in first:
            yield ("outputs", at), f"no node is called {show(name)}{nearest(str(name), first)}"
        elif name in graph.outputs[:at]:
            yield ("outputs", at), f"{show(name)} stands there twice"


def remarks(graph: Graph) -> tuple[str, ...]:
    """Say what a user may not expect of a graph without mistakes: calls of libraries, and results without use."""
    calls: dict[str, list[str]] = {}
    for node in graph.nodes:
        if node.kind == COMPUTE and node.op != "matmul":
            calls.setdefault(node.op, []).append(show(node.name))
    said = [
        f"the operation {op} ({_some(names)}) is a call of a library: it is not fused, and checks draw numbers for "
        "its result"
        for op, names in calls.items()
    ]
    idle = [
        show(node.name)
        for number, node in enumerate(graph.nodes)
        if not graph.readers[number] and number not in graph.output_numbers
    ]
    return (*said, *([f"{_some(idle)}: read by nobody and no output"] if idle else []))


def _some(names: list[str]) -> str:
    return listed(names, "and") if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
