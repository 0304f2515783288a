"""A picture of the study: how the p99 of latency grows with the number of instances.

Run `python experiments/stac_ml/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.drawing import curves
from experiments.stac_ml.run import INSTANCES, MACHINES, growth, published

__all__ = ["figure"]


def figure(path: Path) -> Path:
    """The p99 of n instances of LSTM_A over that of one."""
    lines = {each.title: [(float(n), growth(each)("A", n)) for n in INSTANCES] for each in MACHINES}
    for stack in ("Vollo", "A100"):
        points = published()[stack, "A"]
        lines[f"published: {stack}"] = [(float(n), value / points[1]) for n, value in points.items()]
    return curves(path, lines, ("instances of LSTM_A", "p99 over that of one instance"), base=2, log=True)


if __name__ == "__main__":
    from experiments.run import draw as run

    run("stac_ml")
