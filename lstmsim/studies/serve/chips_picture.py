"""The rate that each chip bears against the bound."""

from __future__ import annotations

import os

from lstmsim.report.pictures.figures import MARKERS, Picture, drawn, line_look
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.serve.chips import ChipRates

#: Of sizes of batches, the smallest first.
_DASHES = ("-", "--", ":", "-.")


def plot_saturation(found: ChipRates, path: str | os.PathLike[str] | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw for each chip the rate that keeps a bound, bound by bound; bars reach to the lowest rate that breaks it.

    found: what `saturate_chips` gave.
    path: the picture's file; None: no file.
    look: how wide it is, and what it is made for.

    >>> from lstmsim import plot_saturation, saturate_chips
    >>> jobs = [{"model": "lstm-256", "steps": 1, "arrival": {"kind": "poisson", "rate_per_second": 1e5}}]
    >>> scenario = {"chip": "column-npu-16k", "jobs": jobs}
    >>> plot_saturation(saturate_chips(scenario, 0.01, ["column-npu-64k"], tolerance=0.3, most_requests=3000))
    <Picture size 700x420 with 1 Axes>
    """
    chips = list(dict.fromkeys(each.chip for each in found.rates))
    lines = list(dict.fromkeys((each.chip, each.batch) for each in found.rates if not (each.batch and each.reason)))
    sizes = sorted({batch for _, batch in lines if batch is not None})
    with drawn(path, (3.5, 3.0) if look.width == "column" else (7, 4.2), look=look) as figure:
        axes = figure.subplots()
        for chip, batch in lines:
            place = chips.index(chip)
            known = [each for each in found.rates if (each.chip, each.batch) == (chip, batch) and each.rate]
            name = chip if batch is None else f"{chip}, batch {batch}"
            rates = [each.rate or 0.0 for each in known]
            above = [(each.fails_from or each.rate or 0.0) - (each.rate or 0.0) for each in known]
            label = name if known else f"{name}: keeps no bound"
            axes.errorbar(
                [each.bound_ms for each in known],
                rates,
                yerr=[[0.0] * len(known), above],
                label=label,
                capsize=3,
                linewidth=1.2,
                linestyle=_DASHES[0 if batch is None else sizes.index(batch) % len(_DASHES)],
                **line_look(place),
            )
        axes.set_xscale("log")
        if any(each.rate for each in found.rates):
            axes.set_yscale("log")
        axes.set_xticks(found.bounds_ms, [f"{each:g}" for each in found.bounds_ms])
        axes.minorticks_off()
        axes.set_xlabel(f"bound on the p{found.percentile:g} latency (ms)")
        axes.set_ylabel("rate that keeps it (requests/s)")
        axes.grid(color="#DDDDDD", linewidth=0.5)
        axes.set_axisbelow(True)
        legend = axes.legend(fontsize="small", frameon=False)
        if len(lines) > len(MARKERS) // 2:
            legend.set_loc("center left")
            legend.set_bbox_to_anchor((1.0, 0.5))
        figure.head([f"Rate that keeps the bound, {found.scenario}"], axes)
    return figure
