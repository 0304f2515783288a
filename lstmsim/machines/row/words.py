"""Words of the row-wise NPU: for cycles and losses, with the keys that can help, and for its units."""

from __future__ import annotations

from lstmsim.machines.array_words import ARRAY_WORDS
from lstmsim.model.figures import Words

__all__ = ["WORDS"]

#: Name of cycles or losses, or word of outputs -> words.
WORDS = {
    **ARRAY_WORDS,
    "hazard": Words(
        remedy="smaller latencies would help, or inferences in one batch: this machine runs one job at a time"
    ),
    "fetch": Words(glossary="sends instructions to the decoders, in order", behind="batch"),
    "mvu": Words(
        glossary="matrix-vector unit of a row-wise NPU: multiplies, once the whole vector is there", behind="fetch"
    ),
    "evrf": Words(glossary="vector register file behind the matrix-vector unit", behind="mvu"),
    "mfu0": Words(glossary="first multi-function unit: activation, addition, multiplication of vectors", behind="evrf"),
    "mfu1": Words(
        glossary="second multi-function unit: activation, addition, multiplication of vectors", behind="mfu0"
    ),
    "loader": Words(glossary="writes results back to the register files, and inputs from outside", behind="mfu1"),
    "serializer": Words(glossary="takes the results of a row group apart into vectors", behind="loader"),
}
