"""A picture of the study: cycles over EP for each array and model.

Run `python experiments/ep_vp_sweep/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.drawing import curves
from experiments.ep_vp_sweep.run import results

__all__ = ["draw", "figure"]


def figure(path: Path) -> Path:
    """Cycles over EP."""
    lines = {
        f"NPE {npe:,}, hidden {hidden:,}": [(each.ep, each.cycles) for each in points]
        for (npe, hidden), points in results().items()
    }
    return curves(path, lines, ("EP, with VP = min(4 hidden, NPE / EP)", "cycles of 25 steps"), base=2, log=True)


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [figure(folder / "figure.png")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("ep_vp_sweep")
