"""A picture of the study: cycles with skipped columns as a part of the dense ones, over the threshold, for each EP.

Run `python experiments/delta_columns/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.delta_columns.run import results
from experiments.drawing import curves

__all__ = ["figure"]


def figure(path: Path) -> Path:
    """Cycles of dense over the threshold."""
    lines = {
        f"EP {ep}": [(each.threshold, each.cycles / dense.cycles) for each in points if each.threshold is not None]
        for ep, (dense, *points) in results().items()
    }
    return curves(path, lines, ("threshold of x and h", "cycles / cycles without delta columns"))


if __name__ == "__main__":
    from experiments.run import draw as run

    run("delta_columns")
