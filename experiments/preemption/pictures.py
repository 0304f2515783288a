"""A picture of the study: how many times shorter tasks wait than first come, first served.

Run `python experiments/preemption/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.drawing import bars
from experiments.preemption.run import gain, settings
from experiments.preemption.study import POLICIES, results

__all__ = ["draw", "figure"]


def figure(path: Path) -> Path:
    """The average normalised turnaround time by mix and load, over that of first come, first served."""
    outcome = results()
    names = list(POLICIES)[1:]
    groups = {}
    for mix, load in settings(outcome):
        estimates = [gain(outcome, mix, load, each, "ANTT") for each in names]
        groups[f"{mix}, {load:g}"] = [0.0 if each is None else each.value for each in estimates]
    return bars(path, groups, names, "turnaround, times shorter")


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [figure(folder / "figure.png")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("preemption")
