"""A picture of the study: the 99th percentile of latency over the load of each machine.

Run `python experiments/serving/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.drawing import curves
from experiments.serving.study import LOADS, machines, one_thread_rate, served

__all__ = ["draw", "figure"]


def figure(path: Path) -> Path:
    """The 99th percentile over the load; loads that a machine cannot do have no point."""
    reference = max(one_thread_rate(each) for each in machines())
    lines = {}
    for machine in machines():
        runs = [(load, served(machine, load * reference).serving) for load in LOADS]
        lines[machine.name] = [
            (load, each.ms(each.latency.p99.value)) for load, each in runs if each.verdict == "settled"
        ]
    return curves(path, lines, ("load", "99th percentile of latency (ms)"), log=True)


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [figure(folder / "figure.png")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("serving")
