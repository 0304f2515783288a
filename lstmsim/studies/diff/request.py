"""Options of a diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Engine, Path


def _changes(side: str, flag: str) -> Key:
    text = f"Change a value of the scenario {side}, like chip.cores.0.ep=16."
    return Key(text, flag=flag, metavar="PATH=VALUE", repeatable=True)


@record
class DiffRequest:
    """Two scenarios, or two programs that were kept, and how they are simulated."""

    a: Annotated[
        Path | Any,
        Key(
            "File of a scenario, or of a program that was kept (.npz): the side before; in Python also a mapping, a "
            "Scenario, a Run, a Program."
        ),
    ]
    b: Annotated[Path | Any | None, Key("The side after.", follows="A, with the changes of B")] = None
    _: KW_ONLY
    overrides: Annotated[Sequence[str] | Mapping[str, Any], _changes("B", "--set")] = ()
    overrides_a: Annotated[Sequence[str] | Mapping[str, Any], _changes("A", "--set-a")] = ()
    engine: Engine = "fast"
