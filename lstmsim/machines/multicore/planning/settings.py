"""Parameters of the planner: weights of its conditions, limits of acceptance, which cuts are candidates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.key_checkers import checker_of
from lstmsim.base.key_values import Notes
from lstmsim.base.keys import Key
from lstmsim.base.records import hashed_once, record
from lstmsim.base.wording import listed
from lstmsim.machines.gemm import CONDITIONS

__all__ = ["DOCUMENTED", "MN", "Settings", "settings_of"]

#: Which cuts of rows and columns alone are candidates: the one of BLIS's rule, or all.
MN = ("blis", "all")

_MOST = 1e6
_weight = partial(Key, low=0, high=_MOST)


@hashed_once
@record
class Settings:
    """Parameters of the planner.

    k_fit, mn_fit, padding, balance, contention, traffic, cycles: weight of each condition in the fitness, at least 0.
    least_kb: least part of `kc` that a part of K must have, so that a cut is accepted.
    most_padding: most work of whole micro-tiles, against the uncut product.
    most_p_k: most threads that add into the same block of C.
    mn: one of `MN`.

    >>> Settings().weights["padding"], Settings(padding=1).weights["padding"]
    (8.0, 1)
    """

    k_fit: Annotated[float, _weight("weight of k_fit")] = 2.0
    mn_fit: Annotated[float, _weight("weight of mn_fit")] = 1.0
    padding: Annotated[float, _weight("weight of padding")] = 8.0
    balance: Annotated[float, _weight("weight of balance")] = 2.0
    contention: Annotated[float, _weight("weight of contention")] = 2.0
    traffic: Annotated[float, _weight("weight of traffic")] = 8.0
    cycles: Annotated[float, _weight("weight of cycles")] = 100.0
    least_kb: Annotated[float, Key("least part of kc that a part of K must have", low=0, high=1)] = 0.25
    most_padding: Annotated[float, Key("most padding against the uncut product", above=0, high=_MOST)] = 1.5
    most_p_k: Annotated[int, Key("most threads that add into the same block of C", low=1, high=10**6)] = 16
    mn: Annotated[str, Key("which cuts of rows and columns alone are candidates", choices=MN)] = "all"

    @property
    def weights(self) -> Mapping[str, float]:
        """The weights by condition, in the order of `CONDITIONS`."""
        return {name: getattr(self, name) for name in CONDITIONS}


#: The parameters of section 2 of docs/multicore.md. Recurrent jobs are planned with them.
DOCUMENTED = Settings(cycles=0.0, mn="blis")


def settings_of(given: Mapping[str, Any]) -> Settings:
    """The parameters that a user gives, the others with their defaults.

    given: values by name.
    InputError with every name that there is not (and the nearest that there is) and every value that cannot be.

    >>> settings_of({"traffic": 4}).traffic
    4.0
    >>> settings_of({"trafic": 4, "balance": -1})
    Traceback (most recent call last):
    lstmsim.InputError: balance: must be at least 0.0, got -1
    trafic: unknown key; did you mean 'traffic'?
    """
    data = {str(name): value for name, value in given.items()}
    notes: Notes = []
    made: Settings | None = checker_of(Settings)(data, (), notes)
    mistakes = [Mistake(str(note.path[0]), note.told(data[str(note.path[0])])) for note in notes]
    if made is not None and not any(made.weights.values()):
        mistakes.append(Mistake(listed(CONDITIONS, "and"), "one of these weights must be above 0, all are 0"))
    if mistakes or made is None:
        raise InputError(mistakes)
    return made
