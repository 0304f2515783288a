"""Words of EdgeDRNN: for cycles and losses, and for its units."""

from __future__ import annotations

from lstmsim.model.figures import MainUnit, Words

#: Names of cycles that not every machine has.
STALLS = ("memory", "activation", "scan")

#: Name of cycles or losses, or word of outputs -> words.
WORDS = {
    "busy": Words(
        "weights of changed columns are multiplied",
        glossary="the multipliers take a beat of weights, or a marker passes them",
    ),
    "padding": Words(
        "markers pass the multipliers",
        "the last element of a vector passes the multipliers, changed or not; so long no weight is multiplied",
        useful="Where the multipliers are at work, {useful} of them multiply weights; else markers pass",
    ),
    "memory": Words(
        "weights of a changed column are on their way",
        "nothing is multiplied, because weights of a changed column are still on their way from the memory",
        held_by="weights of columns (memory)",
        next_wait="weights",
        share="weights of a column are on their way",
        spent="waiting for weights (memory)",
    ),
    "hazard": Words("never: the machine waits for entries, weights and activations"),
    "backpressure": Words("never: a full FIFO holds the encoder back, not the multipliers"),
    "scan": Words(held_by="the search for changes (scan)"),
    "step to step": Words(way="from the activations of a layer to the first changed element of the next"),
    "layer to layer": Words(way="from the activations of a layer to the first changed element of the one above"),
    "lane": Words(glossary="one of the multiply-accumulators of a core", behind="thread"),
    "column": Words(glossary="the weights of one element of a vector: 3 x hidden of them", behind="lane"),
    "marker": Words(glossary="an entry without weights, for the last element of a vector", behind="column"),
    "encoder": Words(glossary="walks over the elements of the vectors and finds those that changed", behind="marker"),
}
UNIT = MainUnit("mac", "multipliers", "lane")
