"""A picture of the study: requests a second of split and whole machines by task.

Run `python experiments/splitting/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.drawing import bars
from experiments.serving.study import TASKS
from experiments.splitting.run import BIG, REQUESTS, batches, machines

__all__ = ["draw", "figure"]


def figure(path: Path) -> Path:
    """Requests a second, as multiples of those of the single-threaded big core."""
    batch = batches(TASKS, REQUESTS)
    names = [each for each in machines() if each != BIG.name]
    groups = {task: [row[BIG.name] / row[each] for each in names] for task, row in batch.items()}
    return bars(path, groups, names, "requests a second, times one big core")


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [figure(folder / "figure.png")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("splitting")
