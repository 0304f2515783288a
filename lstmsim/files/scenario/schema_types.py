"""The types of values in scenario, chip and model files, with bounds from `lstmsim.base.bounds`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from lstmsim.base.bounds import MAX_CYCLES, MAX_JOBS, MAX_SIZE, MAX_STEPS
from lstmsim.base.keys import Key
from lstmsim.files.yaml.entry import Entry
from lstmsim.model.cell_rules import MAX_GATES

__all__ = [
    "NOTHING",
    "Arrivals",
    "Cycles",
    "Entry",
    "InputsPath",
    "Name",
    "Parts",
    "Size",
    "Steps",
    "Sums",
    "Text",
    "Vectors",
    "WeightsPath",
    "Width",
    "Word",
]


#: The default of a mapping that is left out.
NOTHING: Mapping[str, Any] = MappingProxyType({})


def _named(name: str) -> str:
    return "" if name.isprintable() and name == name.strip() else "must be printable text without spaces around it"


def _ending(*suffixes: str) -> Callable[[str], str]:
    def wrong(path: str) -> str:
        name = path.replace("\\", "/").rpartition("/")[2]
        right = path.isprintable() and name.endswith(suffixes) and name not in suffixes
        return "" if right else f"must be the path of a file that ends in {' or '.join(suffixes)}"

    return wrong


Name = Annotated[str, Key(low=1, high=200, rule=_named)]
Text = Annotated[str, Key(high=10_000)]
Size = Annotated[int, Key(low=1, high=MAX_SIZE)]
Cycles = Annotated[int, Key(low=0, high=MAX_CYCLES)]
Steps = Annotated[int, Key(low=1, high=MAX_STEPS)]
Arrivals = Annotated[list[Cycles], Key(high=MAX_JOBS)]
Width = Annotated[int, Key(low=-MAX_SIZE, high=MAX_SIZE)]
Word = Annotated[str, Key(high=200)]
Vectors = Annotated[list[Word], Key(high=MAX_GATES)]
Parts = Annotated[dict[str, Vectors], Key(high=MAX_GATES)]
Sums = Vectors | Parts
WeightsPath = Annotated[str, Key(high=4096, rule=_ending(".safetensors"))]
InputsPath = Annotated[str, Key(high=4096, rule=_ending(".safetensors", ".npy", ".csv"))]
