"""Words for the losses of machines whose cores use `npe` multipliers as `vp` rows of `ep`."""

from __future__ import annotations

from lstmsim.workload.scenario import Words

__all__ = ["ARRAY_WORDS"]

ARRAY_WORDS = {
    "padding": Words(
        "the tile reaches beyond the edge of the matrix",
        "an ep and vp that divide the layers better would help",
        "multipliers work on rows or columns beyond the edge of the matrix, or on empty places of a batch",
    ),
    "unmapped": Words(
        "multipliers beyond ep * vp",
        "an ep * vp nearer to npe would help",
        "multipliers beyond ep x vp, which no tile uses",
    ),
    "utilization": Words(
        glossary="useful multiply-accumulates / (npe x makespan): the share of what the multipliers could have done"
    ),
}
