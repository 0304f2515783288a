"""A picture of the study: milliseconds of a step over the density of changes, at both ends of the memory's band.

Run `python experiments/edgedrnn/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.drawing import curves
from experiments.edgedrnn.run import DENSITIES, ENDS, MACS, PUBLISHED_GOPS, step_cycles

__all__ = ["figure"]


def figure(path: Path) -> Path:
    """Milliseconds over density."""
    lines = {
        name: [(density, step_cycles(chip, density) / 125e3) for density in DENSITIES] for chip, name in ENDS.items()
    }
    lines["published 20.2 GOp/s"] = [(density, 2 * MACS / PUBLISHED_GOPS / 1e6) for density in (0.0, 1.0)]
    return curves(path, lines, ("share of elements that change", "ms of a step, two GRU layers of 768"), log=True)


if __name__ == "__main__":
    from experiments.run import draw as run

    run("edgedrnn")
