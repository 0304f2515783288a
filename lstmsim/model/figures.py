"""The figures that a core of any machine shows: figures for accounts and reports, words, planned products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from lstmsim.base.records import record


@record
class Words:
    """The words of one machine for a name. If a text is empty, the usual text is used, if there is one.

    The name is one of cycles or losses, of what a path or a request waits for, of a way off the main unit, or any word
    of outputs that the glossary should explain.

    meaning: what such a cycle is, in reports.
    remedy: of `ready`, what would let threads share the main unit: a sentence
        without a full stop.
    glossary: what it is, in the glossary of explanations; a word that is not in the common glossary is added to it.
    behind: for a word that is added, the word of the glossary after which it comes; empty: it comes at the end.
    held_by: what the critical path waited for.
    next_wait: what the next step of the path waits for, in a column of a table.
    share: what goes on in such a cycle of a request.
    spent: the end of the sentence "they spent 71 % of their time ...".
    called: the name of such a way off the main unit, or of such cycles of a path, in outputs.
    leg: what such a way off the main unit is, as a table says it. `{unit}` stands for the unit's name.
    way: the same way as the end of the sentence "40 % of the makespan is the way ...".
    useful: for `padding`, the sentence without a full stop on how many multipliers do useful work while the main unit
        issues. `{useful}` stands for their share, `{array}` for the unit's name.
    """

    meaning: str = ""
    remedy: str = ""
    glossary: str = ""
    behind: str = ""
    held_by: str = ""
    next_wait: str = ""
    share: str = ""
    spent: str = ""
    called: str = ""
    leg: str = ""
    way: str = ""
    useful: str = ""


@record
class MainUnit:
    """What people call the main unit of a core, whose cycles are accounted, and what multiplies in it.

    name: its name in traces, pages and pictures, as a unit of a Program is named: small letters, digits and `_`.
    bound: all of them, as a bound on the load.
    part: one of what does a multiply-accumulate a cycle.
    """

    name: str = "unit"
    bound: str = "units"
    part: str = "multiplier"


@record
class CoreFigures:
    """The figures of a core that accounts and reports need, for any machine.

    peak: multiply-accumulates that the core can do in a cycle.
    issuing: how many of them take part when the core issues; the others are lost then (`unmapped`).
    columns: name of a column -> size that a report shows in it.
    settings: name -> other figure that a report shows.
    stalls: names of cycles that this machine has besides those of every machine.
    words: name of cycles or losses, or a word of outputs -> words of this machine.
    unit: what people call the core's main unit.
    spreads: whether a job runs on several neighbouring cores at once, with a thread on each (`Job.threads`).
    instances: of how many equal units the main unit consists (`lstmsim.program.program.Unit.instances`). The cycles of
        each count, so they add up to `instances` times the makespan.

    >>> CoreFigures(peak=10, issuing=8, columns={"npe": 10, "ep": 2, "vp": 4}).peak
    10
    """

    peak: int
    issuing: int
    columns: Mapping[str, int] = field(default_factory=dict, hash=False)
    settings: Mapping[str, int | str] = field(default_factory=dict, hash=False)
    stalls: tuple[str, ...] = ()
    words: Mapping[str, Words] = field(default_factory=dict, hash=False)
    unit: MainUnit = MainUnit()
    instances: int = 1
    spreads: bool = False


@record
class PlannedProduct:
    """A product of a time step (m, n, k), as it is spread over the threads of a job.

    layers, label: numbers of the layers that have it, from 0; gates, and vectors that they read.
    cut, block: how it is cut, in short; rows, columns and elements of K of a thread, in words.
    relief: how threads that add into the same block keep out of each other's way, in words; empty: none do.
    rank, candidates: place of the plan among the candidates, from 0, and how many there were.
    rejected: of each candidate before it, why it could not be accepted.
    """

    model: str
    layers: tuple[int, ...]
    label: str
    m: int
    n: int
    k: int
    threads: int
    cut: str
    block: str
    relief: str
    rank: int
    candidates: int
    rejected: tuple[tuple[str, ...], ...]


@record
class PlannedProducts:
    """The products of all jobs, equal ones once, and by which parameters they were planned, and why."""

    rows: tuple[PlannedProduct, ...]
    note: str


def merged(rows: Sequence[PlannedProduct]) -> tuple[PlannedProduct, ...]:
    """Rows that differ in their layers only become one, at the place of the first."""
    layers: dict[PlannedProduct, dict[int, None]] = {}
    for each in rows:
        layers.setdefault(replace(each, layers=()), {}).update(dict.fromkeys(each.layers))
    return tuple(replace(each, layers=tuple(sorted(numbers))) for each, numbers in layers.items())
