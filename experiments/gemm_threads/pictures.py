"""Pictures of the study: threads over time under two reliefs, makespans over threads, regrets of planners.

Run `python experiments/gemm_threads/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from matplotlib.backends.backend_agg import FigureCanvasAgg

from experiments.gemm_threads.drawn import HELD_OUT, drawn
from experiments.gemm_threads.regret import regret_of
from experiments.gemm_threads.study import SECTION_2, Ran, all_ran, plan_of
from experiments.gemm_threads.sweep import CHIP, SHAPES, THREADS, swept
from lstmsim import plot_threads, run_gemm
from lstmsim.machines.gemm import CACHES
from lstmsim.report.pictures.figures import Picture, save, settings

__all__ = ["draw", "figure", "makespans", "regrets", "timelines"]

_PLANNERS = {"the project's": {}, "section 2's": SECTION_2}


def timelines(folder: Path) -> list[Path]:
    """What 16 threads of one K-group do, with sub-blocks that all visit in rotated order, and with buffers too."""
    written = []
    for relief in ("sub", "both"):
        path = folder / f"threads-{relief}.svg"
        product = run_gemm(64, 64, 4096, threads=16, chip=CHIP, relief=relief, baselines=False, numbers=False)
        plot_threads(product, path)
        written.append(path)
    return written


def makespans(path: Path, name: str = next(iter(SHAPES))) -> Path:
    """Cycles over threads: M/N threads by BLIS's rule, the best M/N pair, the plan.

    name: of a shape.
    """
    rows = swept([name])[name]
    with settings():
        figure = Picture(figsize=(7, 3.4), layout="constrained")
        FigureCanvasAgg(figure)
        for panel, caches in zip(figure.subplots(1, 2, sharey=True), CACHES, strict=True):
            lines = {
                "M/N by BLIS's rule": [rows[each].blis(caches) for each in THREADS],
                "best M/N pair": [rows[each].best_pair(caches) for each in THREADS],
                "plan": [_planned(rows[each], caches) for each in THREADS],
            }
            marks = zip(lines.items(), ("#D55E00", "#56B4E9", "#009E73"), ("o-", "s--", "^:"), strict=True)
            for (label, values), colour, mark in marks:
                panel.plot(THREADS, values, mark, color=colour, label=label)
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.set_xticks(THREADS, [str(each) for each in THREADS])
            panel.set_xlabel(f"threads, {caches} caches")
            panel.set_title(name, loc="left")
        figure.axes[0].set_ylabel("cycles")
        figure.axes[0].legend(frameon=False)
        save(figure, str(path))
    return path


def regrets(path: Path, rows: Sequence[Ran]) -> Path:
    """Which part of plans is within which distance of the best cut.

    rows: simulated cases.
    """
    with settings():
        figure = Picture(figsize=(6, 3.4), layout="constrained")
        FigureCanvasAgg(figure)
        panel = figure.subplots()
        for (name, given), colour in zip(_PLANNERS.items(), ("#009E73", "#D55E00"), strict=True):
            for caches, style in zip(CACHES, ("-", "--"), strict=True):
                values = sorted(100 * each for each in regret_of(rows, given, caches).values)
                parts = [100 * (place + 1) / len(values) for place in range(len(values))]
                panel.step(values, parts, style, where="post", color=colour, label=f"{name}, {caches}")
        panel.set_xlim(-0.5, 60)
        panel.set_xlabel("longer than the fastest cut, %")
        panel.set_ylabel("plans, %")
        panel.legend(frameon=False)
        save(figure, str(path))
    return path


def _planned(row: Ran, caches: str) -> int:
    plan = plan_of(row.case, caches)
    return row.cycles(plan.ranked[plan.chosen].cut, caches)


#: What docs show.
figure = makespans


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    rows = all_ran(drawn("log", 150, HELD_OUT))
    return [*timelines(folder), makespans(folder / "makespans.svg"), regrets(folder / "regrets.svg", rows)]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("gemm_threads")
