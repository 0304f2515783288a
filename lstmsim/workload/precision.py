"""How wide the numbers of a fixed-point machine are."""

from __future__ import annotations

from dataclasses import asdict

from lstmsim.records import record

__all__ = ["ACTIVATIONS", "WEIGHT_SCALES", "Precision"]

WEIGHT_SCALES = ("row", "tensor")
ACTIVATIONS = ("table", "linear")

#: Narrowest and widest of each width; products and dequantisation must fit into 64 bits.
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
    """Widths in bits of everything that a step passes through, and the size of the activation functions.

    `weight_bits`, `vector_bits`: weights, and x, h and further vectors that are streamed; symmetric, no zero point.
    `weight_scale`: one scale per row of the matrix or one per sum (`tensor`). `accumulator_bits`: sums, which wrap.
    `multiplier_bits`: the factor of the dequantisation behind the adapter. `tail_bits`: whatever the tail computes;
    `state_bits`: states that only the tail reads (c). `activation`: a `table` with `activation_entries` values over
    -`activation_range` ... +`activation_range`, or as many straight pieces (`linear`).

    Widths 8, 32 and 16 are those of the column-wise LSTM patent's linear quantisation; multiplier and tables are
    an assumption, because it gives none.

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

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the widths, as (key, sentence) pairs."""
        values = asdict(self)
        found = [
            (key, f"must be between {low} and {high}, got {values[key]}")
            for key, (low, high) in WIDTHS.items()
            if not low <= values[key] <= high
        ]
        for key, known in (("weight_scale", WEIGHT_SCALES), ("activation", ACTIVATIONS)):
            if values[key] not in known:
                found.append((key, f"must be {' or '.join(known)}, got {values[key]!r}"))
        for key, high in (("activation_entries", 65536), ("activation_range", 64)):
            value = values[key]
            if not 2 <= value <= high or value & (value - 1):
                found.append((key, f"must be a power of two between 2 and {high}, got {value}"))
        return found
