"""A picture of the study: three LSTMs on three threads, each in the idle slots of the others.

Run `python experiments/concurrent_lstms/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.concurrent_lstms.run import SETTINGS, simulated
from experiments.drawing import PAGE
from lstmsim.studies.simulate.picture import plot

__all__ = ["draw", "figure"]


def figure(path: Path) -> Path:
    """Three threads, coarse, as the patent's figure 1f draws them."""
    plot(simulated(SETTINGS[1]).timeline, path, look=PAGE)
    return path


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [figure(folder / "figure.png")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("concurrent_lstms")
