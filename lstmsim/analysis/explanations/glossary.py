"""One sentence for each word that the tables use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from lstmsim.analysis.cycle_names import NAMED, PE_NAMES
from lstmsim.model.figures import Words
from lstmsim.program.cycles import CYCLE_NAMES

__all__ = ["GLOSSARY", "words_in"]

#: Word -> sentence, for words that mean the same on every machine; a machine adds its own
#: (`lstmsim.model.figures.Words`). A word in capitals must occur in capitals, any other word may have small or
#: capital letters.
GLOSSARY: Mapping[str, str] = {
    "critical path": "the chain of operations and waits, each of which began when the one before it was over, that "
    "ends with the last result: only what shortens it shortens the run",
    "makespan": "the cycle at which the last job has finished",
    "utilization": "useful multiply-accumulates / (peak x makespan): the share of what the multipliers could have done",
    "TOPS": "10^12 operations a second, where a multiply-accumulate counts as two",
    "latency": "of a job: from its arrival to its last result; of a pipeline: from its input to its output",
    **{name: NAMED[name].glossary for name in (*PE_NAMES, *CYCLE_NAMES)},
    "queue": "jobs that have come and have no thread yet",
    "paused": "a job has given up its thread to a more urgent one and waits to go on",
    "thread": "a context of a core: holds what one job needs while it runs; threads take turns on the core's main unit",
    "turn": "the time in which a unit works for one thread while the others that could go on wait",
    "step": "one time step of a recurrent network: one x in, one h out",
    "h": "the output of a recurrent layer, which its next step reads",
    "arrival": "the cycle at which a job may start",
    "frame": "the x of one time step",
    "batch": "inferences of one job that run together",
    "p95": "95 % of the jobs were faster (p50, p99 likewise; interpolated between ranks)",
}


def words_in(text: str, own: Mapping[str, Words] = MappingProxyType({})) -> dict[str, str]:
    """The words of the glossary that occur in a text (also with a plural s), in the order of the glossary.

    own: words of a machine, whose sentences replace the usual ones or are added.

    >>> list(words_in("The makespan has 3 steps; H 4. A tops."))
    ['makespan', 'step']
    >>> words_in("a makespan of the ALU", {"alu": Words(glossary="computes", behind="critical path")})["alu"]
    'computes'
    """
    words = {}
    for word, sentence in _with(own).items():
        flags = 0 if word.isupper() or len(word) == 1 else re.IGNORECASE
        # decode_mvu holds mvu, tail_width holds tail
        if re.search(rf"(?<![a-zA-Z0-9])(?:{re.escape(word)})s?(?![a-zA-Z0-9])", text, flags):
            words[word] = sentence
    return words


def _with(own: Mapping[str, Words]) -> dict[str, str]:
    """The glossary of a machine: each word that it adds stands behind the word that it names, or at the end."""
    others = {name for name, named in NAMED.items() if named.everyday and name not in own}
    entries = {word: sentence for word, sentence in GLOSSARY.items() if word not in others}
    for word, mine in own.items():
        if mine.glossary and (word in entries or mine.behind not in entries):
            entries[word] = mine.glossary
        elif mine.glossary:
            pairs = list(entries.items())
            at = list(entries).index(mine.behind) + 1
            entries = dict([*pairs[:at], (word, mine.glossary), *pairs[at:]])
    return entries
