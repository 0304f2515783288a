"""Words for cycles and losses of the column-wise NPU, with the keys that can help against them."""

from __future__ import annotations

from lstmsim.targets.array_words import ARRAY_WORDS
from lstmsim.workload.scenario import Words

__all__ = ["WORDS"]

#: Name of cycles or losses -> words.
WORDS = {
    **ARRAY_WORDS,
    "hazard": Words(remedy="more threads with work would fill it, another ep and vp may shorten it"),
    "backpressure": Words(remedy="more accumulator_banks or a larger tail_width would help"),
    "switch": Words(remedy="coarse-grained threads or fewer switch_cycles would help"),
    "reload": Words(
        remedy="more weight_kib, `placement: affinity`, or one core set for each model (`cores`) would help"
    ),
    "weights": Words(remedy="more memory.gb_per_s or weight_kib, or more prefetch_blocks, would help"),
}
