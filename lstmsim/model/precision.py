"""The widths of the numbers of a fixed-point machine."""

from __future__ import annotations

from dataclasses import asdict

from lstmsim.base.records import record

__all__ = ["ACTIVATIONS", "FORMATS", "SHIFTS", "WEIGHT_SCALES", "Precision"]

WEIGHT_SCALES = ("row", "tensor")
ACTIVATIONS = ("table", "linear")
FORMATS = ("own", "shared")
SHIFTS = ("row", "common")

#: Width -> narrowest and widest value in bits. Products and dequantisation must fit into 64 bits.
WIDTHS = {
    "weight_bits": (2, 16),
    "vector_bits": (2, 16),
    "accumulator_bits": (8, 40),
    "multiplier_bits": (4, 20),
    "tail_bits": (4, 24),
    "state_bits": (4, 24),
}


@record
class Precision:
    """The widths in bits of all numbers of a step, and the size of the activation functions.

    weight_bits: width of weights; symmetric, no zero point.
    vector_bits: width of x, h and further vectors that are streamed; symmetric, no zero point.
    weight_scale: one scale for each row of the matrix (`row`), or one for each sum (`tensor`).
    accumulator_bits: width of sums, which wrap.
    multiplier_bits: width of the factor of the dequantisation behind the adapter.
    tail_bits: width of everything that the tail computes.
    state_bits: width of states that only the tail reads (c).
    activation: a `table` of values, or straight pieces (`linear`).
    activation_entries: how many values or pieces.
    activation_range: they cover the inputs from -`activation_range` to +`activation_range`.
    formats: each pass (a layer in one direction) has formats of its `own`, or all passes of a kind of cell on the chip
        have the same ones (`shared`).
    shift: of the dequantisation: one for each `row` of the matrix, or one for each sum (`common`).

    The widths 8, 32 and 16 are from the linear quantisation of the column-wise LSTM patent. Multiplier and tables are
    an assumption, because the patent gives none.

    >>> Precision(weight_bits=1).mistakes()
    [('weight_bits', 'must be between 2 and 16, got 1')]
    """

    weight_bits: int = 8
    vector_bits: int = 8
    weight_scale: str = "row"
    accumulator_bits: int = 32
    multiplier_bits: int = 16
    tail_bits: int = 16
    state_bits: int = 16
    activation: str = "linear"
    activation_entries: int = 256
    activation_range: int = 8
    formats: str = "own"
    shift: str = "row"

    def mistakes(self) -> list[tuple[str, str]]:
        """List what is wrong with the widths, as (key, sentence) pairs."""
        values = asdict(self)
        mistakes = [
            (key, f"must be between {low} and {high}, got {values[key]}")
            for key, (low, high) in WIDTHS.items()
            if not low <= values[key] <= high
        ]
        words = {"weight_scale": WEIGHT_SCALES, "activation": ACTIVATIONS, "formats": FORMATS, "shift": SHIFTS}
        for key, known in words.items():
            if values[key] not in known:
                mistakes.append((key, f"must be {' or '.join(known)}, got {values[key]!r}"))
        for key, high in (("activation_entries", 65536), ("activation_range", 64)):
            value = values[key]
            if not 2 <= value <= high or value & (value - 1):
                mistakes.append((key, f"must be a power of two between 2 and {high}, got {value}"))
        return mistakes
