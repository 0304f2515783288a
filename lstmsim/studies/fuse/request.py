"""Options of a fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import ChipOverrides, ChipSource, Engine, Path, Progress, Seed, listed_in

if TYPE_CHECKING:
    from lstmsim.model.fusion.graph import Graph
else:
    Graph = Any

_NUMBERS = "Execute the kernels on numbers and compare with numpy, with exit code 1 if they differ."


def _modes(text: str) -> tuple[str, ...]:
    return tuple(str(each) for each in listed_in(text) if each != "")


@record
class FusionRequest:
    """A graph, where it runs, and what is done with each way to cut it."""

    graph: Annotated[Path | Graph, Key("Name of a graph, or a graph file (.yaml, .json) or an ONNX file.")]
    sizes: Annotated[
        Sequence[str] | Mapping[str, int],
        Key(
            "Set a size of the graph, like hidden=512, or of an open axis of an ONNX file.",
            flag="--size",
            metavar="NAME=N",
            repeatable=True,
        ),
    ] = ()
    chip: ChipSource = "v100"
    chip_overrides: ChipOverrides = ()
    settings: Annotated[
        Sequence[str] | Mapping[str, Any],
        Key(
            "Change a setting of the pass, like split_rule=costed; docs/fusion.md has all in section 4.",
            flag="--set",
            metavar="NAME=VALUE",
            repeatable=True,
        ),
    ] = ()
    modes: Annotated[
        str | Sequence[str],
        Key("Ways to cut the graph into kernels that are compared.", metavar="NAME[,NAME...]", read=_modes),
    ] = ("op", "xla", "tvm", "stitch")
    mode: Annotated[
        str | None,
        Key("Mode whose kernels are reported, drawn over time and traced.", follows="stitch, the pass", metavar="NAME"),
    ] = None
    ablate: Annotated[bool, Key("Add the mechanisms of the pass one after the other.")] = False
    cycles: Annotated[bool | None, Key("Simulate the kernels.", follows="if the graph is not too large")] = None
    numbers: Annotated[bool | None, Key(_NUMBERS, follows="if the graph is not too large")] = None
    seed: Annotated[Seed, Key("Seed of the numbers on which kernels are executed.")] = 0
    engine: Engine = "fast"
    progress: Progress = None
