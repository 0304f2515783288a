"""The key `steps` of a job, if it is no number: a list, or a kind of distribution with the keys of that kind."""

from __future__ import annotations

from typing import Annotated, Literal

from lstmsim.base.bounds import MAX_JOBS, MAX_STEPS
from lstmsim.base.errors import InputError
from lstmsim.base.keys import Key, keys_of
from lstmsim.base.wording import listed
from lstmsim.files.scenario.arrival_columns import Measure
from lstmsim.files.scenario.schema_arrivals import ArrivalPath
from lstmsim.files.scenario.schema_types import Entry, Name, Steps
from lstmsim.traffic.lengths import Geometric, Lengths, Uniform, Weighted

__all__ = ["MAX_LENGTHS", "AnySteps", "StepsEntry", "measure_of", "random_lengths", "steps_mistakes"]

#: Most different numbers of steps of all entries together. Each number is lowered, and kept in the tables of `serve`.
MAX_LENGTHS = 4096
#: Keys of each kind: the required keys, and the optional keys.
KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "list": (("values",), ("weights", "seed")),
    "uniform": (("low", "high"), ("seed",)),
    "geometric": (("mean", "most"), ("seed",)),
    "empirical": (("path",), ("column", "per_step", "seed")),
    "column": ((), ("column", "per_step")),
}


Weight = Annotated[float, Key(low=0, high=MAX_STEPS)]
Columns = Name | Annotated[list[Name], Key(low=1, high=20)]


class StepsEntry(Entry):
    """The choice of steps for the requests of an entry. One class serves all kinds, so that each key is checked.

    kind: how the steps are chosen, for example uniform.
    low, high: the smallest and the largest number of steps (kind uniform).
    mean, most: the mean and the largest number of steps (kind geometric).
    per_step: how much of the sum of the columns makes one step.
    path: a file; for each request one of its rows is drawn (kind empirical).
    column: column or columns of that file, or of the request's own row in its file of arrivals (kind column).
    seed: chooses the random steps.
    Other keys: as in `lstmsim.traffic.lengths`.
    """

    kind: Annotated[
        Literal["list", "uniform", "geometric", "empirical", "column"],
        Key("how the steps are chosen, for example uniform"),
    ]
    values: Annotated[list[Steps], Key(low=1, high=65_536)] | None = None
    weights: Annotated[list[Weight], Key(low=1, high=65_536)] | None = None
    low: Steps = 1
    high: Steps = 1
    mean: Annotated[float, Key(low=1, high=MAX_STEPS)] = 1.0
    most: Steps = 1
    path: ArrivalPath = ""
    column: Columns = "steps"
    per_step: Annotated[float, Key(above=0, high=1e12)] = 1.0
    seed: Annotated[int, Key(low=0, below=2**63)] = 0

    @property
    def random(self) -> bool:
        """Whether the kind draws random numbers, which its seed chooses."""
        return "seed" in KEYS[self.kind][1]


AnySteps = Steps | Annotated[list[Steps], Key(low=1, high=MAX_JOBS)] | StepsEntry


def steps_mistakes(entry: StepsEntry) -> list[tuple[str, str]]:
    """List the mistakes between the keys of an entry, as (key, sentence). Each key by itself is right.

    >>> steps_mistakes(StepsEntry(kind="uniform", low=3, most=9))
    [('high', 'required key is missing for uniform'), ('most', 'is no key of uniform; its keys: low, high and seed')]
    >>> steps_mistakes(StepsEntry(kind="uniform", low=3, high=2))
    [('high', 'must be at least low (3), got 2')]
    """
    needed, allowed = KEYS[entry.kind]
    given = entry.given - {"kind"}
    mistakes = [(key, f"required key is missing for {entry.kind}") for key in needed if key not in given]
    foreign = [key for key in keys_of(StepsEntry) if key in given and key not in (*needed, *allowed)]
    keys = listed((*needed, *allowed), "and")
    mistakes += [(key, f"is no key of {entry.kind}; its keys: {keys}") for key in foreign]
    if not mistakes:
        try:
            random_lengths(entry)
        except InputError as error:
            mistakes += [(each.place.rpartition(": ")[2], each.sentence) for each in error.mistakes]
    return mistakes


def random_lengths(entry: StepsEntry) -> Lengths | None:
    """Turn an entry without mistakes into a distribution; None if a file has to be read for it.

    >>> random_lengths(StepsEntry(kind="uniform", low=3, high=5))
    Uniform(low=3, high=5)
    """
    match entry.kind:
        case "list":
            return Weighted(tuple(entry.values or ()), tuple(entry.weights or ()))
        case "uniform":
            return Uniform(entry.low, entry.high)
        case "geometric":
            return Geometric(entry.mean, entry.most)
        case "empirical" | "column":
            return None


def measure_of(entry: StepsEntry) -> Measure:
    """Give the rule that makes steps of columns.

    >>> measure_of(StepsEntry(kind="column", column="ContextTokens", per_step=16.0))
    Measure(columns=('ContextTokens',), per_step=16.0)
    """
    columns = (entry.column,) if isinstance(entry.column, str) else tuple(entry.column)
    return Measure(columns, entry.per_step)
