"""What cycles and losses are called on the row-wise NPU, and what its keys can do against them."""

from __future__ import annotations

from lstmsim.targets.array_words import ARRAY_WORDS
from lstmsim.workload.scenario import Words

__all__ = ["WORDS"]

#: What can be done against its losses.
WORDS = {
    **ARRAY_WORDS,
    "hazard": Words(
        remedy="smaller latencies would help, or inferences in one batch: this machine runs one job at a time"
    ),
}
