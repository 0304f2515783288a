"""Pictures and table of the study: cycles over EP and VP, as `lstmsim sweep` draws and writes them.

Run `python experiments/design_space/pictures.py FOLDER`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from experiments.design_space.run import spec
from lstmsim.report.styles import Look
from lstmsim.studies.sweep.picture import plot
from lstmsim.studies.sweep.run import sweep as run_sweep
from lstmsim.studies.sweep.store import Store

__all__ = ["draw", "figure"]


def figure(path: Path) -> Path:
    """The map, as wide as a page."""
    with tempfile.TemporaryDirectory() as folder, Store(run_sweep(spec(), folder).path, create=False) as store:
        plot(store, path, look=Look("page"))
    return path


def draw(folder: Path) -> list[Path]:
    """Draw the map into a folder, with the table and the results beside it; give the files."""
    done = run_sweep(spec(), folder)
    with Store(done.path, create=False) as store:
        plot(store, folder / "map.png")
    return [folder / "map.png", folder / "map.csv", *map(Path, (done.path, *done.tables))]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("design_space")
