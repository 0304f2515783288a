"""How products of jobs are spread over threads, in the forms of a report."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import Any

from lstmsim.model.planned import PlannedProduct, PlannedProducts
from lstmsim.report.figures_text import short_name
from lstmsim.report.tables import table

__all__ = ["HEAD", "LEFT", "planned_cells", "planned_json", "planned_text"]

#: Names of the columns, and the numbers of those that hold words.
HEAD = ("model", "layers", "product", "m x n x k", "threads", "cut", "rank", "rejected before", "relief")
LEFT = (0, 1, 2, 3, 5, 6, 7, 8)
#: Most rows in the text; the others are counted.
_MOST = 12
_LONGEST_NAME, _WIDTH = 28, 100


def planned_json(planned: PlannedProducts) -> dict[str, Any]:
    """Products that were planned as plain data."""
    return {
        "note": planned.note,
        "products": [
            {**asdict(each), "layers": list(each.layers), "rejected": [list(why) for why in each.rejected]}
            for each in planned.rows
        ],
    }


def planned_text(planned: PlannedProducts) -> str:
    """Products that were planned as a table for the terminal, with a note."""
    lines = ["PLANS: how the products of a time step are cut (p_m x p_n x p_k parts of rows, columns and K)"]
    lines += table([HEAD, *map(planned_cells, planned.rows[:_MOST])], left=LEFT)
    if len(planned.rows) > _MOST:
        lines.append(f"... and {len(planned.rows) - _MOST:,} more; --json FILE has every one")
    return "\n".join([*lines, *textwrap.wrap(planned.note, _WIDTH, break_on_hyphens=False)])


def planned_cells(each: PlannedProduct) -> list[str]:
    """A row of the table: texts under `HEAD`."""
    first, last = each.layers[0], each.layers[-1]
    run = first != last and last - first + 1 == len(each.layers)
    layers = f"{first}..{last}" if run else ",".join(map(str, each.layers))
    # equal reasons once: what counts is why none of them was taken
    reasons = dict.fromkeys(reason for why in each.rejected for reason in why)
    rejected = f"{len(each.rejected)}: {', '.join(reasons)}" if each.rejected else "none"
    sizes = f"{each.m:,} x {each.n:,} x {each.k:,}"
    names = [short_name(each.model, _LONGEST_NAME), layers, each.label, sizes, str(each.threads), each.cut]
    return [*names, f"{each.rank} of {each.candidates}", rejected, each.relief or "-"]
