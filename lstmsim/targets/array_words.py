"""What losses are called on machines whose cores have `npe` multipliers, `vp` rows of `ep` of which take part."""

from __future__ import annotations

from lstmsim.workload.scenario import Words

__all__ = ["ARRAY_WORDS"]

ARRAY_WORDS = {
    "padding": Words(
        "the tile reaches beyond the edge of the matrix", "an ep and vp that divide the layers better would help"
    ),
    "unmapped": Words("multipliers beyond ep * vp", "an ep * vp nearer to npe would help"),
}
