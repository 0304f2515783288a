"""Machines whose cores have an array of `npe` multipliers, used as `vp` rows of `ep`: words and figures."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from lstmsim.model.figures import CoreFigures, MainUnit, Words

#: What people call the array of a core and its multipliers (processing elements).
ARRAY = MainUnit("array", "PE arrays", "PE")

#: Name of cycles or losses, way off the array, or word of outputs -> words.
ARRAY_WORDS = {
    "padding": Words(
        "the tile reaches beyond the edge of the matrix",
        "multipliers work on rows or columns beyond the edge of the matrix, or on empty places of a batch",
    ),
    "unmapped": Words("multipliers beyond ep * vp", "multipliers beyond ep x vp, which no tile uses"),
    "utilization": Words(
        glossary="useful multiply-accumulates / (npe x makespan): the share of what the multipliers could have done"
    ),
    "busy": Words(
        "the array issues a tile or a row group", glossary="the unit issues; without a unit's name: the array does"
    ),
    "backpressure": Words(
        "threads wait for an accumulator bank",
        "nothing can issue, because no accumulator bank is free: the tail has not emptied one yet",
        held_by="a free bank (backpressure)",
        next_wait="free bank",
        share="no accumulator bank is free",
        spent="waiting for a free bank (backpressure)",
    ),
    "switch": Words(
        glossary="the array changes from one thread to another, and nothing can issue",
        share="it could issue, the array changes threads",
    ),
    "work": Words(share="the array issues its tiles", spent="at work in the array"),
    "other threads": Words(share="it could issue, the array serves others", spent="behind other threads' tiles"),
    "job to job": Words(way="from the last tile of a job to the first of the job that starts after it"),
    "layer to layer": Words(way="from the last tile of a layer to the first tile of the layer above"),
    "step to step": Words(way="from the last tile of a step to the first tile of the next step that needs its h"),
    "PE-cycles": Words(glossary="processing elements (multipliers) x cycles", behind="latency"),
    "npe": Words(glossary="number of processing elements: the multipliers of a core", behind="PE-cycles"),
    "ep": Words(
        glossary="element parallelism: columns of the matrix (elements of x or h) that a tile takes in a cycle",
        behind="npe",
    ),
    "vp": Words(glossary="vector parallelism: rows of the matrix that a tile takes in a cycle", behind="ep"),
    "thread": Words(
        glossary="a context of a core: holds one job's vectors, states and accumulators; threads take turns on the "
        "array"
    ),
    "tile": Words(glossary="vp rows by ep columns of a matrix, multiplied in one cycle", behind="turn"),
    "array": Words(glossary="the multipliers and adder trees; takes one tile a cycle", behind="tile"),
    "MVM": Words(
        glossary="matrix-vector multiplication; its pipeline: reading, multiplying, adder tree, accumulator, "
        "conversion",
        behind="array",
    ),
}


def array_figures(
    cores: Sequence[Hashable],
    shown: Mapping[Any, Mapping[str, Any]],
    stalls: tuple[str, ...],
    words: Mapping[str, Words],
) -> tuple[CoreFigures, ...]:
    """Give cores with an array as the accounts see them; equal cores are one object.

    shown: for each different core the settings that a report shows next to its array, where they are not 0.
    stalls: stall reasons that other machines do not have.
    words: of the machine.
    """
    figures = {}
    for each, values in shown.items():
        array = {key: int(getattr(each, key)) for key in ("npe", "ep", "vp")}
        settings = {key: value for key, value in values.items() if value}
        figures[each] = CoreFigures(array["npe"], array["ep"] * array["vp"], array, settings, stalls, words, ARRAY)
    return tuple([figures[each] for each in cores])
