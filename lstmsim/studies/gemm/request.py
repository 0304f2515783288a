"""Options of a threaded matrix product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field
from typing import TYPE_CHECKING, Annotated, Any

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import ChipOverrides, ChipSource, Engine, Path, Progress, Seed, Size, listed_in

if TYPE_CHECKING:
    from lstmsim.machines.gemm import Cut
    from lstmsim.model.model import Model
else:
    Cut = Model = Any

#: The products of a layer that may be asked for, with what each one is.
PRODUCTS: Mapping[str, str] = {
    "step": "one time step: batch x gates of the cell, all vectors that the gates read",
    "projection": "the inputs of all time steps at once: steps * batch rows, all gates that read x",
    "gradient": "the gradient of the weights over all time steps: gates x vectors, sums of steps * batch",
}


def _threads(text: str) -> Any:
    """One number of threads, or several; the text itself where one is missing."""
    numbers = listed_in(text)
    return text if "" in numbers else numbers if len(numbers) > 1 else numbers[0]


@record
class GemmRequest:
    """A product C = A B, where it runs, and what is simulated besides the plan."""

    m: Annotated[Size | None, Key("Rows of C.")] = None
    n: Annotated[Size | None, Key("Columns of C.")] = None
    k: Annotated[Size | None, Key("Length of the sums.")] = None
    _: KW_ONLY
    model: Annotated[
        Path | Model | None, Key("In place of M N K: a model's name or file, whose layer is computed.", metavar="MODEL")
    ] = None
    product: Annotated[
        str,
        Key(
            "Product of the layer. step: one time step. projection: the inputs of all steps. gradient: of the weights.",
            choices=tuple(PRODUCTS),
            metavar="NAME",
        ),
    ] = "step"
    layer: Annotated[int, Key("Number of the layer.", low=0)] = 0
    batch: Annotated[Size, Key("Number of inferences that run together.")] = 1
    steps: Annotated[Size | None, Key("Time steps of a projection or gradient.")] = None
    part: Annotated[
        int | None, Key("Number of the product, where gates read different vectors.", low=0, follows="the largest one")
    ] = None
    threads: Annotated[
        int | None,
        Key(
            "Number of cores that compute. A command takes several numbers (1,2,4,8), too, and gives a table of them",
            low=1,
            follows="the parts of the cut, or all cores of the chip",
            metavar="P[,P...]",
            read=_threads,
        ),
    ] = None
    chip: ChipSource = "epyc-7742"
    chip_overrides: ChipOverrides = ()
    caches: Annotated[
        str,
        Key(
            "cold: caches are empty at the start. warm: they are as the same product left them. Both are simulated; "
            "this one is shown in full.",
            choices=("cold", "warm"),
            metavar="STATE",
        ),
    ] = "warm"
    packed: Annotated[
        str | None,
        Key(
            "When B is packed. once: before, as a job holds its weights. each: at every call.",
            follows="once; each for a gradient, whose B is new at every call",
            choices=("once", "each"),
            metavar="WHEN",
        ),
    ] = None
    cut: Annotated[
        str | Cut | None,
        Key(
            "Run this cut, not the fastest: MK:4x1x16 (kind MN, MK, NK or MNK, then p_m x p_n x p_k), or with blocks "
            "MK:4x1x16:8x512x264.",
            metavar="CUT",
        ),
    ] = None
    relief: Annotated[
        str,
        Key(
            "How conflicts of threads that add into the same block of C are avoided: plan, none, sub, buffer or both.",
            choices=("plan", "none", "sub", "buffer", "both"),
            metavar="NAME",
        ),
    ] = "plan"
    settings: Annotated[
        Sequence[str] | Mapping[str, Any],
        Key(
            "Set a parameter of the planner, like contention=4 or mn=all.",
            flag="--set",
            metavar="NAME=VALUE",
            repeatable=True,
        ),
    ] = ()
    baselines: Annotated[
        bool | None,
        Key(
            "Simulate all candidates and all M/N pairs, so that the fastest is known.", follows="if it takes no minutes"
        ),
    ] = None
    ablate: Annotated[bool, Key("Simulate the cut under each relief.")] = False
    numbers: Annotated[
        bool | None,
        Key("Compute C in the order of the steps and compare with numpy.", follows="if the product is not too large"),
    ] = None
    seed: Annotated[Seed, Key("Seed of the numbers of A and B.")] = 0
    engine: Engine = "fast"
    progress: Progress = None


@record
class GemmThreadsRequest(GemmRequest):
    """A product on several numbers of threads; cut, relief, ablate and numbers are for one number of threads."""

    threads: Annotated[Sequence[Annotated[int, Key(low=1)]], Key("Numbers of cores that compute, each once.")] = field(
        kw_only=True
    )  # type: ignore[assignment]
