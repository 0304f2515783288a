"""Pictures of the study: the machines one inference at a time, and at equal peak.

Run `python experiments/deepbench/pictures.py FOLDER`.
"""

from __future__ import annotations

from pathlib import Path

from experiments.deepbench.settings import results
from lstmsim.report.styles import Look
from lstmsim.studies.compare.picture import plot_comparison as plot

__all__ = ["draw", "figure"]


def figure(path: Path) -> Path:
    """The machines one inference at a time, as wide as a page."""
    plot(results().single, path, look=Look("page"))
    return path


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    outcome = results()
    drawn = {"single": outcome.single, "equal_peak": outcome.scaled[0].comparison}
    for name, comparison in drawn.items():
        plot(comparison, folder / f"{name}.png")
    return [folder / f"{name}.png" for name in drawn]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("deepbench")
