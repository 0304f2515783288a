"""Options of searches of the best (EP, VP)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

from lstmsim.base.bounds import MAX_PES
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.base.wording import show
from lstmsim.studies.shared.request import Jobs, Overrides, Path, Progress, Source, listed_in


@record
class SearchRequest:
    """A scenario, and which arrays are tried for it."""

    scenario: Source
    npe: Annotated[int, Key("Multipliers of each searched core.", flag="--npe", metavar="N")]
    _: KW_ONLY
    exhaustive: Annotated[
        bool, Key("Simulate every useful pair, too, for the optimum and the regret of the greedy walk.")
    ] = False
    any_ep: Annotated[bool, Key("Try every EP, not only powers of two.")] = False
    core: Annotated[
        int | None, Key("Search only this core.", follows="all cores of the chip, which must be equal", metavar="K")
    ] = None
    jobs: Jobs = None
    folder: Annotated[
        Path | None,
        Key(
            "Folder of a sweep: its results are not simulated again, and new ones go there.",
            flag="--out",
            metavar="DIR",
        ),
    ] = None
    overrides: Overrides = ()
    progress: Progress = None


def _sizes(text: str) -> tuple[int, ...]:
    """Numbers of multipliers with commas between them, or from LOW by doubling to HIGH."""
    low, colon, high = text.partition(":")
    parts = listed_in(text if not colon else f"{low},{high}")
    numbers = all(isinstance(each, int) for each in parts)
    if not numbers or (colon and not (len(parts) == 2 and 1 <= parts[0] <= parts[1] <= MAX_PES)):
        raise ValueError(f"expected a number, N,N,N or LOW:HIGH up to {MAX_PES:,}, got {show(text)}")
    if not colon:
        return tuple(dict.fromkeys(parts))
    return tuple(parts[0] << shift for shift in range((parts[1] // parts[0]).bit_length()))


class SeveralSizes:
    """What the command line takes in place of one number of multipliers."""

    npe: Annotated[
        tuple[int, ...],
        Key(
            "Multipliers of each searched core; N,N,N or LOW:HIGH (by doubling) give a table of the best pairs.",
            flag="--npe",
            metavar="N",
            read=_sizes,
        ),
    ]
