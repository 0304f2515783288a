"""Words for cycles and losses of the row-wise NPU, with the keys that can help against them."""

from __future__ import annotations

from lstmsim.targets.array_words import ARRAY_WORDS
from lstmsim.workload.scenario import Words

__all__ = ["WORDS"]

#: Name of cycles or losses -> words.
WORDS = {
    **ARRAY_WORDS,
    "hazard": Words(
        remedy="smaller latencies would help, or inferences in one batch: this machine runs one job at a time"
    ),
}
