"""Pictures of the study: blocks of each SM over time, how much SMs have to do, and the crossover.

Run `python experiments/sparse_lstm/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from matplotlib.backends.backend_agg import FigureCanvasAgg

from experiments.sparse_lstm.run import BAND, PUBLISHED, ratios, results
from experiments.sparse_lstm.study import ORDERS, SPARSITIES, UNITS, crossover, ran, real, sixteen
from lstmsim import plot_blocks
from lstmsim.report.pictures.figures import Picture, save, settings

_NAME = "Resemblyzer l1"


def timelines(folder: Path) -> list[Path]:
    """Blocks of each SM over time, for rows as they are and sorted, with 4 blocks an SM."""
    written = []
    for order, dispatch in (ORDERS[0], ORDERS[-1]):
        path = folder / f"timeline-{order}-{dispatch}.svg"
        plot_blocks(ran(real(_NAME, 0.9), "spmm", sixteen(4), "csr", 32, order=order, dispatch=dispatch), path)
        written.append(path)
    return written


def loads(path: Path) -> Path:
    """A histogram for each order and dispatch: how many SMs have issued how much."""
    runs = {
        f"{order}, {dispatch}": ran(
            real(_NAME, 0.9), "spmm", sixteen(4), "csr", 32, order=order, dispatch=dispatch
        ).figures.busy
        for order, dispatch in ORDERS
    }
    low, high = (pick(pick(each) for each in runs.values()) for pick in (min, max))
    with settings():
        figure = Picture(figsize=(6, 6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(runs), 1, sharex=True, sharey=True)
        for panel, (name, busy) in zip(axes, runs.items(), strict=True):
            panel.hist(busy, bins=24, range=(low, high), color="#56B4E9")
            mean = sum(busy) / len(busy)
            panel.axvline(mean, color="#333333", linestyle="--", linewidth=0.8)
            panel.set_title(f"{name}: most over mean {max(busy) / mean:.2f}", loc="left")
        axes[-1].set_xlabel(f"issue cycles of an SM, {_NAME} at 90 % (dashed: mean)")
        axes[len(axes) // 2].set_ylabel("SMs")
        save(figure, str(path))
    return path


def crossing(path: Path) -> Path:
    """Cycles of sparse over dense by sparsity, with the published figure."""
    row = ratios(results(small=True), UNITS)
    at = crossover(row)
    with settings():
        figure = Picture(figsize=(6, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        panel = figure.subplots()
        panel.plot([100 * each for each in SPARSITIES], list(row.values()), marker="o", color="#0072B2")
        panel.axhline(1, color="#333333", linewidth=0.8)
        panel.axvspan(100 * BAND[0], 100 * BAND[1], color="#56B4E9", alpha=0.2, label="band")
        panel.axvline(100 * PUBLISHED, color="#D55E00", linestyle="--", label="published, real V100")
        if at is not None:
            panel.axvline(100 * at, color="#009E73", label=f"simulated: {100 * at:.1f} %")
        panel.set_xlabel("zeros of W, %")
        panel.set_ylabel("cycles of sparse over dense")
        panel.set_ylim(bottom=0)
        panel.legend(frameon=False)
        save(figure, str(path))
    return path


#: What docs show.
figure = crossing


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [*timelines(folder), loads(folder / "loads.svg"), crossing(folder / "crossover.svg")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("sparse_lstm")
