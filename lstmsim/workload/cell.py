"""Recurrent cells as graphs of element-wise operations behind one matrix-vector product.

A cell's `products` are the rows of its interleaved gate matrix, one per gate and hidden unit; everything
behind them is a small graph of `Node`s, evaluated once per hidden unit. Latency of the tail, later also
operation counts and numerics, come from this one graph.

Sources: LSTM as in the column-wise LSTM patent, paragraph "gates and tail"; GRU with the reset gate applied
after the product (cuDNN, ONNX `linear_before_reset=1`); RNN with tanh (Elman).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lstmsim.errors import InputError

__all__ = ["CELLS", "OPERATIONS", "Cell", "Node", "cell"]

#: Latency class of each element-wise operation: the key of the target's latency table.
OPERATIONS: Mapping[str, str] = {
    "sigmoid": "activation",
    "tanh": "activation",
    "multiply": "elementwise_multiply",
    "add": "elementwise_add",
    "subtract": "elementwise_add",
    "quantize": "quantize",
}


@dataclass(frozen=True)
class Node:
    """One element-wise operation: `name = operation(*inputs)`, an operation of `OPERATIONS`.

    >>> Node("c", "add", ("fc", "ig")).operation
    'add'
    """

    name: str
    operation: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """A recurrent cell: its gates, what feeds its graph, the graph, and the state it hands to the next step.

    `gates` are the G rows per hidden unit of the gate matrix. `products` are the sums that enter the tail: one
    per gate, except where x and h parts of a gate stay apart (GRU candidate). `states` maps a state's name
    to the node that gives its next value; the state `h` is the output. `recurrent` is False for a cell
    without h columns.

    >>> cell("lstm").gates
    ('i', 'f', 'g', 'o')
    """

    name: str
    gates: tuple[str, ...]
    products: tuple[str, ...]
    nodes: tuple[Node, ...]
    states: Mapping[str, str] = field(hash=False)
    recurrent: bool = True
    source: str = ""

    @property
    def output(self) -> str:
        """Name of the node whose value is written back as h."""
        return self.states["h"]

    def tail_cycles(self, latency: Mapping[str, int]) -> int:
        """Cycles from the arrival of all sums to the output: the longest path of the graph.

        `latency` gives cycles per latency class (`activation`, `elementwise_multiply`, `elementwise_add`,
        `quantize`).

        >>> default = {"activation": 8, "elementwise_multiply": 4, "elementwise_add": 4, "quantize": 4}
        >>> [cell(name).tail_cycles(default) for name in ("lstm", "gru", "rnn")]
        [32, 40, 12]
        """
        arrival: dict[str, int] = dict.fromkeys((*self.products, *self.states), 0)
        for node in self.nodes:
            ready = max(arrival[name] for name in node.inputs)
            arrival[node.name] = ready + latency[OPERATIONS[node.operation]]
        return arrival[self.output]


def _graph(text: str) -> tuple[Node, ...]:
    nodes = []
    for line in text.split(";"):
        name, operation, *inputs = line.split()
        nodes.append(Node(name, operation, tuple(inputs)))
    return tuple(nodes)


LSTM = Cell(
    name="lstm",
    gates=("i", "f", "g", "o"),
    products=("i", "f", "g", "o"),
    nodes=_graph(
        "it sigmoid i; ft sigmoid f; gt tanh g; ot sigmoid o;"
        "ig multiply it gt; fc multiply ft c; c' add fc ig; ct tanh c'; hf multiply ot ct; h' quantize hf"
    ),
    states={"h": "h'", "c": "c'"},
    source="column-wise LSTM patent, equations of the LSTM cell; Hochreiter and Schmidhuber 1997",
)

GRU = Cell(
    name="gru",
    gates=("r", "z", "n"),
    products=("r", "z", "nx", "nh"),
    nodes=_graph(
        "rt sigmoid r; zt sigmoid z; rn multiply rt nh; ns add nx rn; nt tanh ns;"
        "hn subtract h nt; zh multiply zt hn; hf add nt zh; h' quantize hf"
    ),
    states={"h": "h'"},
    source="Cho et al. 2014; reset gate after the product as in cuDNN and ONNX linear_before_reset=1",
)

RNN = Cell(
    name="rnn",
    gates=("a",),
    products=("a",),
    nodes=_graph("hf tanh a; h' quantize hf"),
    states={"h": "h'"},
    source="Elman 1990, tanh",
)

DENSE = Cell(
    name="dense",
    gates=("y",),
    products=("y",),
    nodes=_graph("h' quantize y"),
    states={"h": "h'"},
    recurrent=False,
    source="one matrix-vector product without recurrence: GEMV, a layer of an MLP",
)

#: Built-in cells by name.
CELLS: Mapping[str, Cell] = {each.name: each for each in (LSTM, GRU, RNN, DENSE)}


def cell(name: str) -> Cell:
    """The built-in cell of that name; `InputError` if there is none.

    >>> len(cell("gru").gates)
    3
    """
    if name not in CELLS:
        raise InputError(f"no cell called {name!r}; there are: {', '.join(CELLS)}")
    return CELLS[name]
