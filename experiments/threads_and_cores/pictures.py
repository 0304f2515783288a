"""A picture of the study: speed-ups of threads and cores by mix of jobs.

Run `python experiments/threads_and_cores/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.drawing import bars
from experiments.threads_and_cores.run import PUBLISHED, results, speedup

__all__ = ["draw", "figure"]


def figure(path: Path) -> Path:
    """How many times as fast as one single-threaded core each machine is."""
    rows = results()
    machines = list(next(iter(rows.values())))[1:]
    groups = {mix: [speedup(row, each) for each in machines] for mix, row in rows.items()}
    return bars(path, groups, machines, "times as fast as 1 core, 1 thread", PUBLISHED)


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [figure(folder / "figure.png")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("threads_and_cores")
