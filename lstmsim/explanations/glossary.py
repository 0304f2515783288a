"""One sentence for each word that the tables use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from lstmsim.metrics.cycle_names import NAMED, PE_NAMES
from lstmsim.program.cycles import CYCLE_NAMES

__all__ = ["GLOSSARY", "words_in"]

#: Word -> sentence. A word in capitals must occur in capitals, any other word may have small or capital letters.
GLOSSARY: Mapping[str, str] = {
    "critical path": "the chain of operations and waits, each of which began when the one before it was over, that "
    "ends with the last result: only what shortens it shortens the run",
    "makespan": "the cycle at which the last job has finished",
    "utilization": "useful multiply-accumulates / (peak x makespan): the share of what the multipliers could have done",
    "TOPS": "10^12 operations a second, where a multiply-accumulate counts as two",
    "latency": "of a job: from its arrival to its last result; of a pipeline: from its input to its output",
    "PE-cycles": "processing elements (multipliers) x cycles",
    "npe": "number of processing elements: the multipliers of a core",
    "ep": "element parallelism: columns of the matrix (elements of x or h) that a tile takes in a cycle",
    "vp": "vector parallelism: rows of the matrix that a tile takes in a cycle",
    "CAT": "configurable adder-tree tail: the tree's last levels can serve as accumulators, so that ep can be changed",
    **{name: NAMED[name].glossary for name in (*PE_NAMES, *CYCLE_NAMES)},
    "queue": "jobs that have come and have no thread yet",
    "paused": "a job has given up its thread to a more urgent one and waits to go on",
    "thread": "a context of a core: holds one job's vectors, states and accumulators; threads take turns on the array",
    "turn": "the time in which a unit works for one thread while the others that could go on wait",
    "tile": "vp rows by ep columns of a matrix, multiplied in one cycle",
    "row block": "the rows that fill vp: as many whole hidden units as fit",
    "bank": "accumulator memory for the partial sums of one row block",
    "array": "the multipliers and adder trees; takes one tile a cycle",
    "tail": "the unit behind the array: activations and state updates, tail_width hidden units a cycle",
    "exchange": "sends a core's share of h to the other cores of its job",
    "memory": "DRAM or HBM beside the chip, shared by its cores: from there come weights that do not stay on it",
    "MVM": "matrix-vector multiplication; its pipeline: reading, multiplying, adder tree, accumulator, conversion",
    "step": "one time step of a recurrent network: one x in, one h out",
    "h": "the output of a recurrent layer, which its next step reads",
    "arrival": "the cycle at which a job may start",
    "frame": "the x of one time step",
    "batch": "inferences of one job that run together",
    "fetch": "sends instructions to the decoders, in order",
    "mvu": "matrix-vector unit of a row-wise NPU: multiplies, once the whole vector is there",
    "evrf": "vector register file behind the matrix-vector unit",
    "mfu0": "first multi-function unit: activation, addition, multiplication of vectors",
    "mfu1": "second multi-function unit: activation, addition, multiplication of vectors",
    "loader": "writes results back to the register files, and inputs from outside",
    "serializer": "takes the results of a row group apart into vectors",
    "p95": "95 % of the jobs were faster (p50, p99 likewise; interpolated between ranks)",
}


def words_in(text: str, own: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The words of the glossary that occur in a text (also with a plural s), in the order of the glossary.

    own: sentences of a machine, which replace the usual ones.

    >>> list(words_in("The makespan has 3 tiles; ep 4. A tops."))
    ['makespan', 'ep', 'tile']
    """
    words = {}
    for word, sentence in GLOSSARY.items():
        flags = 0 if word.isupper() or len(word) == 1 else re.IGNORECASE
        # decode_mvu holds mvu, tail_width holds tail
        if re.search(rf"(?<![a-zA-Z0-9])(?:{re.escape(word)})s?(?![a-zA-Z0-9])", text, flags):
            words[word] = own.get(word, sentence)
    return words
