"""The built-in cells, and the matrix products of a layer: gates that read the same vectors are one product.

Each cell has its source. Vectors that are streamed through the array (x, h, r*h ...) pass a `quantize` node. States
that only the tail reads keep the width of the tail.
"""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.wording import nearest
from lstmsim.model.cell import Cell, Node, Stage, stage_of
from lstmsim.model.model import Layer


def graph(text: str) -> tuple[Node, ...]:
    """Make nodes from text: name, operation and inputs in each line (or between semicolons). Numbers are constants."""
    nodes = []
    for line in text.replace("\n", ";").split(";"):
        if line.strip():
            name, operation, *inputs = line.split()
            operands = (float(each) if each[0].isdigit() or each[0] in "+-." else each for each in inputs)
            nodes.append(Node(name, operation, tuple(operands)))
    return tuple(nodes)


def _cell(name: str, stages: tuple[Stage, ...], nodes: str, states: str, source: str, parameters: str = "") -> Cell:
    pairs = dict(pair.split("=") for pair in states.split())
    return Cell(name, stages, graph(nodes), pairs, tuple(parameters.split()), source)


LSTM = _cell(
    "lstm",
    (stage_of("i[x h] f[x h] g[x h] o[x h]"),),
    """it sigmoid i; ft sigmoid f; gt tanh g; ot sigmoid o
    ig multiply it gt; fc multiply ft c; c' add fc ig; ct tanh c'; hf multiply ot ct; h' quantize hf""",
    "h=h' c=c'",
    "column-wise LSTM patent, equations of the LSTM cell; Hochreiter and Schmidhuber 1997",
)

GRU = _cell(
    "gru",
    (stage_of("r[x h] z[x h] n{nx[x] nh[h]}"),),
    """rt sigmoid r; zt sigmoid z; rn multiply rt nh; ns add nx rn; nt tanh ns
    hn subtract s nt; zh multiply zt hn; hf add nt zh; h' quantize hf""",
    "h=h' s=hf",
    "Cho et al. 2014; reset gate after the product as in cuDNN, PyTorch and ONNX linear_before_reset=1",
)

GRU_LBR0 = _cell(
    "gru-lbr0",
    (stage_of("r[x h] z[x h]"), stage_of("n[x rh]")),
    """rt sigmoid r; zt sigmoid z; rs multiply rt s; rh quantize rs
    nt tanh n; hn subtract s nt; zh multiply zt hn; hf add nt zh; h' quantize hf""",
    "h=h' s=hf",
    "Cho et al. 2014; reset gate before the product as in ONNX linear_before_reset=0, Keras reset_after=False",
)

RNN = _cell("rnn", (stage_of("a[x h]"),), "hf tanh a; h' quantize hf", "h=h'", "Elman 1990, tanh")

RNN_RELU = _cell(
    "rnn-relu",
    (stage_of("a[x h]"),),
    "hf relu a; h' quantize hf",
    "h=h'",
    "Le, Jaitly, Hinton 2015 (IRNN); PyTorch nonlinearity='relu'",
)

DENSE = _cell(
    "dense",
    (stage_of("y[x]"),),
    "h' quantize y",
    "h=h'",
    "one matrix-vector product without recurrence: GEMV, a layer of an MLP",
)

DENSE_RELU, DENSE_TANH, DENSE_SIGMOID = (
    _cell(
        f"dense-{name}",
        (stage_of("y[x]"),),
        f"hf {name} y; h' quantize hf",
        "h=h'",
        f"one matrix-vector product and {name}: a hidden layer of an MLP",
    )
    for name in ("relu", "tanh", "sigmoid")
)

PEEPHOLE = _cell(
    "lstm-peephole",
    (stage_of("i[x h] f[x h] g[x h] o[x h]"),),
    """ip multiply pi c; is add i ip; it sigmoid is; fp multiply pf c; fs add f fp; ft sigmoid fs; gt tanh g
    ig multiply it gt; fc multiply ft c; c' add fc ig
    op multiply po c'; os add o op; ot sigmoid os; ct tanh c'; hf multiply ot ct; h' quantize hf""",
    "h=h' c=c'",
    "Gers and Schmidhuber 2000; peepholes as in ONNX LSTM input P",
    "pi pf po",
)

PROJECTION = _cell(
    "lstm-projection",
    (stage_of("i[x h] f[x h] g[x h] o[x h]"), stage_of("p[m]", "projection")),
    """it sigmoid i; ft sigmoid f; gt tanh g; ot sigmoid o
    ig multiply it gt; fc multiply ft c; c' add fc ig; ct tanh c'; hf multiply ot ct; m quantize hf
    h' quantize p""",
    "h=h' c=c'",
    "Sak, Senior, Beaufays 2014; as PyTorch nn.LSTM with proj_size",
)


def _normalised(parts: str, tag: str, epsilon: float = 1e-5) -> str:
    """Nodes for the statistics of layer normalisation over the sums `parts`: mean and 1 / sqrt(variance + epsilon)."""
    return f"""mu{tag} mean {parts}; sq{tag} mean_square {parts}; mm{tag} multiply mu{tag} mu{tag}
    va{tag} subtract sq{tag} mm{tag}; ve{tag} add va{tag} {epsilon}; rs{tag} rsqrt ve{tag}
    """


