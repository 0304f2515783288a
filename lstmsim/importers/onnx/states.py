"""The first states of a recurrent node of an ONNX network: constants, inputs of the network, or computed values.

Constants go into the network's numbers. An input is 0 until a job gives it. No file holds states that are computed
while the network runs: the model says in words what computes them (`states_from`), and a job must give them.
Source: the ONNX operator pages of LSTM, GRU and RNN (`initial_h`, `initial_c`, `layout`).
"""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.base.wording import show
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, label, node_input, resolve
from lstmsim.importers.onnx.nodes import is_recurrent

__all__ = ["LAST_STATES", "STATES", "Begin", "begin_of", "sources"]

#: The words for states that another node ends with begin so.
LAST_STATES = "the last states of"
#: State to the place of the input that gives it.
STATES = {"h": 5, "c": 6}
#: Operations that hand numbers on, rearranged, in part, or repeated.
_HANDING_ON = frozenset(
    (
        *("Transpose", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Identity", "Cast", "Dropout"),
        *("Concat", "Slice", "Gather", "Split", "Expand", "Tile"),
    )
)
_MAX_VISITED = 300


@dataclass(frozen=True)
class Begin:
    """Where the states before the first step come from.

    constants: names of the states whose numbers the file holds.
    inputs: inputs of the network that give states.
    states_from: what computes further states, in words; empty if nothing does.
    """

    constants: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    states_from: tuple[str, ...] = ()


@dataclass
class Sources:
    """The parts that a value is put together from.

    constants: scope and name of each constant.
    inputs: inputs of the network.
    computed: all other parts, in words.
    """

    constants: list[tuple[Scope, str]]
    inputs: list[str]
    computed: list[str]


def begin_of(scope: Scope, index: int) -> Begin:
    """Tell where the first states of a recurrent node come from, through operations that hand them on."""
    node = scope.nodes[index]
    constants, given, computed = list[str](), list[str](), list[str]()
    for name, place in STATES.items():
        if not node_input(node, place) or (name == "c" and node.op_type != "LSTM"):
            continue
        origins = sources(scope, node_input(node, place))
        if origins.computed or (origins.inputs and origins.constants):
            computed += [*origins.computed, *(f"input {show(each)}" for each in origins.inputs)]
            computed += ["constants"] if origins.constants else []
        elif origins.inputs:
            given += origins.inputs
        elif origins.constants:
            constants.append(name)
        else:
            computed.append(f"initial_{name}, which is nowhere in the file")
    return Begin(tuple(constants), tuple(dict.fromkeys(given)), tuple(dict.fromkeys(computed)))


def sources(scope: Scope, name: str) -> Sources:
    """List the constants, inputs and computing nodes that a value is put together from."""
    origins, seen, waiting = Sources([], [], []), set[tuple[Scope, str]](), [(scope, name)]
    while waiting:
        value = resolve(*waiting.pop())
        if value is None or (value.scope, value.name) in seen:
            continue
        if len(seen) > _MAX_VISITED:
            origins.computed.append("more values than can be followed")
            break
        seen.add((value.scope, value.name))
        node, bodies = value.node, value.scope.children.get(value.index, [])
        if value.tensor is not None or (node is not None and node.op_type in ("Constant", "ConstantOfShape")):
            origins.constants.append((value.scope, value.name))
        elif node is None:
            inside = value.scope.inside
            (origins.computed if inside else origins.inputs).append(
                f"{show(value.name)}{inside}" if inside else value.name
            )
        elif bodies and (node.op_type == "If" or bodies[0].caller is not None):
            waiting += [(body, body.outputs[value.place]) for body in bodies if value.place < len(body.outputs)]
        elif is_recurrent(node):
            what = LAST_STATES if value.place else "the outputs of"
            origins.computed.append(f"{what} {label(value.scope, value.index)}")
        elif node.op_type in _HANDING_ON and node.domain in DEFAULT_DOMAINS:
            names = node.input if node.op_type == "Concat" else node.input[:1]
            waiting += reversed([(value.scope, str(each)) for each in names[:_MAX_VISITED]])
        else:
            origins.computed.append(f"node {label(value.scope, value.index)}")
    return origins
