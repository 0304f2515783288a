"""Words of the column-wise NPU: for cycles and losses, with the keys that can help, and for its units."""

from __future__ import annotations

from dataclasses import replace

from lstmsim.machines.array_words import ARRAY_WORDS
from lstmsim.model.figures import Words

__all__ = ["WORDS"]

#: Weights are streamed block by block, and a product needs the weights of its row block.
_STREAMED = Words(
    remedy="more memory.gb_per_s or weight_kib, or more prefetch_blocks, would help",
    glossary="nothing can issue, because a row block's weights are still being streamed from the memory",
    next_wait="block's weights",
    leg="tiles wait for weights from the memory",
    way="until the weights are there that a tile needs",
)

#: Name of cycles or losses, way off the array, or word of outputs -> words.
WORDS = {
    **ARRAY_WORDS,
    "hazard": Words(remedy="more threads with work would fill it, another ep and vp may shorten it"),
    "backpressure": replace(
        ARRAY_WORDS["backpressure"], remedy="more accumulator_banks or a larger tail_width would help"
    ),
    "room": Words(
        called="bank",
        leg="a row block waits for a free accumulator bank",
        way="from a row block's last tile to the free accumulator bank that the next one takes",
    ),
    "switch": replace(ARRAY_WORDS["switch"], remedy="coarse-grained threads or fewer switch_cycles would help"),
    "ready": Words(remedy="`thread_policy: fine` shares the array among the threads"),
    "reload": Words(
        remedy="more weight_kib, `placement: affinity`, or one core set for each model (`cores`) would help"
    ),
    "weights": _STREAMED,
    "CAT": Words(
        glossary="configurable adder-tree tail: the tree's last levels can serve as accumulators, so that ep can be "
        "changed",
        behind="vp",
    ),
    "row block": Words(glossary="the rows that fill vp: as many whole hidden units as fit", behind="tile"),
    "bank": Words(glossary="accumulator memory for the partial sums of one row block", behind="row block"),
    "tail": Words(
        glossary="the unit behind the array: activations and state updates, tail_width hidden units a cycle",
        behind="array",
    ),
    "exchange": Words(glossary="sends a core's share of h to the other cores of its job", behind="tail"),
    "memory": Words(
        glossary="DRAM or HBM beside the chip, shared by its cores: from there come weights that do not stay on it",
        behind="exchange",
    ),
}