def _layernorm_gate(gate: str) -> str:
    """Nodes up to `{gate}a`: the two normalised parts of a gate, scaled, added, shifted."""
    sides = ";".join(
        f"{gate}{side}c subtract {gate}{side} mu{side}; {gate}{side}n multiply {gate}{side}c rs{side};"
        f"{gate}{side}s multiply {gate}{side}n a{side}{gate}"
        for side in "xh"
    )
    return f"{sides}; {gate}b add {gate}xs {gate}hs; {gate}a add {gate}b b{gate}\n"


LAYERNORM = _cell(
    "lstm-layernorm",
    (stage_of(" ".join(f"{gate}{{{gate}x[x] {gate}h[h]}}" for gate in "ifgo")),),
    _normalised("ix fx gx ox", "x")
    + _normalised("ih fh gh oh", "h")
    + "".join(map(_layernorm_gate, "ifgo"))
    + "it sigmoid ia; ft sigmoid fa; gt tanh ga; ot sigmoid oa; ig multiply it gt; fc multiply ft c; c' add fc ig\n"
    + _normalised("c'", "c")
    + """cc subtract c' muc; cn multiply cc rsc; cs multiply cn ac; cb add cs bc
    ct tanh cb; hf multiply ot ct; h' quantize hf""",
    "h=h' c=c'",
    "Ba, Kiros, Hinton 2016, equations 20 to 22 (the two biases of a gate joined into one)",
    " ".join([*(f"a{side}{gate}" for side in "xh" for gate in "ifgo"), *(f"b{gate}" for gate in "ifgo"), "ac bc"]),
)

SLSTM = _cell(
    "slstm",
    (stage_of("i[x h] f[x h] z[x h] o[x h]"),),
    """lf log_sigmoid f; fm add lf m; m' maximum i fm; im subtract i m'; it exp im; fd subtract fm m'; ft exp fd
    zt tanh z; ot sigmoid o; fc multiply ft c; iz multiply it zt; c' add fc iz; fn multiply ft n; n' add fn it
    cn divide c' n'; hf multiply ot cn; h' quantize hf""",
    "h=h' c=c' n=n' m=m'",
    "Beck et al. 2024 (xLSTM), equations 8 to 17 with the sigmoid forget gate and one head",
)

MINGRU = _cell(
    "mingru",
    (stage_of("z[x] n[x]"),),
    "zt sigmoid z; d subtract n s; zd multiply zt d; hf add s zd; h' quantize hf",
    "h=h' s=hf",
    "Feng et al. 2024 (Were RNNs All We Needed?), minGRU in its sequential form",
)

_BUILT_IN = (LSTM, GRU, RNN, RNN_RELU, DENSE, DENSE_RELU, DENSE_TANH, DENSE_SIGMOID, GRU_LBR0, PEEPHOLE, PROJECTION)

#: Built-in cells by name.
CELLS: Mapping[str, Cell] = {each.name: each for each in (*_BUILT_IN, LAYERNORM, SLSTM, MINGRU)}


def cell(name: str) -> Cell:
    """The built-in cell of that name; `InputError` if there is none.

    >>> len(cell("gru").gates)
    3
    >>> cell("gruu")
    Traceback (most recent call last):
    lstmsim.InputError: no cell called 'gruu'; did you mean 'gru'?
    """
    if name not in CELLS:
        near = nearest(str(name), CELLS)
        raise InputError(f"no cell called {name!r}{near or '; there are: ' + ', '.join(CELLS)}")
    return CELLS[name]


@record
class LayerProduct:
    """A product of a layer for one inference and time step: sums and their rows, vectors and their elements."""

    sums: tuple[str, ...]
    rows: int
    vectors: tuple[str, ...]
    columns: int

    @property
    def label(self) -> str:
        """Sums and vectors for people."""
        return f"{','.join(self.sums)} x [{'|'.join(self.vectors)}]"


def step_products(layer: Layer) -> tuple[LayerProduct, ...]:
    """The products of a time step, in the order in which the cell first needs their vectors."""
    made = []
    for stage in layer.cell.stages:
        groups: dict[tuple[str, ...], tuple[str, ...]] = {}
        for each in stage.sums:
            # vectors as columns stand, in whatever order sums name them
            vectors = tuple(name for name in stage.vectors if name in each.vectors)
            groups[vectors] = (*groups.get(vectors, ()), each.name)
        for vectors, names in groups.items():
            rows, columns = len(names) * layer.units(stage.rows), sum(map(layer.width, vectors))
            made.append(LayerProduct(names, rows, vectors, columns))
    return tuple(made)


def input_projection(layer: Layer) -> LayerProduct:
    """The products of all sums with x, which can be taken for all time steps at once; some gate reads x."""
    sums = [(stage, each) for stage in layer.cell.stages for each in stage.sums if "x" in each.vectors]
    rows = sum(layer.units(stage.rows) for stage, _ in sums)
    return LayerProduct(tuple(each.name for _, each in sums), rows, ("x",), layer.input)
