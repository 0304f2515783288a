"""A picture of the study: cycles of a layer-normalised LSTM over hidden units.

Run `python experiments/fusion/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from matplotlib.backends.backend_agg import FigureCanvasAgg

from experiments.fusion.grid import GRAPHS, HIDDEN
from experiments.fusion.study import ways
from lstmsim.report.pictures.figures import Picture, save, settings

__all__ = ["cycles", "draw", "figure"]

#: Ways to cut the graph, how the picture calls them, how they are drawn.
_LINES = {
    "xla": ("xla-like kernels", "#D55E00", "o-"),
    "tvm": ("tvm-like kernels", "#56B4E9", "s--"),
    "paper": ("one kernel, published splits", "#CC79A7", "v:"),
    "costed": ("one kernel, costed splits", "#009E73", "^-"),
}


def cycles(path: Path, hidden: Sequence[int] = HIDDEN, batches: Sequence[int] = (1, 64)) -> Path:
    """Cycles over hidden units, a panel for each batch."""
    with settings():
        figure = Picture(figsize=(7.4, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(batches), sharey=True, squeeze=False)[0]
        for panel, batch in zip(panels, batches, strict=True):
            of = [ways(GRAPHS[0], {"hidden": each, "batch": batch}, ("xla", "tvm")) for each in hidden]
            for name, (label, colour, mark) in _LINES.items():
                panel.plot(hidden, [each[name].cycles for each in of], mark, color=colour, label=label)
            panel.set_xscale("log", base=2)
            panel.set_ylim(bottom=0)
            panel.yaxis.set_major_formatter("{x:,.0f}")
            panel.set_xticks(hidden, [str(each) for each in hidden])
            panel.set_xlabel("hidden units")
            panel.set_title(f"batch {batch}")
        panels[0].set_ylabel("cycles of a step, without products")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        save(figure, str(path))
    return path


#: What docs show.
figure = cycles


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [cycles(folder / "fusion.png")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("fusion")
