"""Names of operations that users may mistake: those of libraries, and those that are nearly right."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher

from lstmsim.base.wording import nearest
from lstmsim.model.fusion.operations import INPUT, MOVES, OPERATIONS, REDUCES

__all__ = ["mistaken_name"]

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
