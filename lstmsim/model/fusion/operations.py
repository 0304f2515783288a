"""The operations of graphs: their classes, what they compute, and what they cost a warp.

Names of operations that users may mistake: those of libraries, and those that are nearly right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.base.wording import nearest

Values = NDArray[np.float64]

#: Classes of operations. What is not in `OPERATIONS` is `COMPUTE`, a call of a library.
INPUT, COMPUTE, CHEAP, HEAVY, MOVE, REDUCE = "input", "compute", "cheap", "heavy", "move", "reduce"


@record
class Operation:
    """An operation on elements: `CHEAP` or `HEAVY`.

    kind: its class.
    operands: how many it takes.
    function: what it computes, of arrays of float64.
    fma, sfu: instructions of a warp, multiply-adds and functions; the functions come first.
    """

    kind: str
    operands: int
    function: Callable[..., Any]
    fma: int = 0
    sfu: int = 0


def _sigmoid(x: Values) -> Values:
    # exp of what is negative only: it cannot overflow
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


#: Operations on elements by name; docs/fusion.md, sections 1 and 10.
OPERATIONS: Mapping[str, Operation] = {
    "add": Operation(CHEAP, 2, np.add, 1),
    "subtract": Operation(CHEAP, 2, np.subtract, 1),
    "multiply": Operation(CHEAP, 2, np.multiply, 1),
    "maximum": Operation(CHEAP, 2, np.maximum, 1),
    "minimum": Operation(CHEAP, 2, np.minimum, 1),
    "negate": Operation(CHEAP, 1, np.negative, 1),
    "abs": Operation(CHEAP, 1, np.abs, 1),
    "copy": Operation(CHEAP, 1, np.copy, 1),
    "greater": Operation(CHEAP, 2, lambda a, b: np.greater(a, b).astype(np.float64), 1),
    "select": Operation(CHEAP, 3, lambda condition, a, b: np.where(condition != 0, a, b), 1),
    "round": Operation(CHEAP, 1, np.rint, 1),
    "tanh": Operation(HEAVY, 1, np.tanh, 0, 1),
    "sigmoid": Operation(HEAVY, 1, _sigmoid, 0, 1),
    "exp": Operation(HEAVY, 1, np.exp, 0, 1),
    "log": Operation(HEAVY, 1, np.log, 0, 1),
    "power": Operation(HEAVY, 2, np.power, 0, 2),
    "divide": Operation(HEAVY, 2, np.divide, 1, 1),
    "sqrt": Operation(HEAVY, 1, np.sqrt, 0, 1),
    "rsqrt": Operation(HEAVY, 1, lambda x: 1.0 / np.sqrt(x), 0, 1),
    "reciprocal": Operation(HEAVY, 1, lambda x: 1.0 / x, 0, 1),
}

#: Operations that move elements.
MOVES = ("broadcast", "reshape", "transpose", "slice")

#: Operations that reduce axes, with the function that joins two values.
REDUCES: Mapping[str, np.ufunc] = {"reduce_sum": np.add, "reduce_max": np.maximum, "reduce_min": np.minimum}


def class_of(operation: str) -> str:
    """The class of an operation.

    >>> class_of("tanh"), class_of("slice"), class_of("gather")
    ('heavy', 'move', 'compute')
    """
    if operation in OPERATIONS:
        return OPERATIONS[operation].kind
    if operation in REDUCES:
        return REDUCE
    if operation in MOVES:
        return MOVE
    return INPUT if operation == INPUT else COMPUTE


#: Calls of libraries that are well known by these names, though some are spelled like an operation.
_LIBRARY = frozenset(
    [
        "matmul",
        "conv",
        "gemm",
        "lstm",
        "gru",
        "rnn",
        "gather",
        "scatter",
        "concat",
        "pad",
        "where",
        "argmax",
        "argmin",
        "topk",
        "einsum",
        "embedding",
        "lookup",
        "cumsum",
        "softmax",
        "attention",
        "layer_norm",
        "batch_norm",
        "cast",
        "sort",
    ]
)
#: What other libraries call operations, where it is not nearly the same word.
_OTHERWISE: Mapping[str, str] = {
    "mul": "multiply",
    "sub": "subtract",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "pow": "power",
    "neg": "negate",
    "sum": "reduce_sum",
    "expand": "broadcast",
    "dot": "matmul",
    "parameter": "input",
}


def mistaken_name(op: str) -> str:
    """The operation that a name is nearly that of, as `; did you mean 'tanh'?`; empty if it is a library call or known.

    op: name of an operation.

    >>> mistaken_name("tanhh"), mistaken_name("gather"), mistaken_name("my_kernel")
    ("; did you mean 'tanh'?", '', '')
    """
    known = [INPUT, "matmul", "conv", *OPERATIONS, *MOVES, *REDUCES]
    if op in known or op in _LIBRARY:
        return ""
    if op.casefold() in _OTHERWISE:
        return f"; did you mean {_OTHERWISE[op.casefold()]!r}?"
    hint = nearest(op, known)
    # names that are only half alike are calls of a library: the hint's cutoff is too low to refuse them
    return hint if hint and _alike(op, hint.split("'")[1]) else ""


def _alike(word: str, known: str) -> bool:
    return SequenceMatcher(None, word[:200].casefold(), known).ratio() >= 0.75
